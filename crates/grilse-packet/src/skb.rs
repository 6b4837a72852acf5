//! The skb: one owning pointer to a packet.

use std::fmt;
use std::ops::Range;

use grilse_mem::{FrameSlice, Slot};
use grilse_wire::Meta;

use crate::chain::Packets;
use crate::copy::copy;
use crate::shell::{
    Data, DataOwner, Destructor, HEAD_SIZE, MAX_FRAGS, SMALL_START, Shell, UNIT_TRUESIZE,
};

/// A packet: linear bytes at the front, then page fragments, then chained packets, and metadata
/// beside them. The kernel's `sk_buff`; 8 bytes, owned by whoever holds it, and free to cross
/// threads.
///
/// Give it back with [`Ctx::consume`](crate::Ctx::consume) where it has done its work, or with
/// [`Ctx::drop_with`](crate::Ctx::drop_with) where it is lost. Letting it go out of scope is legal
/// anywhere, unwinding included: then it goes home the slower way.
///
/// The bytes are read and gathered through [`Packet`](grilse_wire::Packet), which is what GRO uses too.
#[doc(alias = "sk_buff")]
#[must_use = "a packet is passed on, consumed, or dropped with a reason"]
pub struct Skb(Slot<Shell>);

/// The head is full, or the packet is not linear where it needs to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom;

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no room left in the skb's head")
    }
}

impl std::error::Error for NoRoom {}

impl Skb {
    pub(crate) fn from_shell(shell: Slot<Shell>) -> Self {
        Self(shell)
    }

    pub(crate) fn into_shell(self) -> Slot<Shell> {
        self.0
    }

    pub(crate) fn shell(&self) -> &Shell {
        &self.0
    }

    pub(crate) fn shell_mut(&mut self) -> &mut Shell {
        &mut self.0
    }

    /// Length in bytes of linear part, fragments and chained packets together.
    pub fn len(&self) -> usize {
        self.0.len as usize
    }

    /// Whether the packet has no bytes.
    pub fn is_empty(&self) -> bool {
        self.0.len == 0
    }

    /// What travels beside the bytes.
    #[inline]
    pub fn meta(&self) -> &Meta {
        &self.0.meta
    }

    /// The same, writable.
    #[inline]
    pub fn meta_mut(&mut self) -> &mut Meta {
        &mut self.0.meta
    }

    /// Bytes charged for this packet: shells, data cells and whole frames, not payload
    /// (`skb->truesize`). Frames that several packets share are charged to each.
    pub fn truesize(&self) -> u32 {
        self.0.truesize
    }

    /// Calls `destructor` once, when this packet is released: consumed, dropped or let go, on
    /// whichever thread that is (`skb->destructor`). Its frames are given up by then; a clone has no
    /// destructor.
    ///
    /// # Errors
    /// The destructor, where the packet has one already.
    pub fn set_destructor(&mut self, destructor: Destructor) -> Result<(), Destructor> {
        let shell = &mut *self.0;
        if shell.has_destructor {
            return Err(destructor);
        }
        shell.has_destructor = true;
        shell.destructor = Some(destructor);
        Ok(())
    }

    /// The linear bytes.
    #[inline]
    pub fn linear(&self) -> &[u8] {
        let shell = &*self.0;
        let range = shell.range();
        match (&shell.head, shell.data.get()) {
            (Some(frame), _) => &frame.bytes()[range],
            (None, Some(data)) => &data.small[range],
            (None, None) => &[],
        }
    }

    /// The linear bytes, writable; `None` while a clone shares them. [`Packet::front_mut`](grilse_wire::Packet::front_mut) copies
    /// in that case.
    #[inline]
    pub fn linear_mut(&mut self) -> Option<&mut [u8]> {
        let shell = &*self.0;
        let range = shell.range();
        Some(&mut self.head_bytes_mut()?[range])
    }

    /// Bytes in front of the packet that [`push`](Self::push) can take.
    pub fn headroom(&self) -> usize {
        self.0.start.into()
    }

    /// Bytes behind the linear part that [`put`](Self::put) can take.
    pub fn tailroom(&self) -> usize {
        self.head_size() - self.0.range().end
    }

    /// Grows the packet at the front by `n` bytes, which keep whatever values they have, and
    /// returns the linear part.
    ///
    /// # Errors
    /// [`NoRoom`] where the headroom is smaller, or a clone shares the head.
    #[inline]
    pub fn push(&mut self, n: usize) -> Result<&mut [u8], NoRoom> {
        let shell = &mut *self.0;
        let Range { start: old, end } = shell.range();
        let start = old.checked_sub(n).ok_or(NoRoom)?;
        let bytes = head_bytes(&mut shell.head, &mut shell.data).ok_or(NoRoom)?;
        shell.start = start as u16;
        shell.linear += n as u16;
        shell.len += n as u32;
        Ok(&mut bytes[start..end])
    }

    /// Removes up to `n` bytes from the front, and returns how many that were: fewer only where the
    /// packet ends, or where no memory is left to part from a clone.
    pub fn pull(&mut self, n: usize) -> usize {
        let linear = n.min(self.0.linear.into());
        self.0.start += linear as u16;
        self.0.linear -= linear as u16;
        self.0.len -= linear as u32;
        if linear == n { n } else { linear + self.pull_frags(n - linear) }
    }

    /// Grows the linear part at the back by `n` bytes, which keep whatever values they have, and
    /// returns them.
    ///
    /// # Errors
    /// [`NoRoom`] where the tailroom is smaller, a clone shares the head, or fragments or chained
    /// packets follow.
    #[inline]
    pub fn put(&mut self, n: usize) -> Result<&mut [u8], NoRoom> {
        let shell = &mut *self.0;
        if shell.has_frags || shell.has_chain {
            return Err(NoRoom);
        }
        let end = shell.range().end;
        let bytes = head_bytes(&mut shell.head, &mut shell.data).ok_or(NoRoom)?;
        let new = bytes.get_mut(end..).and_then(|room| room.get_mut(..n)).ok_or(NoRoom)?;
        shell.linear += n as u16;
        shell.len += n as u32;
        Ok(new)
    }

    /// Cuts the packet to `len` bytes from the back; does nothing where it is shorter.
    ///
    /// # Errors
    /// [`NoRoom`] where no memory is left to part from a clone.
    pub fn trim(&mut self, len: usize) -> Result<(), NoRoom> {
        let Some(excess) = self.len().checked_sub(len) else { return Ok(()) };
        let behind = self.len() - usize::from(self.0.linear);
        if excess.min(behind) > 0 {
            self.trim_frags(excess.min(behind))?;
        }
        let linear = excess.saturating_sub(behind);
        self.0.linear -= linear as u16;
        self.0.len -= linear as u32;
        Ok(())
    }

    /// Whether all bytes are linear.
    pub fn is_linear(&self) -> bool {
        !self.0.has_frags && !self.0.has_chain
    }

    /// The page fragments, in order.
    pub fn frags(&self) -> impl Iterator<Item = &FrameSlice> {
        let data = if self.0.has_frags { self.0.data.get() } else { None };
        data.into_iter().flat_map(|data| data.frags.iter())
    }

    /// The chained packets (`frag_list`), in order.
    pub fn frag_list(&self) -> impl Iterator<Item = &Skb> {
        let data = if self.0.has_chain { self.0.data.get() } else { None };
        data.into_iter().flat_map(|data| data.chain.iter())
    }

    /// Appends a page fragment.
    ///
    /// # Errors
    /// The fragment, where [`MAX_FRAGS`] are there, packets are chained behind, a clone shares the
    /// data, or 4 GiB are charged.
    pub fn add_frag(&mut self, frag: FrameSlice) -> Result<(), FrameSlice> {
        let shell = &mut *self.0;
        let (len, size) = (frag.len() as u32, frag.frame_size() as u32);
        let data = shell.data.sole().filter(|_| !shell.has_chain);
        let Some((data, truesize)) = data.zip(shell.truesize.checked_add(size)) else {
            return Err(frag);
        };
        data.frags.push(frag)?;
        shell.has_frags = true;
        shell.len += len;
        shell.truesize = truesize;
        Ok(())
    }

    /// Chains a packet behind this one.
    ///
    /// # Errors
    /// The packet, where it has packets chained itself, a clone shares this one's data, or 4 GiB
    /// are charged.
    pub fn chain(&mut self, skb: Skb) -> Result<(), Skb> {
        let shell = &mut *self.0;
        let charged = shell.truesize.checked_add(skb.0.truesize);
        let data = shell.data.sole().filter(|_| !skb.0.has_chain);
        let Some((data, truesize)) = data.zip(charged) else { return Err(skb) };
        shell.has_chain = true;
        shell.len += skb.0.len;
        shell.truesize = truesize;
        data.chain.push(skb);
        Ok(())
    }

    /// Detaches the first chained packet.
    pub fn unchain(&mut self) -> Option<Skb> {
        let shell = &mut *self.0;
        let data = shell.data.sole()?;
        let skb = data.chain.pop_oldest()?;
        shell.has_chain = data.chain.count() > 0;
        shell.len -= skb.0.len;
        shell.truesize -= skb.0.truesize;
        Some(skb)
    }

    /// Makes the first `n` bytes linear, moving bytes from fragments and chained packets where they
    /// are not (`pskb_may_pull`). The bytes that stood in a frame behind a full head stay where
    /// they are, as a fragment.
    ///
    /// # Errors
    /// [`NoRoom`] where the packet is shorter than `n`, or no head has room for `n`.
    pub fn pull_to_linear(&mut self, n: usize) -> Result<&[u8], NoRoom> {
        let have = usize::from(self.0.linear);
        if n > have {
            self.pull_tail(n - have)?;
        }
        Ok(self.linear())
    }

    #[cold]
    fn pull_tail(&mut self, more: usize) -> Result<(), NoRoom> {
        let have = usize::from(self.0.linear);
        if more > self.len() - have {
            return Err(NoRoom);
        }
        self.part_front(more)?;
        if more > self.tailroom() || self.head_bytes_mut().is_none() {
            self.rebuild_head(have + more)?;
        }
        self.gather(more).ok_or(NoRoom)?;
        let gone = self.pull_frags(more);
        debug_assert_eq!(gone, more, "the bytes were just read from there");
        Ok(())
    }

    /// Copies the first `more` bytes that follow the linear part to its end, where room and bytes
    /// are known to be; they still stand behind it too.
    fn gather(&mut self, more: usize) -> Option<()> {
        let shell = &mut *self.0;
        let end = shell.range().end;
        let Data { frags, chain, small, .. } = shell.data.sole()?;
        let head = match &mut shell.head {
            Some(frame) => frame.bytes_mut()?,
            None => &mut small[..],
        };
        let mut to = &mut head[end..end + more];
        let chained = chain.iter().flat_map(Skb::own_pieces);
        for piece in frags.iter().map(FrameSlice::bytes).chain(chained) {
            let n = piece.len().min(to.len());
            let (here, rest) = to.split_at_mut(n);
            copy(here, &piece[..n]);
            to = rest;
            if to.is_empty() {
                break;
            }
        }
        shell.linear += more as u16;
        shell.len += more as u32;
        Some(())
    }

    /// Bytes in the head.
    fn head_size(&self) -> usize {
        match (&self.0.head, self.0.data.get()) {
            (Some(frame), _) => frame.len(),
            (None, Some(_)) => HEAD_SIZE,
            (None, None) => 0,
        }
    }

    pub(crate) fn head_bytes_mut(&mut self) -> Option<&mut [u8]> {
        let shell = &mut *self.0;
        head_bytes(&mut shell.head, &mut shell.data)
    }

    /// Forgets all bytes and metadata that belonged to the packet, and keeps the data: what is left
    /// is a shell as if just taken.
    #[inline]
    pub(crate) fn reset(&mut self) {
        let shell = &mut *self.0;
        shell.start = SMALL_START;
        shell.linear = 0;
        shell.len = 0;
        shell.truesize = UNIT_TRUESIZE;
        shell.meta = Meta::default();
    }

    /// The bytes of `range`, piece by piece.
    #[inline]
    pub(crate) fn pieces_in(&self, range: Range<usize>) -> Pieces<'_> {
        assert!(range.start <= range.end && range.end <= self.len(), "within the packet");
        Pieces {
            linear: self.linear(),
            frags: self.frag_slots().iter(),
            chained: self.0.data.get().filter(|_| self.0.has_chain).map(|data| data.chain.iter()),
            skip: range.start,
            left: range.end - range.start,
        }
    }

    /// The slots of the page fragments, all of them full.
    #[inline]
    pub(crate) fn frag_slots(&self) -> &[Option<FrameSlice>] {
        let data = if self.0.has_frags { self.0.data.get() } else { None };
        data.map_or(&[], |data| &data.frags.items[..data.frags.n])
    }

    fn own_pieces(&self) -> impl Iterator<Item = &[u8]> {
        std::iter::once(self.linear()).chain(self.frags().map(FrameSlice::bytes))
    }
}

/// The bytes of a range of a packet, piece by piece. A struct of its own, as adapters for the three
/// places where bytes can stand cost more than summing a short piece.
pub(crate) struct Pieces<'a> {
    linear: &'a [u8],
    frags: std::slice::Iter<'a, Option<FrameSlice>>,
    chained: Option<Packets<'a>>,
    skip: usize,
    left: usize,
}

impl<'a> Iterator for Pieces<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        while self.left > 0 {
            let piece = match std::mem::take(&mut self.linear) {
                [] => match self.frags.next() {
                    Some(frag) => frag.as_ref().map_or(&[][..], FrameSlice::bytes),
                    None => {
                        let skb = self.chained.as_mut()?.next()?;
                        (self.linear, self.frags) = (skb.linear(), skb.frag_slots().iter());
                        continue;
                    }
                },
                linear => linear,
            };
            let Some(rest) = piece.get(self.skip..).filter(|rest| !rest.is_empty()) else {
                self.skip -= piece.len();
                continue;
            };
            self.skip = 0;
            let len = rest.len().min(self.left);
            self.left -= len;
            return Some(&rest[..len]);
        }
        None
    }
}

/// The bytes of a head, for who owns it alone.
#[inline]
fn head_bytes<'a>(
    head: &'a mut Option<FrameSlice>,
    data: &'a mut DataOwner,
) -> Option<&'a mut [u8]> {
    match head {
        Some(frame) => frame.bytes_mut(),
        None => data.sole().map(|data| &mut data.small[..]),
    }
}

const _: () = {
    assert!(size_of::<Option<Skb>>() == 8);
    const fn crosses_threads<T: Send>() {}
    crosses_threads::<Skb>();
    assert!(MAX_FRAGS >= 17);
};

impl fmt::Debug for Skb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let frags = self.frags().count();
        let chained = self.frag_list().count();
        f.debug_struct("Skb")
            .field("len", &self.len())
            .field("linear", &self.linear().len())
            .field("frags", &frags)
            .field("chained", &chained)
            .field("meta", self.meta())
            .finish()
    }
}

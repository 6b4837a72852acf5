//! The skb as offload sees it: how packets merge without a copy of payload.

use std::ops::Range;

use grilse_wire::{How, Meta, Packet, Refused};

use crate::shell::UNIT_TRUESIZE;
use crate::skb::Skb;

impl Packet for Skb {
    #[inline]
    fn len(&self) -> usize {
        Skb::len(self)
    }

    #[inline]
    fn front(&self) -> &[u8] {
        if self.shell().linear == 0 { self.front_behind() } else { self.linear() }
    }

    fn gather(&mut self, n: usize) -> Option<&[u8]> {
        if self.front().len() >= n {
            return Some(self.front());
        }
        self.pull_to_linear(n).ok()
    }

    fn front_mut(&mut self, n: usize) -> Option<&mut [u8]> {
        self.settle_chain();
        self.writable(n)?.get_mut(..n)
    }

    fn headroom(&self) -> usize {
        Skb::headroom(self)
    }

    fn push(&mut self, n: usize) -> Option<&mut [u8]> {
        Skb::push(self, n).ok()
    }

    fn trim(&mut self, len: usize) -> bool {
        Skb::trim(self, len).is_ok()
    }

    fn pieces(&self, range: Range<usize>) -> impl Iterator<Item = &[u8]> {
        self.pieces_in(range)
    }

    #[inline]
    fn meta(&self) -> &Meta {
        Skb::meta(self)
    }

    #[inline]
    fn meta_mut(&mut self) -> &mut Meta {
        Skb::meta_mut(self)
    }

    #[inline]
    fn is_chained(&self) -> bool {
        self.shell().has_chain
    }

    fn own_len(&self) -> usize {
        self.len() - self.frag_list().map(Skb::len).sum::<usize>()
    }

    fn unchain(&mut self) -> Option<Self> {
        self.unshare_data().ok()?;
        Skb::unchain(self)
    }

    /// As `skb_gro_receive` does it: payload in fragments moves, payload in a frame makes the frame
    /// a fragment, and what is left, or finds no slot, is chained.
    fn absorb(
        &mut self,
        mut other: Self,
        skip: usize,
        how: How,
    ) -> Result<Option<Self>, Refused<Self>> {
        let charged = self.truesize().checked_add(other.truesize());
        if other.is_chained() || skip > other.len() || charged.is_none() {
            return Err(Refused(other));
        }
        if self.unshare_data().is_err() || other.unshare_data().is_err() {
            return Err(Refused(other));
        }
        match how {
            How::Whole => {
                if other.pull_to_linear(skip).is_err() {
                    return Err(Refused(other));
                }
            }
            How::Bytes => {
                if self.take_frags(&mut other, skip) {
                    return Ok(Some(other));
                }
            }
        }
        other.pull(skip);
        self.chain(other).map_err(Refused)?;
        Ok(None)
    }
}

impl Skb {
    /// The front of a packet without linear bytes.
    #[cold]
    #[inline(never)]
    fn front_behind(&self) -> &[u8] {
        self.pieces_in(0..self.len()).next().unwrap_or(&[])
    }

    /// Moves the bytes of `other` behind its first `skip` to free fragment slots of the last packet
    /// of this one, and says whether that could be done; if not, nothing changed.
    fn take_frags(&mut self, other: &mut Skb, skip: usize) -> bool {
        let linear = usize::from(other.shell().linear);
        let stolen = linear > skip;
        if stolen && other.shell().head.is_none() {
            return false;
        }
        let shell = self.shell_mut();
        let Some(data) = shell.data.sole() else { return false };
        let last = match data.chain.newest() {
            Some(newest) => newest.shell_mut(),
            None => {
                return take_frags_into(shell, other, skip, stolen);
            }
        };
        let (before, charged) = (last.len, last.truesize);
        let taken = take_frags_into(last, other, skip, stolen);
        let (grown, charge) = (last.len - before, last.truesize - charged);
        shell.len += grown;
        shell.truesize += charge;
        taken
    }

    /// Readies the frag list for reading.
    fn settle_chain(&mut self) {
        let shell = self.shell_mut();
        if shell.has_chain
            && let Some(data) = shell.data.sole()
        {
            data.chain.settle();
        }
    }
}

fn take_frags_into(
    shell: &mut crate::shell::Shell,
    other: &mut Skb,
    skip: usize,
    stolen: bool,
) -> bool {
    let Some(data) = shell.data.sole() else { return false };
    let coming = other.frags().count() + usize::from(stolen);
    if data.frags.n + coming > data.frags.items.len() {
        return false;
    }
    let len = other.len() - skip;
    if stolen {
        shell.truesize += other.shell().head.as_ref().map_or(0, |head| head.frame_size() as u32);
        if let Some(frame) = other.steal_head(skip) {
            let pushed = data.frags.push(frame);
            debug_assert!(pushed.is_ok(), "slots were counted");
        }
    } else {
        other.pull(skip);
        other.shell_mut().head = None;
    }
    let theirs = other.shell_mut();
    if let Some(from) = theirs.data.sole() {
        for frag in from.frags.items[..from.frags.n].iter_mut().filter_map(Option::take) {
            shell.truesize += frag.frame_size() as u32;
            let pushed = data.frags.push(frag);
            debug_assert!(pushed.is_ok(), "slots were counted");
        }
        from.frags.n = 0;
    }
    theirs.has_frags = false;
    shell.has_frags |= data.frags.n > 0;
    shell.len += len as u32;
    debug_assert!(theirs.truesize >= UNIT_TRUESIZE);
    other.reset();
    true
}

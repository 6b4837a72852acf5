//! The two objects that an skb is made of.
//!
//! A [`Shell`] is the metadata block, three cache lines: the first is all that freeing looks at,
//! the second is what offload and devices read, and the third is of the few packets that are chained
//! or owe somebody a call. A [`Data`] is the small head and the shared
//! info (fragments and frag list) that clones share. The shell owns its data also while it lies in
//! a cache, so that one pop takes both.
//!
//! The linear bytes stand in the data's small head, or in a frame of a page pool that was attached
//! as head. Frames are written by devices, so nothing of ours is kept in them.
//!
//! Invariants: `start + linear` lies within the head; `len` counts the linear bytes and those of all
//! fragments and all chained packets; the flags tell whether the data holds fragments or a chain, so
//! that the plain packet never touches the data's info.

use std::ops::Range;
use std::{fmt, mem, ptr};

use grilse_mem::{Counted, Depot, FramePool, FrameSlice, Home, Recycle, Share, Shared, Slot};
use grilse_wire::Meta;

use crate::Skb;
use crate::chain::Chain;

/// Most page fragments that one skb holds beside its head: 17, as in the kernel, or what
/// `GRILSE_MAX_FRAGS` said when this crate was built, 17 to 45.
pub const MAX_FRAGS: usize = max_frags(option_env!("GRILSE_MAX_FRAGS"));

const fn max_frags(set: Option<&str>) -> usize {
    let Some(set) = set else { return 17 };
    let (digits, mut value, mut i) = (set.as_bytes(), 0, 0);
    while i < digits.len() {
        assert!(digits[i].is_ascii_digit(), "GRILSE_MAX_FRAGS is a number");
        value = value * 10 + (digits[i] - b'0') as usize;
        i += 1;
    }
    assert!(17 <= value && value <= 45, "GRILSE_MAX_FRAGS is 17 to 45");
    value
}

/// Bytes in a small head.
pub const HEAD_SIZE: usize = 2048;

/// Least room in front of a fresh packet: for the headers of a tunnel or two (the kernel's
/// `NET_SKB_PAD` is 64).
pub const HEADROOM: usize = 128;

/// Where the packet begins in a fresh small head: at least [`HEADROOM`], and at the start of a cache
/// line.
pub(crate) const SMALL_START: u16 =
    ((SMALL_OFFSET + HEADROOM).next_multiple_of(64) - SMALL_OFFSET) as u16;
const SMALL_OFFSET: usize = CELL_HEAD + 8 + mem::offset_of!(Data, small);

/// The cell puts eight bytes of its own before it, so the first part fills up a cache line.
#[repr(C)]
pub(crate) struct Shell {
    /// Who took this shell, and so where it goes; `None` until it is first taken.
    pub(crate) home: Option<&'static Home<Shell>>,
    pub(crate) data: DataOwner,
    /// The frame that the linear bytes stand in, whole; `None`: they stand in the small head.
    pub(crate) head: Option<FrameSlice>,
    pub(crate) start: u16,
    pub(crate) linear: u16,
    pub(crate) len: u32,
    pub(crate) truesize: u32,
    pub(crate) has_frags: bool,
    pub(crate) has_chain: bool,
    pub(crate) has_destructor: bool,

    pub(crate) meta: Meta,

    /// The packet behind this one in a frag list.
    pub(crate) next: Option<Skb>,
    /// What is owed to somebody outside when the packet is done with.
    pub(crate) destructor: Option<Destructor>,
}

/// Called once, when the packet that it was set on is released: on whichever thread that is, and
/// before anything of the packet is parked.
pub type Destructor = Box<dyn FnOnce() + Send + Sync>;

/// Bytes of a cell before its value.
const CELL_HEAD: usize = 8;
const _: () = assert!(CELL_HEAD + mem::offset_of!(Shell, meta) == 64);
// `start` and `linear` count the bytes of any frame, and of the small head.
const _: () = assert!(FramePool::SIZES.end <= 1 << 16 && HEAD_SIZE < 1 << 16);
const _: () = assert!(CELL_HEAD + size_of::<Shell>() <= 192);

/// Who owns the data of a shell.
#[derive(Debug)]
pub(crate) enum DataOwner {
    /// Nobody here: it was shared, and others outlived this shell's share.
    None,
    /// This shell alone, which may write.
    Sole(Slot<Counted<Data>>),
    /// This shell and its clones, which read.
    Shared(Shared<Data>),
}

/// Small head and shared info.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Data {
    pub(crate) depot: &'static Depot<Counted<Data>>,
    pub(crate) frags: Frags,
    pub(crate) chain: Chain,
    pub(crate) small: [u8; HEAD_SIZE],
    _stride: [u8; STRIDE_PAD],
}

/// Page fragments, packed to the front.
#[derive(Debug)]
pub(crate) struct Frags {
    pub(crate) items: [Option<FrameSlice>; MAX_FRAGS],
    pub(crate) n: usize,
}

const CELL: usize = CELL_HEAD + 8 + 8 + size_of::<Frags>() + size_of::<Chain>() + HEAD_SIZE;
/// Makes the stride of the cells an odd number of cache lines: with an even one, the headers of all
/// packets would share half of the cache's sets or fewer.
const STRIDE_PAD: usize = if CELL.div_ceil(64).is_multiple_of(2) { 64 } else { 0 };
const _: () = assert!((CELL_HEAD + size_of::<Counted<Data>>()).div_ceil(64) % 2 == 1);

/// What an skb is charged for the cells of its shell and data.
pub(crate) const UNIT_TRUESIZE: u32 = (cell_size::<Shell>() + cell_size::<Counted<Data>>()) as u32;

const fn cell_size<T>() -> usize {
    (CELL_HEAD + size_of::<T>()).next_multiple_of(64)
}

impl Shell {
    pub(crate) fn fresh(_depot: &'static Depot<Shell>) -> Self {
        Self {
            home: None,
            data: DataOwner::None,
            head: None,
            start: SMALL_START,
            linear: 0,
            len: 0,
            truesize: UNIT_TRUESIZE,
            has_frags: false,
            has_chain: false,
            has_destructor: false,
            meta: Meta::default(),
            next: None,
            destructor: None,
        }
    }

    /// Whether it has data: else its clones went last.
    #[inline]
    pub(crate) fn has_data(&self) -> bool {
        !matches!(self.data, DataOwner::None)
    }

    /// Whether it holds nothing that [`release`](Self::release) would let go of.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        !self.has_more() && self.head.is_none() && matches!(self.data, DataOwner::Sole(_))
    }

    /// Whether it holds what most packets do not. The flags are read as one: no branch for each.
    #[inline]
    fn has_more(&self) -> bool {
        self.has_frags | self.has_chain | self.has_destructor
    }

    /// Where the linear bytes stand in the head.
    #[inline]
    pub(crate) fn range(&self) -> Range<usize> {
        let start = usize::from(self.start);
        start..start + usize::from(self.linear)
    }

    /// Lets go of all that has a meaning outside: fragments, frame, chained packets, shared data.
    /// What is left may lie in a cache. Frames go where `free` sends them.
    #[inline]
    pub(crate) fn release(&mut self, mut free: impl FnMut(FrameSlice)) {
        // Looked at before it is taken: a store would dirty the line of a packet that has none.
        if self.head.is_some()
            && let Some(frame) = self.head.take()
        {
            free(frame);
        }
        if self.has_more() || !matches!(self.data, DataOwner::Sole(_)) {
            self.release_rest(&mut free);
        }
    }

    #[cold]
    #[inline(never)]
    fn release_rest(&mut self, free: &mut dyn FnMut(FrameSlice)) {
        self.has_destructor = false;
        let destructor = self.destructor.take();
        match self.data.sole() {
            Some(data) => {
                data.frags.clear(&mut *free);
                if destructor.is_some() {
                    data.chain.for_each_mut(|skb| skb.shell_mut().release(&mut *free));
                }
            }
            None => self.data = DataOwner::None,
        }
        // After the fragments: who is told may free what they stood in. Before the chained packets
        // go home: nothing of this one is parked yet.
        if let Some(destructor) = destructor {
            destructor();
        }
        if let Some(data) = self.data.sole() {
            data.chain.clear();
        }
        // At the end, so that a destructor that panics leaves a packet that can be released again.
        self.has_frags = false;
        self.has_chain = false;
    }
}

impl Data {
    pub(crate) fn fresh(depot: &'static Depot<Counted<Data>>) -> Counted<Self> {
        Counted::new(Self {
            depot,
            frags: Frags { items: [const { None }; MAX_FRAGS], n: 0 },
            chain: Chain::default(),
            small: [0; HEAD_SIZE],
            _stride: [0; STRIDE_PAD],
        })
    }

    pub(crate) fn clear(&mut self, free: impl FnMut(FrameSlice)) {
        self.frags.clear(free);
        self.chain.clear();
    }
}

impl DataOwner {
    pub(crate) fn get(&self) -> Option<&Data> {
        match self {
            Self::None => None,
            Self::Sole(data) => Some(data),
            Self::Shared(data) => Some(data),
        }
    }

    /// The data, where no clone shares it (any more).
    #[inline]
    pub(crate) fn sole(&mut self) -> Option<&mut Data> {
        if matches!(self, Self::Shared(_)) {
            self.reclaim();
        }
        match self {
            Self::Sole(data) => Some(data),
            _ => None,
        }
    }

    /// Takes shared data back, where all clones are gone.
    #[cold]
    fn reclaim(&mut self) {
        *self = match mem::replace(self, Self::None) {
            Self::Shared(data) => data.into_slot().map_or_else(Self::Shared, Self::Sole),
            other => other,
        };
    }
}

impl Frags {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &FrameSlice> {
        self.items[..self.n].iter().flatten()
    }

    pub(crate) fn push(&mut self, frag: FrameSlice) -> Result<(), FrameSlice> {
        let Some(place) = self.items.get_mut(self.n) else { return Err(frag) };
        *place = Some(frag);
        self.n += 1;
        Ok(())
    }

    pub(crate) fn is_full(&self) -> bool {
        self.n == MAX_FRAGS
    }

    /// Puts a fragment before the others, of which there are fewer than [`MAX_FRAGS`].
    pub(crate) fn push_front(&mut self, frag: FrameSlice) {
        self.items[..=self.n].rotate_right(1);
        self.items[0] = Some(frag);
        self.n += 1;
    }

    /// Removes the first `count`.
    pub(crate) fn remove_front(&mut self, count: usize) {
        for item in &mut self.items[..count] {
            *item = None;
        }
        self.items[..self.n].rotate_left(count);
        self.n -= count;
    }

    pub(crate) fn pop(&mut self) -> Option<FrameSlice> {
        self.n = self.n.checked_sub(1)?;
        self.items[self.n].take()
    }

    pub(crate) fn clear(&mut self, free: impl FnMut(FrameSlice)) {
        std::iter::from_fn(|| self.pop()).for_each(free);
    }
}

impl Recycle for Shell {
    const BYTES: u32 = UNIT_TRUESIZE;

    /// Up to the end of the metadata: what [`Skb::reset`] writes.
    const WRITTEN: usize = 2;

    /// An skb that goes out of scope without a context: released here, and posted home.
    fn recycle(mut slot: Slot<Self>) {
        slot.release(drop);
        match slot.home {
            Some(home) => home.post(slot),
            // Only a shell that was never taken has no home, and those lie in magazines. It stays
            // out of use, and the ledger shows it.
            None => mem::forget(slot),
        }
    }

    /// Where the shell says so already, its line stays as it is.
    #[inline]
    fn stamp(&mut self, home: &'static Home<Self>) {
        if !self.home.is_some_and(|stamped| ptr::eq(stamped, home)) {
            self.home = Some(home);
        }
    }

    /// Those of the small head, which stays with the shell.
    fn spare_bytes(&mut self) -> &mut [u8] {
        match &mut self.data {
            DataOwner::Sole(data) => &mut data.small,
            _ => &mut [],
        }
    }
}

impl Share for Data {
    /// Data whose last owner was a clone that had no shell to leave it with.
    fn recycle(mut slot: Slot<Counted<Self>>) {
        slot.clear(drop);
        let depot = slot.depot;
        depot.give_one(slot);
    }

    fn spare_bytes(&mut self) -> &mut [u8] {
        &mut self.small
    }
}

impl fmt::Debug for Shell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shell")
            .field("home", &self.home.map(Home::id))
            .field("start", &self.start)
            .field("linear", &self.linear)
            .field("len", &self.len)
            .field("meta", &self.meta)
            .finish_non_exhaustive()
    }
}

//! Frames: blocks of plain bytes of one size, for devices to write and packets to read.
//!
//! No Rust value lives in a frame: counts and links stand in tables beside it, so that a device
//! (an AF_XDP UMEM, a NIC) may write what it likes. A frame belongs to one pool for good and always
//! goes back to it.
//!
//! Invariant: a frame is either never used yet, or on one [`Stack`], or in the return list, or in
//! one chain [`Taken`] off that list, or held by as many [`FrameSlice`]s as its count of owners
//! tells. Bytes are written only through a slice that is the sole owner.
//!
//! Who takes frames, and what becomes of them when, is the matter of `pool.rs` and `returns.rs`,
//! which are built of these in safe code.

#![allow(unsafe_code)]

use std::fmt;
use std::mem;
use std::ops::Range;
use std::ptr::NonNull;

use crate::life::{Life, POISON, check_poison};
use crate::list::{Bound, Push, Word};
use crate::node::{Node, Nodes};
use crate::owners::Owners;
use crate::place::{Place, PlaceByte, Places};
use crate::region::{self, MapError, Pages, Region};
use crate::sleep::Sleep;
use crate::sync::{self, AtomicU32, AtomicU64, Mutex, Ordering, Witnesses, fence, lock};

/// The frames of one pool, and what everybody who holds one shares. Lasts as long as the process.
pub(crate) struct Frames {
    base: NonNull<u8>,
    size: u32,
    number: u32,
    owners: Box<[Owners]>,
    links: Box<[AtomicU32]>,
    places: Box<[PlaceByte]>,
    lives: Box<[Life]>,
    witnesses: Witnesses,
    /// Says "told" unless the owner sleeps for want of frames: who then gives some back wakes it.
    returned: Word,
    sleeper: Mutex<Option<&'static Sleep>>,
    /// Frames from here on have never been used, and their memory never been touched.
    carved: AtomicU32,
    /// For whom the pool is worked, and how many frames wait there: see [`keep`](Self::keep).
    keeper: AtomicU64,
    pages: Pages,
}

// SAFETY: the memory behind `base` is reached only through `FrameSlice`, whose rules (see there)
// keep a writer alone; the rest is atomics and constants.
unsafe impl Send for Frames {}
// SAFETY: as above.
unsafe impl Sync for Frames {}

impl Frames {
    /// Maps `count` frames, whose number is one that a list can hold.
    pub(crate) fn map(
        count: u32,
        size: u32,
        node: Option<Node>,
    ) -> Result<&'static Self, MapError> {
        // Only told apart by it, so that the ordering is of no matter; and shared by models.
        static NUMBERS: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let len = (count as usize).checked_mul(size as usize);
        let len = len.ok_or(MapError::TooLarge { objects: count })?;
        let region = Region::map(len, len, &Nodes::one(node))?;
        let places: Box<[_]> = (0..count).map(|_| PlaceByte::new()).collect();
        places.iter().for_each(|place| place.step(Place::InUse, Place::Depot));
        let returned = Word::new();
        returned.set_told();
        Ok(Box::leak(Box::new(Self {
            base: region.base,
            size,
            number: NUMBERS.fetch_add(1, std::sync::atomic::Ordering::Relaxed),
            owners: (0..count).map(|_| Owners::new(0)).collect(),
            links: (0..count).map(|_| AtomicU32::new(0)).collect(),
            places,
            lives: (0..count).map(|_| Life::first()).collect(),
            witnesses: Witnesses::new(count),
            returned,
            sleeper: Mutex::new(None),
            carved: AtomicU32::new(0),
            keeper: AtomicU64::new(0),
            pages: region.pages,
        })))
    }

    /// The number of the pool among all of the process, wrapping.
    #[inline]
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    pub(crate) fn count(&self) -> u32 {
        self.owners.len() as u32
    }

    pub(crate) fn size(&self) -> u32 {
        self.size
    }

    pub(crate) fn pages(&self) -> Pages {
        self.pages
    }

    /// Frames that were never used.
    pub(crate) fn fresh(&self) -> u32 {
        self.count() - self.carved.load(Ordering::Relaxed)
    }

    /// Frames in the return list.
    pub(crate) fn returned(&self) -> u32 {
        self.returned.weight()
    }

    /// Where the frames are by their bytes; a frame that was never used is said to be in the depot.
    pub(crate) fn places(&self) -> Places {
        let mut places = Places::default();
        self.places.iter().for_each(|place| places.count(place));
        places
    }

    /// Says whose gathering the pool's owner takes frames from: nobody's, with 0.
    pub(crate) fn set_keeper(&self, id: u32) {
        // Relaxed: a hint, and a figure for the ledger. One word, so that a keeper that was
        // replaced cannot leave its figure behind.
        self.keeper.store(u64::from(id) << 32, Ordering::Relaxed);
    }

    /// Whether the pool's owner takes frames from the gathering of this id.
    #[inline]
    pub(crate) fn is_keeper(&self, id: u32) -> bool {
        self.keeper.load(Ordering::Relaxed) >> 32 == u64::from(id)
    }

    /// Notes that `kept` frames wait at the keeper of this id; false where it is not the keeper
    /// any more.
    pub(crate) fn keep(&self, id: u32, kept: usize) -> bool {
        let new = u64::from(id) << 32 | kept as u64;
        let is_mine = |word: u64| (word >> 32 == u64::from(id)).then_some(new);
        // Relaxed: as in `set_keeper`.
        self.keeper.fetch_update(Ordering::Relaxed, Ordering::Relaxed, is_mine).is_ok()
    }

    /// Frames that wait at the keeper, as of the end of its round.
    pub(crate) fn kept(&self) -> u32 {
        self.keeper.load(Ordering::Relaxed) as u32
    }

    /// Pushes a chain of free frames, linked from `first` to `last`.
    #[inline]
    fn give_back(&self, first: u32, last: u32, count: u32) {
        let link = |next| self.link(last).store(next, Ordering::Relaxed);
        let bound = Bound { tell_at: 1, ..Bound::NONE };
        let pushed = self.returned.push(first, count, bound, link);
        debug_assert!(matches!(pushed, Push::Landed { .. }), "the list is never closed");
        if matches!(pushed, Push::Landed { tell: true }) {
            self.wake();
        }
    }

    #[cold]
    #[inline(never)]
    fn wake(&self) {
        // Acquire: pairs with the release in `clear_told`, behind which the sleeper is named.
        fence(Ordering::Acquire);
        if let Some(sleeper) = lock(&self.sleeper).take()
            && sync::step("rouse")
        {
            sleeper.wake_starving();
        }
    }

    /// Whether frames came back. If not, who gives some back wakes `sleeper`, once: who asks has said
    /// before that it starves. For the pool's owner.
    pub(crate) fn watch(&self, sleeper: &'static Sleep) -> bool {
        *lock(&self.sleeper) = Some(sleeper);
        !self.returned.clear_told() && self.returned.weight() > 0
    }

    /// Relaxed stores and loads do: what is written to it is published by the push, and seen by the
    /// take, of the word.
    #[inline]
    fn link(&self, index: u32) -> &AtomicU32 {
        &self.links[index as usize]
    }

    /// Notes that a frame moves, of which the caller has the only share or the index.
    #[inline]
    #[track_caller]
    fn step(&self, index: u32, from: Place, to: Place) {
        // Asked for here, as the check of the bounds would stay.
        if cfg!(feature = "audit") {
            self.places[index as usize].step(from, to);
            self.turn(index, from, to);
        }
    }

    /// Fills the bytes of a frame that was freed; of one that is taken again, checks them.
    #[cold]
    fn turn(&self, index: u32, from: Place, to: Place) {
        let (at, size) = (index as usize * self.size as usize, self.size as usize);
        // SAFETY: the frame is one of the pool's, for which the region has room.
        let at = unsafe { self.base.add(at) };
        // SAFETY: the caller has the only share in the frame, or took its index off a list that
        // nobody else takes it from: so no slice of it lends its bytes.
        let bytes = unsafe { std::slice::from_raw_parts_mut(at.as_ptr(), size) };
        let life = &self.lives[index as usize];
        if from == Place::InUse {
            bytes.fill(POISON);
            life.end();
        } else if to == Place::InUse && !life.is_first() {
            check_poison(bytes, from);
        }
    }

    /// Checked builds end the process where a frame is free of which a slice is used.
    #[inline]
    #[track_caller]
    fn check(&self, index: u32) {
        // As in `step`.
        if cfg!(feature = "audit") {
            self.places[index as usize].check(Place::InUse);
        }
    }
}

impl fmt::Debug for Frames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frames")
            .field("count", &self.count())
            .field("size", &self.size)
            .field("pages", &self.pages)
            .finish()
    }
}

/// Free frames of one pool, the warmest on top, and one thread's alone.
#[derive(Debug)]
pub(crate) struct Stack {
    frames: &'static Frames,
    indices: Vec<u32>,
    /// What its frames are said to be in.
    place: Place,
}

impl Stack {
    pub(crate) fn new(frames: &'static Frames, place: Place) -> Self {
        Self { frames, indices: Vec::new(), place }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.indices.len()
    }

    pub(crate) fn frames(&self) -> &'static Frames {
        self.frames
    }

    /// Takes the warmest frame, whole.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<FrameSlice> {
        let index = self.indices.pop()?;
        self.frames.step(index, self.place, Place::InUse);
        self.frames.owners[index as usize].reset();
        self.frames.witnesses.write(index);
        Some(FrameSlice { frames: self.frames, index, offset: 0, len: self.frames.size as u16 })
    }

    /// Ends a share in a frame, and keeps the frame where it was the last.
    ///
    /// # Errors
    /// The share, where it is in a frame of another pool.
    #[inline]
    pub(crate) fn put(&mut self, slice: FrameSlice) -> Result<(), FrameSlice> {
        if !std::ptr::eq(self.frames, slice.frames) {
            return Err(slice);
        }
        if slice.owners().leave() {
            self.frames.step(slice.index, Place::InUse, self.place);
            self.indices.push(slice.index);
        }
        mem::forget(slice);
        Ok(())
    }

    /// Takes over all frames of another stack of the same pool, where this one is empty.
    pub(crate) fn swap_in(&mut self, other: &mut Self) {
        if !self.indices.is_empty() || !std::ptr::eq(self.frames, other.frames) {
            return;
        }
        mem::swap(&mut self.indices, &mut other.indices);
        if cfg!(feature = "audit") {
            self.indices.iter().for_each(|i| self.frames.step(*i, other.place, self.place));
        }
    }

    /// Takes over up to `most` frames of a chain.
    pub(crate) fn refill(&mut self, chain: &mut Taken, most: u32) {
        if !std::ptr::eq(self.frames, chain.frames) {
            return;
        }
        for _ in 0..most.min(chain.left) {
            let Some(index) = chain.next.checked_sub(1) else { break };
            chain.next = self.frames.link(index).load(Ordering::Relaxed);
            chain.left -= 1;
            self.frames.step(index, Place::Inbox, self.place);
            self.indices.push(index);
        }
    }

    /// Takes a frame that was never used, where there is one.
    pub(crate) fn carve(&mut self) {
        let count = self.frames.count();
        let claim = |n| (n < count).then_some(n + 1);
        // Relaxed: the number alone decides who gets the frame.
        let carved = self.frames.carved.fetch_update(Ordering::Relaxed, Ordering::Relaxed, claim);
        if let Ok(index) = carved {
            self.frames.step(index, Place::Depot, self.place);
            self.indices.push(index);
        }
    }

    /// Gives all frames back to the pool at once, with one compare-and-swap.
    pub(crate) fn post(&mut self) {
        let (Some(&last), Some(&first)) = (self.indices.first(), self.indices.last()) else {
            return;
        };
        for pair in self.indices.windows(2) {
            self.frames.link(pair[1]).store(pair[0] + 1, Ordering::Relaxed);
        }
        if cfg!(feature = "audit") {
            self.indices.iter().for_each(|i| self.frames.step(*i, self.place, Place::Inbox));
        }
        self.frames.give_back(first, last, self.indices.len() as u32);
        self.indices.clear();
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        self.post();
    }
}

/// Frames taken off the return list, still linked as they were: the taker's alone.
#[derive(Debug)]
pub(crate) struct Taken {
    frames: &'static Frames,
    /// The first frame's index plus one.
    next: u32,
    left: u32,
}

impl Taken {
    pub(crate) fn new(frames: &'static Frames) -> Self {
        Self { frames, next: 0, left: 0 }
    }

    pub(crate) fn len(&self) -> u32 {
        self.left
    }

    /// Takes all that was returned, once what was taken before is used up.
    pub(crate) fn take(&mut self) {
        if self.left == 0 {
            (self.next, self.left) = self.frames.returned.take_told();
        }
    }
}

/// Free frames that nobody will take again.
#[derive(Debug)]
pub(crate) struct Retired {
    frames: &'static Frames,
    count: u32,
}

impl Retired {
    /// What was never used, and what `taken` has left.
    pub(crate) fn new(frames: &'static Frames, taken: &mut Taken) -> Self {
        let count = frames.count();
        // Relaxed: as in `carve`, which finds nothing from now on.
        let fresh = count - frames.carved.swap(count, Ordering::Relaxed);
        let mut retired = Self { frames, count: fresh };
        if sync::step("taken") {
            retired.add(taken);
        }
        retired
    }

    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    pub(crate) fn frames(&self) -> &'static Frames {
        self.frames
    }

    /// Retires what was returned.
    pub(crate) fn collect(&mut self) {
        let mut taken = Taken::new(self.frames);
        taken.take();
        self.add(&mut taken);
    }

    fn add(&mut self, taken: &mut Taken) {
        if std::ptr::eq(self.frames, taken.frames) {
            self.count += mem::take(&mut taken.left);
            taken.next = 0;
        }
    }

    /// Gives the pool's pages to the system, where all frames are retired; says whether they are.
    pub(crate) fn discard(&self) -> bool {
        let all = self.count == self.frames.count();
        if all {
            (0..self.count).for_each(|index| self.frames.witnesses.write(index));
            let len = self.count as usize * self.frames.size as usize;
            // SAFETY: the range is one region. Its bytes are reached through slices only, and there
            // are none: each frame was free when it was counted, once, and from where it was taken
            // to be counted nobody can get it again. What its last holders did happened before, as
            // the take of the return list acquires it.
            unsafe { region::discard(self.frames.base, len) };
        }
        all
    }
}

/// A part of a frame, and a share in its ownership. 16 bytes.
pub struct FrameSlice {
    frames: &'static Frames,
    index: u32,
    offset: u16,
    len: u16,
}

const _: () = assert!(size_of::<Option<FrameSlice>>() == 16);

impl FrameSlice {
    /// The number of the frame in its pool.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Where the part begins in its pool's memory, as a device counts: from the first byte of the
    /// first frame.
    pub fn address(&self) -> u64 {
        u64::from(self.index) * u64::from(self.frames.size) + u64::from(self.offset)
    }

    /// Bytes in the part.
    pub fn len(&self) -> usize {
        self.len.into()
    }

    /// Whether the part is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes in the whole frame.
    pub fn frame_size(&self) -> usize {
        self.frames.size as usize
    }

    /// Where the part begins in its frame.
    pub fn offset(&self) -> usize {
        self.offset.into()
    }

    #[inline]
    pub(crate) fn frames(&self) -> &'static Frames {
        self.frames
    }

    /// Whether both are of one pool.
    pub fn same_pool(&self, other: &Self) -> bool {
        std::ptr::eq(self.frames, other.frames)
    }

    /// Makes the part another one of the same frame.
    ///
    /// # Panics
    /// Where `range` leaves the frame.
    #[inline]
    pub fn set_range(&mut self, range: Range<usize>) {
        assert!(range.start <= range.end && range.end <= self.frame_size(), "within the frame");
        self.offset = range.start as u16;
        self.len = (range.end - range.start) as u16;
    }

    /// The bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.frames.check(self.index);
        self.frames.witnesses.read(self.index);
        let at = self.start();
        // SAFETY: `offset + len` lies within the frame (`set_range`), the region is mapped for good
        // and zeroed at first, and no writer exists: one needs to be sole owner, with an exclusive
        // borrow of the one slice that there is, which would be this one.
        unsafe { std::slice::from_raw_parts(at.as_ptr(), self.len.into()) }
    }

    /// The bytes, for the sole owner; `None` where others share the frame.
    #[inline]
    pub fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        if !self.is_sole() {
            return None;
        }
        self.frames.check(self.index);
        self.frames.witnesses.write(self.index);
        let at = self.start();
        // SAFETY: as in `bytes`; this slice is the only owner of the frame and is borrowed
        // exclusively, so no other slice can come to be (`Clone` borrows) while the bytes are lent.
        Some(unsafe { std::slice::from_raw_parts_mut(at.as_ptr(), self.len.into()) })
    }

    /// Whether nobody else holds a part of the frame.
    #[inline]
    pub fn is_sole(&self) -> bool {
        self.owners().is_sole()
    }

    #[inline]
    fn start(&self) -> NonNull<u8> {
        let offset = self.index as usize * self.frame_size() + usize::from(self.offset);
        // SAFETY: `index` is one of the pool's frames and `offset` lies within it, so the sum lies
        // within the region.
        unsafe { self.frames.base.add(offset) }
    }

    #[inline]
    fn owners(&self) -> &Owners {
        &self.frames.owners[self.index as usize]
    }
}

impl Clone for FrameSlice {
    /// Another owner of the same bytes.
    ///
    /// # Panics
    /// Beyond some two thousand million owners.
    fn clone(&self) -> Self {
        self.frames.check(self.index);
        self.owners().join();
        Self { ..*self }
    }
}

impl Drop for FrameSlice {
    #[inline]
    fn drop(&mut self) {
        if !self.owners().leave() {
            return;
        }
        self.frames.step(self.index, Place::InUse, Place::Inbox);
        self.frames.give_back(self.index, self.index, 1);
    }
}

impl fmt::Debug for FrameSlice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FrameSlice({}[{}..+{}])", self.index, self.offset, self.len)
    }
}

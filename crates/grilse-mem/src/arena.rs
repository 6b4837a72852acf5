//! Typed cells that outlive everything, and the one handle that owns a cell.
//!
//! [`Slot`] is the abstraction that confines unsafe code: whoever holds it is the only owner of
//! its cell, as with a `Box`. Magazines, caches and the skb are built of slots in safe code. A slot
//! becomes an index only while it travels through a shared word, which is the matter of `list.rs`
//! alone.
//!
//! Invariant: a carved cell holds a valid `T` at all times, and is owned by exactly one of: one
//! slot, one set of [`Shared`] handles that its count tells, or one list that names its index.

#![allow(unsafe_code)]

use std::fmt;
use std::mem::{ManuallyDrop, offset_of, size_of};
use std::ops::{Deref, DerefMut, Range};
use std::ptr::NonNull;

use crate::home::Home;
use crate::life::{Life, Mark, POISON, check_poison};
use crate::list;
use crate::node::{Node, Nodes};
use crate::owners::Owners;
use crate::place::{Place, PlaceByte, Places};
use crate::region::{MapError, Pages, Region};
use crate::sync::{AtomicU32, Ordering, Witnesses};

/// What becomes of a cell whose owner goes out of scope.
pub trait Recycle: Sized + Send + 'static {
    /// Bytes that an object stands for in bounds on what may be parked.
    const BYTES: u32 = size_of::<Self>() as u32;

    /// Cache lines at the front of an object that whoever takes it writes at once. They are fetched
    /// ahead, to be written, as objects come home from another core.
    const WRITTEN: usize = 0;

    /// Sends the cell where it can be used again. Called by `Drop`, on any thread and also while
    /// unwinding: must not panic and should not block.
    fn recycle(slot: Slot<Self>);

    /// Notes whose the object is from here on. Called as it comes to a cache that it did not leave,
    /// never while it is in use: so what a cache hands out needs no look at whose it is. Must not
    /// panic.
    fn stamp(&mut self, home: &'static Home<Self>) {
        let _ = home;
    }

    /// Bytes that mean nothing while the object is free. Checked builds (feature `audit`) fill them
    /// when it is freed, and end the process where they changed until it is taken.
    fn spare_bytes(&mut self) -> &mut [u8] {
        &mut []
    }
}

/// The only owner of one cell of an [`Arena`].
#[repr(transparent)]
pub struct Slot<T: Recycle>(Mark<Cell<T>>);

/// Stands on cache lines of its own. The first eight bytes are the arena's, the rest of the line is
/// the value's front.
#[repr(C, align(64))]
struct Cell<T> {
    /// The object behind this one in a list, by index plus one. Written by who pushes, read by who
    /// takes; never while a slot owns the cell.
    link: AtomicU32,
    place: PlaceByte,
    life: Life,
    value: T,
    witness: Witnesses,
}

/// A fixed number of cells of one type, a share for each node, carved one after the other as they
/// are first needed.
pub struct Arena<T: Recycle> {
    base: NonNull<Cell<T>>,
    capacity: u32,
    /// Cells in each share, but the last ones, which have what is left.
    share: u32,
    /// For each share, the cells that are carved.
    carved: Box<[AtomicU32]>,
    pages: Pages,
}

/// Shares begin at a multiple of so many cells, so that neighbours may be put together by as many
/// (`slab/slub.rs`) without one meeting another node's.
pub(crate) const SHARE_STEP: u32 = 16;

// SAFETY: the arena hands out each cell once (`carve`), and again only to a list that was given it
// (`claim`), so sharing the arena shares no `T`; cells move between threads, which `T: Send` (a
// supertrait of `Recycle`) allows.
unsafe impl<T: Recycle> Sync for Arena<T> {}
// SAFETY: as above; nothing in an arena belongs to the thread that made it.
unsafe impl<T: Recycle> Send for Arena<T> {}
// SAFETY: a slot is the only owner of its `T`, so moving it moves the `T`.
unsafe impl<T: Recycle> Send for Slot<T> {}
// SAFETY: `&Slot<T>` gives `&T` and nothing else.
unsafe impl<T: Recycle + Sync> Sync for Slot<T> {}

impl<T: Recycle> Arena<T> {
    /// Reserves room for `capacity` cells, on `node` where one is given.
    ///
    /// # Errors
    /// As [`MapError`] tells.
    pub fn reserve(capacity: u32, node: Option<Node>) -> Result<&'static Self, MapError> {
        Self::reserve_shares(capacity, &Nodes::one(node))
    }

    /// The same, in one share for each of `nodes`.
    pub(crate) fn reserve_shares(capacity: u32, nodes: &Nodes) -> Result<&'static Self, MapError> {
        const { assert!(size_of::<T>() > 0 && align_of::<T>() <= 4096) };
        let len = size_of::<Cell<T>>().checked_mul(capacity as usize);
        let Some(len) = len.filter(|_| capacity <= list::MOST) else {
            return Err(MapError::TooLarge { objects: capacity });
        };
        let share = match nodes.count() {
            1 => capacity,
            many => capacity.div_ceil(many as u32).next_multiple_of(SHARE_STEP),
        };
        let region = Region::map(len, share as usize * size_of::<Cell<T>>(), nodes)?;
        Ok(Box::leak(Box::new(Self {
            base: region.base.cast(),
            capacity,
            share: share.max(1),
            carved: (0..nodes.count()).map(|_| AtomicU32::new(0)).collect(),
            pages: region.pages,
        })))
    }

    /// Makes the next cell of the first share of `value`; gives it back when all are carved.
    ///
    /// # Errors
    /// The value, when the share is full.
    pub fn carve(&self, value: T) -> Result<Slot<T>, T> {
        self.carve_of(0, value)
    }

    /// The same for the share of the node at this position.
    pub(crate) fn carve_of(&self, position: usize, value: T) -> Result<Slot<T>, T> {
        let cells = self.share_of(position);
        let claim = |n| (n < cells.end - cells.start).then_some(n + 1);
        let carved = &self.carved[position];
        // Relaxed: the number alone decides who gets the cell, and the cell is still nobody's.
        let Ok(number) = carved.fetch_update(Ordering::Relaxed, Ordering::Relaxed, claim) else {
            return Err(value);
        };
        let index = cells.start + number;
        // SAFETY: `number` is below the share's length, by `claim`, and the share within the capacity.
        let at = unsafe { self.cell(index) };
        let part = |offset| at.as_ptr().wrapping_byte_add(offset);
        let link = part(offset_of!(Cell<T>, link)).cast::<AtomicU32>();
        let witness = part(offset_of!(Cell<T>, witness)).cast::<Witnesses>();
        // SAFETY: `index` is below the capacity and was claimed once, so the cell is in bounds,
        // aligned (the region is page-aligned, the stride is the type's size), and not yet owned.
        unsafe { part(offset_of!(Cell<T>, value)).cast::<T>().write(value) };
        // SAFETY: as above.
        unsafe { link.write(AtomicU32::new(0)) };
        // SAFETY: as above.
        unsafe { witness.write(Witnesses::new(1)) };
        // Place and life stay as the region came, zeroed, which says in use, for the first time:
        // `places` may be reading the one.
        Ok(Slot(Mark::new(at, &Life::first())))
    }

    /// How many cells there can be.
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// How many cells have been carved.
    pub fn carved(&self) -> u32 {
        (0..self.carved.len()).map(|position| self.carved_of(position)).sum()
    }

    /// The indices of the share at this position.
    pub(crate) fn share_of(&self, position: usize) -> Range<u32> {
        let bound = |share: usize| (self.share.saturating_mul(share as u32)).min(self.capacity);
        bound(position)..bound(position + 1)
    }

    /// How many cells of a share have been carved, from its first on.
    pub(crate) fn carved_of(&self, position: usize) -> u32 {
        self.carved[position].load(Ordering::Relaxed)
    }

    /// The position of the node that a cell is of, by where it stands; the first one's for a cell
    /// of another arena.
    pub(crate) fn position_of(&self, slot: &Slot<T>) -> usize {
        self.index(slot).map_or(0, |index| (index / self.share) as usize)
    }

    /// Which pages the cells stand on.
    pub fn pages(&self) -> Pages {
        self.pages
    }

    /// The number of a cell; `None` for one of another arena.
    pub fn index(&self, slot: &Slot<T>) -> Option<u32> {
        let offset = (slot.0.at().as_ptr() as usize).checked_sub(self.base.as_ptr() as usize)?;
        let index = offset / size_of::<Cell<T>>();
        (index < self.capacity as usize).then_some(index as u32)
    }

    /// Counts the carved cells of a share by the place that their last owner left them in, in builds
    /// that keep it (feature `audit`): an independent check of the ledger, exact while nothing moves.
    pub(crate) fn places_of(&self, position: usize) -> Places {
        let mut places = Places::default();
        let first = self.share_of(position).start;
        for index in first..first + self.carved_of(position) {
            // SAFETY: a carved cell is within the capacity.
            let cell = unsafe { self.cell(index) };
            // SAFETY: the cell is within the region; the reference is to the place alone, an atomic
            // that is valid from the start (zeroed) and only ever changed as one, and no owner's
            // `&mut` covers it (`deref_mut` borrows the value alone).
            let place = unsafe { &(*cell.as_ptr()).place };
            places.count(place);
        }
        places
    }

    /// The link of a cell that its pusher has given up and not yet landed, or that a list holds.
    ///
    /// # Safety
    /// The slot of `index` was given up ([`Slot::give_up`]), and has not been claimed since.
    #[inline]
    pub(crate) unsafe fn link(&self, index: u32) -> &AtomicU32 {
        // SAFETY: a slot of it was, so the cell is within the capacity.
        let cell = unsafe { self.cell(index) };
        // SAFETY: the cell is carved, as a slot of it was given up; the reference is to the link
        // alone, an atomic, and not to the value.
        unsafe { &(*cell.as_ptr()).link }
    }

    /// The slot of an index that was given up.
    ///
    /// # Safety
    /// The slot of `index` was given up ([`Slot::give_up`]), and has not been claimed since.
    #[inline]
    pub(crate) unsafe fn claim(&self, index: u32) -> Slot<T> {
        // SAFETY: a slot of it was given up, so the cell is within the capacity.
        let at = unsafe { self.cell(index) };
        // SAFETY: the cell is carved, as a slot of it was given up; the reference is to the life
        // alone, an atomic, and not to the value.
        let life = unsafe { &(*at.as_ptr()).life };
        let slot = Slot(Mark::new(at, life));
        slot.cell().witness.write(0);
        slot
    }

    /// # Safety
    /// `index` is below the capacity.
    unsafe fn cell(&self, index: u32) -> NonNull<Cell<T>> {
        // SAFETY: the region has room for as many cells as the capacity says.
        unsafe { self.base.add(index as usize) }
    }
}

impl<T: Recycle> Slot<T> {
    /// Lets go of the cell without recycling it: its index is its owner from here on.
    #[inline]
    pub(crate) fn give_up(self) {
        self.cell().witness.write(0);
        std::mem::forget(self);
    }

    /// Notes that the object moves. Checked builds abort where it is not in `from`: it is in two
    /// places, or some code lost track of it.
    #[inline]
    #[track_caller]
    pub(crate) fn step(&mut self, from: Place, to: Place) {
        let cell = self.cell_of_any_life();
        // The place first: where both are wrong, it tells more.
        cell.place.step(from, to);
        self.0.check(&cell.life, from);
        if cfg!(feature = "audit") && from != to {
            self.turn(from, to);
        }
    }

    /// The same, within a chain of calls.
    #[inline]
    #[track_caller]
    pub(crate) fn stepped(mut self, from: Place, to: Place) -> Self {
        self.step(from, to);
        self
    }

    /// Ends a life of the cell, or begins to use the object in it.
    #[cold]
    fn turn(&mut self, from: Place, to: Place) {
        if from == Place::InUse {
            self.spare_bytes().fill(POISON);
            self.cell().life.end();
            self.0 = Mark::new(self.0.at(), &self.cell_of_any_life().life);
        } else if to == Place::InUse {
            check_poison(self.spare_bytes(), from);
        }
    }

    /// Asks the processor to fetch the front of the object, where it can be asked.
    #[inline]
    pub(crate) fn prefetch(&self) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a prefetch reads and writes nothing that a program can see, at any address.
        unsafe {
            std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(
                self.0.at().as_ptr().cast(),
            );
        }
    }

    /// Asks the processor to take the lines that a taker writes away from other cores. Many at a
    /// time then travel together, where stores would wait for one after the other, and a load before
    /// a store would cost a second way.
    #[inline]
    pub(crate) fn fetch_to_write(&self) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        for line in 0..T::WRITTEN {
            let at = self.0.at().as_ptr().wrapping_byte_add(line * 64);
            // SAFETY: a prefetch reads and writes nothing that a program can see, at any address;
            // processors that do not know this one take it for a no-op.
            unsafe {
                std::arch::asm!("prefetchw [{}]", in(reg) at, options(nostack, preserves_flags));
            };
        }
    }

    #[inline]
    #[track_caller]
    fn cell(&self) -> &Cell<T> {
        let cell = self.cell_of_any_life();
        self.0.check(&cell.life, cell.place.place());
        cell
    }

    #[inline]
    fn cell_of_any_life(&self) -> &Cell<T> {
        // SAFETY: a slot's cell is carved, valid, and owned by this slot alone.
        unsafe { self.0.at().as_ref() }
    }
}

impl<T: Recycle> Deref for Slot<T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        &self.cell().value
    }
}

impl<T: Recycle> DerefMut for Slot<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        if cfg!(feature = "audit") {
            self.cell();
        }
        // SAFETY: as in `cell`, and the borrow is exclusive. It covers the value alone: others may
        // be reading the place meanwhile (`Arena::places`).
        unsafe { &mut (*self.0.at().as_ptr()).value }
    }
}

impl<T: Recycle> Drop for Slot<T> {
    #[inline]
    fn drop(&mut self) {
        T::recycle(Slot(self.0));
    }
}

impl<T: Recycle + fmt::Debug> fmt::Debug for Slot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: Recycle> fmt::Debug for Arena<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arena")
            .field("capacity", &self.capacity)
            .field("carved", &self.carved())
            .field("pages", &self.pages)
            .finish()
    }
}

/// A value with a count of its owners, which only this module touches.
#[derive(Debug)]
#[repr(C)]
pub struct Counted<T> {
    owners: Owners,
    value: T,
}

/// A value that may have several owners: [`Recycle`] for what stands in a [`Counted`].
pub trait Share: Sized + Send + Sync + 'static {
    /// As [`Recycle::recycle`], when the last owner let go.
    fn recycle(slot: Slot<Counted<Self>>);

    /// As [`Recycle::spare_bytes`].
    fn spare_bytes(&mut self) -> &mut [u8] {
        &mut []
    }
}

impl<T: Share> Recycle for Counted<T> {
    fn recycle(slot: Slot<Self>) {
        T::recycle(slot);
    }

    fn spare_bytes(&mut self) -> &mut [u8] {
        self.value.spare_bytes()
    }
}

impl<T> Counted<T> {
    /// Wraps `value`; it has one owner, the slot.
    pub fn new(value: T) -> Self {
        Self { owners: Owners::new(1), value }
    }
}

impl<T> Deref for Counted<T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Counted<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

/// One of several owners of a cell, which all may read: what `Arc` is to `Box`.
pub struct Shared<T: Share>(Mark<Cell<Counted<T>>>);

// SAFETY: as for `Arc`: handles on several threads give `&T`, and the last one gives the `T`.
unsafe impl<T: Share> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Share> Sync for Shared<T> {}

impl<T: Share> Shared<T> {
    /// Opens a cell to several owners, of which this is the first.
    pub fn new(slot: Slot<Counted<T>>) -> Self {
        slot.cell().witness.write(0);
        debug_assert_eq!(slot.owners.count(), 1);
        Self(ManuallyDrop::new(slot).0)
    }

    /// Takes the cell back, where this is the last owner.
    ///
    /// # Errors
    /// The handle, where others are left.
    pub fn into_slot(self) -> Result<Slot<Counted<T>>, Self> {
        // The reads of those who dropped theirs are over, and nobody is left to clone this one.
        if !self.cell().value.owners.is_sole() {
            return Err(self);
        }
        let slot = Slot(ManuallyDrop::new(self).0);
        slot.cell().witness.write(0);
        Ok(slot)
    }

    /// How many owners there are, at some moment during the call.
    pub fn owners(&self) -> u32 {
        self.cell().value.owners.count()
    }

    #[inline]
    #[track_caller]
    fn cell(&self) -> &Cell<Counted<T>> {
        // SAFETY: the count is at least one while this handle exists, so the cell is valid, and
        // nobody has it exclusively.
        let cell = unsafe { self.0.at().as_ref() };
        self.0.check(&cell.life, cell.place.place());
        cell
    }
}

impl<T: Share> Clone for Shared<T> {
    /// Another owner.
    ///
    /// # Panics
    /// Beyond some two thousand million owners.
    fn clone(&self) -> Self {
        self.cell().value.owners.join();
        Self(self.0)
    }
}

impl<T: Share> Deref for Shared<T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        let cell = self.cell();
        cell.witness.read(0);
        &cell.value.value
    }
}

impl<T: Share> Drop for Shared<T> {
    fn drop(&mut self) {
        let owners = &self.cell().value.owners;
        if owners.leave() {
            owners.reset();
            self.cell().witness.write(0);
            drop(Slot(self.0));
        }
    }
}

impl<T: Share + fmt::Debug> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

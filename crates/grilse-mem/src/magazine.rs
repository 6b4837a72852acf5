//! Magazines: arrays of free objects that move whole.
//!
//! An array, not a list: whoever takes from it knows the addresses ahead and can prefetch, and
//! whoever moves it touches no object at all.

use crate::arena::{Recycle, Slot};
use crate::depot::Depot;

/// Up to [`CAPACITY`](Magazine::CAPACITY) free objects.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Magazine<T: Recycle> {
    depot: &'static Depot<T>,
    len: usize,
    items: [Option<Slot<T>>; CAPACITY],
}

/// With the two words of the header this makes 31 * 16 bytes: an odd number of half lines, so that
/// equal positions of neighbouring magazines do not compete for one cache set.
const CAPACITY: usize = 60;

impl<T: Recycle> Magazine<T> {
    /// Most objects a magazine holds.
    pub const CAPACITY: usize = CAPACITY;

    pub(crate) fn empty(depot: &'static Depot<T>) -> Self {
        Self { depot, len: 0, items: [const { None }; CAPACITY] }
    }

    /// How many objects it holds.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether it holds [`CAPACITY`](Self::CAPACITY).
    pub fn is_full(&self) -> bool {
        self.len == CAPACITY
    }

    /// Takes the object put last.
    #[inline]
    pub fn pop(&mut self) -> Option<Slot<T>> {
        let top = self.len.checked_sub(1)?;
        self.len = top;
        self.items[top].take()
    }

    /// Puts an object.
    ///
    /// # Errors
    /// The object, where the magazine is full.
    #[inline]
    pub fn push(&mut self, slot: Slot<T>) -> Result<(), Slot<T>> {
        let Some(place) = self.items.get_mut(self.len) else { return Err(slot) };
        *place = Some(slot);
        self.len += 1;
        Ok(())
    }
}

impl<T: Recycle> Recycle for Magazine<T> {
    /// A magazine that nobody owns any more goes to its depot with all that it holds.
    fn recycle(slot: Slot<Self>) {
        slot.depot.give(slot);
    }
}

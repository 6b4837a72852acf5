//! Magazines: arrays of free objects that move whole.
//!
//! An array, not a list: whoever takes from it knows the addresses ahead and can prefetch, and
//! whoever moves it touches no object at all.

use std::mem;

use crate::arena::{Recycle, Slot};
use crate::depot::Depot;
use crate::home::Home;
use crate::place::Place;

/// Up to [`CAPACITY`](Magazine::CAPACITY) free objects.
#[derive(Debug)]
pub struct Magazine<T: Recycle> {
    depot: &'static Depot<T>,
    /// Who filled and sent it, and gets it back when it is empty.
    pub(crate) sender: Option<&'static Home<T>>,
    /// When it was sent, in nanoseconds of the sender's clock.
    pub(crate) sent_ns: u64,
    len: usize,
    items: [Option<Slot<T>>; CAPACITY],
}

/// With its header a magazine takes eight and a half lines and stands on nine, an odd number, so
/// that equal positions of neighbouring magazines do not compete for one cache set.
const CAPACITY: usize = 60;

impl<T: Recycle> Magazine<T> {
    /// Most objects a magazine holds.
    pub const CAPACITY: usize = CAPACITY;

    pub(crate) fn empty(depot: &'static Depot<T>) -> Self {
        Self { depot, sender: None, sent_ns: 0, len: 0, items: [const { None }; CAPACITY] }
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

    /// Moves as many of the objects put last as `out` has places, all of them empty, to `out`, as
    /// what `each` makes of them, and returns how many those were.
    #[inline]
    pub(crate) fn pop_into<U>(
        &mut self,
        out: &mut [Option<U>],
        mut each: impl FnMut(Slot<T>) -> U,
    ) -> usize {
        let n = out.len().min(self.len);
        let left = self.len - n;
        let bulk = Bulk { end: self.len, magazine: self };
        for (place, item) in out.iter_mut().zip(&mut bulk.magazine.items[left..bulk.end]) {
            fill(place, item.take().map(&mut each));
        }
        bulk.complete(left);
        n
    }

    /// Takes objects from the back of `from`, all of whose places are filled, as many as there is
    /// room for, and returns how many those were. `each` finds the object in what lies there.
    #[inline]
    pub(crate) fn push_from<U>(
        &mut self,
        from: &mut [Option<U>],
        mut each: impl FnMut(U) -> Slot<T>,
    ) -> usize {
        let n = from.len().min(CAPACITY - self.len);
        let (at, before) = (from.len() - n, self.len);
        let bulk = Bulk { end: before + n, magazine: self };
        let places = &mut bulk.magazine.items[before..bulk.end];
        for (place, item) in places.iter_mut().zip(&mut from[at..]) {
            fill(place, item.take().map(&mut each));
        }
        let end = bulk.end;
        bulk.complete(end);
        n
    }

    /// Calls `each` with every object in it.
    pub(crate) fn for_each_mut(&mut self, mut each: impl FnMut(&mut T)) {
        self.items[..self.len].iter_mut().flatten().for_each(|slot| each(slot));
    }

    /// How many of its objects are such.
    pub(crate) fn count(&self, is_such: impl Fn(&Slot<T>) -> bool) -> usize {
        self.items[..self.len].iter().flatten().filter(|slot| is_such(slot)).count()
    }

    /// Passes each object through `keep`, and holds on to those that come back, in their order.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(Slot<T>) -> Option<Slot<T>>) {
        let mut kept = 0;
        for at in 0..self.len {
            if let Some(slot) = self.items[at].take().and_then(&mut keep) {
                self.items[kept] = Some(slot);
                kept += 1;
            }
        }
        self.len = kept;
    }

    /// Fetches what a taker writes of each object.
    pub(crate) fn fetch_objects(&self) {
        if T::WRITTEN > 0 {
            self.items[..self.len].iter().flatten().for_each(Slot::fetch_to_write);
        }
    }

    /// Takes one after the other, the one put last first.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Slot<T>> {
        std::iter::from_fn(|| self.pop())
    }

    /// Notes that all of its objects move; nothing in builds that keep no places.
    #[inline]
    pub(crate) fn step_all(&mut self, from: Place, to: Place) {
        if cfg!(feature = "audit") {
            self.items[..self.len].iter_mut().flatten().for_each(|slot| slot.step(from, to));
        }
    }
}

/// A bulk under way. If the caller's closure panics, what is in the magazine up to `end` closes up, so
/// that nothing is left behind its length.
struct Bulk<'a, T: Recycle> {
    magazine: &'a mut Magazine<T>,
    end: usize,
}

impl<T: Recycle> Bulk<'_, T> {
    /// All went well, and this is how many objects are left.
    #[inline]
    fn complete(self, len: usize) {
        self.magazine.len = len;
        mem::forget(self);
    }
}

impl<T: Recycle> Drop for Bulk<'_, T> {
    #[cold]
    fn drop(&mut self) {
        self.magazine.len = self.end;
        self.magazine.retain(Some);
    }
}

/// Fills a place that is known to be empty: not to look for something to drop is what lets a loop
/// move several objects with one instruction.
#[inline]
fn fill<U>(place: &mut Option<U>, item: Option<U>) {
    let before = mem::replace(place, item);
    debug_assert!(before.is_none(), "an empty place");
    mem::forget(before);
}

impl<T: Recycle> Recycle for Magazine<T> {
    /// All of it: it is filled from the front, and emptied from the back.
    const WRITTEN: usize = size_of::<Self>().div_ceil(64);

    /// A magazine that nobody owns any more goes to its depot with all that it holds.
    fn recycle(slot: Slot<Self>) {
        slot.depot.give(slot);
    }
}

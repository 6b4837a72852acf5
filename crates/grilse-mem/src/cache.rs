//! A worker's cache of one class: two magazines, swapped whole with the depot.
//!
//! The pair keeps a worker that alternates around a magazine's edge from going to the depot each
//! time, and it never throws out what it touched last: the warm magazine stays.

use std::mem;

use crate::arena::{Recycle, Slot};
use crate::depot::Depot;
use crate::magazine::Magazine;

/// Free objects of one thread. Not shared; whoever owns it is the only one to touch it.
#[derive(Debug)]
pub struct Cache<T: Recycle> {
    depot: &'static Depot<T>,
    /// Taken from and put to.
    loaded: Slot<Magazine<T>>,
    /// Full, empty, or what `loaded` was before.
    spare: Slot<Magazine<T>>,
}

impl<T: Recycle> Cache<T> {
    /// An empty cache; `None` when the depot has no magazine left for it.
    pub fn new(depot: &'static Depot<T>) -> Option<Self> {
        Some(Self { depot, loaded: depot.take_empty()?, spare: depot.take_empty()? })
    }

    /// Takes an object; `None` when the class is exhausted.
    #[inline]
    pub fn take(&mut self) -> Option<Slot<T>> {
        match self.loaded.pop() {
            Some(slot) => Some(slot),
            None => self.take_slow(),
        }
    }

    /// Puts an object that this thread frees.
    #[inline]
    pub fn put(&mut self, slot: Slot<T>) {
        if let Err(slot) = self.loaded.push(slot) {
            self.put_slow(slot);
        }
    }

    #[cold]
    #[inline(never)]
    fn take_slow(&mut self) -> Option<Slot<T>> {
        mem::swap(&mut self.loaded, &mut self.spare);
        if self.loaded.is_empty() {
            let full = self.depot.take()?;
            self.depot.give(mem::replace(&mut self.loaded, full));
        }
        self.loaded.pop()
    }

    #[cold]
    #[inline(never)]
    fn put_slow(&mut self, slot: Slot<T>) {
        mem::swap(&mut self.loaded, &mut self.spare);
        if self.loaded.is_full() {
            let Some(empty) = self.depot.take_empty() else {
                // Every magazine is under way: the object alone goes.
                return self.depot.give_one(slot);
            };
            self.depot.give(mem::replace(&mut self.loaded, empty));
        }
        let pushed = self.loaded.push(slot);
        debug_assert!(pushed.is_ok(), "the loaded magazine has room");
    }

    /// How many objects it holds.
    pub fn len(&self) -> usize {
        self.loaded.len() + self.spare.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

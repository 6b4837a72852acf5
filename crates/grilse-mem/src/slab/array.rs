//! SLAB, the oldest of the kernel's: an array for each CPU, and a list for each node under a lock.
//!
//! The node's list is the depot's stock of single objects. Not built are SLAB's alien caches and its
//! bookkeeping of which page an object is of: nothing here gives pages back.

use std::mem;

use crate::arena::{Recycle, Slot};
use crate::depot::Depot;

/// A thread's array.
#[derive(Debug)]
pub(crate) struct Array<T: Recycle> {
    pub(super) depot: &'static Depot<T>,
    items: Vec<Slot<T>>,
    limit: usize,
}

impl<T: Recycle> Array<T> {
    pub(crate) fn new(depot: &'static Depot<T>) -> Self {
        // The classes of `enable_cpucache` in mm/slab.c, up to Linux 6.7.
        let limit = match mem::size_of::<T>() {
            ..=256 => 120,
            257..=1024 => 54,
            _ => 24,
        };
        Self { depot, items: Vec::with_capacity(limit), limit }
    }

    #[inline]
    pub(crate) fn take(&mut self) -> Option<Slot<T>> {
        if self.items.is_empty() {
            self.depot.take_loose(self.batch(), &mut self.items);
        }
        self.items.pop()
    }

    #[inline]
    pub(crate) fn give(&mut self, slot: Slot<T>) {
        if self.items.len() == self.limit {
            // The oldest go, as in `cache_flusharray`.
            self.depot.give_loose(self.items.drain(..self.batch()));
        }
        self.items.push(slot);
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    pub(crate) fn flush(&mut self) {
        self.depot.give_loose(self.items.drain(..));
    }

    fn batch(&self) -> usize {
        self.limit.div_ceil(2)
    }
}

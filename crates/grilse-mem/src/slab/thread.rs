//! A list of its own for each thread, never shared: what a thread frees only that thread takes.
//!
//! It has no bound, as a thread's heap has none. A thread that only frees collects whatever others
//! allocate; they find the rest in the depot.

use crate::arena::{Recycle, Slot};
use crate::depot::Depot;
use crate::list::Chain;
use crate::place::Place;

/// A thread's list, which runs through the objects.
#[derive(Debug)]
pub(crate) struct Thread<T: Recycle> {
    pub(super) depot: &'static Depot<T>,
    free: Chain<T>,
    len: usize,
    fresh: Vec<Slot<T>>,
}

/// Objects that it takes from the depot at once.
const BATCH: usize = 16;

impl<T: Recycle> Thread<T> {
    pub(crate) fn new(depot: &'static Depot<T>) -> Self {
        let free = Chain::new(depot.objects(), Place::Depot);
        Self { depot, free, len: 0, fresh: Vec::with_capacity(BATCH) }
    }

    #[inline]
    pub(crate) fn take(&mut self) -> Option<Slot<T>> {
        if let Some(mut slot) = self.free.next() {
            slot.step(Place::InUse, Place::Depot);
            self.len -= 1;
            return Some(slot);
        }
        if self.fresh.is_empty() {
            self.depot.take_loose(BATCH, &mut self.fresh);
        }
        self.fresh.pop()
    }

    #[inline]
    pub(crate) fn give(&mut self, slot: Slot<T>) {
        match self.free.push(slot, Place::Depot) {
            Ok(_) => self.len += 1,
            Err(slot) => self.depot.give_loose([slot]),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len + self.fresh.len()
    }

    pub(crate) fn flush(&mut self) {
        self.len = 0;
        let free = self.free.by_ref().map(|slot| slot.stepped(Place::InUse, Place::Depot));
        self.depot.give_loose(free.chain(self.fresh.drain(..)));
    }
}

//! Sheaves and barn: two magazines for each thread, which the depot swaps whole.
//!
//! Behind the magazine front there is none of this: that front is a sheaf itself.

use std::mem;

use crate::arena::{Recycle, Slot};
use crate::depot::Depot;
use crate::magazine::Magazine;
use crate::place::Place;

/// A thread's two magazines, where it could get them.
#[derive(Debug)]
pub(crate) struct Sheaf<T: Recycle> {
    pub(super) depot: &'static Depot<T>,
    loaded: Option<Slot<Magazine<T>>>,
    spare: Option<Slot<Magazine<T>>>,
}

impl<T: Recycle> Sheaf<T> {
    pub(crate) fn new(depot: &'static Depot<T>) -> Self {
        Self { depot, loaded: None, spare: None }
    }

    #[inline]
    pub(crate) fn take(&mut self) -> Option<Slot<T>> {
        if let Some(slot) = self.loaded.as_mut().and_then(|loaded| loaded.pop()) {
            return Some(slot);
        }
        mem::swap(&mut self.loaded, &mut self.spare);
        if self.loaded.as_ref().is_none_or(|loaded| loaded.is_empty()) {
            let full = self.depot.take_for(Place::Depot)?;
            if let Some(empty) = self.loaded.replace(full) {
                self.depot.give_from(empty, Place::Depot);
            }
        }
        self.loaded.as_mut()?.pop()
    }

    #[inline]
    pub(crate) fn give(&mut self, slot: Slot<T>) {
        if let Err(slot) = push(&mut self.loaded, slot) {
            self.give_slow(slot);
        }
    }

    pub(crate) fn len(&self) -> usize {
        [&self.loaded, &self.spare].into_iter().flatten().map(|magazine| magazine.len()).sum()
    }

    pub(crate) fn flush(&mut self) {
        for magazine in [self.loaded.take(), self.spare.take()].into_iter().flatten() {
            self.depot.give_from(magazine, Place::Depot);
        }
    }

    #[cold]
    #[inline(never)]
    fn give_slow(&mut self, slot: Slot<T>) {
        mem::swap(&mut self.loaded, &mut self.spare);
        if self.loaded.as_ref().is_none_or(|loaded| loaded.is_full())
            && let Some(empty) = self.depot.take_empty()
            && let Some(full) = self.loaded.replace(empty)
        {
            self.depot.give_from(full, Place::Depot);
        }
        if let Err(slot) = push(&mut self.loaded, slot) {
            // Every magazine is under way: the object alone goes.
            self.depot.give_loose([slot]);
        }
    }
}

#[inline]
fn push<T: Recycle>(
    magazine: &mut Option<Slot<Magazine<T>>>,
    slot: Slot<T>,
) -> Result<(), Slot<T>> {
    match magazine {
        Some(magazine) => magazine.push(slot),
        None => Err(slot),
    }
}

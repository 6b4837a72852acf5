//! The kernel's front (`napi_alloc_cache`): one array, last in, first out.
//!
//! A full array gives up objects at one end, the kernel at the warm one. It refills in bulk, or, for
//! a task as before November 2025, not at all. With a limit of 0 it holds nothing, ever: every take
//! and put goes to the slab.

use std::{iter, mem};

use crate::arena::{Recycle, Slot};
use crate::place::Place;
use crate::policy::{Demand, FlushEnd, Policy, TaskRefill};
use crate::slab::Slab;

/// A thread's array, and how it is filled and emptied.
#[derive(Debug)]
pub(crate) struct Stack<T: Recycle> {
    items: Vec<Slot<T>>,
    /// Objects at which it gives some up.
    limit: usize,
    bulk: usize,
    flush: usize,
    flush_end: FlushEnd,
    prefetch: bool,
    refill: TaskRefill,
    demand: Demand,
    /// Takes in a row that found it empty.
    dry: u32,
    /// Objects that refills brought in this round.
    brought: usize,
    /// What was left when this round began.
    began: usize,
    /// Objects that were prefetched in this round.
    prefetched: u64,
    /// Objects that a round uses, times eight: what the last ones used, decayed.
    used: usize,
}

impl<T: Recycle> Stack<T> {
    pub(crate) fn new() -> Self {
        Self {
            items: Vec::new(),
            limit: 0,
            bulk: 0,
            flush: 1,
            flush_end: FlushEnd::Top,
            prefetch: false,
            refill: TaskRefill::Always,
            demand: Demand::Fixed,
            dry: 0,
            brought: 0,
            began: 0,
            prefetched: 0,
            used: 0,
        }
    }

    /// Takes over a policy, and gives up what it leaves no room for. `refill`: what the owner, by
    /// its role, may do.
    pub(crate) fn tune(
        &mut self,
        policy: &Policy,
        limit: usize,
        refill: TaskRefill,
        slab: &mut Slab<T>,
    ) {
        self.limit = limit;
        self.bulk = (policy.shell_bulk as usize).min(limit);
        self.flush = (policy.shell_flush as usize).min(limit);
        self.flush_end = policy.shell_flush_end;
        self.prefetch = policy.shell_prefetch_next;
        self.refill = refill;
        self.demand = policy.refill_demand;
        if self.items.len() > limit {
            slab.give_bulk(self.items.drain(limit..), Place::Cache);
        }
        self.items.reserve_exact(limit - self.items.len());
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Slot<T>> {
        let slot = self.items.pop()?;
        if self.prefetch
            && let Some(next) = self.items.last()
        {
            next.prefetch();
            self.prefetched += 1;
        }
        Some(slot)
    }

    /// Moves as many of the objects put last as there are places to `out`, as what `each` makes of
    /// them; returns how many those were.
    #[inline]
    pub(crate) fn pop_into<U>(
        &mut self,
        out: &mut [Option<U>],
        mut each: impl FnMut(Slot<T>) -> U,
    ) -> usize {
        let n = out.len().min(self.items.len());
        for (place, slot) in out.iter_mut().zip(iter::from_fn(|| self.items.pop())) {
            *place = Some(each(slot));
        }
        n
    }

    /// Puts an object.
    ///
    /// # Errors
    /// The object, where it would be one too many.
    #[inline]
    pub(crate) fn push(&mut self, slot: Slot<T>) -> Result<(), Slot<T>> {
        if self.items.len() + 1 >= self.limit {
            return Err(slot);
        }
        self.items.push(slot);
        Ok(())
    }

    /// Puts as many from the back of `from`, whose places are filled, as there is room for; returns
    /// how many those were.
    #[inline]
    pub(crate) fn push_from<U>(
        &mut self,
        from: &mut [Option<U>],
        each: impl FnMut(U) -> Slot<T>,
    ) -> usize {
        let room = self.limit.saturating_sub(self.items.len() + 1);
        let at = from.len().saturating_sub(room);
        self.items.extend(from[at..].iter_mut().filter_map(Option::take).map(each));
        from.len() - at
    }

    /// Calls `each` with every object in it.
    pub(crate) fn for_each_mut(&mut self, mut each: impl FnMut(&mut T)) {
        self.items.iter_mut().for_each(|slot| each(slot));
    }

    /// An object of the slab, and more to go on with.
    pub(crate) fn take_slow(&mut self, slab: &mut Slab<T>) -> Option<Slot<T>> {
        self.dry += 1;
        let alone = match self.refill {
            TaskRefill::Never => true,
            TaskRefill::Pressure => self.dry < 2,
            TaskRefill::Always => false,
        };
        if self.limit == 0 || alone {
            return slab.take(Place::Cache);
        }
        slab.take_bulk(self.wanted(), &mut self.items, Place::Cache);
        self.brought += self.items.len();
        self.items.pop()
    }

    /// Puts an object that makes it full, and gives up what the policy says. Says whether it was
    /// full, and not merely of no size.
    pub(crate) fn put_slow(&mut self, slot: Slot<T>, slab: &mut Slab<T>) -> bool {
        if self.limit == 0 {
            slab.give(slot, Place::Cache);
            return false;
        }
        self.items.push(slot);
        let keep = self.items.len() - self.flush;
        let given = match self.flush_end {
            FlushEnd::Top => self.items.drain(keep..),
            FlushEnd::Bottom | FlushEnd::Magazine => self.items.drain(..self.flush),
        };
        slab.give_bulk(given, Place::Cache);
        true
    }

    /// Counts from here what the round uses.
    pub(crate) fn begin(&mut self) {
        (self.began, self.brought) = (self.items.len(), 0);
    }

    /// Counts what the round used; returns how many objects it prefetched.
    pub(crate) fn end(&mut self) -> u64 {
        let used = (self.began + self.brought).saturating_sub(self.items.len());
        self.used = self.used - self.used / 8 + used;
        mem::take(&mut self.prefetched)
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// Gives all to the slab.
    pub(crate) fn flush(&mut self, slab: &mut Slab<T>) {
        slab.give_bulk(self.items.drain(..), Place::Cache);
    }

    fn wanted(&self) -> usize {
        match self.demand {
            Demand::Fixed => self.bulk,
            Demand::Ewma => (self.used / 8).clamp(1, self.limit),
        }
    }
}

//! SLUB before sheaves: slabs of neighbouring cells, each with a free list that runs through its
//! objects.
//!
//! A CPU works on one slab, whose free list it took whole; it frees to that slab without a locked
//! instruction. An object of any other slab is freed with one compare-and-swap on that slab's word.
//! The first object freed to a full slab puts the slab on the freer's partial list, which goes to
//! the node's, under the node's lock, when it is long. Of slabs that are wholly free the node keeps
//! a few; the rest are as good as new.
//!
//! Invariant: the word of a slab says "told" exactly while the slab is a CPU's active one or on one
//! list, a CPU's or the node's (the kernel's `frozen`, and its being on `n->partial`). Who clears it
//! has found the slab full; who sets it, by the first free, puts the slab on a list.
//!
//! Other than the kernel's, the node's list gives out what came last, and new slabs are not shuffled.

use std::ops::Range;

use crate::arena::{Arena, Recycle, SHARE_STEP, Slot};
use crate::depot::Depot;
use crate::list::{Bound, Chain, List, Strand};
use crate::place::Place;
use crate::policy::Policy;
use crate::sync::{AtomicU32, Mutex, Ordering, lock};

/// Objects in a slab: those of 256 bytes that fill a page. A node's share begins with a slab.
const CELLS: u32 = SHARE_STEP;

/// No slab.
const NONE: u32 = u32::MAX;

/// A full slab tells who frees to it first.
const FIRST: Bound = Bound { tell_at: 1, ..Bound::NONE };

/// The slabs of a class on a node, and the node's lists of them.
#[derive(Debug)]
pub(crate) struct Slub<T: Recycle> {
    /// The index of the node's first object.
    first: u32,
    heads: Box<[Head<T>]>,
    node: Mutex<Node>,
}

/// What a slab's page descriptor holds.
#[derive(Debug)]
#[repr(align(64))]
struct Head<T: Recycle> {
    /// Its free objects, but those that a CPU took.
    free: List<T>,
    /// Where it stands on the node's list, counted from 1; 0: not there. Written under the lock.
    at: AtomicU32,
}

#[derive(Debug)]
struct Node {
    /// Slabs with free objects.
    partial: Vec<u32>,
    /// Slabs that were wholly free and one too many, for the next who needs a new one.
    pages: Vec<u32>,
}

impl<T: Recycle> Slub<T> {
    /// The slabs of a node, whose objects have the indices of `share`.
    pub(crate) fn new(objects: &'static Arena<T>, share: Range<u32>) -> Self {
        let slabs = (share.len() as u32).div_ceil(CELLS);
        let head = || Head { free: List::new(objects, Place::Depot), at: AtomicU32::new(0) };
        let list = || Vec::with_capacity(slabs as usize);
        Self {
            first: share.start,
            heads: (0..slabs).map(|_| head()).collect(),
            node: Mutex::new(Node { partial: list(), pages: list() }),
        }
    }

    /// Objects that lie in the slabs, of the first `made`, at some moment during the call.
    pub(crate) fn free(&self, made: u32) -> u32 {
        let slabs = made.div_ceil(CELLS) as usize;
        self.heads[..slabs].iter().map(|head| head.free.weight()).sum()
    }

    /// Moves all objects of slabs that no CPU has to `out`.
    pub(crate) fn take_all(&self, out: &mut Vec<Slot<T>>) {
        let mut node = lock(&self.node);
        let Node { partial, pages } = &mut *node;
        for slab in partial.drain(..).chain(pages.drain(..)) {
            let head = self.head(slab);
            head.at.store(0, Ordering::Relaxed);
            out.extend(head.free.take().map(|slot| slot.stepped(Place::InUse, Place::Depot)));
        }
    }

    /// Takes slabs off the node's list, for a CPU that wants `most`; one that was wholly free where
    /// that list has none.
    fn take_slabs(&self, most: usize, out: &mut Vec<u32>) {
        let mut node = lock(&self.node);
        for _ in 0..most {
            let Some(slab) = node.partial.pop() else { break };
            self.head(slab).at.store(0, Ordering::Relaxed);
            out.push(slab);
        }
        if out.is_empty() {
            out.extend(node.pages.pop());
        }
    }

    /// Puts slabs on the node's list.
    fn give_slabs(&self, slabs: impl Iterator<Item = u32>, min_partial: usize) {
        let mut node = lock(&self.node);
        for slab in slabs {
            let head = self.head(slab);
            if head.free.weight() == CELLS && node.partial.len() >= min_partial {
                node.pages.push(slab);
            } else {
                node.partial.push(slab);
                head.at.store(node.partial.len() as u32, Ordering::Relaxed);
            }
        }
    }

    /// Takes a slab that became wholly free off the node's list, where the list is long enough
    /// without it.
    #[cold]
    fn discard(&self, slab: u32, min_partial: usize) {
        let mut node = lock(&self.node);
        let head = self.head(slab);
        // Read again under the lock: it may have been taken meanwhile.
        let Some(at) = head.at.load(Ordering::Relaxed).checked_sub(1) else { return };
        if head.free.weight() != CELLS || node.partial.len() <= min_partial {
            return;
        }
        head.at.store(0, Ordering::Relaxed);
        node.partial.swap_remove(at as usize);
        if let Some(moved) = node.partial.get(at as usize) {
            self.head(*moved).at.store(at + 1, Ordering::Relaxed);
        }
        node.pages.push(slab);
    }

    #[inline]
    fn head(&self, slab: u32) -> &Head<T> {
        &self.heads[slab as usize]
    }
}

/// A thread's end: the slab that it works on, and those that it keeps for later.
#[derive(Debug)]
pub(crate) struct Cpu<T: Recycle> {
    pub(super) depot: &'static Depot<T>,
    slub: &'static Slub<T>,
    objects: &'static Arena<T>,
    /// The slab that `free` was taken from; [`NONE`] where that is empty, or of no one slab.
    active: u32,
    free: Chain<T>,
    len: usize,
    partial: Vec<u32>,
    /// Slabs that it keeps at most.
    most: usize,
    min_partial: usize,
    fresh: Vec<Slot<T>>,
}

impl<T: Recycle> Cpu<T> {
    pub(crate) fn new(policy: &Policy, depot: &'static Depot<T>) -> Self {
        let objects = depot.objects();
        let mut cpu = Self {
            depot,
            slub: depot.slub(),
            objects,
            active: NONE,
            free: Chain::new(objects, Place::Depot),
            len: 0,
            partial: Vec::new(),
            most: 0,
            min_partial: 0,
            fresh: Vec::with_capacity(CELLS as usize),
        };
        cpu.tune(policy);
        cpu
    }

    pub(crate) fn tune(&mut self, policy: &Policy) {
        // `slub_set_cpu_partial`: slabs are taken to be half full.
        self.most = (policy.slab_cpu_partial as usize * 2).div_ceil(CELLS as usize);
        self.min_partial = policy.slab_min_partial as usize;
        // One more than it keeps, as they come off the node's list by that many.
        self.partial.reserve(self.most + 1);
    }

    #[inline]
    pub(crate) fn take(&mut self) -> Option<Slot<T>> {
        let mut slot = match self.free.next() {
            Some(slot) => slot,
            None => self.take_slow()?,
        };
        slot.step(Place::InUse, Place::Depot);
        self.len -= 1;
        Some(slot)
    }

    #[inline]
    pub(crate) fn give(&mut self, slot: Slot<T>) {
        let slab = self.slab(&slot);
        if slab == self.active {
            return self.keep(slot);
        }
        let Some(head) = self.slub.heads.get(slab as usize) else {
            return self.depot.give_loose([slot]);
        };
        match head.free.push(slot, 1, FIRST, Place::Depot) {
            Ok(tell) => self.landed(slab, tell),
            Err(refused) => self.depot.give_loose([refused.slot]),
        }
    }

    /// Gives objects back; those of one slab that follow each other by one compare-and-swap
    /// (`build_detached_freelist`).
    pub(crate) fn give_bulk(&mut self, slots: impl Iterator<Item = Slot<T>>) {
        let mut run = NONE;
        let mut strand = Strand::new(self.objects, Place::Depot);
        for slot in slots {
            let slab = self.slab(&slot);
            if slab == self.active {
                self.keep(slot);
                continue;
            }
            if slab != run {
                let next = Strand::new(self.objects, Place::Depot);
                self.splice(run, std::mem::replace(&mut strand, next));
                run = slab;
            }
            if let Err(slot) = strand.push(slot, Place::Depot) {
                self.depot.give_loose([slot]);
            }
        }
        self.splice(run, strand);
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn flush(&mut self) {
        self.len = 0;
        let depot = self.depot;
        let give = |chain: &mut Chain<T>| {
            depot.give_loose(chain.map(|slot| slot.stepped(Place::InUse, Place::Depot)));
        };
        give(&mut self.free);
        let active = (self.active != NONE).then_some(self.active);
        self.active = NONE;
        for slab in self.partial.drain(..).chain(active) {
            let free = &self.slub.head(slab).free;
            // Until it is full, at a moment when nobody frees to it.
            loop {
                give(&mut free.take_told().0);
                if free.clear_told() {
                    break;
                }
            }
        }
    }

    fn slab(&self, slot: &Slot<T>) -> u32 {
        let index = self.objects.index(slot);
        index.map_or(NONE - 1, |index| index.wrapping_sub(self.slub.first) / CELLS)
    }

    /// Frees to the active slab.
    #[inline]
    fn keep(&mut self, slot: Slot<T>) {
        match self.free.push(slot, Place::Depot) {
            Ok(_) => self.len += 1,
            Err(slot) => self.depot.give_loose([slot]),
        }
    }

    fn splice(&mut self, slab: u32, strand: Strand<T>) {
        if let Some(head) = self.slub.heads.get(slab as usize)
            && !strand.is_empty()
        {
            let tell = head.free.splice(strand, FIRST.tell_at);
            self.landed(slab, tell);
        }
    }

    /// What a free to another slab than the active one entails.
    #[inline]
    fn landed(&mut self, slab: u32, tell: bool) {
        if tell {
            self.put_partial(slab);
        } else {
            let head = self.slub.head(slab);
            if head.free.weight() == CELLS && head.at.load(Ordering::Relaxed) != 0 {
                self.slub.discard(slab, self.min_partial);
            }
        }
    }

    /// Keeps a slab that was full until now (`put_cpu_partial`).
    fn put_partial(&mut self, slab: u32) {
        if self.partial.len() >= self.most {
            self.slub.give_slabs(self.partial.drain(..), self.min_partial);
        }
        if self.most == 0 {
            self.slub.give_slabs(std::iter::once(slab), self.min_partial);
        } else {
            self.partial.push(slab);
        }
    }

    /// An object of the next slab (`___slab_alloc`).
    #[cold]
    #[inline(never)]
    fn take_slow(&mut self) -> Option<Slot<T>> {
        loop {
            if self.active != NONE {
                let free = &self.slub.head(self.active).free;
                (self.free, self.len) = match free.take_told() {
                    (chain, len) if len > 0 => (chain, len as usize),
                    (empty, _) => {
                        // What was freed just now is found with the next turn.
                        if free.clear_told() {
                            self.active = NONE;
                        }
                        (empty, 0)
                    }
                };
            } else if let Some(slab) = self.partial.pop() {
                self.active = slab;
            } else {
                // One to work on, and as many as half of what it keeps (`get_partial_node`).
                self.slub.take_slabs(1 + self.most / 2, &mut self.partial);
                if self.partial.is_empty() && !self.take_fresh() {
                    return None;
                }
            }
            if let Some(slot) = self.free.next() {
                return Some(slot);
            }
        }
    }

    /// Objects of a new slab; where no more can be made, of whatever the depot has.
    fn take_fresh(&mut self) -> bool {
        self.depot.make_slab(CELLS, &mut self.fresh);
        if self.fresh.len() == CELLS as usize {
            self.active = self.slab(&self.fresh[0]);
            self.slub.head(self.active).free.set_told();
        } else if self.fresh.is_empty() {
            self.depot.take_loose(CELLS as usize, &mut self.fresh);
        }
        let mut fresh = std::mem::take(&mut self.fresh);
        let any = !fresh.is_empty();
        // The first cell comes out first.
        fresh.drain(..).rev().for_each(|slot| self.keep(slot));
        self.fresh = fresh;
        any
    }
}

//! The front of magazines.
//!
//! Two are at hand, so that a thread that alternates around a magazine's edge does not go further
//! each time; behind them stand full ones that came home. A magazine that was emptied goes back to
//! who filled it, so that in a pipeline nobody goes to the depot at all.

use std::mem;

use crate::arena::{Recycle, Slot};
use crate::depot::Depot;
use crate::home::Home;
use crate::magazine::Magazine;
use crate::place::Place;
use crate::slab::Slab;

/// A thread's magazines.
#[derive(Debug)]
pub(crate) struct Magazines<T: Recycle> {
    depot: &'static Depot<T>,
    /// Taken from and put to.
    loaded: Slot<Magazine<T>>,
    /// Full, empty, or what `loaded` was before.
    spare: Slot<Magazine<T>>,
    /// Magazines that hold something: they came home, or were adopted.
    stock: Vec<Slot<Magazine<T>>>,
    /// Objects in stock: counted, as to look at every magazine would be a line for each.
    stocked: usize,
    /// Magazines that the policy leaves room for, at hand and in stock.
    most: usize,
}

impl<T: Recycle> Magazines<T> {
    /// An empty front; `None` when the depot has no magazine left for it.
    pub(crate) fn new(depot: &'static Depot<T>) -> Option<Self> {
        let (loaded, spare) = (depot.take_empty()?, depot.take_empty()?);
        Some(Self { depot, loaded, spare, stock: Vec::new(), stocked: 0, most: 2 })
    }

    /// Leaves room for so many objects, in whole magazines and two at least; beyond those for no more
    /// than an eighth of the class, as others, and who copies on write without a cache, live on what
    /// is in the depot.
    pub(crate) fn tune(&mut self, limit: usize, slab: &mut Slab<T>, empties: &mut Empties<T>) {
        let limit = limit.min(self.depot.capacity() as usize / 8);
        self.most = limit / Magazine::<T>::CAPACITY;
        while self.stock.len() + 2 > self.most
            && let Some(magazine) = self.pop_stock()
        {
            give(magazine, slab, empties);
        }
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Slot<T>> {
        self.loaded.pop()
    }

    #[inline]
    pub(crate) fn pop_into<U>(
        &mut self,
        out: &mut [Option<U>],
        each: impl FnMut(Slot<T>) -> U,
    ) -> usize {
        self.loaded.pop_into(out, each)
    }

    #[inline]
    pub(crate) fn push(&mut self, slot: Slot<T>) -> Result<(), Slot<T>> {
        self.loaded.push(slot)
    }

    #[inline]
    pub(crate) fn push_from<U>(
        &mut self,
        from: &mut [Option<U>],
        each: impl FnMut(U) -> Slot<T>,
    ) -> usize {
        self.loaded.push_from(from, each)
    }

    /// Calls `each` with every object of the loaded magazine.
    pub(crate) fn for_each_loaded(&mut self, each: impl FnMut(&mut T)) {
        self.loaded.for_each_mut(each);
    }

    /// An object of the other magazines at hand.
    pub(crate) fn pop_near(&mut self, empties: &mut Empties<T>) -> Option<Slot<T>> {
        if self.loaded.is_empty() {
            mem::swap(&mut self.loaded, &mut self.spare);
        }
        if self.loaded.is_empty() {
            let full = self.pop_stock()?;
            full.fetch_objects();
            self.load(full, empties);
        }
        self.loaded.pop()
    }

    /// An object of a magazine that the depot or the slab fills.
    pub(crate) fn take_slow(
        &mut self,
        slab: &mut Slab<T>,
        empties: &mut Empties<T>,
    ) -> Option<Slot<T>> {
        match slab {
            Slab::Sheaf(_) => {
                let Some(full) = self.depot.take_for(Place::Cache) else {
                    // What was taken and put past the front may have left some there.
                    return slab.take(Place::Cache);
                };
                self.load(full, empties);
            }
            slab => {
                for _ in 0..Magazine::<T>::CAPACITY {
                    let Some(slot) = slab.take(Place::Cache) else { break };
                    let pushed = self.loaded.push(slot);
                    debug_assert!(pushed.is_ok(), "an empty magazine takes as many");
                }
            }
        }
        self.loaded.pop()
    }

    /// Puts an object that the loaded magazine has no room for. Says whether a full one was given
    /// away for it.
    pub(crate) fn put_slow(
        &mut self,
        slot: Slot<T>,
        slab: &mut Slab<T>,
        empties: &mut Empties<T>,
    ) -> bool {
        mem::swap(&mut self.loaded, &mut self.spare);
        let mut spilt = false;
        if self.loaded.is_full() {
            let Some(empty) = empties.take() else {
                // Every magazine is under way: the object alone goes.
                slab.give(slot, Place::Cache);
                return false;
            };
            let full = mem::replace(&mut self.loaded, empty);
            spilt = self.keep(full, slab, empties);
        }
        let pushed = self.loaded.push(slot);
        debug_assert!(pushed.is_ok(), "the loaded magazine has room");
        spilt
    }

    /// Whether there is room for more than the two magazines at hand.
    pub(crate) fn has_stock(&self) -> bool {
        self.most > 2
    }

    /// Keeps a magazine of objects as far as the policy allows, else gives it away; says whether it
    /// did that.
    pub(crate) fn keep(
        &mut self,
        magazine: Slot<Magazine<T>>,
        slab: &mut Slab<T>,
        empties: &mut Empties<T>,
    ) -> bool {
        if self.stock.len() + 2 < self.most {
            self.stocked += magazine.len();
            self.stock.push(magazine);
            return false;
        }
        give(magazine, slab, empties);
        true
    }

    pub(crate) fn len(&self) -> usize {
        self.loaded.len() + self.spare.len() + self.stocked
    }

    /// Gives all to the depot or the slab.
    pub(crate) fn flush(&mut self, slab: &mut Slab<T>, empties: &mut Empties<T>) {
        for magazine in [&mut self.loaded, &mut self.spare] {
            if magazine.is_empty() {
                continue;
            }
            match empties.take() {
                Some(empty) => give(mem::replace(magazine, empty), slab, empties),
                None => slab.give_bulk(magazine.drain(), Place::Cache),
            }
        }
        self.stock.drain(..).for_each(|magazine| give(magazine, slab, empties));
        self.stocked = 0;
    }

    fn pop_stock(&mut self) -> Option<Slot<Magazine<T>>> {
        let magazine = self.stock.pop()?;
        self.stocked -= magazine.len();
        Some(magazine)
    }

    fn load(&mut self, full: Slot<Magazine<T>>, empties: &mut Empties<T>) {
        let empty = mem::replace(&mut self.loaded, full);
        empties.give_back(empty);
    }
}

/// A magazine goes to the depot whole where that is what the slab is made of, else object by object.
pub(crate) fn give<T: Recycle>(
    mut magazine: Slot<Magazine<T>>,
    slab: &mut Slab<T>,
    empties: &mut Empties<T>,
) {
    if matches!(slab, Slab::Sheaf(_)) {
        return empties.depot.give_from(magazine, Place::Cache);
    }
    slab.give_bulk(magazine.drain(), Place::Cache);
    empties.give_back(magazine);
}

/// Empty magazines at hand, for the front and for the outbox.
#[derive(Debug)]
pub(crate) struct Empties<T: Recycle> {
    home: &'static Home<T>,
    depot: &'static Depot<T>,
    kept: Vec<Slot<Magazine<T>>>,
}

/// How many those are at most.
const KEPT: usize = 4;

impl<T: Recycle> Empties<T> {
    pub(crate) fn new(home: &'static Home<T>) -> Self {
        Self { home, depot: home.depot(), kept: Vec::with_capacity(KEPT) }
    }

    /// One, from here, of those that came back, or of the depot.
    pub(crate) fn take(&mut self) -> Option<Slot<Magazine<T>>> {
        if self.kept.is_empty() {
            self.kept.extend(self.home.empties().take(KEPT));
        }
        self.kept.pop().or_else(|| self.depot.take_empty())
    }

    /// Takes in those that came back.
    pub(crate) fn collect(&mut self) {
        for magazine in self.home.empties() {
            magazine.fetch_to_write();
            self.keep(magazine);
        }
    }

    /// Sends an emptied magazine back to who filled it.
    pub(crate) fn give_back(&mut self, mut magazine: Slot<Magazine<T>>) {
        match magazine.sender.take() {
            Some(sender) if !std::ptr::eq(sender, self.home) => {
                if let Err(refused) = sender.send_empty(magazine) {
                    self.keep(refused.slot);
                }
            }
            _ => self.keep(magazine),
        }
    }

    /// Gives all to the depot.
    pub(crate) fn flush(&mut self) {
        self.kept.drain(..).for_each(|magazine| self.depot.give(magazine));
    }

    fn keep(&mut self, magazine: Slot<Magazine<T>>) {
        if self.kept.len() < KEPT {
            self.kept.push(magazine);
        } else {
            self.depot.give(magazine);
        }
    }
}

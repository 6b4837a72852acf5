//! A thread's cache of one class, and its end of the way home.
//!
//! What a thread takes and puts goes through its front: magazines, or the kernel's array. Behind the
//! front stands the slab, which is nothing but the depot where the front is of magazines and the
//! policy's slab too. What is freed for others leaves by `away.rs`.
//!
//! Invariant: an object in the front is in [`Place::Cache`] and stamped with this home; one that the
//! slab has is in [`Place::Depot`], though others may not reach it.

mod away;
mod magazines;
mod nodes;
mod rest;
mod stack;

use crate::arena::{Recycle, Slot};
use crate::depot::Depot;
use crate::home::{Home, Role};
use crate::list::{Bound, Chain};
use crate::outbox::Outbox;
use crate::place::Place;
use crate::policy::{FlushEnd, Policy, SameCpu, ShellCache, TaskRefill};
use crate::slab::Slab;
use crate::stats::Stats;

use away::Route;
use magazines::{Empties, Magazines};
use stack::Stack;

/// Free objects of one thread. Not shared; whoever owns it is the only one to touch it.
#[derive(Debug)]
pub struct Cache<T: Recycle> {
    front: Front<T>,
    home: &'static Home<T>,
    /// What this owner does with what it frees away from home.
    route: Route,
    /// Whether what it frees at home goes past the front.
    past_front: bool,
    /// Whether the memory has other nodes, so that it matters which one an object is of.
    has_peers: bool,
    /// Whether an object of another node is kept out of the front.
    sorts: bool,
    /// Whether not all that it frees at home goes to the front: either of the two.
    detours: bool,
    bound: Bound,
    now_ns: u64,
    slab: Slab<T>,
    empties: Empties<T>,
    outbox: Outbox<T>,
    depot: &'static Depot<T>,
    /// Takes that went past the front, and objects that came home, since the last vote (`course.rs`).
    misses: u32,
    came: u32,
    /// A take has found nothing since the owner last slept.
    dry: bool,
    policy: Policy,
    stats: Stats,
}

/// What takes and puts meet first.
#[derive(Debug)]
enum Front<T: Recycle> {
    Magazines(Magazines<T>),
    Stack(Stack<T>),
}

impl<T: Recycle> Cache<T> {
    /// An empty cache for the owner of `home`; `None` when the depot has no magazine left for it.
    pub fn new(home: &'static Home<T>) -> Option<Self> {
        let depot = home.depot();
        let policy = Policy::default();
        let front = Front::Magazines(Magazines::new(depot)?);
        home.open();
        let mut cache = Self {
            front,
            home,
            route: Route::of(home.role(), &policy),
            past_front: false,
            has_peers: depot.has_peers(),
            sorts: false,
            detours: false,
            bound: away::bound::<T>(&policy),
            now_ns: 0,
            slab: Slab::new(&policy, depot),
            empties: Empties::new(home),
            outbox: Outbox::new(),
            depot,
            misses: 0,
            came: 0,
            dry: false,
            policy,
            stats: Stats::default(),
        };
        cache.adopt_policy(&policy);
        Some(cache)
    }

    /// Begins a round: takes over the policy, and what came home.
    pub fn begin(&mut self, now_ns: u64, policy: &Policy) {
        self.begin_with(now_ns, policy, |_| ());
    }

    /// The same, and calls `each` with every object that came home.
    pub fn begin_with(&mut self, now_ns: u64, policy: &Policy, each: impl FnMut(&mut T)) {
        if self.policy != *policy {
            self.adopt_policy(policy);
        }
        self.resume_with(now_ns, each);
    }

    /// Begins a round by the policy of the last one.
    #[inline]
    pub fn resume(&mut self, now_ns: u64) {
        self.resume_with(now_ns, |_| ());
    }

    /// The same, and calls `each` with every object that came home.
    #[inline]
    pub fn resume_with(&mut self, now_ns: u64, each: impl FnMut(&mut T)) {
        self.now_ns = now_ns;
        if self.home.has_arrivals() {
            self.drain_with(each);
        }
        if let Front::Stack(stack) = &mut self.front {
            stack.begin();
        }
    }

    /// Ends a round: posts what is gathered for others, and tells the ledger what is left.
    pub fn end(&mut self) {
        self.post_all();
        if let Front::Stack(stack) = &mut self.front {
            self.stats.prefetches += stack.end();
        }
        if self.policy.shell_cache == ShellCache::Round {
            self.flush_front();
        }
        self.say();
    }

    /// Takes an object, which is stamped with this home; `None` when the class is exhausted.
    #[inline]
    pub fn take(&mut self) -> Option<Slot<T>> {
        let slot = match &mut self.front {
            Front::Magazines(magazines) => magazines.pop(),
            Front::Stack(stack) => stack.pop(),
        };
        let mut slot = match slot {
            Some(slot) => slot,
            None => self.take_slow()?,
        };
        slot.step(Place::Cache, Place::InUse);
        Some(slot)
    }

    /// Fills the front of `out` with what `each` makes of an object, and returns how many that were:
    /// fewer than there are places when the class is exhausted. What was in `out` is dropped.
    #[inline]
    pub fn take_bulk<U>(
        &mut self,
        out: &mut [Option<U>],
        mut each: impl FnMut(Slot<T>) -> U,
    ) -> usize {
        let mut each = |mut slot: Slot<T>| {
            slot.step(Place::Cache, Place::InUse);
            each(slot)
        };
        if out.iter().any(Option::is_some) {
            vacate(out);
        }
        let mut taken = 0;
        loop {
            taken += match &mut self.front {
                Front::Magazines(magazines) => magazines.pop_into(&mut out[taken..], &mut each),
                Front::Stack(stack) => stack.pop_into(&mut out[taken..], &mut each),
            };
            let Some(place) = out.get_mut(taken) else { return taken };
            let Some(slot) = self.take_slow() else { return taken };
            *place = Some(each(slot));
            taken += 1;
        }
    }

    /// Takes an object past the front (`kmem_cache_alloc`), not stamped; `None` when the class is
    /// exhausted.
    pub fn take_past_front(&mut self) -> Option<Slot<T>> {
        let slot = self.slab.take(Place::InUse).or_else(|| self.borrow(Place::InUse));
        self.dry |= slot.is_none();
        slot
    }

    /// Puts an object that this thread frees and keeps, whoever's it was. One of another node goes
    /// there, where the policy says so.
    #[inline]
    pub fn put(&mut self, mut slot: Slot<T>) {
        if self.sorts && self.depot.is_far(&slot) {
            return self.slab.give(slot, Place::InUse);
        }
        slot.stamp(self.home);
        self.put_front(slot);
    }

    /// Puts an object of this home.
    #[inline]
    fn put_front(&mut self, mut slot: Slot<T>) {
        slot.step(Place::InUse, Place::Cache);
        let refused = match &mut self.front {
            Front::Magazines(magazines) => magazines.push(slot),
            Front::Stack(stack) => stack.push(slot),
        };
        if let Err(slot) = refused {
            self.put_slow(slot);
        }
    }

    /// Puts an object past the front (`kmem_cache_free`).
    pub fn put_past_front(&mut self, slot: Slot<T>) {
        self.slab.give(slot, Place::InUse);
    }

    /// Frees an object of `home`: keeps it, or sends it on its way.
    #[inline]
    pub fn free(&mut self, slot: Slot<T>, home: &'static Home<T>) {
        if !std::ptr::eq(home, self.home) {
            self.free_alien(slot, home);
        } else if self.detours {
            self.free_detour(slot);
        } else {
            self.put_front(slot);
        }
    }

    #[inline(never)]
    fn free_detour(&mut self, slot: Slot<T>) {
        if self.past_front {
            self.put_past_front(slot);
        } else {
            self.put(slot);
        }
    }

    /// Frees objects of one home, which `each` finds in what lies in `from`: all places are filled,
    /// and empty afterwards.
    #[inline]
    pub fn free_bulk<U>(
        &mut self,
        from: &mut [Option<U>],
        home: &'static Home<T>,
        mut each: impl FnMut(U) -> Slot<T>,
    ) {
        let own = std::ptr::eq(home, self.home);
        if own && !self.detours {
            self.put_bulk(from, each);
        } else if !own && self.route == Route::Gather && self.is_ours(home) {
            self.gather_bulk(from, home, |item| {
                let mut slot = each(item);
                slot.step(Place::InUse, Place::Outbox);
                slot
            });
            // Every magazine is under way: what is left goes alone.
            from.iter_mut().filter_map(Option::take).for_each(|item| home.post(each(item)));
        } else {
            let items = from.iter_mut().filter_map(Option::take);
            items.for_each(|item| self.free(each(item), home));
        }
    }

    /// Puts all of `from`, whose places are filled with objects of this home.
    #[inline]
    fn put_bulk<U>(&mut self, mut from: &mut [Option<U>], mut each: impl FnMut(U) -> Slot<T>) {
        let mut each = |item| {
            let mut slot = each(item);
            slot.step(Place::InUse, Place::Cache);
            slot
        };
        loop {
            let done = match &mut self.front {
                Front::Magazines(magazines) => magazines.push_from(from, &mut each),
                Front::Stack(stack) => stack.push_from(from, &mut each),
            };
            let left = from.len() - done;
            // The front is full: one goes the slow way, which makes room.
            let Some((last, rest)) = from[..left].split_last_mut() else { return };
            if let Some(item) = last.take() {
                self.put_slow(each(item));
            }
            from = rest;
        }
    }

    /// Whether what this owner frees for `home` stays with it, as far as the policy decides.
    #[inline]
    pub fn keeps(&self, home: &'static Home<T>) -> bool {
        std::ptr::eq(home, self.home)
            || (self.is_ours(home) && matches!(self.route, Route::Adopt | Route::Slab))
    }

    /// Whether a home is of this memory, be it on another node.
    #[inline]
    fn is_ours(&self, home: &'static Home<T>) -> bool {
        std::ptr::eq(home.depot(), self.depot) || home.depot().is_kin(self.depot)
    }

    /// Takes in what came home; returns how many objects that was.
    pub fn drain(&mut self) -> usize {
        self.drain_with(|_| ())
    }

    /// How many objects it holds.
    pub fn len(&self) -> usize {
        match &self.front {
            Front::Magazines(magazines) => magazines.len(),
            Front::Stack(stack) => stack.len(),
        }
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many objects this thread's end of the slab holds: free, in the depot's account, and not
    /// to be reached by others.
    pub fn in_slab(&self) -> usize {
        self.slab.len()
    }

    /// How many objects are gathered for others.
    pub fn outgoing(&self) -> usize {
        self.outbox.len()
    }

    /// What was done here so far.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Gives everything but what is gathered for others to the depot, and sends that: nothing is
    /// parked here afterwards.
    pub fn flush(&mut self) {
        self.drain();
        self.post_all();
        self.flush_front();
        self.slab.flush();
        self.empties.flush();
        self.say();
    }

    fn drain_with(&mut self, mut each: impl FnMut(&mut T)) -> usize {
        let home = self.home;
        let mut came = 0;
        for mut magazine in home.magazines() {
            magazine.fetch_to_write();
            came += magazine.len();
            self.stats.parked(self.now_ns.saturating_sub(magazine.sent_ns), magazine.len());
            magazine.step_all(Place::Inbox, Place::Cache);
            self.pay_for(&magazine);
            magazine.for_each_mut(&mut each);
            self.sort(&mut magazine);
            self.keep(magazine);
        }
        let mut one_by_one = |cache: &mut Self, chain: Chain<T>| {
            let before = came;
            for mut slot in chain {
                came += 1;
                each(&mut slot);
                cache.put(slot);
            }
            came - before
        };
        one_by_one(self, home.strays());
        one_by_one(self, home.locked().take());
        for position in 0..self.depot.all().len() {
            let count = one_by_one(self, home.counted(position).take());
            if position != self.depot.position() {
                self.depot.toll().pay(count);
            }
        }
        self.empties.collect();
        self.came = self.came.saturating_add(came as u32);
        came
    }

    #[cold]
    #[inline(never)]
    fn take_slow(&mut self) -> Option<Slot<T>> {
        if let Some(slot) = self.pop_near() {
            return Some(slot);
        }
        if self.policy.defer_drain_eager && self.home.waiting() > 0 {
            self.drain();
            if let Some(slot) = self.pop_near() {
                return Some(slot);
            }
        }
        self.home.missed();
        self.misses = self.misses.wrapping_add(1);
        self.stats.refills += 1;
        let slot = match &mut self.front {
            Front::Magazines(magazines) => magazines.take_slow(&mut self.slab, &mut self.empties),
            Front::Stack(stack) => stack.take_slow(&mut self.slab),
        };
        let Some(mut slot) = slot.or_else(|| self.borrow(Place::Cache)) else {
            self.stats.exhausted += 1;
            self.dry = true;
            return None;
        };
        // The front was empty, so all that it holds came just now.
        slot.stamp(self.home);
        match &mut self.front {
            Front::Magazines(front) => front.for_each_loaded(|object| object.stamp(self.home)),
            Front::Stack(stack) => stack.for_each_mut(|object| object.stamp(self.home)),
        }
        Some(slot)
    }

    fn pop_near(&mut self) -> Option<Slot<T>> {
        match &mut self.front {
            Front::Magazines(magazines) => magazines.pop_near(&mut self.empties),
            Front::Stack(stack) => stack.pop(),
        }
    }

    #[cold]
    #[inline(never)]
    fn put_slow(&mut self, slot: Slot<T>) {
        let Self { front, slab, empties, .. } = self;
        let spilt = match front {
            Front::Magazines(magazines) => magazines.put_slow(slot, slab, empties),
            Front::Stack(stack) => stack.put_slow(slot, slab),
        };
        self.stats.spills += u64::from(spilt);
    }

    fn flush_front(&mut self) {
        match &mut self.front {
            Front::Magazines(magazines) => magazines.flush(&mut self.slab, &mut self.empties),
            Front::Stack(stack) => stack.flush(&mut self.slab),
        }
    }

    fn say(&self) {
        self.home.say(self.len(), self.outbox.len(), self.slab.len());
    }

    /// Turns to another policy. What the shapes that it ends hold goes to the depot, where those
    /// that it begins find it.
    #[cold]
    fn adopt_policy(&mut self, policy: &Policy) {
        if self.policy.slab_model != policy.slab_model {
            self.flush_front();
            self.slab.flush();
            self.slab = Slab::new(policy, self.depot);
        }
        self.policy = *policy;
        self.slab.tune(policy);
        self.route = Route::of(self.home.role(), policy);
        self.past_front = policy.free_same_cpu == SameCpu::Slab;
        self.sorts = self.has_peers && !policy.numa_adopt;
        self.detours = self.past_front || self.sorts;
        self.bound = away::bound::<T>(policy);

        let task = self.home.role() == Role::Foreign;
        let off = policy.shell_cache == ShellCache::Off || (task && !policy.shell_task_use);
        let limit = if off { 0 } else { policy.shell_size as usize };
        let refill = if task { policy.shell_refill_in_task } else { TaskRefill::Always };
        self.shape_front(!off && policy.shell_flush_end == FlushEnd::Magazine);
        match &mut self.front {
            Front::Magazines(magazines) => {
                magazines.tune(limit, &mut self.slab, &mut self.empties);
            }
            Front::Stack(stack) => stack.tune(policy, limit, refill, &mut self.slab),
        }
    }

    /// Makes the front one of magazines or an array. It stays an array where no magazines are left.
    fn shape_front(&mut self, of_magazines: bool) {
        if of_magazines == matches!(self.front, Front::Magazines(_)) {
            return;
        }
        self.flush_front();
        let front = if of_magazines {
            let Some(magazines) = Magazines::new(self.depot) else { return };
            Front::Magazines(magazines)
        } else {
            Front::Stack(Stack::new())
        };
        self.front = front;
    }
}

#[cold]
#[inline(never)]
fn vacate<U>(places: &mut [Option<U>]) {
    places.fill_with(|| None);
}

impl<T: Recycle> Drop for Cache<T> {
    /// Leaves nothing behind: what is gathered is sent, what is cached goes to the depot, and the
    /// home closes.
    fn drop(&mut self) {
        self.flush();
        self.home.close();
    }
}

//! A thread's cache of one class, and its end of the way home.
//!
//! Two magazines are at hand, so that a thread that alternates around a magazine's edge does not go
//! further each time; behind them stand full ones that came home. What is freed for others gathers
//! in the outbox and leaves a magazine at a time. A magazine that was emptied goes back to who
//! filled it, so that in a pipeline nobody goes to the depot at all.

use std::mem;

use crate::arena::{Recycle, Slot};
use crate::depot::Depot;
use crate::home::{Home, Role};
use crate::list::Bound;
use crate::magazine::Magazine;
use crate::outbox::{Outbox, Way};
use crate::place::Place;
use crate::policy::{Alien, Kick, Overflow, Policy};
use crate::stats::Stats;

/// Free objects of one thread. Not shared; whoever owns it is the only one to touch it.
#[derive(Debug)]
pub struct Cache<T: Recycle> {
    home: &'static Home<T>,
    depot: &'static Depot<T>,
    policy: Policy,
    /// What the policy does with what this owner frees away from home.
    alien: Alien,
    bound: Bound,
    now_ns: u64,
    /// Taken from and put to.
    loaded: Slot<Magazine<T>>,
    /// Full, empty, or what `loaded` was before.
    spare: Slot<Magazine<T>>,
    /// Magazines that hold something: they came home, or were adopted.
    stock: Vec<Slot<Magazine<T>>>,
    empties: Vec<Slot<Magazine<T>>>,
    outbox: Outbox<T>,
    misses: u32,
    stats: Stats,
}

/// Empty magazines kept at hand.
const EMPTIES: usize = 4;

impl<T: Recycle> Cache<T> {
    /// An empty cache for the owner of `home`; `None` when the depot has no magazine left for it.
    pub fn new(home: &'static Home<T>) -> Option<Self> {
        let depot = home.depot();
        let (loaded, spare) = (depot.take_empty()?, depot.take_empty()?);
        home.open();
        let policy = Policy::default();
        Some(Self {
            home,
            depot,
            policy,
            alien: alien(home.role(), &policy),
            bound: bound::<T>(&policy),
            now_ns: 0,
            loaded,
            spare,
            stock: Vec::new(),
            empties: Vec::with_capacity(EMPTIES),
            outbox: Outbox::new(),
            misses: 0,
            stats: Stats::default(),
        })
    }

    /// Begins a round: takes over the policy, and what came home.
    pub fn begin(&mut self, now_ns: u64, policy: &Policy) {
        self.now_ns = now_ns;
        if self.policy != *policy {
            self.policy = *policy;
            self.alien = alien(self.home.role(), policy);
            self.bound = bound::<T>(policy);
        }
        self.drain();
    }

    /// Ends a round: posts what is gathered for others, and tells the ledger what is left.
    pub fn end(&mut self) {
        while let Some(id) = self.outbox.any_open() {
            self.post(id);
        }
        self.home.say(self.len(), self.outbox.len());
    }

    /// Takes an object; `None` when the class is exhausted.
    #[inline]
    pub fn take(&mut self) -> Option<Slot<T>> {
        let slot = match self.loaded.pop() {
            Some(slot) => slot,
            None => self.take_slow()?,
        };
        slot.step(Place::Cache, Place::InUse);
        Some(slot)
    }

    /// Fills the front of `out`, whose places are all empty, and returns how many objects that
    /// were: fewer than asked for when the class is exhausted.
    #[inline]
    pub fn take_bulk(&mut self, out: &mut [Option<Slot<T>>]) -> usize {
        let mut taken = self.loaded.pop_into(out);
        while taken < out.len() {
            let Some(slot) = self.take_slow() else { break };
            out[taken] = Some(slot);
            taken += 1 + self.loaded.pop_into(&mut out[taken + 1..]);
        }
        if cfg!(feature = "audit") {
            let all = out[..taken].iter().flatten();
            all.for_each(|slot| slot.step(Place::Cache, Place::InUse));
        }
        taken
    }

    /// Puts an object that this thread frees and keeps.
    #[inline]
    pub fn put(&mut self, slot: Slot<T>) {
        slot.step(Place::InUse, Place::Cache);
        if let Err(slot) = self.loaded.push(slot) {
            self.put_slow(slot);
        }
    }

    /// Frees an object of `home`: keeps it, or sends it on its way.
    #[inline]
    pub fn free(&mut self, slot: Slot<T>, home: &'static Home<T>) {
        if std::ptr::eq(home, self.home) { self.put(slot) } else { self.free_alien(slot, home) }
    }

    /// Takes in what came home; returns how many objects that were.
    pub fn drain(&mut self) -> usize {
        let mut came = 0;
        for mut magazine in self.home.magazines() {
            came += magazine.len();
            self.stats.parked(self.now_ns.saturating_sub(magazine.sent_ns), magazine.len());
            magazine.step_all(Place::Inbox, Place::Cache);
            self.keep(magazine);
        }
        for slot in self.home.strays() {
            came += 1;
            self.put(slot);
        }
        for magazine in self.home.empties() {
            self.keep_empty(magazine);
        }
        came
    }

    /// How many objects it holds.
    pub fn len(&self) -> usize {
        let stock: usize = self.stock.iter().map(|magazine| magazine.len()).sum();
        self.loaded.len() + self.spare.len() + stock
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
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
        self.end();
        for magazine in [&mut self.loaded, &mut self.spare] {
            // One by one: two magazines are few, and an empty one to swap for might not be had.
            while let Some(slot) = magazine.pop() {
                slot.step(Place::Cache, Place::InUse);
                self.depot.give_one(slot);
            }
        }
        self.stock.drain(..).for_each(|magazine| self.depot.give_from(magazine, Place::Cache));
        self.empties.drain(..).for_each(|magazine| self.depot.give(magazine));
        self.home.say(self.len(), self.outbox.len());
    }

    /// Sleeps until there is something for this home, or somebody wakes it. With `starving`, what
    /// comes home wakes it at once.
    pub fn sleep(&mut self, starving: bool) {
        if self.policy.defer_drain_eager {
            self.drain();
        }
        self.end();
        let home = self.home;
        home.sleep().sleep(starving, || home.waiting() > 0);
    }

    #[cold]
    #[inline(never)]
    fn take_slow(&mut self) -> Option<Slot<T>> {
        mem::swap(&mut self.loaded, &mut self.spare);
        if self.loaded.is_empty() {
            let full = self.refill()?;
            let empty = mem::replace(&mut self.loaded, full);
            self.give_back(empty);
        }
        self.loaded.pop()
    }

    /// A magazine that holds something: of the stock, of what came home meanwhile, of the depot.
    fn refill(&mut self) -> Option<Slot<Magazine<T>>> {
        if let Some(full) = self.stock.pop() {
            return Some(full);
        }
        if self.policy.defer_drain_eager && self.home.waiting() > 0 {
            self.drain();
            if let Some(full) = self.stock.pop() {
                return Some(full);
            }
            if !self.loaded.is_empty() {
                // Strays were put to the loaded magazine: that is the one to go on with.
                let empty = self.depot.take_empty()?;
                return Some(mem::replace(&mut self.loaded, empty));
            }
        }
        self.home.missed();
        self.misses = self.misses.wrapping_add(1);
        self.stats.refills += 1;
        self.depot.take_for(Place::Cache)
    }

    #[cold]
    #[inline(never)]
    fn put_slow(&mut self, slot: Slot<T>) {
        mem::swap(&mut self.loaded, &mut self.spare);
        if self.loaded.is_full() {
            let Some(empty) = self.empty() else {
                // Every magazine is under way: the object alone goes.
                slot.step(Place::Cache, Place::InUse);
                return self.depot.give_one(slot);
            };
            let full = mem::replace(&mut self.loaded, empty);
            self.keep(full);
        }
        let pushed = self.loaded.push(slot);
        debug_assert!(pushed.is_ok(), "the loaded magazine has room");
    }

    /// Keeps a magazine of objects as far as the policy allows, else gives it to the depot.
    fn keep(&mut self, magazine: Slot<Magazine<T>>) {
        let most = self.policy.shell_size as usize / Magazine::<T>::CAPACITY;
        if self.stock.len() + 2 < most {
            self.stock.push(magazine);
        } else {
            self.stats.spills += 1;
            self.depot.give_from(magazine, Place::Cache);
        }
    }

    fn empty(&mut self) -> Option<Slot<Magazine<T>>> {
        if self.empties.is_empty() {
            self.empties.extend(self.home.empties().take(EMPTIES));
        }
        self.empties.pop().or_else(|| self.depot.take_empty())
    }

    fn keep_empty(&mut self, magazine: Slot<Magazine<T>>) {
        if self.empties.len() < EMPTIES {
            self.empties.push(magazine);
        } else {
            self.depot.give(magazine);
        }
    }

    /// Sends an emptied magazine back to who filled it.
    fn give_back(&mut self, mut magazine: Slot<Magazine<T>>) {
        match magazine.sender.take() {
            Some(sender) if !std::ptr::eq(sender, self.home) => {
                if let Err(refused) = sender.send_empty(magazine) {
                    self.keep_empty(refused.slot);
                }
            }
            _ => self.keep_empty(magazine),
        }
    }

    #[inline]
    fn free_alien(&mut self, slot: Slot<T>, home: &'static Home<T>) {
        if !std::ptr::eq(home.depot(), self.depot) {
            // Of another memory: nothing of it may be kept here, nor travel in our magazines.
            return home.post(slot);
        }
        match self.alien {
            Alien::Adopt => self.put(slot),
            Alien::Slab => self.depot.give_one(slot),
            Alien::Home | Alien::Adaptive => self.gather(slot, home),
        }
    }

    #[inline]
    fn gather(&mut self, slot: Slot<T>, home: &'static Home<T>) {
        slot.step(Place::InUse, Place::Outbox);
        let Self { outbox, empties, home: own, depot, .. } = self;
        let empty = || {
            if empties.is_empty() {
                empties.extend(own.empties().take(EMPTIES));
            }
            empties.pop().or_else(|| depot.take_empty())
        };
        match outbox.push(home, slot, empty) {
            Ok(gathered) if gathered >= self.policy.defer_outbox as usize => self.post(home.id()),
            Ok(_) => {}
            Err(slot) => {
                slot.step(Place::Outbox, Place::InUse);
                home.post(slot);
            }
        }
    }

    /// Sends what is gathered for the home of this number.
    #[cold]
    #[inline(never)]
    fn post(&mut self, id: u16) {
        let Some((lane, mut magazine)) = self.outbox.close(id) else { return };
        let home = lane.home;
        let way = match self.alien {
            Alien::Adaptive => {
                let missing = home.misses() != mem::replace(&mut lane.course.misses, home.misses());
                let short = mem::take(&mut self.misses) > 0;
                lane.course.vote(vote(home.sleep().is_asleep(), missing, short))
            }
            _ => Way::Home,
        };
        match way {
            Way::Home => {
                magazine.sender = Some(self.home);
                magazine.sent_ns = self.now_ns;
                self.send(home, magazine);
            }
            Way::Adopt => self.adopt(magazine),
            Way::Depot => {
                self.stats.to_depot += magazine.len() as u64;
                self.depot.give_from(magazine, Place::Outbox);
            }
        }
    }

    fn send(&mut self, home: &'static Home<T>, magazine: Slot<Magazine<T>>) {
        let objects = magazine.len() as u64;
        match home.send(magazine, self.bound) {
            Ok(sent) => {
                self.stats.sent_home += objects;
                self.stats.magazines_sent += 1;
                let wake = sent.tell && self.policy.defer_kick_how == Kick::Wake;
                self.stats.wakes += u64::from(sent.woken || (wake && home.sleep().wake()));
            }
            Err(refused) if refused.closed => {
                self.stats.to_depot += objects;
                self.depot.give_from(refused.slot, Place::Outbox);
            }
            Err(refused) => {
                self.stats.overflows += 1;
                match self.policy.defer_overflow {
                    Overflow::Adopt => self.adopt(refused.slot),
                    Overflow::Depot => {
                        self.stats.to_depot += objects;
                        self.depot.give_from(refused.slot, Place::Outbox);
                    }
                }
            }
        }
    }

    fn adopt(&mut self, mut magazine: Slot<Magazine<T>>) {
        self.stats.adopted += magazine.len() as u64;
        magazine.sender = None;
        magazine.step_all(Place::Outbox, Place::Cache);
        self.keep(magazine);
    }
}

/// The way that the present state speaks for: a home that sleeps needs nothing now; one that runs
/// dry, or needs no help of ours, gets what is its own; and who runs dry while the home does not
/// keeps what is at hand.
fn vote(asleep: bool, missing: bool, short: bool) -> Way {
    match (asleep, missing, short) {
        (true, _, _) => Way::Depot,
        (false, false, true) => Way::Adopt,
        _ => Way::Home,
    }
}

fn alien(role: Role, policy: &Policy) -> Alien {
    match role {
        Role::Foreign => policy.free_rx_socket,
        Role::Worker | Role::Device => policy.free_tx_alien,
    }
}

fn bound<T: Recycle>(policy: &Policy) -> Bound {
    let by_bytes = match policy.defer_bytes_max {
        0 => u32::MAX,
        bytes => bytes / T::BYTES,
    };
    let most = policy.defer_max.saturating_sub(1).min(by_bytes);
    let share = u64::from(policy.defer_max) * u64::from(policy.defer_kick_at) / 100;
    let tell_at = if policy.defer_kick_at == 0 { u32::MAX } else { (share as u32).max(1) };
    Bound { most, tell_at }
}

impl<T: Recycle> Drop for Cache<T> {
    /// Leaves nothing behind: what is gathered is sent, what is cached goes to the depot, and the
    /// home closes.
    fn drop(&mut self) {
        self.flush();
        self.home.close();
    }
}

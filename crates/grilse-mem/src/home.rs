//! Homes: who allocated an object, and how it gets back to them.
//!
//! Every thread or device that allocates has a home. An object is stamped with the home of whoever
//! took it; whoever frees it elsewhere sends it there, most often a magazine at a time. Homes are
//! never freed: an object that comes late still finds its home's word, and learns from it that nobody
//! lives there any more. A home that stands empty may be given to the next owner, who then gets what
//! was the last one's.
//!
//! What everybody writes stands on lines of its own: two, as processors fetch lines in pairs.

use std::time::Duration;

use crate::arena::{Recycle, Slot};
use crate::defer::{CountedList, Locked};
use crate::depot::Depot;
use crate::list::{Bound, Chain, List, Refused};
use crate::magazine::Magazine;
use crate::place::Place;
use crate::sleep::Sleep;
use crate::sync::{AtomicU32, Ordering};

/// What kind of owner a home has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A pinned thread that runs poll rounds.
    Worker,
    /// Any other thread: it allocates from a cache of its own, and drains its inbox itself.
    Foreign,
    /// A device, which hands back what it has sent.
    Device,
}

/// The address that objects of one class carry.
#[derive(Debug)]
pub struct Home<T: Recycle> {
    role: Role,
    id: u16,
    depot: &'static Depot<T>,
    /// Full magazines that others sent.
    inbox: Padded<List<Magazine<T>>>,
    /// Objects that came one by one, from whoever had no context.
    strays: Padded<List<T>>,
    /// Objects that came one by one, in the kernel's ways.
    locked: Padded<Locked<T>>,
    /// One for each node, by which those who push from there share it with nobody else.
    counted: Box<[Padded<CountedList<T>>]>,
    /// Empty magazines that come back to who filled them.
    empties: Padded<List<Magazine<T>>>,
    /// The owner's, for all classes.
    sleep: &'static Sleep,
    mood: Padded<Mood>,
    said: Padded<Said>,
}

#[derive(Debug)]
#[repr(align(128))]
struct Padded<T>(T);

/// What those who send look at each time. It is seldom written, so the line stays shared.
#[derive(Debug)]
struct Mood {
    /// How often the owner's cache had to go to the depot, wrapping.
    misses: AtomicU32,
}

/// What the owner last said of itself, for the ledger: written every round.
#[derive(Debug)]
struct Said {
    /// Objects in its cache.
    cached: AtomicU32,
    /// Objects in its outbox.
    outgoing: AtomicU32,
    /// Objects in its end of the slab.
    in_slab: AtomicU32,
    /// Objects that found it closed. Written by those who sent them.
    orphans: AtomicU32,
}

impl<T: Recycle> Home<T> {
    /// A home for the owner number `id`. It lasts as long as the process.
    pub fn new(role: Role, id: u16, depot: &'static Depot<T>) -> &'static Self {
        let sleep = &Box::leak(Box::new(Padded(Sleep::new()))).0;
        Self::of_sleeper(role, id, depot, sleep)
    }

    /// A home of the same owner for objects of another class: one sleep, from which what comes to
    /// either wakes.
    pub fn beside<U: Recycle>(&self, depot: &'static Depot<U>) -> &'static Home<U> {
        Home::of_sleeper(self.role, self.id, depot, self.sleep)
    }

    fn of_sleeper(
        role: Role,
        id: u16,
        depot: &'static Depot<T>,
        sleep: &'static Sleep,
    ) -> &'static Self {
        let said = || AtomicU32::new(0);
        let list_of_2025 = || Padded(CountedList::new(depot.objects()));
        Box::leak(Box::new(Self {
            role,
            id,
            depot,
            inbox: Padded(List::new(depot.magazines(), Place::InUse)),
            strays: Padded(List::new(depot.objects(), Place::Inbox)),
            locked: Padded(Locked::new(depot.objects())),
            counted: depot.all().iter().map(|_| list_of_2025()).collect(),
            empties: Padded(List::new(depot.magazines(), Place::InUse)),
            sleep,
            mood: Padded(Mood { misses: AtomicU32::new(0) }),
            said: Padded(Said {
                cached: said(),
                outgoing: said(),
                in_slab: said(),
                orphans: said(),
            }),
        }))
    }

    /// What kind of owner it has.
    pub fn role(&self) -> Role {
        self.role
    }

    /// The owner's number.
    pub fn id(&self) -> u16 {
        self.id
    }

    /// Where the objects of this home are made.
    pub fn depot(&self) -> &'static Depot<T> {
        self.depot
    }

    /// Sends one object home, and wakes the owner where it sleeps for want of objects. May be called
    /// on any thread and while unwinding: no allocation, and no lock unless somebody is to be woken;
    /// only where the owner is gone does the object go to the depot.
    pub fn post(&self, slot: Slot<T>) {
        match self.strays.0.push(slot, 1, Bound::NONE, Place::InUse) {
            Ok(_) => _ = self.sleep.wake_starving(),
            Err(refused) => {
                self.orphaned(1);
                self.depot.give_one(refused.slot);
            }
        }
    }

    /// How many objects came home and wait.
    pub fn waiting(&self) -> u32 {
        let counted: u32 = self.counted.iter().map(|list| list.0.len()).sum();
        self.inbox.0.weight() + self.strays.0.weight() + self.locked.0.len() + counted
    }

    /// Whether anything came home, empty magazines included, at some moment during the call.
    #[inline]
    pub(crate) fn has_arrivals(&self) -> bool {
        self.waiting() > 0 || self.empties.0.weight() > 0
    }

    /// How many objects the owner's cache held when it last said so.
    pub fn cached(&self) -> u32 {
        self.said.0.cached.load(Ordering::Relaxed)
    }

    /// How many objects the owner was about to send elsewhere when it last said so.
    pub fn outgoing(&self) -> u32 {
        self.said.0.outgoing.load(Ordering::Relaxed)
    }

    /// How many objects the owner's end of the slab held when it last said so.
    pub(crate) fn in_slab(&self) -> u32 {
        self.said.0.in_slab.load(Ordering::Relaxed)
    }

    /// The list of 2022.
    #[inline]
    pub(crate) fn locked(&self) -> &Locked<T> {
        &self.locked.0
    }

    /// The list of 2025, for those on the node at this position.
    #[inline]
    pub(crate) fn counted(&self, position: usize) -> &CountedList<T> {
        &self.counted[position].0
    }

    /// Sends a magazine home, and wakes the owner where it sleeps for want of objects. Gives the
    /// magazine back where the bound stands in the way or the owner is gone.
    pub(crate) fn send(
        &self,
        mut magazine: Slot<Magazine<T>>,
        bound: Bound,
    ) -> Result<Sent, Refused<Magazine<T>>> {
        let objects = magazine.len() as u32;
        magazine.step_all(Place::Outbox, Place::Inbox);
        match self.inbox.0.push(magazine, objects, bound, Place::InUse) {
            Ok(tell) => Ok(Sent { tell, woken: self.sleep.wake_starving() }),
            Err(mut refused) => {
                if refused.closed {
                    self.orphaned(objects);
                }
                refused.slot.step_all(Place::Inbox, Place::Outbox);
                Err(refused)
            }
        }
    }

    /// Sends an empty magazine back.
    pub(crate) fn send_empty(
        &self,
        magazine: Slot<Magazine<T>>,
    ) -> Result<(), Refused<Magazine<T>>> {
        // A handful is enough to go on with; the depot has the rest.
        let bound = Bound { most: 8, tell_at: u32::MAX };
        self.empties.0.push(magazine, 1, bound, Place::InUse).map(drop)
    }

    /// Takes the magazines that came home. For the owner.
    pub(crate) fn magazines(&self) -> Chain<Magazine<T>> {
        self.inbox.0.take()
    }

    /// Takes the objects that came one by one. For the owner.
    pub(crate) fn strays(&self) -> Chain<T> {
        self.strays.0.take()
    }

    /// Takes the empty magazines that came back. For the owner.
    pub(crate) fn empties(&self) -> Chain<Magazine<T>> {
        self.empties.0.take()
    }

    /// Closes the home: what comes from now on goes to the depot, and what came before goes there
    /// now. For the owner, when it stops.
    pub(crate) fn close(&self) {
        for mut magazine in self.inbox.0.close() {
            magazine.step_all(Place::Inbox, Place::InUse);
            self.depot.give(magazine);
        }
        self.empties.0.close().for_each(|magazine| self.depot.give(magazine));
        self.strays.0.close().for_each(|object| self.depot.give_one(object));
        self.locked.0.close().for_each(|object| self.depot.give_one(object));
        for list in &self.counted {
            list.0.close().for_each(|object| self.depot.give_one(object));
        }
        self.say(0, 0, 0);
    }

    /// Opens a closed home for its next owner.
    pub(crate) fn open(&self) {
        self.inbox.0.open();
        self.empties.0.open();
        self.strays.0.open();
        self.locked.0.open();
        self.counted.iter().for_each(|list| list.0.open());
    }

    /// Says how many objects the owner's cache, its outbox and its end of the slab hold.
    pub(crate) fn say(&self, cached: usize, outgoing: usize, in_slab: usize) {
        // Relaxed: figures for the ledger, which is exact when all are idle.
        self.said.0.cached.store(cached as u32, Ordering::Relaxed);
        self.said.0.outgoing.store(outgoing as u32, Ordering::Relaxed);
        self.said.0.in_slab.store(in_slab as u32, Ordering::Relaxed);
    }

    /// Notes that the owner's cache went to the depot.
    pub(crate) fn missed(&self) {
        // Only the owner writes it, so no locked instruction is needed.
        let misses = self.misses();
        self.mood.0.misses.store(misses.wrapping_add(1), Ordering::Relaxed);
    }

    /// How often that was, wrapping.
    pub(crate) fn misses(&self) -> u32 {
        self.mood.0.misses.load(Ordering::Relaxed)
    }

    /// How many objects came here while nobody lived here, wrapping: the depot has them.
    pub fn orphans(&self) -> u32 {
        self.said.0.orphans.load(Ordering::Relaxed)
    }

    /// Notes objects that find the home closed, and go to the depot.
    #[cold]
    pub(crate) fn orphaned(&self, objects: u32) {
        self.said.0.orphans.fetch_add(objects, Ordering::Relaxed);
    }

    /// Sleeps until the owner is woken, unless `ready` says that there is work, and no longer than
    /// `most`. Says whether it was woken, or `ready`; else the time was over, or it returned early.
    /// With `starving`, whatever comes to a home of the owner wakes it; by the kernel's lists, and
    /// without, only what the policy finds worth it does.
    pub fn sleep_until(
        &self,
        starving: bool,
        most: Option<Duration>,
        ready: impl FnOnce() -> bool,
    ) -> bool {
        self.sleep.sleep(starving, most, ready)
    }

    pub(crate) fn sleep(&self) -> &'static Sleep {
        self.sleep
    }
}

/// A magazine that was sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    /// By it the inbox came to the weight at which its owner is to be told.
    pub(crate) tell: bool,
    /// The owner was woken.
    pub(crate) woken: bool,
}

#[cfg(all(test, feature = "audit", not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::Cache;

    #[derive(Debug)]
    struct Object(#[expect(dead_code, reason = "a cell holds something")] u32);

    impl Recycle for Object {
        fn recycle(slot: Slot<Self>) {
            std::mem::forget(slot);
        }
    }

    /// Magazines that are lost on the way: missed by count, and named by the places that their
    /// objects say they are in.
    #[test]
    fn lost_magazines_are_missed_by_place() {
        let depot = Depot::new(200, None, |depot| Object(depot.made())).unwrap();
        let homes = [0, 1].map(|id| Home::new(Role::Worker, id, depot));
        let [mut here, mut there] = homes.map(|home| Cache::new(home).unwrap());
        for _ in 0..60 {
            let slot = here.take().unwrap();
            there.free(slot, homes[0]);
        }
        assert_eq!((homes[0].waiting(), depot.places().at(Place::Inbox)), (60, 60));
        std::mem::forget(homes[0].magazines());
        assert_eq!(homes[0].waiting(), 0, "nobody counts them");
        std::mem::forget(depot.take_for(Place::Cache));
        [here, there].iter_mut().for_each(Cache::flush);
        let (places, counted) = (depot.places(), crate::Ledger::count(depot, homes));
        assert_eq!((places.at(Place::Inbox), places.at(Place::Cache)), (60, 60));
        assert_eq!((counted.travelling, counted.cached, counted.in_use), (0, 0, 120));
        assert_eq!(places.at(Place::InUse), 0, "so these are lost, and not in use");
    }
}

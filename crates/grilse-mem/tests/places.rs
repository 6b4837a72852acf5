//! Where objects are: caches, depots and homes against a set of names, counted at each step.

use std::collections::BTreeSet;

use grilse_mem::{Cache, Depot, Home, Ledger, Magazine, Place, Policy, Recycle, Role, Slot};
use proptest::prelude::*;

#[derive(Debug)]
struct Object {
    depot: &'static Depot<Object>,
    name: u32,
}

impl Recycle for Object {
    fn recycle(slot: Slot<Self>) {
        slot.depot.give_one(slot);
    }
}

fn depot(capacity: u32) -> &'static Depot<Object> {
    Depot::new(capacity, None, |depot| Object { depot, name: depot.made() }).unwrap()
}

#[derive(Clone, Debug)]
enum Op {
    Take(usize),
    TakeBulk(usize),
    Put(usize),
    /// One cache frees what is the other's.
    Free(usize),
    TakeOne,
    GiveOne,
    Drop,
    Post(usize),
    /// Ends a round and begins the next, under this policy.
    Round(usize, usize),
    End(usize),
    Flush(usize),
    /// A cache is dropped, its home closed, and opened again for the next owner.
    Leave(usize),
    /// The home stands closed, while objects come.
    Absent(usize),
}

fn ops() -> impl Strategy<Value = Vec<(Op, usize)>> {
    let who = || 0..2usize;
    let op = prop_oneof![
        8 => who().prop_map(Op::Take),
        1 => who().prop_map(Op::TakeBulk),
        4 => who().prop_map(Op::Put),
        6 => who().prop_map(Op::Free),
        1 => Just(Op::TakeOne),
        1 => Just(Op::GiveOne),
        1 => Just(Op::Drop),
        2 => who().prop_map(Op::Post),
        3 => (who(), 0..Policy::PROFILES.len()).prop_map(|(who, policy)| Op::Round(who, policy)),
        1 => who().prop_map(Op::End),
        1 => who().prop_map(Op::Flush),
        1 => who().prop_map(Op::Leave),
        1 => who().prop_map(Op::Absent),
    ];
    // Each is done some times over, so that magazines fill and run empty.
    prop::collection::vec((op, 1..100usize), 1..60)
}

struct World {
    depot: &'static Depot<Object>,
    homes: [&'static Home<Object>; 2],
    caches: [Option<Cache<Object>>; 2],
    held: Vec<Slot<Object>>,
    names: BTreeSet<u32>,
}

impl World {
    fn new(capacity: u32) -> Self {
        let depot = depot(capacity);
        let homes = [0, 1].map(|id| Home::new(Role::Worker, id, depot));
        Self {
            depot,
            homes,
            caches: homes.map(Cache::new),
            held: Vec::new(),
            names: BTreeSet::new(),
        }
    }

    /// The cache of `who`, who comes back if absent.
    fn cache(&mut self, who: usize) -> &mut Cache<Object> {
        self.caches[who].get_or_insert_with(|| Cache::new(self.homes[who]).unwrap())
    }

    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Take(who) => {
                let taken = self.cache(who).take();
                self.hold(taken);
            }
            Op::TakeBulk(who) => {
                let mut burst = [const { None }; 7];
                let taken = self.cache(who).take_bulk(&mut burst, |slot| slot);
                assert!(burst.iter().position(Option::is_none).unwrap_or(7) == taken);
                burst.into_iter().for_each(|slot| self.hold(slot));
            }
            Op::TakeOne => {
                let taken = self.depot.take_one();
                self.hold(taken);
            }
            Op::Put(who) => _ = self.release().map(|slot| self.cache(who).put(slot)),
            Op::Free(by) => {
                let home = self.homes[1 - by];
                _ = self.release().map(|slot| self.cache(by).free(slot, home));
            }
            Op::GiveOne => _ = self.release().map(|slot| self.depot.give_one(slot)),
            Op::Drop => drop(self.release()),
            Op::Post(who) => _ = self.release().map(|slot| self.homes[who].post(slot)),
            Op::Round(who, policy) => {
                self.cache(who).end();
                self.cache(who).begin(1, &Policy::PROFILES[policy].1);
            }
            Op::End(who) => self.cache(who).end(),
            Op::Flush(who) => {
                self.cache(who).flush();
                assert!(self.cache(who).is_empty() && self.cache(who).outgoing() == 0);
            }
            Op::Leave(who) => {
                self.caches[who] = None;
                self.cache(who);
            }
            Op::Absent(who) => self.caches[who] = None,
        }
    }

    fn hold(&mut self, taken: Option<Slot<Object>>) {
        if let Some(slot) = taken {
            assert!(self.names.insert(slot.name), "{} has one owner", slot.name);
            self.held.push(slot);
        }
    }

    fn release(&mut self) -> Option<Slot<Object>> {
        // From the middle, so that neighbours part.
        let slot = (!self.held.is_empty()).then(|| self.held.swap_remove(self.held.len() / 2))?;
        assert!(self.names.remove(&slot.name));
        Some(slot)
    }

    /// Counts every place by asking whoever is there, and then has the ledger do the same.
    fn check(&mut self) {
        let caches = || self.caches.iter().flatten();
        let cached: usize = caches().map(Cache::len).sum();
        let outgoing: usize = caches().map(Cache::outgoing).sum();
        let waiting: u32 = self.homes.iter().map(|home| home.waiting()).sum();
        let in_slabs: usize = caches().map(Cache::in_slab).sum();
        let (held, stocked) = (self.held.len() as u32, self.depot.stocked() + in_slabs as u32);
        let counts = [stocked, cached as u32, outgoing as u32, waiting, held];
        assert_eq!(self.depot.made(), counts.iter().sum::<u32>(), "{counts:?}");
        assert!(self.depot.made() <= self.depot.capacity());
        if cfg!(feature = "audit") {
            let places = self.depot.places();
            let at = [Place::Depot, Place::Cache, Place::Outbox, Place::Inbox, Place::InUse];
            assert_eq!(counts, at.map(|place| places.at(place)));
        }
    }

    fn check_ledger(&mut self) {
        self.caches.iter_mut().flatten().for_each(Cache::end);
        let ledger = Ledger::count(self.depot, self.homes);
        let places = [ledger.depot, ledger.cached, ledger.travelling, ledger.in_use];
        assert_eq!(ledger.made, places.iter().sum::<u32>());
        let cached: usize = self.caches.iter().flatten().map(Cache::len).sum();
        let in_slabs: usize = self.caches.iter().flatten().map(Cache::in_slab).sum();
        let depot = self.depot.stocked() + in_slabs as u32;
        let waiting: u32 = self.homes.iter().map(|home| home.waiting()).sum();
        assert_eq!(places, [depot, cached as u32, waiting, self.held.len() as u32]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn every_object_is_in_one_place(capacity in 1..400u32, ops in ops()) {
        let mut world = World::new(capacity);
        for (op, times) in &ops {
            for _ in 0..*times {
                world.apply(op);
                world.check();
            }
        }
        world.check_ledger();
        // All can be had again, by whoever is left.
        [0, 1].into_iter().for_each(|who| world.apply(&Op::Absent(who)));
        while let Some(slot) = world.release() {
            drop(slot);
        }
        world.check();
        (0..capacity + 1).for_each(|_| world.apply(&Op::Take(0)));
        prop_assert_eq!(world.names, (0..capacity).collect::<BTreeSet<_>>());
    }
}

fn cache(depot: &'static Depot<Object>) -> Cache<Object> {
    Cache::new(Home::new(Role::Worker, 0, depot)).unwrap()
}

#[test]
fn a_cache_keeps_what_is_warm() {
    let mut cache = cache(depot(1000));
    let first = cache.take().unwrap();
    let name = first.name;
    cache.put(first);
    assert_eq!(cache.take().unwrap().name, name, "last in, first out");
}

#[test]
fn around_a_magazines_edge_nobody_goes_to_the_depot() {
    let depot = depot(1000);
    let mut cache = cache(depot);
    let mut held: Vec<_> =
        (0..3 * Magazine::<Object>::CAPACITY).filter_map(|_| cache.take()).collect();
    held.drain(..Magazine::<Object>::CAPACITY + 1).for_each(|slot| cache.put(slot));
    let stocked = depot.stocked();
    for _ in 0..100 {
        (0..3).for_each(|_| held.extend(cache.take()));
        (0..3).for_each(|_| cache.put(held.pop().unwrap()));
        assert_eq!(depot.stocked(), stocked);
    }
}

#[test]
fn what_was_used_before_comes_first() {
    let depot = depot(1000);
    let mut cache = cache(depot);
    let slot = cache.take().unwrap();
    cache.put(slot);
    drop(cache);
    let made = depot.made();
    let held: Vec<_> = (0..made).filter_map(|_| depot.take_one()).collect();
    assert_eq!((held.len() as u32, depot.made()), (made, made), "no new object is made");
    assert!(depot.take_one().is_some_and(|slot| slot.name == made));
}

/// A home that nobody has sat down at yet keeps what was posted to it.
#[test]
fn what_came_before_the_owner_waits_for_it() {
    let depot = depot(10);
    let home = Home::new(Role::Worker, 0, depot);
    home.post(depot.take_one().unwrap());
    let mut cache = Cache::new(home).unwrap();
    assert_eq!((cache.drain(), cache.len(), home.waiting()), (1, 1, 0));
}

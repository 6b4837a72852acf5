//! Where objects are: caches, depots and homes against a set of names, counted at each step.

use std::collections::BTreeSet;

use grilse_mem::{Cache, Depot, Home, Ledger, Magazine, Recycle, Role, Slot};
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
    Put(usize),
    TakeOne,
    GiveOne,
    Drop,
    Post(usize),
    Collect(usize),
    /// Takes one of what came home, and no more.
    CollectOne(usize),
    /// A cache is dropped, its home closed, and both made anew.
    Leave(usize),
}

fn ops() -> impl Strategy<Value = Vec<(Op, usize)>> {
    let who = || 0..2usize;
    let op = prop_oneof![
        8 => who().prop_map(Op::Take),
        6 => who().prop_map(Op::Put),
        1 => Just(Op::TakeOne),
        1 => Just(Op::GiveOne),
        1 => Just(Op::Drop),
        3 => who().prop_map(Op::Post),
        1 => who().prop_map(Op::Collect),
        1 => who().prop_map(Op::CollectOne),
        1 => who().prop_map(Op::Leave),
    ];
    // Each is done some times over, so that magazines fill and run empty.
    prop::collection::vec((op, 1..100usize), 1..60)
}

struct World {
    depot: &'static Depot<Object>,
    caches: Vec<Cache<Object>>,
    homes: Vec<&'static Home<Object>>,
    old: Vec<&'static Home<Object>>,
    held: Vec<Slot<Object>>,
    names: BTreeSet<u32>,
}

impl World {
    fn new(capacity: u32) -> Self {
        let depot = depot(capacity);
        let caches = (0..2).map(|_| Cache::new(depot).unwrap()).collect();
        let homes = (0..2).map(|id| Home::new(Role::Worker, id, depot)).collect();
        let (old, held) = (Vec::new(), Vec::new());
        Self { depot, caches, homes, old, held, names: BTreeSet::new() }
    }

    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Take(who) => {
                let taken = self.caches[who].take();
                self.hold(taken);
            }
            Op::TakeOne => {
                let taken = self.depot.take_one();
                self.hold(taken);
            }
            Op::Put(who) => _ = self.release().map(|slot| self.caches[who].put(slot)),
            Op::GiveOne => _ = self.release().map(|slot| self.depot.give_one(slot)),
            Op::Drop => drop(self.release()),
            Op::Post(who) => _ = self.release().map(|slot| self.homes[who].post(slot)),
            Op::Collect(who) => {
                for slot in self.homes[who].collect() {
                    self.caches[who].put(slot);
                }
            }
            Op::CollectOne(who) => {
                let taken = self.homes[who].collect().next();
                self.hold(taken);
            }
            Op::Leave(who) => {
                self.homes[who].close();
                self.old.push(self.homes[who]);
                self.homes[who] = Home::new(Role::Worker, who as u16, self.depot);
                self.caches[who] = Cache::new(self.depot).unwrap();
            }
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

    fn check(&self) {
        for (home, cache) in self.homes.iter().zip(&self.caches) {
            home.publish_cached(cache.len());
        }
        let homes = self.homes.iter().chain(&self.old).copied();
        let ledger = Ledger::count(self.depot, homes);
        let cached: usize = self.caches.iter().map(Cache::len).sum();
        let waiting: u32 = self.homes.iter().map(|home| home.waiting()).sum();
        let places = [ledger.depot, ledger.cached, ledger.travelling, ledger.in_use];
        assert_eq!(ledger.made, places.iter().sum::<u32>());
        assert_eq!(places, [self.depot.stocked(), cached as u32, waiting, self.held.len() as u32]);
        assert!(ledger.made <= self.depot.capacity());
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
        // All can be had again, by whoever is left.
        [0, 1].into_iter().for_each(|who| world.apply(&Op::Leave(who)));
        while let Some(slot) = world.release() {
            drop(slot);
        }
        world.check();
        (0..capacity + 1).for_each(|_| world.apply(&Op::Take(0)));
        prop_assert_eq!(world.names, (0..capacity).collect::<BTreeSet<_>>());
    }
}

#[test]
fn a_cache_keeps_what_is_warm() {
    let mut cache = Cache::new(depot(1000)).unwrap();
    let first = cache.take().unwrap();
    let name = first.name;
    cache.put(first);
    assert_eq!(cache.take().unwrap().name, name, "last in, first out");
}

#[test]
fn around_a_magazines_edge_nobody_goes_to_the_depot() {
    let depot = depot(1000);
    let mut cache = Cache::new(depot).unwrap();
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
    let mut cache = Cache::new(depot).unwrap();
    let slot = cache.take().unwrap();
    cache.put(slot);
    drop(cache);
    let made = depot.made();
    let held: Vec<_> = (0..made).filter_map(|_| depot.take_one()).collect();
    assert_eq!((held.len() as u32, depot.made()), (made, made), "no new object is made");
    assert!(depot.take_one().is_some_and(|slot| slot.name == made));
}

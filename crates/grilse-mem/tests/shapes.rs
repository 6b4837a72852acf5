//! Every front, slab model and list, by themselves and while they are exchanged under way.
//!
//! The oracle is a set of names: an object that is taken has no other owner, and whatever the shapes
//! do with those that are free, all can be had again. After each step the places are counted.

#![cfg(not(loom))]

use std::collections::BTreeSet;
use std::sync::mpsc;
use std::thread;

use grilse_mem::{
    Cache, Depot, FlushEnd, Home, Ledger, Place, Policy, Recycle, Role, ShellCache, SlabModel, Slot,
};
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

fn policy(knobs: &[(&str, &str)]) -> Policy {
    let mut policy = Policy::KERNEL_2021;
    knobs.iter().for_each(|(knob, value)| policy.set(knob, value).unwrap());
    policy
}

/// Any policy, with sizes near each other's edges.
fn policies() -> impl Strategy<Value = Policy> {
    let word = |words: &'static [&str]| prop::sample::select(words);
    let knob = |name: &'static str, words| word(words).prop_map(move |value| (name, value));
    let front = (
        knob("shell.cache", &["off", "round", "persistent", "persistent"]),
        knob("shell.size", &["0", "1", "7", "64", "120", "200"]),
        knob("shell.bulk", &["1", "8", "32", "300"]),
        knob("shell.flush", &["1", "8", "32", "300"]),
        knob("shell.flush_end", &["top", "bottom", "magazine"]),
        knob("shell.refill_in_task", &["never", "always", "pressure"]),
        knob("shell.task_use", &["on", "off"]),
        knob("refill.demand", &["fixed", "ewma"]),
    );
    let slab = (
        knob("slab.model", &["slub", "slab", "sheaf", "arena"]),
        knob("slab.cpu_partial", &["0", "8", "52"]),
        knob("slab.min_partial", &["0", "1", "5"]),
    );
    let free = (
        knob("free.tx_alien", &["adopt", "home", "slab", "adaptive"]),
        knob("free.rx_socket", &["adopt", "home", "slab", "adaptive"]),
        knob("free.same_cpu", &["slab", "cache"]),
        knob("defer.max", &["0", "1", "2", "3", "64", "1024"]),
        knob("defer.kick_at", &["0", "50", "100"]),
        knob("defer.kick_how", &["none", "flag", "wake"]),
        knob("defer.overflow", &["adopt", "depot"]),
        knob("defer.list", &["mutex", "counter", "word"]),
        knob("defer.outbox", &["0", "1", "16", "60"]),
    );
    (front, slab, free).prop_map(|(front, slab, free)| {
        let (a, b, c, d, e, f, g, h) = front;
        let (i, j, k) = slab;
        let (l, m, n, o, p, q, r, s, t) = free;
        policy(&[a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t])
    })
}

#[derive(Clone, Debug)]
enum Op {
    Take,
    TakeBulk,
    TakePast,
    Put,
    PutPast,
    /// Frees what is of that number's home.
    Free(usize),
    Begin(Policy),
    /// Begins a round with the policy that the cache has not had last: by name.
    Profile(usize),
    End,
    Flush,
    Leave,
}

const ROLES: [Role; 3] = [Role::Worker, Role::Foreign, Role::Worker];

fn ops() -> impl Strategy<Value = Vec<(usize, Op, usize)>> {
    let op = prop_oneof![
        8 => Just(Op::Take),
        2 => Just(Op::TakeBulk),
        1 => Just(Op::TakePast),
        4 => Just(Op::Put),
        1 => Just(Op::PutPast),
        8 => (0..3usize).prop_map(Op::Free),
        3 => policies().prop_map(Op::Begin),
        1 => (0..Policy::PROFILES.len()).prop_map(Op::Profile),
        2 => Just(Op::End),
        1 => Just(Op::Flush),
        1 => Just(Op::Leave),
    ];
    prop::collection::vec((0..3usize, op, 1..80usize), 1..50)
}

struct World {
    depot: &'static Depot<Object>,
    homes: [&'static Home<Object>; 3],
    caches: Vec<Cache<Object>>,
    held: Vec<Slot<Object>>,
    names: BTreeSet<u32>,
}

impl World {
    fn new(capacity: u32) -> Self {
        let depot = depot(capacity);
        let homes = [0, 1, 2].map(|id| Home::new(ROLES[id], id as u16, depot));
        let caches = homes.iter().map(|home| Cache::new(home).unwrap()).collect();
        Self { depot, homes, caches, held: Vec::new(), names: BTreeSet::new() }
    }

    fn apply(&mut self, who: usize, op: &Op) {
        let cache = &mut self.caches[who];
        match op {
            Op::Take => {
                let taken = cache.take();
                self.hold(taken);
            }
            Op::TakePast => {
                let taken = cache.take_past_front();
                self.hold(taken);
            }
            Op::TakeBulk => {
                let mut burst = [const { None }; 11];
                let taken = cache.take_bulk(&mut burst, |slot| slot);
                assert_eq!(burst.iter().position(Option::is_none).unwrap_or(11), taken);
                burst.into_iter().for_each(|slot| self.hold(slot));
            }
            Op::Put => _ = self.release().map(|slot| self.caches[who].put(slot)),
            Op::PutPast => _ = self.release().map(|slot| self.caches[who].put_past_front(slot)),
            Op::Free(of) => {
                let home = self.homes[*of];
                _ = self.release().map(|slot| self.caches[who].free(slot, home));
            }
            Op::Begin(policy) => cache.begin(1, policy),
            Op::Profile(number) => cache.begin(1, &Policy::PROFILES[*number].1),
            Op::End => cache.end(),
            Op::Flush => {
                cache.flush();
                assert_eq!((cache.len(), cache.outgoing(), cache.in_slab()), (0, 0, 0));
            }
            Op::Leave => {
                // The home closes, and opens for the next one.
                self.caches.remove(who);
                self.caches.insert(who, Cache::new(self.homes[who]).unwrap());
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
        let sum = |count: fn(&Cache<Object>) -> usize| -> u32 {
            self.caches.iter().map(count).sum::<usize>() as u32
        };
        let waiting: u32 = self.homes.iter().map(|home| home.waiting()).sum();
        let free = self.depot.stocked() + sum(Cache::in_slab);
        let held = self.held.len() as u32;
        let counts = [free, sum(Cache::len), sum(Cache::outgoing), waiting, held];
        assert_eq!(self.depot.made(), counts.iter().sum::<u32>(), "{counts:?}");
        if cfg!(feature = "audit") {
            let places = self.depot.places();
            let at = [Place::Depot, Place::Cache, Place::Outbox, Place::Inbox, Place::InUse];
            assert_eq!(counts, at.map(|place| places.at(place)));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 256,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]
    #[test]
    fn nothing_is_lost_between_any_two_policies(capacity in 1..500u32, ops in ops()) {
        let mut world = World::new(capacity);
        for (who, op, times) in &ops {
            // Rounds and ends are done once: what lies between them matters.
            let once = !matches!(op, Op::Take | Op::TakeBulk | Op::Put | Op::Free(_));
            for _ in 0..if once { 1 } else { *times } {
                world.apply(*who, op);
                world.check();
            }
        }
        for cache in &mut world.caches {
            cache.end();
        }
        let ledger = Ledger::count(world.depot, world.homes);
        prop_assert_eq!(ledger.in_use as usize, world.held.len());
        // Whatever the others last worked by, who flushes leaves all to the one that is left.
        while let Some(slot) = world.release() {
            drop(slot);
        }
        world.caches.truncate(1);
        world.caches[0].drain();
        (0..capacity + 1).for_each(|_| world.apply(0, &Op::Take));
        prop_assert_eq!(world.names, (0..capacity).collect::<BTreeSet<_>>());
    }
}

fn cache_of(depot: &'static Depot<Object>, role: Role, policy: &Policy) -> Cache<Object> {
    let mut cache = Cache::new(Home::new(role, 0, depot)).unwrap();
    cache.begin(0, policy);
    cache
}

fn take(cache: &mut Cache<Object>, count: usize) -> Vec<Slot<Object>> {
    (0..count).map(|_| cache.take().unwrap()).collect()
}

fn names<'a>(slots: impl IntoIterator<Item = &'a Slot<Object>>) -> Vec<u32> {
    slots.into_iter().map(|slot| slot.name).collect()
}

/// The kernel's figures: 64 at most, refilled by 16; by the 64th put 32 go, from the end that the
/// policy names.
#[test]
fn the_array_refills_in_bulk_and_gives_up_one_end() {
    for (end, kept) in [("top", 0..32), ("bottom", 32..64)] {
        let knobs = [("shell.flush_end", end), ("free.same_cpu", "cache"), ("slab.model", "slab")];
        let mut cache = cache_of(depot(256), Role::Worker, &policy(&knobs));
        let mut slots = take(&mut cache, 1);
        assert_eq!(cache.len(), 15, "one refill brings 16");
        slots.extend(take(&mut cache, 79));
        assert_eq!((cache.len(), cache.stats().refills), (0, 5));
        slots.truncate(64);
        let put = names(&slots);
        for (already, slot) in slots.into_iter().enumerate() {
            assert_eq!(cache.len(), already);
            cache.put(slot);
        }
        assert_eq!((cache.len(), cache.stats().spills), (32, 1));
        let left = names(&take(&mut cache, 32));
        assert!(left.iter().eq(put[kept].iter().rev()), "last in, first out");
    }
}

#[test]
fn a_task_takes_one_by_one_where_it_may_not_refill() {
    let held = |knobs: &[(&str, &str)], takes: usize| {
        let mut cache = cache_of(depot(256), Role::Foreign, &policy(knobs));
        let slots = take(&mut cache, takes);
        let len = cache.len();
        slots.into_iter().for_each(|slot| cache.put(slot));
        (len, cache.len())
    };
    let task = ("shell.task_use", "on");
    let refill = |when| [task, ("shell.refill_in_task", when)];
    assert_eq!(held(&refill("never"), 5), (0, 5), "but it keeps what it frees");
    assert_eq!(held(&refill("always"), 5), (11, 16));
    assert_eq!(held(&refill("pressure"), 1), (0, 1), "one take found it empty");
    assert_eq!(held(&refill("pressure"), 2), (15, 17), "two did");
    assert_eq!(held(&[("shell.task_use", "off")], 5), (0, 0));
    assert_eq!(held(&[task, ("shell.cache", "off")], 5), (0, 0));
}

#[test]
fn a_round_only_cache_ends_with_its_round() {
    for end in ["top", "magazine"] {
        let knobs = [("shell.cache", "round"), ("shell.flush_end", end)];
        let mut cache = cache_of(depot(256), Role::Worker, &policy(&knobs));
        drop(take(&mut cache, 3));
        assert!(!cache.is_empty());
        cache.end();
        assert!(cache.is_empty());
        assert_eq!(policy(&knobs).shell_cache, ShellCache::Round);
    }
}

/// A refill comes to what the last rounds used.
#[test]
fn a_refill_follows_demand() {
    let policy = policy(&[("refill.demand", "ewma"), ("shell.size", "128")]);
    let mut cache = cache_of(depot(1024), Role::Worker, &policy);
    let mut per_round = 0;
    for _ in 0..40 {
        cache.begin(0, &policy);
        let refills = cache.stats().refills;
        take(&mut cache, 40).into_iter().for_each(|slot| cache.put_past_front(slot));
        per_round = cache.stats().refills - refills;
        cache.end();
    }
    assert!((1..=2).contains(&per_round), "{per_round}");
}

/// What one model freed is there for every other.
#[test]
fn each_model_finds_what_the_others_freed() {
    let models = ["slub", "slab", "sheaf", "arena"];
    for (from, to) in models.into_iter().flat_map(|from| models.map(|to| (from, to))) {
        let depot = depot(100);
        let mut first = cache_of(depot, Role::Worker, &policy(&[("slab.model", from)]));
        let slots = take(&mut first, 100);
        assert!(first.take().is_none());
        slots.into_iter().for_each(|slot| first.put(slot));
        drop(first);
        let mut second = cache_of(depot, Role::Worker, &policy(&[("slab.model", to)]));
        let all: BTreeSet<_> = names(&take(&mut second, 100)).into_iter().collect();
        assert_eq!(all.len(), 100, "{from} to {to}");
    }
}

/// A slab is handed out by its cells in order; what is freed to it elsewhere comes back newest
/// first when it is worked on again.
#[test]
fn slub_works_on_one_slab_at_a_time() {
    let knobs = [("slab.model", "slub"), ("shell.cache", "off")];
    let depot = depot(64);
    let mut cache = cache_of(depot, Role::Worker, &policy(&knobs));
    let mut slots = take(&mut cache, 16);
    assert_eq!(names(&slots), (0..16).collect::<Vec<_>>());
    assert_eq!(depot.made(), 16);
    slots.extend(take(&mut cache, 1));
    assert_eq!((depot.made(), cache.in_slab()), (32, 15));
    // The first slab is full, the second is active: a free to the one is shared, to the other not.
    let own = slots.pop().unwrap();
    cache.put(own);
    assert_eq!((cache.in_slab(), depot.stocked()), (16, 0));
    slots.drain(..3).for_each(|slot| cache.put(slot));
    assert_eq!((cache.in_slab(), depot.stocked()), (16, 3));
    let rest = take(&mut cache, 16);
    assert!(rest.iter().all(|slot| slot.name >= 16));
    assert_eq!(names(&take(&mut cache, 3)), [2, 1, 0], "its own partial slab comes next");
}

/// Slabs that are wholly free: the node keeps so many, the others serve as new ones; and no object
/// of theirs is made anew.
#[test]
fn slub_uses_empty_slabs_again() {
    for cpu_partial in ["0", "8", "52"] {
        for min_partial in ["0", "2", "64"] {
            let knobs = [
                ("slab.model", "slub"),
                ("shell.cache", "off"),
                ("slab.cpu_partial", cpu_partial),
                ("slab.min_partial", min_partial),
            ];
            let depot = depot(1000);
            let mut cache = cache_of(depot, Role::Worker, &policy(&knobs));
            for _ in 0..3 {
                let slots = take(&mut cache, 320);
                assert_eq!(depot.made(), 320);
                slots.into_iter().for_each(|slot| cache.put(slot));
                assert_eq!(depot.stocked() + cache.in_slab() as u32, 320);
            }
        }
    }
}

/// Three threads each hand to the next what they took: every free is a remote one, to full slabs,
/// to partial ones and to active ones, while the policies turn.
#[test]
fn slabs_are_freed_to_from_everywhere() {
    for knobs in [
        [("slab.cpu_partial", "52"), ("shell.cache", "off")],
        [("slab.cpu_partial", "8"), ("shell.cache", "persistent")],
        [("slab.cpu_partial", "0"), ("shell.cache", "off")],
    ] {
        const ROUNDS: usize = 2000;
        let depot = depot(1024);
        let mut policy = policy(&knobs);
        policy.slab_model = SlabModel::Slub;
        policy.slab_min_partial = 1;
        let homes = [0, 1, 2].map(|id| Home::new(Role::Worker, id, depot));
        let (out, mut into): (Vec<_>, Vec<_>) =
            (0..3).map(|_| mpsc::sync_channel::<Vec<Slot<Object>>>(2)).unzip();
        into.rotate_left(1);
        let threads: Vec<_> = homes
            .into_iter()
            .zip(out.into_iter().zip(into))
            .map(|(home, (out, into))| {
                thread::spawn(move || {
                    let mut cache = Cache::new(home).unwrap();
                    for round in 0..ROUNDS {
                        let turned = Policy { slab_model: SlabModel::Sheaf, ..policy };
                        let now = if round % 400 == 399 { &turned } else { &policy };
                        cache.begin(0, now);
                        let wanted = 1 + round * 7 % 40;
                        let took = (0..wanted).map_while(|_| cache.take()).collect();
                        // Whoever does not listen any more has gone through all rounds.
                        _ = out.send(took);
                        let came = into.recv().unwrap();
                        came.into_iter().for_each(|slot| cache.put(slot));
                        cache.end();
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(depot.stocked(), depot.made());
        let mut cache = cache_of(depot, Role::Worker, &policy);
        assert_eq!(names(&take(&mut cache, 1024)).into_iter().collect::<BTreeSet<_>>().len(), 1024);
    }
}

/// The kernel's lists, through the cache: each object is posted as it is freed, the bound holds, and
/// what is one too many is adopted or goes to the slab.
#[test]
fn freed_objects_go_home_one_by_one() {
    for (list, fit) in [("mutex", 64), ("counter", 63)] {
        for (overflow, adopted) in [("adopt", 100 - fit), ("depot", 0)] {
            let mut knobs = policy(&[("defer.list", list), ("defer.overflow", overflow)]);
            (knobs.defer_max, knobs.free_tx_alien) = (64, grilse_mem::Alien::Home);
            let depot = depot(256);
            let homes = [0, 1].map(|id| Home::new(Role::Worker, id, depot));
            let [mut here, mut away] = homes.map(|home| Cache::new(home).unwrap());
            here.begin(0, &knobs);
            away.begin(0, &knobs);
            for slot in take(&mut here, 100) {
                away.free(slot, homes[0]);
            }
            assert_eq!((homes[0].waiting(), away.len()), (fit, adopted as usize));
            let stats = away.stats();
            assert_eq!((stats.sent_home, stats.overflows), (fit.into(), (100 - fit).into()));
            assert_eq!(here.drain(), fit as usize);
            assert_eq!(homes[0].waiting(), 0);
            assert_eq!(knobs.shell_flush_end, FlushEnd::Top);
        }
    }
}

/// `shell.prefetch_next`: each take that leaves something asks for what the next one will return.
#[test]
fn an_array_prefetches_where_it_should() {
    for (set, prefetches) in [("on", 30), ("off", 0)] {
        let policy = policy(&[
            ("shell.cache", "persistent"),
            ("shell.size", "64"),
            ("shell.bulk", "32"),
            ("shell.prefetch_next", set),
        ]);
        let depot = depot(100);
        let mut cache = Cache::new(Home::new(Role::Worker, 0, depot)).unwrap();
        cache.begin(0, &policy);
        // The first and the last refill, by another way; the one before leaves nothing to fetch.
        let held: Vec<_> = (0..33).map(|_| cache.take().unwrap()).collect();
        cache.end();
        assert_eq!(cache.stats().prefetches, prefetches);
        held.into_iter().for_each(|slot| cache.put(slot));
    }
}

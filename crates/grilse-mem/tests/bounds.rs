//! How much a cache holds, whatever the policy; and that what it lacked comes as soon as it can.

#![cfg(not(any(loom, shuttle)))]

use grilse_mem::{Alien, Cache, Depot, Home, Magazine, Policy, Recycle, Role, ShellCache, Slot};
use proptest::prelude::*;

#[derive(Debug)]
struct Object {
    depot: &'static Depot<Object>,
    _bytes: [u64; 31],
}

impl Recycle for Object {
    const BYTES: u32 = 1000;

    fn recycle(slot: Slot<Self>) {
        slot.depot.give_one(slot);
    }
}

fn depot(capacity: u32) -> &'static Depot<Object> {
    Depot::new(capacity, None, |depot| Object { depot, _bytes: [0; 31] }).unwrap()
}

/// Two magazines are always at hand; an array holds what `shell.size` says, and nothing without it.
fn most(policy: &Policy, role: Role) -> usize {
    let two = 2 * Magazine::<Object>::CAPACITY;
    let task = role == Role::Foreign && !policy.shell_task_use;
    match policy.shell_flush_end {
        _ if policy.shell_cache == ShellCache::Off || task => 0,
        grilse_mem::FlushEnd::Magazine => two.max(policy.shell_size as usize),
        _ => policy.shell_size as usize,
    }
}

/// Every profile, with every size.
fn policies() -> impl Strategy<Value = Policy> {
    let size = prop_oneof![0..4u32, 59..62u32, 119..122u32, 0..=1024u32];
    let profile = 0..Policy::PROFILES.len();
    (profile, size, 1..=1024u32, 1..=1024u32, any::<bool>()).prop_map(
        |(profile, size, bulk, flush, magazines)| {
            let mut policy = Policy::PROFILES[profile].1;
            (policy.shell_size, policy.shell_bulk, policy.shell_flush) = (size, bulk, flush);
            if magazines {
                policy.shell_flush_end = grilse_mem::FlushEnd::Magazine;
            }
            policy
        },
    )
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Take(usize),
    Put(usize),
    Away(usize),
    Come,
    Round,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let n = || 1..400usize;
    let op = prop_oneof![
        n().prop_map(Op::Take),
        n().prop_map(Op::Put),
        n().prop_map(Op::Away),
        Just(Op::Come),
        Just(Op::Round),
    ];
    prop::collection::vec(op, 1..30)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// A cache takes, puts and gets back more than it may keep, under one policy and then another:
    /// it never holds more than the one in force says. Flushed, it holds nothing.
    #[test]
    fn caches_hold_what_the_policy_says(
        policies in [policies(), policies()],
        role in prop::sample::select(&[Role::Worker, Role::Foreign, Role::Device][..]),
        ops in ops(),
    ) {
        let depot = depot(1500);
        let homes = [(role, 0), (Role::Worker, 1)].map(|(role, id)| Home::new(role, id, depot));
        let [mut cache, mut other] = homes.map(|home| Cache::new(home).unwrap());
        let mut held = Vec::new();
        for policy in policies {
            cache.begin(0, &policy);
            other.begin(0, &policy);
            let most = most(&policy, role);
            prop_assert!(cache.len() <= most, "{} of {most} at once", cache.len());
            for op in &ops {
                match *op {
                    Op::Take(n) => held.extend((0..n).map_while(|_| cache.take())),
                    Op::Put(n) => {
                        for slot in held.drain(..n.min(held.len())) {
                            cache.put(slot);
                            prop_assert!(cache.len() <= most, "{} of {most}", cache.len());
                        }
                    }
                    Op::Away(n) => {
                        held.drain(..n.min(held.len())).for_each(|slot| other.free(slot, homes[0]));
                        other.end();
                    }
                    Op::Come => _ = cache.drain(),
                    Op::Round => {
                        cache.end();
                        cache.resume(0);
                    }
                }
                prop_assert!(cache.len() <= most, "{} of {most} after {op:?}", cache.len());
            }
        }
        held.drain(..).for_each(|slot| cache.put(slot));
        other.flush();
        cache.flush();
        prop_assert_eq!((cache.len(), cache.in_slab(), cache.outgoing()), (0, 0, 0));
        prop_assert_eq!((depot.stocked(), homes[0].waiting()), (depot.made(), 0));
    }
}

fn homing() -> Policy {
    Policy { free_tx_alien: Alien::Home, defer_outbox: 0, ..Policy::GRILSE }
}

/// A class that is exhausted says so and counts it; the first object that is back can be had,
/// whichever way it came.
#[test]
fn an_exhausted_class_counts_and_recovers() {
    for (name, policy) in Policy::PROFILES {
        let depot = depot(100);
        let homes = [0, 1].map(|id| Home::new(Role::Worker, id, depot));
        let [mut here, mut away] = homes.map(|home| Cache::new(home).unwrap());
        here.begin(0, policy);
        away.begin(0, policy);
        let mut held: Vec<_> = std::iter::from_fn(|| here.take()).collect();
        assert_eq!((held.len(), here.stats().exhausted), (100, 1), "{name}");
        assert!(here.take().is_none());
        assert_eq!(here.stats().exhausted, 2);
        here.free(held.pop().unwrap(), homes[0]);
        held.push(here.take().unwrap());
        homes[0].post(held.pop().unwrap());
        here.resume(1);
        held.push(here.take().unwrap());
        away.free(held.pop().unwrap(), homes[0]);
        away.flush();
        here.resume(2);
        held.push(here.take().unwrap());
        assert_eq!((held.len(), here.stats().exhausted), (100, 2), "{name}");
    }
}

/// `defer.drain_eager`: a cache that runs dry looks at its inbox at once, or not before its next
/// round.
#[test]
fn an_eager_home_drains_when_its_cache_is_empty() {
    for eager in [true, false] {
        let policy = Policy { defer_drain_eager: eager, ..homing() };
        let depot = depot(60);
        let homes = [0, 1].map(|id| Home::new(Role::Worker, id, depot));
        let [mut here, mut away] = homes.map(|home| Cache::new(home).unwrap());
        here.begin(0, &policy);
        away.begin(0, &policy);
        let held: Vec<_> = std::iter::from_fn(|| here.take()).collect();
        held.into_iter().for_each(|slot| away.free(slot, homes[0]));
        away.end();
        assert_eq!(homes[0].waiting(), 60);
        assert_eq!(here.take().is_some(), eager);
        here.resume(1);
        assert!(here.take().is_some());
    }
}

/// `defer.bytes_max`: as many objects wait as their bytes allow, by each shape of the list.
#[test]
fn what_waits_is_bounded_by_bytes() {
    for list in ["mutex", "counter", "word"] {
        for (bytes, fit) in [(1, 0), (999, 0), (1000, 1), (20_500, 20), (0, 80)] {
            let mut policy = Policy { defer_bytes_max: bytes, ..homing() };
            policy.set("defer.list", list).unwrap();
            let depot = depot(80);
            let homes = [0, 1].map(|id| Home::new(Role::Worker, id, depot));
            let [mut here, mut away] = homes.map(|home| Cache::new(home).unwrap());
            here.begin(0, &policy);
            away.begin(0, &policy);
            let held: Vec<_> = std::iter::from_fn(|| here.take()).collect();
            held.into_iter().for_each(|slot| away.free(slot, homes[0]));
            away.end();
            assert_eq!(homes[0].waiting(), fit, "{list}, {bytes} bytes");
            assert_eq!(away.stats().overflows, u64::from(80 - fit));
        }
    }
}

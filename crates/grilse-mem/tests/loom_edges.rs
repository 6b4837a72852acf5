//! Models of the shipped files: every way in which a few threads can interleave, and every value
//! that a load may then see.
//!
//! Built with `--cfg loom` only; `.ci/loom` runs them, and runs each again with the edge that it
//! is about taken away (`GRILSE_WEAKEN`, see `src/sync.rs`), when it must fail. Each model counts
//! how often the case that it is about came up: one that never did proves nothing.

#![cfg(loom)]

use std::sync::atomic::{AtomicUsize, Ordering};

use grilse_mem::{
    Arena, Counted, Depot, FramePool, FrameSlice, Home, Recycle, Role, Share, Shared, Slot,
};
use loom::thread;

#[derive(Debug)]
struct Object(u32);

impl Recycle for Object {
    fn recycle(slot: Slot<Self>) {
        std::mem::forget(slot);
    }
}

/// Runs the model, and checks that its interesting case came up.
fn model(seen: &'static AtomicUsize, body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(body);
    assert!(seen.load(Ordering::Relaxed) > 0, "the interesting case never came up");
}

fn depot() -> &'static Depot<Object> {
    Depot::new(2, None, |depot| Object(depot.made())).unwrap()
}

/// Two threads post to a home that collects meanwhile: each object arrives once, with what its
/// sender wrote.
#[test]
fn inbox_push_and_take() {
    static SEEN: AtomicUsize = AtomicUsize::new(0);
    model(&SEEN, || {
        let depot = depot();
        let home = Home::new(Role::Worker, 0, depot);
        let senders: Vec<_> = (0..2)
            .map(|number| {
                let mut slot = depot.take_one().unwrap();
                thread::spawn(move || {
                    slot.0 = 100 + number;
                    home.post(slot);
                })
            })
            .collect();
        thread::yield_now();
        let mut got: Vec<u32> = home.collect().map(|slot| slot.0).collect();
        if !got.is_empty() {
            SEEN.fetch_add(1, Ordering::Relaxed);
        }
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        got.extend(home.collect().map(|slot| slot.0));
        got.sort_unstable();
        assert_eq!(got, [100, 101]);
    });
}

/// Two threads post to a home that closes meanwhile: each object ends in the depot.
#[test]
fn inbox_push_and_close() {
    static SEEN: AtomicUsize = AtomicUsize::new(0);
    model(&SEEN, || {
        let depot = depot();
        let home = Home::new(Role::Worker, 0, depot);
        let senders: Vec<_> = (0..2)
            .map(|number| {
                let mut slot = depot.take_one().unwrap();
                thread::spawn(move || {
                    slot.0 = 100 + number;
                    home.post(slot);
                })
            })
            .collect();
        thread::yield_now();
        if home.waiting() == 1 {
            SEEN.fetch_add(1, Ordering::Relaxed);
        }
        home.close();
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        assert_eq!((home.waiting(), depot.stocked()), (0, 2));
        let mut got = [depot.take_one().unwrap().0, depot.take_one().unwrap().0];
        got.sort_unstable();
        assert_eq!(got, [100, 101]);
    });
}

/// Two threads redeem one index: one of them gets the cell, and all that was written to it.
#[test]
fn park_and_unpark() {
    static SEEN: AtomicUsize = AtomicUsize::new(0);
    model(&SEEN, || {
        let arena = Arena::<Object>::reserve(1, None).unwrap();
        let mut slot = arena.carve(Object(0)).ok().unwrap();
        let finders: Vec<_> =
            (0..2).map(|_| thread::spawn(move || arena.unpark(0).map(|slot| slot.0))).collect();
        slot.0 = 7;
        arena.park(slot).unwrap();
        let found: Vec<u32> = finders.into_iter().filter_map(|f| f.join().unwrap()).collect();
        match found[..] {
            [7] => _ = SEEN.fetch_add(1, Ordering::Relaxed),
            // Still parked. That it can be redeemed now is not asserted: loom may place a swap that
            // read the first 0 behind the store, which no machine does.
            [] => {}
            _ => panic!("redeemed twice, or half written: {found:?}"),
        }
    });
}

struct Value {
    number: u32,
    freed: &'static AtomicUsize,
}

impl Share for Value {
    fn recycle(slot: Slot<Counted<Self>>) {
        slot.freed.fetch_add(1, Ordering::Relaxed);
        std::mem::forget(slot);
    }
}

/// Two owners read and let go at once: the cell is freed once, after both have read it.
#[test]
fn shared_last_owner() {
    static SEEN: AtomicUsize = AtomicUsize::new(0);
    model(&SEEN, || {
        let freed: &'static AtomicUsize = Box::leak(Box::default());
        let arena = Arena::<Counted<Value>>::reserve(1, None).unwrap();
        let slot = arena.carve(Counted::new(Value { number: 7, freed })).ok().unwrap();
        let here = Shared::new(slot);
        let there = here.clone();
        let other = thread::spawn(move || {
            assert_eq!(there.number, 7);
            drop(there);
            freed.load(Ordering::Relaxed)
        });
        assert_eq!(here.number, 7);
        drop(here);
        SEEN.fetch_add(other.join().unwrap(), Ordering::Relaxed);
        assert_eq!(freed.load(Ordering::Relaxed), 1);
    });
}

/// An owner takes the cell back to write, while the other reads and lets go.
#[test]
fn shared_into_slot() {
    static SEEN: AtomicUsize = AtomicUsize::new(0);
    model(&SEEN, || {
        let freed: &'static AtomicUsize = Box::leak(Box::default());
        let arena = Arena::<Counted<Value>>::reserve(1, None).unwrap();
        let slot = arena.carve(Counted::new(Value { number: 7, freed })).ok().unwrap();
        let here = Shared::new(slot);
        let there = here.clone();
        let other = thread::spawn(move || assert_eq!(there.number, 7));
        thread::yield_now();
        match here.into_slot() {
            Ok(mut slot) => {
                slot.number = 8;
                SEEN.fetch_add(1, Ordering::Relaxed);
            }
            Err(here) => drop(here),
        }
        other.join().unwrap();
        assert_eq!(freed.load(Ordering::Relaxed), 1);
    });
}

/// Two owners of a frame let go at once, and the pool's owner takes it again to write.
#[test]
fn frame_last_owner() {
    static SEEN: AtomicUsize = AtomicUsize::new(0);
    model(&SEEN, || {
        let mut pool = FramePool::new(1, 64, None).unwrap();
        let here = pool.take().unwrap();
        let there = here.clone();
        let reader = |frame: FrameSlice| assert_eq!(frame.bytes()[0], 0);
        let others = [here, there].map(|frame| thread::spawn(move || reader(frame)));
        thread::yield_now();
        if let Some(mut frame) = pool.take() {
            assert!(frame.bytes_mut().is_some());
            SEEN.fetch_add(1, Ordering::Relaxed);
        }
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(pool.ledger().in_use, 0);
    });
}

/// The owner who is left writes, as soon as the other is seen to be gone.
#[test]
fn frame_sole_owner_writes() {
    static SEEN: AtomicUsize = AtomicUsize::new(0);
    model(&SEEN, || {
        let mut pool = FramePool::new(1, 64, None).unwrap();
        let mut here = pool.take().unwrap();
        let there = here.clone();
        let other = thread::spawn(move || assert!(there.bytes()[0] <= 1));
        thread::yield_now();
        if let Some(bytes) = here.bytes_mut() {
            bytes[0] = 1;
            SEEN.fetch_add(1, Ordering::Relaxed);
        }
        other.join().unwrap();
        drop(here);
        assert_eq!(pool.ledger().in_use, 0);
    });
}

//! Models of shared owners and frames, in the shipped files: every way in which a few threads can interleave, and every value
//! that a load may then see.
//!
//! Built with `--cfg loom` only; `.ci/loom` runs them, and runs each again with the edge that it
//! is about taken away (`GRILSE_WEAKEN`, see `src/sync.rs`), when it must fail. Each model counts
//! how often the case that it is about came up: one that never did proves nothing.

#![cfg(loom)]

use std::sync::atomic::{AtomicUsize, Ordering};

use grilse_mem::{Arena, Counted, FramePool, FrameSlice, Share, Shared, Slot};
use loom::thread;

/// Runs the model, and checks that its interesting case came up.
fn model(seen: &'static AtomicUsize, body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(body);
    assert!(seen.load(Ordering::Relaxed) > 0, "the interesting case never came up");
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

//! Models of the page pool (target T5): producers, an owner that refills, and a pool that closes.
//!
//! As `loom_edges.rs`: built with `--cfg loom` only, run by `.ci/loom`, each model once more with
//! an edge taken away.

#![cfg(loom)]

use std::sync::atomic::{AtomicUsize, Ordering};

use grilse_mem::{FramePool, FrameSlice, Returns};
use loom::thread;

/// Runs the model, and checks that its interesting case came up.
fn model(seen: &'static AtomicUsize, body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(body);
    assert!(seen.load(Ordering::Relaxed) > 0, "the interesting case never came up");
}

fn read(frame: &FrameSlice) {
    assert_eq!(frame.bytes().len(), 64);
}

/// One producer gives back a chain of two, another a single frame, while the owner refills; then
/// the pool closes with frames out, and is done with when the last is back: none was lost, none
/// came twice, and all reads came before the memory went.
#[test]
fn pool_return_refill_close() {
    static SEEN: AtomicUsize = AtomicUsize::new(0);
    model(&SEEN, || {
        let mut pool = FramePool::new(3, 64, None).unwrap();
        let frames = [(); 3].map(|()| pool.take().unwrap());
        let [one, two, three] = frames;
        let bulk = thread::spawn(move || {
            let mut returns = Returns::new();
            for frame in [one, two] {
                read(&frame);
                returns.free(frame);
            }
            returns.end();
        });
        let single = thread::spawn(move || {
            read(&three);
            drop(three);
        });
        thread::yield_now();
        let again = pool.take();
        let closing = pool.close();
        let in_flight = closing.in_flight();
        assert!(in_flight <= 3);
        if let Some(mut frame) = again {
            assert!(in_flight >= 1 && frame.bytes_mut().is_some());
            if in_flight > 1 {
                SEEN.fetch_add(1, Ordering::Relaxed);
            }
        }
        // Done with at once, where all are back; the edge is then the list's alone.
        let closing = match closing.try_finish() {
            Ok(()) => None,
            Err(closing) => Some(closing),
        };
        bulk.join().unwrap();
        single.join().unwrap();
        if let Some(closing) = closing {
            assert_eq!(closing.in_flight(), 0);
            closing.try_finish().unwrap();
        }
    });
}

/// The owner's own thread frees directly, while another one holds the other share.
#[test]
fn pool_direct_last_owner() {
    static SEEN: AtomicUsize = AtomicUsize::new(0);
    model(&SEEN, || {
        let mut pool = FramePool::new(1, 64, None).unwrap();
        let mut returns = Returns::new();
        let here = pool.take_with(&mut returns).unwrap();
        let there = here.clone();
        let other = thread::spawn(move || {
            read(&there);
            drop(there);
        });
        read(&here);
        returns.free(here);
        if returns.held(&pool) == 1 {
            SEEN.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(mut frame) = pool.take_with(&mut returns) {
            assert!(frame.bytes_mut().is_some());
        }
        other.join().unwrap();
        returns.end();
        assert_eq!(pool.ledger().in_use, 0);
    });
}

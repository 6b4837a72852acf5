//! Models of a packet and its clone that end on two threads, down to the shipped atomics.
//!
//! Built with `--cfg loom` only, by `.ci/loom`; see `grilse-mem/src/models.rs`.

#![cfg(loom)]

use std::sync::atomic::{AtomicUsize, Ordering};

use grilse_mem::Role;
use grilse_packet::{Ctx, Memory, Pair, Skb};
use loom::thread;

fn model(body: impl Fn(&'static AtomicUsize) + Sync + Send + 'static) {
    let seen: &'static AtomicUsize = Box::leak(Box::default());
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(move || body(seen));
    assert!(seen.load(Ordering::Relaxed) > 0, "the interesting case never came up");
}

fn pair(ctx: &mut Ctx) -> (Pair, Skb) {
    let mut skb = ctx.take().unwrap();
    skb.put(4).unwrap().copy_from_slice(b"data");
    let mut pair = Pair::new(ctx, skb).unwrap();
    let clone = pair.take_clone().unwrap();
    (pair, clone)
}

/// The clone is let go on one thread and the original on another: each shell ends once, the bytes
/// once, and all is there again.
#[test]
fn clone_and_original_end() {
    model(|seen| {
        let memory = Memory::new(3, None).unwrap();
        let mut ctx = Ctx::new(memory.seat(Role::Worker)).unwrap();
        let (pair, clone) = pair(&mut ctx);
        let other = thread::spawn(move || {
            assert_eq!(clone.linear(), b"data");
            drop(clone);
        });
        thread::yield_now();
        let busy = pair.is_busy();
        let original = pair.into_skb(&mut ctx);
        assert_eq!(original.linear(), b"data");
        drop(original);
        other.join().unwrap();
        seen.fetch_add(usize::from(busy), Ordering::Relaxed);
        ctx.begin(0);
        let all: Vec<_> = std::iter::from_fn(|| ctx.take()).collect();
        assert_eq!(all.len(), 3);
        std::mem::forget((all, ctx));
    });
}

/// The original is written to as soon as its clone is gone, and not before.
#[test]
fn pair_takes_its_bytes_back() {
    model(|seen| {
        let memory = Memory::new(3, None).unwrap();
        let mut ctx = Ctx::new(memory.seat(Role::Worker)).unwrap();
        let (mut pair, clone) = pair(&mut ctx);
        let other = thread::spawn(move || {
            assert_eq!(clone.linear(), b"data");
            drop(clone);
        });
        thread::yield_now();
        if let Some(bytes) = pair.skb_mut().linear_mut() {
            bytes.fill(b'x');
            seen.fetch_add(1, Ordering::Relaxed);
        }
        other.join().unwrap();
        std::mem::forget((pair, ctx));
    });
}

//! Merging is free of allocations and of copies: counted, not promised, on a real capture.
//!
//! One test alone in this file, because the allocator it counts with is the whole process's.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use grilse_dev::pcap::Reader;
use grilse_dev::{Offloads, Replay};
use grilse_engine::{Handler, PollCtx, Port, Worker};
use grilse_mem::Role;
use grilse_offload::{Config, Gro, Why};
use grilse_packet::{Ctx, Memory, Skb, copied_bytes};
use grilse_wire::Meta;

thread_local! {
    /// Allocations of this thread: those of the test runner's do not count.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every method hands its arguments to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Counts, and keeps nothing.
#[derive(Default)]
struct Tally {
    delivered: u64,
    merged: u64,
}

impl Handler for Tally {
    fn merged(&mut self, _: &Meta, _: &Meta) {
        self.merged += 1;
    }

    fn deliver(&mut self, poll: &mut PollCtx<'_>, skb: Skb, _: Why) {
        self.delivered += 1;
        poll.consume(skb);
    }
}

#[test]
fn merging_allocates_and_copies_nothing() {
    const WARM_UP: u64 = 2;
    let capture = include_bytes!("../../../captures/tcp4-bulk-16flows.pcap");
    let reader = Reader::new(&capture[..]).expect("a capture");
    let offloads = Offloads { hash: true, ..Offloads::default() };
    let device = Replay::new("capture", reader, offloads).expect("memory for frames");
    let memory = Memory::new(4096, None).expect("memory for packets");
    let ctx = Ctx::new(memory.seat(Role::Worker)).expect("the first seat");
    let port = Port::new(Box::new(device), Gro::new(Config::default()));
    let mut worker = Worker::new(ctx, vec![port], Tally::default());
    let (mut polls, mut before) = (0, (0, 0, 0));
    loop {
        if polls == WARM_UP {
            before = (ALLOCATIONS.get(), copied_bytes(), worker.handler().merged);
        }
        if worker.poll(0, 0, 64).expect("the capture is whole").ended {
            break;
        }
        polls += 1;
    }
    let (allocations, copied, merged) = before;
    assert!(polls > 30 && worker.handler().merged - merged > 1000, "there was something to merge");
    assert_eq!(worker.handler().merged + worker.handler().delivered, 2166, "frames of the capture");
    assert_eq!(ALLOCATIONS.get() - allocations, 0, "allocations");
    assert_eq!(copied_bytes() - copied, 0, "bytes copied within or between packets");
}

//! Nothing is allocated while packets flow.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use grilse_offload::{Config, Gro, Outcome, Why};
use grilse_wire::{Linear, Meta};

mod support;
use support::frame::{tcp4, tcp6, udp4};
use support::{Frame, ethernet};

/// The system's allocator, which counts what the current thread takes.
struct Counting;

thread_local! {
    static TAKEN: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        TAKEN.with(|taken| taken.set(taken.get() + 1));
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[test]
fn push_and_flush_allocate_nothing() {
    let flows = (0..400u32).flat_map(|n| {
        let (flow, n) = (n % 16, n / 16);
        [
            tcp4(n, |p| p.tcp.src_port += flow as u16),
            tcp6(n, |p| p.tcp.src_port += flow as u16),
            udp4(n, |p| p.udp.src_port += flow as u16),
        ]
    });
    let packet = |(frame, n): (Vec<u8>, u64)| {
        let hash = (n / 3 % 16) as u32;
        Linear::of(&frame, Meta { hash, ..ethernet(&frame, n) })
    };
    let mut packets: Vec<_> = flows.zip(0..).map(packet).collect();
    let mut config = Config::default();
    config.udp_fwd = true;
    let mut gro = Gro::new(config);
    let mut out = Vec::with_capacity(packets.len());
    let mut emptied = Vec::with_capacity(packets.len());
    let before = TAKEN.with(Cell::get);
    let mut sink = |packet: Linear, _: Why| out.push(packet);
    for packet in packets.drain(..) {
        if let Outcome::Merged(Some(shell)) = gro.push(packet, 0, &mut sink) {
            emptied.push(shell);
        }
    }
    gro.flush(&mut sink);
    assert_eq!(TAKEN.with(Cell::get), before);
    assert_eq!(out.len() + emptied.len(), 1200);
    assert_eq!(out.len(), 48);
}

//! Nothing is copied and nothing is allocated while packets merge. A binary of its own, for the
//! allocator that counts.

#![allow(unsafe_code, reason = "a global allocator is an unsafe trait")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use grilse_mem::{FramePool, FrameSlice, Role};
use grilse_packet::{Ctx, MAX_FRAGS, Memory, Skb, copied_bytes};
use grilse_wire::{How, Packet};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: everything is the system allocator's; counting touches no memory but a thread-local that
// needs no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller keeps the same contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the same contract.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const HEADERS: usize = 54;
const FRAME: u32 = 1536;

struct Rig {
    memory: &'static Memory,
    ctx: Ctx,
    pool: FramePool,
}

impl Rig {
    fn new(skbs: u32, frames: u32) -> Self {
        let memory = Memory::new(skbs, None).unwrap();
        let ctx = Ctx::new(memory.seat(Role::Worker)).unwrap();
        Self { memory, ctx, pool: FramePool::new(frames, FRAME, None).unwrap() }
    }

    /// Headers and `payload` bytes in one frame, as most drivers build it.
    fn in_frame(&mut self, payload: usize) -> Skb {
        let frame = self.pool.take().unwrap();
        self.ctx.build(frame, 64, HEADERS + payload).unwrap()
    }

    /// Headers in the small head, payload in a fragment, as a header-splitting driver builds it.
    fn split(&mut self, payload: usize) -> Skb {
        let mut skb = self.ctx.take().unwrap();
        skb.put(HEADERS).unwrap();
        let mut frag = self.pool.take().unwrap();
        frag.set_range(0..payload);
        skb.add_frag(frag).unwrap();
        skb
    }

    /// All in the small head: nothing can move out of it, so it is chained.
    fn small(&mut self, payload: usize) -> Skb {
        let mut skb = self.ctx.take().unwrap();
        skb.put(HEADERS + payload).unwrap();
        skb
    }

    fn idle(&mut self) {
        self.ctx.begin(0);
        self.ctx.end();
        assert_eq!((self.pool.ledger().in_use, self.memory.ledgers().shells.in_use), (0, 0));
    }
}

/// Merges `count` packets, and checks that no byte was copied and no memory allocated.
fn merge(rig: &mut Rig, count: usize, make: fn(&mut Rig, usize) -> Skb, how: How) -> Skb {
    let mut head = make(rig, 100);
    let (copied, allocated) = (copied_bytes(), ALLOCATIONS.get());
    for _ in 1..count {
        let next = make(rig, 100);
        match head.absorb(next, HEADERS, how) {
            Ok(Some(empty)) => rig.ctx.consume(empty),
            Ok(None) => {}
            Err(refused) => panic!("refused: {refused:?}"),
        }
    }
    assert_eq!(copied_bytes() - copied, 0, "bytes copied");
    assert_eq!(ALLOCATIONS.get() - allocated, 0, "allocations");
    assert_eq!(head.len(), HEADERS + count * 100);
    head
}

#[test]
fn heads_are_stolen_until_the_slots_are_full_then_chained() {
    let mut rig = Rig::new(256, 256);
    let mut head = merge(&mut rig, MAX_FRAGS + 1, Rig::in_frame, How::Bytes);
    assert_eq!((head.frags().count(), head.frag_list().count()), (MAX_FRAGS, 0));
    assert!(head.frags().all(|frag| frag.len() == 100));
    let copied = copied_bytes();
    for later in 0..30 {
        let next = rig.in_frame(100);
        let left = head.absorb(next, HEADERS, How::Bytes).unwrap();
        // The first finds no slot and is chained; the others go into its slots until those are full.
        let chained = later % (MAX_FRAGS + 1) == 0;
        assert_eq!(left.is_none(), chained, "packet {later} behind the full head");
        left.into_iter().for_each(|empty| rig.ctx.consume(empty));
        assert_eq!(head.frags().count(), MAX_FRAGS);
        assert_eq!(head.frag_list().count(), 1 + later / (MAX_FRAGS + 1));
        let newest = head.frag_list().last().unwrap();
        assert_eq!(newest.frags().count(), later % (MAX_FRAGS + 1));
    }
    assert_eq!(copied_bytes() - copied, 0);
    rig.ctx.consume(head);
    rig.idle();
}

#[test]
fn fragments_move() {
    let mut rig = Rig::new(256, 256);
    let head = merge(&mut rig, MAX_FRAGS, Rig::split, How::Bytes);
    assert_eq!((head.frags().count(), head.frag_list().count()), (MAX_FRAGS, 0));
    let inner: Vec<usize> = head.frags().map(FrameSlice::len).collect();
    assert_eq!(inner, [100; MAX_FRAGS]);
    rig.ctx.consume(head);
    rig.idle();
}

#[test]
fn small_heads_and_whole_packets_are_chained() {
    let mut rig = Rig::new(4096, 4096);
    for (make, how) in [
        (Rig::small as fn(&mut Rig, usize) -> Skb, How::Bytes),
        (Rig::small, How::Whole),
        (Rig::in_frame, How::Whole),
        (Rig::split, How::Whole),
    ] {
        let head = merge(&mut rig, 1500, make, how);
        assert_eq!(head.frag_list().count(), 1499);
        rig.ctx.consume(head);
        rig.idle();
    }
}

#[test]
fn thousands_of_members_through_frags_and_chain() {
    let mut rig = Rig::new(4096, 4096);
    let mut head = merge(&mut rig, 3000, Rig::in_frame, How::Bytes);
    // Readied for reading, as GRO does when it completes the packet.
    assert!(head.front_mut(HEADERS).is_some());
    assert_eq!(head.pieces(0..head.len()).map(<[u8]>::len).sum::<usize>(), head.len());
    drop(head);
    rig.idle();
}

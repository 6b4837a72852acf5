//! What packets are made of: one vector each, or skbs of a pool, whose unsafe code comes under the
//! fuzzer that way.

use std::ops::Range;

use grilse_mem::{FramePool, Role};
use grilse_packet::{Ctx, Memory, Skb};
use grilse_wire::{Carve, Heap, Linear, Meta, Packet, Place};

/// Bytes in front of a frame.
const HEADROOM: usize = 256;
/// Bytes that a vector can take, super-packets of BIG TCP included.
const CAPACITY: usize = 192 << 10;

/// Makes packets, and cuts them.
pub(crate) trait Buffers: Carve<Self::Packet> {
    type Packet: Packet;

    fn packet(&mut self, bytes: &[u8], meta: Meta) -> Self::Packet;

    fn give_back(&mut self, packet: Self::Packet);
}

impl Buffers for Heap {
    type Packet = Linear;

    fn packet(&mut self, bytes: &[u8], meta: Meta) -> Linear {
        let mut all = Vec::with_capacity(CAPACITY);
        all.resize(HEADROOM, 0);
        all.extend_from_slice(bytes);
        Linear::with_headroom(all, HEADROOM, meta)
    }

    fn give_back(&mut self, _: Linear) {}
}

/// Skbs over frames of 2 KiB.
pub(crate) struct Skbs {
    ctx: Ctx,
    frames: FramePool,
}

thread_local! {
    static SKBS: std::cell::RefCell<Skbs> = std::cell::RefCell::new(Skbs::new());
}

impl Skbs {
    fn new() -> Self {
        let memory = Memory::new(4096, None).expect("memory");
        let ctx = Ctx::new(memory.seat(Role::Worker)).expect("a context");
        Self { ctx, frames: FramePool::new(512, 2048, None).expect("memory") }
    }

    /// Lends those of this thread, and sees that all frames are back afterwards.
    pub(crate) fn with<T>(work: impl FnOnce(&mut Self) -> T) -> T {
        SKBS.with_borrow_mut(|skbs| {
            skbs.ctx.begin(0);
            let done = work(skbs);
            skbs.ctx.end();
            skbs.ctx.begin(0);
            assert_eq!(skbs.ctx.available_frames(&skbs.frames), 512, "a frame is not back");
            done
        })
    }
}

impl Buffers for Skbs {
    type Packet = Skb;

    fn packet(&mut self, bytes: &[u8], meta: Meta) -> Skb {
        let mut frame = self.ctx.take_frame(&mut self.frames).expect("a frame");
        let room = frame.bytes_mut().expect("nobody shares it");
        room[HEADROOM..HEADROOM + bytes.len()].copy_from_slice(bytes);
        let mut skb = self.ctx.build(frame, HEADROOM, bytes.len()).expect("a shell");
        *skb.meta_mut() = meta;
        skb
    }

    fn give_back(&mut self, skb: Skb) {
        self.ctx.consume(skb);
    }
}

impl Carve<Skb> for Skbs {
    fn carve(
        &mut self,
        from: &Skb,
        place: &mut Place,
        headers: usize,
        payload: Range<usize>,
    ) -> Option<Skb> {
        self.ctx.carve(from, place, headers, payload)
    }
}

/// The bytes of a packet, in one piece.
pub(crate) fn bytes<P: Packet>(packet: &P) -> Vec<u8> {
    packet.pieces(0..packet.len()).flatten().copied().collect()
}

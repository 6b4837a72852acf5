//! What waits to be sent, port by port.
//!
//! Every queue is bounded. A worker polls a port only while all queues have room for a whole poll,
//! so a device that is slow to send makes those that feed it wait: nothing is lost here, unless a
//! handler sends more than it was given.
//!
//! Super-packets wait whole, and are cut as the device takes them; so are checksums finished. What
//! finds no memory to be cut waits until there is some; what no memory is enough for is dropped.

use std::collections::VecDeque;

use grilse_dev::{Caps, Device, Fault};
use grilse_offload::gso::{self, Checksums, NoRoom, Segments};
use grilse_packet::{Batch, Ctx, DropReason, Load, Skb};

use crate::account::{Account, OnTheWay, frames};

/// Packets that one queue holds: a few polls, each of which yields as many as it received at most.
const CAPACITY: usize = 4 * Batch::CAPACITY;

/// The queues of a worker's ports.
#[derive(Debug, Default)]
pub(crate) struct TxQueues(Vec<TxQueue>);

#[derive(Debug)]
struct TxQueue {
    waiting: VecDeque<Skb>,
    /// A super-packet that is being cut.
    cutting: Option<Segments<Skb>>,
    /// The packets that the device is offered next.
    burst: Batch,
}

impl TxQueues {
    pub(crate) fn new(ports: usize) -> Self {
        let queue = || TxQueue {
            waiting: VecDeque::with_capacity(CAPACITY),
            cutting: None,
            burst: Batch::new(),
        };
        Self((0..ports).map(|_| queue()).collect())
    }

    /// Whether every queue has room for what one poll delivers.
    pub(crate) fn have_room(&self) -> bool {
        self.0.iter().all(|queue| queue.waiting.len() + Batch::CAPACITY <= CAPACITY)
    }

    /// Whether a packet waits for this port.
    pub(crate) fn is_waiting(&self, port: usize) -> bool {
        self.0.get(port).is_some_and(|queue| queue.frames() > 0)
    }

    /// How many frames wait.
    pub(crate) fn frames(&self) -> u64 {
        self.0.iter().map(TxQueue::frames).sum()
    }

    /// Appends a packet to the queue of a port, or drops it where that is full or not there.
    pub(crate) fn push(&mut self, ctx: &mut Ctx, port: usize, skb: Skb) {
        match self.0.get_mut(port) {
            Some(queue) if queue.waiting.len() < CAPACITY => queue.waiting.push_back(skb),
            _ => ctx.drop_with(skb, DropReason::TxFull),
        }
    }

    /// Sends what waits for this port, as far as its device takes it; says how many packets went.
    pub(crate) fn send(
        &mut self,
        ctx: &mut Ctx,
        account: &mut Account,
        port: usize,
        device: &mut dyn Device,
    ) -> Result<usize, Fault> {
        let Some(queue) = self.0.get_mut(port) else { return Ok(0) };
        let mut packets = 0;
        while queue.fill(ctx, device) {
            let (offered, before) = (load(&queue.burst), OnTheWay::until(ctx));
            let sent = device.tx(ctx, &mut queue.burst);
            account.sent(offered - load(&queue.burst), &before, ctx);
            packets += sent?;
            if !queue.burst.is_empty() {
                break;
            }
        }
        Ok(packets)
    }

    /// Drops all that waits.
    pub(crate) fn drop_all(&mut self, ctx: &mut Ctx, reason: DropReason) {
        for queue in &mut self.0 {
            while let Some(skb) = queue.burst.pop() {
                ctx.drop_with(skb, reason);
            }
            queue.drop_rest(ctx, reason);
            while let Some(skb) = queue.waiting.pop_front() {
                ctx.drop_with(skb, reason);
            }
        }
    }
}

/// Frames and bytes of a burst.
fn load(burst: &Batch) -> Load {
    let mut sum = Load::default();
    burst.iter().for_each(|skb| sum += Load::of(skb.meta(), skb.len()));
    sum
}

impl TxQueue {
    /// Frames that wait.
    fn frames(&self) -> u64 {
        let cutting = self.cutting.as_ref().map_or(0, Segments::remaining) as u64;
        self.burst.iter().chain(&self.waiting).map(frames).sum::<u64>() + cutting
    }

    /// Fills the burst with what the device can send; false where there is nothing.
    fn fill(&mut self, ctx: &mut Ctx, device: &dyn Device) -> bool {
        let caps = device.caps();
        while self.burst.room() > 0 {
            if self.cutting.is_some() {
                if !self.cut(ctx, caps) {
                    break;
                }
            } else if let Some(skb) = self.waiting.pop_front() {
                self.prepare(ctx, caps, skb);
            } else {
                break;
            }
        }
        !self.burst.is_empty()
    }

    /// Makes a packet what the device can send, or ready to be cut.
    fn prepare(&mut self, ctx: &mut Ctx, caps: &Caps, mut skb: Skb) {
        if !caps.tx {
            return ctx.drop_with(skb, DropReason::NoRoute);
        }
        let gso = skb.meta().gso;
        if gso.size == 0 || caps.tx_gso.contains(gso.kind) {
            let finished = if caps.tx_csum { Ok(()) } else { gso::finish(&mut skb) };
            return match finished {
                Err(_) => ctx.drop_with(skb, DropReason::BadChecksumPlace),
                Ok(()) if gso.size == 0 && skb.len() > caps.max_frame => {
                    ctx.drop_with(skb, DropReason::TooBig);
                }
                Ok(()) => self.offer(skb),
            };
        }
        let checksums = if caps.tx_csum { Checksums::Leave } else { Checksums::Finish };
        match gso::segment(skb, checksums) {
            Ok(segments) => self.cutting = Some(segments),
            Err(rejected) => ctx.drop_with(rejected.packet, DropReason::BadGso),
        }
    }

    /// Cuts one segment; false where there is no memory for it.
    fn cut(&mut self, ctx: &mut Ctx, caps: &Caps) -> bool {
        let Some(segments) = &mut self.cutting else { return true };
        let made = match segments.cut(ctx) {
            Err(NoRoom { .. }) => {
                let Some(spare) = ctx.take() else { return false };
                // Again with one at hand: memory may have come home meanwhile.
                ctx.consume(spare);
                segments.cut(ctx)
            }
            made => made,
        };
        match made {
            // Its size counts, not that of the whole; all others are no longer.
            Ok(Some(skb)) if skb.len() > caps.max_frame => {
                ctx.drop_with(skb, DropReason::TooBig);
                self.drop_rest(ctx, DropReason::TooBig);
            }
            Ok(Some(skb)) => self.offer(skb),
            Ok(None) => {
                if let Some(segments) = self.cutting.take() {
                    ctx.consume(segments.into_packet());
                }
            }
            // It is not memory that is short: the headers are longer than a segment has room for, or
            // the payload is in more pieces.
            Err(NoRoom { .. }) => self.drop_rest(ctx, DropReason::BadGso),
        }
        true
    }

    /// Drops what is not cut yet.
    fn drop_rest(&mut self, ctx: &mut Ctx, reason: DropReason) {
        let Some(segments) = self.cutting.take() else { return };
        let left = segments.remaining();
        let mut skb = segments.into_packet();
        if left == 0 {
            return ctx.consume(skb);
        }
        skb.meta_mut().gso.segs = left as u16;
        ctx.drop_with(skb, reason);
    }

    fn offer(&mut self, skb: Skb) {
        let pushed = self.burst.push(skb);
        debug_assert!(pushed.is_ok(), "there was room");
    }
}

//! What waits to be sent, port by port.
//!
//! Every queue is bounded. A worker polls a port only while all queues have room for a whole poll,
//! so a device that is slow to send makes those that feed it wait: nothing is lost here, unless a
//! handler sends more than it was given.

use std::collections::VecDeque;

use grilse_dev::{Device, Fault};
use grilse_packet::{Batch, Ctx, DropReason, Skb};

use crate::account::{Account, frames};

/// Packets that one queue holds: a few polls, each of which yields as many as it received at most.
const CAPACITY: usize = 4 * Batch::CAPACITY;

/// The queues of a worker's ports.
#[derive(Debug, Default)]
pub(crate) struct TxQueues(Vec<TxQueue>);

#[derive(Debug)]
struct TxQueue {
    waiting: VecDeque<Skb>,
    /// The packets that the device is offered next.
    burst: Batch,
}

impl TxQueues {
    pub(crate) fn new(ports: usize) -> Self {
        let queue = || TxQueue { waiting: VecDeque::with_capacity(CAPACITY), burst: Batch::new() };
        Self((0..ports).map(|_| queue()).collect())
    }

    /// Whether every queue has room for what one poll delivers.
    pub(crate) fn have_room(&self) -> bool {
        self.0.iter().all(|queue| queue.waiting.len() + Batch::CAPACITY <= CAPACITY)
    }

    /// Whether a packet waits for this port.
    pub(crate) fn is_waiting(&self, port: usize) -> bool {
        self.0.get(port).is_some_and(|queue| queue.iter().next().is_some())
    }

    /// How many frames wait.
    pub(crate) fn frames(&self) -> u64 {
        self.0.iter().flat_map(TxQueue::iter).map(frames).sum()
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
            let before = load(&queue.burst);
            let sent = device.tx(ctx, &mut queue.burst);
            let after = load(&queue.burst);
            account.tx_frames += before.0 - after.0;
            account.tx_bytes += before.1 - after.1;
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
            while let Some(skb) = queue.burst.pop().or_else(|| queue.waiting.pop_front()) {
                ctx.drop_with(skb, reason);
            }
        }
    }
}

/// Frames and bytes of a burst.
fn load(burst: &Batch) -> (u64, u64) {
    burst.iter().fold((0, 0), |(n, bytes), skb| (n + frames(skb), bytes + skb.len() as u64))
}

impl TxQueue {
    fn iter(&self) -> impl Iterator<Item = &Skb> {
        self.burst.iter().chain(&self.waiting)
    }

    /// Fills the burst with what the device can send; false where there is nothing.
    fn fill(&mut self, ctx: &mut Ctx, device: &dyn Device) -> bool {
        let caps = device.caps();
        while self.burst.room() > 0
            && let Some(skb) = self.waiting.pop_front()
        {
            if skb.meta().gso.size == 0 && skb.len() > caps.max_frame {
                ctx.drop_with(skb, DropReason::TooBig);
                continue;
            }
            let pushed = self.burst.push(skb);
            debug_assert!(pushed.is_ok(), "there was room");
        }
        !self.burst.is_empty()
    }
}

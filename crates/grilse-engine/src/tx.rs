//! What waits to be sent, port by port.
//!
//! Every queue is bounded. A worker polls a port only while all queues have room for a whole poll,
//! so a device that is slow to send makes those that feed it wait: nothing is lost here, unless a
//! handler sends more than it was given.

use std::collections::VecDeque;

use grilse_dev::{Device, Fault};
use grilse_packet::{Batch, Ctx, DropReason, Skb};

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
        self.0.get(port).is_some_and(|queue| queue.len() > 0)
    }

    /// How many packets wait.
    pub(crate) fn len(&self) -> usize {
        self.0.iter().map(TxQueue::len).sum()
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
        port: usize,
        device: &mut dyn Device,
    ) -> Result<usize, Fault> {
        let Some(queue) = self.0.get_mut(port) else { return Ok(0) };
        let mut sent = 0;
        while queue.fill(ctx, device) {
            let taken = device.tx(ctx, &mut queue.burst)?;
            sent += taken;
            if !queue.burst.is_empty() {
                break;
            }
        }
        Ok(sent)
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

impl TxQueue {
    fn len(&self) -> usize {
        self.waiting.len() + self.burst.len()
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

//! A receive queue with its GRO table, and one poll of it.

use std::fmt;

use grilse_dev::{Device, Fault};
use grilse_offload::{Config, Gro, Outcome, Sink, Why};
use grilse_packet::{Batch, Ctx, DropReason, Load, Skb};
use grilse_wire::Meta;

use crate::account::{Account, OnTheWay, frames};
use crate::tx::TxQueues;

/// Where packets go that a worker receives.
pub trait Handler {
    /// What GRO does from now on it does because this packet arrived; `None`: because the poll ends.
    fn arriving(&mut self, _packet: Option<&Meta>) {}

    /// `packet` has joined `head`, which is delivered later.
    fn merged(&mut self, _head: &Meta, _packet: &Meta) {}

    /// `packet` has lost this many bytes of Ethernet padding.
    fn trimmed(&mut self, _packet: &Meta, _bytes: usize) {}

    /// Takes a packet, and why GRO let it go. Whoever takes it passes it on, consumes it, or drops
    /// it with a reason.
    fn deliver(&mut self, poll: &mut PollCtx<'_>, skb: Skb, why: Why);
}

/// What a handler works with while a port is polled.
#[derive(Debug)]
pub struct PollCtx<'a> {
    /// The context of the worker. Packets leave through the poll itself, which counts them.
    pub ctx: &'a mut Ctx,
    /// Which of the worker's ports is polled.
    pub port: usize,
    pub(crate) tx: &'a mut TxQueues,
    pub(crate) account: &'a mut Account,
}

impl PollCtx<'_> {
    /// Passes a packet on, to be sent by a port of the worker; dropped where that port has no room
    /// left ([`DropReason::TxFull`](grilse_packet::DropReason::TxFull)).
    pub fn send(&mut self, port: usize, skb: Skb) {
        self.tx.push(self.ctx, port, skb);
    }

    /// Gives back a packet that has done its work.
    pub fn consume(&mut self, skb: Skb) {
        self.account.consumed += frames(&skb);
        self.ctx.consume(skb);
    }

    /// Gives back a packet that is lost, and says why.
    pub fn drop_with(&mut self, skb: Skb, reason: DropReason) {
        self.ctx.drop_with(skb, reason);
    }
}

/// A receive queue of a device, with its GRO table (a NAPI instance).
pub struct Port {
    pub(crate) device: Box<dyn Device>,
    gro: Gro<Skb>,
    ended: bool,
}

/// What a poll did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Poll {
    /// Frames taken from the device, those dropped included.
    pub taken: usize,
    /// The device will yield nothing more, and GRO holds nothing of it.
    pub ended: bool,
}

impl Port {
    /// A port on `device`.
    pub fn new(device: Box<dyn Device>, gro: Gro<Skb>) -> Self {
        Self { device, gro, ended: false }
    }

    /// A port that only sends.
    pub fn sending(device: Box<dyn Device>) -> Self {
        Self { device, gro: Gro::new(Config::default()), ended: true }
    }

    /// The device.
    pub fn device(&self) -> &dyn Device {
        &*self.device
    }

    /// Whether it will yield nothing more.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// Takes back what the device has sent, and says how many packets that were.
    pub(crate) fn reap(&mut self, ctx: &mut Ctx, account: &mut Account) -> usize {
        let before = OnTheWay::until(ctx);
        let back = self.device.reap(ctx);
        account.sent(Load::default(), &before, ctx);
        back
    }

    /// Completes what the device has begun.
    pub(crate) fn finish(&mut self, ctx: &mut Ctx, account: &mut Account) -> Result<(), Fault> {
        let before = OnTheWay::until(ctx);
        let finished = self.device.finish(ctx);
        account.sent(Load::default(), &before, ctx);
        finished?;
        match self.device.in_flight() {
            0 => Ok(()),
            frames => Err(Fault::Stuck { device: self.device.caps().name.clone(), frames }),
        }
    }

    /// Receives up to `budget` frames, and never more than [`Batch::CAPACITY`] packets, coalesces
    /// them, delivers, and flushes what GRO holds (`napi_poll` and a `napi_complete_done` without
    /// flush timeout).
    pub(crate) fn poll(
        &mut self,
        poll: &mut PollCtx<'_>,
        batch: &mut Batch,
        handler: &mut impl Handler,
        budget: usize,
    ) -> Result<Poll, Fault> {
        let before = OnTheWay::until(poll.ctx);
        let received = match self.ended {
            true => Ok(None),
            false => self.device.rx(poll.ctx, batch, budget).map(Some),
        };
        // Copies are among the packets, so those count first.
        poll.account.rx_frames += batch.iter().map(frames).sum::<u64>();
        poll.account.received(&before, poll.ctx);
        let now_ns = poll.ctx.now_ns;
        while let Some(skb) = batch.pop() {
            poll.account.rx_bytes += skb.len() as u64;
            handler.arriving(Some(skb.meta()));
            let mut delivery = Delivery { poll, handler };
            if let Outcome::Merged(Some(emptied)) = self.gro.push(skb, now_ns, &mut delivery) {
                poll.ctx.consume(emptied);
            }
        }
        handler.arriving(None);
        self.gro.flush(&mut Delivery { poll, handler });
        let received = received.inspect_err(|_| self.ended = true)?;
        self.ended = received.is_none_or(|received| received.ended);
        Ok(Poll { taken: received.map_or(0, |received| received.taken), ended: self.ended })
    }
}

/// Packets from GRO to the handler.
struct Delivery<'a, 'p, H> {
    poll: &'a mut PollCtx<'p>,
    handler: &'a mut H,
}

impl<H: Handler> Sink<Skb> for Delivery<'_, '_, H> {
    fn merged(&mut self, head: &Meta, packet: &Meta) {
        self.handler.merged(head, packet);
    }

    fn trimmed(&mut self, packet: &Meta, bytes: usize) {
        self.handler.trimmed(packet, bytes);
    }

    fn deliver(&mut self, skb: Skb, why: Why) {
        self.poll.account.delivered += 1;
        self.handler.deliver(self.poll, skb, why);
    }
}

impl fmt::Debug for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Port")
            .field("device", &self.device.caps().name)
            .field("held", &self.gro.held())
            .field("ended", &self.ended)
            .finish()
    }
}

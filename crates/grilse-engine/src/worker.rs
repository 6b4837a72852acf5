//! A worker and its poll round.
//!
//! A worker owns everything it touches: its context, its ports with their GRO tables, and the
//! handler that packets are delivered to. In a poll a packet is, at any time, in exactly one of: the
//! batch, a GRO table, the handler's hands.

use std::fmt;

use grilse_dev::{Device, Fault};
use grilse_offload::{Gro, Outcome, Sink, Why};
use grilse_packet::{Batch, Ctx, Skb};
use grilse_wire::Meta;

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
    fn deliver(&mut self, ctx: &mut Ctx, skb: Skb, why: Why);
}

/// A receive queue of a device, with its GRO table (a NAPI instance).
pub struct Port {
    device: Box<dyn Device>,
    gro: Gro<Skb>,
    ended: bool,
}

impl Port {
    /// A port on `device`.
    pub fn new(device: Box<dyn Device>, gro: Gro<Skb>) -> Self {
        Self { device, gro, ended: false }
    }

    /// The device.
    pub fn device(&self) -> &dyn Device {
        &*self.device
    }
}

/// What a poll did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Poll {
    /// Frames taken from the device, those dropped included.
    pub taken: usize,
    /// The device will yield nothing more, and GRO holds nothing of it.
    pub ended: bool,
}

/// One thread's engine.
#[derive(Debug)]
pub struct Worker<H> {
    ctx: Ctx,
    port: Port,
    batch: Batch,
    handler: H,
}

impl<H: Handler> Worker<H> {
    /// A worker on the thread of `ctx`.
    pub fn new(ctx: Ctx, port: Port, handler: H) -> Self {
        Self { ctx, port, batch: Batch::new(), handler }
    }

    /// One poll at the time `now_ns`: receives up to `budget` frames, and never more than
    /// [`Batch::CAPACITY`] packets, coalesces them, delivers, and flushes what GRO holds
    /// (`napi_poll` and a `napi_complete_done` without flush timeout).
    ///
    /// # Errors
    /// The device's [`Fault`]. Everything received before it has been delivered.
    pub fn poll(&mut self, now_ns: u64, budget: usize) -> Result<Poll, Fault> {
        let Self { ctx, port, batch, handler } = self;
        ctx.begin(now_ns);
        let received = match port.ended {
            true => Ok(None),
            false => port.device.rx(ctx, batch, budget).map(Some),
        };
        while let Some(skb) = batch.pop() {
            handler.arriving(Some(skb.meta()));
            let mut delivery = Delivery { ctx, handler };
            if let Outcome::Merged(Some(emptied)) = port.gro.push(skb, now_ns, &mut delivery) {
                ctx.consume(emptied);
            }
        }
        handler.arriving(None);
        port.gro.flush(&mut Delivery { ctx, handler });
        ctx.end();
        let received = received.inspect_err(|_| port.ended = true)?;
        port.ended = received.is_none_or(|received| received.ended);
        Ok(Poll { taken: received.map_or(0, |received| received.taken), ended: port.ended })
    }

    /// The context.
    pub fn ctx(&self) -> &Ctx {
        &self.ctx
    }

    /// The handler.
    pub fn handler(&self) -> &H {
        &self.handler
    }

    /// The handler, writable.
    pub fn handler_mut(&mut self) -> &mut H {
        &mut self.handler
    }

    /// Stops the worker: what it caches goes to the depot. Returns the handler.
    pub fn stop(self) -> H {
        self.handler
    }
}

/// Packets from GRO to the handler.
struct Delivery<'a, H> {
    ctx: &'a mut Ctx,
    handler: &'a mut H,
}

impl<H: Handler> Sink<Skb> for Delivery<'_, H> {
    fn merged(&mut self, head: &Meta, packet: &Meta) {
        self.handler.merged(head, packet);
    }

    fn trimmed(&mut self, packet: &Meta, bytes: usize) {
        self.handler.trimmed(packet, bytes);
    }

    fn deliver(&mut self, skb: Skb, why: Why) {
        self.handler.deliver(self.ctx, skb, why);
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

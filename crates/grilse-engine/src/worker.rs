//! A worker and its rounds.
//!
//! A worker owns everything it touches: its context, its ports with their GRO tables, what waits to
//! be sent, and the handler that packets are delivered to. In a round a packet is, at any time, in
//! exactly one of: the batch, a GRO table, the handler's hands, a queue for sending.

use grilse_dev::Fault;
use grilse_packet::{Batch, Ctx, DropReason};

use crate::port::{Handler, Poll, PollCtx, Port};
use crate::tx::TxQueues;

/// One thread's engine.
#[derive(Debug)]
pub struct Worker<H> {
    ctx: Ctx,
    ports: Vec<Port>,
    tx: TxQueues,
    batch: Batch,
    handler: H,
}

/// What a round did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// Frames taken from devices.
    pub taken: usize,
    /// Packets that devices took, and those they gave back as sent.
    pub sent: usize,
    /// All ports have ended, and nothing waits to be sent.
    pub ended: bool,
}

impl<H: Handler> Worker<H> {
    /// A worker on the thread of `ctx`; its ports count from 0.
    pub fn new(ctx: Ctx, ports: Vec<Port>, handler: H) -> Self {
        let tx = TxQueues::new(ports.len());
        Self { ctx, ports, tx, batch: Batch::new(), handler }
    }

    /// One poll of one port at the time `now_ns`: receives up to `budget` frames, coalesces them,
    /// delivers, and sends what was passed on.
    ///
    /// # Errors
    /// The [`Fault`] of a device. Everything received before it has been delivered.
    pub fn poll(&mut self, port: usize, now_ns: u64, budget: usize) -> Result<Poll, Fault> {
        self.ctx.begin(now_ns);
        let polled = self.poll_one(port, budget);
        let sent = self.send();
        self.ctx.end();
        let polled = polled?;
        sent?;
        Ok(polled)
    }

    /// Polls every port once, each for up to the NAPI weight, as long as everything that waits to be
    /// sent has room; what has been sent is taken back first (`net_rx_action`).
    ///
    /// # Errors
    /// As [`poll`](Self::poll); the other ports have had their turn.
    pub fn round(&mut self, now_ns: u64) -> Result<Round, Fault> {
        self.ctx.begin(now_ns);
        let mut round = Round::default();
        let mut fault = None;
        for port in 0..self.ports.len() {
            round.sent += self.ports[port].device.reap(&mut self.ctx);
            if !self.tx.have_room() {
                continue;
            }
            match self.poll_one(port, Batch::CAPACITY) {
                Ok(poll) => round.taken += poll.taken,
                Err(error) => fault = fault.or(Some(error)),
            }
            match self.send() {
                Ok(sent) => round.sent += sent,
                Err(error) => fault = fault.or(Some(error)),
            }
        }
        self.ctx.end();
        round.ended = self.ports.iter().all(Port::ended) && self.tx.len() == 0;
        fault.map_or(Ok(round), Err)
    }

    fn poll_one(&mut self, port: usize, budget: usize) -> Result<Poll, Fault> {
        let Self { ctx, ports, tx, batch, handler } = self;
        ports[port].poll(&mut PollCtx { ctx, port, tx }, batch, handler, budget)
    }

    fn send(&mut self) -> Result<usize, Fault> {
        let Self { ctx, ports, tx, .. } = self;
        let mut sent = 0;
        for (index, port) in ports.iter_mut().enumerate() {
            sent += tx.send(ctx, index, &mut *port.device)?;
        }
        Ok(sent)
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

    /// Stops the worker: what waits to be sent is dropped, and what it caches goes to the depot.
    /// Returns the handler.
    pub fn stop(mut self) -> H {
        self.tx.drop_all(&mut self.ctx, DropReason::Stopped);
        self.handler
    }
}

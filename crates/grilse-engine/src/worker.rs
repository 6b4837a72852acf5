//! A worker and its rounds.
//!
//! A worker owns everything it touches: its context, its ports with their GRO tables, what waits to
//! be sent, and the handler that packets are delivered to. In a round a packet is, at any time, in
//! exactly one of: the batch, a GRO table, the handler's hands, a queue for sending.

use std::sync::Arc;

use grilse_dev::{Armed, Fault};
use grilse_packet::{Batch, Ctx, DropReason};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::account::Account;
use crate::limit::Limit;
use crate::port::{Handler, Poll, PollCtx, Port};
use crate::stop::Stop;
use crate::tx::TxQueues;

/// Frames that a port receives in one round at most (`NAPI_POLL_WEIGHT`).
const WEIGHT: usize = Batch::CAPACITY;
/// Longest sleep without a look around, in nanoseconds.
const NAP_NS: u64 = 100_000_000;
/// The same while something is short that nobody tells of.
const SHORT_NAP_NS: u64 = 1_000_000;

/// One thread's engine.
#[derive(Debug)]
pub struct Worker<H> {
    ctx: Ctx,
    ports: Vec<Port>,
    tx: TxQueues,
    batch: Batch,
    handler: H,
    account: Account,
    limit: Option<Arc<Limit>>,
    /// When there was last something to do.
    busy_ns: u64,
}

/// What a round did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// Frames taken from devices.
    pub taken: usize,
    /// Packets that devices took, and those they gave back as sent.
    pub sent: usize,
    /// All ports have ended or the limit is reached, and nothing waits to be sent.
    pub ended: bool,
}

impl<H: Handler> Worker<H> {
    /// A worker on the thread of `ctx`; its ports count from 0.
    pub fn new(ctx: Ctx, ports: Vec<Port>, handler: H) -> Self {
        let tx = TxQueues::new(ports.len());
        Self {
            ctx,
            ports,
            tx,
            batch: Batch::new(),
            handler,
            account: Account::default(),
            limit: None,
            busy_ns: 0,
        }
    }

    /// Lets rounds receive no more than `limit`, which other workers may share.
    pub fn limit(&mut self, limit: Arc<Limit>) {
        self.limit = Some(limit);
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
        self.rest(now_ns, polled.taken + sent?);
        Ok(polled)
    }

    /// Polls every port once, each for up to the NAPI weight, as long as everything that waits to be
    /// sent has room; what has been sent is taken back first (`net_rx_action`). What waits is sent
    /// whether or not there was room to receive.
    ///
    /// # Errors
    /// As [`poll`](Self::poll); the other ports have had their turn.
    pub fn round(&mut self, now_ns: u64) -> Result<Round, Fault> {
        self.ctx.begin(now_ns);
        let mut round = Round::default();
        let mut fault = None;
        for port in 0..self.ports.len() {
            round.sent += self.ports[port].reap(&mut self.ctx, &mut self.account);
            match self.receive(port) {
                Ok(taken) => round.taken += taken,
                Err(error) => fault = fault.or(Some(error)),
            }
            match self.send() {
                Ok(sent) => round.sent += sent,
                Err(error) => fault = fault.or(Some(error)),
            }
        }
        self.ctx.end();
        let no_more = self.limit.as_ref().is_some_and(|limit| limit.is_reached())
            || self.ports.iter().all(Port::ended);
        round.ended = no_more && self.tx.frames() == 0;
        self.rest(now_ns, round.taken + round.sent);
        fault.map_or(Ok(round), Err)
    }

    /// Leaves nothing parked here once there was nothing to do for as long as `idle.flush_us` says
    /// (invariant I10). What comes home later goes on to the depot with the next round.
    fn rest(&mut self, now_ns: u64, done: usize) {
        if done > 0 {
            self.busy_ns = now_ns;
        } else if self.flush_at_ns().is_some_and(|at_ns| now_ns >= at_ns) {
            self.ctx.flush();
        }
    }

    /// When what is cached goes to the depot, if nothing is to be done until then.
    fn flush_at_ns(&self) -> Option<u64> {
        let most = self.ctx.policy().idle_flush().filter(|_| self.ctx.held() > 0)?;
        Some(self.busy_ns + most.as_nanos() as u64)
    }

    /// A port's poll of a round, where there is room for what it brings; says how many frames came.
    fn receive(&mut self, port: usize) -> Result<usize, Fault> {
        if !self.tx.have_room() {
            return Ok(0);
        }
        let budget = self.limit.as_ref().map_or(WEIGHT, |limit| limit.reserve(WEIGHT));
        let polled = self.poll_one(port, budget).map(|poll| poll.taken);
        if let Some(limit) = &self.limit {
            limit.settle(budget, *polled.as_ref().unwrap_or(&0));
        }
        polled
    }

    fn poll_one(&mut self, port: usize, budget: usize) -> Result<Poll, Fault> {
        let Self { ctx, ports, tx, batch, handler, account, .. } = self;
        ports[port].poll(&mut PollCtx { ctx, port, tx, account }, batch, handler, budget)
    }

    fn send(&mut self) -> Result<usize, Fault> {
        let Self { ctx, ports, tx, account, .. } = self;
        let mut sent = 0;
        for (index, port) in ports.iter_mut().enumerate() {
            sent += tx.send(ctx, account, index, &mut *port.device)?;
        }
        Ok(sent)
    }

    /// Sends what waits, and takes back what was sent: a round that receives nothing. Says how many
    /// packets went or came back.
    ///
    /// # Errors
    /// As [`poll`](Self::poll).
    pub fn send_on(&mut self, now_ns: u64) -> Result<usize, Fault> {
        self.ctx.begin(now_ns);
        let Self { ctx, ports, account, .. } = self;
        let back: usize = ports.iter_mut().map(|port| port.reap(ctx, account)).sum();
        let sent = self.send();
        self.ctx.end();
        Ok(back + sent?)
    }

    /// Completes what the devices have begun: for the end, when nothing is sent any more.
    ///
    /// # Errors
    /// The first [`Fault`] of a device, [`Fault::Stuck`] among them where what was sent is not back.
    pub fn finish(&mut self, now_ns: u64) -> Result<(), Fault> {
        self.ctx.begin(now_ns);
        let Self { ctx, ports, account, .. } = self;
        let mut finished = Ok(());
        for port in ports {
            finished = finished.and(port.finish(ctx, account));
        }
        self.ctx.end();
        finished
    }

    /// Whether packets wait to be sent, or were sent and are not back.
    pub fn is_sending(&self) -> bool {
        self.tx.frames() > 0 || self.ports.iter().any(|port| port.device.in_flight() > 0)
    }

    /// Sleeps until a device has work or `stop` is asked for; returns at once where there may be
    /// work already. Homes are not told: a worker that waits for memory looks again after a
    /// millisecond.
    pub fn sleep(&mut self, now_ns: u64, stop: &Stop) {
        let sending = |port| self.tx.is_waiting(port);
        let blocked = !self.tx.have_room();
        let mut until_ns = now_ns + if blocked { SHORT_NAP_NS } else { NAP_NS };
        until_ns = self.flush_at_ns().map_or(until_ns, |at_ns| until_ns.min(at_ns));
        let mut fds = vec![PollFd::new(stop, PollFlags::IN)];
        for (index, port) in self.ports.iter_mut().enumerate() {
            let sending = sending(index);
            let ended = port.ended();
            // What is due but has nowhere to go is looked at no more often than what is short.
            let soonest_ns = if blocked { now_ns + SHORT_NAP_NS } else { now_ns };
            let due_ns = port.device.due_ns().map(|due_ns| due_ns.max(soonest_ns));
            until_ns = due_ns.map_or(until_ns, |due_ns| until_ns.min(due_ns));
            match port.device.arm(sending) {
                Armed::Ready if ended || blocked => until_ns = until_ns.min(now_ns + SHORT_NAP_NS),
                Armed::Ready => return,
                Armed::Never => {}
                Armed::Event(fd) => fds.push(PollFd::from_borrowed_fd(fd, PollFlags::IN)),
                Armed::Socket(fd) => {
                    let mut events = PollFlags::empty();
                    events.set(PollFlags::IN, !blocked);
                    events.set(PollFlags::OUT, sending);
                    fds.push(PollFd::from_borrowed_fd(fd, events));
                }
            }
        }
        let nap_ns = until_ns.saturating_sub(now_ns);
        let timeout = Timespec { tv_sec: 0, tv_nsec: nap_ns.min(NAP_NS) as _ };
        // Interrupted or refused, the worker looks around and comes back.
        _ = poll(&mut fds, Some(&timeout));
    }

    /// What was counted so far.
    pub fn account(&self) -> Account {
        let copied = self.ctx.copied().frames;
        Account { copied, held: self.tx.frames(), drops: self.ctx.drops(), ..self.account }
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

//! A layer that shows every packet that passes to somebody, and changes none.

use std::fmt;

use grilse_packet::{Batch, Ctx, Skb};

use crate::device::{Armed, Caps, Counters, Device, Received};
use crate::fault::Fault;
use crate::pcap::Direction;

/// Who is shown packets.
pub(super) trait Watcher: Send {
    /// Keeps what is of interest of a packet, in place of what it kept before: it may still be
    /// refused.
    fn look(&mut self, now_ns: u64, direction: Direction, skb: &Skb);

    /// The packet looked at has passed.
    fn passed(&mut self) -> Result<(), Fault>;

    /// Nothing more will come.
    fn finish(&mut self) -> Result<(), Fault>;
}

/// The layer.
pub(super) struct Watched<W> {
    inner: Box<dyn Device>,
    watcher: W,
    /// The packet that the device is offered.
    one: Batch,
}

impl<W: Watcher> Watched<W> {
    pub(super) fn new(inner: Box<dyn Device>, watcher: W) -> Self {
        Self { inner, watcher, one: Batch::new() }
    }
}

impl<W: Watcher> Device for Watched<W> {
    fn caps(&self) -> &Caps {
        self.inner.caps()
    }

    fn rx(&mut self, ctx: &mut Ctx, out: &mut Batch, budget: usize) -> Result<Received, Fault> {
        let before = out.len();
        let received = self.inner.rx(ctx, out, budget);
        for skb in out.iter().skip(before) {
            self.watcher.look(ctx.now_ns, Direction::Inbound, skb);
            self.watcher.passed()?;
        }
        received
    }

    /// One by one, as a packet that was taken can no longer be looked at.
    fn tx(&mut self, ctx: &mut Ctx, batch: &mut Batch) -> Result<usize, Fault> {
        let mut sent = 0;
        while let Some(skb) = batch.pop() {
            self.watcher.look(ctx.now_ns, Direction::Outbound, &skb);
            let pushed = self.one.push(skb);
            debug_assert!(pushed.is_ok(), "it is empty");
            let taken = self.inner.tx(ctx, &mut self.one);
            if let Some(skb) = self.one.pop() {
                let back = batch.unpop(skb);
                debug_assert!(back.is_ok(), "its place is still free");
                taken?;
                break;
            }
            sent += 1;
            self.watcher.passed()?;
            taken?;
        }
        Ok(sent)
    }

    fn reap(&mut self, ctx: &mut Ctx) -> usize {
        self.inner.reap(ctx)
    }

    fn in_flight(&self) -> u32 {
        self.inner.in_flight()
    }

    fn arm(&mut self, sending: bool) -> Armed<'_> {
        self.inner.arm(sending)
    }

    fn due_ns(&self) -> Option<u64> {
        self.inner.due_ns()
    }

    fn finish(&mut self, ctx: &mut Ctx) -> Result<(), Fault> {
        let finished = self.inner.finish(ctx);
        finished.and(self.watcher.finish())
    }

    fn counters(&self) -> Counters {
        self.inner.counters()
    }
}

impl<W> fmt::Debug for Watched<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watched").field("device", &self.inner.caps().name).finish_non_exhaustive()
    }
}

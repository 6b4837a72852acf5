//! `fault.*`: a device that loses, copies, swaps, damages and delays packets, stops, and does not
//! give back what it has sent, all as a seed decides.
//!
//! Faults on the way in come before GRO, and those on the way out behind GSO, so they meet packets as a
//! wire does; but a device that sends super-packets gets them whole, and then one fault meets them
//! all. Who asks for damage is sent finished frames: checksums that the device is still to complete
//! would match.
//!
//! What is lost is dropped by reason, and copies are counted, so the account of a worker stays exact.
//! What is held back is bounded ([`Line`]), and who is asked to finish sends it.

mod line;
mod plan;

use std::fmt;

use grilse_packet::{Batch, Ctx, DropReason};
use grilse_wire::GsoType;

use super::Around;
use crate::device::{Armed, Caps, Counters, Device, Received};
use crate::fault::Fault;
use crate::open::OpenError;
use crate::spec::Spec;
use line::Line;
pub(super) use plan::OPTIONS;
use plan::Plans;

/// Places for what was sent and is not given back: a small NIC's ring.
const RING: usize = 256;
/// How long a full ring may stay full, in nanoseconds.
const STUCK_NS: u64 = 1_000_000_000;

/// The layer.
struct Faulty {
    caps: Caps,
    inner: Box<dyn Device>,
    rx: Line,
    tx: Line,
    /// Received, and nothing decided yet.
    intake: Batch,
    /// What the device is offered next.
    outgoing: Batch,
    /// The device stops until then.
    stalled_until_ns: Option<u64>,
    /// Since when the ring is full of what is not given back.
    full_since_ns: Option<u64>,
    /// Nothing more comes from the device.
    ended: bool,
    /// What ended receiving, to be told behind what was received before it.
    rx_fault: Option<Fault>,
    /// What ended sending where nobody could be told.
    tx_fault: Option<Fault>,
}

/// The layer, where it is asked for.
pub(super) fn of(spec: &Spec) -> Result<Option<Around>, OpenError> {
    let Some(plans) = Plans::of(spec)? else { return Ok(None) };
    Ok(Some(Box::new(move |inner, number| Box::new(Faulty::new(inner, &plans, number)))))
}

impl Faulty {
    fn new(inner: Box<dyn Device>, plans: &Plans, number: usize) -> Self {
        let mut caps = inner.caps().clone();
        if plans.tx.corrupt_ppm > 0 {
            (caps.tx_gso, caps.tx_csum) = (GsoType::default(), false);
        }
        // Each queue, and each direction of it, has numbers of its own.
        let seed = plans.seed.wrapping_add(2 * number as u64);
        Self {
            caps,
            inner,
            rx: Line::new(plans.rx, seed),
            tx: Line::new(plans.tx, seed.wrapping_add(1)),
            intake: Batch::new(),
            outgoing: Batch::new(),
            stalled_until_ns: None,
            full_since_ns: None,
            ended: false,
            rx_fault: None,
            tx_fault: None,
        }
    }

    /// Whether the device stands still.
    fn is_stalled(&mut self, now_ns: u64) -> bool {
        self.stalled_until_ns.take_if(|until_ns| *until_ns <= now_ns);
        self.stalled_until_ns.is_some()
    }

    /// Receives into the intake; says how many frames the device dropped.
    fn receive(&mut self, ctx: &mut Ctx, budget: usize) -> usize {
        match self.inner.rx(ctx, &mut self.intake, budget) {
            Ok(received) => {
                self.ended = received.ended;
                received.taken.saturating_sub(self.intake.len())
            }
            Err(fault) => {
                (self.ended, self.rx_fault) = (true, Some(fault));
                0
            }
        }
    }

    /// Sends what is due, as far as the device takes it.
    fn release(&mut self, ctx: &mut Ctx) -> Result<(), Fault> {
        while !self.is_stalled(ctx.now_ns) {
            while self.outgoing.room() > 0
                && let Some(held) = self.tx.pop(ctx)
            {
                let pushed = self.outgoing.push(held.skb);
                debug_assert!(pushed.is_ok(), "there was room");
            }
            if self.outgoing.is_empty() || self.inner.tx(ctx, &mut self.outgoing)? == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Whether there is a place for one more packet under way.
    fn has_place(&mut self, now_ns: u64) -> Result<bool, Fault> {
        let frames = self.tx.lost.len();
        if frames < RING {
            return Ok(!self.tx.is_full() && self.outgoing.is_empty());
        }
        let since_ns = *self.full_since_ns.get_or_insert(now_ns);
        if now_ns - since_ns >= STUCK_NS {
            return Err(Fault::Stuck { device: self.caps.name.clone(), frames: frames as u32 });
        }
        Ok(false)
    }
}

impl Device for Faulty {
    fn caps(&self) -> &Caps {
        &self.caps
    }

    fn rx(&mut self, ctx: &mut Ctx, out: &mut Batch, budget: usize) -> Result<Received, Fault> {
        let (mut taken, mut polled) = (0, false);
        while !self.is_stalled(ctx.now_ns) {
            if self.ended && self.intake.is_empty() {
                self.rx.end(ctx.now_ns);
            }
            while out.room() > 0
                && taken < budget
                && let Some(held) = self.rx.pop(ctx)
            {
                taken += usize::from(!held.is_copy);
                let pushed = out.push(held.skb);
                debug_assert!(pushed.is_ok(), "there was room");
            }
            if out.room() == 0 || taken == budget || self.rx.is_full() {
                break;
            }
            if self.intake.is_empty() {
                if polled || self.ended {
                    break;
                }
                polled = true;
                taken += self.receive(ctx, budget - taken);
            } else if let Some(stall_ns) = self.rx.decide() {
                self.stalled_until_ns = Some(ctx.now_ns + stall_ns);
            } else if let Some(skb) = self.intake.pop() {
                taken += usize::from(!self.rx.take(ctx, skb));
            }
        }
        let ended = self.ended && self.intake.is_empty() && self.rx.len() == 0;
        match self.rx_fault.take_if(|_| ended) {
            Some(fault) => Err(fault),
            None => Ok(Received { taken, ended }),
        }
    }

    fn tx(&mut self, ctx: &mut Ctx, batch: &mut Batch) -> Result<usize, Fault> {
        if let Some(fault) = self.tx_fault.take() {
            return Err(fault);
        }
        let mut sent = 0;
        self.release(ctx)?;
        while !batch.is_empty() && self.has_place(ctx.now_ns)? && !self.is_stalled(ctx.now_ns) {
            if let Some(stall_ns) = self.tx.decide() {
                self.stalled_until_ns = Some(ctx.now_ns + stall_ns);
            } else if let Some(skb) = batch.pop() {
                self.tx.take(ctx, skb);
                sent += 1;
            }
        }
        if let Err(fault) = self.release(ctx) {
            self.tx_fault = Some(fault);
        }
        Ok(sent)
    }

    fn reap(&mut self, ctx: &mut Ctx) -> usize {
        if self.tx_fault.is_none() {
            self.tx_fault = self.release(ctx).err();
        }
        self.inner.reap(ctx)
    }

    fn in_flight(&self) -> u32 {
        let held = self.tx.len() + self.outgoing.len() + self.tx.lost.len();
        self.inner.in_flight() + held as u32
    }

    fn arm(&mut self, sending: bool) -> Armed<'_> {
        let sending = sending || !self.outgoing.is_empty();
        if self.stalled_until_ns.is_some() || (self.ended && !sending) {
            return Armed::Never;
        }
        if !self.intake.is_empty() {
            return Armed::Ready;
        }
        self.inner.arm(sending)
    }

    fn due_ns(&self) -> Option<u64> {
        // While the device has no room, what is due to be sent waits for that.
        let sent = self.tx.due_ns().filter(|_| self.outgoing.is_empty());
        let due = || [self.rx.due_ns(), sent, self.inner.due_ns()].into_iter().flatten().min();
        self.stalled_until_ns.or_else(due)
    }

    /// What the device does not take at once is dropped.
    fn finish(&mut self, ctx: &mut Ctx) -> Result<(), Fault> {
        self.stalled_until_ns = None;
        self.tx.hurry();
        let sent = self.tx_fault.take().map_or_else(|| self.release(ctx), Err);
        while let Some(skb) = self.outgoing.pop() {
            ctx.drop_with(skb, DropReason::Stopped);
        }
        while let Some(held) = self.tx.pop(ctx) {
            ctx.drop_with(held.skb, DropReason::Stopped);
        }
        sent.and(self.inner.finish(ctx))
    }

    fn counters(&self) -> Counters {
        self.inner.counters()
    }
}

impl fmt::Debug for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faulty")
            .field("device", &self.caps.name)
            .field("rx", &self.rx)
            .field("tx", &self.tx)
            .finish_non_exhaustive()
    }
}

//! One direction of a device with faults: what becomes of each packet, and those that wait for it.

use std::collections::VecDeque;

use grilse_packet::{Ctx, DropReason, Skb};
use grilse_wire::{Csum, Packet};

use super::plan::Plan;
use crate::dice::Dice;

/// Packets that a line holds at most: what netem does by default.
const CAPACITY: usize = 1000;
/// How long a late packet waits for a successor, in nanoseconds.
const LATE_NS: u64 = 1_000_000;

/// A direction.
#[derive(Debug)]
pub(super) struct Line {
    plan: Plan,
    dice: Dice,
    /// That of the packet that is next, once it is drawn.
    fate: Option<Fate>,
    /// A packet whose successor goes first.
    late: Option<Held>,
    /// In the order in which they are due.
    held: VecDeque<Held>,
    /// What was sent and does not come back.
    pub(super) lost: Vec<Skb>,
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, Default)]
struct Fate {
    dropped: bool,
    corrupted: bool,
    copied: bool,
    late: bool,
    lost: bool,
}

/// A packet that waits.
#[derive(Debug)]
pub(super) struct Held {
    due_ns: u64,
    pub(super) skb: Skb,
    /// It came from nowhere.
    pub(super) is_copy: bool,
}

impl Line {
    pub(super) fn new(plan: Plan, seed: u64) -> Self {
        Self {
            plan,
            dice: Dice::new(seed),
            fate: None,
            late: None,
            held: VecDeque::new(),
            lost: Vec::new(),
        }
    }

    /// Decides what becomes of the next packet, once; for how long the device stops before it, in
    /// nanoseconds, where it does.
    pub(super) fn decide(&mut self) -> Option<u64> {
        if self.fate.is_some() {
            return None;
        }
        let Self { plan, dice, .. } = self;
        self.fate = Some(Fate {
            dropped: dice.comes_up(plan.drop_ppm),
            corrupted: dice.comes_up(plan.corrupt_ppm),
            copied: dice.comes_up(plan.copy_ppm),
            late: dice.comes_up(plan.late_ppm),
            lost: dice.comes_up(plan.lost_ppm),
        });
        dice.comes_up(plan.stall_ppm).then_some(plan.stall_ns)
    }

    /// Takes the packet that was decided of; false where it is dropped. What finds no memory for a
    /// copy goes without.
    pub(super) fn take(&mut self, ctx: &mut Ctx, mut skb: Skb) -> bool {
        let fate = self.fate.take().unwrap_or_default();
        if fate.dropped {
            ctx.drop_with(skb, DropReason::Injected);
            return false;
        }
        if fate.corrupted {
            self.corrupt(&mut skb);
        }
        if fate.lost {
            self.lost.extend(skb.try_clone(ctx));
        }
        let copy = if fate.copied { skb.try_clone(ctx) } else { None };
        let due_ns = ctx.now_ns + self.plan.delay_ns;
        let one = Held { due_ns, skb, is_copy: false };
        let before = match fate.late && self.late.is_none() {
            true => self.late.replace(Held { due_ns: due_ns + LATE_NS, ..one }),
            false => {
                self.held.push_back(one);
                self.late.take()
            }
        };
        self.held.extend(copy.map(|skb| Held { due_ns, skb, is_copy: true }));
        self.held.extend(before.map(|late| Held { due_ns, ..late }));
        true
    }

    /// Flips one bit behind the link header, as netem does: checksums do not match any more, and
    /// nobody vouches for them. What has no whole checksum yet stays as it is, as the sum that it will
    /// get would match.
    fn corrupt(&mut self, skb: &mut Skb) {
        let (meta, len) = (*skb.meta(), skb.linear().len());
        let from = usize::from(meta.network);
        let unfinished = meta.gso.size > 0 || matches!(meta.csum, Csum::Partial { .. });
        if unfinished || from >= len {
            return;
        }
        let bit = self.dice.draw(8 * (len - from) as u64) as usize;
        // Where others read the same bytes, it takes memory to write.
        if let Some(front) = skb.front_mut(len) {
            front[from + bit / 8] ^= 1 << (bit % 8);
            skb.meta_mut().csum = Csum::None;
        }
    }

    /// The next packet that is due.
    pub(super) fn pop(&mut self, ctx: &mut Ctx) -> Option<Held> {
        let is_due = |held: &Held| held.due_ns <= ctx.now_ns;
        if self.held.is_empty() && self.late.as_ref().is_some_and(is_due) {
            self.held.extend(self.late.take());
        }
        let held = if self.held.front().is_some_and(is_due) { self.held.pop_front() } else { None };
        if let Some(Held { skb, is_copy: true, .. }) = &held {
            ctx.count_copy(skb);
        }
        held
    }

    /// No packet will follow: a late one waits no longer.
    pub(super) fn end(&mut self, now_ns: u64) {
        let due_ns = now_ns + self.plan.delay_ns;
        self.held.extend(self.late.take().map(|late| Held { due_ns, ..late }));
    }

    /// All packets are due.
    pub(super) fn hurry(&mut self) {
        self.end(0);
        self.held.iter_mut().for_each(|held| held.due_ns = 0);
    }

    /// When the next packet is due.
    pub(super) fn due_ns(&self) -> Option<u64> {
        self.held.front().or(self.late.as_ref()).map(|held| held.due_ns)
    }

    /// How many packets wait.
    pub(super) fn len(&self) -> usize {
        self.held.len() + usize::from(self.late.is_some())
    }

    pub(super) fn is_full(&self) -> bool {
        self.len() >= CAPACITY
    }
}

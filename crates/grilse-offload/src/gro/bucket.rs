//! The held packets of one hash bucket.
//!
//! Up to [`DEPTH`] heads in fixed slots, and the order in which they came. No two are of one flow:
//! a packet becomes a head only where its flow has none, or has just lost it. So it does not matter
//! in which order heads are searched.

use grilse_wire::Packet;

use super::held::Held;
use super::parse::{Flow, Layer};

/// Heads in a bucket (`MAX_GRO_SKBS`).
pub(super) const DEPTH: usize = 8;

/// One hash bucket.
#[derive(Debug)]
pub(super) struct Bucket<P> {
    /// Digests of the flows in `slots`, apart from them: most heads are passed over without being
    /// touched. That of an empty slot is stale.
    digests: [u64; DEPTH],
    /// The occupied slots, oldest first.
    order: [u8; DEPTH],
    len: u8,
    slots: [Option<Held<P>>; DEPTH],
}

impl<P> Default for Bucket<P> {
    fn default() -> Self {
        Self { digests: [0; DEPTH], order: [0; DEPTH], len: 0, slots: Default::default() }
    }
}

impl<P> Bucket<P> {
    pub(super) fn is_full(&self) -> bool {
        usize::from(self.len) == DEPTH
    }

    pub(super) fn oldest(&self) -> Option<&Held<P>> {
        self.ordered().first().and_then(|slot| self.slots[usize::from(*slot)].as_ref())
    }

    pub(super) fn take_oldest(&mut self) -> Option<Held<P>> {
        let slot = *self.ordered().first()?;
        self.take(usize::from(slot))
    }

    /// Takes the head out of `slot`; those younger than it move up in the order.
    pub(super) fn take(&mut self, slot: usize) -> Option<Held<P>> {
        let place = self.ordered().iter().position(|other| usize::from(*other) == slot)?;
        self.order.copy_within(place + 1..usize::from(self.len), place);
        self.len -= 1;
        self.slots[slot].take()
    }

    /// Puts a new head behind all others. The bucket must not be full.
    pub(super) fn insert(&mut self, digest: u64, held: Held<P>) {
        if let Some(slot) = self.slots.iter().position(Option::is_none) {
            self.digests[slot] = digest;
            self.order[usize::from(self.len)] = slot as u8;
            self.len += 1;
            self.slots[slot] = Some(held);
        }
    }

    pub(super) fn slot(&mut self, slot: usize) -> Option<&mut Held<P>> {
        self.slots[slot].as_mut()
    }

    fn ordered(&self) -> &[u8] {
        &self.order[..usize::from(self.len)]
    }
}

impl<P: Packet> Bucket<P> {
    /// The slot of the head of this flow.
    pub(super) fn find(&self, packet: &P, flow: &Flow, layer: &Layer) -> Option<usize> {
        self.ordered().iter().map(|slot| usize::from(*slot)).find(|slot| {
            self.digests[*slot] == flow.digest
                && self.slots[*slot].as_ref().is_some_and(|held| held.is_flow(packet, flow, layer))
        })
    }
}

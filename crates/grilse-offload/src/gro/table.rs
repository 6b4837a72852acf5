//! The held packets: where they lie, how they are found, and in which order they leave.
//!
//! All heads lie in one slab. A hash index over the digests of flows finds one in a few loads, however
//! many are held; the heads of a bucket form a list, oldest first, and no bucket holds more than its
//! depth. No two heads are of one flow: a packet becomes a head only where its flow has none, or has
//! just lost it. Nothing is allocated after [`Table::new`].
//!
//! Digests are not keyed: who chooses addresses and ports can put all heads into one chain of the
//! index, and then finding one costs a pass over the links, 24 bytes for each.

use alloc::boxed::Box;

use grilse_wire::Packet;

use super::held::Held;
use super::overtake::Overtaker;
use super::parse::{Flow, Layer};
use crate::Rules;

/// No slot.
const NONE: u32 = u32::MAX;

/// The heads of one GRO instance.
#[derive(Debug)]
pub(super) struct Table<P> {
    slots: Box<[Option<Held<P>>]>,
    /// What is needed to pass a head over without touching it.
    links: Box<[Link]>,
    /// By [`cell`](Self::cell) of the digest, the first slot of a chain.
    index: Box<[u32]>,
    /// By cell of the pair of addresses, how many heads have one that falls there.
    pairs: Box<[u32]>,
    buckets: Box<[Bucket]>,
    depth: u32,
    /// The first free slot; `younger` of each is the next.
    free: u32,
    held: usize,
}

/// Beside each slot, whose order in the bucket and place in the index it tells.
#[derive(Clone, Copy, Debug)]
struct Link {
    digest: u64,
    /// The next slot in the chain of the index.
    chain: u32,
    older: u32,
    younger: u32,
    /// Digest of the outermost addresses.
    pair: u32,
}

/// The heads of one bucket.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    oldest: u32,
    youngest: u32,
    len: u32,
}

impl<P> Table<P> {
    /// An empty table, of as many buckets and heads in each as `rules` say.
    pub(super) fn new(rules: &Rules) -> Self {
        let depth = u32::from(rules.bucket_depth.max(1));
        let buckets = 1_usize << rules.bucket_bits.min(16);
        let slots = buckets * depth as usize;
        // At most every second cell has a head, so chains are short.
        let cells = (2 * slots).next_power_of_two();
        let link = |next| Link { digest: 0, chain: NONE, older: NONE, younger: next, pair: 0 };
        let next = |slot: usize| if slot + 1 < slots { slot as u32 + 1 } else { NONE };
        Self {
            slots: (0..slots).map(|_| None).collect(),
            links: (0..slots).map(|slot| link(next(slot))).collect(),
            index: (0..cells).map(|_| NONE).collect(),
            pairs: (0..cells).map(|_| 0).collect(),
            buckets: (0..buckets)
                .map(|_| Bucket { oldest: NONE, youngest: NONE, len: 0 })
                .collect(),
            depth,
            free: 0,
            held: 0,
        }
    }

    pub(super) fn held(&self) -> usize {
        self.held
    }

    pub(super) fn buckets(&self) -> usize {
        self.buckets.len()
    }

    /// The bucket of a receive hash.
    pub(super) fn bucket(&self, hash: u32) -> usize {
        hash as usize & (self.buckets.len() - 1)
    }

    pub(super) fn is_full(&self, bucket: usize) -> bool {
        self.buckets[bucket].len == self.depth
    }

    pub(super) fn oldest(&self, bucket: usize) -> Option<&Held<P>> {
        self.slots.get(self.buckets[bucket].oldest as usize)?.as_ref()
    }

    pub(super) fn take_oldest(&mut self, bucket: usize) -> Option<Held<P>> {
        let oldest = self.buckets[bucket].oldest;
        if oldest == NONE { None } else { self.take(bucket, oldest as usize) }
    }

    pub(super) fn slot(&mut self, slot: usize) -> Option<&mut Held<P>> {
        self.slots[slot].as_mut()
    }

    /// Takes the head out of `slot`, which belongs to `bucket`.
    pub(super) fn take(&mut self, bucket: usize, slot: usize) -> Option<Held<P>> {
        let held = self.slots[slot].take()?;
        let Link { digest, chain, older, younger, pair } = self.links[slot];
        let bucket = &mut self.buckets[bucket];
        match older {
            NONE => bucket.oldest = younger,
            older => self.links[older as usize].younger = younger,
        }
        match younger {
            NONE => bucket.youngest = older,
            younger => self.links[younger as usize].older = older,
        }
        bucket.len -= 1;
        let cell = self.cell(digest);
        match self.before(cell, slot as u32) {
            None => self.index[cell] = chain,
            Some(before) => self.links[before].chain = chain,
        }
        let pair = self.cell(pair.into());
        self.pairs[pair] -= 1;
        self.links[slot].younger = self.free;
        self.free = slot as u32;
        self.held -= 1;
        Some(held)
    }

    /// The slot in front of `slot` in its chain of the index.
    fn before(&self, cell: usize, slot: u32) -> Option<usize> {
        let (mut before, mut at) = (None, self.index[cell]);
        while at != slot && at != NONE {
            before = Some(at as usize);
            at = self.links[at as usize].chain;
        }
        before
    }

    /// Puts a head behind all others of its bucket, which must not be full. `pair` is the digest of
    /// its outermost addresses.
    pub(super) fn insert(&mut self, bucket: usize, digest: u64, pair: u32, held: Held<P>) {
        let slot = self.free;
        let Some(link) = self.links.get(slot as usize) else { return };
        self.free = link.younger;
        let cell = self.cell(digest);
        let bucket = &mut self.buckets[bucket];
        let older = bucket.youngest;
        self.links[slot as usize] =
            Link { digest, chain: self.index[cell], older, younger: NONE, pair };
        self.index[cell] = slot;
        match older {
            NONE => bucket.oldest = slot,
            older => self.links[older as usize].younger = slot,
        }
        bucket.youngest = slot;
        bucket.len += 1;
        let pair = self.cell(pair.into());
        self.pairs[pair] += 1;
        self.slots[slot as usize] = Some(held);
        self.held += 1;
    }

    /// The cell of a digest, in the index and in `pairs`.
    fn cell(&self, digest: u64) -> usize {
        digest as usize & (self.index.len() - 1)
    }
}

impl<P: Packet> Table<P> {
    /// The slot of the head of this flow.
    #[inline]
    pub(super) fn find(&self, packet: &P, flow: &Flow) -> Option<usize> {
        let mut at = self.index[self.cell(flow.digest)];
        while let Some(link) = self.links.get(at as usize) {
            if link.digest == flow.digest
                && self.slots[at as usize].as_ref().is_some_and(|held| held.is_flow(packet, flow))
            {
                return Some(at as usize);
            }
            at = link.chain;
        }
        None
    }

    /// Takes a head of the same connection that is another flow to [`find`](Self::find).
    pub(super) fn take_sibling(
        &mut self,
        packet: &P,
        flow: &Flow,
        layer: &Layer,
    ) -> Option<Held<P>> {
        let mut at = self.index[self.cell(flow.digest)];
        while let Some(link) = self.links.get(at as usize) {
            if link.digest == flow.digest
                && let Some(held) = &self.slots[at as usize]
                && held.is_sibling(packet, layer)
            {
                let bucket = self.bucket(held.packet.meta().hash);
                return self.take(bucket, at as usize);
            }
            at = link.chain;
        }
        None
    }

    /// Takes a head that `overtaker` would overtake: the first in the order in which a flush
    /// delivers them. Costs a walk over the heads where one has the same addresses.
    pub(super) fn take_overtaken(&mut self, overtaker: &Overtaker) -> Option<Held<P>> {
        if self.pairs[self.cell(overtaker.pair().into())] == 0 {
            return None;
        }
        for bucket in 0..self.buckets.len() {
            let mut at = self.buckets[bucket].oldest;
            while let Some(link) = self.links.get(at as usize) {
                if link.pair == overtaker.pair()
                    && self.slots[at as usize]
                        .as_ref()
                        .is_some_and(|held| overtaker.overtakes(held))
                {
                    return self.take(bucket, at as usize);
                }
                at = link.younger;
            }
        }
        None
    }
}

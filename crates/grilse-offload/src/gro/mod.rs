//! The GRO table: packets in, super-packets out.
//!
//! A packet is read once ([`parse`]), looked up among the held ([`table`]), and
//! judged against the head of its flow ([`tcp`], [`udp`]); what leaves is finished ([`complete`]).
//! At every point a packet is held, merged or delivered: none is lost, and none is held whose turn
//! never comes, as long as somebody flushes. The table knows no clock, no devices and no batches.

use grilse_wire::{Meta, Packet};

use crate::{Config, Reason, Why};

mod complete;
mod csum;
mod held;
mod l3;
mod levels;
mod overtake;
mod parse;
mod table;
mod tcp;
mod tunnel;
mod udp;
mod udp_tunnel;

use held::{Fate, Held, Step};
use overtake::Overtaker;
use parse::{Flow, Layer};
use table::Table;

/// The packets that GRO holds, and the rules for merging into them (the kernel's `gro_node`).
///
/// Memory is allocated by [`new`](Gro::new), none later.
#[derive(Debug)]
pub struct Gro<P> {
    config: Config,
    table: Table<P>,
}

/// What became of a packet that was pushed.
#[derive(Debug)]
#[must_use = "a merged packet may leave an emptied one for reuse"]
pub enum Outcome<P> {
    /// It joined a held packet. What is left of it, without its bytes, may be used again.
    Merged(Option<P>),
    /// It is held, and comes out later.
    Held,
    /// It went to the sink alone.
    Delivered,
}

/// Where packets go that GRO is done with. Closures over packet and reason are sinks.
pub trait Sink<P> {
    /// `packet` has just joined the held packet of `head`; the `seq` of both tell who is who.
    fn merged(&mut self, _head: &Meta, _packet: &Meta) {}

    /// `packet` has just lost this many bytes of Ethernet padding.
    fn trimmed(&mut self, _packet: &Meta, _bytes: usize) {}

    /// Takes a packet that is delivered, in the kernel's order.
    fn deliver(&mut self, packet: P, why: Why);
}

impl<P, F: FnMut(P, Why)> Sink<P> for F {
    fn deliver(&mut self, packet: P, why: Why) {
        self(packet, why);
    }
}

impl<P: Packet> Gro<P> {
    /// An empty table.
    pub fn new(config: Config) -> Self {
        Self { table: Table::new(&config.rules), config }
    }

    /// The settings in force.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Changes the settings, as when a socket asks for UDP GRO. Held packets stay, and merge by the
    /// new settings; the table keeps its size.
    pub fn configure(&mut self, config: Config) {
        self.config = config;
    }

    /// Number of packets held.
    pub fn held(&self) -> usize {
        self.table.held()
    }

    /// Takes a packet that arrived at `now_ns`. Its [`Meta`] must say `protocol` and `network`, and
    /// what is known of `hash`, `vlan`, `csum` and `gso`.
    ///
    /// A head that this packet completes goes to `sink` first, then the packet itself where it
    /// neither merges nor is held. Costs one pass over the payload where nobody vouched for the
    /// checksum, and no allocation.
    pub fn push(&mut self, mut packet: P, now_ns: u64, sink: &mut impl Sink<P>) -> Outcome<P> {
        let mut flow = Flow::new(&packet, &self.config.rules);
        if !self.config.gro {
            return self.overtake(packet, &flow, Reason::GroOff.into(), sink);
        }
        let walked = parse::walk(&mut packet, &mut flow, &self.config);
        if flow.padding > 0 {
            sink.trimmed(packet.meta(), flow.padding);
        }
        let layer = match walked {
            Ok(layer) => layer,
            Err(why) => return self.overtake(packet, &flow, why, sink),
        };
        let bucket = self.table.bucket(packet.meta().hash);
        let slot = self.table.find(&packet, &flow);
        if slot.is_none() && self.config.rules.ordered {
            // No two heads are of one connection, or the younger might leave first.
            while let Some(held) = self.table.take_sibling(&packet, &flow, &layer) {
                self.release(held, Reason::OtherHeaders.into(), sink);
            }
        }
        let step = match slot.and_then(|slot| self.table.slot(slot)) {
            None => Step::new(None, alone(packet, &flow, &layer)),
            Some(head) => join(head, packet, &mut flow, layer, &self.config, sink),
        };
        if let (Some(why), Some(slot)) = (step.ended, slot) {
            self.end(bucket, slot, why, sink);
        }
        match step.packet {
            Fate::Merged(emptied) => Outcome::Merged(emptied),
            Fate::Normal(packet, why) => deliver(packet, why, sink),
            Fate::Hold(packet) => self.hold(bucket, packet, &flow, layer, now_ns, sink),
        }
    }

    /// Delivers all packets held: bucket by bucket, in each the oldest first.
    pub fn flush(&mut self, sink: &mut impl Sink<P>) {
        for bucket in 0..self.table.buckets() {
            if self.table.held() == 0 {
                return;
            }
            while let Some(held) = self.table.take_oldest(bucket) {
                self.release(held, Reason::PollEnd.into(), sink);
            }
        }
    }

    /// Delivers the packets that have been held since before `before_ns`, in the same order. The
    /// kernel does this with the start of the current jiffy where it has a flush timeout.
    pub fn flush_older(&mut self, before_ns: u64, sink: &mut impl Sink<P>) {
        for bucket in 0..self.table.buckets() {
            while let Some(since_ns) = self.table.oldest(bucket).map(|held| held.since_ns)
                && since_ns < before_ns
                && let Some(held) = self.table.take_oldest(bucket)
            {
                self.release(held, Why::new(Reason::Age, since_ns, before_ns), sink);
            }
        }
    }

    /// Makes a packet a head. In a full bucket the oldest makes room.
    fn hold(
        &mut self,
        bucket: usize,
        mut packet: P,
        flow: &Flow,
        layer: Layer,
        now_ns: u64,
        sink: &mut impl Sink<P>,
    ) -> Outcome<P> {
        // Completion writes headers, and must not fail then.
        if packet.front_mut(flow.at).is_none() {
            return deliver(packet, Reason::Refused.into(), sink);
        }
        if self.table.is_full(bucket)
            && let Some(oldest) = self.table.take_oldest(bucket)
        {
            self.release(oldest, Reason::Evicted.into(), sink);
        }
        let rules = &self.config.rules;
        let pair = if rules.ordered { flow.levels.pair(packet.front()) } else { 0 };
        let held = Held::new(packet, flow, layer, now_ns, rules);
        self.table.insert(bucket, flow.digest, pair, held);
        Outcome::Held
    }

    /// Completes one head.
    fn end(&mut self, bucket: usize, slot: usize, why: Why, sink: &mut impl Sink<P>) {
        if let Some(held) = self.table.take(bucket, slot) {
            self.release(held, why, sink);
        }
    }

    /// Delivers a packet that the walk gave up on. Where the rules keep the order, the heads that
    /// it would overtake leave first, for the same reason.
    #[cold]
    fn overtake(
        &mut self,
        mut packet: P,
        flow: &Flow,
        why: Why,
        sink: &mut impl Sink<P>,
    ) -> Outcome<P> {
        if self.config.rules.ordered
            && self.table.held() > 0
            && let Some(overtaker) = Overtaker::new(&mut packet, flow)
        {
            while let Some(held) = self.table.take_overtaken(&overtaker) {
                self.release(held, why, sink);
            }
        }
        deliver(packet, why, sink)
    }

    /// Delivers a head that the table holds no more.
    fn release(&self, held: Held<P>, why: Why, sink: &mut impl Sink<P>) {
        sink.deliver(complete::complete(held, &self.config.rules), why);
    }
}

fn deliver<P>(packet: P, why: Why, sink: &mut impl Sink<P>) -> Outcome<P> {
    sink.deliver(packet, why);
    Outcome::Delivered
}

fn alone<P: Packet>(packet: P, flow: &Flow, layer: &Layer) -> Fate<P> {
    match layer {
        Layer::Tcp(segment) => tcp::alone(packet, flow, segment),
        Layer::Udp(_) => udp::alone(packet, flow),
    }
}

fn join<P: Packet>(
    head: &mut Held<P>,
    packet: P,
    flow: &mut Flow,
    layer: Layer,
    config: &Config,
    sink: &mut impl Sink<P>,
) -> Step<P> {
    match layer {
        // What follows a head that is no list becomes none (tcp4_check_fraglist_gro).
        Layer::Tcp(segment) => {
            flow.list &= head.list;
            tcp::join(head, packet, flow, &segment, config, sink)
        }
        Layer::Udp(datagram) => udp::join(head, packet, flow, datagram, config, sink),
    }
}

//! One held packet, the head of its flow, and how it grows.
//!
//! What the tests need is cached beside the packet, so that a packet that comes touches the table
//! and the head's first header bytes, and no more. The bytes of the head are not written until it
//! is complete.

use core::mem;

use grilse_wire::{Csum, How, Packet, Refused, VlanTag, eth::ethertype};

use super::Sink;
use super::levels::{Family, Levels};
use super::parse::{Flow, Layer};
use super::tcp::Segment;
use crate::config::LEGACY_MAX_SIZE;
use crate::{BigTcp, Config, Reason, Rules, Why};

/// Bytes that a jumbo payload option takes (`struct hop_jumbo_hdr`).
pub(super) const JUMBO_LEN: usize = 8;

/// The head of one flow.
#[derive(Debug)]
pub(super) struct Held<P> {
    pub(super) packet: P,
    /// When it became a head.
    pub(super) since_ns: u64,
    pub(super) levels: Levels,
    /// Layer 4 as the last segment left it: for TCP, `seq` is the one due next, and PSH and FIN are
    /// those of all segments.
    pub(super) layer: Layer,
    pub(super) l4: u16,
    /// Offset of the payload.
    pub(super) payload: usize,
    /// Length from the network header on, which is what size limits count (`skb->len`).
    len: usize,
    /// Payload bytes per segment, cut to 16 bits as in `skb_shared_info`.
    pub(super) mss: u16,
    /// Segments it stands for.
    pub(super) segs: u16,
    /// Bit n: the identification of IP level n stays the same (`ip_fixedid`). Before 6.18 there is
    /// bit 0 alone, for all levels.
    pub(super) fixed: u8,
    /// Whether packets are chained whole.
    pub(super) list: bool,
    network: u16,
    protocol: u16,
    hash: u32,
    vlan: Option<VlanTag>,
    csum: Csum,
}

/// What a packet did to the head that it met, and what becomes of it.
#[derive(Debug)]
pub(super) struct Step<P> {
    /// Why the head is complete.
    pub(super) ended: Option<Why>,
    pub(super) packet: Fate<P>,
}

/// What becomes of a packet that came.
#[derive(Debug)]
pub(super) enum Fate<P> {
    /// It joined the head; what is left of it.
    Merged(Option<P>),
    /// It becomes a head.
    Hold(P),
    /// It is delivered alone.
    Normal(P, Why),
}

impl<P> Step<P> {
    pub(super) fn new(ended: Option<Why>, packet: Fate<P>) -> Self {
        Self { ended, packet }
    }
}

impl<P: Packet> Held<P> {
    pub(super) fn new(packet: P, flow: &Flow, layer: Layer, now_ns: u64, rules: &Rules) -> Self {
        let meta = *packet.meta();
        let layer = match layer {
            Layer::Tcp(segment) => {
                Layer::Tcp(Segment { seq: segment.seq.wrapping_add(flow.len as u32), ..segment })
            }
            udp => udp,
        };
        Self {
            since_ns: now_ns,
            levels: flow.levels,
            layer,
            l4: flow.l4,
            payload: flow.at,
            len: packet.len() - usize::from(meta.network),
            mss: if flow.gso_size == 0 { flow.len as u16 } else { flow.gso_size },
            segs: flow.segs,
            fixed: flow.levels.fixed_at_first(rules),
            list: flow.list,
            network: meta.network,
            protocol: meta.protocol,
            hash: meta.hash,
            vlan: meta.vlan,
            csum: meta.csum,
            packet,
        }
    }

    /// Whether a packet belongs to the flow of this head (`gro_list_prepare`, and what each layer
    /// adds): hash, tag, all bytes in front of IP, addresses, IPv6 flow label and extension
    /// headers, tunnel header, protocol and ports are equal.
    ///
    /// Out of line: in [`find`](super::table::Table::find) its registers would be saved for every
    /// packet, those of new flows included.
    #[inline(never)]
    pub(super) fn is_flow(&self, packet: &P, flow: &Flow) -> bool {
        let meta = packet.meta();
        if (self.l4, self.hash, self.network, self.protocol, self.vlan)
            != (flow.l4, meta.hash, meta.network, meta.protocol, meta.vlan)
            || self.packet.meta().interface != meta.interface
        {
            return false;
        }
        let (held, came) = (self.packet.front(), packet.front());
        let Some(from) = self.levels.same_flow(&flow.levels, held, came) else { return false };
        let ports = usize::from(self.l4) + 4;
        held[from..ports] == came[from..ports]
    }

    /// Whether a packet with the digest of this head's flow, which came from the same neighbour on the
    /// same link, is of the same connection: headers between link and layer 4 may differ.
    pub(super) fn is_sibling(&self, packet: &P, layer: &Layer) -> bool {
        let (meta, network) = (packet.meta(), usize::from(self.network));
        mem::discriminant(&self.layer) == mem::discriminant(layer)
            && (self.network, self.vlan) == (meta.network, meta.vlan)
            && self.packet.meta().interface == meta.interface
            && self.packet.front().get(..network) == packet.front().get(..network)
    }

    /// Takes a packet that passed all tests of its protocol, unless it is too much
    /// (`skb_gro_receive`, `skb_gro_receive_list`).
    pub(super) fn absorb(
        &mut self,
        packet: P,
        flow: &Flow,
        config: &Config,
        sink: &mut impl Sink<P>,
    ) -> Result<Option<P>, (P, Why)> {
        let meta = *packet.meta();
        let how = if self.list { How::Whole } else { How::Bytes };
        let room = match how {
            How::Bytes => self.bytes_fit(&packet, flow, config),
            How::Whole => self.whole_fits(packet.len() - usize::from(meta.network)),
        };
        let segs = match self.segs.checked_add(flow.segs) {
            // The kernel's counter would wrap here; a sum that lies helps nobody.
            None => Err(Why::new(Reason::CountCap, self.segs, flow.segs)),
            Some(segs) => room.map(|()| segs),
        };
        let segs = match segs {
            Ok(segs) => segs,
            Err(why) => return Err((packet, why)),
        };
        match self.packet.absorb(packet, flow.at, how) {
            Err(Refused(packet)) => Err((packet, Reason::Refused.into())),
            Ok(emptied) => {
                self.segs = segs;
                self.len += flow.len;
                sink.merged(self.packet.meta(), &meta);
                Ok(emptied)
            }
        }
    }

    fn bytes_fit(&self, packet: &P, flow: &Flow, config: &Config) -> Result<(), Why> {
        let len = self.len + flow.len;
        let max = match self.protocol {
            ethertype::IPV6 => config.gro_max_size(),
            _ => config.gro_ipv4_max_size(),
        } as usize;
        if !self.packet.same_source(packet) {
            return Err(Reason::Source.into());
        }
        if len >= max {
            return Err(Why::lengths(Reason::SizeLimit, max, len));
        }
        if len >= LEGACY_MAX_SIZE && !self.can_be_big(&config.rules) {
            return Err(Why::lengths(Reason::SizeLimit, LEGACY_MAX_SIZE, len));
        }
        Ok(())
    }

    /// Whether the head may reach 64 KiB: TCP alone, not what a device calls encapsulated, and where
    /// IPv6 has room in front for its jumbo option, if it is to have one.
    ///
    /// Nor with that in a tunnel over IPv6. The kernel writes the option over the headers behind that
    /// of IPv6 then, and drops the super-packet or delivers it broken: a fault, which is not copied.
    fn can_be_big(&self, rules: &Rules) -> bool {
        let options = rules.big_tcp == BigTcp::HopByHop;
        let v6 = options && self.levels.iter().any(|level| level.family == Family::V6);
        let over_v6 = options
            && !self.levels.tunnel.is_none()
            && self.levels.iter().next().is_some_and(|outer| outer.family == Family::V6);
        matches!(self.layer, Layer::Tcp(_))
            && !self.packet.meta().encapsulated
            && !over_v6
            && (!v6 || self.packet.headroom() >= JUMBO_LEN)
    }

    /// Lists count the headers of what comes, though only payload is added.
    fn whole_fits(&self, len: usize) -> Result<(), Why> {
        let len = self.len + len;
        if len >= LEGACY_MAX_SIZE {
            return Err(Why::lengths(Reason::SizeLimit, LEGACY_MAX_SIZE, len));
        }
        Ok(())
    }

    /// Chained packets share one checksum state and level, which the completed head speaks for.
    pub(super) fn compare_checksums(&self, packet: &P) -> Result<(), Why> {
        let (head, packet) = (state(&self.csum), state(&packet.meta().csum));
        if head != packet {
            return Err(Why::new(Reason::ChecksumState, head, packet));
        }
        Ok(())
    }
}

/// A checksum state as two digits: what it is (`ip_summed`), and its level.
fn state(csum: &Csum) -> u8 {
    match csum {
        Csum::None => 0x00,
        Csum::Unnecessary { level } => 0x10 | level & 15,
        Csum::Complete { .. } => 0x20,
        Csum::Partial { .. } => 0x30,
    }
}

impl<P> Held<P> {
    /// Moves the head's end behind `len` more bytes of TCP, and adds their PSH and FIN.
    pub(super) fn extend(&mut self, last: u32, len: usize) {
        if let Layer::Tcp(segment) = &mut self.layer {
            segment.seq = segment.seq.wrapping_add(len as u32);
            segment.word |= last;
        }
    }
}

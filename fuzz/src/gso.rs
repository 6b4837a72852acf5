//! Segmentation: a super-packet is cut into the packets that the frame builder makes one by one,
//! and one whose metadata or headers lie is cut or comes back, but harms nobody.

use arbitrary::{Arbitrary, Unstructured};
use grilse_offload::gso::{self, Checksums, Invalid};
use grilse_wire::build::{
    Check, Eth, Gre, Ipv4, Ipv6, Network, Tcp, Transport, Udp, Vxlan, ethernet, packet, payload,
};
use grilse_wire::eth::ethertype;
use grilse_wire::tcp::flag;
use grilse_wire::{
    Csum, Gso, GsoType, Heap, Linear, Meta, Packet, VlanTag, gre, ipv4, ipv6, vxlan,
};

use crate::buffers::{Buffers, Skbs, bytes};
use crate::sums;

#[derive(Arbitrary, Clone, Debug)]
enum Input {
    Train(Train),
    Lie {
        of: Train,
        damage: Vec<(u8, u8)>,
        cut: Option<u16>,
        says: Says,
    },
    /// The frame is what is left of the input.
    Raw(Says),
}

/// A super-packet that tells the truth.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Train {
    /// What is within.
    v6: bool,
    is_udp: bool,
    /// What is around it.
    around: Around,
    outer_v6: bool,
    tagged: bool,
    options: bool,
    flags: u16,
    accurate: bool,
    seq: u32,
    /// Identification of the first segment, and whether it stays, inside and outside.
    id: u16,
    fixed: (bool, bool),
    size: u16,
    len: u16,
}

#[derive(Arbitrary, Clone, Copy, Debug, PartialEq, Eq)]
enum Around {
    Nothing,
    Ip,
    Gre,
    SummedGre,
    Vxlan,
    SummedVxlan,
}

/// Metadata of any kind.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Says {
    /// What a truthful one would have said stays, where its bit is set.
    truth: u8,
    protocol: u16,
    network: u8,
    transport: u8,
    inner: u8,
    start: u16,
    offset: u8,
    finished: bool,
    kind: u32,
    size: u16,
    wire_len: u16,
    mtu: u16,
}

/// Cuts the super-packet that the input decides.
///
/// # Panics
/// Where the segments are not those that were sent one by one, where a refused packet has changed,
/// or where segments are not as many or as short as was said.
pub fn gso(data: &[u8]) {
    let mut rest = Unstructured::new(data);
    let Ok(input) = Input::arbitrary(&mut rest) else { return };
    match input {
        Input::Train(train) => train.is_cut(),
        Input::Lie { of, damage, cut, says } => {
            let mut frame = of.frame(None);
            for (at, mask) in damage {
                if let Some(byte) = frame.get_mut(usize::from(at)) {
                    *byte ^= mask;
                }
            }
            frame.truncate(cut.map_or(usize::MAX, usize::from));
            says.harms_nobody(&frame, of.meta());
        }
        Input::Raw(says) => says.harms_nobody(rest.take_rest(), Meta::default()),
    }
}

impl Train {
    fn size(&self) -> usize {
        usize::from(self.size) % 1400 + 1
    }

    /// Payload, of a hundred segments at most.
    fn len(&self) -> usize {
        usize::from(self.len) % (100 * self.size()).min(60_000)
    }

    fn is_cut(&self) {
        let (frame, meta) = (self.frame(None), self.meta());
        if self.len() <= self.size() {
            let refused = gso::segment(Heap.packet(&frame, meta), Checksums::Finish).unwrap_err();
            assert!(matches!(refused.why, Invalid::OneSegment { .. }), "{:?}", refused.why);
            return;
        }
        let want: Vec<Vec<u8>> =
            (0..self.len().div_ceil(self.size())).map(|n| self.frame(Some(n))).collect();
        for segment in &want {
            assert!(sums::are_right(segment, self.inner_ip()), "the builder sums wrongly");
        }
        for checksums in [Checksums::Finish, Checksums::Leave] {
            assert!(cut(&mut Heap, &frame, meta, checksums) == want, "{self:?}, {checksums:?}");
        }
        assert!(write(&frame, meta) == want, "written, {self:?}");
        if frame.len() < crate::traffic::LONGEST {
            let in_skbs = Skbs::with(|skbs| cut(skbs, &frame, meta, Checksums::Finish));
            assert!(in_skbs == want, "in skbs, {self:?}");
        }
    }

    /// The frame of segment `n`, or of the super-packet.
    fn frame(&self, n: Option<usize>) -> Vec<u8> {
        let inner = self.inner(n);
        let kind = if self.v6 { ethertype::IPV6 } else { ethertype::IPV4 };
        let protocol = if self.v6 { ipv6::PROTOCOL } else { ipv4::PROTOCOL };
        let tags: &[VlanTag] = &[VlanTag { tpid: ethertype::VLAN, tci: 5 }];
        let eth = Eth { tags: if self.tagged { tags } else { &[] }, ..Eth::default() };
        let plain = Gre { protocol: kind, key: Some(7), ..Gre::default() };
        let bridged = || Vxlan::default().around(&ethernet(Eth::default(), kind, &inner));
        let body = match self.around {
            Around::Nothing => return ethernet(eth, kind, &inner),
            Around::Ip => self.outer(n, Transport::Raw(protocol), &inner),
            Around::Gre => self.outer(n, Transport::Raw(gre::PROTOCOL), &plain.around(&inner)),
            Around::SummedGre => {
                let summed = Gre { check: Some(Check::Right), ..plain };
                self.outer(n, Transport::Raw(gre::PROTOCOL), &summed.around(&inner))
            }
            Around::Vxlan => self.outer(n, udp(Check::Exactly(0)), &bridged()),
            Around::SummedVxlan => self.outer(n, udp(sum(n)), &bridged()),
        };
        let outer = if self.outer_v6 { ethertype::IPV6 } else { ethertype::IPV4 };
        ethernet(eth, outer, &body)
    }

    fn outer(&self, n: Option<usize>, transport: Transport<'_>, body: &[u8]) -> Vec<u8> {
        let id = self.id(n, self.fixed.1).wrapping_add(77);
        let network: Network<'_> = match self.outer_v6 {
            true => Ipv6 { class: 1, ..Ipv6::default() }.into(),
            false => Ipv4 { id, ttl: 3, ..Ipv4::default() }.into(),
        };
        packet(network, transport, body)
    }

    fn inner(&self, n: Option<usize>) -> Vec<u8> {
        let at = n.unwrap_or(0) * self.size();
        let len = n.map_or(self.len(), |_| self.size().min(self.len() - at));
        let options: &[u8] = if self.options { &[1; 12] } else { &[] };
        let network: Network<'_> = match self.v6 {
            true => Ipv6 { class: 3, label: 77, ..Ipv6::default() }.into(),
            false => {
                let options = if self.options { &options[..4] } else { options };
                Ipv4 { id: self.id(n, self.fixed.0), tos: 3, options, ..Ipv4::default() }.into()
            }
        };
        let transport: Transport<'_> = match self.is_udp {
            true => Udp { check: sum(n), ..Udp::default() }.into(),
            false => {
                let seq = self.seq.wrapping_add(at as u32);
                let flags = self.flags(n);
                Tcp { seq, flags, options, check: sum(n), urgent: 9, ..Tcp::default() }.into()
            }
        };
        packet(network, transport, &payload(at, len))
    }

    fn id(&self, n: Option<usize>, fixed: bool) -> u16 {
        let grown = if fixed { 0 } else { n.unwrap_or(0) };
        self.id.wrapping_add(grown as u16)
    }

    /// CWR stands on the first segment, or on all; FIN and PSH on the last.
    fn flags(&self, n: Option<usize>) -> u16 {
        let mut flags = self.flags & 0x1ff;
        let Some(n) = n else { return flags };
        if n > 0 && !self.accurate {
            flags &= !flag::CWR;
        }
        if n + 1 < self.len().div_ceil(self.size()) {
            flags &= !(flag::FIN | flag::PSH);
        }
        flags
    }

    /// Offset of the inner IP header.
    fn inner_ip(&self) -> usize {
        let outer = if self.outer_v6 { 40 } else { 20 };
        let link = if self.tagged { 18 } else { 14 };
        link + match self.around {
            Around::Nothing => 0,
            Around::Ip => outer,
            Around::Gre => outer + 8,
            Around::SummedGre => outer + 12,
            Around::Vxlan | Around::SummedVxlan => outer + 8 + 8 + 14,
        }
    }

    fn meta(&self) -> Meta {
        let inner = self.inner_ip();
        let ip = match (self.v6, self.options) {
            (true, _) => 40,
            (false, true) => 24,
            (false, false) => 20,
        };
        let (start, offset) = ((inner + ip) as u16, if self.is_udp { 6 } else { 16 });
        let outer_v6 = if self.around == Around::Nothing { self.v6 } else { self.outer_v6 };
        let kind = if outer_v6 { ethertype::IPV6 } else { ethertype::IPV4 };
        let in_udp = matches!(self.around, Around::Vxlan | Around::SummedVxlan);
        let inner = if in_udp { inner as u16 } else { 0 };
        Meta {
            protocol: if self.tagged { ethertype::VLAN } else { kind },
            network: 14,
            transport: start,
            inner_network: inner,
            encapsulated: in_udp,
            csum: Csum::Partial { start, offset },
            gso: Gso { size: self.size() as u16, segs: 0, kind: self.kind() },
            ..Meta::default()
        }
    }

    fn kind(&self) -> GsoType {
        let mut kind = GsoType::IDS_PER_LEVEL;
        kind |= match (self.is_udp, self.v6) {
            (true, _) => GsoType::UDP_L4,
            (false, true) => GsoType::TCPV6,
            (false, false) => GsoType::TCPV4,
        };
        kind |= match (self.around, self.outer_v6) {
            (Around::Nothing, _) => GsoType::default(),
            (Around::Ip, true) => GsoType::IPXIP6,
            (Around::Ip, false) => GsoType::IPXIP4,
            (Around::Gre, _) => GsoType::GRE,
            (Around::SummedGre, _) => GsoType::GRE_CSUM,
            (Around::Vxlan, _) => GsoType::UDP_TUNNEL,
            (Around::SummedVxlan, _) => GsoType::UDP_TUNNEL_CSUM,
        };
        let (inner_bit, outer_bit) = match self.around {
            Around::Nothing => (GsoType::TCP_FIXEDID, GsoType::default()),
            _ => (GsoType::TCP_FIXEDID_INNER, GsoType::TCP_FIXEDID),
        };
        for (there, bit) in [
            (self.fixed.0, inner_bit),
            (self.fixed.1, outer_bit),
            (self.accurate, GsoType::TCP_ACCECN),
        ] {
            if there {
                kind |= bit;
            }
        }
        kind
    }
}

/// The checksum field of a segment, or of the super-packet.
fn sum(n: Option<usize>) -> Check {
    if n.is_some() { Check::Right } else { Check::Partial }
}

fn udp(check: Check) -> Transport<'static> {
    Udp { dst_port: vxlan::PORT, check, ..Udp::default() }.into()
}

/// Cuts into packets, and finishes what was left to a device.
fn cut<B: Buffers>(
    buffers: &mut B,
    frame: &[u8],
    meta: Meta,
    checksums: Checksums,
) -> Vec<Vec<u8>> {
    let packet = buffers.packet(frame, meta);
    let refused = |rejected: gso::Rejected<_>| rejected.why;
    let mut segments =
        gso::segment(packet, checksums).map_err(refused).expect("a super-packet that is right");
    let made: Vec<B::Packet> = segments.packets(buffers).collect();
    buffers.give_back(segments.into_packet());
    let finished = made.into_iter().map(|mut packet| {
        assert_eq!(packet.meta().gso, Gso::default());
        gso::finish(&mut packet).expect("a checksum of a segment");
        let all = bytes(&packet);
        buffers.give_back(packet);
        all
    });
    finished.collect()
}

/// Writes the segments to a buffer, one by one.
fn write(frame: &[u8], meta: Meta) -> Vec<Vec<u8>> {
    let mut segments =
        gso::segment(Heap.packet(frame, meta), Checksums::Finish).expect("right, as before");
    let (mut out, mut all) = (vec![0xee; 2000], Vec::new());
    while let Some(len) = segments.write(&mut out).expect("room") {
        all.push(out[..len].to_vec());
    }
    all
}

impl Says {
    fn meta(&self, right: Meta) -> Meta {
        let truth = |bit: u8| self.truth >> bit & 1 != 0;
        let csum = match self.finished {
            true => Csum::None,
            false => Csum::Partial { start: self.start, offset: self.offset.into() },
        };
        let gso = Gso { size: self.size, segs: 0, kind: GsoType(self.kind) };
        let kind = if truth(6) { right.gso.kind } else { gso.kind };
        Meta {
            protocol: if truth(0) { right.protocol } else { self.protocol },
            network: if truth(1) { right.network } else { self.network.into() },
            transport: if truth(2) { right.transport } else { self.transport.into() },
            inner_network: if truth(3) { right.inner_network } else { self.inner.into() },
            csum: if truth(4) { right.csum } else { csum },
            gso: if truth(5) { right.gso } else { Gso { kind, ..gso } },
            wire_len: if truth(7) { 0 } else { self.wire_len.into() },
            encapsulated: right.encapsulated,
            ..Meta::default()
        }
    }

    fn harms_nobody(&self, frame: &[u8], right: Meta) {
        let meta = self.meta(right);
        for checksums in [Checksums::Finish, Checksums::Leave] {
            match gso::segment(Linear::new(frame.to_vec(), meta), checksums) {
                Err(rejected) => {
                    assert_eq!(rejected.packet.bytes(), frame, "a refused packet has changed");
                    assert_eq!(*rejected.packet.meta(), meta);
                }
                Ok(mut segments) => {
                    let count = segments.remaining();
                    assert_eq!(segments.packets(&mut Heap).count(), count, "as many as were said");
                }
            }
        }
        let mut packet = Linear::new(frame.to_vec(), meta);
        // Whether the place of the checksum was a lie is all that it can tell.
        let _ = gso::finish(&mut packet);
        self.fits_the_link(packet);
    }

    /// What is too long for the link is made a super-packet whose segments fit.
    fn fits_the_link(&self, mut packet: Linear) {
        packet.meta_mut().gso = Gso::default();
        let (before, network) = (packet.bytes().to_vec(), packet.meta().network);
        match gso::plan(&mut packet, self.mtu.into()) {
            Ok(false) => assert_eq!(packet.bytes(), before, "what fits stays"),
            Err(_) => assert_eq!(packet.bytes(), before, "what cannot be cut stays"),
            Ok(true) => {
                let mut segments =
                    gso::segment(packet, Checksums::Finish).expect("a plan can be followed");
                for segment in segments.packets(&mut Heap) {
                    let len = segment.len() - usize::from(network);
                    assert!(len <= self.mtu.into(), "a segment of {len} bytes");
                }
            }
        }
    }
}

//! The walk over the headers of a super-packet, from the link header to layer 4.
//!
//! The headers may lie, and so may the metadata: what is read lies within the packet, the
//! segmentation type is that of the protocols found, and no segment outgrows the length field of a
//! header. What passes here can be cut without a further check. Of the packet nothing is changed,
//! save that its headers are contiguous afterwards.

use grilse_wire::eth::{self, ethertype};
use grilse_wire::zerocopy::FromBytes;
use grilse_wire::{
    Csum, GsoType, Meta, Packet, csum, gre, ipv4, ipv6, link, mpls, nsh, tcp, udp, vlan, vxlan,
};

use super::layout::{FRAGMENT_LEN, JUMBO_LEN, L4, Layout, Level};
use super::{Checksums, Invalid};

/// Headers that are followed in one packet, so that one full of tags costs no more than any other.
const MAX_HEADERS: usize = 16;

const UDP_TUNNELS: GsoType = GsoType(GsoType::UDP_TUNNEL.0 | GsoType::UDP_TUNNEL_CSUM.0);

/// What the next header is.
#[derive(Clone, Copy)]
enum Next {
    Ethertype(u16),
    Protocol(u8),
    /// Layer 4 was read.
    End,
}

/// The IP header that the cursor passed last.
#[derive(Clone, Copy)]
enum Ip {
    V4 { src: [u8; 4], dst: [u8; 4] },
    V6 { src: [u8; 16], dst: [u8; 16] },
}

struct Walk<'a, P> {
    packet: &'a mut P,
    meta: Meta,
    /// Offset of the next header in the packet.
    at: usize,
    ip: Ip,
    /// Where the type of the header at the cursor stands, in the headers of a segment.
    type_at: usize,
    /// IP headers passed, all of them and since the last tunnel header.
    depth: usize,
    depth_in_tunnel: usize,
    /// A UDP tunnel was passed; another is not looked for.
    tunnelled: bool,
    layout: Layout,
}

/// Reads the headers of `packet`.
pub(super) fn walk<P: Packet>(packet: &mut P, checksums: Checksums) -> Result<Layout, Invalid> {
    let meta = *packet.meta();
    if matches!(meta.gso.size, 0 | 0xffff) {
        return Err(Invalid::GsoSize { size: meta.gso.size });
    }
    let mut walk = Walk {
        packet,
        meta,
        at: meta.network.into(),
        ip: Ip::V4 { src: [0; 4], dst: [0; 4] },
        type_at: 0,
        depth: 0,
        depth_in_tunnel: 0,
        tunnelled: false,
        layout: Layout::new(checksums),
    };
    let mut next = Next::Ethertype(meta.protocol);
    for _ in 0..MAX_HEADERS {
        next = match next {
            Next::Ethertype(ethertype) => walk.link(ethertype)?,
            Next::Protocol(protocol) => walk.protocol(protocol)?,
            Next::End => return walk.finish(),
        };
    }
    Err(Invalid::TooManyHeaders)
}

impl<P: Packet> Walk<'_, P> {
    /// The first `n` bytes at the cursor.
    fn header(&mut self, n: usize) -> Result<&[u8], Invalid> {
        let (end, len) = (self.at + n, self.packet.len());
        if self.packet.front().len() < end && self.packet.gather(end).is_none() {
            return Err(Invalid::Truncated { end, len });
        }
        self.packet.front().get(self.at..end).ok_or(Invalid::Truncated { end, len })
    }

    /// A copy of the header at the cursor, or of its part that has a fixed length.
    fn view<T: FromBytes>(&mut self) -> Result<T, Invalid> {
        let header = self.header(size_of::<T>())?;
        let end = header.len();
        T::read_from_bytes(header).map_err(|_| Invalid::Truncated { end, len: end })
    }

    /// The cursor in the headers of a segment.
    fn at(&self) -> Result<u16, Invalid> {
        let at = self.at - if self.layout.jumbo.is_some() { JUMBO_LEN } else { 0 };
        u16::try_from(at).map_err(|_| Invalid::TooManyHeaders)
    }

    fn push(&mut self, level: Level) -> Result<(), Invalid> {
        self.layout.push(level).ok_or(Invalid::TooManyHeaders)
    }

    fn want(&self, want: GsoType) -> Result<(), Invalid> {
        let kind = self.meta.gso.kind;
        if kind.intersects(want) { Ok(()) } else { Err(Invalid::Kind { kind, want }) }
    }

    /// Passes what an ethertype names.
    fn link(&mut self, ethertype: u16) -> Result<Next, Invalid> {
        match ethertype {
            ethertype::IPV4 => self.ipv4(),
            ethertype::IPV6 => self.ipv6(),
            ethertype::VLAN | ethertype::QINQ => self.pass(vlan::LEN, 2),
            ethertype::TEB => self.pass(eth::LEN, 12),
            ethertype::MPLS | ethertype::MPLS_MULTICAST => self.mpls(),
            ethertype::NSH => self.nsh(),
            _ => Err(Invalid::Ethertype { ethertype }),
        }
    }

    /// Passes a header of `len` bytes in which an ethertype stands at `kind`.
    fn pass(&mut self, len: usize, kind: usize) -> Result<Next, Invalid> {
        let header = self.header(len)?;
        let kind = u16::from_be_bytes([header[kind], header[kind + 1]]);
        self.at += len;
        Ok(Next::Ethertype(kind))
    }

    /// Passes one label. What follows the last is told by its first four bits (RFC 4928, 3).
    fn mpls(&mut self) -> Result<Next, Invalid> {
        let entry = self.view::<mpls::Entry>()?;
        self.at += mpls::LEN;
        if entry.word.get() & mpls::Entry::BOTTOM == 0 {
            return Ok(Next::Ethertype(ethertype::MPLS));
        }
        self.inner_ip()
    }

    /// Passes a network service header (`nsh_gso_segment`).
    fn nsh(&mut self) -> Result<Next, Invalid> {
        let header = self.view::<nsh::Header>()?;
        let len = header.header_len();
        if len < nsh::MIN_LEN {
            return Err(Invalid::HeaderLength { at: self.at, len });
        }
        self.header(len)?;
        self.at += len;
        next_protocol(header.next_protocol)
            .map(Next::Ethertype)
            .ok_or(Invalid::Ethertype { ethertype: ethertype::NSH })
    }

    /// Reads an IPv4 header (`inet_gso_segment`).
    fn ipv4(&mut self) -> Result<Next, Invalid> {
        let first = self.header(ipv4::MIN_LEN)?[0];
        let len = usize::from(first & 15) * 4;
        if len < ipv4::MIN_LEN {
            return Err(Invalid::HeaderLength { at: self.at, len });
        }
        let header = self.header(len)?;
        let word = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let (id, protocol) = (word(4), header[9]);
        let ip = Ip::V4 { src: array(&header[12..]), dst: array(&header[16..]) };
        let level = Level::V4 { at: 0, len: len as u8, id, fixed: false, base: 0 };
        let mut level = level.with_base(header);
        let (start, keeps) = (self.at()?, self.fixed_id());
        if let Level::V4 { at, fixed, .. } = &mut level {
            (*at, *fixed) = (start, keeps);
        }
        self.push(level)?;
        self.type_at = usize::from(start) + 9;
        self.enter(ip, len);
        Ok(Next::Protocol(protocol))
    }

    /// Whether the identification of the IP header at the cursor is fixed. The kernel takes the bit
    /// of the inner header for what is directly in IP, and that of the outer for what a tunnel header
    /// precedes, because it counts levels from there.
    fn fixed_id(&self) -> bool {
        let kind = self.meta.gso.kind;
        let per_level = kind.contains(GsoType::IDS_PER_LEVEL);
        let is_inner = if per_level { self.depth } else { self.depth_in_tunnel } > 0;
        let inner = GsoType::TCP_FIXEDID_INNER;
        kind.contains(if is_inner { inner } else { GsoType::TCP_FIXEDID })
    }

    fn enter(&mut self, ip: Ip, len: usize) {
        self.ip = ip;
        self.at += len;
        self.depth += 1;
        self.depth_in_tunnel += 1;
    }

    /// Reads an IPv6 header and the extension headers behind it (`ipv6_gso_segment`).
    fn ipv6(&mut self) -> Result<Next, Invalid> {
        let header = self.header(ipv6::LEN)?;
        let (payload_len, mut next) = (u16::from_be_bytes([header[4], header[5]]), header[6]);
        let ip = Ip::V6 { src: array(&header[8..]), dst: array(&header[24..]) };
        let at = self.at()?;
        self.enter(ip, ipv6::LEN);
        if next == ipv6::next::HOP_BY_HOP && payload_len == 0 && self.layout.jumbo.is_none() {
            // The kernel's own option, put in front of all others (ipv6_hopopt_jumbo_remove).
            let option = self.header(JUMBO_LEN)?;
            if option[1..4] == [0, 0xc2, 4] {
                next = option[0];
                self.layout.jumbo = Some(self.at);
                self.at += JUMBO_LEN;
            }
        }
        self.push(Level::V6 { at, next })?;
        self.type_at = usize::from(at) + 6;
        while matches!(next, ipv6::next::HOP_BY_HOP | ipv6::next::ROUTING | ipv6::next::DEST_OPTS) {
            self.type_at = self.at()?.into();
            let header = self.header(2)?;
            next = header[0];
            let len = (usize::from(header[1]) + 1) * 8;
            self.header(len)?;
            self.at += len;
        }
        Ok(Next::Protocol(next))
    }

    /// Passes what an IP protocol number names.
    fn protocol(&mut self, protocol: u8) -> Result<Next, Invalid> {
        let in_ip = match self.ip {
            Ip::V4 { .. } => GsoType::IPXIP4,
            Ip::V6 { .. } => GsoType::IPXIP6,
        };
        match protocol {
            tcp::PROTOCOL => self.tcp(),
            udp::PROTOCOL => self.udp(),
            ipv4::PROTOCOL => self.want(in_ip).map(|()| Next::Ethertype(ethertype::IPV4)),
            ipv6::PROTOCOL => self.want(in_ip).map(|()| Next::Ethertype(ethertype::IPV6)),
            gre::PROTOCOL => self.gre(),
            _ => Err(Invalid::Protocol { protocol }),
        }
    }

    /// The checksum field of a list is that of its first packet, whatever its state.
    fn is_list(&self) -> bool {
        self.meta.gso.kind.contains(GsoType::FRAGLIST)
    }

    /// Passes a GRE header (`gre_gso_segment`).
    fn gre(&mut self) -> Result<Next, Invalid> {
        self.want(GsoType::GRE | GsoType::GRE_CSUM)?;
        let header = self.view::<gre::Header>()?;
        let len = header.header_len();
        self.header(len)?;
        let has_sum = header.flags.get() & gre::Header::CSUM != 0;
        // The kernel leaves the checksum of the first packet where GRO does not say that there is one.
        let summed = self.meta.gso.kind.contains(GsoType::GRE_CSUM);
        let at = self.at()?;
        self.push(Level::Gre { at, sum: summed && has_sum })?;
        self.at += len;
        self.depth_in_tunnel = 0;
        Ok(Next::Ethertype(header.protocol.get()))
    }

    /// Reads a TCP header (`tcp4_gso_segment`, `tcp6_gso_segment`).
    fn tcp(&mut self) -> Result<Next, Invalid> {
        self.want(match self.ip {
            Ip::V4 { .. } => GsoType::TCPV4,
            Ip::V6 { .. } => GsoType::TCPV6,
        })?;
        let len = usize::from(self.header(tcp::MIN_LEN)?[12] >> 4) * 4;
        if len < tcp::MIN_LEN {
            return Err(Invalid::HeaderLength { at: self.at, len });
        }
        let seed = match self.meta.csum {
            Csum::Partial { .. } if !self.is_list() => self.given_seed(tcp::CHECK)?,
            _ => self.pseudo(tcp::PROTOCOL),
        };
        let header = self.header(len)?;
        let parts = [&header[..4], &header[8..12], &header[14..16], &header[18..]].map(csum::sum);
        self.layout.l4 = L4::Tcp {
            seed,
            base: parts.into_iter().fold(0, csum::add),
            seq: u32::from_be_bytes(array(&header[4..])),
            word: u16::from_be_bytes(array(&header[12..])),
            accecn: self.meta.gso.kind.contains(GsoType::TCP_ACCECN),
        };
        self.layer4(len)
    }

    /// Passes a UDP tunnel, whose own header GRO or the sender has read (`skb_udp_tunnel_segment`).
    fn udp_tunnel(&mut self) -> Result<Next, Invalid> {
        let inner = usize::from(self.meta.inner_network);
        self.header(udp::LEN)?;
        if inner < self.at + udp::LEN {
            return Err(Invalid::Inner { inner, tunnel: self.at });
        }
        let summed = self.meta.gso.kind.contains(GsoType::UDP_TUNNEL_CSUM);
        // The kernel takes the sum from the checksum field. Its GRO writes it there before the inner
        // header gets a jumbo option, and so without 8 bytes of the length.
        let seed = summed.then(|| self.pseudo(udp::PROTOCOL));
        let at = self.at()?;
        self.push(Level::Udp { at, seed })?;
        self.at = inner;
        self.depth_in_tunnel = 0;
        self.tunnelled = true;
        self.inner_ip()
    }

    /// The IP header at the cursor, whose type nobody gave.
    fn inner_ip(&mut self) -> Result<Next, Invalid> {
        let first = self.header(1)?[0];
        link::Type::Raw
            .network(&[first])
            .ok()
            .filter(|(_, ethertype)| *ethertype != 0)
            .map(|(_, ethertype)| Next::Ethertype(ethertype))
            .ok_or(Invalid::Version { at: self.at, version: first >> 4 })
    }

    /// Reads the header of datagrams, or makes them fragments (`udp4_ufo_fragment`,
    /// `udp6_ufo_fragment`).
    fn udp(&mut self) -> Result<Next, Invalid> {
        if self.meta.gso.kind.intersects(UDP_TUNNELS) && !self.tunnelled {
            return self.udp_tunnel();
        }
        self.want(GsoType::UDP_L4 | GsoType::UDP)?;
        if !self.meta.gso.kind.contains(GsoType::UDP_L4) {
            return self.fragments();
        }
        let seed = match self.meta.csum {
            _ if self.is_list() => self.pseudo(udp::PROTOCOL),
            Csum::Partial { .. } => self.given_seed(udp::CHECK)?,
            _ => return Err(Invalid::ChecksumStart { transport: self.at, start: None }),
        };
        let base = csum::sum(&self.header(udp::LEN)?[..4]);
        self.layout.l4 = L4::Udp { seed, base };
        self.layer4(udp::LEN)
    }

    /// Datagrams are cut into fragments whose first holds the UDP header.
    fn fragments(&mut self) -> Result<Next, Invalid> {
        let size = self.meta.gso.size;
        if !size.is_multiple_of(8) {
            return Err(Invalid::FragmentSize { size });
        }
        let len = self.packet.len().saturating_sub(self.at);
        if len > usize::from(u16::MAX) {
            return Err(Invalid::DatagramLength { len });
        }
        self.header(udp::LEN)?;
        let id = self.meta.seq as u32;
        let (type_at, len) = match self.ip {
            Ip::V4 { .. } => (None, 0),
            Ip::V6 { .. } => (Some(self.type_at), FRAGMENT_LEN),
        };
        self.layout.l4 = L4::Fragments { seed: self.pseudo(udp::PROTOCOL), id, type_at };
        self.layout.payload = self.at;
        self.layout.at = self.at()?.into();
        self.layout.headers = self.layout.at + len;
        self.layout.fix_innermost();
        Ok(Next::End)
    }

    fn layer4(&mut self, len: usize) -> Result<Next, Invalid> {
        self.layout.at = self.at()?.into();
        self.layout.headers = self.layout.at + len;
        self.layout.payload = self.at + len;
        Ok(Next::End)
    }

    /// The sum of the pseudo-header that stands in the checksum field, less the length of the
    /// super-packet.
    fn given_seed(&mut self, check: usize) -> Result<u32, Invalid> {
        if let Csum::Partial { start, .. } = self.meta.csum
            && usize::from(start) != self.at
        {
            return Err(Invalid::ChecksumStart { transport: self.at, start: Some(start) });
        }
        let len = (self.packet.len() - self.at) as u32;
        let field = u16::from_be_bytes(array(&self.header(check + 2)?[check..]));
        Ok(csum::sub(field.into(), len))
    }

    /// The sum of the pseudo-header, less the length.
    fn pseudo(&self, protocol: u8) -> u32 {
        match &self.ip {
            Ip::V4 { src, dst } => csum::pseudo_v4(*src, *dst, protocol, 0),
            Ip::V6 { src, dst } => csum::pseudo_v6(src, dst, protocol, 0),
        }
    }

    /// Compares what there is to cut with what one segment takes.
    fn finish(self) -> Result<Layout, Invalid> {
        let (size, layout) = (self.meta.gso.size, self.layout);
        let payload = self.packet.len() - layout.payload;
        if payload <= size.into() {
            return Err(Invalid::OneSegment { payload, size });
        }
        // Lengths count from the outermost header on that has one, in IPv6 from behind it.
        let outer = match layout.levels().first() {
            Some(Level::V6 { at, .. }) => usize::from(*at) + ipv6::LEN,
            first => first.map_or(layout.at, Level::at),
        };
        let len = layout.headers - outer + usize::from(size);
        if len > usize::from(u16::MAX) {
            return Err(Invalid::SegmentLength { len });
        }
        Ok(layout)
    }
}

/// The ethertype of a next-protocol number of NSH and VXLAN-GPE.
fn next_protocol(number: u8) -> Option<u16> {
    match number {
        vxlan::next::IPV4 => Some(ethertype::IPV4),
        vxlan::next::IPV6 => Some(ethertype::IPV6),
        vxlan::next::ETHERNET => Some(ethertype::TEB),
        vxlan::next::NSH => Some(ethertype::NSH),
        vxlan::next::MPLS => Some(ethertype::MPLS),
        _ => None,
    }
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[..N]);
    array
}

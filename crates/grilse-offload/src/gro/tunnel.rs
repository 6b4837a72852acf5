//! Tunnels: what they share, and those directly in IP: IP itself (`ipip_gro_receive`,
//! `sit_ip6ip6_gro_receive`, `ip4ip6_gro_receive`) and GRE (`gre_gro_receive`).
//!
//! A packet in a tunnel is walked on as if it stood alone, and merges by all of its headers. There
//! is one tunnel at most in a packet: what is cut again later must find its inner headers, and an
//! skb has one place for them.

use core::ops::Range;

use grilse_wire::eth::ethertype;
use grilse_wire::zerocopy::FromBytes;
use grilse_wire::{GsoType, Packet, gre, ipv4, ipv6};

use super::levels::{Addresses, Family};
use super::parse::{Flow, Next, offloaded};
use crate::{Config, Reason, Why};

/// The tunnel header of a packet, between its two IP headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tunnel {
    /// Bits that it adds to the type of a super-packet. None: there is no tunnel.
    pub(super) kind: GsoType,
    /// Offset of the [`LOOSE_LEN`] bytes in which the packets of one flow may differ: length and
    /// checksum of UDP, or the checksum of GRE. 0: they are equal.
    pub(super) loose: u16,
}

const LOOSE_LEN: usize = 4;

/// A tunnel in UDP, of either kind.
pub(super) const IN_UDP: GsoType = GsoType(GsoType::UDP_TUNNEL.0 | GsoType::UDP_TUNNEL_CSUM.0);

impl Tunnel {
    pub(super) fn is_none(&self) -> bool {
        self.kind == GsoType::default()
    }

    /// Whether two headers belong to one flow although the bytes in `range`, which hold them, are
    /// not all equal.
    pub(super) fn is_same(&self, other: &Self, a: &[u8], b: &[u8], range: Range<usize>) -> bool {
        let loose = usize::from(self.loose);
        let (before, behind) = (range.start..loose, loose + LOOSE_LEN..range.end);
        self == other
            && range.contains(&loose)
            && a[before.clone()] == b[before]
            && a[behind.clone()] == b[behind]
    }
}

/// Whether an IP protocol is a tunnel.
#[inline]
pub(super) fn is_one(protocol: u8) -> bool {
    matches!(protocol, ipv4::PROTOCOL | ipv6::PROTOCOL | gre::PROTOCOL)
}

/// Passes the tunnel header at the cursor, if `protocol` has one.
#[inline(never)]
pub(super) fn parse<P: Packet>(
    packet: &mut P,
    flow: &mut Flow,
    addresses: &Addresses,
    config: &Config,
    protocol: u8,
) -> Result<Next, Why> {
    flow.enter_tunnel(addresses, 0)?;
    if protocol == gre::PROTOCOL {
        return gre(packet, flow, config, gre::Header::KEY | gre::Header::CSUM);
    }
    Ok(in_ip(flow, protocol))
}

impl Flow {
    /// Begins a tunnel, unless the packet is in one.
    pub(super) fn enter_tunnel(&mut self, addresses: &Addresses, ports: u32) -> Result<(), Why> {
        if !self.levels.tunnel.is_none() {
            return Err(self.refuse(Why::new(Reason::NestedTunnel, 1u8, 2u8)));
        }
        self.digest ^= addresses.digest(ports);
        Ok(())
    }
}

/// The inner packet is IP, of the version that `protocol` says.
pub(super) fn in_ip(flow: &mut Flow, protocol: u8) -> Next {
    let outer = flow.levels.iter().next().map(|level| level.family);
    let tunnel = &mut flow.levels.tunnel;
    tunnel.kind |= if outer == Some(Family::V6) { GsoType::IPXIP6 } else { GsoType::IPXIP4 };
    let v4 = protocol == ipv4::PROTOCOL;
    Next::Ethertype(if v4 { ethertype::IPV4 } else { ethertype::IPV6 })
}

/// Passes a GRE header with no flags but those `allowed`.
///
/// The sequence number could be passed, but the super-packet could not be cut again.
pub(super) fn gre<P: Packet>(
    packet: &mut P,
    flow: &mut Flow,
    config: &Config,
    allowed: u16,
) -> Result<Next, Why> {
    let start = flow.at;
    let bytes = *flow.header::<{ gre::MIN_LEN }, P>(packet, Reason::TunnelTruncated)?;
    let Ok(header) = gre::Header::ref_from_bytes(&bytes) else {
        return Err(flow.refuse(Reason::TunnelTruncated.into()));
    };
    let (flags, kind) = (header.flags.get(), header.protocol.get());
    if flags & !allowed != 0 {
        return Err(flow.refuse(Why::new(Reason::GreFlags, allowed, flags)));
    }
    offloaded(kind, config).map_err(|why| flow.refuse(why))?;
    let end = start + header.header_len();
    flow.gather(packet, end - start, Reason::TunnelTruncated)?;
    let summed = flags & gre::Header::CSUM != 0;
    if summed && flow.unfit.is_none() {
        match flow.sums.validate(packet, start, false, || 0) {
            Ok(unfit) => flow.unfit = unfit,
            Err(sum) => return Err(Why::new(Reason::GreChecksum, 0xffffu16, sum)),
        }
        flow.sums.convert(0);
        let field = &packet.front()[start + gre::CHECK..][..gre::FIELD_LEN];
        // Segmentation would write 0, which means the same, and nothing behind the checksum.
        if config.rules.lossless
            && flow.unfit.is_none()
            && (field[..2] == [0xff; 2] || field[2..] != [0; 2])
        {
            let field = field.iter().fold(0u32, |field, byte| field << 8 | u32::from(*byte));
            flow.unfit = Some(Why::new(Reason::GreChecksumForm, 0u8, field));
        }
    }
    flow.pass(&packet.front()[start..end]);
    let tunnel = &mut flow.levels.tunnel;
    // The kernel does not say that there is a checksum, and cannot cut a shorter last segment right.
    let kept = summed && config.rules.lossless;
    tunnel.kind |= if kept { GsoType::GRE_CSUM } else { GsoType::GRE };
    // The kernel compares what stands where the key would be without a checksum. So the key is left
    // out, and the checksum must be equal; we compare the key too.
    if summed && flags & gre::Header::KEY == 0 {
        tunnel.loose = start as u16 + gre::CHECK as u16;
    }
    flow.descend(&config.rules)?;
    Ok(Next::Ethertype(kind))
}

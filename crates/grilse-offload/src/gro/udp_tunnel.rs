//! Tunnels in UDP, by the port that a host gave them: VXLAN (`vxlan_gro_receive`), GENEVE
//! (`geneve_gro_receive`), foo over UDP (`fou_gro_receive`) and GUE (`gue_gro_receive`).
//!
//! Remote checksum offload, which leaves the inner checksum to whoever takes the packet out, is
//! refused: the super-packet would carry it to packets that do not need it.

use grilse_wire::eth::ethertype;
use grilse_wire::zerocopy::FromBytes;
use grilse_wire::{Csum, GsoType, Packet, geneve, gre, gue, ipv4, ipv6, udp, vxlan};

use super::l3;
use super::levels::Addresses;
use super::parse::{Flow, Next, offloaded};
use super::tunnel::{gre, in_ip};
use crate::config::{FouPayload, Tunnel};
use crate::{Config, Reason, Why};

/// Passes the UDP header at the cursor, whose checksum is not wrong, and the tunnel header behind it
/// (`udp_gro_receive`).
pub(super) fn parse<P: Packet>(
    packet: &mut P,
    flow: &mut Flow,
    addresses: &Addresses,
    config: &Config,
    header: &[u8; udp::LEN],
    tunnel: Tunnel,
) -> Result<Next, Why> {
    let [s0, s1, d0, d1, l0, l1, check @ ..] = *header;
    flow.enter_tunnel(addresses, u32::from_be_bytes([s0, s1, d0, d1]))?;
    let summed = check != [0, 0];
    if summed {
        let unfinished = matches!(packet.meta().csum, Csum::Partial { .. });
        match flow.unfit {
            None => flow.sums.convert(addresses.pseudo(udp::PROTOCOL, packet.len() - flow.at)),
            // Nobody judged the checksum, as the packet goes up alone anyway; then it overtakes.
            Some(why) if !unfinished && !flow.sums.are_known() => return Err(why),
            Some(_) => {}
        }
    }
    let (left, len) = (packet.len() - flow.at, u16::from_be_bytes([l0, l1]));
    // The kernel does not look at the length, and segmentation writes the true one.
    if config.rules.lossless && flow.unfit.is_none() && left != usize::from(len) {
        flow.unfit = Some(Why::new(Reason::UdpLength, left as u64, len));
    }
    let kind = if summed { GsoType::UDP_TUNNEL_CSUM } else { GsoType::UDP_TUNNEL };
    let loose = l3::offset(flow)? + udp::LENGTH as u16;
    flow.pass(header);
    flow.levels.tunnel = super::tunnel::Tunnel { kind, loose };
    flow.descend(&config.rules)?;
    match tunnel {
        Tunnel::Vxlan => vxlan(packet, flow, config, false),
        Tunnel::VxlanGpe => vxlan(packet, flow, config, true),
        Tunnel::Geneve => geneve(packet, flow, config),
        Tunnel::Fou(payload) => foo(packet, flow, config, payload),
        Tunnel::Gue => gue(packet, flow, config),
    }
}

/// What a tunnel header of `len` bytes carries is at the cursor now, and is the next callback's.
fn carries(flow: &mut Flow, config: &Config, header: &[u8], ethertype: u16) -> Result<Next, Why> {
    offloaded(ethertype, config).map_err(|why| flow.refuse(why))?;
    flow.pass(header);
    flow.descend(&config.rules)?;
    Ok(Next::Ethertype(ethertype))
}

fn vxlan<P: Packet>(
    packet: &mut P,
    flow: &mut Flow,
    config: &Config,
    extended: bool,
) -> Result<Next, Why> {
    use vxlan::Header;
    let header = *flow.header::<{ vxlan::LEN }, P>(packet, Reason::TunnelTruncated)?;
    let flags = u32::from_be_bytes([header[0], header[1], header[2], header[3]]);
    if flags & Header::RCO != 0 {
        return Err(flow.refuse(Why::new(Reason::RemoteChecksum, 0u8, flags & Header::RCO)));
    }
    if !extended {
        return carries(flow, config, &header, ethertype::TEB);
    }
    const FLAGS: u32 = Header::GPE | Header::VERSION | Header::OAM;
    if flags & FLAGS != Header::GPE {
        return Err(flow.refuse(Why::new(Reason::VxlanGpeFlags, Header::GPE, flags & FLAGS)));
    }
    let ethertype = match header[3] {
        vxlan::next::IPV4 => ethertype::IPV4,
        vxlan::next::IPV6 => ethertype::IPV6,
        vxlan::next::ETHERNET => ethertype::TEB,
        other => return Err(flow.refuse(Why::new(Reason::VxlanGpeProtocol, 0u8, other))),
    };
    carries(flow, config, &header, ethertype)
}

fn geneve<P: Packet>(packet: &mut P, flow: &mut Flow, config: &Config) -> Result<Next, Why> {
    let start = flow.at;
    let bytes = *flow.header::<{ geneve::MIN_LEN }, P>(packet, Reason::TunnelTruncated)?;
    let Ok(header) = geneve::Header::ref_from_bytes(&bytes) else {
        return Err(flow.refuse(Reason::TunnelTruncated.into()));
    };
    if header.version() != 0 {
        return Err(flow.refuse(Why::new(Reason::GeneveVersion, 0u8, header.version())));
    }
    if header.flags & geneve::Header::OAM != 0 {
        return Err(flow.refuse(Why::new(Reason::GeneveOam, 0u8, 1u8)));
    }
    let len = header.header_len();
    flow.gather(packet, len, Reason::TunnelTruncated)?;
    carries(flow, config, &packet.front()[start..start + len], header.protocol.get())
}

fn foo<P: Packet>(
    packet: &mut P,
    flow: &mut Flow,
    config: &Config,
    payload: FouPayload,
) -> Result<Next, Why> {
    flow.descend(&config.rules)?;
    match payload {
        FouPayload::Ipv4 => Ok(in_ip(flow, ipv4::PROTOCOL)),
        FouPayload::Ipv6 => Ok(in_ip(flow, ipv6::PROTOCOL)),
        // A checksum would have to be found again behind the UDP header, for which there is no place.
        FouPayload::Gre => gre(packet, flow, config, gre::Header::KEY),
    }
}

/// Version 0 has a header; in version 1 its first bits are those of an IP packet.
fn gue<P: Packet>(packet: &mut P, flow: &mut Flow, config: &Config) -> Result<Next, Why> {
    let start = flow.at;
    let bytes = *flow.header::<{ gue::MIN_LEN }, P>(packet, Reason::TunnelTruncated)?;
    let Ok(header) = gue::Header::ref_from_bytes(&bytes) else {
        return Err(flow.refuse(Reason::TunnelTruncated.into()));
    };
    match header.version_control_len >> 4 {
        4 => return foo(packet, flow, config, FouPayload::Ipv4),
        6 => return foo(packet, flow, config, FouPayload::Ipv6),
        0..=3 => {}
        version => return Err(flow.refuse(Why::new(Reason::GueVersion, 0u8, version >> 2))),
    }
    let len = header.header_len();
    flow.gather(packet, len, Reason::TunnelTruncated)?;
    if header.version_control_len & gue::Header::CONTROL != 0 {
        return Err(flow.refuse(Why::new(Reason::GueControl, 0u8, 1u8)));
    }
    let fields = &packet.front()[start + gue::MIN_LEN..start + len];
    check_gue_flags(header.flags.get(), fields).map_err(|why| flow.refuse(why))?;
    let payload = match header.protocol {
        ipv4::PROTOCOL => FouPayload::Ipv4,
        ipv6::PROTOCOL => FouPayload::Ipv6,
        gre::PROTOCOL => FouPayload::Gre,
        other => return Err(flow.refuse(Why::new(Reason::GueProtocol, 0u8, other))),
    };
    flow.pass(&packet.front()[start..start + len]);
    foo(packet, flow, config, payload)
}

/// Flags that are unknown, or whose fields the header has no room for (`validate_gue_flags`), and
/// remote checksum offload.
fn check_gue_flags(flags: u16, fields: &[u8]) -> Result<(), Why> {
    use gue::Header;
    if flags == 0 {
        return Ok(());
    }
    if flags & !Header::PRIVATE != 0 {
        return Err(Why::new(Reason::GueFlags, Header::PRIVATE, flags));
    }
    let Some(private) = fields.first_chunk().map(|word| u32::from_be_bytes(*word)) else {
        return Err(Why::new(Reason::GueFlags, 0u8, flags));
    };
    match private {
        0 => Ok(()),
        Header::REMOTE_CSUM => Err(Why::new(Reason::RemoteChecksum, 0u8, private)),
        _ => Err(Why::new(Reason::GueFlags, Header::REMOTE_CSUM, private)),
    }
}

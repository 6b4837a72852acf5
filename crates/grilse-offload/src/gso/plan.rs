//! Super-packets of which nobody said that they are: in captures that were taken above GRO or
//! segmentation offload, packets are longer than the link carries, and no metadata came along.

use grilse_wire::eth::ethertype;
use grilse_wire::{
    Csum, Gso, GsoType, Meta, Packet, csum, geneve, ipv4, ipv6, tcp, udp, vlan, vxlan,
};

use super::layout::{L4, Layout, Level};
use super::{Checksums, Invalid};

/// Whatever can be told from headers alone. A list is taken for one whose checksum fields say nothing.
const ANY: GsoType = GsoType(
    GsoType::TCPV4.0
        | GsoType::TCPV6.0
        | GsoType::UDP_L4.0
        | GsoType::FRAGLIST.0
        | GsoType::IPXIP4.0
        | GsoType::IPXIP6.0
        | GsoType::GRE.0
        | GsoType::GRE_CSUM.0,
);

/// Makes an IP packet that is longer than `mtu` bytes a super-packet whose segments fit: sets `gso` and
/// `csum` of its metadata, and the checksum field to the sum of the pseudo-header. Says whether it did;
/// a packet that fits stays as it is.
///
/// What counts is the length in the outer IP header, and where that is 0, as in BIG TCP and on the way
/// to some cards, the bytes from it on; in what is not IP those behind the link header. TCP is cut at
/// what the MTU leaves for payload. So is UDP, though only its sender knows where one datagram ended:
/// what is longer than the link carries was sent or merged as a train. Found through VLAN tags, MPLS,
/// NSH, IP in IP and GRE.
///
/// # Errors
/// The packet is too long and cannot be cut: a fragment, a protocol that nobody segments, a capture
/// that lacks its end, bytes behind it, or a UDP tunnel, as a capture does not say what is within. It
/// has not changed.
pub fn plan<P: Packet>(packet: &mut P, mtu: usize) -> Result<bool, Invalid> {
    let meta = *packet.meta();
    let (len, wire_len) = (packet.len(), meta.wire_len as usize);
    if len.max(wire_len).saturating_sub(meta.network.into()) <= mtu {
        return Ok(false);
    }
    let (start, stated) = stated_len(packet).unwrap_or((meta.network.into(), 0));
    let have = len.max(wire_len).saturating_sub(start);
    if (if stated == 0 { have } else { stated }) <= mtu {
        return Ok(false);
    }
    if wire_len > len {
        return Err(Invalid::Truncated { end: wire_len, len });
    }
    if stated != 0 && stated != have {
        return Err(Invalid::Length { stated, have });
    }
    packet.meta_mut().gso = Gso { size: 1, segs: 0, kind: ANY };
    let found = super::walk::walk(packet, Checksums::Leave);
    packet.meta_mut().gso = meta.gso;
    let layout = found?;
    let headers = layout.payload - start;
    let size = mtu.saturating_sub(headers);
    let payload = len - layout.payload;
    let size = u16::try_from(size).ok().filter(|size| !matches!(size, 0 | 0xffff));
    let size = size.ok_or(Invalid::Mtu { mtu, headers })?;
    let front = packet.front_mut(layout.payload).ok_or(Invalid::ReadOnly)?;
    let kind = kind(&layout, front)?;
    let (at, offset) = write_seed(&layout, front, payload);
    let segs = payload.div_ceil(size.into()).try_into().unwrap_or(u16::MAX);
    let meta = packet.meta_mut();
    meta.gso = Gso { size, segs, kind };
    meta.csum = Csum::Partial { start: at as u16, offset: offset as u16 };
    meta.transport = at as u16;
    Ok(true)
}

/// Where the IP header behind VLAN tags begins, and how long the packet is by it, or 0 where it does
/// not say. `None`: there is no such header.
fn stated_len<P: Packet>(packet: &mut P) -> Option<(usize, usize)> {
    let Meta { network, mut protocol, .. } = *packet.meta();
    let mut at = usize::from(network);
    while matches!(protocol, ethertype::VLAN | ethertype::QINQ) {
        at += vlan::LEN;
        let tag = packet.gather(at)?.get(at - 2..at)?;
        protocol = u16::from_be_bytes([tag[0], tag[1]]);
    }
    let (field, more) = match protocol {
        ethertype::IPV4 => (at + 2, 0),
        ethertype::IPV6 => (at + 4, ipv6::LEN),
        _ => return None,
    };
    let field = packet.gather(field + 2)?.get(field..field + 2)?;
    match u16::from_be_bytes([field[0], field[1]]) {
        0 => Some((at, 0)),
        stated => Some((at, usize::from(stated) + more)),
    }
}

/// The segmentation type of these headers.
fn kind(layout: &Layout, front: &[u8]) -> Result<GsoType, Invalid> {
    let (mut kind, mut outer) = (GsoType::default(), None);
    for level in layout.levels() {
        let in_ip = match level {
            Level::V4 { at, .. } => {
                let at = usize::from(*at);
                let fragment = u16::from_be_bytes([front[at + 6], front[at + 7]]);
                if fragment & (ipv4::Header::MF | ipv4::Header::OFFSET) != 0 {
                    return Err(Invalid::Fragment { at });
                }
                Some(GsoType::IPXIP4)
            }
            Level::V6 { .. } => Some(GsoType::IPXIP6),
            Level::Gre { sum, .. } => {
                kind |= if *sum { GsoType::GRE_CSUM } else { GsoType::GRE };
                None
            }
            Level::Udp { .. } => None,
        };
        if let (Some(outer), Some(_)) = (outer, in_ip) {
            kind |= outer;
        }
        outer = in_ip;
    }
    let v4 = outer == Some(GsoType::IPXIP4);
    kind |= match layout.l4 {
        L4::Tcp { .. } if v4 => GsoType::TCPV4,
        L4::Tcp { .. } => GsoType::TCPV6,
        L4::Udp { .. } | L4::Fragments { .. } => {
            let at = layout.payload - udp::LEN + 2;
            let port = u16::from_be_bytes([front[at], front[at + 1]]);
            if matches!(port, vxlan::PORT | vxlan::GPE_PORT | geneve::PORT) {
                return Err(Invalid::Tunnel { port });
            }
            GsoType::UDP_L4
        }
    };
    Ok(kind)
}

/// Writes the sum of the pseudo-header, and returns where layer 4 and its checksum are.
fn write_seed(layout: &Layout, front: &mut [u8], payload: usize) -> (usize, usize) {
    let len = layout.headers - layout.at;
    let at = layout.payload - len;
    let (seed, offset) = match layout.l4 {
        L4::Tcp { seed, .. } => (seed, tcp::CHECK),
        L4::Udp { seed, .. } | L4::Fragments { seed, .. } => (seed, udp::CHECK),
    };
    let pseudo = csum::fold(csum::add(seed, (len + payload) as u32));
    front[at + offset..][..2].copy_from_slice(&pseudo.to_be_bytes());
    (at, offset)
}

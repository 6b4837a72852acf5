//! The completed super-packet: headers that tell its true length, and the metadata by which it can
//! be cut again.
//!
//! A head that nothing joined keeps every byte.

use grilse_wire::{Csum, GsoType, Packet, csum, ipv6};

use super::csum::vouch;
use super::held::{Held, JUMBO_LEN};
use super::levels::{Addresses, Family};
use super::parse::Layer;
use super::{tcp, tunnel, udp};
use crate::{BigTcp, Cwr, Rules};

/// Finishes a head (`gro_complete`, `inet_gro_complete`, `tcp4_gro_complete` and their kin).
///
/// # Panics
/// Where the packet's headers, which were writable when it was held, no longer are.
pub(super) fn complete<P: Packet>(mut held: Held<P>, rules: &Rules) -> P {
    if held.segs == 1 {
        held.packet.meta_mut().gso.size = 0;
        return held.packet;
    }
    let option = match rules.big_tcp {
        BigTcp::HopByHop => insert_jumbo_option(&mut held),
        BigTcp::ZeroLength => 0,
    };
    if held.levels.tunnel.kind.intersects(tunnel::IN_UDP) {
        set_outer_udp(&mut held, if rules.lossless { 0 } else { option });
    }
    let len = held.packet.len();
    let at = usize::from(held.l4);
    let list = is_list(&held, rules);
    let Some(frame) = held.packet.front_mut(held.payload) else {
        unreachable!("the headers of a held packet stay writable");
    };
    let mut cwr = false;
    for level in held.levels.iter().rev() {
        set_length(level.family, &mut frame[usize::from(level.at)..], len - usize::from(level.at));
    }
    if let Some(inner) = held.levels.iter().next_back() {
        let addresses = Addresses::read(inner, frame);
        let header = &mut frame[at..];
        match held.layer {
            Layer::Tcp(segment) => {
                cwr = header[13] & 0x80 != 0;
                header[13] |= (segment.word >> 16) as u8 & (tcp::LAST >> 16) as u8;
                if !list {
                    let seed = csum::fold(addresses.pseudo(tcp::PROTOCOL, len - at));
                    header[16..18].copy_from_slice(&seed.to_be_bytes());
                }
            }
            Layer::Udp(_) => {
                header[4..6].copy_from_slice(&((len - at) as u16).to_be_bytes());
                if !list {
                    let seed = csum::fold(addresses.pseudo(udp::PROTOCOL, len - at));
                    header[6..8].copy_from_slice(&seed.to_be_bytes());
                }
            }
        }
    }
    describe(&mut held, cwr, list, rules);
    held.packet
}

/// Whether the super-packet is a list. What UDP chained in a tunnel directly in IP becomes plain
/// bytes: the kernel takes the mark of the tunnel for one of an outer UDP header yet to come.
fn is_list<P: Packet>(held: &Held<P>, rules: &Rules) -> bool {
    let kind = held.levels.tunnel.kind;
    let in_ip = !held.levels.tunnel.is_none() && !kind.intersects(tunnel::IN_UDP);
    held.list && (rules.lossless || !in_ip || matches!(held.layer, Layer::Tcp(_)))
}

/// Sets length and checksum of the UDP header of a tunnel: a checksum stays unwritten where there was
/// none, and becomes the sum of the pseudo-header where there was. The kernel goes from the outside in,
/// and does not know yet of the `uncounted` bytes of a jumbo option of the inner header.
#[cold]
fn set_outer_udp<P: Packet>(held: &mut Held<P>, uncounted: usize) {
    let fields = usize::from(held.levels.tunnel.loose);
    let len = held.packet.len() + grilse_wire::udp::LENGTH - fields - uncounted;
    let (Some(outer), Some(frame)) =
        (held.levels.iter().next(), held.packet.front_mut(held.payload))
    else {
        unreachable!("the headers of a held packet stay writable");
    };
    let addresses = Addresses::read(outer, frame);
    frame[fields..fields + 2].copy_from_slice(&(len as u16).to_be_bytes());
    if held.levels.tunnel.kind.contains(GsoType::UDP_TUNNEL_CSUM) {
        let seed = csum::fold(addresses.pseudo(udp::PROTOCOL, len));
        frame[fields + 2..fields + 4].copy_from_slice(&seed.to_be_bytes());
    }
}

/// Sets the length in an IP header whose packet is now `len` bytes long.
fn set_length(family: Family, header: &mut [u8], len: usize) {
    match family {
        Family::V4 => {
            let old = u16::from_be_bytes([header[2], header[3]]);
            // 0 means: longer than the field can tell (BIG TCP).
            let new = u16::try_from(len).unwrap_or(0);
            header[2..4].copy_from_slice(&new.to_be_bytes());
            let check = u16::from_be_bytes([header[10], header[11]]);
            header[10..12].copy_from_slice(&csum::replace(check, old, new).to_be_bytes());
        }
        Family::V6 => {
            // 0 where a jumbo option says it.
            let new = u16::try_from(len - ipv6::LEN).unwrap_or(0);
            header[4..6].copy_from_slice(&new.to_be_bytes());
        }
    }
}

/// Inserts a Hop-by-Hop header with the true length (RFC 2675) behind an IPv6 header whose payload
/// has become longer than its length field can tell. All before it moves up by 8 bytes. Returns how many
/// bytes went in.
///
/// The kernel moves extension headers up too, and writes over the first 8 bytes of them. The result
/// is the same where they are 8 bytes long in all. Where they are longer the headers are broken, and
/// 6.18 was seen to lose the whole super-packet: a fault, which is not copied.
fn insert_jumbo_option<P: Packet>(held: &mut Held<P>) -> usize {
    const JUMBO: u8 = 0xc2;
    let v6 = held.levels.iter().find(|level| level.family == Family::V6);
    let Some(at) = v6.map(|level| usize::from(level.at)) else { return 0 };
    let payload = held.packet.len() - at - ipv6::LEN;
    if payload <= usize::from(u16::MAX) {
        return 0;
    }
    let behind = at + ipv6::LEN;
    let Some(frame) = held.packet.push(JUMBO_LEN) else {
        unreachable!("headroom was there when the head grew");
    };
    frame.copy_within(JUMBO_LEN..JUMBO_LEN + behind, 0);
    let next = core::mem::replace(&mut frame[at + 6], ipv6::next::HOP_BY_HOP);
    frame[behind..behind + 4].copy_from_slice(&[next, 0, JUMBO, 4]);
    let jumbo = (payload + JUMBO_LEN) as u32;
    frame[behind + 4..behind + JUMBO_LEN].copy_from_slice(&jumbo.to_be_bytes());
    held.l4 += JUMBO_LEN as u16;
    held.payload += JUMBO_LEN;
    held.packet.meta_mut().transport = held.l4;
    JUMBO_LEN
}

/// Writes the segmentation metadata and the checksum state.
fn describe<P: Packet>(held: &mut Held<P>, cwr: bool, list: bool, rules: &Rules) {
    let inner = held.levels.iter().next_back();
    let v4 = inner.is_some_and(|level| level.family == Family::V4);
    let tunnel = held.levels.tunnel;
    let meta = held.packet.meta_mut();
    // Also where the device said otherwise: the headers in the packet decide.
    meta.encapsulated = !tunnel.is_none();
    meta.gso.kind |= tunnel.kind;
    if tunnel.kind.intersects(tunnel::IN_UDP) {
        meta.inner_network = inner.map_or(0, |level| level.at);
    }
    meta.gso.size = held.mss;
    meta.gso.segs = held.segs;
    let (kind, offset) = match held.layer {
        Layer::Tcp(_) if v4 => (GsoType::TCPV4, 16),
        Layer::Tcp(_) => (GsoType::TCPV6, 16),
        Layer::Udp(_) => (GsoType::UDP_L4, 6),
    };
    meta.gso.kind |= kind;
    if rules.lossless && held.fixed != 0 {
        meta.gso.kind |= GsoType::IDS_PER_LEVEL;
    }
    // The kernel keeps them for TCP over IPv4 alone.
    let keeps_ids = rules.lossless || (kind == GsoType::TCPV4 && !list);
    if keeps_ids && held.fixed & 1 != 0 {
        meta.gso.kind |= GsoType::TCP_FIXEDID;
    }
    if keeps_ids && held.fixed & 2 != 0 {
        meta.gso.kind |= GsoType::TCP_FIXEDID_INNER;
    }
    if list {
        // Each packet keeps its own checksum, and all are in the same state.
        meta.gso.kind |= GsoType::FRAGLIST;
        vouch(&mut meta.csum);
        return;
    }
    meta.csum = Csum::Partial { start: held.l4, offset };
    if cwr {
        meta.gso.kind |= match rules.cwr {
            Cwr::First => GsoType::TCP_ECN,
            Cwr::Alone | Cwr::Runs => GsoType::TCP_ACCECN,
        };
    }
}

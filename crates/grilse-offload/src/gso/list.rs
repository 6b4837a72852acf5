//! Lists of whole packets (`skb_segment_list`): each chained packet has headers of its own, which it
//! keeps, checksum included, so that nothing of its payload is read.
//!
//! From the first packet of the list it takes what forwarding may have changed there alone: the link
//! header, addresses and ports; and IP lengths and identifications are written as for all segments.

use grilse_wire::{Csum, Gso, Packet, csum, ipv4, ipv6, tcp, udp};

use super::layout::{L4, Layout, Level, Segment, never_zero};

/// A packet that was detached from a list.
#[derive(Clone, Debug)]
pub(super) enum Chained<P> {
    /// A segment, headers and all.
    Whole(P),
    /// Its payload: its own headers are not those of the first packet's kind any more, or cannot be
    /// reached.
    Bare(P),
}

/// Makes a detached packet a segment, where its own headers still fit.
pub(super) fn restore<P: Packet>(
    mut packet: P,
    first: &P,
    layout: &Layout,
    segment: &Segment,
) -> Chained<P> {
    let (meta, theirs) = (*packet.meta(), *first.meta());
    let same = (meta.protocol, meta.network, meta.transport)
        == (theirs.protocol, theirs.network, theirs.transport);
    let Some(from) = first.front().get(..layout.payload).filter(|_| same) else {
        return Chained::Bare(packet);
    };
    match packet.push(layout.payload).and_then(|front| front.get_mut(..layout.payload)) {
        None => return Chained::Bare(packet),
        Some(to) => rewrite(layout, from, to, segment, &meta.csum),
    }
    let meta = packet.meta_mut();
    (meta.gso, meta.vlan) = (Gso::default(), theirs.vlan);
    Chained::Whole(packet)
}

/// Brings the headers `to` of one packet in line with those of the first packet of its list.
pub(super) fn rewrite(
    layout: &Layout,
    from: &[u8],
    to: &mut [u8],
    segment: &Segment,
    state: &Csum,
) {
    let Some(level) = layout.levels().first() else { return };
    let (ip, l4) = (level.at(), layout.at);
    to[..ip].copy_from_slice(&from[..ip]);
    let addresses = match level {
        Level::V4 { .. } => ip + 12..ip + ipv4::MIN_LEN,
        _ => ip + 8..ip + ipv6::LEN,
    };
    let (check_at, seed) = match layout.l4 {
        L4::Tcp { seed, .. } => (l4 + tcp::CHECK, seed),
        L4::Udp { seed, .. } => (l4 + udp::CHECK, seed),
        L4::Fragments { .. } => return,
    };
    let len = layout.headers - l4 + segment.len;
    let (before, after) = [&*to, from]
        .map(|bytes| csum::add(csum::sum(&bytes[addresses.clone()]), csum::sum(&bytes[l4..l4 + 4])))
        .into();
    let check = u16::from_be_bytes([to[check_at], to[check_at + 1]]);
    let is_udp = matches!(layout.l4, L4::Udp { .. });
    let check = match state {
        Csum::Partial { .. } => csum::fold(csum::add(seed, len as u32)),
        _ if before == after || (is_udp && check == 0) => check,
        _ => {
            let check = !csum::fold(csum::add(csum::sub((!check).into(), before), after));
            if is_udp { never_zero(check) } else { check }
        }
    };
    to[check_at..check_at + 2].copy_from_slice(&check.to_be_bytes());
    to[addresses.clone()].copy_from_slice(&from[addresses]);
    to[l4..l4 + 4].copy_from_slice(&from[l4..l4 + 4]);
    if is_udp {
        to[l4 + udp::LENGTH..][..2].copy_from_slice(&(len as u16).to_be_bytes());
    }
    layout.write_ip(to, segment);
}

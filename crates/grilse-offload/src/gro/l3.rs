//! The walk over IPv4 and IPv6 headers, outside and inside of tunnels: what they refuse, before layer 4
//! is read.

use grilse_wire::{Packet, csum, ipv4, ipv6};

use super::levels::{Addresses, Family, array};
use super::parse::{Flow, Layer, Next};
use super::{tcp, tunnel, udp};
use crate::{Config, Reason, Rules, Why};

/// Reads an IPv4 header (`inet_gro_receive`), then layer 4.
#[inline]
pub(super) fn ipv4<P: Packet>(
    packet: &mut P,
    flow: &mut Flow,
    config: &Config,
) -> Result<Next, Why> {
    let left = packet.len().saturating_sub(flow.at);
    let header = flow.header::<{ ipv4::MIN_LEN }, P>(packet, Reason::Ipv4Truncated)?;
    let protocol = header[9];
    let at = offset(flow)?;
    flow.levels.push(Family::V4, at, header);
    check_v4(header).map_err(|why| flow.refuse(why))?;
    if flow.unfit.is_none() {
        flow.unfit = unfit_v4(header, left, &config.rules);
    }
    let addresses = Addresses::V4(array(&header[12..]), array(&header[16..]));
    if flow.unfit.is_some() && config.rules.trims_padding {
        trim_v4(packet, flow, &config.rules)?;
    }
    flow.at += ipv4::MIN_LEN;
    layer4(packet, flow, config, protocol, &addresses)
}

/// Why this IPv4 packet overtakes its flow.
#[inline]
fn check_v4(header: &[u8; ipv4::MIN_LEN]) -> Result<(), Why> {
    let (version, ihl) = (header[0] >> 4, header[0] & 15);
    let fragment =
        u16::from_be_bytes([header[6], header[7]]) & (ipv4::Header::MF | ipv4::Header::OFFSET);
    if !matches!(header[9], tcp::PROTOCOL | udp::PROTOCOL) && !tunnel::is_one(header[9]) {
        return Err(Why::new(Reason::IpProtocol, 0u8, header[9]));
    }
    if version != 4 {
        return Err(Why::new(Reason::IpVersion, 4u8, version));
    }
    if ihl < 5 {
        return Err(Why::new(Reason::IpHeaderLength, 5u8, ihl));
    }
    if ihl > 5 {
        return Err(Why::new(Reason::IpOptions, 5u8, ihl));
    }
    if fragment != 0 {
        return Err(Why::new(Reason::IpFragment, 0u8, fragment));
    }
    if sum_v4(header) != 0xffff {
        let check = u16::from_be_bytes([header[10], header[11]]);
        let mut zeroed = *header;
        zeroed[10..12].fill(0);
        let due = !sum_v4(&zeroed);
        return Err(Why::new(Reason::IpHeaderChecksum, due, check));
    }
    Ok(())
}

/// The folded sum of a header of fixed length (`ip_fast_csum`): by words of 32 bits, which are
/// congruent to their halves' sum.
fn sum_v4(header: &[u8; ipv4::MIN_LEN]) -> u16 {
    let (words, _) = header.as_chunks::<4>();
    let sum: u64 = words.iter().map(|word| u64::from(u32::from_be_bytes(*word))).sum();
    csum::fold(csum::add(sum as u32, (sum >> 32) as u32))
}

/// Why this IPv4 packet completes the head of its flow.
fn unfit_v4(header: &[u8; ipv4::MIN_LEN], left: usize, rules: &Rules) -> Option<Why> {
    let total = u16::from_be_bytes([header[2], header[3]]);
    let reserved = u16::from_be_bytes([header[6], header[7]]) & !ipv4::Header::DF;
    // Only the low 16 bits count, so the total length 0 of BIG TCP may pass.
    if total != left as u16 {
        Some(Why::new(Reason::IpTotalLength, total, left as u64))
    } else if reserved != 0 {
        Some(Why::new(Reason::IpReservedFlag, 0u8, reserved))
    } else if rules.lossless && header[10..12] == [0xff; 2] {
        Some(Why::new(Reason::IpChecksumForm, 0u16, 0xffff_u16))
    } else {
        None
    }
}

/// Cuts off what lies behind the datagram at the cursor, and judges what is left.
#[cold]
fn trim_v4<P: Packet>(packet: &mut P, flow: &mut Flow, rules: &Rules) -> Result<(), Why> {
    let header = *flow.header::<{ ipv4::MIN_LEN }, P>(packet, Reason::Ipv4Truncated)?;
    let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let padded = flow.unfit.is_some_and(|why| why.reason == Reason::IpTotalLength);
    if padded && total >= ipv4::MIN_LEN && flow.trim(packet, flow.at + total, rules) {
        flow.unfit = unfit_v4(&header, total, rules);
    }
    Ok(())
}

/// Reads an IPv6 header and the extension headers that may be looked through
/// (`ipv6_gro_receive`), then layer 4.
pub(super) fn ipv6<P: Packet>(
    packet: &mut P,
    flow: &mut Flow,
    config: &Config,
) -> Result<Next, Why> {
    let start = flow.at;
    let left = packet.len().saturating_sub(start + ipv6::LEN);
    let header = flow.header::<{ ipv6::LEN }, P>(packet, Reason::Ipv6Truncated)?;
    let claimed = u16::from_be_bytes([header[4], header[5]]);
    let next = header[6];
    let addresses = Addresses::V6(array(&header[8..]), array(&header[24..]));
    let at = offset(flow)?;
    flow.levels.push(Family::V6, at, header);
    flow.at += ipv6::LEN;
    let protocol = extensions(packet, flow, next)?;
    if !matches!(protocol, tcp::PROTOCOL | udp::PROTOCOL) && !tunnel::is_one(protocol) {
        return Err(flow.refuse(Why::new(Reason::Ipv6NextHeader, 0u8, protocol)));
    }
    if flow.unfit.is_none() && usize::from(claimed) != left {
        let end = start + ipv6::LEN + usize::from(claimed);
        let trimmed = config.rules.trims_padding && flow.trim(packet, end, &config.rules);
        let why = Why::lengths(Reason::Ipv6PayloadLength, claimed.into(), left);
        flow.unfit = if trimmed { None } else { Some(why) };
    }
    flow.sums.pass(&packet.front()[start..flow.at]);
    layer4(packet, flow, config, protocol, &addresses)
}

/// Moves the cursor behind the extension headers; the type of what follows
/// (`ipv6_gro_pull_exthdrs`).
fn extensions<P: Packet>(packet: &mut P, flow: &mut Flow, mut next: u8) -> Result<u8, Why> {
    while matches!(next, ipv6::next::HOP_BY_HOP | ipv6::next::ROUTING | ipv6::next::DEST_OPTS) {
        let [following, units] = *flow.header(packet, Reason::Ipv6Truncated)?;
        let len = (usize::from(units) + 1) * 8;
        flow.gather(packet, len, Reason::Ipv6Truncated)?;
        flow.at += len;
        next = following;
    }
    Ok(next)
}

#[inline]
fn layer4<P: Packet>(
    packet: &mut P,
    flow: &mut Flow,
    config: &Config,
    protocol: u8,
    addresses: &Addresses,
) -> Result<Next, Why> {
    flow.l4 = offset(flow)?;
    packet.meta_mut().transport = flow.l4;
    flow.descend(&config.rules)?;
    match protocol {
        tcp::PROTOCOL => tcp::parse(packet, flow, addresses, config)
            .map(|segment| Next::Payload(Layer::Tcp(segment))),
        udp::PROTOCOL => udp::parse(packet, flow, addresses, config),
        _ => tunnel::parse(packet, flow, addresses, config, protocol),
    }
}

/// The cursor in 16 bits, as in an `sk_buff`; headers further in are not reached.
#[inline]
pub(super) fn offset(flow: &Flow) -> Result<u16, Why> {
    u16::try_from(flow.at)
        .map_err(|_| flow.refuse(Why::lengths(Reason::Unreadable, 0xffff, flow.at)))
}

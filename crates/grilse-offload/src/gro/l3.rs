//! IPv4 and IPv6: what they refuse, and the test that a packet and its head must pass.
//!
//! Addresses and the like tell flows apart, which is the bucket's matter. The fields tested here
//! (TTL, TOS and their kin, identification) may change within a flow; then the head is completed.

use grilse_wire::{Packet, csum, ipv4, ipv6};

use super::parse::{Flow, Layer};
use super::{tcp, udp};
use crate::{Config, Reason, Why};

/// Encapsulation levels that the kernel tracks (`network_offsets`): outer or only, and inner.
const MAX_LEVELS: usize = 2;

/// The IP headers of one packet, outermost first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Levels {
    levels: [Level; MAX_LEVELS],
    len: u8,
}

/// The words of one IP header that may change within a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Level {
    /// Offset of the header.
    pub(super) at: u16,
    /// What the layer in front said it is.
    pub(super) family: Family,
    /// Bytes 0-3: version, IHL, TOS, total length; or version, traffic class, flow label.
    word0: u32,
    /// Bytes 4-7: identification, flags, offset; or payload length, next header, hop limit.
    word1: u32,
    /// Byte 8: TTL; or the first byte of the source address.
    byte8: u8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Family {
    #[default]
    V4,
    V6,
}

impl Levels {
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &Level> {
        self.levels[..usize::from(self.len)].iter()
    }

    #[inline]
    fn push(&mut self, family: Family, at: u16, header: &[u8]) {
        let word =
            |i: usize| u32::from_be_bytes([header[i], header[i + 1], header[i + 2], header[i + 3]]);
        self.levels[usize::from(self.len)] =
            Level { at, family, word0: word(0), word1: word(4), byte8: header[8] };
        self.len += 1;
    }

    /// Tests every level of `self`, the packet that came, against `head`, which stands for `count`
    /// segments. Bit n of `fixed` says that level n of the head keeps its identification; it is
    /// decided when the second packet comes (`gro_receive_network_flush`).
    ///
    /// # Errors
    /// The first field that differs.
    #[inline]
    pub(super) fn compare(&self, head: &Self, count: u16, fixed: &mut u8) -> Result<(), Why> {
        for (n, (level, head)) in self.iter().zip(head.iter()).enumerate() {
            // The kernel goes by the version nibble here, whatever the ethertype said.
            if level.word0 >> 28 == 6 {
                level.compare_v6(head)?;
            } else {
                level.compare_v4(head, count, fixed, 1 << n)?;
            }
        }
        Ok(())
    }
}

impl Level {
    fn compare_v4(&self, head: &Self, count: u16, fixed: &mut u8, bit: u8) -> Result<(), Why> {
        let tos = |level: &Self| (level.word0 >> 16) & 0xff;
        let df = |level: &Self| level.word1 & u32::from(ipv4::Header::DF);
        let id = |level: &Self| (level.word1 >> 16) as u16;
        if self.byte8 != head.byte8 {
            return Err(Why::new(Reason::Ttl, head.byte8, self.byte8));
        }
        if tos(self) != tos(head) {
            return Err(Why::new(Reason::Tos, tos(head), tos(self)));
        }
        if df(self) != df(head) {
            return Err(Why::new(Reason::Df, df(head), df(self)));
        }
        if count == 1 && id(self) == id(head) {
            *fixed |= bit;
        }
        let due = if *fixed & bit == 0 { id(head).wrapping_add(count) } else { id(head) };
        if id(self) != due {
            return Err(Why::new(Reason::IpId, due, id(self)));
        }
        Ok(())
    }

    fn compare_v6(&self, head: &Self) -> Result<(), Why> {
        let version_class = |level: &Self| (level.word0 >> 20) & 0xff;
        let hops = |level: &Self| level.word1 & 0xff;
        if version_class(self) != version_class(head) {
            return Err(Why::new(Reason::TrafficClass, version_class(head), version_class(self)));
        }
        if hops(self) != hops(head) {
            return Err(Why::new(Reason::HopLimit, hops(head), hops(self)));
        }
        Ok(())
    }

    /// Whether both belong to one flow, as far as the words here tell: the version, and the flow
    /// label, next header and protocol. The addresses lie behind these words.
    pub(super) fn same_flow(&self, other: &Self) -> bool {
        let (word0, word1) = match self.family {
            Family::V4 => (0, 0),
            Family::V6 => (0xf00f_ffff, 0x0000_ff00),
        };
        self.at == other.at
            && self.family == other.family
            && (self.word0 ^ other.word0) & word0 == 0
            && (self.word1 ^ other.word1) & word1 == 0
    }

    /// Offset of the source address.
    pub(super) fn addresses(&self) -> usize {
        usize::from(self.at)
            + match self.family {
                Family::V4 => 12,
                Family::V6 => 8,
            }
    }
}

/// Source and destination address.
#[derive(Clone, Copy, Debug)]
pub(super) enum Addresses {
    V4([u8; 4], [u8; 4]),
    V6([u8; 16], [u8; 16]),
}

impl Addresses {
    /// Those of the IP header at `level`, read from the front of the frame.
    pub(super) fn read(level: &Level, frame: &[u8]) -> Self {
        let at = level.addresses();
        match level.family {
            Family::V4 => Self::V4(array(&frame[at..]), array(&frame[at + 4..])),
            Family::V6 => Self::V6(array(&frame[at..]), array(&frame[at + 16..])),
        }
    }

    /// Unfolded sum of the pseudo-header.
    pub(super) fn pseudo(&self, protocol: u8, len: usize) -> u32 {
        match self {
            Self::V4(src, dst) => csum::pseudo_v4(*src, *dst, protocol, len as u32),
            Self::V6(src, dst) => csum::pseudo_v6(src, dst, protocol, len as u32),
        }
    }

    /// Digest of a flow between these addresses; `ports` are both ports in one word.
    pub(super) fn digest(&self, ports: u32) -> u64 {
        let mix = |sum: u64, word: u64| (sum ^ word).wrapping_mul(MIX).rotate_left(29);
        let ports = u64::from(ports) << 20;
        match self {
            Self::V4(src, dst) => mix(
                ports,
                u64::from(u32::from_be_bytes(*src)) << 32 | u64::from(u32::from_be_bytes(*dst)),
            ),
            Self::V6(src, dst) => {
                let half = |bytes: &[u8]| u64::from_be_bytes(array(bytes));
                let sum = mix(mix(ports, half(src)), half(&src[8..]));
                mix(mix(sum, half(dst)), half(&dst[8..]))
            }
        }
    }
}

/// An odd number with well-spread bits: 2^64 divided by the golden ratio.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[..N]);
    array
}

/// Reads an IPv4 header (`inet_gro_receive`), then layer 4.
#[inline]
pub(super) fn ipv4<P: Packet>(
    packet: &mut P,
    flow: &mut Flow,
    config: &Config,
) -> Result<Layer, Why> {
    let left = packet.len().saturating_sub(flow.at);
    let header = flow.header::<{ ipv4::MIN_LEN }, P>(packet, Reason::Ipv4Truncated)?;
    let protocol = header[9];
    check_v4(header).map_err(|why| flow.refuse(why))?;
    if flow.unfit.is_none() {
        flow.unfit = unfit_v4(header, left);
    }
    let addresses = Addresses::V4(array(&header[12..]), array(&header[16..]));
    let at = offset(flow)?;
    flow.levels.push(Family::V4, at, header);
    flow.at += ipv4::MIN_LEN;
    layer4(packet, flow, config, protocol, &addresses)
}

/// Why this IPv4 packet overtakes its flow.
#[inline]
fn check_v4(header: &[u8; ipv4::MIN_LEN]) -> Result<(), Why> {
    let (version, ihl) = (header[0] >> 4, header[0] & 15);
    let fragment =
        u16::from_be_bytes([header[6], header[7]]) & (ipv4::Header::MF | ipv4::Header::OFFSET);
    if !matches!(header[9], tcp::PROTOCOL | udp::PROTOCOL) {
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
fn unfit_v4(header: &[u8; ipv4::MIN_LEN], left: usize) -> Option<Why> {
    let total = u16::from_be_bytes([header[2], header[3]]);
    let reserved = u16::from_be_bytes([header[6], header[7]]) & !ipv4::Header::DF;
    // Only the low 16 bits count, so the total length 0 of BIG TCP may pass.
    if total != left as u16 {
        Some(Why::new(Reason::IpTotalLength, total, left as u64))
    } else if reserved != 0 {
        Some(Why::new(Reason::IpReservedFlag, 0u8, reserved))
    } else {
        None
    }
}

/// Reads an IPv6 header and the extension headers that may be looked through
/// (`ipv6_gro_receive`), then layer 4.
pub(super) fn ipv6<P: Packet>(
    packet: &mut P,
    flow: &mut Flow,
    config: &Config,
) -> Result<Layer, Why> {
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
    if !matches!(protocol, tcp::PROTOCOL | udp::PROTOCOL) {
        return Err(flow.refuse(Why::new(Reason::Ipv6NextHeader, 0u8, protocol)));
    }
    if flow.unfit.is_none() && usize::from(claimed) != left {
        flow.unfit = Some(Why::lengths(Reason::Ipv6PayloadLength, claimed.into(), left));
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
) -> Result<Layer, Why> {
    flow.l4 = offset(flow)?;
    packet.meta_mut().transport = flow.l4;
    flow.descend(&config.rules)?;
    match protocol {
        tcp::PROTOCOL => tcp::parse(packet, flow, addresses, config).map(Layer::Tcp),
        _ => udp::parse(packet, flow, addresses, config).map(Layer::Udp),
    }
}

/// The cursor in 16 bits, as in an `sk_buff`; headers further in are not reached.
#[inline]
fn offset(flow: &Flow) -> Result<u16, Why> {
    u16::try_from(flow.at)
        .map_err(|_| flow.refuse(Why::lengths(Reason::Unreadable, 0xffff, flow.at)))
}

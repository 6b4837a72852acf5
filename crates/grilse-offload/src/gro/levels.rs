//! The IP headers of a packet, outside and inside of tunnels: what tells flows apart in them, and the
//! test that a packet and its head must pass.
//!
//! Addresses and the like tell flows apart, which is the table's matter. The fields tested here
//! (TTL, TOS and their kin, identification) may change within a flow; then the head is completed.

use grilse_wire::{csum, ipv4};

use super::tunnel::Tunnel;
use crate::{L3Test, OuterId, Reason, Rules, Why};

/// Encapsulation levels that the kernel tracks (`network_offsets`): outer or only, and inner.
const MAX_LEVELS: usize = 2;

/// The IP headers of one packet, outermost first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Levels {
    levels: [Level; MAX_LEVELS],
    len: u8,
    /// What stands between the two.
    pub(super) tunnel: Tunnel,
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
    /// Bytes 8-11: TTL, protocol, checksum; or the first of the source address.
    word2: u32,
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
    pub(super) fn push(&mut self, family: Family, at: u16, header: &[u8]) {
        let word =
            |i: usize| u32::from_be_bytes([header[i], header[i + 1], header[i + 2], header[i + 3]]);
        self.levels[usize::from(self.len)] =
            Level { at, family, word0: word(0), word1: word(4), word2: word(8) };
        self.len += 1;
    }

    /// Digest of the outermost addresses, read from the front of the frame.
    pub(super) fn pair(&self, frame: &[u8]) -> u32 {
        self.iter().next().map_or(0, |outer| Addresses::read(outer, frame).pair())
    }

    /// The `fixed` bits of a head that nothing has joined. Where every candidate is tested, an
    /// innermost header with DF is taken to keep its identification (`is_atomic`).
    pub(super) fn fixed_at_first(&self, rules: &Rules) -> u8 {
        let inner = self.iter().next_back();
        let df = inner.is_some_and(|level| level.family == Family::V4 && level.df() != 0);
        u8::from(rules.l3_test == L3Test::Candidates && df)
    }

    /// Where the innermost addresses begin, if all in front of them belongs to one flow in two frames:
    /// the bytes from there on are to be compared next.
    #[inline]
    pub(super) fn same_flow(&self, other: &Self, a: &[u8], b: &[u8]) -> Option<usize> {
        let [outer, _] = &self.levels;
        let link = usize::from(outer.at);
        if self.len != other.len || !outer.same_flow(&other.levels[0]) || a[..link] != b[..link] {
            return None;
        }
        if self.len == 1 { Some(outer.addresses()) } else { self.same_inner(other, a, b) }
    }

    /// The same behind the outer addresses.
    #[inline(never)]
    fn same_inner(&self, other: &Self, a: &[u8], b: &[u8]) -> Option<usize> {
        let [outer, inner] = &self.levels;
        let between = outer.addresses()..usize::from(inner.at);
        let same = inner.same_flow(&other.levels[1])
            && (a[between.clone()] == b[between.clone()]
                || self.tunnel.is_same(&other.tunnel, a, b, between));
        same.then(|| inner.addresses())
    }

    /// Tests every level of `self`, the packet that came, against `head`, which stands for `count`
    /// segments. Bit n of `fixed` says that level n of the head keeps its identification; it is
    /// decided when the second packet comes (`gro_receive_network_flush`).
    ///
    /// # Errors
    /// The first field that differs.
    #[inline(always)] // Half of a segment's tests; a call would save and restore all that they use.
    pub(super) fn compare(
        &self,
        head: &Self,
        count: u16,
        fixed: &mut u8,
        rules: &Rules,
    ) -> Result<(), Why> {
        for (n, (level, head)) in self.iter().zip(head.iter()).enumerate() {
            // The kernel goes by the version nibble here, whatever the ethertype said.
            if level.word0 >> 28 == 6 {
                level.compare_v6(head)?;
            } else {
                level.compare_v4(head)?;
                if rules.outer_id == OuterId::Own {
                    level.compare_id(head, count, fixed, 1 << n, rules.fixed_id_without_df)?;
                } else {
                    let outer = n + 1 < usize::from(self.len);
                    level.compare_id_as_before(head, count, fixed, outer, rules)?;
                }
            }
        }
        Ok(())
    }
}

impl Level {
    fn df(&self) -> u32 {
        self.word1 & u32::from(ipv4::Header::DF)
    }

    fn id(&self) -> u16 {
        (self.word1 >> 16) as u16
    }

    fn compare_v4(&self, head: &Self) -> Result<(), Why> {
        let tos = |level: &Self| (level.word0 >> 16) & 0xff;
        let ttl = |level: &Self| level.word2 >> 24;
        if ttl(self) != ttl(head) {
            return Err(Why::new(Reason::Ttl, ttl(head), ttl(self)));
        }
        if tos(self) != tos(head) {
            return Err(Why::new(Reason::Tos, tos(head), tos(self)));
        }
        if self.df() != head.df() {
            return Err(Why::new(Reason::Df, head.df(), self.df()));
        }
        Ok(())
    }

    /// `bit` of `fixed` says that this level keeps its identification, which it may without DF where
    /// `any_df` says so (`inet_gro_flush`).
    #[inline]
    fn compare_id(
        &self,
        head: &Self,
        count: u16,
        fixed: &mut u8,
        bit: u8,
        any_df: bool,
    ) -> Result<(), Why> {
        if count == 1 && self.id() == head.id() && (any_df || self.df() != 0) {
            *fixed |= bit;
        }
        let due = if *fixed & bit == 0 { head.id().wrapping_add(count) } else { head.id() };
        if self.id() == due { Ok(()) } else { Err(Why::new(Reason::IpId, due, self.id())) }
    }

    /// The same before 6.18: an `outer` header with DF is not asked, and all share one bit.
    #[cold]
    fn compare_id_as_before(
        &self,
        head: &Self,
        count: u16,
        fixed: &mut u8,
        outer: bool,
        rules: &Rules,
    ) -> Result<(), Why> {
        if outer && self.df() != 0 {
            return Ok(());
        }
        if rules.l3_test == L3Test::Head {
            return self.compare_id(head, count, fixed, 1, rules.fixed_id_without_df);
        }
        // is_atomic is of the innermost header, and falls when the second packet counts up.
        if !outer && count == 1 && self.id() == head.id().wrapping_add(1) {
            *fixed = 0;
        }
        let keeps = !outer && *fixed != 0;
        let due = if keeps { head.id() } else { head.id().wrapping_add(count) };
        if self.id() == due { Ok(()) } else { Err(Why::new(Reason::IpId, due, self.id())) }
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
    fn same_flow(&self, other: &Self) -> bool {
        let (word0, word1, word2) = match self.family {
            Family::V4 => (0, 0, 0x00ff_0000),
            Family::V6 => (0xf00f_ffff, 0x0000_ff00, 0),
        };
        self.at == other.at
            && self.family == other.family
            && (self.word0 ^ other.word0) & word0 == 0
            && (self.word1 ^ other.word1) & word1 == 0
            && (self.word2 ^ other.word2) & word2 == 0
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

    /// Digest of the addresses alone.
    pub(super) fn pair(&self) -> u32 {
        self.digest(0) as u32
    }

    /// Digest of a flow between these addresses, whose low bits are the best; `ports` are both ports
    /// in one word.
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

pub(super) fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[..N]);
    array
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An IPv4 header as far as it is compared: its identification, and whether DF is set.
    type Ip = (u16, bool);

    fn levels(outer: Ip, inner: Ip) -> Levels {
        let mut levels = Levels::default();
        for ((id, df), at) in [(outer, 14), (inner, 34)] {
            let mut header = [0; 20];
            (header[0], header[8]) = (0x45, 64);
            header[4..6].copy_from_slice(&id.to_be_bytes());
            header[6] = u8::from(df) << 6;
            levels.push(Family::V4, at, &header);
        }
        levels
    }

    /// How many of three packets with these identifications merge, outer and inner.
    fn merged(rules: &Rules, outer: [u16; 3], outer_df: bool, inner: [u16; 3]) -> u16 {
        let packet = |n: usize| levels((outer[n], outer_df), (inner[n], true));
        let head = packet(0);
        let mut fixed = head.fixed_at_first(rules);
        let joins = |n: &u16| packet(usize::from(*n)).compare(&head, *n, &mut fixed, rules).is_ok();
        1 + (1..3).take_while(joins).count() as u16
    }

    /// The row "outer ID when outer DF = 1", from the kernel's source, not run.
    #[test]
    fn outer_identifications_count_or_stay_or_do_not_matter() {
        let (counts, stays, jumps) = ([5, 6, 7], [5, 5, 5], [5, 90, 17]);
        for rules in Rules::ALL {
            let own = rules.outer_id == OuterId::Own;
            let three = |accepted| if accepted { 3 } else { 1 };
            for inner in [counts, stays] {
                assert_eq!(merged(rules, counts, true, inner), 3, "{}", rules.name);
                assert_eq!(merged(rules, stays, true, inner), 3, "{}", rules.name);
                assert_eq!(merged(rules, jumps, true, inner), three(!own), "{}", rules.name);
                assert_eq!(merged(rules, stays, false, inner), three(own), "{}", rules.name);
            }
            assert_eq!(merged(rules, counts, false, counts), 3, "{}", rules.name);
            // Both levels share a bit, which the inner one sets when the second packet comes.
            let shared = !own && rules.l3_test == L3Test::Head;
            assert_eq!(merged(rules, counts, false, stays), if shared { 2 } else { 3 });
        }
    }
}

//! What the headers of a super-packet are, and what in them changes from segment to segment.
//!
//! A layout is read once per super-packet ([`walk`](super::walk)), and is then all that segmentation
//! needs to know: where the headers stand that hold a length, an identification, a sequence number
//! or a checksum, and the sums of the bytes in them that stay the same. So the checksum of a header
//! costs a few additions per segment, and only payload is summed. Offsets count in the headers of a
//! segment, which may lack a jumbo payload option, or have a Fragment header more.

use core::ops::Range;

use grilse_wire::{csum, ipv4, ipv6, tcp, udp};

use super::Checksums;

/// Headers that have something to change, in front of layer 4. The kernel's GRO tracks two
/// IP headers; a tunnel has two more.
pub(super) const MAX_LEVELS: usize = 6;

/// Bytes of a jumbo payload option with its Hop-by-Hop header (`struct hop_jumbo_hdr`).
pub(super) const JUMBO_LEN: usize = 8;
/// Bytes of a Fragment header.
pub(super) const FRAGMENT_LEN: usize = size_of::<ipv6::FragmentHeader>();

/// The headers of a super-packet, and the rules by which they are written anew.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    levels: [Level; MAX_LEVELS],
    len: u8,
    pub(super) l4: L4,
    /// Offset of the layer-4 header.
    pub(super) at: usize,
    /// Length of the headers of a segment.
    pub(super) headers: usize,
    /// Where the payload begins in the super-packet.
    pub(super) payload: usize,
    /// Where in the super-packet the jumbo payload option stands, which segments do not have.
    pub(super) jumbo: Option<usize>,
    pub(super) checksums: Checksums,
}

/// A header in front of layer 4.
#[derive(Clone, Copy, Debug)]
pub(super) enum Level {
    V4 {
        at: u16,
        len: u8,
        id: u16,
        /// The identification stays the same.
        fixed: bool,
        /// The folded sum of the header less length, identification, flags, offset and checksum.
        base: u16,
    },
    V6 {
        at: u16,
        /// Type of the first header behind it.
        next: u8,
    },
    /// A UDP header in front of a tunnel; with the sum of its pseudo-header, less the length, where
    /// it has a checksum to be made.
    Udp { at: u16, seed: Option<u32> },
    /// A GRE header; whether it has a checksum to be made.
    Gre { at: u16, sum: bool },
}

/// Layer 4.
#[derive(Clone, Copy, Debug)]
pub(super) enum L4 {
    Tcp {
        /// Sum of the pseudo-header, less the length.
        seed: u32,
        /// Sum of the header, less sequence number, flags and checksum.
        base: u32,
        seq: u32,
        /// Data offset, reserved bits and flags.
        word: u16,
        /// CWR stands on every segment ([`GsoType::TCP_ACCECN`](grilse_wire::GsoType::TCP_ACCECN)).
        accecn: bool,
    },
    Udp {
        seed: u32,
        /// Sum of the ports.
        base: u32,
    },
    /// IP fragments of UDP, whose header is payload then.
    Fragments {
        seed: u32,
        /// Identification in the Fragment header of IPv6.
        id: u32,
        /// Where the type of the Fragment header stands; `None` in IPv4, which has none.
        type_at: Option<usize>,
    },
}

/// One segment of a super-packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub(super) index: usize,
    /// Offset of its payload in the payload of the super-packet, and its length.
    pub(super) at: usize,
    pub(super) len: usize,
    pub(super) last: bool,
}

impl Layout {
    pub(super) fn new(checksums: Checksums) -> Self {
        Self {
            levels: [Level::Gre { at: 0, sum: false }; MAX_LEVELS],
            len: 0,
            l4: L4::Udp { seed: 0, base: 0 },
            at: 0,
            headers: 0,
            payload: 0,
            jumbo: None,
            checksums,
        }
    }

    /// Adds a level; `None`: there are too many.
    pub(super) fn push(&mut self, level: Level) -> Option<()> {
        *self.levels.get_mut(usize::from(self.len))? = level;
        self.len += 1;
        Some(())
    }

    pub(super) fn levels(&self) -> &[Level] {
        &self.levels[..usize::from(self.len)]
    }

    /// Fragments share the identification of their datagram.
    pub(super) fn fix_innermost(&mut self) {
        let innermost = usize::from(self.len).checked_sub(1).map(|last| &mut self.levels[last]);
        if let Some(Level::V4 { fixed, .. }) = innermost {
            *fixed = true;
        }
    }

    /// One IP header and layer 4, no tunnel, and no option that segments lose.
    pub(super) fn is_plain(&self) -> bool {
        let whole = !matches!(self.l4, L4::Fragments { .. });
        whole && self.jumbo.is_none() && self.levels().len() == 1
    }

    /// Whether headers depend on the payload of each segment.
    #[inline]
    pub(super) fn wants_sum(&self) -> bool {
        match self.l4 {
            L4::Fragments { .. } => self.levels().iter().any(Level::has_sum),
            _ => self.checksums == Checksums::Finish,
        }
    }

    /// Writes the headers of a segment to `to`: those of the super-packet, which `from` begins with,
    /// with everything made right that differs. `sum` is that of the segment's payload, where
    /// [`wants_sum`](Self::wants_sum).
    #[inline]
    pub(super) fn write(&self, from: &[u8], to: &mut [u8], segment: &Segment, sum: u32) {
        self.copy(from, to);
        // From the inside out, as an outer checksum covers the inner headers.
        let sum = self.write_l4(to, segment, sum);
        for level in self.levels().iter().rev() {
            self.write_level(level, to, segment, sum);
        }
    }

    #[inline]
    fn copy(&self, from: &[u8], to: &mut [u8]) {
        let Some(jumbo) = self.jumbo else {
            let len = self.headers.min(self.payload);
            to[..len].copy_from_slice(&from[..len]);
            return;
        };
        to[..jumbo].copy_from_slice(&from[..jumbo]);
        let end = self.headers.min(self.payload - JUMBO_LEN);
        to[jumbo..end].copy_from_slice(&from[jumbo + JUMBO_LEN..end + JUMBO_LEN]);
    }

    /// Writes layer 4; the sum of its bytes with payload and finished checksum, as outer checksums
    /// cover it.
    #[inline]
    fn write_l4(&self, to: &mut [u8], segment: &Segment, payload: u32) -> u32 {
        let len = (self.headers - self.at + segment.len) as u32;
        // Sums of a few 32-bit words, which 64 bits hold without a carry.
        let (pseudo, check, field) = match self.l4 {
            L4::Tcp { seed, base, seq, word, accecn } => {
                let Some(header) = chunk::<{ tcp::MIN_LEN }>(to, self.at) else { return 0 };
                let seq = seq.wrapping_add(segment.at as u32);
                let word = word & flags(segment, accecn);
                header[4..8].copy_from_slice(&seq.to_be_bytes());
                header[12..14].copy_from_slice(&word.to_be_bytes());
                let pseudo = u64::from(seed) + u64::from(len);
                let fixed = u64::from(base) + u64::from(seq) + u64::from(word);
                let check = !fold(pseudo + fixed + u64::from(payload));
                (pseudo, check, &mut header[tcp::CHECK..][..2])
            }
            L4::Udp { seed, base } => {
                let Some(header) = chunk::<{ udp::LEN }>(to, self.at) else { return 0 };
                header[udp::LENGTH..][..2].copy_from_slice(&(len as u16).to_be_bytes());
                let pseudo = u64::from(seed) + u64::from(len);
                let fixed = u64::from(base) + u64::from(len);
                let check = never_zero(!fold(pseudo + fixed + u64::from(payload)));
                (pseudo, check, &mut header[udp::CHECK..][..2])
            }
            L4::Fragments { id, type_at, .. } => {
                return self.write_fragment(to, segment, id, type_at, payload);
            }
        };
        let pseudo = fold(pseudo);
        field.copy_from_slice(&match self.checksums {
            Checksums::Finish => check.to_be_bytes(),
            Checksums::Leave => pseudo.to_be_bytes(),
        });
        // With its checksum layer 4 and its pseudo-header sum to 0xffff, so without: to the complement
        // of the latter. This is the kernel's local checksum offload.
        u32::from(!pseudo)
    }

    /// Writes the Fragment header, where there is one; the sum of it and of the payload.
    #[cold]
    fn write_fragment(
        &self,
        to: &mut [u8],
        segment: &Segment,
        id: u32,
        type_at: Option<usize>,
        payload: u32,
    ) -> u32 {
        if let Some(at) = type_at {
            to[at] = ipv6::next::FRAGMENT;
        }
        let Some(header) = chunk::<FRAGMENT_LEN>(to, self.at) else { return payload };
        // An offset of whole 8-byte units, and behind it the bit that says more follows.
        let word = segment.at as u16 | u16::from(!segment.last);
        header[..2].copy_from_slice(&[udp::PROTOCOL, 0]);
        header[2..4].copy_from_slice(&word.to_be_bytes());
        header[4..].copy_from_slice(&id.to_be_bytes());
        csum::add(csum::sum(header), payload)
    }

    /// Writes one header in front of layer 4, whose sum is `sum`.
    #[inline]
    fn write_level(&self, level: &Level, to: &mut [u8], segment: &Segment, sum: u32) {
        let total = self.headers + segment.len;
        match *level {
            Level::V4 { at, len, id, fixed, base } => {
                let at = usize::from(at);
                let Some(header) = chunk::<{ ipv4::MIN_LEN }>(to, at) else { return };
                let fragments = matches!(self.l4, L4::Fragments { .. });
                let fragment = if fragments && at + usize::from(len) == self.at {
                    (segment.at / 8) as u16 | if segment.last { 0 } else { ipv4::Header::MF }
                } else {
                    u16::from_be_bytes([header[6], header[7]])
                };
                let id = if fixed { id } else { id.wrapping_add(segment.index as u16) };
                let total = (total - at) as u16;
                header[2..4].copy_from_slice(&total.to_be_bytes());
                header[4..6].copy_from_slice(&id.to_be_bytes());
                header[6..8].copy_from_slice(&fragment.to_be_bytes());
                let sum = u32::from(base) + u32::from(total) + u32::from(id) + u32::from(fragment);
                let check = !csum::fold(sum);
                header[ipv4::CHECK..ipv4::CHECK + 2].copy_from_slice(&check.to_be_bytes());
            }
            Level::V6 { at, next } => {
                let at = usize::from(at);
                let Some(header) = chunk::<{ ipv6::LEN }>(to, at) else { return };
                let payload = (total - at - ipv6::LEN) as u16;
                header[4..6].copy_from_slice(&payload.to_be_bytes());
                header[6] = next;
            }
            Level::Udp { at, seed } => {
                let at = usize::from(at);
                let len = total - at;
                to[at + udp::LENGTH..][..2].copy_from_slice(&(len as u16).to_be_bytes());
                if let Some(seed) = seed {
                    let pseudo = csum::add(seed, len as u32);
                    let check = self.outer_check(to, at..at + udp::CHECK, csum::add(pseudo, sum));
                    to[at + udp::CHECK..][..2].copy_from_slice(&never_zero(check).to_be_bytes());
                }
            }
            Level::Gre { at, sum: true } => {
                let at = usize::from(at);
                // The reserved bytes behind the checksum become 0, as in the kernel.
                to[at + 6..at + 8].fill(0);
                let check = self.outer_check(to, at..at + 4, sum);
                to[at + 4..at + 6].copy_from_slice(&check.to_be_bytes());
            }
            Level::Gre { sum: false, .. } => {}
        }
    }

    /// Writes length, identification and checksum of the only IP header of a packet whose other
    /// fields may be its own.
    pub(super) fn write_ip(&self, to: &mut [u8], segment: &Segment) {
        for level in self.levels() {
            if let Level::V4 { at, len, .. } = *level {
                let header = &to[at.into()..usize::from(at) + usize::from(len)];
                let level = level.with_base(header);
                self.write_level(&level, to, segment, 0);
            } else {
                self.write_level(level, to, segment, 0);
            }
        }
    }

    /// The checksum over a tunnel: `before` are the bytes in front of the checksum's place, and `sum`
    /// that of layer 4 and pseudo-header.
    fn outer_check(&self, to: &[u8], before: Range<usize>, sum: u32) -> u16 {
        let behind = &to[before.end + 2..self.at];
        let headers = csum::add(csum::sum(&to[before]), csum::sum(behind));
        !csum::fold(csum::add(headers, sum))
    }
}

impl Level {
    /// Offset of the header.
    pub(super) fn at(&self) -> usize {
        match self {
            Self::V4 { at, .. } | Self::V6 { at, .. } | Self::Udp { at, .. } => (*at).into(),
            Self::Gre { at, .. } => (*at).into(),
        }
    }

    /// The same level with the sum of this header.
    pub(super) fn with_base(mut self, header: &[u8]) -> Self {
        if let Self::V4 { base, .. } = &mut self {
            let parts = [&header[..2], &header[8..10], &header[12..]].map(csum::sum);
            *base = csum::fold(parts.into_iter().fold(0, csum::add));
        }
        self
    }

    fn has_sum(&self) -> bool {
        matches!(self, Self::Udp { seed: Some(_), .. } | Self::Gre { sum: true, .. })
    }
}

/// The first `N` bytes of the header at `at`, which is there: layouts lie within their headers.
#[inline]
fn chunk<const N: usize>(to: &mut [u8], at: usize) -> Option<&mut [u8; N]> {
    to.get_mut(at..)?.first_chunk_mut()
}

/// Folds a sum in 64 bits.
#[inline]
fn fold(sum: u64) -> u16 {
    csum::fold(csum::add(sum as u32, (sum >> 32) as u32))
}

/// The flags that stay on a segment (`tcp_gso_segment`).
#[inline]
fn flags(segment: &Segment, accecn: bool) -> u16 {
    use tcp::flag::{CWR, FIN, PSH};
    let mut gone = if segment.last { 0 } else { FIN | PSH };
    if segment.index > 0 && !accecn {
        gone |= CWR;
    }
    !gone
}

/// A UDP checksum of 0 says that there is none, so the other form of 0 is sent (RFC 768).
pub(super) fn never_zero(check: u16) -> u16 {
    if check == 0 { 0xffff } else { check }
}

//! The Internet checksum (RFC 1071): sums of 16-bit words in ones' complement.
//!
//! A sum is *unfolded* while it is 32 bits wide, and may be [added](add) to others; [`fold`] makes
//! it 16 bits. A checksum field holds the complement of a folded sum, which is the caller's to take.
//! Zero has two forms, 0 and 0xffff; an unfolded or folded sum is 0 only where every byte summed
//! is 0, so what is summed over a pseudo-header verifies where it folds to 0xffff.

#[cfg(target_arch = "x86_64")]
mod simd;

/// A sum in progress, over bytes that come in pieces of any length.
#[derive(Clone, Copy, Debug, Default)]
pub struct Summer {
    sum: u64,
    odd: bool,
}

impl Summer {
    /// Starts from an unfolded sum, such as that of a pseudo-header.
    #[inline]
    pub fn new(initial: u32) -> Self {
        Self { sum: initial.into(), odd: false }
    }

    /// Adds the bytes that follow.
    #[inline]
    pub fn push(&mut self, bytes: &[u8]) {
        let piece = fold(sum(bytes));
        self.sum += u64::from(if self.odd { piece.swap_bytes() } else { piece });
        self.odd ^= bytes.len() % 2 == 1;
    }

    /// The folded sum, not complemented: 0xffff where a checksum verifies.
    #[inline]
    pub fn fold(&self) -> u16 {
        fold(add(self.sum as u32, (self.sum >> 32) as u32))
    }
}

/// The unfolded sum of `bytes` as 16-bit words in network order; an odd last byte is a high byte.
///
/// A ones'-complement sum does not depend on the width of the words that are added, nor on their
/// byte order, as long as every carry comes back in (RFC 1071, 2): so the work is done in
/// little-endian words as wide as pays, and one swap at the end gives network order.
#[inline]
pub fn sum(bytes: &[u8]) -> u32 {
    unfolded(if bytes.len() < LONG { sum_short(bytes) } else { sum_long(bytes) })
}

/// A little-endian sum in network order.
#[inline]
fn unfolded(sum: u64) -> u32 {
    add(sum as u32, (sum >> 32) as u32).swap_bytes()
}

/// Below this many bytes, putting the lanes of vectors together costs more than they save.
const LONG: usize = 128;

/// Little-endian sum of a few bytes. Zeros stand behind the last bytes, to fill a word.
#[inline]
fn sum_short(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks();
    // The upper half counts carries, which so need not come back in before the next word.
    let mut sum = words.iter().map(|&word| u128::from(u64::from_le_bytes(word))).sum::<u128>();
    sum += u128::from(match (rest.len(), bytes.last_chunk()) {
        (0, _) => 0,
        // Some of the last eight bytes were summed: they are shifted out.
        (len, Some(&last)) => u64::from_le_bytes(last) >> (64 - 8 * len),
        (_, None) => rest.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
    });
    add64(sum as u64, (sum >> 64) as u64)
}

/// Little-endian sum of many bytes, by the widest vectors that the CPU has.
#[inline]
fn sum_long(bytes: &[u8]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if let Some(sum) = simd::sum_avx512(bytes).or_else(|| simd::sum_avx2(bytes)) {
        return sum;
    }
    sum_lanes(bytes)
}

/// The same for every CPU, in lanes that the compiler turns into vectors.
///
/// Vectors have no carry flag. Instead each lane keeps two sums of its 32-bit words: `all`, which
/// wraps, and `high`, of their upper halves, which does not. The sum of the lower halves is what
/// `all` has besides `high`, and as it fits into 32 bits, wrapping cannot have hurt it. That is
/// three instructions a vector, where masking both halves takes four.
#[inline(never)]
fn sum_lanes(bytes: &[u8]) -> u64 {
    /// Two SSE2 registers.
    const LANES: usize = 8;
    let (blocks, rest) = bytes.as_chunks::<{ 4 * LANES }>();
    let mut sum = sum_short(rest);
    for run in blocks.chunks(RUN) {
        let (mut all, mut high) = ([0u32; LANES], [0u32; LANES]);
        for block in run {
            let words = block.as_chunks::<4>().0;
            for ((all, high), &word) in all.iter_mut().zip(&mut high).zip(words) {
                let word = u32::from_le_bytes(word);
                *all = all.wrapping_add(word);
                *high += word >> 16;
            }
        }
        for (all, high) in all.into_iter().zip(high) {
            let low = all.wrapping_sub(high << 16);
            sum = add64(sum, u64::from(high) + u64::from(low));
        }
    }
    sum
}

/// 16-bit words after which a 32-bit sum of them could wrap.
const RUN: usize = 0xffff;

/// Folds a sum to 16 bits with end-around carry; 0 only where `sum` is 0. Not complemented.
#[inline]
pub fn fold(sum: u32) -> u16 {
    let half = (sum >> 16) + (sum & 0xffff);
    ((half >> 16) + (half & 0xffff)) as u16
}

/// Adds two unfolded sums.
#[inline]
pub fn add(a: u32, b: u32) -> u32 {
    let (sum, carry) = a.overflowing_add(b);
    sum + u32::from(carry)
}

/// Subtracts `b` from `a`.
#[inline]
pub fn sub(a: u32, b: u32) -> u32 {
    add(a, !b)
}

/// Sum of the pseudo-header of TCP and UDP over IPv4 (RFC 9293, 3.1). `len` counts the layer-4
/// header and its payload, and may pass 65,535 in super-packets.
#[inline]
pub fn pseudo_v4(src: [u8; 4], dst: [u8; 4], protocol: u8, len: u32) -> u32 {
    let len = (len >> 16) + (len & 0xffff) + u32::from(protocol);
    add(add(sum(&src), sum(&dst)), len)
}

/// The same over IPv6 (RFC 8200, 8.1).
#[inline]
pub fn pseudo_v6(src: &[u8; 16], dst: &[u8; 16], protocol: u8, len: u32) -> u32 {
    let len = (len >> 16) + (len & 0xffff) + u32::from(protocol);
    add(add(sum(src), sum(dst)), len)
}

/// The checksum field `check` after one 16-bit word that it covers changed from `old` to `new`
/// (RFC 1624, and bit for bit the kernel's `csum_replace2`).
#[inline]
pub fn replace(check: u16, old: u16, new: u16) -> u16 {
    !add16(add16(!check, !old), new)
}

#[inline]
fn add64(a: u64, b: u64) -> u64 {
    let (sum, carry) = a.overflowing_add(b);
    sum + u64::from(carry)
}

#[inline]
fn add16(a: u16, b: u16) -> u16 {
    let (sum, carry) = a.overflowing_add(b);
    sum + u16::from(carry)
}

#[cfg(test)]
mod tests;

//! The Internet checksum (RFC 1071): sums of 16-bit words in ones' complement.
//!
//! A sum is *unfolded* while it is 32 bits wide, and may be [added](add) to others; [`fold`] makes
//! it 16 bits. A checksum field holds the complement of a folded sum, which is the caller's to take.
//! Zero has two forms, 0 and 0xffff; an unfolded or folded sum is 0 only where every byte summed
//! is 0, so what is summed over a pseudo-header verifies where it folds to 0xffff.

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
/// byte order, as long as every carry comes back in (RFC 1071, 2): so the work is done in native
/// words as wide as pays, and one swap at the end gives network order.
#[inline]
pub fn sum(bytes: &[u8]) -> u32 {
    let total = if bytes.len() < LONG {
        sum_short(bytes)
    } else {
        let (blocks, rest) = bytes.as_chunks();
        add64(sum_blocks(blocks), sum_short(rest))
    };
    u32::from_be(add(total as u32, (total >> 32) as u32))
}

/// Below this many bytes, putting the lanes of [`sum_blocks`] together costs more than they save.
const LONG: usize = 192;

/// Lanes that [`sum_blocks`] adds in: two SSE2 registers, one of AVX2.
const LANES: usize = 8;

/// Native sum of a few bytes, with the carry of each addition brought back in at once. Zeros stand
/// behind the last bytes, to fill a word.
#[inline]
fn sum_short(bytes: &[u8]) -> u64 {
    let mut sum = 0;
    let (words, mut bytes) = bytes.as_chunks::<8>();
    for word in words {
        sum = add64(sum, u64::from_ne_bytes(*word));
    }
    if let Some((word, rest)) = bytes.split_first_chunk() {
        sum = add64(sum, u32::from_ne_bytes(*word).into());
        bytes = rest;
    }
    if let Some((word, rest)) = bytes.split_first_chunk() {
        sum = add64(sum, u16::from_ne_bytes(*word).into());
        bytes = rest;
    }
    if let [last] = bytes {
        sum = add64(sum, u16::from_ne_bytes([*last, 0]).into());
    }
    sum
}

/// Native sum of many bytes, in lanes that the compiler turns into vectors.
///
/// Vectors have no carry flag. Instead each lane keeps two sums of its 32-bit words: `all`, which
/// wraps, and `high`, of their upper halves, which does not. The sum of the lower halves is what
/// `all` has besides `high`, and as it fits into 32 bits, wrapping cannot have hurt it. That is
/// three instructions a vector, where masking both halves takes four.
#[inline(never)]
fn sum_blocks(blocks: &[[u8; 4 * LANES]]) -> u64 {
    /// Blocks after which a sum of 16-bit halves could wrap.
    const RUN: usize = 0xffff;
    let mut sum = 0;
    for run in blocks.chunks(RUN) {
        let (mut all, mut high) = ([0u32; LANES], [0u32; LANES]);
        for block in run {
            let words = block.as_chunks::<4>().0;
            for ((all, high), word) in all.iter_mut().zip(&mut high).zip(words) {
                let word = u32::from_ne_bytes(*word);
                *all = all.wrapping_add(word);
                *high += word >> 16;
            }
        }
        for (all, high) in all.into_iter().zip(high) {
            sum += u64::from(high) + u64::from(all.wrapping_sub(high << 16));
        }
    }
    sum
}

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
mod tests {
    extern crate std;

    use std::vec;
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    /// RFC 1071, 1, word by word.
    fn dull(bytes: &[u8]) -> u16 {
        let mut sum = 0u64;
        for pair in bytes.chunks(2) {
            sum += u64::from(pair[0]) << 8 | pair.get(1).map_or(0, |&low| low.into());
        }
        while sum > 0xffff {
            sum = (sum >> 16) + (sum & 0xffff);
        }
        sum as u16
    }

    #[test]
    fn rfc_1071_example() {
        assert_eq!(fold(sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7])), 0xddf2);
    }

    #[test]
    fn every_length_at_every_alignment() {
        let bytes: Vec<u8> =
            (0..700u32).map(|i| (i.wrapping_mul(2654435761) >> 13) as u8).collect();
        for start in 0..32 {
            for len in 0..600 {
                let bytes = &bytes[start..start + len];
                assert_eq!(fold(sum(bytes)), dull(bytes), "{len} bytes at {start}");
            }
        }
    }

    #[test]
    fn lanes_do_not_wrap() {
        // Ones in every bit bring each lane to its limit at the end of each run.
        let mut bytes = vec![0xff; 5 << 20];
        assert_eq!(fold(sum(&bytes)), 0xffff);
        bytes[3 << 20] = 0;
        assert_eq!(fold(sum(&bytes)), dull(&bytes));
        assert_eq!(sum(&vec![0; 5 << 20]), 0);
    }

    #[test]
    fn only_zeros_sum_to_zero() {
        for len in [1, 2, 3, 8, 20, 191, 192, 1500] {
            let mut bytes = vec![0; len];
            assert_eq!(sum(&bytes), 0);
            bytes[len - 1] = 1;
            assert_ne!(sum(&bytes), 0);
            bytes.fill(0xff);
            assert_ne!(sum(&bytes), 0);
        }
    }

    proptest! {
        #[test]
        fn pieces_sum_like_the_whole(
            bytes in prop::collection::vec(any::<u8>(), 0..3000),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
            initial: u32,
        ) {
            prop_assert_eq!(fold(sum(&bytes)), dull(&bytes));
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            cuts.sort();
            let mut summer = Summer::new(initial);
            let mut at = 0;
            for cut in cuts.into_iter().chain([bytes.len()]) {
                summer.push(&bytes[at..cut]);
                at = cut;
            }
            prop_assert_eq!(summer.fold(), fold(add(initial, sum(&bytes))));
        }

        #[test]
        fn sums_subtract(a: Vec<u8>, b: Vec<u8>) {
            // Equal but for the form of zero.
            let rest = fold(sub(add(sum(&a), sum(&b)), sum(&b)));
            prop_assert_eq!(rest % 0xffff, dull(&a) % 0xffff);
        }

        #[test]
        fn replacing_a_word_is_summing_anew(
            mut bytes in prop::collection::vec(any::<u8>(), 2..100), new: u16, at: prop::sample::Index,
        ) {
            let at = at.index(bytes.len() / 2) * 2;
            let old = u16::from_be_bytes([bytes[at], bytes[at + 1]]);
            let check = replace(!dull(&bytes), old, new);
            bytes[at..at + 2].copy_from_slice(&new.to_be_bytes());
            prop_assert_eq!(!check % 0xffff, dull(&bytes) % 0xffff);
        }

        #[test]
        fn pseudo_headers_sum_as_written(
            (src, dst, protocol) in any::<([u8; 16], [u8; 16], u8)>(), len in 0u32..1 << 20,
        ) {
            let mut v6 = [src, dst].concat();
            v6.extend_from_slice(&len.to_be_bytes());
            v6.extend_from_slice(&[0, 0, 0, protocol]);
            prop_assert_eq!(fold(pseudo_v6(&src, &dst, protocol, len)), dull(&v6));
            let (src, dst) = (*src.first_chunk().unwrap(), *dst.first_chunk().unwrap());
            let mut v4: Vec<u8> = [src, dst].concat();
            v4.extend_from_slice(&[0, protocol]);
            v4.extend_from_slice(&(len as u16).to_be_bytes());
            prop_assert_eq!(fold(pseudo_v4(src, dst, protocol, len & 0xffff)), dull(&v4));
        }
    }
}

//! Every implementation that this CPU has, held against RFC 1071 word by word.

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

type Sum = fn(&[u8]) -> u32;

/// The implementations that this CPU has, and the one that chooses among them.
fn implementations() -> Vec<(&'static str, Sum)> {
    let mut all: Vec<(&str, Sum)> = vec![
        ("chosen", sum),
        ("short", |bytes| unfolded(sum_short(bytes))),
        ("lanes", |bytes| unfolded(sum_lanes(bytes))),
    ];
    #[cfg(target_arch = "x86_64")]
    {
        if simd::sum_avx2(&[]).is_some() {
            all.push(("avx2", |bytes| unfolded(simd::sum_avx2(bytes).unwrap())));
        }
        if simd::sum_avx512(&[]).is_some() {
            all.push(("avx512", |bytes| unfolded(simd::sum_avx512(bytes).unwrap())));
        }
    }
    all
}

#[test]
fn every_length_at_every_alignment() {
    let bytes: Vec<u8> = (0..700u32).map(|i| (i.wrapping_mul(2654435761) >> 13) as u8).collect();
    for (name, sum) in implementations() {
        for start in 0..64 {
            for len in 0..600 {
                let bytes = &bytes[start..start + len];
                assert_eq!(fold(sum(bytes)), dull(bytes), "{name}: {len} bytes at {start}");
            }
        }
    }
}

#[test]
fn lanes_do_not_wrap() {
    // Ones in every bit bring each lane to its limit at the end of each run; 18 MiB are more than
    // two runs of the widest lanes.
    let mut bytes = vec![0xff; 18 << 20];
    for (name, sum) in implementations() {
        assert_eq!(fold(sum(&bytes)), 0xffff, "{name}");
    }
    bytes[3 << 20] = 0;
    let dull = dull(&bytes);
    for (name, sum) in implementations() {
        assert_eq!(fold(sum(&bytes)), dull, "{name}");
    }
    bytes.fill(0);
    for (name, sum) in implementations() {
        assert_eq!(sum(&bytes), 0, "{name}");
    }
}

#[test]
fn only_zeros_sum_to_zero() {
    for (name, sum) in implementations() {
        for len in [1, 2, 3, 8, 20, 127, 128, 191, 192, 1500] {
            let mut bytes = vec![0; len];
            assert_eq!(sum(&bytes), 0, "{name}");
            bytes[len - 1] = 1;
            assert_ne!(sum(&bytes), 0, "{name}");
            bytes.fill(0xff);
            assert_ne!(sum(&bytes), 0, "{name}");
        }
    }
}

proptest! {
    #[test]
    fn pieces_sum_like_the_whole(
        bytes in prop::collection::vec(any::<u8>(), 0..3000),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        initial: u32,
    ) {
        for (name, sum) in implementations() {
            prop_assert_eq!(fold(sum(&bytes)), dull(&bytes), "{}", name);
        }
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

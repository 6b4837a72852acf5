//! [`sum_lanes`](super::sum_lanes) in AVX2 and in AVX-512, chosen at run time.
//!
//! The crate is built for every x86-64, so the compiler may not use these instructions elsewhere. The
//! invariant: a function with a target feature is called only where `cpuid` reported that feature,
//! and the operating system saves its registers; `cpufeatures` asks once and keeps the answer.
//! Dispatching costs a load and a branch. What sums up to 127 bytes does not come here.

#![allow(unsafe_code)]

use core::arch::x86_64::*;

use super::{RUN, add64, sum_short};

cpufeatures::new!(has_avx2, "avx2");
cpufeatures::new!(has_avx512, "avx512f", "avx512bw");

/// Little-endian sum of `bytes`, or `None` where the CPU has no AVX2.
#[inline]
pub(super) fn sum_avx2(bytes: &[u8]) -> Option<u64> {
    // SAFETY: the CPU has what the function needs.
    has_avx2::get().then(|| unsafe { avx2(bytes) })
}

/// Little-endian sum of `bytes`, or `None` where the CPU has no AVX-512 with byte masks.
#[inline]
pub(super) fn sum_avx512(bytes: &[u8]) -> Option<u64> {
    // SAFETY: the CPU has what the function needs.
    has_avx512::get().then(|| unsafe { avx512(bytes) })
}

/// Sums of 32-bit words by lane, as in [`sum_lanes`](super::sum_lanes): all of each, which wraps, and
/// its upper half.
#[derive(Clone, Copy)]
struct Lanes<V> {
    all: V,
    high: V,
}

#[target_feature(enable = "avx2")]
fn avx2(bytes: &[u8]) -> u64 {
    let zero = _mm256_setzero_si256();
    let (pairs, rest) = bytes.as_chunks::<64>();
    let mut sum = sum_short(rest);
    for run in pairs.chunks(RUN) {
        // Two of each: additions to one register wait for one another.
        let mut lanes = [Lanes { all: zero, high: zero }; 2];
        for pair in run {
            for (lanes, vector) in lanes.iter_mut().zip(pair.as_chunks().0) {
                lanes.add256(vector);
            }
        }
        for lanes in lanes {
            sum = add64(sum, lanes.total256());
        }
    }
    sum
}

impl Lanes<__m256i> {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn add256(&mut self, bytes: &[u8; 32]) {
        // SAFETY: it loads 32 bytes, at any alignment.
        let words = unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) };
        self.all = _mm256_add_epi32(self.all, words);
        self.high = _mm256_add_epi32(self.high, _mm256_srli_epi32::<16>(words));
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn total256(self) -> u64 {
        let low = _mm256_sub_epi32(self.all, _mm256_slli_epi32::<16>(self.high));
        let mask = _mm256_set1_epi64x(0xffff_ffff);
        let [low, high] = [low, self.high].map(|sums| {
            _mm256_add_epi64(_mm256_and_si256(sums, mask), _mm256_srli_epi64::<32>(sums))
        });
        let four = _mm256_add_epi64(low, high);
        let two = _mm_add_epi64(_mm256_castsi256_si128(four), _mm256_extracti128_si256::<1>(four));
        (_mm_cvtsi128_si64(two) + _mm_extract_epi64::<1>(two)) as u64
    }
}

#[target_feature(enable = "avx512f,avx512bw")]
fn avx512(bytes: &[u8]) -> u64 {
    let zero = _mm512_setzero_si512();
    let mut sum = 0;
    for run in bytes.chunks(64 * RUN) {
        let mut lanes = [Lanes { all: zero, high: zero }; 2];
        let (pairs, rest) = run.as_chunks::<128>();
        for pair in pairs {
            for (lanes, vector) in lanes.iter_mut().zip(pair.as_chunks().0) {
                lanes.add512(load(vector));
            }
        }
        let (vectors, rest) = rest.as_chunks();
        for vector in vectors {
            lanes[0].add512(load(vector));
        }
        lanes[1].add512(load_front(rest));
        let [first, second] = lanes.map(|lanes| lanes.total512());
        sum += _mm512_reduce_add_epi64(_mm512_add_epi64(first, second)) as u64;
    }
    sum
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(bytes: &[u8; 64]) -> __m512i {
    // SAFETY: it loads 64 bytes, at any alignment.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

/// Less than 64 bytes, and zeros behind them.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn load_front(bytes: &[u8]) -> __m512i {
    let mask = !(u64::MAX << (bytes.len() % 64));
    // SAFETY: it loads the bytes whose bits are set, one for each of `bytes`, and touches no other.
    unsafe { _mm512_maskz_loadu_epi8(mask, bytes.as_ptr().cast()) }
}

impl Lanes<__m512i> {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn add512(&mut self, words: __m512i) {
        self.all = _mm512_add_epi32(self.all, words);
        self.high = _mm512_add_epi32(self.high, _mm512_srli_epi32::<16>(words));
    }

    /// In lanes of 64 bits, which hold them all.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn total512(self) -> __m512i {
        let low = _mm512_sub_epi32(self.all, _mm512_slli_epi32::<16>(self.high));
        let mask = _mm512_set1_epi64(0xffff_ffff);
        let [low, high] = [low, self.high].map(|sums| {
            _mm512_add_epi64(_mm512_and_si512(sums, mask), _mm512_srli_epi64::<32>(sums))
        });
        _mm512_add_epi64(low, high)
    }
}

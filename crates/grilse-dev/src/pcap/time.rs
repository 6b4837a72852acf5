//! Points in time as a capture states them: ticks of a stated length, counted from 1970.
//!
//! The ticks are the truth and are carried unchanged; nanoseconds are derived from them, in
//! integers. Nothing here rounds through a float: 2^53 ns is only 104 days.

use std::fmt;

/// The length of a tick: the `if_tsresol` byte of pcapng. With the top bit clear the other bits
/// are a negative power of 10, with it set a negative power of 2.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Resolution(u8);

impl Resolution {
    /// 10^-6 s, also what a pcapng interface without `if_tsresol` means.
    pub const MICRO: Self = Self(6);
    /// 10^-9 s.
    pub const NANO: Self = Self(9);

    /// Takes an `if_tsresol` byte; all 256 have a meaning.
    pub const fn from_tsresol(byte: u8) -> Self {
        Self(byte)
    }

    /// The `if_tsresol` byte.
    pub const fn tsresol(self) -> u8 {
        self.0
    }

    /// The n of 10^-n s, where the tick is a power of ten.
    pub(super) const fn decimal(self) -> Option<u32> {
        if self.0 & 0x80 == 0 { Some(self.0 as u32) } else { None }
    }

    /// Whole nanoseconds, rounded down, in so many ticks.
    const fn ns(self, ticks: u64) -> u128 {
        let ticks = ticks as u128;
        let exponent = (self.0 & 0x7f) as u32;
        if self.0 & 0x80 != 0 {
            // At most 2^64 * 2^30, shifted by at most 127: nothing is lost.
            (ticks * 1_000_000_000) >> exponent
        } else if exponent <= 9 {
            ticks * 10u128.pow(9 - exponent)
        } else if exponent - 9 < 20 {
            ticks / 10u128.pow(exponent - 9)
        } else {
            // 2^64 < 10^20: all the ticks there are make less than a nanosecond.
            0
        }
    }
}

impl Resolution {
    /// The ticks that come closest to so many nanoseconds, of which there are fewer than 2^95.
    pub(super) fn ticks(self, ns: u128) -> u64 {
        const SECOND: u128 = 1_000_000_000;
        let exponent = (self.0 & 0x7f).into();
        let per_second = if self.0 & 0x80 != 0 {
            1u128.checked_shl(exponent)
        } else {
            10u128.checked_pow(exponent)
        };
        let ticks = per_second
            .and_then(|rate| ns.checked_mul(rate))
            .map(|ticks| (ticks + SECOND / 2) / SECOND);
        ticks.and_then(|ticks| u64::try_from(ticks).ok()).unwrap_or(u64::MAX)
    }
}

impl fmt::Debug for Resolution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Resolution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let base = if self.0 & 0x80 == 0 { 10 } else { 2 };
        write!(f, "{base}^-{} s", self.0 & 0x7f)
    }
}

/// A point in time, exactly as the capture has it.
#[derive(Clone, Copy, Debug)]
pub struct Timestamp {
    /// Ticks since 1970-01-01 UTC, before the offset.
    pub ticks: u64,
    /// Length of a tick.
    pub resolution: Resolution,
    /// Seconds to add (`if_tsoffset`).
    pub offset_s: i64,
}

impl Timestamp {
    /// Nanoseconds since 1970-01-01 UTC, rounded down; the same for the same instant at every
    /// resolution and offset. Saturates outside the years 1677 to 2262.
    pub const fn ns(self) -> i64 {
        // Below 2^94 + 2^93: no sum of the two overflows.
        let ns = self.resolution.ns(self.ticks) as i128 + self.offset_s as i128 * 1_000_000_000;
        if ns > i64::MAX as i128 {
            i64::MAX
        } else if ns < i64::MIN as i128 {
            i64::MIN
        } else {
            ns as i64
        }
    }
}

//! Trains of datagrams on UDP sockets: what a receive with `UDP_GRO` gives, and what a send with
//! `UDP_SEGMENT` takes.
//!
//! The kernel tells of a train by one number, the length of all datagrams but the last. [`received`]
//! takes a buffer apart by it, and [`sends`] says which parts of a buffer go out with which number.
//! No socket is touched here; the control messages are those of udp(7).

use core::ops::Range;

/// A datagram of a train.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// Its payload, or what the buffer holds of it.
    pub bytes: &'a [u8],
    /// The buffer was too small for it: its end is lost.
    pub cut: bool,
}

/// The datagrams of one receive into `bytes`, which is what the call filled. `stride` is the number
/// of the `UDP_GRO` control message, where there was one, and `cut` says whether the call returned
/// `MSG_TRUNC`.
///
/// A stride that is missing, 0, or longer than the bytes means one datagram, an empty one included.
/// Of a train that was cut, the last datagram says so where its end is missing; one that ends where
/// the buffer does is whole, and what followed it is lost.
pub fn received(
    bytes: &[u8],
    stride: Option<u16>,
    cut: bool,
) -> impl Iterator<Item = Datagram<'_>> {
    let stride = stride.map(usize::from).filter(|size| (1..=bytes.len()).contains(size));
    let size = stride.unwrap_or(bytes.len());
    let count = bytes.len().div_ceil(size.max(1)).max(1);
    (0..count).map(move |n| {
        let bytes = &bytes[n * size..bytes.len().min((n + 1) * size)];
        let is_whole = stride == Some(bytes.len());
        Datagram { bytes, cut: cut && n + 1 == count && !is_whole }
    })
}

/// What one send may carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of payload.
    pub bytes: usize,
    /// Datagrams.
    pub segs: usize,
}

impl Limits {
    /// IPv4: 65,535 bytes less 28 of headers; and 64 datagrams, which every kernel with
    /// `UDP_SEGMENT` takes. Linux 6.9 and later take 128.
    pub const V4: Self = Self { bytes: 65_535 - 28, segs: 64 };
    /// IPv6, whose length does not count its own header.
    pub const V6: Self = Self { bytes: 65_535 - 8, segs: 64 };
}

/// A send of one or more datagrams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Send {
    /// Which bytes.
    pub range: Range<usize>,
    /// The number for `UDP_SEGMENT`; `None` for a lone datagram, which needs none, and which some
    /// kernels refuse with one.
    pub stride: Option<u16>,
}

/// How to send `len` bytes of datagrams that are `size` bytes long, the last perhaps shorter: as few
/// sends as the limits allow, in order.
///
/// A datagram that is longer than [`Limits::bytes`] is sent alone, for the kernel to refuse, and so
/// are all bytes where `size` is 0.
pub fn sends(len: usize, size: u16, limits: Limits) -> impl Iterator<Item = Send> {
    let one = if size == 0 { len.max(1) } else { usize::from(size) };
    let full = one * (limits.bytes / one).min(limits.segs).max(1);
    let mut at = 0;
    core::iter::from_fn(move || {
        let rest = len - at;
        // The last send may end with a shorter datagram, and so hold one more.
        let fits = rest <= limits.bytes && rest.div_ceil(one) <= limits.segs;
        let range = at..at + if fits { rest } else { full.min(rest) };
        at = range.end;
        let stride = (range.len() > one).then_some(size);
        (!range.is_empty()).then_some(Send { range, stride })
    })
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn lens(len: usize, stride: Option<u16>, cut: bool) -> Vec<(usize, bool)> {
        let bytes: Vec<u8> = (0..len).map(|n| n as u8).collect();
        let got: Vec<_> = received(&bytes, stride, cut).collect();
        assert_eq!(got.iter().flat_map(|d| d.bytes).copied().collect::<Vec<_>>(), bytes);
        got.iter().map(|datagram| (datagram.bytes.len(), datagram.cut)).collect()
    }

    /// faults.md BL-29, the receiving half.
    #[test]
    fn bl_29_strides_are_obeyed() {
        let whole = |len| (len, false);
        assert_eq!(lens(4100, Some(1200), false), [1200, 1200, 1200, 500].map(whole));
        for stride in [None, Some(0), Some(5000), Some(4100)] {
            assert_eq!(lens(4100, stride, false), [whole(4100)], "{stride:?}");
        }
        assert_eq!(lens(0, None, false), [whole(0)]);
        assert_eq!(lens(0, Some(1200), false), [whole(0)]);
        let [first, .., last] = lens(4096, Some(1200), true)[..] else { panic!("a train") };
        assert_eq!((first, last), ((1200, false), (496, true)));
        assert_eq!(lens(2400, Some(1200), true), [1200, 1200].map(whole));
        for stride in [None, Some(5000)] {
            assert_eq!(lens(4096, stride, true), [(4096, true)]);
        }
    }

    /// The sending half.
    #[test]
    fn bl_29_sends_stay_within_the_limits() {
        let plan = |len, size, limits| -> Vec<_> {
            sends(len, size, limits).map(|send| (send.range.len(), send.stride)).collect()
        };
        let train = 49 * 1320;
        let all = plan(64 * 1320, 1320, Limits::V4);
        assert_eq!(all, [(train, Some(1320)), (15 * 1320, Some(1320))]);
        assert_eq!(plan(200, 1320, Limits::V4), [(200, None)]);
        assert_eq!(plan(1320, 1320, Limits::V4), [(1320, None)]);
        assert_eq!(plan(1321, 1320, Limits::V4), [(1321, Some(1320))]);
        assert_eq!(plan(train + 1, 1320, Limits::V4), [(train + 1, Some(1320))]);
        assert_eq!(plan(train + 1320, 1320, Limits::V4), [(train, Some(1320)), (1320, None)]);
        assert_eq!(plan(65, 1, Limits::V6), [(64, Some(1)), (1, None)]);
        assert_eq!(plan(65_527, 13_106, Limits::V6), [(65_527, Some(13_106))]);
        assert_eq!(plan(65_527, 13_106, Limits::V4).len(), 2);
        assert_eq!(plan(65_535, 65_535, Limits::V4), [(65_535, None)]);
        assert_eq!(plan(0, 1320, Limits::V4), []);
        assert_eq!(plan(70_000, 0, Limits::V4), [(70_000, None)]);
    }
}

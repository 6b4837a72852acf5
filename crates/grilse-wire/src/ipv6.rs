//! IPv6 and its extension headers (RFC 8200).

use zerocopy::byteorder::big_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// IP protocol number of IPv6 in IP (RFC 2473, RFC 4213).
pub const PROTOCOL: u8 = 41;
/// Length of the fixed header.
pub const LEN: usize = 40;
/// Types of extension headers, as they stand in a next-header field.
pub mod next {
    /// Hop-by-Hop Options.
    pub const HOP_BY_HOP: u8 = 0;
    /// Routing.
    pub const ROUTING: u8 = 43;
    /// Fragment.
    pub const FRAGMENT: u8 = 44;
    /// Destination Options.
    pub const DEST_OPTS: u8 = 60;
}

/// The fixed IPv6 header.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Header {
    /// Version (4 bits), traffic class (8 bits), flow label (20 bits).
    pub version_class_label: U32,
    /// Length of everything behind this header.
    pub payload_len: U16,
    /// Type of the next header.
    pub next_header: u8,
    /// Hop limit.
    pub hop_limit: u8,
    /// Source address.
    pub src: [u8; 16],
    /// Destination address.
    pub dst: [u8; 16],
}

/// The first two bytes of Hop-by-Hop, Routing and Destination Options headers.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct ExtHeader {
    /// Type of the next header.
    pub next_header: u8,
    /// Length in 8-byte units, less the first.
    pub len_units: u8,
}

impl ExtHeader {
    /// Length in bytes, 8 to 2048.
    pub fn header_len(&self) -> usize {
        (usize::from(self.len_units) + 1) * 8
    }
}

/// A Fragment header.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct FragmentHeader {
    /// Type of the next header.
    pub next_header: u8,
    /// Reserved.
    pub reserved: u8,
    /// Offset in 8-byte units (13 bits), reserved (2 bits), more fragments (1 bit).
    pub offset_more: U16,
    /// Identification.
    pub id: U32,
}

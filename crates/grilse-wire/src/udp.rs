//! UDP (RFC 768).

use zerocopy::byteorder::big_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// IP protocol number.
pub const PROTOCOL: u8 = 17;
/// Length of a header.
pub const LEN: usize = 8;
/// Offset of the length.
pub const LENGTH: usize = 4;
/// Offset of the checksum (`csum_offset`).
pub const CHECK: usize = 6;

/// A UDP header.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Header {
    /// Source port.
    pub src_port: U16,
    /// Destination port.
    pub dst_port: U16,
    /// Length of header and payload.
    pub len: U16,
    /// Checksum; 0: none was computed.
    pub check: U16,
}

//! GRE (RFC 2784), with key and sequence number (RFC 2890).
//!
//! Behind the base header stand the fields that its flags announce, four bytes each, in the order
//! checksum, key, sequence number. Routing (RFC 1701) is not laid out here.

use zerocopy::byteorder::big_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// IP protocol number.
pub const PROTOCOL: u8 = 47;
/// Length of a header without optional fields.
pub const MIN_LEN: usize = 4;
/// Length of each optional field; the checksum is the first half of its.
pub const FIELD_LEN: usize = 4;
/// Offset of the checksum, where there is one.
pub const CHECK: usize = MIN_LEN;

/// The base header.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Header {
    /// Flags (13 bits) and version (3 bits).
    pub flags: U16,
    /// Ethertype of the payload.
    pub protocol: U16,
}

impl Header {
    /// A checksum of header and payload stands behind the base header.
    pub const CSUM: u16 = 0x8000;
    /// Routing fields, as in RFC 1701.
    pub const ROUTING: u16 = 0x4000;
    /// A key.
    pub const KEY: u16 = 0x2000;
    /// A sequence number.
    pub const SEQ: u16 = 0x1000;
    /// Mask of the version: 0, or 1 for PPTP.
    pub const VERSION: u16 = 0x0007;

    /// Length in bytes, 4 to 16, with the optional fields that the flags announce.
    pub fn header_len(&self) -> usize {
        let fields = self.flags.get() & (Self::CSUM | Self::KEY | Self::SEQ);
        MIN_LEN + FIELD_LEN * fields.count_ones() as usize
    }
}

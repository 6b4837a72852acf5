//! The Network Service Header (RFC 8300).

use zerocopy::byteorder::big_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Length of base and service path header.
pub const MIN_LEN: usize = 8;

/// Base and service path header, without context headers.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Header {
    /// Version (2 bits), OAM (1 bit), unassigned (1 bit), TTL (6 bits), length of the whole header
    /// in 32-bit words (6 bits).
    pub version_ttl_len: U16,
    /// Unassigned (4 bits) and type of the context headers (4 bits).
    pub md_type: u8,
    /// What follows, numbered as in [`vxlan::next`](crate::vxlan::next).
    pub next_protocol: u8,
    /// Service path identifier (24 bits) and service index (8 bits).
    pub path_index: U32,
}

impl Header {
    /// Length in bytes, 0 to 252, as the header claims it.
    pub fn header_len(&self) -> usize {
        usize::from(self.version_ttl_len.get() & 0x3f) * 4
    }
}

//! IPv4 (RFC 791).

use zerocopy::byteorder::big_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// IP protocol number of IPv4 in IP (RFC 2003).
pub const PROTOCOL: u8 = 4;
/// Length of a header without options.
pub const MIN_LEN: usize = 20;
/// Offset of the header checksum.
pub const CHECK: usize = 10;

/// An IPv4 header without its options.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Header {
    /// Version (4 bits) and header length in 32-bit words (4 bits).
    pub version_ihl: u8,
    /// DSCP (6 bits) and ECN (2 bits).
    pub tos: u8,
    /// Length of header and payload.
    pub total_len: U16,
    /// Identification.
    pub id: U16,
    /// Reserved bit, DF, MF (3 bits) and fragment offset in 8-byte units (13 bits).
    pub flags_offset: U16,
    /// Time to live.
    pub ttl: u8,
    /// Protocol of the payload.
    pub protocol: u8,
    /// Header checksum.
    pub check: U16,
    /// Source address.
    pub src: [u8; 4],
    /// Destination address.
    pub dst: [u8; 4],
}

impl Header {
    /// Don't fragment, in `flags_offset`.
    pub const DF: u16 = 0x4000;
    /// More fragments, in `flags_offset`.
    pub const MF: u16 = 0x2000;
    /// Mask of the fragment offset in `flags_offset`.
    pub const OFFSET: u16 = 0x1fff;

    /// Header length in bytes, 0 to 60, as the header claims it.
    pub fn header_len(&self) -> usize {
        usize::from(self.version_ihl & 15) * 4
    }
}

//! GENEVE (RFC 8926).

use zerocopy::byteorder::big_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// UDP port that IANA gave it.
pub const PORT: u16 = 6081;
/// Length of a header without options.
pub const MIN_LEN: usize = 8;

/// A GENEVE header without its options.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Header {
    /// Version (2 bits) and length of the options in 32-bit words (6 bits).
    pub version_options: u8,
    /// [`OAM`](Self::OAM), [`CRITICAL`](Self::CRITICAL) and reserved bits.
    pub flags: u8,
    /// Ethertype of the payload, mostly [TEB](crate::eth::ethertype::TEB).
    pub protocol: U16,
    /// Network identifier.
    pub vni: [u8; 3],
    /// Reserved.
    pub reserved: u8,
}

impl Header {
    /// A control packet, in `flags`.
    pub const OAM: u8 = 0x80;
    /// Critical options are there.
    pub const CRITICAL: u8 = 0x40;

    /// Version, 0 to 3; there is only 0.
    pub fn version(&self) -> u8 {
        self.version_options >> 6
    }

    /// Length in bytes, 8 to 260, with options.
    pub fn header_len(&self) -> usize {
        MIN_LEN + usize::from(self.version_options & 0x3f) * 4
    }
}

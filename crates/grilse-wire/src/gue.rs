//! Generic UDP Encapsulation (draft-ietf-intarea-gue) of versions 0 and 1.
//!
//! Version 1 has no header: the first byte is that of an IPv4 or IPv6 packet, whose own version
//! nibble begins with the bits 01. Nor has foo-over-UDP, where the port alone tells the protocol of
//! the payload: neither needs a view.

use zerocopy::byteorder::big_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// UDP port that IANA gave it.
pub const PORT: u16 = 6080;
/// Length of a header without optional fields.
pub const MIN_LEN: usize = 4;

/// A header of version 0, without its optional fields.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Header {
    /// Version (2 bits), control (1 bit), length of the optional fields in 32-bit words (5 bits).
    pub version_control_len: u8,
    /// IP protocol number of the payload, or type of the control message.
    pub protocol: u8,
    /// Which optional fields there are.
    pub flags: U16,
}

impl Header {
    /// A control message, in `version_control_len`.
    pub const CONTROL: u8 = 0x20;
    /// Private flags follow, in `flags`: the one that Linux knows.
    pub const PRIVATE: u16 = 0x0001;
    /// Remote checksum offload, in the 32-bit word of private flags.
    pub const REMOTE_CSUM: u32 = 0x8000_0000;

    /// Version, 0 to 3.
    pub fn version(&self) -> u8 {
        self.version_control_len >> 6
    }

    /// Length in bytes, 4 to 128, with optional fields.
    pub fn header_len(&self) -> usize {
        MIN_LEN + usize::from(self.version_control_len & 0x1f) * 4
    }
}

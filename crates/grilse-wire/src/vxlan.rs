//! VXLAN (RFC 7348) and its generic protocol extension (draft-ietf-nvo3-vxlan-gpe).
//!
//! An Ethernet frame follows, unless [`Header::GPE`] says that the lowest byte of `flags` tells
//! what does.

use zerocopy::byteorder::big_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// UDP port that IANA gave it.
pub const PORT: u16 = 4789;
/// UDP port of the generic protocol extension.
pub const GPE_PORT: u16 = 4790;
/// Length of a header.
pub const LEN: usize = 8;

/// A VXLAN header.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Header {
    /// Flags and reserved bits; with [`GPE`](Self::GPE) the lowest byte is the next protocol.
    pub flags: U32,
    /// Network identifier (24 bits), and 8 bits that remote checksum offload uses.
    pub vni: U32,
}

impl Header {
    /// The network identifier is valid, in `flags`.
    pub const VNI: u32 = 0x0800_0000;
    /// Generic protocol extension: a next protocol is given.
    pub const GPE: u32 = 0x0400_0000;
    /// Mask of the version, of the generic protocol extension.
    pub const VERSION: u32 = 0x3000_0000;
    /// Out-of-band management, of the generic protocol extension.
    pub const OAM: u32 = 0x0100_0000;
    /// Remote checksum offload (draft-herbert-vxlan-rco).
    pub const RCO: u32 = 0x0020_0000;
}

/// Next protocols of the generic protocol extension, and of [NSH](crate::nsh).
pub mod next {
    /// IPv4.
    pub const IPV4: u8 = 1;
    /// IPv6.
    pub const IPV6: u8 = 2;
    /// Ethernet.
    pub const ETHERNET: u8 = 3;
    /// Network service header.
    pub const NSH: u8 = 4;
    /// MPLS.
    pub const MPLS: u8 = 5;
}

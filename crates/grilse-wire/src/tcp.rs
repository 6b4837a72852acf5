//! TCP (RFC 9293).

use zerocopy::byteorder::big_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// IP protocol number.
pub const PROTOCOL: u8 = 6;
/// Length of a header without options.
pub const MIN_LEN: usize = 20;
/// Offset of the checksum (`csum_offset`).
pub const CHECK: usize = 16;

/// A TCP header without its options.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Header {
    /// Source port.
    pub src_port: U16,
    /// Destination port.
    pub dst_port: U16,
    /// Sequence number.
    pub seq: U32,
    /// Acknowledgement number.
    pub ack: U32,
    /// Header length in 32-bit words (4 bits), reserved (3 bits), AE and the eight flags (9 bits).
    pub offset_flags: U16,
    /// Receive window, unscaled.
    pub window: U16,
    /// Checksum.
    pub check: U16,
    /// Urgent pointer.
    pub urgent: U16,
}

impl Header {
    /// Header length in bytes, 0 to 60, as the header claims it.
    pub fn header_len(&self) -> usize {
        usize::from(self.offset_flags.get() >> 12) * 4
    }
}

/// Flag bits in [`Header::offset_flags`].
pub mod flag {
    /// No more data from the sender.
    pub const FIN: u16 = 1 << 0;
    /// Synchronise sequence numbers.
    pub const SYN: u16 = 1 << 1;
    /// Reset the connection.
    pub const RST: u16 = 1 << 2;
    /// Push.
    pub const PSH: u16 = 1 << 3;
    /// The acknowledgement number counts.
    pub const ACK: u16 = 1 << 4;
    /// The urgent pointer counts.
    pub const URG: u16 = 1 << 5;
    /// ECN echo.
    pub const ECE: u16 = 1 << 6;
    /// Congestion window reduced.
    pub const CWR: u16 = 1 << 7;
    /// Accurate ECN (formerly NS).
    pub const AE: u16 = 1 << 8;
}

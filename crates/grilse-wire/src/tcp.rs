//! TCP (RFC 9293).

use zerocopy::byteorder::big_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// IP protocol number.
pub const PROTOCOL: u8 = 6;
/// Length of a header without options.
pub const MIN_LEN: usize = 20;
/// Offset of the checksum (`csum_offset`).
pub const CHECK: usize = 16;
/// Offset of the urgent pointer.
pub const URGENT: usize = 18;

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

/// Walks the options of a TCP header: `bytes` are those behind its first 20, as far as
/// [`Header::header_len`] says that it reaches.
pub fn options(bytes: &[u8]) -> Options<'_> {
    Options { rest: bytes }
}

/// The options of a TCP header, in order, without padding (RFC 9293, 3.1).
#[derive(Clone, Debug)]
pub struct Options<'a> {
    rest: &'a [u8],
}

/// One TCP option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpOption<'a> {
    /// Its number, see [`option`].
    pub kind: u8,
    /// Its bytes behind kind and length.
    pub data: &'a [u8],
}

/// An option's length reaches beyond the header, or leaves out its own two bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadLength {
    /// The option.
    pub kind: u8,
}

/// Numbers of options.
pub mod option {
    /// End of the list.
    pub const END: u8 = 0;
    /// One byte of padding.
    pub const NOP: u8 = 1;
    /// Maximum segment size.
    pub const MSS: u8 = 2;
    /// Window scale (RFC 7323).
    pub const WINDOW_SCALE: u8 = 3;
    /// Selective acknowledgements may be sent (RFC 2018).
    pub const SACK_PERMITTED: u8 = 4;
    /// Selective acknowledgement.
    pub const SACK: u8 = 5;
    /// Timestamps (RFC 7323).
    pub const TIMESTAMPS: u8 = 8;
}

impl<'a> Iterator for Options<'a> {
    type Item = Result<TcpOption<'a>, BadLength>;

    fn next(&mut self) -> Option<Self::Item> {
        while let [option::NOP, rest @ ..] = self.rest {
            self.rest = rest;
        }
        let (kind, data) = match *self.rest {
            [] | [option::END, ..] => return None,
            [kind, len, ..] => {
                (kind, usize::from(len).checked_sub(2).and_then(|len| self.rest[2..].get(..len)))
            }
            [kind] => (kind, None),
        };
        // Behind a length that lies nothing can be told apart any more.
        self.rest = data.map_or(&[], |data| &self.rest[2 + data.len()..]);
        Some(data.map(|data| TcpOption { kind, data }).ok_or(BadLength { kind }))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_told_apart() {
        let bytes = [1, 1, 8, 10, 0, 0, 0, 7, 0, 0, 0, 9, 4, 2, 2, 4, 5, 180, 0, 99];
        let mut options = options(&bytes);
        let found = |kind, data| Some(Ok(TcpOption { kind, data }));
        assert_eq!(options.next(), found(option::TIMESTAMPS, &bytes[4..12]));
        assert_eq!(options.next(), found(option::SACK_PERMITTED, &[]));
        assert_eq!(options.next(), found(option::MSS, &[5, 180]));
        assert_eq!(options.next(), None, "END is the end");
    }

    #[test]
    fn lengths_that_lie_end_the_walk() {
        for bytes in [&[8, 1, 1, 1][..], &[8, 10, 0, 0], &[8], &[5, 0]] {
            let mut options = options(bytes);
            assert_eq!(options.next(), Some(Err(BadLength { kind: bytes[0] })), "{bytes:?}");
            assert_eq!(options.next(), None);
        }
    }
}

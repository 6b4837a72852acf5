//! TCP and UDP headers, and the lack of either.

use alloc::vec::Vec;

use zerocopy::IntoBytes;

use super::{Check, Network, padded};
use crate::{csum, tcp, udp};

/// What stands between the IP headers and the payload.
#[derive(Clone, Copy, Debug)]
pub enum Transport<'a> {
    /// TCP.
    Tcp(Tcp<'a>),
    /// UDP.
    Udp(Udp),
    /// No header of ours: the payload is the packet of this IP protocol number.
    Raw(u8),
}

impl<'a> From<Tcp<'a>> for Transport<'a> {
    fn from(tcp: Tcp<'a>) -> Self {
        Self::Tcp(tcp)
    }
}

impl From<Udp> for Transport<'_> {
    fn from(udp: Udp) -> Self {
        Self::Udp(udp)
    }
}

impl Transport<'_> {
    /// IP protocol number.
    pub(super) fn protocol(&self) -> u8 {
        match self {
            Self::Tcp(_) => tcp::PROTOCOL,
            Self::Udp(_) => udp::PROTOCOL,
            Self::Raw(protocol) => *protocol,
        }
    }

    /// The header, with lengths and checksum still 0 where they depend on the payload.
    pub(super) fn header(&self) -> Vec<u8> {
        match self {
            Self::Tcp(tcp) => tcp.header(),
            Self::Udp(udp) => udp.header(),
            Self::Raw(_) => Vec::new(),
        }
    }

    /// Writes length and checksum into `segment`, which is header and payload.
    pub(super) fn finish(&self, network: &Network<'_>, segment: &mut [u8]) {
        match self {
            Self::Tcp(tcp) => {
                let pseudo = network.pseudo(tcp::PROTOCOL, segment.len() as u32);
                let right = !csum::fold(csum::add(pseudo, csum::sum(segment)));
                let check = tcp.check.value(right, csum::fold(pseudo));
                segment[tcp::CHECK..tcp::CHECK + 2].copy_from_slice(&check.to_be_bytes());
            }
            Self::Udp(udp) => udp.finish(network, segment),
            Self::Raw(_) => {}
        }
    }
}

/// A TCP header.
#[derive(Clone, Copy, Debug)]
pub struct Tcp<'a> {
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// The nine flags of [`tcp::flag`].
    pub flags: u16,
    /// The three reserved bits that follow the data offset.
    pub reserved: u8,
    /// Receive window, unscaled.
    pub window: u16,
    /// Urgent pointer.
    pub urgent: u16,
    /// Options, filled up with zeros to a multiple of four bytes.
    pub options: &'a [u8],
    /// Header length in 32-bit words (4 bits); `None`: the true one.
    pub data_offset: Option<u8>,
    /// Checksum.
    pub check: Check,
}

impl Default for Tcp<'_> {
    /// An ACK of a stream from port 4000 to 5000, at sequence number 1000.
    fn default() -> Self {
        Self {
            src_port: 4000,
            dst_port: 5000,
            seq: 1000,
            ack: 5000,
            flags: tcp::flag::ACK,
            reserved: 0,
            window: 512,
            urgent: 0,
            options: &[],
            data_offset: None,
            check: Check::Right,
        }
    }
}

impl Tcp<'_> {
    fn header(&self) -> Vec<u8> {
        let words = (tcp::MIN_LEN + self.options.len()).div_ceil(4);
        let words = self.data_offset.map_or(words as u16, u16::from);
        let flags = self.flags & 0x1ff;
        let header = tcp::Header {
            src_port: self.src_port.into(),
            dst_port: self.dst_port.into(),
            seq: self.seq.into(),
            ack: self.ack.into(),
            offset_flags: (words << 12 | u16::from(self.reserved & 7) << 9 | flags).into(),
            window: self.window.into(),
            check: 0.into(),
            urgent: self.urgent.into(),
        };
        let mut bytes = Vec::from(header.as_bytes());
        bytes.extend(padded(self.options));
        bytes
    }
}

/// A UDP header.
#[derive(Clone, Copy, Debug)]
pub struct Udp {
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// Length of header and payload; `None`: the true one, and 0 beyond 65,535 (RFC 2675, 4).
    pub len: Option<u16>,
    /// Checksum; [`Check::Exactly`] 0 is none. The pseudo-header holds the length that the header
    /// claims.
    pub check: Check,
}

impl Default for Udp {
    /// From port 4000 to 5000.
    fn default() -> Self {
        Self { src_port: 4000, dst_port: 5000, len: None, check: Check::Right }
    }
}

impl Udp {
    fn header(&self) -> Vec<u8> {
        let header = udp::Header {
            src_port: self.src_port.into(),
            dst_port: self.dst_port.into(),
            len: 0.into(),
            check: 0.into(),
        };
        Vec::from(header.as_bytes())
    }

    fn finish(&self, network: &Network<'_>, segment: &mut [u8]) {
        let true_len = segment.len();
        let len = self.len.unwrap_or_else(|| u16::try_from(true_len).unwrap_or(0));
        segment[udp::LENGTH..udp::LENGTH + 2].copy_from_slice(&len.to_be_bytes());
        let claimed = self.len.map_or(true_len as u32, u32::from);
        let pseudo = network.pseudo(udp::PROTOCOL, claimed);
        let right = match !csum::fold(csum::add(pseudo, csum::sum(segment))) {
            0 => 0xffff,
            right => right,
        };
        let check = self.check.value(right, csum::fold(pseudo));
        segment[udp::CHECK..udp::CHECK + 2].copy_from_slice(&check.to_be_bytes());
    }
}

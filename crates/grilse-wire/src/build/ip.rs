//! IPv4 and IPv6 headers, with options and extension headers.

use alloc::vec::Vec;

use zerocopy::IntoBytes;

use super::{Check, padded};
use crate::ipv6::next;
use crate::{csum, eth::ethertype, ipv4, ipv6};

/// An IP header of either version.
#[derive(Clone, Copy, Debug)]
pub enum Network<'a> {
    /// IPv4.
    V4(Ipv4<'a>),
    /// IPv6.
    V6(Ipv6<'a>),
}

impl<'a> From<Ipv4<'a>> for Network<'a> {
    fn from(ip: Ipv4<'a>) -> Self {
        Self::V4(ip)
    }
}

impl<'a> From<Ipv6<'a>> for Network<'a> {
    fn from(ip: Ipv6<'a>) -> Self {
        Self::V6(ip)
    }
}

impl Network<'_> {
    /// Ethertype, host order.
    pub(super) fn ethertype(&self) -> u16 {
        match self {
            Self::V4(_) => ethertype::IPV4,
            Self::V6(_) => ethertype::IPV6,
        }
    }

    /// Unfolded sum of the pseudo-header.
    pub(super) fn pseudo(&self, protocol: u8, len: u32) -> u32 {
        match self {
            Self::V4(ip) => csum::pseudo_v4(ip.src, ip.dst, protocol, len),
            Self::V6(ip) => csum::pseudo_v6(&ip.src, &ip.dst, protocol, len),
        }
    }

    /// All headers of this layer, in front of `len` bytes of `protocol`.
    pub(super) fn headers(&self, protocol: u8, len: usize) -> Vec<u8> {
        match self {
            Self::V4(ip) => ip.header(protocol, len),
            Self::V6(ip) => ip.headers(protocol, len),
        }
    }
}

/// An IPv4 header.
#[derive(Clone, Copy, Debug)]
pub struct Ipv4<'a> {
    /// Source address.
    pub src: [u8; 4],
    /// Destination address.
    pub dst: [u8; 4],
    /// Time to live.
    pub ttl: u8,
    /// DSCP (6 bits) and ECN (2 bits).
    pub tos: u8,
    /// Identification.
    pub id: u16,
    /// Don't fragment.
    pub df: bool,
    /// More fragments.
    pub mf: bool,
    /// The reserved bit in front of DF.
    pub reserved: bool,
    /// Fragment offset in 8-byte units (13 bits).
    pub offset: u16,
    /// Options, filled up with zeros to a multiple of four bytes.
    pub options: &'a [u8],
    /// Protocol of the payload; `None`: the true one.
    pub protocol: Option<u8>,
    /// Version (4 bits).
    pub version: u8,
    /// Header length in 32-bit words (4 bits); `None`: the true one.
    pub ihl: Option<u8>,
    /// Length of header and payload; `None`: the true one, and 0 beyond 65,535, as in the kernel's
    /// BIG TCP.
    pub total_len: Option<u16>,
    /// Header checksum.
    pub check: Check,
}

impl Default for Ipv4<'_> {
    /// From 10.9.0.1 to 10.9.0.2 with TTL 64, DF set and identification 0.
    fn default() -> Self {
        Self {
            src: [10, 9, 0, 1],
            dst: [10, 9, 0, 2],
            ttl: 64,
            tos: 0,
            id: 0,
            df: true,
            mf: false,
            reserved: false,
            offset: 0,
            options: &[],
            protocol: None,
            version: 4,
            ihl: None,
            total_len: None,
            check: Check::Right,
        }
    }
}

impl Ipv4<'_> {
    fn header(&self, protocol: u8, len: usize) -> Vec<u8> {
        let header_len = (ipv4::MIN_LEN + self.options.len()).next_multiple_of(4);
        let ihl = self.ihl.unwrap_or((header_len / 4) as u8);
        let true_len = u16::try_from(header_len + len).unwrap_or(0);
        let flags = u16::from(self.reserved) << 15 | u16::from(self.df) << 14;
        let flags = flags | u16::from(self.mf) << 13 | self.offset & ipv4::Header::OFFSET;
        let header = ipv4::Header {
            version_ihl: self.version << 4 | ihl & 15,
            tos: self.tos,
            total_len: self.total_len.unwrap_or(true_len).into(),
            id: self.id.into(),
            flags_offset: flags.into(),
            ttl: self.ttl,
            protocol: self.protocol.unwrap_or(protocol),
            check: 0.into(),
            src: self.src,
            dst: self.dst,
        };
        let mut bytes = Vec::from(header.as_bytes());
        bytes.extend(padded(self.options));
        let check = self.check.value(!csum::fold(csum::sum(&bytes)), 0);
        bytes[ipv4::CHECK..ipv4::CHECK + 2].copy_from_slice(&check.to_be_bytes());
        bytes
    }
}

/// An IPv6 header and its extension headers.
#[derive(Clone, Copy, Debug)]
pub struct Ipv6<'a> {
    /// Source address.
    pub src: [u8; 16],
    /// Destination address, also that of the pseudo-header where there is a routing header.
    pub dst: [u8; 16],
    /// Hop limit.
    pub hop_limit: u8,
    /// Traffic class.
    pub class: u8,
    /// Flow label (20 bits).
    pub label: u32,
    /// Extension headers in order.
    pub ext: &'a [Ext<'a>],
    /// Type of the first header behind this one; `None`: the true one.
    pub next_header: Option<u8>,
    /// Version (4 bits).
    pub version: u8,
    /// Length of all that follows; `None`: the true one, and 0 beyond 65,535 (RFC 2675, 3).
    pub payload_len: Option<u16>,
}

impl Default for Ipv6<'_> {
    /// From fd09::1 to fd09::2 with hop limit 64.
    fn default() -> Self {
        let [mut src, mut dst] = [[0; 16]; 2];
        (src[0], src[1], src[15]) = (0xfd, 0x09, 1);
        (dst[0], dst[1], dst[15]) = (0xfd, 0x09, 2);
        Self {
            src,
            dst,
            hop_limit: 64,
            class: 0,
            label: 0,
            ext: &[],
            next_header: None,
            version: 6,
            payload_len: None,
        }
    }
}

impl Ipv6<'_> {
    fn headers(&self, protocol: u8, len: usize) -> Vec<u8> {
        let mut ext = Vec::new();
        for (i, header) in self.ext.iter().enumerate() {
            header.write(self.ext.get(i + 1).map_or(protocol, Ext::kind), &mut ext);
        }
        let first = self.ext.first().map_or(protocol, Ext::kind);
        let class_label = u32::from(self.class) << 20 | self.label & 0xf_ffff;
        let true_len = u16::try_from(ext.len() + len).unwrap_or(0);
        let header = ipv6::Header {
            version_class_label: (u32::from(self.version) << 28 | class_label).into(),
            payload_len: self.payload_len.unwrap_or(true_len).into(),
            next_header: self.next_header.unwrap_or(first),
            hop_limit: self.hop_limit,
            src: self.src,
            dst: self.dst,
        };
        let mut bytes = Vec::from(header.as_bytes());
        bytes.extend_from_slice(&ext);
        bytes
    }
}

/// An IPv6 extension header. The type of the header behind it is always the true one.
#[derive(Clone, Copy, Debug)]
pub enum Ext<'a> {
    /// Hop-by-Hop Options: the options, filled up with Pad1 to whole 8-byte units.
    HopByHop(&'a [u8]),
    /// Routing: all behind the length byte, filled up with zeros likewise.
    Routing(&'a [u8]),
    /// Destination Options, as [`HopByHop`](Self::HopByHop).
    DestOpts(&'a [u8]),
    /// Fragment.
    Fragment {
        /// Offset in 8-byte units (13 bits).
        offset: u16,
        /// More fragments.
        more: bool,
        /// Identification.
        id: u32,
    },
    /// A header of any type: all behind the next-header byte, verbatim, its length byte included.
    Other {
        /// Type of this header.
        kind: u8,
        /// What follows the next-header byte.
        rest: &'a [u8],
    },
}

impl Ext<'_> {
    fn kind(&self) -> u8 {
        match self {
            Self::HopByHop(_) => next::HOP_BY_HOP,
            Self::Routing(_) => next::ROUTING,
            Self::DestOpts(_) => next::DEST_OPTS,
            Self::Fragment { .. } => next::FRAGMENT,
            Self::Other { kind, .. } => *kind,
        }
    }

    fn write(&self, next_header: u8, out: &mut Vec<u8>) {
        match *self {
            Self::HopByHop(body) | Self::Routing(body) | Self::DestOpts(body) => {
                let len = (2 + body.len()).next_multiple_of(8);
                out.extend_from_slice(&[next_header, (len / 8 - 1) as u8]);
                out.extend_from_slice(body);
                out.extend(core::iter::repeat_n(0, len - 2 - body.len()));
            }
            Self::Fragment { offset, more, id } => {
                let header = ipv6::FragmentHeader {
                    next_header,
                    reserved: 0,
                    offset_more: (offset << 3 | u16::from(more)).into(),
                    id: id.into(),
                };
                out.extend_from_slice(header.as_bytes());
            }
            Self::Other { rest, .. } => {
                out.push(next_header);
                out.extend_from_slice(rest);
            }
        }
    }
}

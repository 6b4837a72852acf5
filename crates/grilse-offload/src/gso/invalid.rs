//! Why a packet cannot be cut.

use core::fmt;

use grilse_wire::GsoType;

/// What in a packet or its metadata contradicts that it is a super-packet. The kernel answers most
/// of these with `EINVAL` and drops the packet; the metadata of a guest can hold any of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invalid {
    /// A segment size of 0, which plain packets have, or 0xffff, which the kernel keeps for itself
    /// (`GSO_BY_FRAGS`).
    GsoSize {
        /// Payload bytes per segment.
        size: u16,
    },
    /// One segment holds the payload.
    OneSegment {
        /// Payload, in bytes.
        payload: usize,
        /// Payload bytes per segment.
        size: u16,
    },
    /// IP fragments of a length that is no multiple of 8 bytes.
    FragmentSize {
        /// Payload bytes per fragment.
        size: u16,
    },
    /// A datagram to be cut into fragments is longer than their offsets can tell.
    DatagramLength {
        /// Its length, from the UDP header on, in bytes.
        len: usize,
    },
    /// A segment would be longer than an IP header can tell.
    SegmentLength {
        /// Its length, from an IP or UDP header on, in bytes.
        len: usize,
    },
    /// The packet ends before a header does, or has no room to gather it in.
    Truncated {
        /// Offset at which the header ends.
        end: usize,
        /// Length of the packet.
        len: usize,
    },
    /// An IP or TCP header claims to be shorter than one can be.
    HeaderLength {
        /// Offset of the header.
        at: usize,
        /// The length that it claims, in bytes.
        len: usize,
    },
    /// An ethertype that nobody segments.
    Ethertype {
        /// The ethertype, host order.
        ethertype: u16,
    },
    /// An IP protocol that nobody segments.
    Protocol {
        /// The protocol.
        protocol: u8,
    },
    /// What should be an IP header is of no known version.
    Version {
        /// Its offset.
        at: usize,
        /// The version that it claims.
        version: u8,
    },
    /// The inner IP header of a UDP tunnel is said to begin before the tunnel does.
    Inner {
        /// Offset of the inner IP header ([`Meta::inner_network`](grilse_wire::Meta::inner_network)).
        inner: usize,
        /// Offset of the tunnel's UDP header.
        tunnel: usize,
    },
    /// A segmentation type of another protocol than the packet's.
    Kind {
        /// The segmentation type.
        kind: GsoType,
        /// The bits of which it should have one.
        want: GsoType,
    },
    /// The unfinished checksum is not that of the transport header, or UDP has none.
    ChecksumStart {
        /// Offset of the transport header.
        transport: usize,
        /// Where the sum begins; `None`: there is none to finish.
        start: Option<u16>,
    },
    /// An IP fragment, of which [`plan`](super::plan) makes no super-packet.
    Fragment {
        /// Offset of its IP header.
        at: usize,
    },
    /// A tunnel in UDP, for [`plan`](super::plan).
    Tunnel {
        /// The port that tells.
        port: u16,
    },
    /// An IP header that says more or less than there is, for [`plan`](super::plan): what it does
    /// not count is no payload.
    Length {
        /// Length of the packet by its IP header, in bytes.
        stated: usize,
        /// Bytes from the IP header on.
        have: usize,
    },
    /// The headers leave no room for payload, or more than a segment can have.
    Mtu {
        /// Bytes that the link carries.
        mtu: usize,
        /// Bytes of headers, from the network header on.
        headers: usize,
    },
    /// More headers than are followed.
    TooManyHeaders,
    /// The headers of a packet that is to be changed in place cannot be written.
    ReadOnly,
}

impl Invalid {
    /// The label in reports and metrics.
    pub fn name(&self) -> &'static str {
        match self {
            Self::GsoSize { .. } => "gso-size",
            Self::OneSegment { .. } => "one-segment",
            Self::FragmentSize { .. } => "fragment-size",
            Self::DatagramLength { .. } => "datagram-length",
            Self::SegmentLength { .. } => "segment-length",
            Self::Truncated { .. } => "truncated",
            Self::HeaderLength { .. } => "header-length",
            Self::Ethertype { .. } => "ethertype",
            Self::Protocol { .. } => "protocol",
            Self::Version { .. } => "ip-version",
            Self::Inner { .. } => "inner-header",
            Self::Kind { .. } => "gso-type",
            Self::ChecksumStart { .. } => "checksum-start",
            Self::Fragment { .. } => "fragment",
            Self::Tunnel { .. } => "udp-tunnel",
            Self::Length { .. } => "ip-length",
            Self::Mtu { .. } => "mtu",
            Self::TooManyHeaders => "too-many-headers",
            Self::ReadOnly => "read-only",
        }
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::GsoSize { size } => write!(f, "a segment size of {size} bytes"),
            Self::OneSegment { payload, size } => {
                write!(f, "a payload of {payload} bytes fits one segment of {size}")
            }
            Self::FragmentSize { size } => {
                write!(f, "fragments of {size} bytes, which is no multiple of 8")
            }
            Self::DatagramLength { len } => {
                write!(f, "fragments of a datagram of {len} bytes, more than 65535")
            }
            Self::SegmentLength { len } => write!(f, "segments of {len} bytes, more than 65535"),
            Self::Truncated { end, len } => {
                write!(f, "a header ends at byte {end} of a packet of {len}")
            }
            Self::HeaderLength { at, len } => {
                write!(f, "the header at byte {at} claims to be {len} bytes long")
            }
            Self::Ethertype { ethertype } => write!(f, "no segmentation of type {ethertype:#06x}"),
            Self::Protocol { protocol } => write!(f, "no segmentation of IP protocol {protocol}"),
            Self::Version { at, version } => write!(f, "IP version {version} at byte {at}"),
            Self::Inner { inner, tunnel } => {
                write!(f, "a packet at byte {inner} in a UDP tunnel at byte {tunnel}")
            }
            Self::Kind { kind, want } => {
                write!(f, "segmentation type {:#x} without any of {:#x}", kind.0, want.0)
            }
            Self::ChecksumStart { transport, start: Some(start) } => {
                write!(f, "the sum begins at byte {start}, the transport header at {transport}")
            }
            Self::ChecksumStart { transport, start: None } => {
                write!(f, "no checksum to finish at byte {transport}")
            }
            Self::Fragment { at } => write!(f, "an IP fragment at byte {at}"),
            Self::Tunnel { port } => write!(f, "a UDP tunnel of port {port}"),
            Self::Length { stated, have } => {
                write!(f, "{have} bytes of a packet that is {stated} long by its IP header")
            }
            Self::Mtu { mtu, headers } => write!(f, "{headers} bytes of headers, the MTU is {mtu}"),
            Self::TooManyHeaders => f.write_str("too many headers"),
            Self::ReadOnly => f.write_str("the headers cannot be written"),
        }
    }
}

impl core::error::Error for Invalid {}

/// A packet that was refused, untouched but for headers that were gathered, and why.
#[derive(Clone, Debug)]
pub struct Rejected<P> {
    /// The packet.
    pub packet: P,
    /// What is wrong with it.
    pub why: Invalid,
}

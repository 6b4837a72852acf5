//! The frames that all contestants get: whole, or without the Ethernet header as TUN has them.

use grilse_wire::build::{Check, Eth, Ipv4, Ipv6, Network, Tcp, Transport, Udp, frame};
use grilse_wire::{Csum, Gso, GsoType, Meta, tcp, udp};

pub(crate) const MSS: usize = 1448;
/// Segments of a super-packet: 65,160 bytes of payload.
pub(crate) const SEGMENTS: usize = 45;
pub(crate) const ETHERNET: usize = 14;

/// What stands in front of the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Tcp4,
    Tcp6,
    Udp4,
}

impl Kind {
    pub(crate) const ALL: [(Self, &str); 3] =
        [(Self::Tcp4, "tcp4"), (Self::Tcp6, "tcp6"), (Self::Udp4, "udp4")];

    fn network<'a>(self, id: u16) -> Network<'a> {
        match self {
            Self::Tcp6 => Ipv6::default().into(),
            Self::Tcp4 | Self::Udp4 => Ipv4 { id, ..Ipv4::default() }.into(),
        }
    }

    /// With room for a timestamp option, which TCP mostly carries.
    fn transport<'a>(self, src_port: u16, seq: u32, check: Check) -> Transport<'a> {
        match self {
            Self::Udp4 => Udp { src_port, check, ..Udp::default() }.into(),
            Self::Tcp4 | Self::Tcp6 => {
                Tcp { src_port, seq, check, options: &[1; 12], ..Tcp::default() }.into()
            }
        }
    }

    /// The offset of the transport header in the frame, and of the checksum in that.
    fn offsets(self) -> (u16, u16) {
        match self {
            Self::Tcp4 => (34, tcp::CHECK as u16),
            Self::Tcp6 => (54, tcp::CHECK as u16),
            Self::Udp4 => (34, udp::CHECK as u16),
        }
    }

    fn protocol(self) -> u16 {
        if self == Self::Tcp6 { 0x86dd } else { 0x0800 }
    }

    /// `packets` frames of `flows` flows in turn, with valid checksums.
    pub(crate) fn segments(self, packets: usize, flows: usize) -> Vec<Vec<u8>> {
        let segment = |n: usize| {
            let (flow, n) = (n % flows, n / flows);
            let transport =
                self.transport(40_000 + flow as u16, (n * MSS) as u32, Check::default());
            frame(Eth::default(), self.network(n as u16), transport, &[0x5a; MSS])
        };
        (0..packets).map(segment).collect()
    }

    /// What the device says of segment `n`; `network` bytes stand in front of the IP header.
    pub(crate) fn meta(self, n: usize, flows: usize, csum: Csum, network: usize) -> Meta {
        let (hash, network) = ((n % flows) as u32, network as u16);
        Meta { hash, csum, protocol: self.protocol(), network, ..Meta::default() }
    }

    /// A super-packet, and its metadata. The checksum is for who segments it to finish.
    pub(crate) fn train(self) -> (Vec<u8>, Meta) {
        let transport = self.transport(40_000, 0, Check::Partial);
        let frame = frame(Eth::default(), self.network(0), transport, &[0x5a; MSS * SEGMENTS]);
        let (start, offset) = self.offsets();
        let kind = match self {
            Self::Tcp4 => GsoType::TCPV4,
            Self::Tcp6 => GsoType::TCPV6,
            Self::Udp4 => GsoType::UDP_L4,
        };
        let meta = Meta {
            protocol: self.protocol(),
            network: ETHERNET as u16,
            csum: Csum::Partial { start, offset },
            gso: Gso { size: MSS as u16, segs: SEGMENTS as u16, kind },
            ..Meta::default()
        };
        (frame, meta)
    }
}

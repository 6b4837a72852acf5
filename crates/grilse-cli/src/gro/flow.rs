//! What a report calls a flow.

use std::fmt;

use grilse::Skb;
use grilse::wire::Packet;
use grilse::wire::dissect::{Addrs, dissect};

/// One direction of one conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Flow {
    /// Addresses, protocol and ports.
    Ip { src: std::net::IpAddr, dst: std::net::IpAddr, protocol: u8, ports: Option<(u16, u16)> },
    /// Anything else, by ethertype.
    Other(u16),
}

impl Flow {
    /// The flow of a packet, as far as its contiguous headers tell.
    pub(super) fn of(skb: &Skb) -> Self {
        let meta = skb.meta();
        let Ok(flow) = dissect(skb.front(), meta.network.into(), meta.protocol) else {
            return Self::Other(meta.protocol);
        };
        let (src, dst) = match flow.addrs {
            Addrs::V4 { src, dst } => (src.into(), dst.into()),
            Addrs::V6 { src, dst } => (src.into(), dst.into()),
        };
        Self::Ip { src, dst, protocol: flow.protocol, ports: flow.ports }
    }
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (src, dst, protocol, ports) = match *self {
            Self::Other(0x0806) => return f.write_str("ARP"),
            Self::Other(ethertype) => return write!(f, "ethertype {ethertype:#06x}"),
            Self::Ip { src, dst, protocol, ports } => (src, dst, protocol, ports),
        };
        match protocol {
            1 | 58 => f.write_str("icmp ")?,
            6 => f.write_str("tcp ")?,
            17 => f.write_str("udp ")?,
            other => write!(f, "protocol {other} ")?,
        }
        match ports {
            Some((from, to)) => {
                let (src, dst) =
                    (std::net::SocketAddr::new(src, from), std::net::SocketAddr::new(dst, to));
                write!(f, "{src} > {dst}")
            }
            None => write!(f, "{src} > {dst}"),
        }
    }
}

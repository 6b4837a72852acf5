//! The flow dissector: whose packet is this, and where do its headers stand.
//!
//! It follows VLAN tags inside the frame and IPv6 extension headers, and stops at the first
//! transport header: tunnels are not entered. It reads only what a flow needs and judges nothing
//! else: lengths, checksums and versions may lie, and every offset it returns lies within the
//! bytes given. The rules are those of the kernel's `__skb_flow_dissect`, save that ports are given
//! for TCP and UDP only and never for a fragment.

use zerocopy::FromBytes;

use crate::eth::ethertype;
use crate::ipv6::next;
use crate::toeplitz::Table;
use crate::{ipv4, ipv6, tcp, udp, vlan};

/// Tags and extension headers followed in one packet (the kernel's `MAX_FLOW_DISSECT_HDRS`), so
/// that a frame full of them costs no more than any other.
pub const MAX_HEADERS: usize = 15;

/// What the dissector finds in an IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Source and destination address.
    pub addrs: Addrs,
    /// IP protocol behind the extension headers that were followed.
    pub protocol: u8,
    /// Source and destination port of TCP or UDP; `None` also for every fragment, of which only
    /// the first has ports, and where the frame ends before them.
    pub ports: Option<(u16, u16)>,
    /// Offset of the IP header, behind the tags in the frame.
    pub network: usize,
    /// Offset of what `protocol` names; `None` in a later fragment, and where the frame ends within
    /// the headers before it.
    pub transport: Option<usize>,
    /// Whether this is a fragment.
    pub fragment: Fragment,
}

/// The addresses of a [`Flow`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addrs {
    /// IPv4.
    V4 {
        /// Source.
        src: [u8; 4],
        /// Destination.
        dst: [u8; 4],
    },
    /// IPv6.
    V6 {
        /// Source.
        src: [u8; 16],
        /// Destination, of the fixed header even where there is a routing header.
        dst: [u8; 16],
    },
}

/// Place of a packet in a fragmented datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fragment {
    /// The packet is whole.
    No,
    /// Offset 0: the transport header is here. In IPv6 every packet with a Fragment header is one,
    /// the atomic fragments of RFC 6946 included.
    First,
    /// Any other.
    Later,
}

/// Why a frame has no [`Flow`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoFlow {
    /// Neither IPv4 nor IPv6.
    NotIp {
        /// The ethertype, behind tags.
        ethertype: u16,
    },
    /// The frame ends within a tag or the fixed IP header at this offset.
    Cut {
        /// Offset of that header.
        at: usize,
    },
    /// An IPv4 header length below 20 bytes.
    HeaderLen {
        /// The length, in bytes.
        len: usize,
    },
    /// More than [`MAX_HEADERS`] tags.
    TooManyTags,
}

impl Flow {
    /// The receive hash that a NIC gives: Toeplitz over addresses and ports for TCP and UDP, over
    /// the addresses alone for fragments and all other protocols.
    ///
    /// About one flow in 2^32 hashes to 0. NICs report that 0 as it is, and so does this; whoever
    /// reads [`Meta::hash`](crate::Meta::hash) takes it for "no hash", which costs that flow
    /// nothing but its spreading.
    pub fn hash(&self, table: &Table) -> u32 {
        match &self.addrs {
            Addrs::V4 { src, dst } => table.v4(*src, *dst, self.ports),
            Addrs::V6 { src, dst } => table.v6(src, dst, self.ports),
        }
    }
}

/// The hash of [`Flow::hash`] for a frame, and 0 for one that is not IP, as NICs give it. Arguments
/// as for [`dissect`].
pub fn hash(frame: &[u8], network: usize, ethertype: u16, table: &Table) -> u32 {
    dissect(frame, network, ethertype).map_or(0, |flow| flow.hash(table))
}

/// Dissects a frame, whose network header (or first tag in the frame) begins at `network` and is of
/// `ethertype`, in host order.
///
/// # Errors
/// A [`NoFlow`] where not even the addresses can be told.
pub fn dissect(frame: &[u8], network: usize, ethertype: u16) -> Result<Flow, NoFlow> {
    let (network, ethertype) = skip_tags(frame, network, ethertype)?;
    let packet = frame.get(network..).ok_or(NoFlow::Cut { at: network })?;
    match ethertype {
        ethertype::IPV4 => dissect_v4(frame, packet, network),
        ethertype::IPV6 => dissect_v6(frame, packet, network),
        ethertype => Err(NoFlow::NotIp { ethertype }),
    }
}

fn skip_tags(frame: &[u8], mut at: usize, mut kind: u16) -> Result<(usize, u16), NoFlow> {
    for _ in 0..=MAX_HEADERS {
        if !matches!(kind, ethertype::VLAN | ethertype::QINQ) {
            return Ok((at, kind));
        }
        let tag = frame.get(at..).and_then(|rest| vlan::Header::ref_from_prefix(rest).ok());
        let (tag, _) = tag.ok_or(NoFlow::Cut { at })?;
        kind = tag.ethertype.get();
        at += vlan::LEN;
    }
    Err(NoFlow::TooManyTags)
}

fn dissect_v4(frame: &[u8], packet: &[u8], network: usize) -> Result<Flow, NoFlow> {
    let cut = NoFlow::Cut { at: network };
    let (header, _) = ipv4::Header::ref_from_prefix(packet).map_err(|_| cut)?;
    let len = header.header_len();
    if len < ipv4::MIN_LEN {
        return Err(NoFlow::HeaderLen { len });
    }
    let flags_offset = header.flags_offset.get();
    let fragment = if flags_offset & ipv4::Header::OFFSET != 0 {
        Fragment::Later
    } else if flags_offset & ipv4::Header::MF != 0 {
        Fragment::First
    } else {
        Fragment::No
    };
    let addrs = Addrs::V4 { src: header.src, dst: header.dst };
    Ok(flow(frame, addrs, network, Some(network + len), header.protocol, fragment))
}

fn dissect_v6(frame: &[u8], packet: &[u8], network: usize) -> Result<Flow, NoFlow> {
    let cut = NoFlow::Cut { at: network };
    let (header, rest) = ipv6::Header::ref_from_prefix(packet).map_err(|_| cut)?;
    let chain = ext_chain(rest, header.next_header);
    let addrs = Addrs::V6 { src: header.src, dst: header.dst };
    let transport = chain.len.map(|len| network + ipv6::LEN + len);
    Ok(flow(frame, addrs, network, transport, chain.protocol, chain.fragment))
}

/// Where a chain of extension headers leads.
struct Chain {
    protocol: u8,
    /// Bytes of the chain; `None` where its end is not in this packet.
    len: Option<usize>,
    fragment: Fragment,
}

/// Follows the headers in front of `rest`, the first of which is of type `protocol`.
fn ext_chain(mut rest: &[u8], mut protocol: u8) -> Chain {
    let (all, mut fragment) = (rest.len(), Fragment::No);
    for followed in 0.. {
        let len = match protocol {
            next::HOP_BY_HOP | next::ROUTING | next::DEST_OPTS => {
                ipv6::ExtHeader::ref_from_prefix(rest).ok().map(|(ext, _)| ext.header_len())
            }
            next::FRAGMENT => Some(size_of::<ipv6::FragmentHeader>()),
            _ => return Chain { protocol, len: Some(all - rest.len()), fragment },
        };
        let len = len.filter(|_| followed < MAX_HEADERS);
        let Some((header, behind)) = len.and_then(|len| rest.split_at_checked(len)) else { break };
        if protocol == next::FRAGMENT {
            // Offset, reserved bits and M make up the second word.
            if u16::from_be_bytes([header[2], header[3]]) >> 3 != 0 {
                return Chain { protocol: header[0], len: None, fragment: Fragment::Later };
            }
            fragment = Fragment::First;
        }
        (protocol, rest) = (header[0], behind);
    }
    Chain { protocol, len: None, fragment }
}

/// Puts a flow together, with the ports where there are any to read.
fn flow(
    frame: &[u8],
    addrs: Addrs,
    network: usize,
    transport: Option<usize>,
    protocol: u8,
    fragment: Fragment,
) -> Flow {
    let transport = transport.filter(|&at| at <= frame.len() && fragment != Fragment::Later);
    let has_ports = fragment == Fragment::No && matches!(protocol, tcp::PROTOCOL | udp::PROTOCOL);
    let ports = transport.filter(|_| has_ports).and_then(|at| frame.get(at..at + 4));
    let ports = ports.map(|p| (u16::from_be_bytes([p[0], p[1]]), u16::from_be_bytes([p[2], p[3]])));
    Flow { addrs, protocol, ports, network, transport, fragment }
}

#[cfg(all(test, feature = "alloc"))]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use etherparse::{NetHeaders, PacketHeaders, TransportHeader};
    use proptest::prelude::*;

    use super::*;
    use crate::build::{Eth, Ext, Ipv4, Ipv6, Network, Tcp, Transport, Udp, frame};
    use crate::{VlanTag, eth, toeplitz};

    fn of<'a>(
        tags: &[VlanTag],
        network: impl Into<Network<'a>>,
        transport: impl Into<Transport<'a>>,
    ) -> Result<Flow, NoFlow> {
        let frame = frame(Eth { tags, ..Default::default() }, network, transport, b"payload");
        dissect_ethernet(&frame)
    }

    fn dissect_ethernet(frame: &[u8]) -> Result<Flow, NoFlow> {
        dissect(frame, eth::LEN, u16::from_be_bytes([frame[12], frame[13]]))
    }

    #[test]
    fn tags_are_followed() {
        let tags = [(0x88a8, 1), (0x8100, 2)].map(|(tpid, tci)| VlanTag { tpid, tci });
        let flow = of(&tags, Ipv4::default(), Tcp::default()).unwrap();
        assert_eq!((flow.network, flow.transport), (22, Some(42)));
        assert_eq!(flow.ports, Some((4000, 5000)));
        let tags = [tags[0]; MAX_HEADERS];
        assert!(of(&tags, Ipv4::default(), Tcp::default()).is_ok());
        let tags = [tags[0]; MAX_HEADERS + 1];
        assert_eq!(of(&tags, Ipv4::default(), Tcp::default()), Err(NoFlow::TooManyTags));
    }

    #[test]
    fn fragments_have_no_ports() {
        let first = Ipv4 { mf: true, options: &[1; 5], ..Default::default() };
        let flow = of(&[], first, Tcp::default()).unwrap();
        assert_eq!(flow.fragment, Fragment::First);
        assert_eq!((flow.ports, flow.transport), (None, Some(14 + 28)));
        let later = Ipv4 { offset: 1, ..Default::default() };
        let flow = of(&[], later, Udp::default()).unwrap();
        assert_eq!(flow.fragment, Fragment::Later);
        assert_eq!((flow.ports, flow.transport, flow.protocol), (None, None, 17));
        let whole = of(&[], Ipv4::default(), Udp::default()).unwrap();
        assert_ne!(whole.hash(&toeplitz::MICROSOFT), flow.hash(&toeplitz::MICROSOFT));
    }

    #[test]
    fn extension_headers_are_skipped() {
        let fragment = |offset| Ext::Fragment { offset, more: true, id: 1 };
        let ext = [Ext::HopByHop(&[1; 7]), Ext::Routing(&[2; 6]), Ext::DestOpts(&[])];
        let flow = of(&[], Ipv6 { ext: &ext, ..Default::default() }, Udp::default()).unwrap();
        assert_eq!((flow.transport, flow.ports), (Some(54 + 32), Some((4000, 5000))));
        assert_eq!(flow.fragment, Fragment::No);
        let ext = [fragment(0), Ext::DestOpts(&[])];
        let flow = of(&[], Ipv6 { ext: &ext, ..Default::default() }, Udp::default()).unwrap();
        assert_eq!((flow.transport, flow.ports, flow.protocol), (Some(54 + 16), None, 17));
        assert_eq!(flow.fragment, Fragment::First);
        let ext = [Ext::HopByHop(&[]), fragment(1)];
        let flow = of(&[], Ipv6 { ext: &ext, ..Default::default() }, Udp::default()).unwrap();
        assert_eq!((flow.transport, flow.ports, flow.protocol), (None, None, 17));
        assert_eq!(flow.fragment, Fragment::Later);
    }

    #[test]
    fn chains_have_an_end() {
        let ext = [Ext::DestOpts(&[]); MAX_HEADERS + 1];
        let ip = |n| Ipv6 { ext: &ext[..n], ..Default::default() };
        let flow = of(&[], ip(MAX_HEADERS), Tcp::default()).unwrap();
        assert_eq!((flow.protocol, flow.transport), (6, Some(54 + 8 * MAX_HEADERS)));
        let flow = of(&[], ip(MAX_HEADERS + 1), Tcp::default()).unwrap();
        assert_eq!((flow.protocol, flow.transport), (next::DEST_OPTS, None));
        // A length that leads out of the frame.
        let ext = [Ext::Other { kind: next::ROUTING, rest: &[255, 0, 0, 0, 0, 0, 0] }];
        let flow = of(&[], Ipv6 { ext: &ext, ..Default::default() }, Tcp::default()).unwrap();
        assert_eq!((flow.protocol, flow.transport), (next::ROUTING, None));
    }

    /// faults.md BL-07: header lengths that lie, and frames cut at every byte.
    #[test]
    fn lies_and_cuts() {
        let lying = Ipv4 { ihl: Some(4), ..Default::default() };
        assert_eq!(of(&[], lying, Tcp::default()), Err(NoFlow::HeaderLen { len: 16 }));
        let lying = Ipv4 { ihl: Some(15), ..Default::default() };
        assert_eq!(of(&[], lying, Tcp::default()).unwrap().transport, None);
        let bytes = frame(Eth::default(), Ipv4::default(), Tcp::default(), b"payload");
        for cut in 14..bytes.len() {
            let flow = dissect_ethernet(&bytes[..cut]);
            match cut {
                ..34 => assert_eq!(flow, Err(NoFlow::Cut { at: 14 })),
                34..38 => assert_eq!(flow.unwrap().ports, None),
                _ => assert_eq!(flow.unwrap().ports, Some((4000, 5000))),
            }
        }
        assert_eq!(dissect(&bytes, 99, ethertype::IPV4), Err(NoFlow::Cut { at: 99 }));
        assert_eq!(dissect(&bytes, 14, 0x806), Err(NoFlow::NotIp { ethertype: 0x806 }));
        assert_eq!(hash(&bytes, 14, 0x806, &toeplitz::MICROSOFT), 0);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_stay_in_bounds(
            frame in prop::collection::vec(any::<u8>(), 0..200),
            network in 0usize..220,
            kind in prop::sample::select(&[0x0800u16, 0x86dd, 0x8100, 0x88a8, 0x806]),
        ) {
            if let Ok(flow) = dissect(&frame, network, kind) {
                prop_assert!(flow.network < frame.len());
                prop_assert!(flow.transport.is_none_or(|at| at <= frame.len() && at > flow.network));
                prop_assert!(flow.ports.is_none() || flow.fragment == Fragment::No);
            }
        }

        #[test]
        fn etherparse_agrees(
            v6: bool, udp: bool, mf: bool, tags in 0usize..3,
            hop in prop::option::of(0usize..40), routing in prop::option::of(0usize..40),
            ports: (u16, u16), options in 0usize..=40,
        ) {
            let tag = VlanTag { tpid: ethertype::VLAN, tci: 7 };
            let pads = [0; 40];
            let mut ext = Vec::new();
            ext.extend(hop.map(|n| Ext::HopByHop(&pads[..n])));
            ext.extend(routing.map(|n| Ext::Routing(&pads[..n])));
            ext.extend(mf.then_some(Ext::Fragment { offset: 0, more: true, id: 9 }));
            let v4 = Ipv4 { mf, options: &pads[..options], ..Default::default() };
            let v6 = v6.then_some(Ipv6 { ext: &ext, ..Default::default() });
            let network = v6.map_or(Network::V4(v4), Network::V6);
            let tcp = Tcp { src_port: ports.0, dst_port: ports.1, ..Default::default() };
            let udp = udp.then_some(Udp { src_port: ports.0, dst_port: ports.1, ..Default::default() });
            let transport = udp.map_or(Transport::Tcp(tcp), Transport::Udp);
            let tags = [tag; 3][..tags].to_vec();
            let bytes = frame(Eth { tags: &tags, ..Default::default() }, network, transport, b"data");
            let flow = dissect_ethernet(&bytes).unwrap();

            let parsed = PacketHeaders::from_ethernet_slice(&bytes).unwrap();
            let (addrs, behind) = match parsed.net.unwrap() {
                NetHeaders::Ipv4(ip, _) => {
                    let addrs = Addrs::V4 { src: ip.source, dst: ip.destination };
                    (addrs, ip.header_len())
                }
                NetHeaders::Ipv6(ip, ext) => {
                    let addrs = Addrs::V6 { src: ip.source, dst: ip.destination };
                    (addrs, ip.header_len() + ext.header_len())
                }
                NetHeaders::Arp(_) => panic!("not IP"),
            };
            prop_assert_eq!(flow.addrs, addrs);
            prop_assert_eq!(flow.network, 14 + 4 * tags.len());
            prop_assert_eq!(flow.transport, Some(flow.network + behind));
            prop_assert_eq!(flow.fragment == Fragment::First, mf);
            let parsed_ports = parsed.transport.map(|transport| match transport {
                TransportHeader::Tcp(tcp) => (tcp.source_port, tcp.destination_port),
                TransportHeader::Udp(udp) => (udp.source_port, udp.destination_port),
                other => panic!("unexpected {other:?}"),
            });
            prop_assert_eq!(flow.ports, parsed_ports);
        }
    }
}

//! Where the parts of a packet lie, so that its headers and its payload can be looked at where they
//! are.

use core::ops::Range;

use zerocopy::FromBytes;

use crate::dissect::{Addrs, Flow, dissect};
use crate::{Gso, Packet, ipv4, ipv6, tcp, udp};

/// The parts of a TCP or UDP packet, super-packets among them, as offsets from the front of the
/// frame. Tunnels are not entered.
///
/// ```
/// use grilse_wire::build::{Eth, Ipv4, Udp, frame};
/// use grilse_wire::zerocopy::FromBytes;
/// use grilse_wire::{Gso, GsoType, Linear, Meta, Packet, Parts, udp};
///
/// let frame = frame(Eth::default(), Ipv4::default(), Udp::default(), &[7; 2500]);
/// let gso = Gso { size: 1000, segs: 3, kind: GsoType::UDP_L4 };
/// let packet = Linear::new(frame, Meta { protocol: 0x0800, network: 14, gso, ..Meta::default() });
///
/// let parts = Parts::of(&packet).unwrap();
/// let (header, _) = udp::Header::ref_from_prefix(&packet.front()[parts.transport..]).unwrap();
/// assert_eq!(header.dst_port.get(), 5000);
/// for segment in parts.segments(packet.meta().gso) {
///     let bytes: usize = packet.pieces(segment).map(<[u8]>::len).sum();
///     assert!(bytes == 1000 || bytes == 500);
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    /// Offset of the IP header, behind the tags in the frame.
    pub network: usize,
    /// Offset of the TCP or UDP header.
    pub transport: usize,
    /// IP protocol: [`tcp::PROTOCOL`] or [`udp::PROTOCOL`].
    pub protocol: u8,
    /// The payload of TCP or UDP, without padding of the link.
    pub payload: Range<usize>,
}

impl Parts {
    /// The parts of a packet, whose [`Meta`](crate::Meta) says `network` and `protocol`. Reads
    /// headers only. `None`: it is neither TCP nor UDP, or a fragment, or its headers lie or are not
    /// contiguous ([`Packet::gather`] makes them so).
    pub fn of<P: Packet>(packet: &P) -> Option<Self> {
        let (front, meta) = (packet.front(), packet.meta());
        let flow = dissect(front, meta.network.into(), meta.protocol).ok()?;
        let transport = flow.ports.and(flow.transport)?;
        let header = match flow.protocol {
            tcp::PROTOCOL => {
                let len = tcp::Header::ref_from_prefix(&front[transport..]).ok()?.0.header_len();
                Some(len).filter(|len| *len >= tcp::MIN_LEN)?
            }
            _ => udp::LEN,
        };
        let start = transport + header;
        let end = end(front, &flow).unwrap_or(packet.len());
        let whole = start <= front.len() && end <= packet.len();
        (whole && start <= end).then_some(Self {
            network: flow.network,
            transport,
            protocol: flow.protocol,
            payload: start..end,
        })
    }

    /// The payload of each segment, in order; of a plain packet, all of it at once.
    pub fn segments(&self, gso: Gso) -> impl Iterator<Item = Range<usize>> + use<> {
        let Range { start, end } = self.payload;
        let size = if gso.size == 0 { end - start } else { gso.size.into() };
        // A step of 0 is none that one can take, and a packet without payload has no second.
        (start..end.max(start + 1))
            .step_by(size.max(1))
            .map(move |at| at..end.min(at.saturating_add(size)))
    }

    /// Length of the longest segment from its IP header on, which an MTU is held against: of a
    /// super-packet not its own length (`skb_gso_network_seglen`).
    pub fn segment_len(&self, gso: Gso) -> usize {
        let payload = self.payload.len();
        let longest = if gso.size == 0 { payload } else { payload.min(gso.size.into()) };
        self.payload.start - self.network + longest
    }
}

/// Where the IP packet ends, as it says itself; `None` where it is too long to (BIG TCP).
fn end(front: &[u8], flow: &Flow) -> Option<usize> {
    let header = &front[flow.network..];
    let (at, len) = match flow.addrs {
        Addrs::V4 { .. } => (0, ipv4::Header::ref_from_prefix(header).ok()?.0.total_len.get()),
        Addrs::V6 { .. } => {
            (ipv6::LEN, ipv6::Header::ref_from_prefix(header).ok()?.0.payload_len.get())
        }
    };
    (len != 0).then_some(flow.network + at + usize::from(len))
}

#[cfg(all(test, feature = "alloc"))]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use super::*;
    use crate::build::{Eth, Ext, Ipv4, Ipv6, Tcp, frame};
    use crate::{Linear, Meta};

    fn packet(frame: Vec<u8>) -> Linear {
        let protocol = u16::from_be_bytes([frame[12], frame[13]]);
        Linear::new(frame, Meta { network: 14, protocol, ..Meta::default() })
    }

    fn ranges(parts: &Parts, size: u16) -> Vec<(usize, usize)> {
        let segments = parts.segments(Gso { size, ..Gso::default() });
        segments.map(|range| (range.start, range.end)).collect()
    }

    #[test]
    fn options_and_extensions_are_headers_and_padding_is_nothing() {
        let tcp = Tcp { options: &[1; 12], ..Tcp::default() };
        let eth = Eth { padding: 3, ..Eth::default() };
        let v4 = packet(frame(eth, Ipv4 { options: &[1; 4], ..Ipv4::default() }, tcp, &[7; 10]));
        let parts = Parts::of(&v4).unwrap();
        assert_eq!((parts.network, parts.transport, parts.payload.clone()), (14, 38, 70..80));
        assert_eq!(v4.len(), 83);
        let ext = [Ext::HopByHop(&[])];
        let v6 = packet(frame(Eth::default(), Ipv6 { ext: &ext, ..Ipv6::default() }, tcp, &[7; 9]));
        assert_eq!(Parts::of(&v6).unwrap().payload, 94..103);
    }

    #[test]
    fn segments_end_with_the_payload() {
        let packet = packet(frame(Eth::default(), Ipv4::default(), Tcp::default(), &[7; 10]));
        let parts = Parts::of(&packet).unwrap();
        assert_eq!(ranges(&parts, 4), [(54, 58), (58, 62), (62, 64)]);
        assert_eq!(ranges(&parts, 5), [(54, 59), (59, 64)]);
        assert_eq!(ranges(&parts, 0), [(54, 64)]);
        let empty = Parts { payload: 54..54, ..parts };
        assert_eq!(ranges(&empty, 0), [(54, 54)]);
        assert_eq!(ranges(&empty, 5), [(54, 54)]);
    }

    /// faults.md BL-22: a router held the length of the whole super-packet against the MTU, and
    /// dropped it. Also of a copy.
    #[test]
    fn bl_22_and_row_33_an_mtu_limits_segments() {
        let tcp = Tcp { options: &[1; 12], ..Tcp::default() };
        for (v6, headers) in [(false, 52), (true, 72)] {
            let payload = [7; 20_024];
            let frame = match v6 {
                false => frame(Eth::default(), Ipv4::default(), tcp, &payload),
                true => frame(Eth::default(), Ipv6::default(), tcp, &payload),
            };
            let mut packet = packet(frame);
            for (size, segs) in [(1388, 15), (1448, 14)] {
                packet.meta_mut().gso = Gso { size, segs, ..Gso::default() };
                let copy = packet.clone();
                let (parts, gso) = (Parts::of(&copy).unwrap(), copy.meta().gso);
                assert_eq!(parts.segment_len(gso), headers + usize::from(size));
                assert_eq!(parts.segments(gso).count(), segs.into());
                assert_eq!(parts.segments(gso).last().unwrap().len(), 20_024 % usize::from(size));
            }
            packet.meta_mut().gso = Gso::default();
            let parts = Parts::of(&packet).unwrap();
            assert_eq!(parts.segment_len(packet.meta().gso), headers + 20_024);
        }
    }

    #[test]
    fn headers_that_lie_have_no_parts() {
        let of = |tcp, v4, len: usize| {
            let mut frame = frame(Eth::default(), v4, tcp, &[7; 10]);
            frame.truncate(len);
            Parts::of(&packet(frame))
        };
        let (tcp, v4) = (Tcp::default(), Ipv4::default());
        assert!(of(tcp, v4, 64).is_some());
        assert_eq!(of(tcp, v4, 63), None);
        assert_eq!(of(tcp, v4, 50), None);
        assert_eq!(of(Tcp { data_offset: Some(15), ..tcp }, v4, 64), None);
        assert_eq!(of(Tcp { data_offset: Some(0), ..tcp }, v4, 64), None);
        assert_eq!(of(tcp, Ipv4 { total_len: Some(30), ..v4 }, 64), None);
        assert_eq!(of(tcp, Ipv4 { mf: true, ..v4 }, 64), None);
    }
}

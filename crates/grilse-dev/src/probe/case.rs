//! One super-packet, the packets that it stands for, and the verdict on what the kernel made of it.
//!
//! What is right comes from the frame builder, one packet at a time, and not from segmentation: an
//! oracle that cuts nothing.

use std::ops::Range;

use grilse_wire::build::{Check, Ipv4, Ipv6, Network, Tcp, Transport, Udp, packet, payload};
use grilse_wire::tcp::flag;
use grilse_wire::vnet::{Form, Header, NEEDS_CSUM, gso};

use super::{Outcome, Proto, Tail};

/// Payload bytes of a segment.
const SIZE: usize = 1200;

/// The networks of the device that is written to and of the one that is read from: the third byte
/// of an IPv4 address, the second word of an IPv6 address. The last byte is the host.
pub(super) const NETWORKS: [u8; 2] = [1, 2];

pub(super) fn v4(network: u8, host: u8) -> [u8; 4] {
    [10, 9, network, host]
}

pub(super) fn v6(network: u8, host: u8) -> [u8; 16] {
    [0xfd, 0x09, 0, network, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]
}

/// A super-packet of one protocol, with one kind of tail.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) proto: Proto,
    pub(super) tail: Tail,
}

impl Case {
    fn payload_len(self) -> usize {
        match self.tail {
            Tail::Short => 3 * SIZE + 200,
            Tail::Equal => 3 * SIZE,
            Tail::One => SIZE,
        }
    }

    /// The packet with its vnet header, as it is written to a TUN device.
    pub(super) fn super_packet(self) -> Vec<u8> {
        let body = self.packet(64, 0, true, Check::Partial, 0..self.payload_len());
        let (l3, l4, gso_type, csum_offset) = match self.proto {
            Proto::Tcp4 => (20, 20, gso::TCPV4, 16),
            Proto::Tcp6 => (40, 20, gso::TCPV6, 16),
            Proto::Udp4 => (20, 8, gso::UDP_L4, 6),
            Proto::Udp6 => (40, 8, gso::UDP_L4, 6),
        };
        let header = Header {
            flags: NEEDS_CSUM,
            gso_type,
            hdr_len: l3 + l4,
            gso_size: SIZE as u16,
            csum_start: l3,
            csum_offset,
            num_buffers: 0,
        };
        let mut bytes = vec![0; Form::NATIVE.header_len()];
        header.write(&mut bytes, Form::NATIVE);
        bytes.extend_from_slice(&body);
        bytes
    }

    /// What must come out where it was forwarded: a hop further, cut, all checksums finished.
    pub(super) fn segments(self) -> Vec<Vec<u8>> {
        let len = self.payload_len();
        let starts = (0..len).step_by(SIZE).enumerate();
        let segment = |(n, at): (usize, usize)| {
            let end = len.min(at + SIZE);
            self.packet(63, n as u16, end == len, Check::Right, at..end)
        };
        starts.map(segment).collect()
    }

    fn packet(self, ttl: u8, id: u16, last: bool, check: Check, part: Range<usize>) -> Vec<u8> {
        let [here, there] = NETWORKS;
        let network: Network<'_> = match self.proto {
            Proto::Tcp4 | Proto::Udp4 => {
                let (src, dst) = (v4(here, 2), v4(there, 2));
                Ipv4 { src, dst, ttl, id, ..Ipv4::default() }.into()
            }
            Proto::Tcp6 | Proto::Udp6 => {
                let (src, dst) = (v6(here, 2), v6(there, 2));
                Ipv6 { src, dst, hop_limit: ttl, ..Ipv6::default() }.into()
            }
        };
        let transport: Transport<'_> = match self.proto {
            Proto::Tcp4 | Proto::Tcp6 => {
                let seq = 1000 + part.start as u32;
                let flags = if last { flag::ACK | flag::PSH } else { flag::ACK };
                Tcp { seq, flags, check, ..Tcp::default() }.into()
            }
            Proto::Udp4 | Proto::Udp6 => Udp { check, ..Udp::default() }.into(),
        };
        packet(network, transport, &payload(part.start, part.len()))
    }

    /// Lays what was read beside what is right.
    pub(super) fn judge(self, read: &[Vec<u8>]) -> Outcome {
        let right = self.segments();
        let read: Vec<_> = read.iter().filter(|packet| is_ours(packet)).collect();
        for (segment, (right, read)) in right.iter().zip(&read).enumerate() {
            let differs = right.iter().zip(read.iter()).position(|(right, read)| right != read);
            if let Some(at) = differs {
                return Outcome::Mangled { segment, at, right: right[at], read: read[at] };
            }
            if right.len() != read.len() {
                return Outcome::Cut { segment, right: right.len(), read: read.len() };
            }
        }
        if read.len() != right.len() {
            return Outcome::Lost { right: right.len(), read: read.len() };
        }
        Outcome::Right
    }
}

/// Whether a packet that was read goes from our host to our host, and is not the kernel's chatter.
fn is_ours(packet: &[u8]) -> bool {
    let [here, there] = NETWORKS;
    match packet.first().map(|first| first >> 4) {
        Some(4) => packet.get(12..20) == Some(&[v4(here, 2), v4(there, 2)].concat()[..]),
        Some(6) => packet.get(8..40) == Some(&[v6(here, 2), v6(there, 2)].concat()[..]),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_right_is_right_and_chatter_is_none_of_it() {
        for proto in Proto::ALL {
            for (tail, count) in [(Tail::Short, 4), (Tail::Equal, 3), (Tail::One, 1)] {
                let case = Case { proto, tail };
                let mut read = case.segments();
                assert_eq!(read.len(), count);
                read.insert(1, vec![0x60; 56]);
                assert_eq!(case.judge(&read), Outcome::Right);
            }
        }
    }

    #[test]
    fn every_fault_is_seen() {
        let case = Case { proto: Proto::Udp4, tail: Tail::Equal };
        let judge = |edit: &dyn Fn(&mut Vec<Vec<u8>>)| {
            let mut read = case.segments();
            edit(&mut read);
            case.judge(&read)
        };
        // The length of the last datagram, as a kernel has written it.
        let mangled = judge(&|read| read[2][25] ^= 8);
        assert_eq!(mangled, Outcome::Mangled { segment: 2, at: 25, right: 0xb8, read: 0xb0 });
        let cut = judge(&|read| read[1].truncate(100));
        assert_eq!(cut, Outcome::Cut { segment: 1, right: 1228, read: 100 });
        let lost = judge(&|read| read.truncate(2));
        assert_eq!(lost, Outcome::Lost { right: 3, read: 2 });
        let twice = judge(&|read| read.push(read[2].clone()));
        assert_eq!(twice, Outcome::Lost { right: 3, read: 4 });
        assert_eq!(judge(&Vec::clear), Outcome::Lost { right: 3, read: 0 });
    }
}

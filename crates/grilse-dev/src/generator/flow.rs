//! One flow: the frame that all of its packets are copies of, and what counts on from one to the
//! next.

use grilse_wire::build::{self, Eth, Ipv4, Ipv6, Network, Tcp, Transport, Udp};
use grilse_wire::dissect;
use grilse_wire::tcp::{self, flag};
use grilse_wire::{csum, eth, ipv4, ipv6, toeplitz, udp};

use super::options::Options;

/// Ports of flow 0.
const PORTS: (u16, u16) = (10_000, 5_001);

#[derive(Debug)]
pub(super) struct Flow {
    /// The frame up to its payload, lengths and checksums open.
    headers: Box<[u8]>,
    transport: usize,
    tcp: bool,
    /// Pseudo-header without the length.
    pseudo: u32,
    /// Number of the next packet.
    next: u64,
    /// TCP sequence number of its first byte.
    seq: u32,
    pub(super) hash: u32,
}

impl Flow {
    pub(super) fn new(options: &Options, number: u32) -> Self {
        let ports = (PORTS.0.wrapping_add(number as u16), PORTS.1);
        // Beyond all ports, flows differ in their address too.
        let high = (number >> 16) as u8;
        let network = match options.v6 {
            true => {
                let ip = Ipv6::default();
                let mut src = ip.src;
                src[14] ^= high;
                Network::V6(Ipv6 { src, ..ip })
            }
            false => {
                let ip = Ipv4::default();
                let mut src = ip.src;
                src[2] ^= high;
                Network::V4(Ipv4 { src, id: 0, ..ip })
            }
        };
        let transport = match options.tcp {
            true => Transport::Tcp(Tcp {
                src_port: ports.0,
                dst_port: ports.1,
                seq: 0,
                flags: flag::ACK,
                ..Tcp::default()
            }),
            false => Transport::Udp(Udp { src_port: ports.0, dst_port: ports.1, ..Udp::default() }),
        };
        let headers = build::frame(Eth::default(), network, transport, &[]);
        let transport = headers.len() - if options.tcp { tcp::MIN_LEN } else { udp::LEN };
        let protocol = if options.tcp { tcp::PROTOCOL } else { udp::PROTOCOL };
        let pseudo = match network {
            Network::V4(ip) => csum::pseudo_v4(ip.src, ip.dst, protocol, 0),
            Network::V6(ip) => csum::pseudo_v6(&ip.src, &ip.dst, protocol, 0),
        };
        let kind = u16::from_be_bytes([headers[12], headers[13]]);
        let hash = dissect::hash(&headers, eth::LEN, kind, &toeplitz::MICROSOFT);
        Self { headers: headers.into(), transport, tcp: options.tcp, pseudo, next: 0, seq: 0, hash }
    }

    /// Writes the next packet over all of `frame`, whose length it takes.
    pub(super) fn write(&mut self, frame: &mut [u8]) {
        let (head, payload) = frame.split_at_mut(self.headers.len());
        head.copy_from_slice(&self.headers);
        payload.fill(0);
        let len = payload.len();
        if self.tcp {
            head[self.transport + 4..][..4].copy_from_slice(&self.seq.to_be_bytes());
            self.seq = self.seq.wrapping_add(len as u32);
        } else {
            payload[..8].copy_from_slice(&self.next.to_be_bytes());
        }
        self.close(frame);
        self.next += 1;
    }

    /// Writes lengths, identification and checksums.
    fn close(&self, frame: &mut [u8]) {
        let len = (frame.len() - self.transport) as u16;
        let check = if self.tcp { tcp::CHECK } else { udp::CHECK };
        let (network, segment) = frame.split_at_mut(self.transport);
        let network = &mut network[eth::LEN..];
        if network.len() == ipv6::LEN {
            network[4..6].copy_from_slice(&len.to_be_bytes());
        } else {
            network[2..4].copy_from_slice(&(len + ipv4::MIN_LEN as u16).to_be_bytes());
            network[4..6].copy_from_slice(&(self.next as u16).to_be_bytes());
            network[ipv4::CHECK..][..2].fill(0);
            let right = !csum::fold(csum::sum(network));
            network[ipv4::CHECK..][..2].copy_from_slice(&right.to_be_bytes());
        }
        if !self.tcp {
            segment[udp::LENGTH..][..2].copy_from_slice(&len.to_be_bytes());
        }
        segment[check..][..2].fill(0);
        let pseudo = csum::add(self.pseudo, len.into());
        let right = match !csum::fold(csum::add(pseudo, csum::sum(segment))) {
            // To UDP, 0 says that there is no checksum (RFC 768).
            0 if !self.tcp => 0xffff,
            right => right,
        };
        segment[check..][..2].copy_from_slice(&right.to_be_bytes());
    }
}

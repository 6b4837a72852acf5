//! One flow: the next frame, kept ready to be copied.
//!
//! From one packet to the next only its numbers change, and the checksums by them (RFC 1624); a
//! frame of another length is made anew.

use grilse_wire::build::{self, Eth, Ipv4, Ipv6, Network, Tcp, Transport, Udp};
use grilse_wire::dissect;
use grilse_wire::tcp::{self, flag};
use grilse_wire::{csum, eth, ipv4, ipv6, toeplitz, udp};

use super::options::Options;

/// Ports of flow 0.
const PORTS: (u16, u16) = (10_000, 5_001);

#[derive(Debug)]
pub(super) struct Flow {
    /// The next frame.
    frame: Vec<u8>,
    transport: usize,
    payload: usize,
    tcp: bool,
    /// Sum of the pseudo-header, less the length.
    pseudo: u32,
    /// Number of the next packet.
    next: u64,
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
        let (payload, tcp) = (headers.len(), options.tcp);
        Self { frame: headers, transport, payload, tcp, pseudo, next: 0, hash }
    }

    /// Writes the next packet over all of `frame`, whose length it takes.
    #[inline]
    pub(super) fn write(&mut self, frame: &mut [u8]) {
        if frame.len() != self.frame.len() {
            self.resize(frame.len());
        }
        frame.copy_from_slice(&self.frame);
        self.next += 1;
        if self.transport - eth::LEN != ipv6::LEN {
            self.replace(eth::LEN + 4, eth::LEN + ipv4::CHECK, self.next as u16);
        }
        if self.tcp {
            let (seq, len) = (self.seq(), self.frame.len() - self.payload);
            self.set_seq(seq.wrapping_add(len as u32));
        } else if self.next as u16 != 0 {
            self.replace(self.payload + 6, self.transport + udp::CHECK, self.next as u16);
        } else {
            self.resize(self.frame.len());
        }
    }

    /// Writes another value to the word at `at`, and what becomes of the checksum at `check` by it.
    #[inline]
    fn replace(&mut self, at: usize, check: usize, new: u16) {
        let frame = &mut self.frame[..];
        let word = |frame: &[u8], at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
        let sum = csum::replace(word(frame, check), word(frame, at), new);
        // To UDP, 0 says that there is no checksum (RFC 768).
        let sum = if sum == 0 && check == self.transport + udp::CHECK { 0xffff } else { sum };
        frame[at..at + 2].copy_from_slice(&new.to_be_bytes());
        frame[check..check + 2].copy_from_slice(&sum.to_be_bytes());
    }

    fn seq(&self) -> u32 {
        let bytes = self.frame[self.transport + 4..].first_chunk();
        bytes.map_or(0, |bytes| u32::from_be_bytes(*bytes))
    }

    #[inline]
    fn set_seq(&mut self, seq: u32) {
        let (at, check) = (self.transport + 4, self.transport + tcp::CHECK);
        self.replace(at, check, (seq >> 16) as u16);
        self.replace(at + 2, check, seq as u16);
    }

    /// Makes the next frame anew, of this length.
    #[cold]
    fn resize(&mut self, len: usize) {
        self.frame.resize(len, 0);
        let frame = &mut self.frame[..];
        if !self.tcp {
            frame[self.payload..][..8].copy_from_slice(&self.next.to_be_bytes());
        }
        let len = (frame.len() - self.transport) as u16;
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
        let check = if self.tcp { tcp::CHECK } else { udp::CHECK };
        segment[check..][..2].fill(0);
        let pseudo = csum::add(self.pseudo, len.into());
        let right = match !csum::fold(csum::add(pseudo, csum::sum(segment))) {
            0 if !self.tcp => 0xffff,
            right => right,
        };
        segment[check..][..2].copy_from_slice(&right.to_be_bytes());
    }
}

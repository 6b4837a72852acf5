//! What the tests of this crate share: a packet type that is awkward on purpose, and frames.
#![allow(dead_code, unreachable_pub)] // Each test file uses its own part.

use std::ops::Range;

use bytes::BytesMut;
use grilse_offload::{Config, Gro, Outcome, Reason, Sink, Why};
use grilse_wire::{Csum, How, Linear, Meta, Packet, Refused, Scattered};

pub mod cut;
pub mod frame;
pub mod namespace;
pub mod pcap;

/// A packet whose contiguous front may be arbitrarily short, and which can chain whole packets.
#[derive(Clone, Debug)]
pub struct Split {
    bytes: Vec<u8>,
    front: usize,
    headroom: usize,
    meta: Meta,
    /// What [`How::Whole`] chained, as it came.
    pub chained: Vec<Vec<u8>>,
    pub chained_input: bool,
    /// Whether the headers can be gathered, written to, and packets absorbed.
    pub gathers: bool,
    pub writable: bool,
    pub takes: bool,
    pub source: u8,
}

impl Split {
    pub fn new(bytes: Vec<u8>, front: usize, meta: Meta) -> Self {
        Self {
            front: front.min(bytes.len()),
            bytes,
            headroom: 64,
            meta,
            chained: Vec::new(),
            chained_input: false,
            gathers: true,
            writable: true,
            takes: true,
            source: 0,
        }
    }

    pub fn without_headroom(mut self) -> Self {
        self.headroom = 0;
        self
    }
}

impl Packet for Split {
    fn len(&self) -> usize {
        self.bytes.len()
    }

    fn front(&self) -> &[u8] {
        &self.bytes[..self.front]
    }

    fn gather(&mut self, n: usize) -> Option<&[u8]> {
        if n > self.bytes.len() || (n > self.front && !self.gathers) {
            return None;
        }
        self.front = self.front.max(n);
        Some(self.front())
    }

    fn front_mut(&mut self, n: usize) -> Option<&mut [u8]> {
        if !self.writable {
            return None;
        }
        self.gather(n)?;
        Some(&mut self.bytes[..n])
    }

    fn headroom(&self) -> usize {
        self.headroom
    }

    fn push(&mut self, n: usize) -> Option<&mut [u8]> {
        self.headroom = self.headroom.checked_sub(n)?;
        self.bytes.splice(..0, std::iter::repeat_n(0xee, n));
        self.front += n;
        Some(&mut self.bytes[..self.front])
    }

    fn trim(&mut self, len: usize) -> bool {
        self.bytes.truncate(len);
        self.front = self.front.min(len);
        true
    }

    fn pieces(&self, range: Range<usize>) -> impl Iterator<Item = &[u8]> {
        // Odd pieces, so that sums must carry over their borders.
        self.bytes[range].chunks(7)
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }

    fn meta_mut(&mut self) -> &mut Meta {
        &mut self.meta
    }

    fn same_source(&self, other: &Self) -> bool {
        self.source == other.source
    }

    fn is_chained(&self) -> bool {
        self.chained_input
    }

    fn absorb(
        &mut self,
        other: Self,
        skip: usize,
        how: How,
    ) -> Result<Option<Self>, Refused<Self>> {
        if !self.takes {
            return Err(Refused(other));
        }
        self.bytes.extend_from_slice(&other.bytes[skip..]);
        if how == How::Whole {
            self.chained.push(other.bytes);
            return Ok(None);
        }
        Ok(Some(Self { bytes: Vec::new(), front: 0, ..other }))
    }
}

/// A frame as the kernel's AF_PACKET socket shows it.
pub trait Frame: Packet {
    fn of(frame: &[u8], meta: Meta) -> Self;
    fn frame(&self) -> Vec<u8> {
        self.pieces(0..self.len()).flatten().copied().collect()
    }
}

impl Frame for Linear {
    fn of(frame: &[u8], meta: Meta) -> Self {
        let mut bytes = Vec::with_capacity(256 << 10);
        bytes.resize(64, 0);
        bytes.extend_from_slice(frame);
        Self::with_headroom(bytes, 64, meta)
    }
}

impl Frame for Scattered {
    fn of(frame: &[u8], meta: Meta) -> Self {
        let mut bytes = BytesMut::zeroed(64);
        bytes.extend_from_slice(frame);
        Self::with_headroom(bytes, 64, meta)
    }
}

impl Frame for Split {
    fn of(frame: &[u8], meta: Meta) -> Self {
        Self::new(frame.to_vec(), frame.len(), meta)
    }
}

/// Metadata of an Ethernet frame as a device without offloads gives it.
pub fn ethernet(frame: &[u8], seq: u64) -> Meta {
    let protocol = u16::from_be_bytes([frame[12], frame[13]]);
    Meta { seq, protocol, network: 14, ..Meta::default() }
}

/// One delivered packet, and the numbers of those that it stands for.
#[derive(Clone, Debug)]
pub struct Out<P> {
    pub packet: P,
    pub why: Why,
    pub members: Vec<u64>,
}

/// A sink that keeps everything.
#[derive(Debug)]
pub struct Kept<P> {
    pub out: Vec<Out<P>>,
    joined: Vec<(u64, u64)>,
}

impl<P> Default for Kept<P> {
    fn default() -> Self {
        Self { out: Vec::new(), joined: Vec::new() }
    }
}

impl<P: Packet> Sink<P> for Kept<P> {
    fn merged(&mut self, head: &Meta, packet: &Meta) {
        self.joined.push((head.seq, packet.seq));
    }

    fn deliver(&mut self, packet: P, why: Why) {
        let head = packet.meta().seq;
        let joined = self.joined.iter().filter(|(to, _)| *to == head).map(|(_, from)| *from);
        let members = std::iter::once(head).chain(joined).collect();
        self.out.push(Out { packet, why, members });
    }
}

/// Pushes packets, `batch` to a poll, and collects what comes out.
pub fn run<P: Packet>(config: &Config, packets: Vec<P>, batch: usize) -> Vec<Out<P>> {
    let mut gro = Gro::new(config.clone());
    let mut kept = Kept::default();
    let mut packets = packets.into_iter().peekable();
    while packets.peek().is_some() {
        for packet in packets.by_ref().take(batch) {
            let before = kept.out.len();
            match gro.push(packet, 0, &mut kept) {
                Outcome::Delivered => assert!(kept.out.len() > before),
                Outcome::Merged(_) | Outcome::Held => {}
            }
        }
        gro.flush(&mut kept);
        assert_eq!(gro.held(), 0);
    }
    kept.out
}

/// Reasons in order of delivery.
pub fn reasons<P>(out: &[Out<P>]) -> Vec<Reason> {
    out.iter().map(|out| out.why.reason).collect()
}

/// Whether GRO or a device vouches for the checksum.
pub fn is_valid(csum: Csum) -> bool {
    matches!(csum, Csum::Unnecessary { .. })
}

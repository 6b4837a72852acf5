//! The cursor over the segments of a super-packet.
//!
//! It owns the super-packet until all is cut, and does not change it, save that chained packets are
//! detached one by one. A step that finds no room leaves everything as it was, so that segmentation
//! goes on where it stopped whenever there is room again: with the next buffer, in the next round.

use core::iter;
use core::ops::Range;

use grilse_wire::csum::Summer;
use grilse_wire::{Carve, Csum, Gso, GsoType, Packet, Place, csum, tcp, udp};

use super::layout::{L4, Layout, Segment, never_zero};
use super::list::{self, Chained};
use super::{Checksums, Invalid};

/// What is still to be cut of a super-packet.
#[derive(Clone, Debug)]
#[must_use = "nothing is cut before somebody asks"]
pub struct Segments<P> {
    packet: P,
    cut: Cut,
    /// A packet that was detached, and found no room.
    pending: Option<Chained<P>>,
}

/// Where cutting is.
#[derive(Clone, Debug)]
pub(super) struct Cut {
    layout: Layout,
    /// Payload bytes per segment.
    size: usize,
    /// Payload of the super-packet, and how much of it is cut.
    payload: usize,
    done: usize,
    /// Segments made.
    made: usize,
    place: Place,
    /// The chained packets are the segments, headers and all.
    list: bool,
}

/// There is no room for the next segment, which is still to be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom {
    /// Length of the segment in bytes.
    pub need: usize,
}

impl core::fmt::Display for NoRoom {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "no room for a segment of {} bytes", self.need)
    }
}

impl core::error::Error for NoRoom {}

impl Cut {
    pub(super) fn new<P: Packet>(packet: &mut P, checksums: Checksums) -> Result<Self, Invalid> {
        let layout = super::walk::walk(packet, checksums)?;
        if let L4::Fragments { seed, .. } = layout.l4 {
            finish_datagram(packet, &layout, seed)?;
        }
        let gso = packet.meta().gso;
        let size = usize::from(gso.size);
        // Packets of a list are whole only as long as nobody moved bytes between them; and what is
        // to be summed in each is not worth a path of its own.
        let unfinished = matches!(packet.meta().csum, Csum::Partial { .. });
        let finished = !unfinished || checksums == Checksums::Leave;
        let list = finished
            && gso.kind.contains(GsoType::FRAGLIST)
            && !gso.kind.contains(GsoType::DODGY)
            && layout.is_plain()
            && packet.is_chained()
            && packet.own_len() == layout.payload + size;
        Ok(Self {
            size,
            payload: packet.len() - layout.payload,
            done: 0,
            made: 0,
            place: Place::default(),
            list,
            layout,
        })
    }

    pub(super) fn of<P>(self, packet: P) -> Segments<P> {
        Segments { packet, cut: self, pending: None }
    }

    #[inline]
    fn next(&self) -> Option<Segment> {
        let left = self.payload - self.done;
        let len = left.min(self.size);
        let last = left == len;
        (left > 0).then_some(Segment { index: self.made, at: self.done, len, last })
    }

    fn advance(&mut self, len: usize) {
        self.done += len;
        self.made += 1;
    }

    /// Where the payload of a segment stands in the super-packet.
    fn range(&self, segment: &Segment) -> Range<usize> {
        let start = self.layout.payload + segment.at;
        start..start + segment.len
    }

    /// Whether the payload of segments is to be summed.
    #[inline]
    fn wants_sum(&self) -> bool {
        !self.list && self.layout.wants_sum()
    }
}

impl<P: Packet> Segments<P> {
    /// How many segments are still to be cut.
    pub fn remaining(&self) -> usize {
        (self.cut.payload - self.cut.done).div_ceil(self.cut.size)
    }

    /// The super-packet, less what was detached from it.
    pub fn packet(&self) -> &P {
        &self.packet
    }

    /// Gives the super-packet back, for its memory to be used again; less what was detached from it.
    pub fn into_packet(self) -> P {
        self.packet
    }

    /// The next segment as a packet that `from` makes; `None` behind the last. Its metadata is that
    /// of the super-packet, as far as it is not about segmentation.
    ///
    /// # Errors
    /// [`NoRoom`] where `from` has no packet.
    #[inline]
    pub fn cut(&mut self, from: &mut impl Carve<P>) -> Result<Option<P>, NoRoom> {
        let Some(segment) = self.cut.next() else { return Ok(None) };
        if self.cut.list && segment.index > 0 {
            return self.cut_chained(segment, from).map(Some);
        }
        let headers = self.cut.layout.headers;
        let full = NoRoom { need: headers + segment.len };
        let mut place = self.cut.place;
        let range = self.cut.range(&segment);
        let mut packet = from.carve(&self.packet, &mut place, headers, range).ok_or(full)?;
        let sum =
            if self.cut.wants_sum() { sum(&packet, headers..headers + segment.len) } else { 0 };
        let to = packet.front_mut(headers).ok_or(full)?;
        let to = to.get_mut(..headers).ok_or(full)?;
        self.write_headers(to, &segment, sum).ok_or(full)?;
        self.describe(&mut packet);
        self.cut.place = place;
        self.cut.advance(segment.len);
        Ok(Some(packet))
    }

    /// All further segments, as long as `from` has packets for them. Where it ends early,
    /// [`remaining`](Self::remaining) tells.
    pub fn packets(&mut self, from: &mut impl Carve<P>) -> impl Iterator<Item = P> {
        iter::from_fn(move || self.cut(from).ok().flatten())
    }

    /// Writes the next segment to the front of `out` and returns its length; `None` behind the last.
    ///
    /// # Errors
    /// [`NoRoom`] where `out` is shorter than the segment; nothing is written then.
    #[inline]
    pub fn write(&mut self, out: &mut [u8]) -> Result<Option<usize>, NoRoom> {
        let Some(segment) = self.cut.next() else { return Ok(None) };
        if self.cut.list && segment.index > 0 {
            return self.write_chained(segment, out).map(Some);
        }
        let headers = self.cut.layout.headers;
        let len = headers + segment.len;
        let full = NoRoom { need: len };
        let (to, payload) = out.get_mut(..len).ok_or(full)?.split_at_mut(headers);
        copy(&self.packet, self.cut.range(&segment), payload);
        let sum = if self.cut.wants_sum() { csum::sum(payload) } else { 0 };
        self.write_headers(to, &segment, sum).ok_or(full)?;
        self.cut.advance(segment.len);
        Ok(Some(len))
    }

    #[inline]
    fn write_headers(&self, to: &mut [u8], segment: &Segment, sum: u32) -> Option<()> {
        let layout = &self.cut.layout;
        let from = self.packet.front().get(..layout.payload)?;
        if self.cut.list {
            to.copy_from_slice(from);
            list::rewrite(layout, from, to, segment, &self.packet.meta().csum);
        } else {
            layout.write(from, to, segment, sum);
        }
        Some(())
    }

    /// The next packet of a list, detached.
    #[cold]
    fn detach(&mut self, segment: &Segment) -> Option<Chained<P>> {
        if let Some(pending) = self.pending.take() {
            return Some(pending);
        }
        let packet = self.packet.unchain()?;
        let segment = Segment { len: packet.len(), ..*segment };
        Some(list::restore(packet, &self.packet, &self.cut.layout, &segment))
    }

    fn cut_chained(&mut self, segment: Segment, from: &mut impl Carve<P>) -> Result<P, NoRoom> {
        let headers = self.cut.layout.headers;
        let full = NoRoom { need: headers + segment.len };
        let payload = match self.detach(&segment).ok_or(full)? {
            Chained::Whole(packet) => {
                self.cut.advance(packet.len() - headers);
                return Ok(packet);
            }
            Chained::Bare(payload) => payload,
        };
        let segment = Segment { len: payload.len(), ..segment };
        let made = from.carve(&payload, &mut Place::default(), headers, 0..segment.len);
        let Some(mut packet) = made else {
            self.pending = Some(Chained::Bare(payload));
            return Err(full);
        };
        let sum = sum(&packet, headers..headers + segment.len);
        let to = packet.front_mut(headers).and_then(|to| to.get_mut(..headers)).ok_or(full)?;
        let first = self.packet.front().get(..headers).ok_or(full)?;
        self.cut.layout.write(first, to, &segment, sum);
        *packet.meta_mut() = *self.packet.meta();
        self.describe(&mut packet);
        self.cut.advance(segment.len);
        Ok(packet)
    }

    fn write_chained(&mut self, segment: Segment, out: &mut [u8]) -> Result<usize, NoRoom> {
        let headers = self.cut.layout.headers;
        let need = headers + segment.len;
        let chained = self.detach(&segment).ok_or(NoRoom { need })?;
        let (packet, behind) = match &chained {
            Chained::Whole(packet) => (packet, 0),
            Chained::Bare(payload) => (payload, headers),
        };
        let need = behind + packet.len();
        let Some(out) = out.get_mut(..need) else {
            self.pending = Some(chained);
            return Err(NoRoom { need });
        };
        copy(packet, 0..packet.len(), &mut out[behind..]);
        if let Chained::Bare(payload) = &chained {
            let (to, payload) = (out, payload.len());
            let segment = Segment { len: payload, ..segment };
            let (to, payload) = to.split_at_mut(headers);
            let first = self.packet.front().get(..headers).ok_or(NoRoom { need })?;
            self.cut.layout.write(first, to, &segment, csum::sum(payload));
        }
        self.cut.advance(need - headers);
        Ok(need)
    }

    /// The metadata of a segment.
    #[inline]
    fn describe(&self, packet: &mut P) {
        let layout = &self.cut.layout;
        let meta = packet.meta_mut();
        meta.gso = Gso::default();
        meta.wire_len = 0;
        meta.transport = layout.at as u16;
        if self.cut.list {
            return;
        }
        meta.csum = match (layout.checksums, layout.l4) {
            (Checksums::Finish, _) | (_, L4::Fragments { .. }) => Csum::None,
            (Checksums::Leave, l4) => {
                let offset = if let L4::Tcp { .. } = l4 { tcp::CHECK } else { udp::CHECK };
                Csum::Partial { start: layout.at as u16, offset: offset as u16 }
            }
        };
    }
}

/// The sum of the bytes of a packet in `range`.
#[inline]
fn sum<P: Packet>(packet: &P, range: Range<usize>) -> u32 {
    let mut summer = Summer::default();
    for piece in packet.pieces(range) {
        summer.push(piece);
    }
    summer.fold().into()
}

/// Copies the bytes of a packet in `range` to `to`, which is as long.
fn copy<P: Packet>(packet: &P, range: Range<usize>, mut to: &mut [u8]) {
    for piece in packet.pieces(range) {
        let (here, rest) = to.split_at_mut(piece.len());
        here.copy_from_slice(piece);
        to = rest;
    }
}

/// Finishes the checksum of a datagram before it is cut into fragments, which is the last time that
/// it can be seen whole.
fn finish_datagram<P: Packet>(packet: &mut P, layout: &Layout, seed: u32) -> Result<(), Invalid> {
    let at = layout.payload;
    let header = packet.front_mut(at + udp::LEN).ok_or(Invalid::ReadOnly)?;
    header[at + udp::CHECK..at + udp::LEN].fill(0);
    let sum = csum::add(sum(packet, at..packet.len()), csum::add(seed, (packet.len() - at) as u32));
    let check = never_zero(!csum::fold(sum));
    let header = packet.front_mut(at + udp::LEN).ok_or(Invalid::ReadOnly)?;
    header[at + udp::CHECK..at + udp::LEN].copy_from_slice(&check.to_be_bytes());
    Ok(())
}

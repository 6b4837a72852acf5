//! Segments of an skb: a small head for the headers, and shares in the frames of the payload.
//!
//! No byte of a frame is copied, in whatever order head, fragments and chained packets hold it. What
//! stands in the small head of a packet belongs to that packet alone, so it is copied (as the kernel
//! copies what is linear), and so is a payload in more pieces than a packet has slots for.

use std::ops::Range;

use grilse_mem::FrameSlice;
use grilse_wire::{Carve, Packet, Place};

use crate::copy::copy;
use crate::ctx::Ctx;
use crate::skb::{NoRoom, Skb};

/// One piece of a packet.
enum Part<'a> {
    /// Bytes from this offset of a frame on.
    Frame(&'a FrameSlice, Range<usize>),
    /// Bytes of a small head.
    Small(&'a [u8]),
}

impl Part<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Frame(_, range) => range.len(),
            Self::Small(bytes) => bytes.len(),
        }
    }
}

impl Carve<Skb> for Ctx {
    #[inline]
    fn carve(
        &mut self,
        from: &Skb,
        place: &mut Place,
        headers: usize,
        payload: Range<usize>,
    ) -> Option<Skb> {
        let mut skb = self.take()?;
        let mut end = *place;
        let shared = skb.put(headers).is_ok() && share(&mut skb, from, &mut end, &payload).is_ok();
        if !shared {
            self.consume(skb);
            // How far sharing came does not matter to copying, which begins at the front.
            return self.carve_copy(from, headers, payload);
        }
        *place = end;
        *skb.meta_mut() = *from.meta();
        Some(skb)
    }
}

impl Ctx {
    #[cold]
    fn carve_copy(&mut self, from: &Skb, headers: usize, payload: Range<usize>) -> Option<Skb> {
        let mut skb = self.take()?;
        let Ok(bytes) = skb.put(headers + payload.len()) else {
            self.consume(skb);
            return None;
        };
        let mut to = &mut bytes[headers..];
        for piece in from.pieces(payload) {
            let (here, rest) = to.split_at_mut(piece.len());
            copy(here, piece);
            to = rest;
        }
        *skb.meta_mut() = *from.meta();
        Some(skb)
    }
}

/// Appends the bytes `payload` of `from` to `skb`, searching from `place` on, and leaves there the
/// piece in which they end.
#[inline]
fn share(
    skb: &mut Skb,
    from: &Skb,
    place: &mut Place,
    payload: &Range<usize>,
) -> Result<(), NoRoom> {
    let mut at = payload.start;
    while at < payload.end {
        let part = from.part(place.piece).ok_or(NoRoom)?;
        let skip = at - place.start;
        if skip >= part.len() {
            *place = Place { piece: place.piece + 1, start: place.start + part.len() };
            continue;
        }
        let len = (part.len() - skip).min(payload.end - at);
        match part {
            Part::Frame(frame, range) => {
                let mut frag = frame.clone();
                let first = range.start + skip;
                frag.set_range(first..first + len);
                skb.add_frag(frag).map_err(|_| NoRoom)?;
            }
            Part::Small(bytes) => copy(skb.put(len)?, &bytes[skip..skip + len]),
        }
        at += len;
    }
    Ok(())
}

impl Skb {
    /// Piece number `n`: the linear part, then the fragments, then those of each chained packet.
    #[inline]
    fn part(&self, n: usize) -> Option<Part<'_>> {
        match self.own_part(n) {
            Ok(part) => Some(part),
            Err(behind) => self.chained_part(behind),
        }
    }

    fn chained_part(&self, mut n: usize) -> Option<Part<'_>> {
        for skb in self.frag_list() {
            match skb.own_part(n) {
                Ok(part) => return Some(part),
                Err(behind) => n = behind,
            }
        }
        None
    }

    /// The same of this packet alone; `Err`: how many pieces behind its last that is.
    #[inline]
    fn own_part(&self, n: usize) -> Result<Part<'_>, usize> {
        let shell = self.shell();
        let Some(frag) = n.checked_sub(1) else {
            let start = shell.start as usize;
            return Ok(match &shell.head {
                Some(frame) => Part::Frame(frame, start..start + shell.linear as usize),
                None => Part::Small(self.linear()),
            });
        };
        let frags = self.frag_slots();
        match frags.get(frag) {
            Some(Some(frame)) => {
                Ok(Part::Frame(frame, frame.offset()..frame.offset() + frame.len()))
            }
            _ => Err(frag - frags.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use grilse_mem::{FramePool, Role};

    use super::*;
    use crate::{Memory, copied_bytes};

    fn bytes(skb: &Skb) -> Vec<u8> {
        skb.pieces(0..skb.len()).collect::<Vec<_>>().concat()
    }

    /// Every layout, cut at every size: the same bytes come out, and those of frames uncopied.
    #[test]
    fn payload_is_shared_in_whatever_it_stands() {
        let memory = Memory::new(512, None).unwrap();
        let mut ctx = Ctx::new(memory.seat(Role::Worker)).unwrap();
        let mut pool = FramePool::new(16, 1024, None).unwrap();
        let mut frame = |range: Range<usize>| {
            let mut frame = pool.take().unwrap();
            for (i, byte) in frame.bytes_mut().unwrap().iter_mut().enumerate() {
                *byte = i as u8;
            }
            frame.set_range(range);
            frame
        };
        let mut skb = ctx.build(frame(0..1024), 100, 60).unwrap();
        skb.add_frag(frame(7..90)).unwrap();
        skb.add_frag(frame(0..1)).unwrap();
        for _ in 0..2 {
            let mut chained = ctx.build(frame(0..1024), 3, 11).unwrap();
            chained.add_frag(frame(0..33)).unwrap();
            skb.chain(chained).unwrap();
        }
        let whole = bytes(&skb);
        for size in 1..=whole.len() {
            let (mut place, copied) = (Place::default(), copied_bytes());
            for at in (20..whole.len()).step_by(size) {
                let range = at..(at + size).min(whole.len());
                let mut seg = ctx.carve(&skb, &mut place, 5, range.clone()).unwrap();
                assert_eq!(seg.front_mut(5).unwrap().len(), 5);
                assert_eq!(bytes(&seg)[5..], whole[range]);
                ctx.consume(seg);
            }
            assert_eq!(copied_bytes(), copied);
        }
        ctx.consume(skb);
        ctx.end();
        assert_eq!((memory.ledgers().shells.in_use, pool.ledger().in_use), (0, 0));
    }

    /// Small heads are copied, also behind frames, where only a copy of all makes a packet.
    #[test]
    fn small_heads_are_copied() {
        let memory = Memory::new(512, None).unwrap();
        let mut ctx = Ctx::new(memory.seat(Role::Worker)).unwrap();
        let mut pool = FramePool::new(4, 1024, None).unwrap();
        let mut skb = ctx.take().unwrap();
        skb.put(30).unwrap().fill(1);
        skb.add_frag(pool.take().unwrap()).unwrap();
        let mut chained = ctx.take().unwrap();
        chained.put(40).unwrap().fill(2);
        skb.chain(chained).unwrap();
        let whole = bytes(&skb);
        let mut place = Place::default();
        for range in [10..30, 30..1054, 1054..1094, 0..1094] {
            if range.start == 0 {
                place = Place::default();
            }
            let seg = ctx.carve(&skb, &mut place, 0, range.clone()).unwrap();
            assert_eq!(bytes(&seg), whole[range]);
            ctx.consume(seg);
        }
        assert!(
            ctx.carve(&skb, &mut Place::default(), 1000, 0..1094).is_none(),
            "too much to copy"
        );
        ctx.consume(skb);
        ctx.end();
        assert_eq!((memory.ledgers().shells.in_use, pool.ledger().in_use), (0, 0));
    }
}

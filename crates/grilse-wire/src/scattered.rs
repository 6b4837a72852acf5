//! A packet in pieces of the crate `bytes`: merging moves pieces, and copies no payload.
//!
//! The first piece holds the headers, and headroom in front of them where the program left some. It
//! is a [`BytesMut`], for headers are written. The others are payload, in order, read only, and none
//! of them is empty. Only [`gather`](Packet::gather) copies, and only where headers reach into a
//! second piece.

use alloc::vec::Vec;
use core::ops::Range;

use bytes::{Buf, Bytes, BytesMut};

use crate::{Carve, Heap, How, Meta, Packet, Place, Refused};

/// A packet in a [`BytesMut`] and perhaps more [`Bytes`], for programs that read into such (feature
/// `bytes`).
///
/// A packet that merges gives its payload to the head: 32 bytes a segment and no copy, in a list
/// that grows as a vector does. Nothing else is allocated where buffers were split from a larger
/// one; a buffer that is a vector of its own costs `bytes` a counter when it is first shared. Whole
/// packets ([`How::Whole`]) cannot be chained.
#[derive(Clone, Debug, Default)]
pub struct Scattered {
    first: BytesMut,
    /// Bytes of `first` in front of the packet.
    headroom: usize,
    more: Vec<Bytes>,
    more_len: usize,
    meta: Meta,
}

impl Scattered {
    /// Pieces that a packet has at most. One `writev` takes them all, a vnet header in front: Linux
    /// stops at 1,024 buffers (`UIO_MAXIOV`).
    pub const MAX_PIECES: usize = 1023;

    /// A packet of these bytes.
    pub fn new(bytes: BytesMut, meta: Meta) -> Self {
        Self { first: bytes, meta, ..Self::default() }
    }

    /// The same, where the packet begins at `headroom` and the bytes before it are free for
    /// [`push`](Packet::push).
    ///
    /// # Panics
    /// Where `headroom` is larger than `bytes`.
    pub fn with_headroom(bytes: BytesMut, headroom: usize, meta: Meta) -> Self {
        assert!(headroom <= bytes.len(), "the headroom lies within the buffer");
        Self { headroom, ..Self::new(bytes, meta) }
    }

    /// Takes the packet apart: the first buffer, with the headroom still in front, and what lies
    /// behind it.
    pub fn into_pieces(self) -> (BytesMut, Vec<Bytes>) {
        (self.first, self.more)
    }

    /// Makes the bytes from `at` on, where they are in the first buffer, a piece of their own, which
    /// segments then share: `at` is where the payload of a super-packet begins that was read in one
    /// piece. Nothing is copied. Does nothing where the first buffer ends before.
    pub fn split(&mut self, at: usize) {
        if at < self.front_len() {
            let payload = self.first.split_off(self.headroom + at).freeze();
            self.more_len += payload.len();
            self.more.insert(0, payload);
        }
    }

    fn front_len(&self) -> usize {
        self.first.len() - self.headroom
    }

    /// Copies bytes of the other pieces behind the first until that has `n`, which the packet has.
    #[cold]
    fn pull(&mut self, n: usize) {
        let mut missing = n - self.front_len();
        self.first.reserve(missing);
        let mut emptied = 0;
        for piece in &mut self.more {
            let take = missing.min(piece.len());
            self.first.extend_from_slice(&piece[..take]);
            piece.advance(take);
            self.more_len -= take;
            missing -= take;
            emptied += usize::from(piece.is_empty());
            if missing == 0 {
                break;
            }
        }
        self.more.drain(..emptied);
    }
}

impl Packet for Scattered {
    fn len(&self) -> usize {
        self.front_len() + self.more_len
    }

    fn front(&self) -> &[u8] {
        &self.first[self.headroom..]
    }

    fn gather(&mut self, n: usize) -> Option<&[u8]> {
        if n > self.len() {
            return None;
        }
        if n > self.front_len() {
            self.pull(n);
        }
        Some(self.front())
    }

    fn front_mut(&mut self, n: usize) -> Option<&mut [u8]> {
        self.gather(n)?;
        Some(&mut self.first[self.headroom..][..n])
    }

    fn headroom(&self) -> usize {
        self.headroom
    }

    fn push(&mut self, n: usize) -> Option<&mut [u8]> {
        self.headroom = self.headroom.checked_sub(n)?;
        Some(&mut self.first[self.headroom..])
    }

    fn pieces(&self, range: Range<usize>) -> impl Iterator<Item = &[u8]> {
        let all = core::iter::once(self.front()).chain(self.more.iter().map(|piece| &piece[..]));
        // Where the range begins and ends, counted from the piece that comes next.
        let Range { mut start, mut end } = range;
        all.filter_map(move |piece| {
            let (from, to) = (start.min(piece.len()), end.min(piece.len()));
            (start, end) = (start - from, end - to);
            piece.get(from..to).filter(|part| !part.is_empty())
        })
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }

    fn meta_mut(&mut self) -> &mut Meta {
        &mut self.meta
    }

    fn absorb(
        &mut self,
        mut other: Self,
        skip: usize,
        how: How,
    ) -> Result<Option<Self>, Refused<Self>> {
        // The piece that holds the headers, and those behind it.
        let pieces = 1 + self.more.len() + 1 + other.more.len();
        if how == How::Whole || pieces > Self::MAX_PIECES || other.gather(skip).is_none() {
            return Err(Refused(other));
        }
        let mut payload = core::mem::take(&mut other.first);
        payload.advance(core::mem::take(&mut other.headroom) + skip);
        self.more_len += payload.len() + core::mem::take(&mut other.more_len);
        if !payload.is_empty() {
            self.more.push(payload.freeze());
        }
        self.more.append(&mut other.more);
        Ok(Some(other))
    }
}

/// Segments whose headers are a buffer from the heap, and whose payload is shared; what lies in the
/// first buffer of the super-packet is copied behind the headers ([`Scattered::split`]).
impl Carve<Scattered> for Heap {
    fn carve(
        &mut self,
        from: &Scattered,
        place: &mut Place,
        headers: usize,
        payload: Range<usize>,
    ) -> Option<Scattered> {
        let front = from.front();
        let copied = &front[payload.start.min(front.len())..payload.end.min(front.len())];
        let mut first = BytesMut::with_capacity(headers + copied.len());
        first.resize(headers, 0);
        first.extend_from_slice(copied);
        let mut segment = Scattered::new(first, from.meta);

        // The first place is that of the first buffer, which is no piece of `more`.
        let mut at = *place;
        if at.piece == 0 {
            at = Place { piece: 1, start: front.len() };
        }
        while let Some(piece) = from.more.get(at.piece - 1).filter(|_| at.start < payload.end) {
            let end = at.start + piece.len();
            let part = payload.start.clamp(at.start, end)..payload.end.min(end);
            if !part.is_empty() {
                segment.more_len += part.len();
                segment.more.push(piece.slice(part.start - at.start..part.end - at.start));
            }
            if end > payload.end {
                break;
            }
            at = Place { piece: at.piece + 1, start: end };
        }
        if segment.more.len() >= Scattered::MAX_PIECES {
            return None;
        }
        *place = at;
        Some(segment)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use proptest::prelude::*;

    use super::*;

    fn whole(packet: &Scattered) -> Vec<u8> {
        packet.pieces(0..packet.len()).flatten().copied().collect()
    }

    #[test]
    fn merging_copies_no_payload() {
        let mut head = Scattered::new(BytesMut::from(&[1, 2, 3][..]), Meta::default());
        let payload = BytesMut::from(&[9, 9, 4, 5][..]);
        let at = payload.as_ptr().wrapping_add(2);
        let emptied =
            head.absorb(Scattered::new(payload, Meta::default()), 2, How::Bytes).unwrap().unwrap();
        assert!(emptied.is_empty());
        assert_eq!(head.pieces(3..5).next().map(<[u8]>::as_ptr), Some(at));
        let (first, more) = head.into_pieces();
        assert_eq!((&first[..], &more[0][..]), (&[1, 2, 3][..], &[4, 5][..]));
    }

    #[test]
    fn what_one_writev_cannot_take_is_refused() {
        let one = || Scattered::new(BytesMut::from(&[7][..]), Meta::default());
        let mut head = one();
        for _ in 1..Scattered::MAX_PIECES {
            assert!(head.absorb(one(), 0, How::Bytes).is_ok());
        }
        let Err(Refused(back)) = head.absorb(one(), 0, How::Bytes) else { panic!("taken") };
        assert_eq!((back.len(), head.len()), (1, Scattered::MAX_PIECES));
        assert!(one().absorb(one(), 0, How::Whole).is_err());
    }

    #[test]
    fn segments_share_what_was_split_off() {
        let mut packet = Scattered::new(BytesMut::from(&[1, 2, 3, 4, 5, 6][..]), Meta::default());
        let payload = packet.front()[2..].as_ptr();
        packet.split(2);
        packet.split(2);
        assert_eq!((packet.front().len(), packet.len(), packet.more.len()), (2, 6, 1));
        let mut place = Place::default();
        let segment = Heap.carve(&packet, &mut place, 2, 2..4).unwrap();
        assert_eq!(segment.pieces(2..4).next().map(<[u8]>::as_ptr), Some(payload));
        let segment = Heap.carve(&packet, &mut place, 0, 4..6).unwrap();
        assert_eq!(whole(&segment), [5, 6]);
    }

    proptest! {
        /// Cut from the front to the end, the segments are the payload, wherever pieces end.
        #[test]
        fn segments_are_the_payload(
            parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..12), 1..6),
            start in 0usize..8, size in 1usize..9,
        ) {
            let packet_of = |bytes: &[u8]| Scattered::new(BytesMut::from(bytes), Meta::default());
            let mut packet = packet_of(&parts[0]);
            for part in &parts[1..] {
                packet.absorb(packet_of(part), 0, How::Bytes).unwrap();
            }
            let bytes = parts.concat();
            let mut place = Place::default();
            let mut at = start.min(bytes.len());
            while at < bytes.len() {
                let end = bytes.len().min(at + size);
                let segment = Heap.carve(&packet, &mut place, 3, at..end).unwrap();
                prop_assert_eq!(&whole(&segment)[3..], &bytes[at..end]);
                prop_assert!(segment.front().len() >= 3);
                at = end;
            }
        }

        /// A vector of bytes is the oracle: pieces, headroom and gathering change none of them.
        #[test]
        fn equals_one_vector(
            headroom in 0usize..9,
            parts in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..12), 0usize..12), 1..6),
            gather in 0usize..40, push in 0usize..9, from in 0usize..40, len in 0usize..40,
        ) {
            let buffer = |bytes: &[u8]| {
                let mut buffer = BytesMut::zeroed(headroom);
                buffer.extend_from_slice(bytes);
                Scattered::with_headroom(buffer, headroom, Meta::default())
            };
            let mut oracle = parts[0].0.clone();
            let mut packet = buffer(&oracle);
            for (bytes, skip) in &parts[1..] {
                let skip = *skip.min(&bytes.len());
                oracle.extend_from_slice(&bytes[skip..]);
                let emptied = packet.absorb(buffer(bytes), skip, How::Bytes).unwrap().unwrap();
                prop_assert_eq!((emptied.len(), emptied.headroom()), (0, 0));
            }
            prop_assert_eq!(packet.len(), oracle.len());
            let gathered = packet.gather(gather).map(|front| front[..gather].to_vec());
            prop_assert_eq!(gathered.as_deref(), oracle.get(..gather));
            if packet.push(push).is_some() {
                packet.front_mut(push).unwrap().fill(0xaa);
                oracle.splice(..0, core::iter::repeat_n(0xaa, push));
            } else {
                prop_assert!(push > headroom);
            }
            prop_assert_eq!(whole(&packet), oracle.clone());
            let (from, to) = (from.min(oracle.len()), (from + len).min(oracle.len()));
            let range: Vec<u8> = packet.pieces(from..to).flatten().copied().collect();
            prop_assert_eq!(&range[..], &oracle[from..to]);
            prop_assert!(packet.more.iter().all(|piece| !piece.is_empty()));
        }
    }
}

//! The plainest packet: one vector.

use alloc::vec::Vec;
use core::ops::Range;

use crate::{Carve, How, Meta, Packet, Place, Refused};

/// A packet in one vector, for programs that bring their own bytes and for tests.
///
/// Merging appends to the vector as far as its capacity reaches, and is refused beyond: nothing is
/// allocated while packets flow. Whole packets ([`How::Whole`]) cannot be chained.
#[derive(Clone, Debug, Default)]
pub struct Linear {
    bytes: Vec<u8>,
    head: usize,
    meta: Meta,
}

impl Linear {
    /// A packet of these bytes. Its capacity for merging is that of the vector.
    pub fn new(bytes: Vec<u8>, meta: Meta) -> Self {
        Self { bytes, head: 0, meta }
    }

    /// The same, where the packet begins at `headroom` and the bytes before it are free for
    /// [`push`](Packet::push).
    ///
    /// # Panics
    /// Where `headroom` is larger than the vector.
    pub fn with_headroom(bytes: Vec<u8>, headroom: usize, meta: Meta) -> Self {
        assert!(headroom <= bytes.len(), "the headroom lies within the vector");
        Self { bytes, head: headroom, meta }
    }

    /// The bytes of the packet.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[self.head..]
    }

    /// Takes the vector back, with the headroom still in front.
    pub fn into_vec(self) -> Vec<u8> {
        self.bytes
    }
}

impl Packet for Linear {
    fn len(&self) -> usize {
        self.bytes.len() - self.head
    }

    fn front(&self) -> &[u8] {
        self.bytes()
    }

    fn gather(&mut self, n: usize) -> Option<&[u8]> {
        (n <= self.len()).then(|| self.bytes())
    }

    fn front_mut(&mut self, n: usize) -> Option<&mut [u8]> {
        self.bytes[self.head..].get_mut(..n)
    }

    fn headroom(&self) -> usize {
        self.head
    }

    fn push(&mut self, n: usize) -> Option<&mut [u8]> {
        self.head = self.head.checked_sub(n)?;
        Some(&mut self.bytes[self.head..])
    }

    fn trim(&mut self, len: usize) -> bool {
        self.bytes.truncate(self.head + len);
        true
    }

    fn pieces(&self, range: Range<usize>) -> impl Iterator<Item = &[u8]> {
        core::iter::once(&self.bytes()[range])
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
        let payload = &other.bytes()[skip..];
        let room = self.bytes.capacity() - self.bytes.len();
        if how == How::Whole || payload.len() > room {
            return Err(Refused(other));
        }
        self.bytes.extend_from_slice(payload);
        other.bytes.clear();
        other.head = 0;
        Ok(Some(other))
    }
}

/// Segments in vectors from the heap, one for each, payload copied.
#[derive(Clone, Copy, Debug, Default)]
pub struct Heap;

impl Carve<Linear> for Heap {
    fn carve(
        &mut self,
        from: &Linear,
        _: &mut Place,
        headers: usize,
        payload: Range<usize>,
    ) -> Option<Linear> {
        let mut bytes = Vec::with_capacity(headers + payload.len());
        bytes.resize(headers, 0);
        bytes.extend_from_slice(&from.bytes()[payload]);
        Some(Linear::new(bytes, from.meta))
    }
}

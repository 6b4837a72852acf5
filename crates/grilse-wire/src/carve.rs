//! The trait of who makes segments: a packet of given headers and of a part of another's payload.

use core::ops::Range;

/// Makes packets out of parts of others, as the kernel's `skb_segment` does.
///
/// Implemented by whatever packets are taken from: a context with its caches for an skb,
/// [`Heap`](crate::Heap) for one vector. Segmentation asks for one packet at a time, from the front
/// of the payload to its end.
pub trait Carve<P> {
    /// A packet of `headers` bytes, contiguous and writable, whose values are arbitrary, and behind
    /// them the bytes `payload` of `from`: shared with it where the implementor can, else copied.
    /// It has the [`Meta`](crate::Meta) of `from`.
    ///
    /// `place` is the default at first, and passed on from packet to packet, so that nobody has to
    /// search where the last one ended; who has no use for it leaves it alone.
    ///
    /// `None`: no memory is left, or more headers or pieces are asked for than one packet can have.
    /// `place` is then as it was, and the same call may succeed later.
    fn carve(
        &mut self,
        from: &P,
        place: &mut Place,
        headers: usize,
        payload: Range<usize>,
    ) -> Option<P>;
}

/// A piece of a packet that is not contiguous.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Number of the piece, from 0.
    pub piece: usize,
    /// Offset in the packet of its first byte.
    pub start: usize,
}

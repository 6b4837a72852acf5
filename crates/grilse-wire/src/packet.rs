//! The trait that stands between offload and whoever owns the bytes.

use core::ops::Range;

use crate::Meta;

/// A packet that GRO can hold, read, merge and finish.
///
/// The bytes begin at the link header. A part of them may be contiguous only after a
/// [`gather`](Packet::gather); how the rest is stored (page fragments, a chain, one vector) is the
/// implementor's own matter, and no result of GRO depends on it.
pub trait Packet: Sized {
    /// Length in bytes of the whole packet.
    fn len(&self) -> usize;

    /// Whether the packet has no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes that are contiguous now, from the front on; costs nothing. The kernel's frag0:
    /// the linear part, or the first fragment where the linear part is empty.
    fn front(&self) -> &[u8];

    /// At least the first `n` bytes, contiguous; may move bytes. `None`: the packet is shorter than
    /// `n`, or no room is left to gather them in.
    fn gather(&mut self, n: usize) -> Option<&[u8]>;

    /// The first `n` bytes, contiguous and writable; data shared with a clone is copied first.
    /// `None` as for [`gather`](Packet::gather), or where no memory is left for the copy.
    fn front_mut(&mut self, n: usize) -> Option<&mut [u8]>;

    /// Bytes that [`push`](Packet::push) can still add.
    fn headroom(&self) -> usize;

    /// Grows the packet by `n` bytes at the front and returns its new front: the new bytes, whose
    /// values are arbitrary, and what was contiguous behind them. `None`, and no change, where the
    /// headroom is smaller. [`Meta`] is not touched.
    fn push(&mut self, n: usize) -> Option<&mut [u8]>;

    /// Cuts the packet to its first `len` bytes. `false`, and no change, where it cannot; such a
    /// packet keeps its Ethernet padding.
    fn trim(&mut self, _len: usize) -> bool {
        false
    }

    /// The bytes in `range` piece by piece, in order, without moving any.
    ///
    /// # Panics
    /// May panic where `range` does not lie within the packet.
    fn pieces(&self, range: Range<usize>) -> impl Iterator<Item = &[u8]>;

    /// What travels beside the bytes.
    fn meta(&self) -> &Meta;

    /// The same, writable.
    fn meta_mut(&mut self) -> &mut Meta;

    /// Whether `other` came from the same device, socket and buffer pool, so that one packet may
    /// hold the bytes of both.
    fn same_source(&self, _other: &Self) -> bool {
        true
    }

    /// Whether further packets are chained behind this one already.
    fn is_chained(&self) -> bool {
        false
    }

    /// Length in bytes without the packets chained behind it (`skb_pagelen`).
    fn own_len(&self) -> usize {
        self.len()
    }

    /// Detaches the first chained packet. Where it was chained as [`How::Whole`], a
    /// [`push`](Self::push) of as many bytes as were skipped shows its headers again.
    fn unchain(&mut self) -> Option<Self> {
        None
    }

    /// Moves the bytes of `other`, less its first `skip`, behind those of `self`, without copying
    /// payload where the implementor can. Returns the emptied packet for reuse where one is left,
    /// or gives `other` back untouched. [`Meta`] of `self` is not touched.
    fn absorb(&mut self, other: Self, skip: usize, how: How)
    -> Result<Option<Self>, Refused<Self>>;
}

/// How [`Packet::absorb`] stores what it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Only the bytes matter: fragments move, a head page is stolen, or the packet is chained.
    Bytes,
    /// The packet is chained whole; its headers stay in its headroom, for segmentation to find.
    Whole,
}

/// The packet that [`Packet::absorb`] could not take, untouched.
#[derive(Debug)]
pub struct Refused<P>(pub P);

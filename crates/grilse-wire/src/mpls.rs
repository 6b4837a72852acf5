//! MPLS label stacks (RFC 3032).

use zerocopy::byteorder::big_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Length of one entry.
pub const LEN: usize = 4;

/// One entry of a label stack.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Entry {
    /// Label (20 bits), traffic class (3 bits), bottom of stack (1 bit), TTL (8 bits).
    pub word: U32,
}

impl Entry {
    /// No entry follows, in `word`.
    pub const BOTTOM: u32 = 0x0000_0100;

    /// The label, 20 bits.
    pub fn label(&self) -> u32 {
        self.word.get() >> 12
    }
}

//! 802.1Q and 802.1ad tags inside the frame.

use zerocopy::byteorder::big_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Length of a tag: these two words, of which the ethertype is that of what follows.
pub const LEN: usize = 4;

/// A tag as it follows its tag protocol identifier.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Header {
    /// Priority (3 bits), drop eligible (1 bit), VLAN id (12 bits).
    pub tci: U16,
    /// Ethertype of what follows.
    pub ethertype: U16,
}

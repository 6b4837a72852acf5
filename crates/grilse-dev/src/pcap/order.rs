//! The byte order of a file or section.
//!
//! The readers index: whoever calls them has checked that the field lies inside.

/// The byte order of the machine that wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Little,
    Big,
}

impl Order {
    /// The order in which the first four of `bytes` say `magic`.
    pub(super) fn of_magic(bytes: &[u8], magic: u32) -> Option<Self> {
        [Self::Little, Self::Big].into_iter().find(|order| order.u32(bytes, 0) == magic)
    }

    pub(super) fn u16(self, bytes: &[u8], at: usize) -> u16 {
        let field = [bytes[at], bytes[at + 1]];
        match self {
            Self::Little => u16::from_le_bytes(field),
            Self::Big => u16::from_be_bytes(field),
        }
    }

    pub(super) fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let field = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        match self {
            Self::Little => u32::from_le_bytes(field),
            Self::Big => u32::from_be_bytes(field),
        }
    }

    pub(super) fn i64(self, bytes: &[u8; 8]) -> i64 {
        match self {
            Self::Little => i64::from_le_bytes(*bytes),
            Self::Big => i64::from_be_bytes(*bytes),
        }
    }
}

//! The two file formats, and the magic numbers that tell them apart.

use std::path::Path;

/// Magic number of a classic file with microseconds, in the byte order of its writer.
pub(super) const MICRO_MAGIC: u32 = 0xa1b2_c3d4;
/// Magic number of a classic file with nanoseconds.
pub(super) const NANO_MAGIC: u32 = 0xa1b2_3c4d;
/// Type of the block that opens a pcapng section; the same in both byte orders.
pub(super) const SECTION: u32 = 0x0a0d_0d0a;
/// What a section header says in the byte order of its section.
pub(super) const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;

/// A capture file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Classic pcap: one link type, one time resolution, no comments.
    Pcap,
    /// pcapng: interfaces with a link type and a resolution each, comments per packet.
    Pcapng,
}

impl Format {
    /// The format that a file name asks for by its suffix, `.pcap` or `.pcapng` in any case;
    /// `None` for every other name.
    pub fn of_path(path: &Path) -> Option<Self> {
        let suffix = path.extension()?;
        if suffix.eq_ignore_ascii_case("pcap") {
            Some(Self::Pcap)
        } else if suffix.eq_ignore_ascii_case("pcapng") {
            Some(Self::Pcapng)
        } else {
            None
        }
    }
}

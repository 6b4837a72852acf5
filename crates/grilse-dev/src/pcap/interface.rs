//! What a capture says of the interface that its packets were taken from.

use super::Resolution;

/// Link types whose packets start with something that leads to an IP header. The numbers are
/// those of the registry at <https://www.tcpdump.org/linktypes.html>.
pub mod link_type {
    /// Ethernet header.
    pub const ETHERNET: u16 = 1;
    /// An IPv4 or IPv6 header.
    pub const RAW: u16 = 101;
    /// Linux cooked capture, 16 bytes.
    pub const LINUX_SLL: u16 = 113;
    /// An IPv4 header.
    pub const IPV4: u16 = 228;
    /// An IPv6 header.
    pub const IPV6: u16 = 229;
    /// Linux cooked capture version 2, 20 bytes.
    pub const LINUX_SLL2: u16 = 276;
}

/// One interface of a capture. A classic file has exactly one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// What a packet's first byte is, see [`link_type`].
    pub link_type: u16,
    /// Most bytes that were kept of a packet; 0: all.
    pub snaplen: u32,
    /// Length of a tick of its packets' times.
    pub resolution: Resolution,
    /// Seconds to add to its packets' times.
    pub offset_s: i64,
    /// `if_name`, by its rule UTF-8, kept as it is.
    pub name: Option<Vec<u8>>,
    /// `if_description`, likewise.
    pub description: Option<Vec<u8>>,
}

impl Interface {
    /// An interface without limit, offset or name.
    pub const fn new(link_type: u16, resolution: Resolution) -> Self {
        Self { link_type, snaplen: 0, resolution, offset_s: 0, name: None, description: None }
    }

    /// The ticks that come closest to so many nanoseconds since 1970, between 0 and the largest.
    pub fn ticks(&self, ns: u64) -> u64 {
        let ns = i128::from(ns) - i128::from(self.offset_s) * 1_000_000_000;
        self.resolution.ticks(u128::try_from(ns).unwrap_or(0))
    }

    /// Bytes of memory that it holds.
    pub(super) fn footprint(&self) -> usize {
        let text = |text: &Option<Vec<u8>>| text.as_ref().map_or(0, Vec::len);
        size_of::<Self>() + text(&self.name) + text(&self.description)
    }
}

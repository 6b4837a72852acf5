//! The Ethernet header and its tags.

use alloc::vec::Vec;

use crate::VlanTag;

/// An Ethernet header with the tags that stand in the frame.
#[derive(Clone, Copy, Debug)]
pub struct Eth<'a> {
    /// Destination address.
    pub dst: [u8; 6],
    /// Source address.
    pub src: [u8; 6],
    /// Tags, outermost first.
    pub tags: &'a [VlanTag],
    /// Zero bytes behind the packet, as a device pads short frames.
    pub padding: usize,
}

impl Default for Eth<'_> {
    /// From 02:00:00:00:00:01 to 02:00:00:00:00:02, without tags or padding.
    fn default() -> Self {
        Self { dst: [2, 0, 0, 0, 0, 2], src: [2, 0, 0, 0, 0, 1], tags: &[], padding: 0 }
    }
}

impl Eth<'_> {
    /// Header and tags, in front of a packet of this ethertype.
    pub(super) fn header(&self, ethertype: u16) -> Vec<u8> {
        let mut bytes = Vec::from([self.dst, self.src].as_flattened());
        for tag in self.tags {
            bytes.extend_from_slice(&tag.tpid.to_be_bytes());
            bytes.extend_from_slice(&tag.tci.to_be_bytes());
        }
        bytes.extend_from_slice(&ethertype.to_be_bytes());
        bytes
    }
}

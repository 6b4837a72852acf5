//! A packet as its frame stands on the wire: with the accelerated VLAN tag back in its place.

use grilse_packet::Skb;
use grilse_wire::Packet;

/// Offset of a VLAN tag in an Ethernet frame.
const TAG_AT: usize = 12;

/// The bytes of a packet's frame, piece by piece.
#[derive(Debug)]
pub struct OnWire<'a> {
    skb: &'a Skb,
    tag: Option<[u8; 4]>,
}

impl<'a> OnWire<'a> {
    /// Looks at a packet.
    pub fn new(skb: &'a Skb) -> Self {
        let tag = skb.meta().vlan.map(|tag| {
            let ([a, b], [c, d]) = (tag.tpid.to_be_bytes(), tag.tci.to_be_bytes());
            [a, b, c, d]
        });
        Self { skb, tag }
    }

    /// Length of the frame in bytes.
    pub fn len(&self) -> usize {
        self.skb.len() + self.tag_len()
    }

    /// Whether the frame has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that the tag adds: offsets behind the addresses grow by so much.
    pub fn tag_len(&self) -> usize {
        self.tag.map_or(0, |tag| tag.len())
    }

    /// The pieces, in order; none is empty.
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        // Only a frame with two addresses can have had a tag taken out.
        let split = if self.tag.is_some() { TAG_AT } else { 0 };
        let tag = self.tag.as_ref().map(|tag| &tag[..]);
        self.skb.pieces(0..split).chain(tag).chain(self.skb.pieces(split..self.skb.len()))
    }
}

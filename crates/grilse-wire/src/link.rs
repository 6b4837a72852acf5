//! Link types: where the network header begins, and what it is.
//!
//! Capture formats number them (`LINKTYPE_*`); a TUN device carries raw IP, TAP and sockets carry
//! Ethernet. Only the outermost link header is read: in-band VLAN tags are the
//! [dissector](crate::dissect)'s.

use crate::eth::{self, ethertype};

/// Type of the link header that a frame begins with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Type {
    /// Ethernet, 14 bytes, or IEEE 802.3 with a length for a type.
    #[default]
    Ethernet,
    /// None: an IP packet, of the version that its first four bits tell.
    Raw,
    /// Linux cooked capture v1, 16 bytes with the ethertype at their end.
    Sll,
    /// Linux cooked capture v2, 20 bytes with the ethertype at their front.
    Sll2,
}

/// The frame ends before its link header does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Short {
    /// Bytes that the link header takes.
    pub need: u16,
}

impl Type {
    /// The type of a `LINKTYPE_*` number of pcap and pcapng. `None`: one that Grilse does not read.
    pub fn from_pcap(number: u16) -> Option<Self> {
        match number {
            1 => Some(Self::Ethernet),
            // LINKTYPE_RAW, and the two that state the version, which the packet states as well.
            101 | 228 | 229 => Some(Self::Raw),
            113 => Some(Self::Sll),
            276 => Some(Self::Sll2),
            _ => None,
        }
    }

    /// The `LINKTYPE_*` number to write.
    pub fn to_pcap(self) -> u16 {
        match self {
            Self::Ethernet => 1,
            Self::Raw => 101,
            Self::Sll => 113,
            Self::Sll2 => 276,
        }
    }

    /// Length of the link header in bytes.
    pub fn header_len(self) -> u16 {
        match self {
            Self::Ethernet => eth::LEN as u16,
            Self::Raw => 0,
            Self::Sll => 16,
            Self::Sll2 => 20,
        }
    }

    /// The type whose header has this length in bytes; Ethernet where none has.
    pub fn of_header(len: u16) -> Self {
        let others = [Self::Raw, Self::Sll, Self::Sll2];
        others.into_iter().find(|link| link.header_len() == len).unwrap_or_default()
    }

    /// Offset of the network header and its ethertype, in host order, as the kernel sets
    /// `skb->protocol`: for Ethernet as `eth_type_trans` does, and 0 for raw bytes that begin like
    /// neither version of IP.
    ///
    /// # Errors
    /// [`Short`] where `frame` is cut within the link header, and for a raw frame without bytes.
    pub fn network(self, frame: &[u8]) -> Result<(u16, u16), Short> {
        let len = self.header_len();
        let word = |at: usize| frame.get(at..at + 2).map(|w| u16::from_be_bytes([w[0], w[1]]));
        let protocol = match self {
            Self::Ethernet => word(12).map(|word| length_or_type(word, frame)),
            Self::Raw => frame.first().map(|first| match first >> 4 {
                4 => ethertype::IPV4,
                6 => ethertype::IPV6,
                _ => 0,
            }),
            Self::Sll => word(14),
            Self::Sll2 => word(0).filter(|_| frame.len() >= usize::from(len)),
        };
        protocol.map(|protocol| (len, protocol)).ok_or(Short { need: len.max(1) })
    }
}

/// The end of the kernel's `eth_type_trans`: below 0x600 the word is a length, and an IEEE 802.3
/// frame follows, which is Novell's raw IPX where it begins with an IPX checksum of 0xffff, and
/// 802.2 otherwise.
fn length_or_type(word: u16, frame: &[u8]) -> u16 {
    if word >= 0x600 {
        word
    } else if frame[eth::LEN..].starts_with(&[0xff, 0xff]) {
        ethertype::RAW_802_3
    } else {
        ethertype::LLC_802_2
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TYPES: [Type; 4] = [Type::Ethernet, Type::Raw, Type::Sll, Type::Sll2];

    #[test]
    fn every_type_tells_where_and_what() {
        let mut frame = [0; 40];
        frame[12..16].copy_from_slice(&[0x08, 0, 0x86, 0xdd]);
        assert_eq!(Type::Ethernet.network(&frame), Ok((14, ethertype::IPV4)));
        assert_eq!(Type::Sll.network(&frame), Ok((16, ethertype::IPV6)));
        frame[..2].copy_from_slice(&[0x08, 0x06]);
        assert_eq!(Type::Sll2.network(&frame), Ok((20, ethertype::ARP)));
        assert_eq!(Type::Raw.network(&[0x45]), Ok((0, ethertype::IPV4)));
        assert_eq!(Type::Raw.network(&[0x60]), Ok((0, ethertype::IPV6)));
        assert_eq!(Type::Raw.network(&[0x50]), Ok((0, 0)));
    }

    #[test]
    fn lengths_are_not_ethertypes() {
        let mut frame = [0; 60];
        (frame[12], frame[13]) = (0x05, 0xff);
        assert_eq!(Type::Ethernet.network(&frame), Ok((14, 4)));
        (frame[14], frame[15]) = (0xff, 0xff);
        assert_eq!(Type::Ethernet.network(&frame), Ok((14, 1)));
        assert_eq!(Type::Ethernet.network(&frame[..15]), Ok((14, 4)));
        (frame[12], frame[13]) = (0x06, 0x00);
        assert_eq!(Type::Ethernet.network(&frame), Ok((14, 0x600)));
    }

    #[test]
    fn pcap_numbers_lead_back() {
        for link in TYPES {
            assert_eq!(Type::from_pcap(link.to_pcap()), Some(link));
        }
        assert_eq!(Type::from_pcap(228), Some(Type::Raw));
        assert_eq!(Type::from_pcap(229), Some(Type::Raw));
        assert_eq!(Type::from_pcap(105), None);
    }

    proptest! {
        #[test]
        fn short_exactly_where_the_header_is_cut(
            frame in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            for link in TYPES {
                let need = link.header_len().max(1);
                match link.network(&frame) {
                    Ok(_) => prop_assert!(frame.len() >= usize::from(need)),
                    Err(short) => {
                        prop_assert!(frame.len() < usize::from(need));
                        prop_assert_eq!(short, Short { need });
                    }
                }
            }
        }
    }
}

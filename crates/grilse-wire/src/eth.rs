//! Ethernet.

use zerocopy::byteorder::big_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Length of an Ethernet header.
pub const LEN: usize = 14;
/// Ethertypes, host order (`ETH_P_*`).
pub mod ethertype {
    /// IEEE 802.3 that carries Novell's raw IPX, in `skb->protocol` only.
    pub const RAW_802_3: u16 = 0x0001;
    /// IEEE 802.3 that carries an 802.2 header, in `skb->protocol` only.
    pub const LLC_802_2: u16 = 0x0004;
    /// IPv4.
    pub const IPV4: u16 = 0x0800;
    /// ARP.
    pub const ARP: u16 = 0x0806;
    /// IPv6.
    pub const IPV6: u16 = 0x86dd;
    /// Transparent Ethernet bridging.
    pub const TEB: u16 = 0x6558;
    /// MPLS, unicast.
    pub const MPLS: u16 = 0x8847;
    /// MPLS, multicast.
    pub const MPLS_MULTICAST: u16 = 0x8848;
    /// Network service header.
    pub const NSH: u16 = 0x894f;
    /// 802.1Q customer tag.
    pub const VLAN: u16 = 0x8100;
    /// 802.1ad service tag.
    pub const QINQ: u16 = 0x88a8;
}

/// An Ethernet header, without tags.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Header {
    /// Destination address.
    pub dst: [u8; 6],
    /// Source address.
    pub src: [u8; 6],
    /// Ethertype of what follows.
    pub ethertype: U16,
}

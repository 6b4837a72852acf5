//! What travels beside the bytes of a packet: the part of an `sk_buff` that offload reads and
//! writes. Plain data, one cache line, copied freely.

use core::fmt;
use core::ops::{BitOr, BitOrAssign};

/// The metadata of one packet. All offsets count bytes from the front of the frame, that is from
/// its link header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Meta {
    /// Arrival number, given by the device: the first packet of a device is 0.
    pub seq: u64,
    /// Arrival time in nanoseconds of the device's clock.
    pub time_ns: u64,
    /// Receive hash (Toeplitz over addresses and ports), 0 where the device gives none.
    pub hash: u32,
    /// Number of the interface that it came in on (`skb->dev`): packets of two never merge.
    pub interface: u32,
    /// Length on the wire in bytes, where the capture cut the frame short; 0: nothing was cut.
    pub wire_len: u32,
    /// State of the layer-4 checksum.
    pub csum: Csum,
    /// Segmentation metadata; all zero on a plain packet.
    pub gso: Gso,
    /// Ethertype of the network header, host order (`skb->protocol`).
    pub protocol: u16,
    /// Offset of the network header, which is also the length of the link header.
    pub network: u16,
    /// Offset of the transport header; valid once a parser has set it.
    pub transport: u16,
    /// Offset of the network header in the tunnel. Valid on an encapsulated super-packet.
    pub inner_network: u16,
    /// Accelerated VLAN tag: taken out of the frame by the device.
    pub vlan: Option<VlanTag>,
    /// The packet is one in a tunnel (`skb->encapsulation`): so some NICs say, and so does GRO of the
    /// super-packets that it makes of such.
    pub encapsulated: bool,
}

/// An 802.1Q or 802.1ad tag that stands beside the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VlanTag {
    /// Tag protocol identifier, host order: 0x8100 or 0x88a8.
    pub tpid: u16,
    /// Priority (3 bits), drop eligible (1 bit) and VLAN id (12 bits), host order.
    pub tci: u16,
}

/// What is known of a packet's layer-4 checksum (`skb->ip_summed`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Csum {
    /// Nobody has looked at it (`CHECKSUM_NONE`).
    #[default]
    None,
    /// Verified, for `level + 1` layer-4 headers counted from the outermost
    /// (`CHECKSUM_UNNECESSARY`, `csum_level`).
    Unnecessary {
        /// Further headers verified, 0 to 3.
        level: u8,
    },
    /// The device summed all bytes from the network header on (`CHECKSUM_COMPLETE`).
    Complete {
        /// Unfolded ones'-complement sum, of 16-bit words in network order.
        sum: u32,
    },
    /// To be finished: the field holds the pseudo-header sum (`CHECKSUM_PARTIAL`).
    Partial {
        /// Offset of the first byte to sum.
        start: u16,
        /// Offset of the checksum field from `start`.
        offset: u16,
    },
}

/// Segmentation metadata (`skb_shared_info`): how to cut a super-packet again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gso {
    /// Payload bytes per segment; 0 on a plain packet.
    pub size: u16,
    /// How many packets this one stands for; 0 on a plain packet.
    pub segs: u16,
    /// Protocols and properties.
    pub kind: GsoType,
}

/// The kernel's `SKB_GSO_*` bits.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct GsoType(pub u32);

impl GsoType {
    /// TCP over IPv4.
    pub const TCPV4: Self = Self(1 << 0);
    /// From a source that is not trusted: check before use.
    pub const DODGY: Self = Self(1 << 1);
    /// CWR stands on the first segment only.
    pub const TCP_ECN: Self = Self(1 << 2);
    /// TCP over IPv6.
    pub const TCPV6: Self = Self(1 << 4);
    /// In GRE.
    pub const GRE: Self = Self(1 << 6);
    /// In GRE with a checksum, to be computed for each segment.
    pub const GRE_CSUM: Self = Self(1 << 7);
    /// In IPv4 (`SKB_GSO_IPXIP4`).
    pub const IPXIP4: Self = Self(1 << 8);
    /// In IPv6 (`SKB_GSO_IPXIP6`).
    pub const IPXIP6: Self = Self(1 << 9);
    /// In a UDP tunnel without a checksum.
    pub const UDP_TUNNEL: Self = Self(1 << 10);
    /// In a UDP tunnel with a checksum, to be computed for each segment.
    pub const UDP_TUNNEL_CSUM: Self = Self(1 << 11);
    /// UDP, cut into IP fragments.
    pub const UDP: Self = Self(1 << 16);
    /// UDP, cut into datagrams.
    pub const UDP_L4: Self = Self(1 << 17);
    /// Whole packets chained behind the first.
    pub const FRAGLIST: Self = Self(1 << 18);
    /// CWR is accurate ECN feedback: on every segment.
    pub const TCP_ACCECN: Self = Self(1 << 19);
    /// Not the kernel's: [`TCP_FIXEDID`](Self::TCP_FIXEDID) and its inner twin speak for the IPv4
    /// header of their level in any protocol, and in any tunnel. Without it they have the kernel's
    /// meaning, which forgets them for UDP and frag lists, and confuses them within GRE and UDP.
    pub const IDS_PER_LEVEL: Self = Self(1 << 29);
    /// The outer, or only, IPv4 identification is the same on every segment.
    pub const TCP_FIXEDID: Self = Self(1 << 30);
    /// The same for the inner IPv4 header.
    pub const TCP_FIXEDID_INNER: Self = Self(1 << 31);

    /// Whether all bits of `other` are set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any bit of `other` is set.
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOr for GsoType {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for GsoType {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl fmt::Debug for GsoType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GsoType({:#x})", self.0)
    }
}

const _: () = assert!(size_of::<Meta>() <= 64, "Meta outgrew its cache line");

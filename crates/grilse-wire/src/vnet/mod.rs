//! The virtio-net header: what travels in front of a frame on TUN and TAP (`IFF_VNET_HDR`), on
//! packet sockets (`PACKET_VNET_HDR`) and in the queues of a virtual machine.
//!
//! [`Header`] is the header as it stands, and judges nothing. [`Header::to_meta`] checks it against
//! the frame it came with, as the kernel's `virtio_net_hdr_to_skb` does, because whoever wrote it
//! may lie: offsets must lie in the packet, the segmentation type must be what the packet is, and
//! `hdr_len` is never believed. The types of tunnels are refused.

mod check;
#[cfg(all(test, feature = "alloc"))]
mod tests;

pub use check::{Invalid, UDP_MAX_SEGS, Unsupported};

/// The layer-4 checksum is to be finished (`VIRTIO_NET_HDR_F_NEEDS_CSUM`), in `flags`.
pub const NEEDS_CSUM: u8 = 1;
/// The layer-4 checksum is right (`VIRTIO_NET_HDR_F_DATA_VALID`), in `flags`.
pub const DATA_VALID: u8 = 2;

/// Values of `gso_type` (`VIRTIO_NET_HDR_GSO_*`).
pub mod gso {
    /// Not a super-packet.
    pub const NONE: u8 = 0;
    /// TCP over IPv4.
    pub const TCPV4: u8 = 1;
    /// UDP to be cut into IP fragments.
    pub const UDP: u8 = 3;
    /// TCP over IPv6.
    pub const TCPV6: u8 = 4;
    /// UDP to be cut into datagrams.
    pub const UDP_L4: u8 = 5;
    /// CWR stands on the first segment only: a bit beside the TCP types.
    pub const ECN: u8 = 0x80;
}

/// How a header is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// Order of the bytes in each 16-bit field.
    pub endian: Endian,
    /// Whether `num_buffers` follows: 12 bytes instead of 10.
    pub num_buffers: bool,
}

/// Order of the bytes in a 16-bit field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endian {
    /// Lowest first: virtio 1.0 and later, and `TUNSETVNETLE`.
    Little,
    /// Highest first: `TUNSETVNETBE`.
    Big,
}

impl Endian {
    /// That of this machine.
    pub const NATIVE: Self = if cfg!(target_endian = "big") { Self::Big } else { Self::Little };
}

impl Form {
    /// What TUN, TAP and packet sockets take unless told otherwise: 10 bytes, native order.
    pub const NATIVE: Self = Self { endian: Endian::NATIVE, num_buffers: false };
    /// That of virtio 1.0 and later: 12 bytes, little-endian (virtio 1.2, 5.1.6).
    pub const VIRTIO_1: Self = Self { endian: Endian::Little, num_buffers: true };

    /// Length of the header in bytes: 10 or 12.
    pub const fn header_len(self) -> usize {
        if self.num_buffers { 12 } else { 10 }
    }
}

/// A virtio-net header, fields as they stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// [`NEEDS_CSUM`], [`DATA_VALID`].
    pub flags: u8,
    /// One of [`gso`], perhaps with [`gso::ECN`].
    pub gso_type: u8,
    /// A hint how many bytes of headers the frame begins with.
    pub hdr_len: u16,
    /// Payload bytes per segment.
    pub gso_size: u16,
    /// Offset in the frame at which the sum begins.
    pub csum_start: u16,
    /// Offset of the checksum field from `csum_start`.
    pub csum_offset: u16,
    /// Buffers that the frame is spread over; 0 where the form has no such field.
    pub num_buffers: u16,
}

impl Header {
    /// Reads the header at the front of `bytes`. `None`: they are fewer than the form takes.
    pub fn read(bytes: &[u8], form: Form) -> Option<Self> {
        let bytes = bytes.get(..form.header_len())?;
        let word = |at: usize| {
            let word = [bytes[at], bytes[at + 1]];
            match form.endian {
                Endian::Little => u16::from_le_bytes(word),
                Endian::Big => u16::from_be_bytes(word),
            }
        };
        Some(Self {
            flags: bytes[0],
            gso_type: bytes[1],
            hdr_len: word(2),
            gso_size: word(4),
            csum_start: word(6),
            csum_offset: word(8),
            num_buffers: if form.num_buffers { word(10) } else { 0 },
        })
    }

    /// Writes the header to the front of `out` and returns its length. `None`, and nothing is
    /// written, where `out` is shorter than that.
    pub fn write(&self, out: &mut [u8], form: Form) -> Option<usize> {
        let len = form.header_len();
        let out = out.get_mut(..len)?;
        let words =
            [self.hdr_len, self.gso_size, self.csum_start, self.csum_offset, self.num_buffers];
        (out[0], out[1]) = (self.flags, self.gso_type);
        for (place, word) in out[2..].chunks_exact_mut(2).zip(words) {
            place.copy_from_slice(&match form.endian {
                Endian::Little => word.to_le_bytes(),
                Endian::Big => word.to_be_bytes(),
            });
        }
        Some(len)
    }
}

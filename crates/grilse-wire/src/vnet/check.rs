//! From a header that may lie to metadata that offload relies on, and back.

use core::fmt;

use zerocopy::FromBytes;

use super::{DATA_VALID, Header, NEEDS_CSUM, gso};
use crate::dissect::{Addrs, Flow, NoFlow, dissect};
use crate::{Csum, Gso, GsoType, Meta, ipv4, tcp, udp};

/// Segments of a UDP super-packet at most (the kernel's `UDP_MAX_SEGMENTS`): a write of more fails
/// with `EINVAL`.
pub const UDP_MAX_SEGS: u16 = 128;

/// Why a header does not fit its frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invalid {
    /// No segmentation type that is known here; those of tunnels are not.
    GsoType {
        /// `gso_type` as it stands.
        gso_type: u8,
    },
    /// A segmentation type with a segment size of 0, or of 0xffff, which the kernel keeps for
    /// itself (`GSO_BY_FRAGS`).
    GsoSize {
        /// `gso_size` as it stands.
        gso_size: u16,
    },
    /// The sum begins within the network header, or the checksum lies beyond the contiguous bytes of
    /// the packet.
    CsumRange {
        /// `csum_start` as it stands.
        start: u16,
        /// `csum_offset` as it stands.
        offset: u16,
    },
    /// A super-packet in which no flow can be found.
    NoFlow(NoFlow),
    /// A super-packet of another protocol than its segmentation type says, or a fragment.
    Protocol {
        /// `gso_type` as it stands.
        gso_type: u8,
        /// Protocol that the dissector found.
        protocol: u8,
    },
    /// A super-packet whose sum does not begin at its transport header, or whose checksum is not
    /// that of its protocol.
    CsumPlace {
        /// Offset of the transport header.
        transport: u16,
        /// `csum_start` as it stands.
        start: u16,
        /// `csum_offset` as it stands.
        offset: u16,
    },
    /// A UDP super-packet without [`NEEDS_CSUM`]: its segments would have no checksum to finish.
    NeedsCsum,
    /// The transport header of a super-packet claims a length that is too small, or reaches beyond
    /// the contiguous bytes.
    HeaderLen {
        /// The length, in bytes.
        len: usize,
    },
    /// More segments than [`Gso::segs`] counts, or than [`UDP_MAX_SEGS`] where it is UDP.
    Segments {
        /// How many.
        segs: usize,
    },
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::GsoType { gso_type } => write!(f, "gso_type {gso_type:#x} is none known here"),
            Self::GsoSize { gso_size } => write!(f, "gso_size {gso_size} is no segment size"),
            Self::CsumRange { start, offset } => write!(
                f,
                "csum_start {start}, csum_offset {offset}: not within the packet, behind its \
                 network header"
            ),
            Self::NoFlow(why) => write!(f, "a super-packet without a flow: {why:?}"),
            Self::Protocol { gso_type, protocol } => {
                write!(f, "gso_type {gso_type:#x} on a packet of IP protocol {protocol}")
            }
            Self::CsumPlace { transport, start, offset } => write!(
                f,
                "csum_start {start}, csum_offset {offset}: not the checksum of the transport \
                 header at {transport}"
            ),
            Self::NeedsCsum => write!(f, "flags without NEEDS_CSUM on a UDP super-packet"),
            Self::HeaderLen { len } => write!(f, "a transport header of {len} bytes"),
            Self::Segments { segs } => write!(f, "{segs} segments are too many"),
        }
    }
}

impl core::error::Error for Invalid {}

/// What [`Header::from_meta`] cannot express.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsupported {
    /// A segmentation type without a number in virtio: a list of whole packets, or a tunnel.
    GsoType(GsoType),
    /// A super-packet whose transport header is not among the bytes given.
    Cut,
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::GsoType(kind) => write!(f, "virtio has no number for {kind:?}"),
            Self::Cut => write!(f, "the transport header is not among the contiguous bytes"),
        }
    }
}

impl core::error::Error for Unsupported {}

impl Header {
    /// Sets `csum`, `gso` and, where the header tells it, `transport` of `meta`. `front` are the
    /// contiguous bytes at the front of the frame, all headers among them, and `len` its whole
    /// length; `meta` has `network` and `protocol` set already.
    ///
    /// A super-packet is marked [`GsoType::DODGY`], and its header length is read from its own
    /// transport header. One whose payload fits one segment is taken for a plain packet, as in the
    /// kernel. [`DATA_VALID`] is believed.
    ///
    /// # Errors
    /// An [`Invalid`] names the field that lies; `meta` is then unchanged. The frame is to be
    /// dropped: the kernel answers such a write with `EINVAL`.
    pub fn to_meta(&self, front: &[u8], len: usize, meta: &mut Meta) -> Result<(), Invalid> {
        let gso = self.gso_kind()?;
        let csum = self.csum_state(front, meta.network)?;
        let mut transport = meta.transport;
        if let Csum::Partial { start, .. } = csum {
            transport = start;
        }
        meta.gso = match gso {
            Some(kind) => {
                let (at, gso) = self.super_packet(kind, front, len, meta)?;
                transport = at;
                gso
            }
            None => Gso::default(),
        };
        (meta.csum, meta.transport) = (csum, transport);
        Ok(())
    }

    /// The segmentation type; `None` on a plain packet.
    fn gso_kind(&self) -> Result<Option<GsoType>, Invalid> {
        let mut kind = match self.gso_type & !gso::ECN {
            // The kernel refuses the ECN bit alone: it compares the whole byte with NONE.
            gso::NONE if self.gso_type == gso::NONE => return Ok(None),
            gso::TCPV4 => GsoType::TCPV4,
            gso::TCPV6 => GsoType::TCPV6,
            gso::UDP if self.gso_type == gso::UDP => GsoType::UDP,
            gso::UDP_L4 if self.gso_type == gso::UDP_L4 => GsoType::UDP_L4,
            _ => return Err(Invalid::GsoType { gso_type: self.gso_type }),
        };
        if self.gso_type & gso::ECN != 0 {
            kind |= GsoType::TCP_ECN;
        }
        match self.gso_size {
            0 | 0xffff => Err(Invalid::GsoSize { gso_size: self.gso_size }),
            _ => Ok(Some(kind)),
        }
    }

    /// The checksum state, where both ends of a sum that is to be finished lie in `front`, behind the
    /// shortest network header. The kernel asks the same of all protocols.
    fn csum_state(&self, front: &[u8], network: u16) -> Result<Csum, Invalid> {
        let (start, offset) = (self.csum_start, self.csum_offset);
        if self.flags & NEEDS_CSUM != 0 {
            let end = usize::from(start) + usize::from(offset) + 2;
            if usize::from(start) < usize::from(network) + ipv4::MIN_LEN || end > front.len() {
                return Err(Invalid::CsumRange { start, offset });
            }
            Ok(Csum::Partial { start, offset })
        } else if self.flags & DATA_VALID != 0 {
            Ok(Csum::Unnecessary { level: 0 })
        } else {
            Ok(Csum::None)
        }
    }

    /// Offset of the transport header of a super-packet, and its segmentation metadata, which are
    /// all zero where one segment holds its payload.
    fn super_packet(
        &self,
        kind: GsoType,
        front: &[u8],
        len: usize,
        meta: &Meta,
    ) -> Result<(u16, Gso), Invalid> {
        let flow = dissect(front, meta.network.into(), meta.protocol).map_err(Invalid::NoFlow)?;
        let wrong = Invalid::Protocol { gso_type: self.gso_type, protocol: flow.protocol };
        // Only whole TCP and UDP packets have ports, so a fragment is refused with the rest.
        let (Some(at), Some(_)) = (flow.transport, flow.ports) else { return Err(wrong) };
        if !kind.intersects(flow_kinds(&flow)) {
            return Err(wrong);
        }
        let transport = u16::try_from(at).map_err(|_| wrong)?;
        self.check_place(kind, transport)?;
        let header_len = header_len(&front[at..], flow.protocol)?;

        // Fragments carry the UDP header as payload.
        let cut = if kind.contains(GsoType::UDP) { at } else { at + header_len };
        let payload = len.saturating_sub(cut);
        let size = self.gso_size;
        if payload <= size.into() {
            return Ok((transport, Gso::default()));
        }
        let count = payload.div_ceil(size.into());
        let limit = if kind.contains(GsoType::UDP_L4) { UDP_MAX_SEGS } else { u16::MAX };
        let segs = u16::try_from(count).ok().filter(|segs| *segs <= limit);
        let segs = segs.ok_or(Invalid::Segments { segs: count })?;
        Ok((transport, Gso { size, segs, kind: kind | GsoType::DODGY }))
    }

    /// Whether the sum of a super-packet is that of its transport header.
    fn check_place(&self, kind: GsoType, transport: u16) -> Result<(), Invalid> {
        if self.flags & NEEDS_CSUM == 0 {
            let each_needs_one = kind.contains(GsoType::UDP_L4);
            return if each_needs_one { Err(Invalid::NeedsCsum) } else { Ok(()) };
        }
        let is_udp = kind.intersects(GsoType::UDP | GsoType::UDP_L4);
        let (start, offset) = (self.csum_start, self.csum_offset);
        let check = if is_udp { udp::CHECK } else { tcp::CHECK };
        if start == transport && usize::from(offset) == check {
            Ok(())
        } else {
            Err(Invalid::CsumPlace { transport, start, offset })
        }
    }

    /// The header of a packet with this metadata; `front` as in [`to_meta`](Self::to_meta).
    ///
    /// `hdr_len` counts all headers of a super-packet and is 0 on a plain one; `num_buffers` is 1.
    /// Bits that virtio has no place for ([`GsoType::TCP_FIXEDID`], [`GsoType::TCP_ACCECN`]) are
    /// left out: a device that must keep them takes segments.
    ///
    /// # Errors
    /// An [`Unsupported`] where the packet must be segmented first.
    pub fn from_meta(meta: &Meta, front: &[u8]) -> Result<Self, Unsupported> {
        let mut header = Self { num_buffers: 1, ..Self::default() };
        match meta.csum {
            Csum::Partial { start, offset } => {
                header.flags = NEEDS_CSUM;
                (header.csum_start, header.csum_offset) = (start, offset);
            }
            Csum::Unnecessary { .. } => header.flags = DATA_VALID,
            Csum::None | Csum::Complete { .. } => {}
        }
        let Gso { size, kind, .. } = meta.gso;
        if size == 0 {
            return Ok(header);
        }
        let (gso_type, protocol) = if kind.intersects(WITHOUT_NUMBER) {
            return Err(Unsupported::GsoType(kind));
        } else if kind.contains(GsoType::TCPV4) {
            (gso::TCPV4, tcp::PROTOCOL)
        } else if kind.contains(GsoType::TCPV6) {
            (gso::TCPV6, tcp::PROTOCOL)
        } else if kind.contains(GsoType::UDP_L4) {
            (gso::UDP_L4, udp::PROTOCOL)
        } else if kind.contains(GsoType::UDP) {
            (gso::UDP, udp::PROTOCOL)
        } else {
            return Err(Unsupported::GsoType(kind));
        };
        let ecn = if kind.contains(GsoType::TCP_ECN) { gso::ECN } else { 0 };
        let segment = front.get(meta.transport.into()..).ok_or(Unsupported::Cut)?;
        let len = header_len(segment, protocol).map_err(|_| Unsupported::Cut)?;
        let hdr_len = u16::try_from(usize::from(meta.transport) + len).unwrap_or(u16::MAX);
        (header.gso_type, header.gso_size, header.hdr_len) = (gso_type | ecn, size, hdr_len);
        Ok(header)
    }
}

/// Lists of whole packets, and all tunnels.
const WITHOUT_NUMBER: GsoType = GsoType(
    GsoType::FRAGLIST.0
        | GsoType::GRE.0
        | GsoType::GRE_CSUM.0
        | GsoType::IPXIP4.0
        | GsoType::IPXIP6.0
        | GsoType::UDP_TUNNEL.0
        | GsoType::UDP_TUNNEL_CSUM.0,
);

/// The segmentation types that a flow may have.
fn flow_kinds(flow: &Flow) -> GsoType {
    match (flow.protocol, &flow.addrs) {
        (tcp::PROTOCOL, Addrs::V4 { .. }) => GsoType::TCPV4,
        (tcp::PROTOCOL, Addrs::V6 { .. }) => GsoType::TCPV6,
        (udp::PROTOCOL, _) => GsoType::UDP | GsoType::UDP_L4,
        _ => GsoType::default(),
    }
}

/// Length of the transport header at the front of `segment`, as it states itself.
fn header_len(segment: &[u8], protocol: u8) -> Result<usize, Invalid> {
    let (len, shortest) = match tcp::Header::ref_from_prefix(segment) {
        Ok((tcp, _)) if protocol == tcp::PROTOCOL => (tcp.header_len(), tcp::MIN_LEN),
        // Too short for TCP, whose shortest header is then beyond the segment.
        _ if protocol == tcp::PROTOCOL => (tcp::MIN_LEN, tcp::MIN_LEN),
        _ => (udp::LEN, udp::LEN),
    };
    if (shortest..=segment.len()).contains(&len) {
        Ok(len)
    } else {
        Err(Invalid::HeaderLen { len })
    }
}

//! Segmentation: super-packets cut into the packets that they stand for.
//!
//! [`segment`] reads the headers of a super-packet once and checks them against its
//! [`Gso`](grilse_wire::Gso) metadata; the [`Segments`] it gives then make one packet at a time, as
//! long as there is room for one. Header for header the results are those of Linux (`skb_segment`,
//! `tcp_gso_segment`, `__udp_gso_segment`, `inet_gso_segment` and their kin): TCP, UDP as datagrams
//! or as IP fragments, lists of whole packets, BIG TCP; behind VLAN tags, MPLS labels or a network
//! service header; and in IP, GRE or UDP tunnels.
//!
//! A segment is a packet of its own headers and of a share in the payload of the super-packet
//! ([`Segments::cut`]), or is written to a buffer in one piece ([`Segments::write`]). Each payload
//! byte is read once, for its checksum, and not at all where a device will finish that.
//!
//! ```
//! use grilse_offload::gso::{self, Checksums};
//! use grilse_wire::build::{Eth, Ipv4, Tcp, frame};
//! use grilse_wire::{Gso, GsoType, Heap, Linear, Meta, Packet};
//!
//! let frame = frame(Eth::default(), Ipv4::default(), Tcp::default(), &[7; 2500]);
//! let gso = Gso { size: 1000, segs: 3, kind: GsoType::TCPV4 };
//! let meta = Meta { protocol: 0x0800, network: 14, gso, ..Meta::default() };
//! let mut segments = gso::segment(Linear::new(frame, meta), Checksums::Finish).unwrap();
//!
//! // Into a buffer, where there is one, and the rest as packets.
//! let mut buffer = [0; 1514];
//! assert_eq!(segments.write(&mut buffer), Ok(Some(1054)));
//! let rest: Vec<Linear> = segments.packets(&mut Heap).collect();
//! assert_eq!(rest.iter().map(Packet::len).collect::<Vec<_>>(), [1054, 554]);
//! ```
//!
//! Not here: which device needs it, and sockets' limits on how many segments one send makes.

mod finish;
mod invalid;
mod layout;
mod list;
mod plan;
mod segments;
mod walk;

use grilse_wire::Packet;

use segments::Cut;

pub use finish::{BadPartial, finish};
pub use invalid::{Invalid, Rejected};
pub use plan::plan;
pub use segments::{NoRoom, Segments};

/// What becomes of the layer-4 checksums of segments. Those of tunnel headers are finished always.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checksums {
    /// They are finished.
    #[default]
    Finish,
    /// The device finishes them: the field holds the sum of the pseudo-header, and the segment says
    /// so ([`Csum::Partial`](grilse_wire::Csum::Partial)). No payload is read.
    Leave,
}

/// Makes ready to cut a super-packet. Its [`Meta`](grilse_wire::Meta) must say `protocol`, `network`
/// and `gso`; `gso.segs` is not believed. `csum` says whether the checksum field holds the sum of
/// the pseudo-header, as it must for UDP; where it does not, TCP segments get one.
///
/// Costs one pass over the headers, and no allocation.
///
/// # Errors
/// The packet, and what in it is not as its metadata says.
pub fn segment<P: Packet>(mut packet: P, checksums: Checksums) -> Result<Segments<P>, Rejected<P>> {
    match Cut::new(&mut packet, checksums) {
        Ok(cut) => Ok(cut.of(packet)),
        Err(why) => Err(Rejected { packet, why }),
    }
}

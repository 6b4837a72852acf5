//! What stands on the wire and beside it: header views, checksums, the flow hash, the virtio-net
//! header, and [`Packet`], the one trait that offload works on.
//!
//! Views never judge: a header is a plain struct laid over bytes by [`zerocopy`], and whoever reads
//! it decides what is wrong with it. Nothing here allocates, except the frame [`build`]er and
//! [`Linear`], which need the `alloc` feature, and `Scattered`, a packet in pieces of `BytesMut`,
//! which needs the `bytes` feature.
//!
#![cfg_attr(feature = "alloc", doc = "```")]
#![cfg_attr(not(feature = "alloc"), doc = "```ignore")]
//! use grilse_wire::build::{self, Eth, Ipv4, Tcp};
//! use grilse_wire::zerocopy::FromBytes;
//! use grilse_wire::{csum, dissect, link, tcp, toeplitz};
//!
//! let frame = build::frame(Eth::default(), Ipv4::default(), Tcp::default(), b"hello");
//!
//! // Where is the network header, whose packet is it, and which queue would a NIC choose?
//! let (network, ethertype) = link::Type::Ethernet.network(&frame).unwrap();
//! let flow = dissect::dissect(&frame, network.into(), ethertype).unwrap();
//! assert_eq!(flow.ports, Some((4000, 5000)));
//! let queue = flow.hash(&toeplitz::MICROSOFT) % 8;
//! # assert!(queue < 8);
//!
//! // Lay a view over the transport header, and verify its checksum.
//! let segment = &frame[flow.transport.unwrap()..];
//! let (tcp, _) = tcp::Header::ref_from_prefix(segment).unwrap();
//! assert_eq!(tcp.seq.get(), 1000);
//! let dissect::Addrs::V4 { src, dst } = flow.addrs else { unreachable!() };
//! let pseudo = csum::pseudo_v4(src, dst, tcp::PROTOCOL, segment.len() as u32);
//! assert_eq!(csum::fold(csum::add(pseudo, csum::sum(segment))), 0xffff);
//! ```
#![no_std]
#![deny(unsafe_code)]

#[cfg(feature = "alloc")]
extern crate alloc;

#[cfg(feature = "alloc")]
pub mod build;
mod carve;
pub mod csum;
pub mod dissect;
pub mod eth;
pub mod geneve;
pub mod gre;
pub mod gue;
pub mod icmp;
pub mod ipv4;
pub mod ipv6;
#[cfg(feature = "alloc")]
mod linear;
pub mod link;
mod meta;
pub mod mpls;
pub mod nsh;
mod packet;
mod parts;
#[cfg(feature = "bytes")]
mod scattered;
pub mod tcp;
pub mod toeplitz;
pub mod udp;
pub mod vlan;
pub mod vnet;
pub mod vxlan;

pub use carve::{Carve, Place};
#[cfg(feature = "alloc")]
pub use linear::{Heap, Linear};
pub use meta::{Csum, Gso, GsoType, Meta, VlanTag};
pub use packet::{How, Packet, Refused};
pub use parts::Parts;
#[cfg(feature = "bytes")]
pub use scattered::Scattered;
pub use zerocopy;

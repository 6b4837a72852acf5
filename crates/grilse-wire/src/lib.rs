//! What stands on the wire and beside it: header views, checksums, the flow hash, the virtio-net
//! header, and [`Packet`], the one trait that offload works on.
//!
//! Views never judge: a header is a plain struct laid over bytes, and whoever reads it decides what
//! is wrong with it. Nothing here allocates, except the frame [`build`]er and [`Linear`], which
//! need the `alloc` feature.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(feature = "alloc")]
extern crate alloc;

#[cfg(feature = "alloc")]
pub mod build;
pub mod csum;
pub mod dissect;
pub mod eth;
pub mod ipv4;
pub mod ipv6;
#[cfg(feature = "alloc")]
mod linear;
pub mod link;
mod meta;
mod packet;
pub mod tcp;
pub mod toeplitz;
pub mod udp;
pub mod vlan;

#[cfg(feature = "alloc")]
pub use linear::Linear;
pub use meta::{Csum, Gso, GsoType, Meta, VlanTag};
pub use packet::{How, Packet, Refused};

//! GRO and GSO with the results of the Linux kernel, packet for packet, on any packet type.
//!
//! [`Gro`] coalesces the packets of a flow into super-packets. It owns no buffers and does no I/O:
//! packets come in through [`Gro::push`] by value, whatever implements [`grilse_wire::Packet`],
//! and leave through a [`Sink`] in the order in which the kernel would hand them up. Each one that
//! leaves says [`Why`] it did not merge, or stopped growing. Time, receive hash and batch
//! boundaries are arguments, and nothing is allocated per packet.
//!
//! ```
//! use grilse_offload::{Config, Gro, Outcome, Reason, Why};
//! use grilse_wire::{Linear, Meta};
//!
//! let arp = Linear::new(vec![0; 60], Meta { protocol: 0x0806, network: 14, ..Meta::default() });
//! let mut gro = Gro::new(Config::default());
//! let mut up = Vec::new();
//! let outcome = gro.push(arp, 0, &mut |packet: Linear, why: Why| up.push((packet, why.reason)));
//! assert!(matches!(outcome, Outcome::Delivered));
//! assert_eq!(up[0].1, Reason::NoOffload);
//! gro.flush(&mut |packet: Linear, why: Why| up.push((packet, why.reason)));
//! assert_eq!(up.len(), 1);
//! ```
//!
//! [`gso`] cuts super-packets again.
//!
//! Not here: tunnels in GRO.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod config;
mod gro;
pub mod gso;
mod reason;
pub mod stride;

pub use config::{BadConfig, Config, MAX_SIZE, Rules};
pub use gro::{Gro, Outcome, Sink};
pub use reason::{Reason, Why};

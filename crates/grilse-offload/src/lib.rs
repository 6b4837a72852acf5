//! GRO and GSO with the results of the Linux kernel, packet for packet, on any packet type; which
//! kernel's, and how far beyond it, is data ([`Rules`]).
//!
//! [`Gro`] coalesces the packets of a flow into super-packets. It owns no buffers and does no I/O:
//! packets come in through [`Gro::push`] by value, whatever implements [`grilse_wire::Packet`],
//! and leave through a [`Sink`] in the order in which the kernel would hand them up. Each one that
//! leaves says [`Why`] it did not merge, or stopped growing. Time, receive hash and batch
//! boundaries are arguments, and nothing is allocated per packet.
//!
//! ```
//! use grilse_offload::{Config, Gro, Outcome, Reason, Why, gso};
//! use grilse_wire::build::{Ipv4, Tcp, packet, payload};
//! use grilse_wire::vnet::{Form, Header};
//! use grilse_wire::{Heap, Linear, Meta, Packet, Parts, link};
//!
//! // Five packets of one flow, as a VPN has decrypted them, in buffers with room to grow. What the
//! // device and the link know goes into `Meta`; here there is no link header, and no hash.
//! let received = (0..5u16).map(|n| {
//!     let at = 1000 * usize::from(n);
//!     let tcp = Tcp { seq: at as u32, ..Tcp::default() };
//!     let mut bytes = Vec::with_capacity(1 << 16);
//!     bytes.extend(packet(Ipv4 { id: n, ..Ipv4::default() }, tcp, &payload(at, 1000)));
//!     let (network, protocol) = link::Type::Raw.network(&bytes).unwrap();
//!     Linear::new(bytes, Meta { seq: n.into(), network, protocol, ..Meta::default() })
//! });
//!
//! // push -> outcome: the first is held, the others join it.
//! let mut gro = Gro::new(Config::default());
//! let mut up = Vec::new();
//! let mut sink = |packet: Linear, why: Why| up.push((packet, why.reason));
//! for (n, packet) in received.enumerate() {
//!     match gro.push(packet, 0, &mut sink) {
//!         Outcome::Held => assert_eq!(n, 0),
//!         Outcome::Merged(_emptied) => assert!(n > 0),
//!         Outcome::Delivered => unreachable!("a pure acknowledgement would be, and an ARP request"),
//!     }
//! }
//!
//! // flush: the poll has ended, and what is held comes out, with the reason why it grew no further.
//! gro.flush(&mut sink);
//! let (train, reason) = up.pop().unwrap();
//! assert_eq!((train.meta().gso.size, train.meta().gso.segs, reason), (1000, 5, Reason::PollEnd));
//!
//! // A TUN device takes it whole, behind a vnet header.
//! let header = Header::from_meta(train.meta(), train.front()).unwrap();
//! let mut front = [0; Form::NATIVE.header_len()];
//! assert_eq!(header.write(&mut front, Form::NATIVE), Some(10));
//! assert_eq!((header.gso_size, header.hdr_len), (1000, 40));
//!
//! // Headers and the payload of each segment can be looked at where they are.
//! let parts = Parts::of(&train).unwrap();
//! for (segment, n) in parts.segments(train.meta().gso).zip(0..) {
//!     assert!(train.pieces(segment).flatten().eq(&payload(1000 * n, 1000)));
//! }
//!
//! // segment: and where the way out takes no super-packets, the five packets again.
//! let mut segments = gso::segment(train, gso::Checksums::Finish).unwrap();
//! let cut: Vec<Linear> = segments.packets(&mut Heap).collect();
//! assert_eq!(cut.iter().map(Packet::len).collect::<Vec<_>>(), [1040; 5]);
//! ```
//!
//! # Packets of your own
//!
//! | you have | use |
//! | --- | --- |
//! | one vector for each packet | [`Linear`](grilse_wire::Linear), which copies payload as it merges |
//! | buffers of the crate `bytes` | `grilse_wire::Scattered` (feature `bytes`), which does not |
//! | anything else | [`Packet`](grilse_wire::Packet) for it; and [`Carve`](grilse_wire::Carve) to cut it without copies |
//!
//! Super-packets that come in, from a guest or from hardware, are packets whose
//! [`Gso`](grilse_wire::Gso) is set. [`vnet::Header::to_meta`](grilse_wire::vnet::Header::to_meta)
//! sets it from a header that may lie, and marks it as not to be trusted; GRO then delivers such a
//! packet in its place and never merges it, as the kernel does. Whether this kernel takes the
//! super-packets that a program writes, `grilse probe` finds out.
//!
//! On UDP sockets trains come and go without headers: [`stride`].
//!
//! The examples `proxy` and `tun_rs` are whole programs over the crate `tun-rs`.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod config;
mod gro;
pub mod gso;
mod reason;
mod rules;
pub mod stride;

pub use config::{BadConfig, Config, FouPayload, MAX_SIZE, Tunnel};
pub use gro::{Gro, Outcome, Sink};
pub use reason::{Reason, Why};
pub use rules::{BigTcp, Cwr, Frag0, L3Test, OuterId, Rules};

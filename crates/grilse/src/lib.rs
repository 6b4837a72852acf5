//! Grilse: a userspace packet engine. Packets come from a device in batches, into buffers taken from
//! per-core caches; GRO coalesces them as the kernel would, packet for packet; and every buffer goes
//! home to where it was taken.
//!
//! The nouns: [`Skb`] is a packet, [`Memory`] what packets are made of, [`Ctx`] a thread's right to
//! work with them, [`Device`] where they come from and go to, [`Gro`] what coalesces them, and
//! [`Worker`] the loop around it all.
//!
//! ```no_run
//! use std::fs::File;
//!
//! use grilse::{
//!     Config, Ctx, Gro, Handler, Memory, Offloads, PollCtx, Port, Replay, Role, Skb, Why, Worker,
//! };
//! use grilse::pcap::Reader;
//!
//! struct Print;
//!
//! impl Handler for Print {
//!     fn deliver(&mut self, poll: &mut PollCtx<'_>, skb: Skb, why: Why) {
//!         println!("{} bytes, closed by {}", skb.len(), why.reason.name());
//!         poll.consume(skb);
//!     }
//! }
//!
//! let reader = Reader::new(File::open("trace.pcap")?)?;
//! let device = Replay::new("pcap:trace.pcap", reader, Offloads::default())?;
//! let port = Port::new(Box::new(device), Gro::new(Config::default()));
//! let memory = Memory::new(4096, None)?;
//! let mut worker = Worker::new(Ctx::new(memory.seat(Role::Worker))?, vec![port], Print);
//! while !worker.poll(0, 0, 64)?.ended {}
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The crates below stand alone where that helps: `grilse-offload` is GRO for any packet type, and
//! needs no memory, device or worker of ours.
#![forbid(unsafe_code)]

pub use grilse_dev::{
    Armed, Caps, Counters, DRIVERS, Device, Driver, Fault, LAYERS, Offloads, OnWire, OpenError,
    Opener, Queues, Received, Recorder, RxCsum, Spec, Wanted,
};
pub use grilse_dev::{Note, NoteTable, Notes, Replay, ReplayPool, pcap, probe};
pub use grilse_engine::{
    Account, Ended, Forward, Handler, Limit, Lost, Mode, Plan, Poll, PollCtx, Port, Published,
    Round, Running, Stop, Worker, can_run_on,
};
pub use grilse_mem::{
    BadPolicy, FramePool, FrameSlice, Ledger, MapError, Node, Numa, Pages, Policy, PoolError, Role,
};
pub use grilse_offload::{
    BadConfig, BigTcp, Config, Cwr, FouPayload, Frag0, Gro, L3Test, MAX_SIZE, Outcome, OuterId,
    Reason, Rules, Sink, Tunnel, Why, gso,
};
pub use grilse_packet::{
    Bare, Batch, Ctx, DropHook, DropReason, Drops, Ledgers, Load, Memory, MemoryError, NoNode,
    NoRoom, NodeLedger, Pair, Seat, Skb,
};
pub use grilse_wire as wire;

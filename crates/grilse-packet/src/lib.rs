//! The skb: head, fragments, frag list, metadata, clones, and the context that threads work with
//! packets in.
//!
//! ```
//! use grilse_mem::Role;
//! use grilse_packet::{Ctx, Memory};
//!
//! let memory = Memory::new(1024, None)?;
//! let mut ctx = Ctx::new(memory.seat(Role::Worker))?;
//! ctx.begin(0);
//! let mut skb = ctx.take().expect("nothing is in use yet");
//! skb.put(4)?.copy_from_slice(b"data");
//! skb.push(2)?[..2].copy_from_slice(b"hd");
//! assert_eq!(skb.linear(), b"hddata");
//! ctx.consume(skb);
//! ctx.end();
//! assert_eq!(memory.ledgers().shells.in_use, 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod bare;
mod batch;
mod carve;
mod chain;
mod copy;
mod ctx;
mod drop_reason;
mod frags;
mod memory;
mod packet;
mod pair;
mod share;
mod shell;
mod skb;

pub use bare::Bare;
pub use batch::Batch;
pub use copy::copied_bytes;
pub use ctx::{Ctx, DropHook, Drops, Load};
pub use drop_reason::DropReason;
pub use memory::{Ledgers, Memory, MemoryError, NoNode, NoSeat, NodeLedger, Seat};
pub use pair::Pair;
pub use shell::{Destructor, HEAD_SIZE, HEADROOM, MAX_FRAGS};
pub use skb::{NoRoom, Skb};

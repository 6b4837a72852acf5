//! Memory for packets: arenas of typed cells, magazines and depots, page pools, and the homes that
//! objects go back to.
//!
//! This crate knows no packets. A class of objects is a type that says what becomes of it when its
//! owner lets go ([`Recycle`]); everything else here moves owners about.
//!
//! - [`Slot`] owns one cell of an [`Arena`], as a `Box` owns its heap block; [`Shared`] is one of
//!   several owners, as an `Arc` is.
//! - [`Magazine`] is an array of free objects that moves whole between a thread's [`Cache`] and the
//!   [`Depot`] of the class.
//! - [`Home`] is the address that an object carries: who took it, and so where it goes when somebody
//!   else lets go of it.
//! - [`Nodes`] are what a memory is divided by: each has a share of cells and a depot, so the node of
//!   an object follows from its address.
//! - [`FramePool`] hands out blocks of plain bytes for devices to write; [`FrameSlice`] is a share
//!   in one; [`Returns`] gathers those that a thread frees, and [`Loans`] knows those that a device
//!   has.
//!
//! Unsafe code lives in `arena.rs`, `frame.rs`, `list.rs` and `region.rs`, and nowhere else.
#![deny(unsafe_code)]

mod arena;
mod cache;
mod course;
mod defer;
mod depot;
mod frame;
mod home;
mod ledger;
mod life;
mod list;
mod loans;
mod magazine;
#[cfg(all(test, loom))]
mod models;
mod node;
mod outbox;
mod owners;
mod place;
mod policy;
mod pool;
mod region;
mod returns;
mod slab;
mod sleep;
mod stats;
mod switch;
mod sync;

pub use arena::{Arena, Counted, Recycle, Share, Shared, Slot};
pub use cache::Cache;
pub use depot::Depot;
pub use frame::FrameSlice;
pub use home::{Home, Role};
pub use ledger::Ledger;
pub use loans::Loans;
pub use magazine::Magazine;
pub use node::{Node, Nodes, Numa};
pub use place::{Place, Places};
pub use policy::{
    Alien, BadPolicy, DeferList, Demand, FlushEnd, Init, Kick, Overflow, Policy, SameCpu,
    ShellCache, SlabModel, TaskRefill,
};
pub use pool::{Closing, FrameLedger, FramePool, PoolError};
pub use region::{MapError, Pages};
pub use returns::Returns;
pub use stats::{Histogram, Locality, Stats};
pub use switch::{Snapshot, Switch};

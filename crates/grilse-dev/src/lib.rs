//! Devices: where packets come from and go to.
//!
//! [`Device`] is what a worker knows of one; [`Caps`] says what it can do. A driver is one file or
//! folder here, and knows nothing of offload. [`probe`] asks the kernel what a driver of it may rely
//! on. System calls stand in `sys`, and so does all unsafe code.
#![deny(unsafe_code)]

mod device;
mod on_wire;
pub mod pcap;
pub mod probe;
mod recorder;
mod replay;
mod sys;

pub use device::{Caps, Device, Fault, Received, RxCsum};
pub use on_wire::OnWire;
pub use recorder::Recorder;
pub use replay::{Note, NoteTable, Notes, Offloads, Replay, ReplayPool};

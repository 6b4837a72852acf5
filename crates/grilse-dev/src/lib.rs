//! Devices: where packets come from and go to.
//!
//! [`Device`] is what a worker knows of one; [`Caps`] says what it can do. A driver is one file or
//! folder here, and knows nothing of offload. [`probe`] asks the kernel what a driver of it may rely
//! on. System calls stand in `sys`, and so does all unsafe code.
#![deny(unsafe_code)]

mod device;
mod dice;
mod fault;
mod files;
mod generator;
mod layer;
mod null;
mod on_wire;
mod open;
mod pair;
pub mod pcap;
mod playback;
pub mod probe;
mod recorder;
mod replay;
mod spec;
mod sys;

pub use device::{Armed, Caps, Counters, Device, Received, RxCsum};
pub use fault::Fault;
pub use on_wire::OnWire;
pub use open::{DRIVERS, Driver, LAYERS, OpenError, Opener, Queues, Wanted};
pub use recorder::Recorder;
pub use replay::{Note, NoteTable, Notes, Offloads, Replay, ReplayPool};
pub use spec::Spec;

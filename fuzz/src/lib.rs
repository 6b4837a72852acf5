//! What must hold for any input, as one plain function for each target of `cargo fuzz`: it panics
//! where the input breaks a law, and says which. The targets in `fuzz_targets/` are these functions
//! and nothing else, and `tests/fuzz_corpora.rs` replays each committed corpus through them.
//!
//! An input is bytes. The targets of GRO and GSO read decisions out of them (which flow, which
//! length, what is odd), so that every byte reaches deep; the others take them as they are.
//!
//! Not here: comparison with the kernel, which needs one.

mod buffers;
mod coalesce;
mod dissect;
mod gro;
mod gso;
mod pcap;
mod round_trip;
mod sums;
mod traffic;
mod views;
mod vnet;

pub use dissect::dissect;
pub use gro::gro;
pub use gso::gso;
pub use pcap::pcap;
pub use round_trip::round_trip;
pub use views::views;
pub use vnet::vnet;

/// A target: it panics where the input breaks a law.
pub type Target = fn(&[u8]);

/// All targets, by the name of their corpus.
pub const TARGETS: &[(&str, Target)] = &[
    ("dissect", dissect),
    ("gro", gro),
    ("gso", gso),
    ("pcap", pcap),
    ("round_trip", round_trip),
    ("views", views),
    ("vnet", vnet),
];

//! A delivered packet, as the outlets see it.

use grilse::{Skb, Why};

/// The packet, and what is known of its way through GRO.
pub(super) struct Delivered<'a> {
    pub(super) skb: &'a Skb,
    pub(super) why: Why,
    /// Number of the group of frames that it came in.
    pub(super) batch: u64,
    /// The input frames that it stands for.
    pub(super) members: &'a [u64],
    /// The frame whose arrival let it go; `None`: the poll's end did.
    pub(super) cause: Option<u64>,
}

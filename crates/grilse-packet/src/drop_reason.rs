//! Why packets are lost. Consuming a packet is not losing it.

/// One cause of loss; each drop has exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DropReason {
    /// The frame ends within its link header, so no device would take it.
    LinkTruncated,
    /// No shell or frame was left to receive into.
    NoBuffers,
}

impl DropReason {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Self; 2] = [Self::LinkTruncated, Self::NoBuffers];

    /// The label in reports and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::LinkTruncated => "link-truncated",
            Self::NoBuffers => "no-buffers",
        }
    }
}

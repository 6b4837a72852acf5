//! Why packets are lost. Consuming a packet is not losing it.

/// One cause of loss; each drop has exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DropReason {
    /// The frame ends within its link header, so no device would take it.
    LinkTruncated,
    /// No shell or frame was left to receive into.
    NoBuffers,
    /// Too many packets wait to be sent already.
    TxFull,
    /// The frame is longer than what the device sends.
    TooBig,
    /// A super-packet that is not what its metadata says, so it cannot be cut.
    BadGso,
    /// A checksum that is to be finished outside of its packet.
    BadChecksumPlace,
    /// No port to send it by is known.
    NoRoute,
    /// Nobody here answers such a packet.
    NotForUs,
    /// It waited to be sent when its worker was stopped.
    Stopped,
    /// A fault layer was asked to lose it.
    Injected,
}

impl DropReason {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Self; 10] = [
        Self::LinkTruncated,
        Self::NoBuffers,
        Self::TxFull,
        Self::TooBig,
        Self::BadGso,
        Self::BadChecksumPlace,
        Self::NoRoute,
        Self::NotForUs,
        Self::Stopped,
        Self::Injected,
    ];

    /// The label in reports and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::LinkTruncated => "link-truncated",
            Self::NoBuffers => "no-buffers",
            Self::TxFull => "tx-full",
            Self::TooBig => "too-big",
            Self::BadGso => "bad-gso",
            Self::BadChecksumPlace => "bad-checksum-place",
            Self::NoRoute => "no-route",
            Self::NotForUs => "not-for-us",
            Self::Stopped => "stopped",
            Self::Injected => "injected",
        }
    }
}

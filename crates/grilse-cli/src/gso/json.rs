//! `--json`: one object per frame, with the keys of `grilse gro` where they mean the same.

use serde::Serialize;

use super::packet::Frame;
use crate::digest::Digest;
use crate::failure::Failure;
use crate::lines::{Lines, gso_type};

/// The lines of one file after the other.
pub(super) struct Json {
    lines: Lines,
    seq: u64,
    digest: Digest,
}

#[derive(Serialize)]
struct Line<'a> {
    seq: u64,
    /// The packet that it was in.
    from: u64,
    segment: usize,
    segs: usize,
    /// Its number in the capture that was coalesced.
    #[serde(skip_serializing_if = "Option::is_none")]
    frame: Option<u64>,
    len: usize,
    orig_len: u32,
    gso_type: &'static str,
    gso_size: u16,
    hdr: &'a str,
    sha256: &'a str,
    outcome: &'static str,
    /// Why the packet was not cut, although it should be.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<&'static str>,
}

impl Json {
    pub(super) fn new(lines: Lines) -> Self {
        Self { lines, seq: 0, digest: Digest::default() }
    }

    /// Another input begins; lines name it where there are several.
    pub(super) fn begin(&mut self, file: Option<&str>) {
        self.lines.begin(file);
        self.seq = 0;
    }

    pub(super) fn frame(&mut self, frame: &Frame<'_>) -> Result<(), Failure> {
        self.digest.read(std::iter::once(frame.data));
        let packet = frame.packet;
        let line = Line {
            seq: self.seq,
            from: packet.from(),
            segment: frame.segment,
            segs: packet.segs(),
            frame: frame.number,
            len: frame.data.len(),
            orig_len: frame.orig_len,
            gso_type: gso_type(packet.gso()),
            gso_size: packet.gso().size,
            hdr: &self.digest.hdr,
            sha256: &self.digest.sha256,
            outcome: packet.outcome().name(),
            refused: packet.outcome().refusal().map(|(name, _)| name),
        };
        self.seq += 1;
        self.lines.put(&line)
    }

    /// Whether nothing can be written any more.
    pub(super) fn is_broken(&self) -> bool {
        self.lines.is_broken()
    }

    /// Writes what is left.
    pub(super) fn finish(self) -> Result<(), Failure> {
        self.lines.finish()
    }
}

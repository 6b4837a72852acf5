//! `--json`: one object per delivered packet, with the keys of the kernel oracle.

use grilse::OnWire;
use grilse::wire::{Csum, GsoType, VlanTag, eth::ethertype};
use serde::Serialize;

use super::delivered::Delivered;
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
    batch: u64,
    len: usize,
    gso_type: &'static str,
    gso_ecn: bool,
    gso_size: u16,
    segs: u16,
    csum: &'static str,
    csum_start: Option<usize>,
    csum_offset: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    vlan: Option<Vlan>,
    hdr: &'a str,
    sha256: &'a str,
    members: &'a [u64],
    closed_by: &'static str,
}

#[derive(Serialize)]
struct Vlan {
    tpid: String,
    tci: u16,
}

#[derive(Serialize)]
struct RefusedLine {
    input: u64,
    len: usize,
    refused: &'static str,
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

    /// A delivered packet.
    pub(super) fn packet(&mut self, delivered: &Delivered<'_>) -> Result<(), Failure> {
        let meta = delivered.skb.meta();
        let frame = OnWire::new(delivered.skb);
        self.digest.read(frame.pieces());
        let (csum, partial) = match meta.csum {
            Csum::None | Csum::Complete { .. } => ("none", None),
            Csum::Unnecessary { .. } => ("valid", None),
            Csum::Partial { start, offset } => ("partial", Some((start, offset))),
        };
        let line = Line {
            seq: self.seq,
            batch: delivered.batch,
            len: frame.len(),
            gso_type: gso_type(meta.gso),
            gso_ecn: meta.gso.kind.contains(GsoType::TCP_ECN),
            gso_size: meta.gso.size,
            segs: meta.gso.segs.max(1),
            csum,
            csum_start: partial.map(|(start, _)| usize::from(start) + frame.tag_len()),
            csum_offset: partial.map(|(_, offset)| offset),
            vlan: tag(delivered, &frame)
                .map(|tag| Vlan { tpid: format!("{:04x}", tag.tpid), tci: tag.tci }),
            hdr: &self.digest.hdr,
            sha256: &self.digest.sha256,
            members: delivered.members,
            closed_by: delivered.why.reason.name(),
        };
        self.seq += 1;
        self.lines.put(&line)
    }

    /// A frame that no device would take.
    pub(super) fn refused(&mut self, input: u64, len: usize) -> Result<(), Failure> {
        self.lines.put(&RefusedLine { input, len, refused: "EINVAL" })
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

/// The outer VLAN tag, wherever it stands: above GRO the kernel takes it out of the frame too.
fn tag(delivered: &Delivered<'_>, frame: &OnWire<'_>) -> Option<VlanTag> {
    let meta = delivered.skb.meta();
    if meta.vlan.is_some() {
        return meta.vlan;
    }
    let inside = matches!(meta.protocol, ethertype::VLAN | ethertype::QINQ);
    // The kernel needs the tag and the ethertype behind it.
    if !inside || frame.len() < usize::from(meta.network) + 4 + 2 {
        return None;
    }
    let at = usize::from(meta.network);
    let mut bytes = frame.pieces().flatten().skip(at).copied();
    let tci = u16::from_be_bytes([bytes.next()?, bytes.next()?]);
    Some(VlanTag { tpid: meta.protocol, tci })
}

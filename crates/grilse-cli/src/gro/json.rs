//! `--json`: one object per delivered packet, with the keys of the kernel oracle.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use grilse::OnWire;
use grilse::wire::{Csum, GsoType, VlanTag, eth::ethertype};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::delivered::Delivered;
use crate::failure::Failure;

/// Bytes of a frame that `hdr` shows.
const HDR: usize = 128;

/// The name that stands for standard output.
pub(super) const STDOUT: &str = "-";

/// The lines of all files.
pub(super) struct Lines {
    path: String,
    out: BufWriter<Box<dyn Write>>,
    file: Option<String>,
    seq: u64,
    hdr: String,
    broken: bool,
}

#[derive(Serialize)]
struct Line<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
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
struct RefusedLine<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    input: u64,
    len: usize,
    refused: &'static str,
}

impl Lines {
    /// Lines into the file at `path`, or to standard output for `-`.
    pub(super) fn create(path: &Path) -> Result<Self, Failure> {
        let (name, out): (_, Box<dyn Write>) = if path == STDOUT {
            ("standard output".to_owned(), Box::new(io::stdout().lock()))
        } else {
            let name = path.display().to_string();
            let file = File::create(path).map_err(|error| Failure::output(&name, &error))?;
            (name, Box::new(file))
        };
        Ok(Self {
            path: name,
            out: BufWriter::with_capacity(1 << 16, out),
            file: None,
            seq: 0,
            hdr: String::with_capacity(2 * HDR),
            broken: false,
        })
    }

    /// Another input begins; lines name it where there are several.
    pub(super) fn begin(&mut self, file: Option<&str>) {
        self.file = file.map(str::to_owned);
        self.seq = 0;
    }

    /// A delivered packet.
    pub(super) fn packet(&mut self, delivered: &Delivered<'_>) -> Result<(), Failure> {
        let meta = delivered.skb.meta();
        let frame = OnWire::new(delivered.skb);
        let sha256 = digest(&frame, &mut self.hdr);
        let (csum, partial) = match meta.csum {
            Csum::None | Csum::Complete { .. } => ("none", None),
            Csum::Unnecessary { .. } => ("valid", None),
            Csum::Partial { start, offset } => ("partial", Some((start, offset))),
        };
        let line = Line {
            file: self.file.as_deref(),
            seq: self.seq,
            batch: delivered.batch,
            len: frame.len(),
            gso_type: gso_type(meta.gso.size, meta.gso.kind),
            gso_ecn: meta.gso.kind.contains(GsoType::TCP_ECN),
            gso_size: meta.gso.size,
            segs: meta.gso.segs.max(1),
            csum,
            csum_start: partial.map(|(start, _)| usize::from(start) + frame.tag_len()),
            csum_offset: partial.map(|(_, offset)| offset),
            vlan: tag(delivered, &frame)
                .map(|tag| Vlan { tpid: format!("{:04x}", tag.tpid), tci: tag.tci }),
            hdr: &self.hdr,
            sha256: &sha256,
            members: delivered.members,
            closed_by: delivered.why.reason.name(),
        };
        let written = write_line(&mut self.out, &line);
        self.seq += 1;
        self.check(written)
    }

    /// A frame that no device would take.
    pub(super) fn refused(&mut self, input: u64, len: usize) -> Result<(), Failure> {
        let file = self.file.as_deref();
        let line = RefusedLine { file, input, len, refused: "EINVAL" };
        let written = write_line(&mut self.out, &line);
        self.check(written)
    }

    /// Whether nothing can be written any more.
    pub(super) fn is_broken(&self) -> bool {
        self.broken
    }

    /// Writes what is left.
    pub(super) fn finish(mut self) -> Result<(), Failure> {
        let flushed = self.out.flush();
        self.check(flushed)
    }

    fn check(&mut self, result: io::Result<()>) -> Result<(), Failure> {
        result.map_err(|error| {
            self.broken = true;
            Failure::output(&self.path, &error)
        })
    }
}

fn write_line(out: &mut impl Write, line: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, line)?;
    out.write_all(b"\n")
}

/// Walks the frame once: the first bytes to `hdr` in hexadecimal, the hash of all returned.
fn digest(frame: &OnWire<'_>, hdr: &mut String) -> String {
    let mut hash = Sha256::new();
    hdr.clear();
    let mut room = HDR;
    for piece in frame.pieces() {
        hash.update(piece);
        let shown = piece.len().min(room);
        push_hex(hdr, &piece[..shown]);
        room -= shown;
    }
    let mut hex = String::with_capacity(64);
    push_hex(&mut hex, &hash.finalize());
    hex
}

fn push_hex(text: &mut String, bytes: &[u8]) {
    // Formatting each byte takes longer than hashing it.
    const DIGITS: [char; 16] =
        ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    for byte in bytes {
        text.extend([DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    }
}

/// The types that the vnet header tells apart; fixed IDs, frag lists and the like show as these.
fn gso_type(size: u16, kind: GsoType) -> &'static str {
    if size == 0 {
        "none"
    } else if kind.contains(GsoType::TCPV4) {
        "tcpv4"
    } else if kind.contains(GsoType::TCPV6) {
        "tcpv6"
    } else {
        "udp-l4"
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

//! The report: what came in and out, and what was not cut and why.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::packet::Frame;
use crate::failure::Failure;
use crate::lines::gso_type;
use crate::{stdout, table};

/// All counts, over all files.
#[derive(Default)]
pub(super) struct Report {
    files: Vec<String>,
    /// By the type of super-packet.
    kinds: BTreeMap<&'static str, Counts>,
    /// Packets by what became of them.
    outcomes: BTreeMap<&'static str, u64>,
    refusals: BTreeMap<&'static str, Refusals>,
}

#[derive(Default)]
struct Counts {
    packets: u64,
    frames: u64,
}

/// Packets that were not cut for one reason, and the first of them.
struct Refusals {
    packets: u64,
    file: usize,
    from: u64,
    text: String,
}

impl Report {
    /// Another file begins.
    pub(super) fn begin(&mut self, file: &str) {
        self.files.push(file.to_owned());
    }

    /// Counts a frame, and with its first frame the packet.
    pub(super) fn count(&mut self, frame: &Frame<'_>) {
        let packet = frame.packet;
        let counts = self.kinds.entry(gso_type(packet.gso())).or_default();
        counts.frames += 1;
        if frame.segment > 0 {
            return;
        }
        counts.packets += 1;
        *self.outcomes.entry(packet.outcome().name()).or_default() += 1;
        if let Some((name, text)) = packet.outcome().refusal() {
            let (file, from) = (self.files.len() - 1, packet.from());
            let first = Refusals { packets: 0, file, from, text };
            self.refusals.entry(name).or_insert(first).packets += 1;
        }
    }

    /// Prints the report to standard output.
    pub(super) fn print(&self) -> Result<(), Failure> {
        // Where nothing could be read, that has been said.
        if self.files.is_empty() { Ok(()) } else { stdout::print(&self.text()) }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        let (mut packets, mut frames) = (0, 0);
        let mut kinds = table::plain(["type", "packets in", "frames out"], &[1, 2]);
        for (kind, counts) in &self.kinds {
            kinds.add_row([*kind, &counts.packets.to_string(), &counts.frames.to_string()]);
            packets += counts.packets;
            frames += counts.frames;
        }
        if packets > 0 {
            table::push(&mut text, &kinds);
        }
        if !self.refusals.is_empty() {
            table::push(&mut text, &self.refusals());
        }
        let _ = write!(text, "{packets} packets in, {frames} frames out");
        for (outcome, n) in &self.outcomes {
            let _ = write!(text, ", {n} {outcome}");
        }
        text.push('\n');
        text
    }

    fn refusals(&self) -> comfy_table::Table {
        let mut table = table::plain(["not cut", "count", "first example"], &[1]);
        for (name, refusals) in &self.refusals {
            let file = match self.files.len() {
                1 => String::new(),
                _ => format!("{}: ", self.files[refusals.file]),
            };
            let example = format!("{file}frame {}: {}", refusals.from, refusals.text);
            table.add_row([(*name).to_owned(), refusals.packets.to_string(), example]);
        }
        table
    }
}

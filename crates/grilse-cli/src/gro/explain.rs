//! The report: what came in and out, and why it came out as it did.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::io::{self, Write};

use grilse::{DropReason, Drops, Reason, Why};

use super::delivered::Delivered;
use super::flow::Flow;
use crate::failure::Failure;
use crate::{stdout, table};

/// Flows that are told apart; the packets of further ones are counted together, so that a report on
/// any capture fits in memory.
const FLOWS: usize = 1 << 16;

/// Flows that are shown, those with most packets first.
const SHOWN: usize = 20;

/// All counts, over all files.
pub(super) struct Report {
    explain: bool,
    files: Vec<String>,
    total: Counts,
    flows: HashMap<Flow, Counts>,
    other_flows: Counts,
    examples: BTreeMap<Reason, Example>,
    drops: BTreeMap<&'static str, u64>,
    /// Frames that lost Ethernet padding, and how many bytes of it.
    trimmed: (u64, u64),
}

/// Packets in and out, and the reasons of those that came out.
#[derive(Debug, Default)]
struct Counts {
    packets_in: u64,
    out: u64,
    reasons: BTreeMap<Reason, u64>,
}

/// Where a reason was first met.
struct Example {
    file: usize,
    /// First and last frame of the packet.
    frames: (u64, u64),
    cause: Option<u64>,
    why: Why,
}

impl Counts {
    fn count(&mut self, delivered: &Delivered<'_>) {
        self.packets_in += delivered.members.len() as u64;
        self.out += 1;
        *self.reasons.entry(delivered.why.reason).or_default() += 1;
    }

    fn mean(&self) -> String {
        match self.out {
            0 => "-".to_owned(),
            out => format!("{:.1}", self.packets_in as f64 / out as f64),
        }
    }

    /// Reasons, the most frequent first.
    fn ranked(&self) -> Vec<(Reason, u64)> {
        let mut ranked: Vec<_> = self.reasons.iter().map(|(&reason, &n)| (reason, n)).collect();
        ranked.sort_by_key(|&(reason, n)| (std::cmp::Reverse(n), reason));
        ranked
    }
}

impl Report {
    /// An empty report, with flows and reasons where `explain` asks for them.
    pub(super) fn new(explain: bool) -> Self {
        Self {
            explain,
            files: Vec::new(),
            total: Counts::default(),
            flows: HashMap::new(),
            other_flows: Counts::default(),
            examples: BTreeMap::new(),
            drops: BTreeMap::new(),
            trimmed: (0, 0),
        }
    }

    /// Another file begins.
    pub(super) fn begin(&mut self, file: &str) {
        self.files.push(file.to_owned());
    }

    /// Frames of the files so far, those dropped included.
    pub(super) fn frames(&self) -> u64 {
        self.total.packets_in + self.drops.values().sum::<u64>()
    }

    /// Counts a delivered packet.
    pub(super) fn count(&mut self, delivered: &Delivered<'_>) {
        self.total.count(delivered);
        if !self.explain {
            return;
        }
        let flow = Flow::of(delivered.skb);
        let room = self.flows.len() < FLOWS;
        match self.flows.get_mut(&flow) {
            Some(counts) => counts.count(delivered),
            None if room => self.flows.entry(flow).or_default().count(delivered),
            None => self.other_flows.count(delivered),
        }
        let (file, members) = (self.files.len() - 1, delivered.members);
        self.examples.entry(delivered.why.reason).or_insert_with(|| Example {
            file,
            frames: (members[0], members[members.len() - 1]),
            cause: delivered.cause.filter(|cause| !members.contains(cause)),
            why: delivered.why,
        });
    }

    /// Counts a frame that lost `bytes` of Ethernet padding.
    pub(super) fn trimmed(&mut self, bytes: usize) {
        self.trimmed.0 += 1;
        self.trimmed.1 += bytes as u64;
    }

    /// A file is over, and these of its frames were dropped.
    pub(super) fn end(&mut self, drops: Drops) {
        for reason in DropReason::ALL {
            if drops.count(reason) > 0 {
                *self.drops.entry(reason.name()).or_default() += drops.count(reason);
            }
        }
    }

    /// Prints the report.
    pub(super) fn print(&self, to_stdout: bool) -> Result<(), Failure> {
        if self.files.is_empty() {
            // Nothing could be read, and that has been said.
            return Ok(());
        }
        let text = self.text();
        if to_stdout {
            return stdout::print(&text);
        }
        // Standard output belongs to the JSON, and a report without --explain says nothing that the
        // JSON does not.
        if self.explain {
            // If nobody can be told, nobody can be told that either.
            let _ = io::stderr().lock().write_all(text.as_bytes());
        }
        Ok(())
    }

    fn text(&self) -> String {
        let mut text = String::new();
        if self.explain {
            self.write_flows(&mut text);
            self.write_reasons(&mut text);
        }
        let total = &self.total;
        let _ = write!(text, "{} frames in, {} packets out", self.frames(), total.out);
        if total.out > 0 {
            let _ = write!(text, ", {} segments per packet", total.mean());
        }
        for (reason, n) in &self.drops {
            let _ = write!(text, ", {n} dropped: {reason}");
        }
        if let (frames @ 1.., bytes) = self.trimmed {
            let _ = write!(text, ", {bytes} bytes of padding trimmed from {frames} frames");
        }
        text.push('\n');
        text
    }

    fn write_flows(&self, text: &mut String) {
        let mut flows: Vec<_> = self.flows.iter().collect();
        flows.sort_by_key(|(flow, counts)| (std::cmp::Reverse(counts.packets_in), **flow));
        let mut table = table::plain(["flow", "in", "out", "mean", "ended by"], &[1, 2, 3]);
        let row = |name: String, counts: &Counts| {
            let mut reasons = String::new();
            for (reason, n) in counts.ranked() {
                let _ = write!(reasons, "{}{} {n}", comma(&reasons), reason.name());
            }
            [name, counts.packets_in.to_string(), counts.out.to_string(), counts.mean(), reasons]
        };
        for (flow, counts) in flows.iter().take(SHOWN) {
            table.add_row(row(flow.to_string(), counts));
        }
        let mut rest = Counts::default();
        let hidden = flows.iter().skip(SHOWN).map(|(_, counts)| *counts);
        for counts in hidden.chain([&self.other_flows]) {
            rest.packets_in += counts.packets_in;
            rest.out += counts.out;
            for (&reason, n) in &counts.reasons {
                *rest.reasons.entry(reason).or_default() += n;
            }
        }
        if rest.out > 0 {
            let more = if self.other_flows.out > 0 { "or more " } else { "" };
            let name = format!("{} {more}other flows", flows.len().saturating_sub(SHOWN));
            table.add_row(row(name, &rest));
        }
        table.add_row(row("total".to_owned(), &self.total));
        table::push(text, &table);
    }

    /// A table of the reasons met, and below it what each means: the meanings would make the table's
    /// lines twice as long as a terminal is wide.
    fn write_reasons(&self, text: &mut String) {
        let ranked = self.total.ranked();
        if ranked.is_empty() {
            return;
        }
        let mut table = table::plain(["reason", "count", "first example"], &[1]);
        for &(reason, n) in &ranked {
            let example = self.examples.get(&reason).map_or(String::new(), |example| {
                let file = &self.files[example.file];
                let prefix = if self.files.len() > 1 { format!("{file}: ") } else { String::new() };
                prefix + &example.to_string()
            });
            table.add_row([reason.name().to_owned(), n.to_string(), example]);
        }
        table::push(text, &table);
        for (reason, _) in ranked {
            let _ = writeln!(text, "{}: {}", reason.name(), reason.describe());
        }
        text.push('\n');
    }
}

impl std::fmt::Display for Example {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (first, last) = self.frames;
        if first == last {
            write!(f, "frame {first}")?;
        } else {
            write!(f, "frames {first} to {last}")?;
        }
        if let Some(cause) = self.cause {
            write!(f, ", then {cause}")?;
        }
        let Why { reason, head, packet } = self.why;
        match reason.field() {
            Some(field) if is_bits(field) => write!(f, ": {field} {packet:#x}, not {head:#x}"),
            Some(field) => write!(f, ": {field} {packet}, not {head}"),
            None => Ok(()),
        }
    }
}

/// Whether a field is a pattern of bits rather than a number.
fn is_bits(field: &str) -> bool {
    const BITS: [&str; 7] =
        ["eth.type", "ip.frag_off", "ip.check", "tcp.sum", "udp.sum", "tcp.options", "gso.type"];
    BITS.contains(&field)
}

fn comma(text: &str) -> &'static str {
    if text.is_empty() { "" } else { ", " }
}

//! The printed table of one work.

use crate::summary::{Interval, Spread};
use crate::work::Work;

/// One contestant's rounds.
pub(crate) struct Row {
    name: String,
    /// Nanoseconds per object, round by round.
    pub(crate) ns: Vec<f64>,
}

impl Row {
    pub(crate) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ns: Vec::new() }
    }
}

/// Prints the rows of a work; the first is what the others are compared with, and the last, where
/// the work crosses, is the cache line.
pub(crate) fn print(work: Work, rounds: usize, objects: u64, rows: &[Row]) {
    let (Some(ours), Some(last)) = (rows.first(), rows.last()) else { return };
    println!("\n{}: {}; {objects} objects, {rounds} rounds", work.name(), work.title());
    println!(
        "  {:20} {:>8} {:>8} {:>8}   {:21} {:>6}  asked",
        "", "median", "min", "max", "times the first", "lines"
    );
    for row in rows {
        let Spread { median, min, max } = Spread::of(&row.ns);
        let Interval { low, median: times, high } = Interval::of_ratio(&row.ns, &ours.ns);
        let times = format!("{times:.2} ({low:.2}..{high:.2})");
        let lines = match work.crosses() {
            true => format!("{:.2}", Interval::of_ratio(&row.ns, &last.ns).median),
            false => String::new(),
        };
        let verdict = match asked(work, &row.name) {
            Some(asked) if low >= asked => format!("{asked}x: reached"),
            Some(asked) if high < asked => format!("{asked}x: missed"),
            Some(asked) => format!("{asked}x: not decided"),
            None => String::new(),
        };
        let line = format!(
            "  {:20} {median:8.2} {min:8.2} {max:8.2}   {times:21} {lines:>6}  {verdict}",
            row.name
        );
        println!("{}", line.trim_end());
    }
}

/// The rows of DESIGN's table: how many times grilse's time the contestant's must be.
fn asked(work: Work, name: &str) -> Option<f64> {
    match (work, name) {
        (Work::SameOne | Work::SameBurst, "dpdk mempool-32" | "dpdk mempool-512") => Some(1.0),
        (Work::SameInit, "dpdk pktmbuf-512") => Some(1.0),
        (Work::SameInit, "mimalloc") => Some(3.0),
        (Work::Pipe, "dpdk mempool-32" | "dpdk mempool-512") => Some(2.0),
        (Work::Pipe, "kernel list") => Some(5.0),
        (Work::PipeShell, "dpdk pktmbuf-512") => Some(1.0),
        (Work::PipeShell, "mimalloc") => Some(4.0),
        (Work::PipeShell, "kernel list") => Some(2.0),
        _ => None,
    }
}

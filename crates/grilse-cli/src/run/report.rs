//! What `grilse run` says: a line at every interval, and the account at the end.

use std::time::Instant;

use grilse::{Account, DropReason, Ended, Forward};
use serde::Serialize;

use super::total;
use crate::args::RunArgs;
use crate::failure::Failure;
use crate::stdout;

/// Prints to standard output.
pub(super) struct Report {
    json: bool,
    epoch: Instant,
    /// When the last line was printed, and what had been counted then.
    last: (Instant, Account),
}

/// One object of `--json`.
#[derive(Serialize)]
struct Object {
    /// `interval` or `total`.
    of: &'static str,
    /// Seconds since the start.
    seconds: f64,
    rx_frames: u64,
    rx_bytes: u64,
    delivered: u64,
    consumed: u64,
    tx_frames: u64,
    tx_bytes: u64,
    copied: u64,
    held: u64,
    dropped: u64,
    drops: Vec<(&'static str, u64)>,
}

impl Report {
    pub(super) fn new(args: &RunArgs, epoch: Instant) -> Self {
        Self { json: args.json, epoch, last: (epoch, Account::default()) }
    }

    /// What was counted since the last line, per second.
    pub(super) fn line(&mut self, account: &Account) -> Result<(), Failure> {
        let now = Instant::now();
        let since = account.since(&self.last.1);
        let seconds = (now - self.last.0).as_secs_f64();
        self.last = (now, *account);
        if self.json {
            return self.object("interval", &since);
        }
        let per_second = |n: u64| n as f64 / seconds;
        stdout::print(&format!(
            "{:7.1} s  rx {:>8} pps {:>9} bit/s  tx {:>8} pps {:>9} bit/s  {:5.1} frames/packet  {} dropped  {} held\n",
            (now - self.epoch).as_secs_f64(),
            short(per_second(since.rx_frames)),
            short(8.0 * per_second(since.rx_bytes)),
            short(per_second(since.tx_frames)),
            short(8.0 * per_second(since.tx_bytes)),
            since.rx_frames as f64 / since.delivered.max(1) as f64,
            since.drops.total(),
            since.held,
        ))
    }

    /// Where everything went.
    pub(super) fn last(&mut self, ended: &[Ended<Forward>]) -> Result<(), Failure> {
        let account = total(ended.iter().map(|ended| ended.account));
        if self.json {
            return self.object("total", &account);
        }
        let seconds = self.epoch.elapsed().as_secs_f64();
        let mut text = format!(
            "{:>14} frames in {seconds:.2} s, {} pps, {} bit/s\n",
            account.rx_frames,
            short(account.rx_frames as f64 / seconds),
            short(8.0 * account.rx_bytes as f64 / seconds),
        );
        let mut row = |n: u64, what: &str| text.push_str(&format!("{n:>14} {what}\n"));
        if account.copied > 0 {
            row(account.copied, "copies made on the way");
        }
        row(account.tx_frames, "sent");
        if account.consumed > 0 {
            row(account.consumed, "received to the end");
        }
        for reason in DropReason::ALL {
            if account.drops.count(reason) > 0 {
                row(account.drops.count(reason), &format!("dropped: {}", reason.name()));
            }
        }
        row(account.held, "held");
        stdout::print(&text)
    }

    fn object(&self, of: &'static str, account: &Account) -> Result<(), Failure> {
        let drops = DropReason::ALL.map(|reason| (reason.name(), account.drops.count(reason)));
        let object = Object {
            of,
            seconds: self.epoch.elapsed().as_secs_f64(),
            rx_frames: account.rx_frames,
            rx_bytes: account.rx_bytes,
            delivered: account.delivered,
            consumed: account.consumed,
            tx_frames: account.tx_frames,
            tx_bytes: account.tx_bytes,
            copied: account.copied,
            held: account.held,
            dropped: account.drops.total(),
            drops: drops.into_iter().filter(|(_, n)| *n > 0).collect(),
        };
        match serde_json::to_string(&object) {
            Ok(text) => stdout::print(&(text + "\n")),
            Err(error) => Err(Failure::System(error.to_string())),
        }
    }
}

/// A number with three or four digits and a prefix: 12.3M.
fn short(number: f64) -> String {
    const PREFIXES: [(f64, &str); 3] = [(1e9, "G"), (1e6, "M"), (1e3, "k")];
    match PREFIXES.iter().find(|(unit, _)| number >= *unit) {
        Some((unit, prefix)) => format!("{:.1}{prefix}", number / unit),
        None => format!("{number:.0}"),
    }
}

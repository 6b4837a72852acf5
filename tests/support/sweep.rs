//! Every capture and every case, under every setting at which a law must hold.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use serde_json::Value;

use super::{captures, grilse, is_refused, oracle, pcap};

/// Frames per poll: one at a time, a number that divides nothing, the kernel's weight.
const BATCHES: [usize; 3] = [1, 7, 64];

/// The frames of one input.
type Frames = Arc<Vec<Vec<u8>>>;

/// One run that a law is held against.
#[derive(Debug)]
pub(crate) struct Sample {
    /// The command line, for the message.
    pub(crate) what: String,
    /// The arguments, without the name of the program and without `--json`.
    pub(crate) args: Vec<String>,
    /// Frames per poll.
    pub(crate) batch: usize,
    /// What went in.
    pub(crate) frames: Frames,
    /// The JSON lines that came out.
    pub(crate) lines: Vec<Value>,
}

impl Sample {
    /// The lines of packets, without those of refused frames.
    pub(crate) fn delivered(&self) -> impl Iterator<Item = &Value> {
        self.lines.iter().filter(|line| !is_refused(line))
    }
}

/// All samples, run once for all tests of a law.
pub(crate) fn samples() -> &'static [Sample] {
    static SAMPLES: LazyLock<Vec<Sample>> = LazyLock::new(run_all);
    &SAMPLES
}

fn run_all() -> Vec<Sample> {
    let mut samples = Vec::new();
    for (path, options) in inputs() {
        let file = fs::read(&path).expect("the captures and cases are committed");
        let frames = Arc::new(pcap::read(&file));
        for batch in BATCHES {
            for hash in [&[][..], &["--no-hash"]] {
                let mut args = vec!["gro".to_owned(), path.display().to_string()];
                args.extend(options.iter().cloned());
                args.extend(["--batch".to_owned(), batch.to_string()]);
                args.extend(hash.iter().map(|&flag| flag.to_owned()));
                samples.push(run(args, batch, Arc::clone(&frames)));
            }
        }
    }
    samples
}

/// Runs one sample; fails unless it ends well and prints something: no input is empty, so no law may
/// hold for want of lines.
fn run(args: Vec<String>, batch: usize, frames: Frames) -> Sample {
    let what = args.join(" ");
    let run = grilse(args.iter().map(String::as_str).chain(["--json", "-"]));
    run.ended(&what, &[0]);
    let lines = run.lines();
    assert!(!lines.is_empty(), "{what}: nothing came out");
    Sample { what, args, batch, frames, lines }
}

/// Every input with its own options, the batch left out.
fn inputs() -> Vec<(PathBuf, Vec<String>)> {
    let captures = captures().into_iter().map(|path| (path, Vec::new()));
    let cases = oracle::cases().into_iter().map(|case| (case.capture(), case.options()));
    captures.chain(cases).collect()
}

//! Every capture and every case, under every setting at which a law must hold.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use super::{captures, grilse, oracle, pcap};

/// Frames per poll: one at a time, a number that divides nothing, the kernel's weight.
const BATCHES: [usize; 3] = [1, 7, 64];

/// One run that a law is held against.
#[derive(Debug)]
pub(crate) struct Sample {
    /// The command line, for the message.
    pub(crate) what: String,
    /// The arguments, without the name of the program and without `--json`.
    pub(crate) args: Vec<String>,
    /// Frames per poll.
    pub(crate) batch: usize,
}

impl Sample {
    /// Runs it and returns the JSON lines; fails unless it ends well.
    pub(crate) fn lines(&self) -> Vec<Value> {
        let run = grilse(self.args.iter().map(String::as_str).chain(["--json", "-"]));
        run.ended(&self.what, &[0]);
        let lines = run.lines();
        assert!(
            !lines.is_empty(),
            "{}: no input is empty, so no law may hold for want of lines",
            self.what
        );
        lines
    }
}

/// Calls `law` with the frames of every input and its samples.
pub(crate) fn every_sample(mut law: impl FnMut(&[Vec<u8>], &Sample)) {
    for (path, options) in inputs() {
        let file = fs::read(&path).expect("the captures and cases are committed");
        let frames = pcap::read(&file);
        for batch in BATCHES {
            for hash in [&[][..], &["--no-hash"]] {
                let mut args = vec!["gro".to_owned(), path.display().to_string()];
                args.extend(options.iter().cloned());
                args.extend(["--batch".to_owned(), batch.to_string()]);
                args.extend(hash.iter().map(|&flag| flag.to_owned()));
                law(&frames, &Sample { what: args.join(" "), args, batch });
            }
        }
    }
}

/// Every input with its own options, the batch left out.
fn inputs() -> Vec<(PathBuf, Vec<String>)> {
    let captures = captures().into_iter().map(|path| (path, Vec::new()));
    let cases = oracle::cases().into_iter().map(|case| (case.capture(), case.options()));
    captures.chain(cases).collect()
}

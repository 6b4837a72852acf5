//! What the law tests share: running the program, reading what it prints, scratch files, and the
//! captures that they feed it.
//!
//! Everything here is duller than what it tests: no parser of ours is used to judge ours. The
//! program is run as a user runs it, by its name and its arguments, and is given a deadline, so
//! that a hang is a failure and not a wait.

#![allow(dead_code, reason = "each law is a crate of its own and uses a part of this")]

pub(crate) mod frame;
pub(crate) mod hunt;
pub(crate) mod oracle;
pub(crate) mod pcap;
pub(crate) mod sweep;
pub(crate) mod traffic;
pub(crate) mod trains;
pub(crate) mod tunnel;

use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{env, fs, io, process};

use serde_json::Value;

/// A run that takes longer hangs. The slowest one here takes a few seconds in a debug build on a
/// loaded machine.
const DEADLINE: Duration = Duration::from_secs(120);

/// The program under test.
pub(crate) const GRILSE: &str = env!("CARGO_BIN_EXE_grilse");

/// The root of the checkout.
pub(crate) fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The real captures of the checkout, by name.
pub(crate) fn captures() -> Vec<PathBuf> {
    let folder = fs::read_dir(root().join("captures")).expect("the captures are committed");
    let mut found: Vec<PathBuf> = folder
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| path.extension() == Some(OsStr::new("pcap")))
        .collect();
    found.sort();
    assert!(!found.is_empty(), "no capture in captures/");
    found
}

/// What a run of the program left behind.
#[derive(Debug)]
pub(crate) struct Run {
    /// The exit code; `None` where a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Run {
    /// The JSON lines of standard output.
    pub(crate) fn lines(&self) -> Vec<Value> {
        json_lines(&self.stdout)
    }

    /// Fails unless the program ended by itself, with one of `codes`, and without a panic.
    pub(crate) fn ended(&self, what: &str, codes: &[i32]) {
        assert!(
            self.code.is_some_and(|code| codes.contains(&code)),
            "{what}: exit code {:?}, not one of {codes:?}; it said: {}",
            self.code,
            self.stderr
        );
        for panic in ["panicked at", "RUST_BACKTRACE"] {
            assert!(!self.stderr.contains(panic), "{what}: a panic: {}", self.stderr);
        }
    }
}

/// Runs `grilse` with these arguments at the root of the checkout, to its end.
pub(crate) fn grilse<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Run {
    let mut command = Command::new(GRILSE);
    command.args(args);
    run(command)
}

/// Runs `command` at the root of the checkout with no input, to its end.
pub(crate) fn run(mut command: Command) -> Run {
    command.current_dir(root()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let stdout = drain(child.stdout.take().expect("piped above"));
    let stderr = drain(child.stderr.take().expect("piped above"));
    let code = wait(&mut child, &format!("{command:?}"));
    Run {
        code,
        stdout: stdout.join().expect("the reader does not panic"),
        stderr: String::from_utf8_lossy(&stderr.join().expect("the reader does not panic")).into(),
    }
}

/// Waits for `child` and returns its exit code; kills it and fails past the deadline.
pub(crate) fn wait(child: &mut Child, what: &str) -> Option<i32> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("a child of ours") {
            return status.code();
        }
        if start.elapsed() > DEADLINE {
            child.kill().expect("a child of ours");
            panic!("{what} did not end within {DEADLINE:?}");
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Reads a pipe to its end beside the caller, so that a full pipe never blocks the program.
fn drain(mut pipe: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).expect("a pipe can be read");
        bytes
    })
}

/// Parses JSON lines; a line that is not JSON fails the test.
pub(crate) fn json_lines(text: &[u8]) -> Vec<Value> {
    let text = str::from_utf8(text).expect("JSON is UTF-8");
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e} in: {line}")))
        .collect()
}

/// `line[key]` as a number; fails where there is none.
pub(crate) fn number(line: &Value, key: &str) -> usize {
    let value = line[key].as_u64().unwrap_or_else(|| panic!("no number `{key}` in {line}"));
    value.try_into().expect("a 64-bit machine")
}

/// The input frames that a delivered packet stands for.
pub(crate) fn members(line: &Value) -> Vec<usize> {
    let list = line["members"].as_array().unwrap_or_else(|| panic!("no `members` in {line}"));
    list.iter().map(|m| m.as_u64().expect("members are numbers") as usize).collect()
}

/// Whether the line reports a frame that no device would take.
pub(crate) fn is_refused(line: &Value) -> bool {
    line.get("refused").is_some()
}

/// Whether tests may not be skipped here: in CI, or where the user says so.
fn skipping_forbidden() -> bool {
    env::var_os("CI").is_some_and(|v| v == "true")
        || env::var_os("GRILSE_NO_SKIP").is_some_and(|v| v == "1")
}

/// Says aloud that a test is skipped, or fails it where skipping is forbidden.
pub(crate) fn skip(test: &str, why: &str) {
    assert!(!skipping_forbidden(), "{test} may not be skipped here, but {why}");
    // Not eprintln!: the test runner hides what that prints in a test that passes.
    let said = format!("SKIPPED (needs root/TUN): {test}: {why}\n");
    io::Write::write_all(&mut io::stderr(), said.as_bytes()).expect("standard error is open");
}

/// A folder for one test, gone with it.
#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("{}-{}", process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&path).expect("the target folder is writable");
        Self(path)
    }

    /// A path in the folder; nothing is made there.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// A file of the folder with these bytes.
    pub(crate) fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, bytes).expect("the target folder is writable");
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A folder that stays behind in target/ harms nobody; a panic in a drop would.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014): the same places in every run.
#[derive(Debug)]
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`; the bias of the remainder does not matter here.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    /// True `percent` times in a hundred.
    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of `all`.
    pub(crate) fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

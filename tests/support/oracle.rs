//! The kernel as oracle: its recorded answers, its live ones, and the comparison with ours.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use serde_json::{Map, Value};

use super::{json_lines, root, run};

/// The folder of the oracle.
fn folder() -> PathBuf {
    root().join("tests/oracle")
}

/// One case of `cases/index.json`.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) name: String,
    /// The options of `kernel-gro`.
    pub(crate) args: Vec<String>,
}

impl Case {
    pub(crate) fn capture(&self) -> PathBuf {
        folder().join("cases").join(&self.name).with_extension("pcap")
    }

    /// What the kernel made of it when the cases were recorded.
    pub(crate) fn expected(&self) -> Vec<Value> {
        let path = folder().join("expected").join(&self.name).with_extension("jsonl");
        json_lines(&fs::read(path).expect("each case has an answer"))
    }

    /// The options of `grilse gro` that mean the same, less the batch.
    pub(crate) fn options(&self) -> Vec<String> {
        let mut options = vec!["--vlan".to_owned(), "none".to_owned()];
        let mut args = self.args.iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--hw-vlan" => options[1] = "hw".to_owned(),
                "--batch" => drop(args.next()),
                _ => options.push(arg.clone()),
            }
        }
        options
    }

    /// The batch that the case names.
    pub(crate) fn batch(&self) -> Option<&str> {
        let at = self.args.iter().position(|arg| arg == "--batch")?;
        Some(&self.args[at + 1])
    }

    /// Whether tags are taken out of the frames before GRO.
    pub(crate) fn takes_tags_out(&self) -> bool {
        self.args.iter().any(|arg| arg == "--hw-vlan")
    }
}

/// All cases, by name.
pub(crate) fn cases() -> Vec<Case> {
    let index = fs::read(folder().join("cases/index.json")).expect("the index is committed");
    let index: Map<String, Value> = serde_json::from_slice(&index).expect("the index is JSON");
    assert!(!index.is_empty(), "no case in the index");
    let args = |about: &Value| -> Vec<String> {
        let list = about["args"].as_array().expect("args is a list");
        list.iter().map(|arg| arg.as_str().expect("of strings").to_owned()).collect()
    };
    index.iter().map(|(name, about)| Case { name: name.clone(), args: args(about) }).collect()
}

/// How two answers are laid beside each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Compare {
    /// Both name the batch, so that it means the same.
    pub(crate) batch: bool,
    /// Both take tags out before GRO. Elsewhere the oracle reports a tag that the kernel took out
    /// after GRO, and we have none to report.
    pub(crate) vlan: bool,
}

impl Compare {
    /// Every difference between the kernel's lines and ours, each with line, key and both values.
    ///
    /// Ours may have more keys than the oracle's. A key of the oracle's that ours lacks is a
    /// difference, or a forgotten key would always agree.
    pub(crate) fn differences(self, kernel: &[Value], ours: &[Value]) -> Vec<String> {
        let mut found = Vec::new();
        if kernel.len() != ours.len() {
            found.push(format!("{} lines, the kernel has {}", ours.len(), kernel.len()));
        }
        for (at, (kernel, ours)) in kernel.iter().zip(ours).enumerate() {
            let keys = kernel.as_object().expect("a line is an object").keys();
            for key in keys.map(String::as_str).filter(|key| self.compares(key)) {
                let (theirs, ours) = (&kernel[key], ours.get(key));
                if ours != Some(theirs) {
                    let ours = ours.map_or("absent".to_owned(), Value::to_string);
                    found.push(format!("line {at}, {key}: {ours}, the kernel has {theirs}"));
                }
            }
            for alone in ["vlan", "refused"].into_iter().filter(|key| self.compares(key)) {
                if ours.get(alone).is_some() && kernel.get(alone).is_none() {
                    found.push(format!("line {at}, {alone}: {}, the kernel has none", ours[alone]));
                }
            }
        }
        found
    }

    fn compares(self, key: &str) -> bool {
        match key {
            "batch" => self.batch,
            "vlan" => self.vlan,
            _ => true,
        }
    }
}

/// The live kernel, held alone: the oracle wants a CPU for itself, so a second one, in this process
/// or in another, waits until this value is dropped.
#[derive(Debug)]
pub(crate) struct Kernel {
    _alone: File,
}

impl Kernel {
    /// The running kernel as oracle; the error says what it lacks here.
    pub(crate) fn open() -> Result<Self, String> {
        let recorded = fs::read_to_string(folder().join("expected/KERNEL")).expect("committed");
        requirements(recorded.trim())?;
        let alone = File::open(folder().join("kernel-gro")).expect("the oracle is committed");
        alone.lock().map_err(|e| format!("the oracle cannot be locked: {e}"))?;
        Ok(Self { _alone: alone })
    }

    /// What the kernel's GRO makes of a capture. Fails where the oracle does: what it needs is there.
    pub(crate) fn gro(&self, capture: &Path, args: &[String]) -> Vec<Value> {
        ask("kernel-gro", capture, args)
    }

    /// The frames that the kernel makes of the super-packets in `prefix`.pcap and `prefix`.jsonl.
    pub(crate) fn gso(&self, prefix: &str) -> Vec<Value> {
        ask("kernel-gso", Path::new(prefix), &[])
    }

    /// The frames that the kernel forwards of a capture, through GRO and GSO.
    pub(crate) fn path(&self, capture: &Path, args: &[String]) -> Vec<Value> {
        ask("kernel-path", capture, args)
    }
}

fn ask(tool: &str, input: &Path, args: &[String]) -> Vec<Value> {
    let mut command = Command::new("python3");
    command.arg(folder().join(tool)).arg(input).args(args);
    let answer = run(command);
    assert_eq!(answer.code, Some(0), "{tool} on {}: {}", input.display(), answer.stderr);
    answer.lines()
}

/// What the oracle needs of the machine, each with its own complaint.
fn requirements(recorded: &str) -> Result<(), String> {
    let status = fs::read_to_string("/proc/self/status").map_err(|e| format!("no /proc: {e}"))?;
    let uids = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap_or_default();
    if uids.split_whitespace().nth(1) != Some("0") {
        return Err("the user is not root".to_owned());
    }
    let tun = OpenOptions::new().read(true).write(true).open("/dev/net/tun");
    tun.map_err(|e| format!("/dev/net/tun: {e}"))?;
    if thread::available_parallelism().map_or(1, usize::from) < 2 {
        return Err("there is only one CPU".to_owned());
    }
    // GRO's rules move between kernels: another release than the recorded one is another oracle.
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let series = |release: &str| release.split('.').take(2).collect::<Vec<_>>().join(".");
    if series(&release) != series(recorded) {
        return Err(format!("this is Linux {}, recorded was {recorded}", release.trim()));
    }
    let probe = "import ctypes, os; os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(20)); \
                 exit(ctypes.CDLL(None).unshare(0x40020000))";
    let status = Command::new("python3").args(["-c", probe]).stderr(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err("SCHED_FIFO or a network namespace is refused".to_owned()),
        Err(e) => Err(format!("python3: {e}")),
    }
}

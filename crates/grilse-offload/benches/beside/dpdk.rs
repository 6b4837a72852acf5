//! DPDK, in a process of its own (`benches/peers/dpdk_offload`), as its EAL wants to own the process
//! it runs in. It sleeps in a read of its pipe between rounds.
//!
//! Protocol: it first writes `ready`; each request is a line, `gro FLOWS` or `gso`, each answer a line
//! `NANOSECONDS OUT`, the time for one packet or segment and how many came out.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::Round;

const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/peers/dpdk_offload");

pub(crate) struct Dpdk {
    child: Child,
    pipes: RefCell<(ChildStdin, BufReader<ChildStdout>)>,
}

impl Dpdk {
    /// The peer, ready for its first round; an error says why there is none.
    pub(crate) fn start() -> Result<Self, String> {
        if !Path::new(PROGRAM).exists() {
            return Err("not built: `make -C benches/peers`, which needs dpdk-dev".to_owned());
        }
        let cpu = rustix::thread::sched_getcpu().to_string();
        let mut child = Command::new(PROGRAM)
            .args(["--no-pci", "--no-telemetry", "--log-level=*:error", "-m", "128", "--no-huge"])
            .args(["-l", &cpu])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start: {error}"))?;
        let (Some(requests), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("no pipes".to_owned());
        };
        let mut answers = BufReader::new(answers);
        let mut line = String::new();
        match answers.read_line(&mut line) {
            Ok(_) if line.trim() == "ready" => {
                Ok(Self { child, pipes: RefCell::new((requests, answers)) })
            }
            _ => Err("it ended before it was ready".to_owned()),
        }
    }

    /// One round of a work.
    pub(crate) fn round(&self, work: &str) -> Round {
        let (requests, answers) = &mut *self.pipes.borrow_mut();
        writeln!(requests, "{work}").expect("the DPDK peer lives");
        let mut line = String::new();
        answers.read_line(&mut line).expect("the DPDK peer answers");
        match line.split_once(' ').map(|(ns, out)| (ns.parse(), out.trim().parse())) {
            Some((Ok(ns), Ok(out))) => Round { ns, out },
            _ => panic!("the DPDK peer answered {line:?}"),
        }
    }
}

impl Drop for Dpdk {
    fn drop(&mut self) {
        // It ends at an empty line.
        let told = writeln!(self.pipes.get_mut().0);
        let ended = self.child.wait();
        debug_assert!(told.is_ok() && ended.is_ok());
    }
}

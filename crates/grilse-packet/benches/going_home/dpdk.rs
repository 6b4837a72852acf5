//! DPDK, in a process of its own (`benches/peers/dpdk_pool`), as its EAL wants to own the process it
//! runs in. It sleeps in a read of its pipe between rounds, so its rounds interleave with the others.
//!
//! Protocol: it first writes one line for each pool (`name work work ..`), and `ready PAGES`; each
//! request is a line `pool work objects`, each answer a line `nanoseconds checksum`.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::rc::Rc;
use std::time::Duration;

use crate::pair::{Contestant, Round};
use crate::work::Work;

const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/peers/dpdk_pool");

/// The peer's pools and the pages they stand on; an error says why there are none.
pub(crate) fn contestants(cpus: [usize; 2]) -> Result<(Vec<Box<dyn Contestant>>, String), String> {
    if !Path::new(PROGRAM).exists() {
        return Err("not built: `make -C benches/peers`, which needs dpdk-dev".to_owned());
    }
    // In memory: without a mounted hugetlbfs, and without files that outlive a crash.
    let pages = if free_huge_pages() >= 64 { "--in-memory" } else { "--no-huge" };
    let child = Command::new(PROGRAM)
        .args(["--no-pci", "--no-telemetry", "--log-level=*:error", "-m", "128", pages, "-l"])
        .arg(format!("{},{}", cpus[0], cpus[1]))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut child = child.map_err(|error| format!("cannot start: {error}"))?;
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let (Some(requests), Some(answers)) = (stdin, stdout) else {
        return Err("no pipes".to_owned());
    };
    let mut peer = Peer { child, requests, answers: BufReader::new(answers) };
    let mut pools = Vec::new();
    loop {
        let line = peer.line();
        let mut words = line.split_whitespace();
        match (words.next(), words.next()) {
            (Some("ready"), Some(pages)) => {
                let peer = Rc::new(RefCell::new(peer));
                let contestants = pools.into_iter().map(|(name, works)| {
                    let peer = Rc::clone(&peer);
                    Box::new(Pooled { name, works, peer }) as Box<dyn Contestant>
                });
                return Ok((contestants.collect(), pages.to_owned()));
            }
            (Some(pool), Some(first)) => {
                let named = |word: &str| Work::ALL.into_iter().find(|work| work.name() == word);
                let works = [first].into_iter().chain(words).filter_map(named).collect();
                pools.push((format!("dpdk {pool}"), works));
            }
            _ => return Err("it ended before it was ready".to_owned()),
        }
    }
}

fn free_huge_pages() -> u32 {
    let info = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = info.lines().find_map(|line| line.strip_prefix("HugePages_Free:"));
    line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

struct Peer {
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Peer {
    /// Its next line; empty where it has ended.
    fn line(&mut self) -> String {
        let mut line = String::new();
        let read = self.answers.read_line(&mut line);
        if read.is_ok() { line } else { String::new() }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It ends when its input does; an empty line says so before the pipe closes.
        let told = writeln!(self.requests);
        let ended = self.child.wait();
        debug_assert!(told.is_ok() && ended.is_ok());
    }
}

/// One of its pools.
struct Pooled {
    name: String,
    works: Vec<Work>,
    peer: Rc<RefCell<Peer>>,
}

impl Contestant for Pooled {
    fn name(&self) -> &str {
        &self.name
    }

    fn does(&self, work: Work) -> bool {
        self.works.contains(&work)
    }

    fn round(&mut self, work: Work, objects: u64) -> Round {
        let mut peer = self.peer.borrow_mut();
        let pool = self.name.trim_start_matches("dpdk ");
        writeln!(peer.requests, "{pool} {} {objects}", work.name()).expect("the DPDK peer lives");
        let answer = peer.line();
        let numbers = answer.split_whitespace().map(str::parse::<u64>);
        let Ok([ns, checksum]) = <[u64; 2]>::try_from(numbers.flatten().collect::<Vec<_>>()) else {
            panic!("the DPDK peer answered {answer:?}")
        };
        Round { took: Duration::from_nanos(ns), checksum }
    }

    /// It checks that its pool is full after each round, and ends where it is not.
    fn close(self: Box<Self>) -> Option<usize> {
        None
    }
}

//! The seeds' workloads under the `grilse` profile, against every other named policy in turn; and
//! under the kernel's policies, before and after each change that a seed measured.
//!
//! ```sh
//! cargo bench -p grilse-packet --bench seeds                          # everything, 101 pairs each
//! cargo bench -p grilse-packet --bench seeds -- --pairs 31 xdp-tx     # some
//! cargo bench -p grilse-packet --bench seeds -- --check
//! ```
//!
//! `--check` does a little of all and judges no time: every skb is read as it was written, and none
//! is lost; so does `cargo test --benches`. Two CPUs that nobody else uses are needed for figures;
//! root gets the threads run before others'.
//!
//! A pair is one round of either policy, one right after the other, and who begins changes from pair
//! to pair. Both do the same work in the same code and touch the same bytes (`work.rs`); each has a
//! memory of its own. `times as fast` is the median of the pairs' ratios of throughput, with the
//! interval in which it lies in 95 of 100 repeats, by order statistics: no assumption on how figures
//! scatter. Won: all of it above 1; not lost: above 0.97; lost: below that; else not decided.
//! `grilse, home` and the like are the profile with its choice fixed, and `grilse, again` is itself in
//! another memory: what that row is off 1 by, others may be too, as no interval shows where the pages of
//! a memory happen to lie. The shares are what became of
//! the skbs that the policy saw freed away from home.
//!
//! The seeds' own figures are of machines with many cores, and of whole packets' ways: what can
//! agree here is the sign. Two threads cannot express a slab that dozens of cores contend for, what
//! an interrupt between processors costs, or a second memory node.

#[path = "../going_home/cpu.rs"]
#[expect(dead_code, reason = "what threads do that share a CPU is going_home's alone")]
mod cpu;
#[path = "../going_home/gate.rs"]
mod gate;
#[path = "../going_home/summary.rs"]
mod summary;

mod contestant;
mod lane;
mod policies;
mod table;
mod verdict;
mod work;

use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use crate::contestant::Contestant;
use crate::policies::{JUDGED, Named};
use crate::table::Pairs;
use crate::work::Work;

/// What the command line asks for.
struct Plan {
    pairs: usize,
    /// Skbs in a round: a millisecond or two.
    skbs: u64,
    works: Vec<Work>,
    check: bool,
}

impl Plan {
    fn from_args(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut plan = Self { pairs: 101, skbs: 1 << 16, works: Vec::new(), check: false };
        let mut figures = false;
        while let Some(arg) = args.next() {
            match arg.as_str() {
                // Cargo says so when it is asked for figures.
                "--bench" => figures = true,
                "--check" => plan.check = true,
                "--pairs" => {
                    let pairs = args.next().and_then(|count| count.parse().ok());
                    let pairs = pairs.filter(|pairs| *pairs > 0);
                    plan.pairs = pairs.ok_or("--pairs takes a number above 0")?;
                }
                word => {
                    let work = Work::ALL.into_iter().find(|work| work.name() == word);
                    let names = Work::ALL.map(Work::name).join(", ");
                    plan.works.push(work.ok_or(format!("no work '{word}': there are {names}"))?);
                }
            }
        }
        if plan.check || !figures {
            (plan.check, plan.pairs, plan.skbs) = (true, 1, 1 << 12);
        }
        if plan.works.is_empty() {
            plan.works = Work::ALL.to_vec();
        }
        Ok(plan)
    }
}

fn main() -> ExitCode {
    let plan = match Plan::from_args(std::env::args().skip(1)) {
        Ok(plan) => plan,
        Err(wrong) => {
            eprintln!("{wrong}");
            return ExitCode::from(2);
        }
    };
    let Some(cpus) = cpu::two() else {
        println!("seeds skipped: it takes two CPUs");
        return ExitCode::SUCCESS;
    };
    println!("{}", cpu::machine(cpus, cpu::run_first()));
    cpu::pin(cpus[0]);
    let lost: u32 = plan.works.iter().map(|work| run(*work, &plan, cpus)).sum();
    if plan.check {
        summary::check();
        verdict::check();
        println!("checksums equal, {lost} skbs lost");
    }
    if lost == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Does one workload under everybody, and returns how many skbs were lost.
fn run(work: Work, plan: &Plan, cpus: [usize; 2]) -> u32 {
    let opponents = policies::opponents();
    let claims = policies::claims(work);
    let mut all = vec![JUDGED];
    let claimed = claims.iter().flat_map(|claim| [claim.a, claim.b]);
    for named in opponents.iter().copied().chain(claimed) {
        if all.iter().all(|(name, _)| *name != named.0) {
            all.push(named);
        }
    }
    let seat = |(name, policy): Named| Contestant::new(name, policy, work, cpus);
    let mut all: Vec<_> = all.into_iter().map(seat).collect();
    for contestant in &mut all {
        // Pages are touched, and caches filled.
        contestant.round(plan.skbs);
    }
    let line_ns = work.roles().1.map(|_| cpu::line_ns(cpus, 10_000));
    table::head(work, plan.pairs, plan.skbs, line_ns);
    for opponent in &opponents {
        let pairs = compare(&mut all, opponent.0, JUDGED.0, plan);
        table::judged(opponent.0, &pairs, find(&mut all, opponent.0).mix());
    }
    table::own(JUDGED.0, find(&mut all, JUDGED.0).mix());
    for claim in &claims {
        let pairs = compare(&mut all, claim.a.0, claim.b.0, plan);
        table::claim(claim, &pairs);
    }
    all.into_iter().map(Contestant::close).sum()
}

/// Lets two take turns.
fn compare(all: &mut [Contestant], a: &str, b: &str, plan: &Plan) -> Pairs {
    let mut pairs = Pairs::default();
    let mut round = |name: &str| {
        // Threads that run before all others leave them room.
        thread::sleep(Duration::from_millis(1));
        find(all, name).round(plan.skbs)
    };
    for pair in 0..plan.pairs {
        let (first, second) = if pair % 2 == 0 { (a, b) } else { (b, a) };
        let times = (round(first), round(second));
        let (of_a, of_b) = if pair % 2 == 0 { times } else { (times.1, times.0) };
        pairs.a.push(of_a);
        pairs.b.push(of_b);
    }
    pairs
}

fn find<'a>(all: &'a mut [Contestant], name: &str) -> &'a mut Contestant {
    all.iter_mut().find(|one| one.name == name).expect("everybody sat down")
}

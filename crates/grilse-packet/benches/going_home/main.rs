//! What it costs to take memory on one core and to free it on the same or on another: grilse beside
//! general allocators, pools and DPDK, in one interleaved run.
//!
//! ```sh
//! make -C benches/peers                                   # once; needs dpdk-dev, else DPDK is skipped
//! cargo bench -p grilse-packet --bench going_home         # everything, 21 rounds
//! cargo bench -p grilse-packet --bench going_home -- --quick pipe same-32
//! cargo bench -p grilse-packet --bench going_home -- --check
//! ```
//!
//! `--rounds N` sets the rounds, `--quick` makes them few and short, and words such as `pipe` choose
//! the work. `--check` does a little of all of it and judges no time: every byte that was written
//! is read, and nothing is lost; so does `cargo test --benches`. Two CPUs that nobody else uses are
//! needed for figures; root gets the threads run before others', and DPDK its huge pages:
//! `echo 256 > /proc/sys/vm/nr_hugepages`.
//!
//! The rules. All contestants do the same work, on the same number of objects, in bursts of 32, and
//! touch the same bytes (`pool.rs`, `work.rs`); each round sums up what it read, and the sum is
//! checked. They take turns, one round each, so that what else the machine does falls on all. Two
//! threads are pinned before they start, and sleep when it is not their turn.
//!
//! The table. Nanoseconds per object: median, least and most of the rounds. `times`: the
//! contestant's time by that of the first row, paired round by round, with the interval in which the
//! median lies in 95 of 100 repeats; above 1 the first row wins. `lines`: time by that of one cache
//! line passed between the two CPUs, measured in the same rounds, hence the number of transfers, one
//! after the other, that an object costs. `asked`: what DESIGN asks of grilse against that row.
//!
//! What must move, in transfers of one line: of each object the lines that are written and read, there
//! and back (four in pipe-128, twelve in pipe-256+128); of each burst the ring's four lines and its two
//! indices; with grilse also six lines of a magazine, there and back, and the words of two lists, there
//! and back. Transfers that nobody waits for one after the other overlap: `lines` says how many of
//! them an object still costs, and what must move by `lines` how many were under way at a time.
//!
//! Every crossing row holds the ring between the cores (`ring only`, two transfers one after the other
//! for each burst), so nobody can be twice as fast as one who adds next to nothing to it: there the
//! floor is the answer. Where the host places its virtual CPUs moves all crossing rows together, and
//! their ratios too: compare figures only where the line costs the same. Rust is built for the
//! baseline of its target, DPDK for this machine, each as it is shipped.
//!
//! Last comes how long objects were parked under each policy (`parked.rs`); the word `parked` alone
//! asks for that and no other work.
//!
//! With more threads than CPUs (three to one, one to three) time says nothing: those are checked for
//! conservation only, in every run.

mod cpu;
mod dpdk;
mod floor;
mod gate;
mod grilse;
mod heap;
mod kernel_list;
mod many;
mod object;
mod pair;
mod parked;
mod pool;
mod queue;
mod summary;
mod table;
mod work;

use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use mimalloc::MiMalloc;

use crate::floor::{Floor, RingOnly};
use crate::heap::Heap;
use crate::kernel_list::KernelList;
use crate::pair::{Contestant, Pair};
use crate::pool::BURST;
use crate::queue::Shared;
use crate::table::Row;
use crate::work::Work;

/// What the command line asks for.
struct Plan {
    rounds: usize,
    /// By what the objects of a round are divided.
    shorter: u64,
    works: Vec<Work>,
    parked: bool,
    check: bool,
}

impl Plan {
    fn from_args(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut plan =
            Self { rounds: 21, shorter: 1, works: Vec::new(), parked: false, check: false };
        let mut figures = false;
        while let Some(arg) = args.next() {
            match arg.as_str() {
                // Cargo says so when it is asked for figures.
                "--bench" => figures = true,
                "--check" => plan.check = true,
                "--quick" => (plan.rounds, plan.shorter) = (5, 4),
                "--rounds" => {
                    let rounds = args.next().and_then(|count| count.parse().ok());
                    let rounds = rounds.filter(|rounds| *rounds > 0);
                    plan.rounds = rounds.ok_or("--rounds takes a number above 0")?;
                }
                "parked" => plan.parked = true,
                word => {
                    let work = Work::ALL.into_iter().find(|work| work.name() == word);
                    let names = Work::ALL.map(Work::name).join(", ");
                    plan.works
                        .push(work.ok_or(format!("no work '{word}': there are {names}, parked"))?);
                }
            }
        }
        if plan.check || !figures {
            (plan.check, plan.rounds, plan.shorter) = (true, 1, 32);
        }
        if plan.works.is_empty() && !plan.parked {
            (plan.works, plan.parked) = (Work::ALL.to_vec(), true);
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
        println!("going_home skipped: it takes two CPUs");
        return ExitCode::SUCCESS;
    };
    // DPDK starts threads and spins until they run: it must not inherit one CPU, nor a priority.
    let peers = dpdk::contestants(cpus);
    println!("{}", cpu::machine(cpus, cpu::run_first()));
    cpu::pin(cpus[0]);

    let mut contestants = contestants(cpus);
    match peers {
        Ok((peers, pages)) => {
            println!("DPDK on {pages}");
            contestants.extend(peers);
        }
        Err(why) => println!("DPDK skipped: {why}"),
    }
    for work in &plan.works {
        let rows = run(*work, &plan, cpus, &mut contestants);
        if !plan.check {
            table::print(*work, plan.rounds, work.objects() / plan.shorter, &rows);
        }
    }
    if plan.parked {
        // Some seconds of the paced pipe in all, as it waits for most of its time.
        parked::print(cpus, plan.rounds.min(5), 20_000 / plan.shorter);
    }
    let mut whole = lost_by_many();
    for contestant in contestants {
        let name = contestant.name().to_owned();
        if let Some(lost @ 1..) = contestant.close() {
            println!("{name}: {lost} objects lost");
            whole = false;
        }
    }
    if plan.check {
        summary::check();
        parked::check();
        println!("checksums equal, {}", if whole { "nothing lost" } else { "but objects lost" });
    }
    if whole { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// All of this process, the one that is compared with first.
fn contestants(cpus: [usize; 2]) -> Vec<Box<dyn Contestant>> {
    const CROSSING: &[Work] = &[Work::Pipe, Work::PipeShell, Work::PipeHead, Work::Pairwise];
    let mut all = grilse::contestants(cpus);
    all.push(Pair::boxed("ring only", &[Work::Pipe, Work::Pairwise], cpus, RingOnly));
    all.push(Pair::boxed("floor", CROSSING, cpus, Floor::new()));
    all.push(Pair::boxed("kernel list", &Work::ALL, cpus, KernelList::new()));
    all.push(Pair::boxed("crossbeam queue", &Work::ALL, cpus, Shared::new()));
    all.push(Pair::boxed("mimalloc", &Work::ALL, cpus, Heap(MiMalloc)));
    all.push(Pair::boxed("system malloc", &Work::ALL, cpus, Heap(std::alloc::System)));
    all
}

/// Does one work, everybody in turn, round by round, after one round that warms up.
fn run(
    work: Work,
    plan: &Plan,
    cpus: [usize; 2],
    contestants: &mut [Box<dyn Contestant>],
) -> Vec<Row> {
    let objects = work.objects() / plan.shorter;
    let expected = work.checksum(objects);
    let mut rows = Vec::new();
    let mut takes_part: Vec<_> = contestants.iter_mut().filter(|one| one.does(work)).collect();
    for one in &takes_part {
        rows.push(Row::new(one.name()));
    }
    let mut line = Row::new("one line, one way");
    for round in 0..=plan.rounds {
        let warm = round > 0;
        if warm && work.crosses() {
            line.ns.push(cpu::line_ns(cpus, 10_000));
        }
        for (one, row) in takes_part.iter_mut().zip(&mut rows) {
            let done = one.round(work, objects);
            assert_eq!(done.checksum, expected, "{} in {}", one.name(), work.name());
            if warm {
                row.ns.push(done.took.as_nanos() as f64 / objects as f64);
            }
            // Threads that run before all others leave them room.
            thread::sleep(Duration::from_millis(1));
        }
    }
    if work.crosses() {
        rows.push(line);
    }
    rows
}

/// Whether all that many threads took came home; says who lost what.
fn lost_by_many() -> bool {
    /// Bursts that each of the three gives or gets.
    const BURSTS: u64 = 20_000 / BURST as u64;
    let lost = grilse::lost_by_many(BURSTS).into_iter().chain([
        ("kernel list", many::lost(KernelList::new, BURSTS)),
        ("crossbeam queue", many::lost(Shared::new, BURSTS)),
        ("mimalloc", many::lost(|| Heap(MiMalloc), BURSTS)),
    ]);
    let mut whole = true;
    for (name, lost) in lost {
        if lost > 0 {
            println!("{name}: {lost} objects lost, three to one and one to three");
            whole = false;
        }
    }
    whole
}

//! GRO and GSO beside `tun-rs` and DPDK, in turns: each contestant does one round of a work, then the
//! next does, and so on again, so that what the machine does meanwhile meets all of them.
//!
//! ```text
//! make -C benches/peers                                   # once; needs dpdk-dev, else DPDK is skipped
//! taskset -c 1 chrt -f 10 cargo bench -p grilse-offload --bench beside [-- WORK...]
//! ```
//!
//! Prints nanoseconds a packet (GRO) or a segment (GSO): median, smallest and largest of the rounds;
//! how many packets came out; and the median as a multiple of the first contestant's.

mod dpdk;
mod gro;
mod gso;
mod traffic;

use dpdk::Dpdk;

/// Rounds of each contestant.
const ROUNDS: usize = 51;

/// What one round came to.
struct Round {
    /// Nanoseconds for each packet in (GRO) or out (GSO).
    ns: f64,
    /// Packets that came out.
    out: usize,
}

/// Somebody who does a work, a round at a time. The first of a work is the one that others are
/// compared with.
struct Contestant<'a> {
    name: &'static str,
    round: Box<dyn FnMut() -> Round + 'a>,
}

impl<'a> Contestant<'a> {
    fn new(name: &'static str, round: impl FnMut() -> Round + 'a) -> Self {
        Self { name, round: Box::new(round) }
    }
}

/// Lets the contestants take turns, and prints a line for each.
fn run(work: &str, mut contestants: Vec<Contestant<'_>>) {
    let mut rounds: Vec<Vec<f64>> = vec![Vec::new(); contestants.len()];
    let mut out = vec![0; contestants.len()];
    for turn in 0..=ROUNDS {
        for (n, contestant) in contestants.iter_mut().enumerate() {
            let round = (contestant.round)();
            out[n] = round.out;
            // The first turn warms caches and tables.
            if turn > 0 {
                rounds[n].push(round.ns);
            }
        }
    }
    let mut ours = None;
    for ((contestant, mut ns), out) in contestants.iter().zip(rounds).zip(out) {
        ns.sort_by(f64::total_cmp);
        let median = ns[ROUNDS / 2];
        let ratio = median / *ours.get_or_insert(median);
        println!(
            "{work:<20} {:<18} {median:7.1} ({:.1}..{:.1}) ns  {out:5} out  {ratio:.2}x",
            contestant.name,
            ns[0],
            ns[ROUNDS - 1]
        );
    }
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let asked = |work: &str| wanted.is_empty() || wanted.iter().any(|word| work.contains(word));
    let dpdk = Dpdk::start().inspect_err(|why| println!("DPDK is skipped: {why}")).ok();
    gro::works(dpdk.as_ref(), &asked);
    gso::works(dpdk.as_ref(), &asked);
}

//! How long objects are parked: from the moment that one side frees an object to the moment that
//! the other has it again, under each policy.
//!
//! The time stands beside the objects, in a table by address, and is written by whoever frees: so it
//! is taken in the same way for lists that link objects, for magazines, and for what goes through a
//! slab. It costs each of them one more line per object, and the clock is read once a burst; the
//! figures are for the distribution alone. What is cached counts as parked too: nobody can use it
//! but its owner. An object that is not taken again before the end does not count.
//!
//! `saturated`: as fast as both can. `paced`: a burst every 20 us, 1.6 million packets a second, as
//! much as one queue of a busy machine gets.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use grilse_mem::Policy;
use grilse_packet::{Ctx, Skb};
use rtrb::{Consumer, Producer, RingBuffer};

use crate::cpu;
use crate::grilse::Skbs;
use crate::pool::{BURST, Burst, OBJECTS, Pool, Seat, UNDER_WAY, empty};
use crate::summary::Spread;

/// The time from one burst to the next where the pipe is paced.
const PACE: Duration = Duration::from_micros(20);

/// Shares, per thousand, that the table has a column for; the last is the longest of all.
const SHARES: [usize; 5] = [500, 900, 990, 999, 1000];

/// Sends `bursts` bursts down a pipe under each policy, `rounds` times in turn, and prints what of
/// all objects was parked for how long.
pub(crate) fn print(cpus: [usize; 2], rounds: usize, bursts: u64) {
    let pipes: Vec<_> =
        Policy::PROFILES.iter().rev().map(|(name, policy)| (name, Pipe::new(*policy))).collect();
    for (title, pace) in [("saturated", Duration::ZERO), ("paced", PACE)] {
        println!(
            "\nparked, {title}: us from free to reuse, median (least..most) of {rounds} rounds of {bursts} bursts"
        );
        println!(
            "  {:20} {:>21} {:>21} {:>21} {:>9} {:>9}",
            "", "half", "90 %", "99 %", "99.9 %", "longest"
        );
        let mut seen = vec![[const { Vec::new() }; SHARES.len()]; pipes.len()];
        for _ in 0..rounds {
            for ((_, pipe), seen) in pipes.iter().zip(&mut seen) {
                let mut parked = pipe.run(cpus, bursts, pace);
                parked.sort_unstable();
                for (share, seen) in SHARES.iter().zip(seen) {
                    seen.push(quantile(&parked, *share) as f64 / 1e3);
                }
            }
        }
        for ((name, _), seen) in pipes.iter().zip(&seen) {
            print!("  {name:20}");
            for (column, figures) in seen.iter().enumerate() {
                let Spread { median, min, max } = Spread::of(figures);
                match column {
                    0..3 => print!(" {:>21}", format!("{median:.1} ({min:.1}..{max:.1})")),
                    _ => print!(" {median:9.1}"),
                }
            }
            println!();
        }
    }
}

/// The time, in nanoseconds, that so many of a thousand were parked for at most.
fn quantile(sorted: &[u64], per_mille: usize) -> u64 {
    let within = (sorted.len() * per_mille).div_ceil(1000).max(1);
    sorted.get(within - 1).copied().unwrap_or(0)
}

/// The quantiles of one to a thousand, and of nothing. Part of `--check`.
pub(crate) fn check() {
    let thousand: Vec<u64> = (1..=1000).collect();
    assert_eq!(SHARES.map(|share| quantile(&thousand, share)), [500, 900, 990, 999, 1000]);
    assert_eq!((quantile(&[7], 500), quantile(&[], 500)), (7, 0));
}

/// A memory under one policy, and when each of its objects was freed.
struct Pipe {
    skbs: &'static Skbs,
    freed: FreeTimes,
}

/// Nanoseconds since [`began`](Self::began) by address; 0: not freed in this round.
struct FreeTimes {
    began: Instant,
    lowest: usize,
    by_line: Vec<AtomicU64>,
}

impl Pipe {
    fn new(policy: Policy) -> Self {
        let skbs: &Skbs = Box::leak(Box::new(Skbs::new(policy)));
        Self { skbs, freed: FreeTimes::new(&mut skbs.seat(0)) }
    }

    /// One round: for how many nanoseconds each object that was taken again was parked.
    fn run(&self, cpus: [usize; 2], bursts: u64, pace: Duration) -> Vec<u64> {
        let (out, coming) = RingBuffer::new(UNDER_WAY / BURST);
        self.freed.forget();
        thread::scope(|scope| {
            // A thread starts where its parent may run: see `pair.rs`.
            cpu::pin(cpus[1]);
            scope.spawn(|| self.free(coming, bursts));
            cpu::pin(cpus[0]);
            self.take(out, bursts, pace)
        })
    }

    fn take(&self, mut out: Producer<Burst<Skb>>, bursts: u64, pace: Duration) -> Vec<u64> {
        let mut ctx = self.skbs.seat(0);
        let mut parked = Vec::with_capacity(bursts as usize * BURST);
        let mut due = self.freed.began.elapsed();
        for _ in 0..bursts {
            while self.freed.began.elapsed() < due {}
            due += pace;
            let (mut burst, mut have) = (empty(), 0);
            while have < BURST || out.is_full() {
                let now_ns = self.freed.now_ns();
                ctx.begin(now_ns);
                let first = have;
                have = ctx.take_burst(&mut burst, have);
                let taken = burst.0[first..have].iter().flatten();
                parked.extend(taken.filter_map(|skb| self.freed.taken(skb, now_ns)));
                Ctx::end(&mut ctx);
            }
            assert!(out.push(burst).is_ok(), "there was room, and nobody else pushes");
        }
        parked
    }

    fn free(&self, mut coming: Consumer<Burst<Skb>>, bursts: u64) {
        let mut ctx = self.skbs.seat(1);
        let mut left = bursts;
        while left > 0 {
            let Ok(mut burst) = coming.pop() else { continue };
            let now_ns = self.freed.now_ns();
            ctx.begin(now_ns);
            burst.0.iter().flatten().for_each(|skb| self.freed.freed(skb, now_ns));
            ctx.free_burst(&mut burst);
            Ctx::end(&mut ctx);
            left -= 1;
        }
    }
}

impl FreeTimes {
    /// Room for all objects, which are taken once to see where they are.
    fn new(ctx: &mut Ctx) -> Self {
        ctx.begin(0);
        let mut all: Vec<_> = (0..OBJECTS).map_while(|_| Ctx::take(ctx)).collect();
        let (lowest, highest) = all
            .iter()
            .map(address)
            .fold((usize::MAX, 0), |(low, high), at| (low.min(at), high.max(at)));
        all.drain(..).for_each(|skb| ctx.consume(skb));
        Ctx::end(ctx);
        let lines = highest.saturating_sub(lowest) / 64 + 1;
        Self {
            began: Instant::now(),
            lowest,
            by_line: (0..lines).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Above 0, as 0 is no time.
    fn now_ns(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64 + 1
    }

    /// What was freed before a round is not its.
    fn forget(&self) {
        self.by_line.iter().for_each(|line| line.store(0, Ordering::Relaxed));
    }

    fn freed(&self, skb: &Skb, now_ns: u64) {
        // Relaxed: the object itself, on its way to whoever takes it, brings this along.
        self.of(skb).store(now_ns, Ordering::Relaxed);
    }

    /// For how long it was parked, where that began in this round.
    fn taken(&self, skb: &Skb, now_ns: u64) -> Option<u64> {
        let freed = self.of(skb).load(Ordering::Relaxed);
        (freed > 0).then(|| now_ns.saturating_sub(freed))
    }

    fn of(&self, skb: &Skb) -> &AtomicU64 {
        &self.by_line[(address(skb) - self.lowest) / 64]
    }
}

/// Where the skb's shell is, give or take what is the same for all.
fn address(skb: &Skb) -> usize {
    std::ptr::from_ref(skb.meta()).addr()
}

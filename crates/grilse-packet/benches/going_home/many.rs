//! Four threads on two CPUs: three give to one, and one gives to three. They share CPUs, so no time
//! means anything here; what is checked is that every object arrives once, whole, and goes home.

use std::thread;

use rtrb::{Consumer, Producer, RingBuffer};

use crate::cpu;
use crate::pool::{BURST, Burst, Object, Pool, Seat, UNDER_WAY, digest, empty};

/// Threads on the side of the many.
const MANY: usize = 3;

type Out<H> = Producer<Burst<H>>;
type In<H> = Consumer<Burst<H>>;

/// Objects that a pool loses either way, with `bursts` bursts for each of the three; 0 also where
/// nobody counts.
pub(crate) fn lost<P: Pool>(make: impl Fn() -> P, bursts: u64) -> usize {
    let pool = || -> &'static P { Box::leak(Box::new(make())) };
    to_one(pool(), bursts).unwrap_or(0) + from_one(pool(), bursts).unwrap_or(0)
}

/// Objects that are lost when three threads have given `bursts` bursts each to one.
fn to_one<P: Pool>(pool: &'static P, bursts: u64) -> Option<usize> {
    let (outs, ins): (Vec<_>, Vec<_>) = lanes().unzip();
    thread::scope(|scope| {
        for (side, mut out) in (1..).zip(outs) {
            scope.spawn(move || give(&mut pool.seat(side), std::slice::from_mut(&mut out), bursts));
        }
        scope.spawn(|| receive(&mut pool.seat(0), ins, bursts));
    });
    pool.in_use()
}

/// Objects that are lost when one thread has given `bursts` bursts to each of three.
fn from_one<P: Pool>(pool: &'static P, bursts: u64) -> Option<usize> {
    let (mut outs, ins): (Vec<_>, Vec<_>) = lanes().unzip();
    thread::scope(|scope| {
        for (side, lane) in (1..).zip(ins) {
            scope.spawn(move || receive(&mut pool.seat(side), vec![lane], bursts));
        }
        scope.spawn(move || give(&mut pool.seat(0), &mut outs, bursts));
    });
    pool.in_use()
}

fn lanes<H>() -> impl Iterator<Item = (Out<H>, In<H>)> {
    (0..MANY).map(|_| RingBuffer::new(UNDER_WAY / BURST))
}

fn give<H: Object>(seat: &mut impl Seat<H>, outs: &mut [Out<H>], bursts: u64) {
    cpu::run_fair();
    for round in 0..bursts {
        for out in &mut *outs {
            let (mut burst, mut have) = (empty(), 0);
            while have < BURST || out.is_full() {
                seat.begin();
                have = seat.take_burst(&mut burst, have);
                seat.end();
                thread::yield_now();
            }
            for (object, seq) in burst.0.iter_mut().flatten().zip(round * BURST as u64..) {
                object.write::<2, 1>(seq);
            }
            assert!(out.push(burst).is_ok(), "there was room, and nobody else pushes");
        }
    }
}

fn receive<H: Object>(seat: &mut impl Seat<H>, mut lanes: Vec<In<H>>, bursts: u64) {
    cpu::run_fair();
    let (mut sum, mut left) = (0u64, bursts * lanes.len() as u64);
    let expected: u64 = (0..bursts * BURST as u64).map(digest::<2, 1>).sum();
    while left > 0 {
        seat.begin();
        for lane in &mut lanes {
            let Ok(mut burst) = lane.pop() else { continue };
            sum += burst.0.iter().flatten().map(H::read::<2, 1>).sum::<u64>();
            seat.free_burst(&mut burst);
            left -= 1;
        }
        seat.end();
        thread::yield_now();
    }
    assert_eq!(sum, expected * lanes.len() as u64, "every object arrived once, and whole");
}

//! What the switchboard costs the kernel's way home: the profile `kernel-2025-11-home` beside a
//! counter and a list by compare-and-swap that stand alone, with objects of the same layout.
//!
//! `cargo bench -p grilse-mem --bench deferred` prints nanoseconds for each object, as median and
//! quartiles of interleaved runs: both ends on one thread by turns, then on two threads.

#![allow(missing_docs, reason = "a program")]

use std::hint::{black_box, spin_loop};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use grilse_mem::{Cache, Depot, Home, Policy, Recycle, Role, Slot};

const BURST: usize = 32;
const RUNS: usize = 15;
const BURSTS: usize = 10_000;
const OBJECTS: u32 = 1024;

/// One end of the pipeline takes bursts, the other frees them.
trait Taker<H>: Send {
    fn round(&mut self, out: &mut Vec<H>);
}

trait Freer<H>: Send {
    fn round(&mut self, burst: &mut Vec<H>);
}

struct Object {
    depot: &'static Depot<Object>,
    word: u64,
    _bytes: [u8; 168],
}

impl Recycle for Object {
    fn recycle(slot: Slot<Self>) {
        slot.depot.give_one(slot);
    }
}

struct Profile(Cache<Object>, &'static Home<Object>);

const HOME: Policy = Policy::KERNEL_2025_11_HOME;

impl Taker<Slot<Object>> for Profile {
    fn round(&mut self, out: &mut Vec<Slot<Object>>) {
        self.0.begin(0, &HOME);
        while out.len() < BURST {
            let Some(mut slot) = self.0.take() else { break };
            slot.word += 1;
            out.push(slot);
        }
    }
}

impl Freer<Slot<Object>> for Profile {
    fn round(&mut self, burst: &mut Vec<Slot<Object>>) {
        for slot in burst.drain(..) {
            black_box(slot.word);
            self.0.free(slot, self.1);
        }
        self.0.end();
    }
}

/// A cell as the arena's: 192 bytes, the link in front.
#[repr(align(64))]
struct Cell {
    link: AtomicU32,
    word: AtomicU64,
    _bytes: [u8; 168],
}

struct Alone {
    cells: Vec<Cell>,
    node: Node,
}

/// Counter and list on lines of their own.
#[repr(align(128))]
struct Node {
    count: AtomicU32,
    list: AtomicU32,
}

const MAX: u32 = 128;

/// The home's end: a stack, and the list that others push to.
struct AloneTaker(&'static Alone, Vec<u32>);

impl Taker<u32> for AloneTaker {
    fn round(&mut self, out: &mut Vec<u32>) {
        let Node { count, list } = &self.0.node;
        if list.load(Ordering::Relaxed) != 0 {
            count.store(0, Ordering::Relaxed);
            let mut next = list.swap(0, Ordering::Acquire);
            while let Some(index) = next.checked_sub(1) {
                next = self.0.cells[index as usize].link.load(Ordering::Relaxed);
                self.1.push(index);
            }
        }
        while out.len() < BURST {
            let Some(index) = self.1.pop() else { break };
            let word = &self.0.cells[index as usize].word;
            word.store(word.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            out.push(index);
        }
    }
}

/// The freeing end. What is refused it keeps, and pushes first the next time.
struct AloneFreer(&'static Alone, Vec<u32>, u64);

impl Freer<u32> for AloneFreer {
    fn round(&mut self, burst: &mut Vec<u32>) {
        let Node { count, list } = &self.0.node;
        for index in self.1.drain(..).chain(burst.drain(..)).collect::<Vec<_>>() {
            let cell = &self.0.cells[index as usize];
            black_box(cell.word.load(Ordering::Relaxed));
            let counted = count.fetch_add(1, Ordering::Relaxed) + 1;
            if counted >= MAX {
                self.1.push(index);
                continue;
            }
            let mut head = list.load(Ordering::Relaxed);
            loop {
                cell.link.store(head, Ordering::Relaxed);
                let (release, relaxed) = (Ordering::Release, Ordering::Relaxed);
                match list.compare_exchange_weak(head, index + 1, release, relaxed) {
                    Ok(_) => break,
                    Err(now) => head = now,
                }
            }
            self.2 += u64::from(counted == MAX / 2 + 1);
        }
    }
}

/// Both ends by turns.
fn by_turns<H>(taker: &mut impl Taker<H>, freer: &mut impl Freer<H>) -> f64 {
    let mut burst = Vec::with_capacity(BURST);
    let (begin, mut moved) = (Instant::now(), 0);
    for _ in 0..BURSTS {
        taker.round(&mut burst);
        moved += burst.len();
        freer.round(&mut burst);
    }
    begin.elapsed().as_nanos() as f64 / moved as f64
}

/// Each end on a thread, with two bursts under way.
fn apart<H: Send>(taker: &mut impl Taker<H>, freer: &mut impl Freer<H>) -> f64 {
    let lanes: [(AtomicBool, Mutex<Vec<H>>); 2] = Default::default();
    let begin = Instant::now();
    thread::scope(|scope| {
        scope.spawn(|| {
            for turn in 0..BURSTS {
                let (full, lane) = &lanes[turn % 2];
                while !full.load(Ordering::Acquire) {
                    spin_loop();
                }
                freer.round(&mut lane.lock().unwrap());
                full.store(false, Ordering::Release);
            }
        });
        for turn in 0..BURSTS {
            let (full, lane) = &lanes[turn % 2];
            while full.load(Ordering::Acquire) {
                spin_loop();
            }
            taker.round(&mut lane.lock().unwrap());
            full.store(true, Ordering::Release);
        }
    });
    begin.elapsed().as_nanos() as f64 / (BURSTS * BURST) as f64
}

fn print(name: &str, mut runs: Vec<f64>) {
    runs.sort_by(f64::total_cmp);
    let at = |share: usize| runs[runs.len() * share / 4];
    println!("{name}: {:.2} ns ({:.2} to {:.2})", at(2), at(1), at(3));
}

fn main() {
    let make = |depot| Object { depot, word: 0, _bytes: [0; 168] };
    let depot = Depot::new(OBJECTS, None, make).expect("memory for the objects");
    let homes = [0, 1].map(|id| Home::new(Role::Worker, id, depot));
    let [mut here, mut away] =
        homes.map(|home| Profile(Cache::new(home).expect("two magazines"), homes[0]));
    away.0.begin(0, &HOME);
    let cell = || Cell { link: 0.into(), word: 0.into(), _bytes: [0; 168] };
    let cells = (0..OBJECTS).map(|_| cell()).collect();
    let node = Node { count: 0.into(), list: 0.into() };
    let alone: &Alone = Box::leak(Box::new(Alone { cells, node }));
    let mut taker = AloneTaker(alone, (0..OBJECTS).rev().collect());
    let mut freer = AloneFreer(alone, Vec::new(), 0);
    let mut runs: [Vec<f64>; 4] = Default::default();
    for _ in 0..RUNS {
        runs[0].push(by_turns(&mut here, &mut away));
        runs[1].push(by_turns(&mut taker, &mut freer));
        runs[2].push(apart(&mut here, &mut away));
        runs[3].push(apart(&mut taker, &mut freer));
    }
    let names = ["one thread, profile", "one thread, alone", "two threads, profile", "two, alone"];
    names.into_iter().zip(runs).for_each(|(name, runs)| print(name, runs));
    println!("{:?}", away.0.stats());
}

//! Workers, foreign threads, caches, homes, depot and page pools together, under schedules drawn at random: more
//! threads and steps than a model can go through, and no proof.
//!
//! Built with `--cfg shuttle` only, by `.ci/shuttle`. Shuttle knows interleavings, not orderings:
//! those are the matter of the models (`.ci/loom`).

#![cfg(shuttle)]

use std::sync::Arc;

use grilse_mem::{
    Cache, Closing, Depot, FramePool, FrameSlice, Home, Ledger, Loans, Policy, Recycle, Returns,
    Role, Slot, Snapshot, Switch,
};
use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::Mutex;
use shuttle::thread;

struct Object {
    depot: &'static Depot<Object>,
    home: Option<&'static Home<Object>>,
    /// Written by each owner: two at once would show.
    owner: u32,
}

impl Recycle for Object {
    fn recycle(slot: Slot<Self>) {
        match slot.home {
            Some(home) => home.post(slot),
            None => slot.depot.give_one(slot),
        }
    }
}

/// For each of the two schedulers: a hundred thousand in all, some forty seconds of processor time.
const SCHEDULES: usize = 50_000;
const CAPACITY: u32 = 24;
const WORKERS: usize = 4;

/// What all share: objects change hands through the table.
struct Engine {
    homes: [&'static Home<Object>; WORKERS + 1],
    switch: Switch,
    table: Mutex<Vec<Slot<Object>>>,
    frames: Mutex<Vec<FrameSlice>>,
    /// Pools whose owners are gone.
    closing: Mutex<Vec<Closing>>,
}

/// What a thread has of frames: a pool, and a device that it lends some of them to.
struct Queue {
    pool: FramePool,
    returns: Returns,
    loans: Loans,
    lent: Vec<u64>,
}

impl Queue {
    fn new() -> Self {
        let pool = FramePool::new(4, 64, None).unwrap();
        let loans = Loans::new(&pool);
        Self { pool, returns: Returns::new(), loans, lent: Vec::new() }
    }

    /// Takes a frame and lends it, passes it on, or shares it; or ends a share that is on the table,
    /// in one of the two ways.
    fn step(&mut self, engine: &Engine) {
        let dice = thread_rng().gen_range(0..6);
        if dice < 3 {
            let Some(mut frame) = self.pool.take_with(&mut self.returns) else { return };
            let name = frame.index() as u8;
            frame.bytes_mut().expect("nobody else has it").fill(name);
            match dice {
                0 => self.lent.push(self.loans.lend(frame).expect("a frame of ours, and whole")),
                1 => engine.frames.lock().unwrap().push(frame),
                _ => engine.frames.lock().unwrap().extend([frame.clone(), frame]),
            }
        } else if dice == 3 {
            let claimed = self.lent.pop().map(|address| self.loans.claim(address).expect("lent"));
            claimed.into_iter().for_each(|frame| self.returns.free(frame));
        } else {
            let found = engine.frames.lock().unwrap().pop();
            let Some(frame) = found else { return };
            thread::yield_now();
            assert!(frame.bytes().iter().all(|byte| *byte == frame.index() as u8), "reused early");
            match dice {
                4 => self.returns.free(frame),
                _ => drop(frame),
            }
        }
    }

    /// Closes the pool, with frames of it on the table.
    fn close(mut self, engine: &Engine) {
        self.loans.claim_all().for_each(drop);
        self.returns.flush();
        engine.closing.lock().unwrap().push(self.pool.close());
    }
}

/// Sits down, works some rounds, and leaves; objects are left on the table for others to free.
fn live(engine: &Engine, number: usize) {
    let home = engine.homes[number];
    let mut cache = Cache::new(home).expect("magazines enough");
    let mut policy = Snapshot::default();
    let mut held: Vec<Slot<Object>> = Vec::new();
    let mut queue = Queue::new();
    for round in 0..thread_rng().gen_range(1..4u64) {
        engine.switch.look(&mut policy);
        cache.begin(round, &policy.policy);
        queue.returns.begin(&policy.policy);
        for _ in 0..thread_rng().gen_range(0..6) {
            match thread_rng().gen_range(0..9) {
                0 | 1 => {
                    if let Some(mut slot) = cache.take() {
                        slot.home = Some(home);
                        slot.owner = number as u32;
                        held.push(slot);
                    }
                }
                2 => engine.table.lock().unwrap().extend(held.pop()),
                3 | 4 => {
                    let found = engine.table.lock().unwrap().pop();
                    if let Some(mut slot) = found {
                        let sender = slot.owner;
                        slot.owner = 100 + number as u32;
                        thread::yield_now();
                        assert_eq!(slot.owner, 100 + number as u32, "from {sender}");
                        let home = slot.home.expect("it was taken");
                        cache.free(slot, home);
                    }
                }
                5 => drop(held.pop()),
                _ => queue.step(engine),
            }
        }
        cache.end();
        queue.returns.end();
        if thread_rng().gen_bool(0.2) {
            cache.flush();
        }
    }
    // Those who are still held go home by themselves, after their cache.
    drop(cache);
    queue.close(engine);
}

fn whole() {
    let make = |depot| Object { depot, home: None, owner: u32::MAX };
    let depot = Depot::new(CAPACITY, None, make).unwrap();
    let homes = std::array::from_fn(|id| {
        let role = if id < WORKERS { Role::Worker } else { Role::Foreign };
        Home::new(role, id as u16, depot)
    });
    let table = Mutex::new(Vec::new());
    let (frames, closing) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    let engine = Arc::new(Engine { homes, switch: Switch::new(), table, frames, closing });
    let threads: Vec<_> = (0..=WORKERS)
        .map(|number| {
            let engine = Arc::clone(&engine);
            thread::spawn(move || {
                // Stopped and started: the home stands closed between.
                (0..2).for_each(|_| live(&engine, number));
            })
        })
        .collect();
    for _ in 0..3 {
        let (_, mut policy) = Policy::PROFILES[thread_rng().gen_range(0..Policy::PROFILES.len())];
        policy.defer_outbox = thread_rng().gen_range(0..4);
        policy.defer_max = thread_rng().gen_range(0..6);
        policy.pp_refill = thread_rng().gen_range(1..4);
        policy.pp_direct = thread_rng().gen_bool(0.5);
        engine.switch.set(policy).unwrap();
        thread::yield_now();
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    engine.table.lock().unwrap().clear();
    engine.frames.lock().unwrap().clear();
    for closing in engine.closing.lock().unwrap().drain(..) {
        assert_eq!(closing.in_flight(), 0);
        closing.try_finish().expect("all frames are back");
    }

    let ledger = Ledger::count(depot, homes);
    assert_eq!((ledger.cached, ledger.travelling, ledger.in_use), (0, 0, 0), "{ledger:?}");
    let all: Vec<_> = std::iter::from_fn(|| depot.take_one()).collect();
    assert_eq!(all.len() as u32, CAPACITY);
    std::mem::forget(all);
}

#[test]
fn random_schedules() {
    shuttle::check_random(whole, SCHEDULES);
}

#[test]
fn few_preemptions() {
    shuttle::check_pct(whole, SCHEDULES, 3);
}

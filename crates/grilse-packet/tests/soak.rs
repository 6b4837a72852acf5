//! Everything at once, for a while: policies flipped at random, workers that stop, start and panic,
//! foreign threads that die with packets in hand. Whatever happened, all is there at the end.
//!
//! Eight seconds, or `GRILSE_SOAK_SECS`; `GRILSE_SOAK_SEED` draws other numbers.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use grilse_mem::{FramePool, Numa, Policy, Role};
use grilse_packet::{Ctx, DropReason, Memory, Pair, Skb};
use grilse_wire::{How, Packet};

/// SplitMix64: numbers that only have to differ.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |set| set.parse().expect("a number"))
}

const THREADS: usize = 6;
const SKBS: u32 = 600;

/// What the threads share: a table for packets to change hands on, and what happened.
struct Engine {
    memory: &'static Memory,
    table: Mutex<Vec<Skb>>,
    stop: AtomicBool,
    promised: AtomicU64,
    kept: AtomicU64,
    panics: AtomicU64,
    lives: AtomicU64,
    moved: AtomicU64,
    dry: AtomicU64,
}

impl Engine {
    /// A packet of any shape; what it carries says whose it is.
    fn packet(
        &'static self,
        ctx: &mut Ctx,
        pool: &mut FramePool,
        dice: &mut Dice,
        depth: u32,
    ) -> Option<Skb> {
        let mut skb = match pool.take().filter(|_| dice.below(2) == 0) {
            Some(frame) => ctx.build(frame, 128, 64).ok()?,
            None => {
                let mut skb = ctx.take()?;
                skb.put(64).unwrap();
                skb
            }
        };
        let stamp = dice.next() as u8;
        skb.linear_mut().unwrap().fill(stamp);
        if dice.below(4) == 0 {
            for _ in 0..dice.below(20) {
                let Some(frag) = pool.take() else { break };
                if skb.add_frag(frag).is_err() {
                    break;
                }
            }
        }
        if depth == 0 && dice.below(6) == 0 {
            for _ in 0..dice.below(8) {
                let Some(next) = self.packet(ctx, pool, dice, 1) else { break };
                if let Err(refused) = skb.chain(next) {
                    ctx.consume(refused);
                }
            }
        }
        if dice.below(5) == 0 {
            self.promised.fetch_add(1, Ordering::Relaxed);
            let kept = || _ = self.kept.fetch_add(1, Ordering::Relaxed);
            skb.set_destructor(Box::new(kept)).ok().expect("it had none");
        }
        Some(skb)
    }

    /// One life of a thread: sits down, works some rounds, and leaves, stops without a word, or
    /// panics with packets in hand.
    fn live(&'static self, number: usize, dice: &mut Dice) {
        let role = [Role::Worker, Role::Foreign, Role::Device][number % 3];
        let mut ctx = Ctx::new(self.memory.seat(role)).unwrap();
        let mut pool = FramePool::new(64, 2048, None).unwrap();
        let mut held: Vec<Skb> = Vec::new();
        let rounds = dice.below(3000);
        for round in 0..rounds {
            ctx.begin(round * 1000);
            for _ in 0..dice.below(40) {
                self.step(&mut ctx, &mut pool, dice, &mut held);
            }
            ctx.end();
            match dice.below(400) {
                0 => ctx.flush(),
                1 => thread::yield_now(),
                2 if self.stop.load(Ordering::Relaxed) => break,
                _ => {}
            }
        }
        self.lives.fetch_add(1, Ordering::Relaxed);
        match dice.below(3) {
            // They go after their context, each by itself.
            0 => drop(ctx),
            1 => held.drain(..).for_each(|skb| ctx.consume(skb)),
            _ => {
                self.panics.fetch_add(1, Ordering::Relaxed);
                // Not `panic!`: the hook would fill the log.
                std::panic::resume_unwind(Box::new(held.len()));
            }
        }
    }

    fn step(
        &'static self,
        ctx: &mut Ctx,
        pool: &mut FramePool,
        dice: &mut Dice,
        held: &mut Vec<Skb>,
    ) {
        match dice.below(12) {
            0..4 => match self.packet(ctx, pool, dice, 0) {
                Some(skb) => held.push(skb),
                None => {
                    self.dry.fetch_add(1, Ordering::Relaxed);
                    held.drain(..held.len() / 2).for_each(|skb| ctx.consume(skb));
                }
            },
            4 | 5 => {
                let mut table = self.table.lock().unwrap();
                if table.len() < SKBS as usize / 8 {
                    table.extend(held.pop());
                }
            }
            6 | 7 => {
                let found = self.table.lock().unwrap().pop();
                if let Some(skb) = found {
                    self.moved.fetch_add(1, Ordering::Relaxed);
                    let first = skb.front().first().copied();
                    assert!(skb.linear().iter().all(|byte| Some(*byte) == first));
                    match dice.below(4) {
                        0 => drop(skb),
                        1 => ctx.drop_with(skb, DropReason::NoBuffers),
                        2 => ctx.recycle(skb.into_bare()),
                        _ => ctx.consume(skb),
                    }
                }
            }
            8 => {
                if let Some(mut skb) = held.pop() {
                    held.extend(skb.try_clone(ctx));
                    held.push(skb);
                }
            }
            9 => {
                let Some(skb) = held.pop() else { return };
                match Pair::new(ctx, skb) {
                    Ok(mut pair) => {
                        held.extend(pair.take_clone());
                        held.push(pair.into_skb(ctx));
                    }
                    Err(skb) => held.push(skb),
                }
            }
            10 => {
                let (Some(mut one), Some(other)) = (held.pop(), held.pop()) else { return };
                match one.absorb(other, 0, How::Bytes) {
                    Ok(left) => left.into_iter().for_each(|skb| ctx.consume(skb)),
                    Err(refused) => ctx.consume(refused.0),
                }
                ctx.consume(one);
            }
            _ => {
                held.truncate(60);
                held.pop().into_iter().for_each(|skb| ctx.consume(skb));
            }
        }
    }
}

/// A named profile, with some knobs turned at random.
fn policy(dice: &mut Dice) -> Policy {
    let mut policy = Policy::PROFILES[dice.below(Policy::PROFILES.len() as u64) as usize].1;
    for _ in 0..dice.below(6) {
        let knob = Policy::KNOBS[dice.below(Policy::KNOBS.len() as u64) as usize];
        let words = ["adopt", "home", "slab", "adaptive", "depot", "wake", "flag", "on", "off"];
        let value = match dice.below(2) {
            0 => words[dice.below(words.len() as u64) as usize].to_owned(),
            _ => dice.below(70).to_string(),
        };
        // What a knob refuses leaves the policy as it was.
        let before = policy;
        if policy.set(knob, &value).is_err() {
            assert_eq!(policy, before);
        }
    }
    policy
}

#[test]
fn all_is_there_at_the_end() {
    soak(Memory::new(SKBS, None).unwrap());
}

/// The same on three virtual nodes: what is idle is also where it stands.
#[test]
fn all_is_on_its_node_at_the_end() {
    let numa = Numa::Virtual { count: 3, cost_ns: 200 };
    let memory = Memory::with_nodes(SKBS, numa).unwrap();
    soak(memory);
    for node in memory.node_ledgers() {
        assert_eq!(node.depot, node.made, "{node:?}");
    }
}

fn soak(memory: &'static Memory) {
    let seed = setting("GRILSE_SOAK_SEED", 1);
    let time = Duration::from_secs(setting("GRILSE_SOAK_SECS", 8));
    let zero = || AtomicU64::new(0);
    let engine: &'static Engine = Box::leak(Box::new(Engine {
        memory,
        table: Mutex::new(Vec::new()),
        stop: AtomicBool::new(false),
        promised: zero(),
        kept: zero(),
        panics: zero(),
        lives: zero(),
        moved: zero(),
        dry: zero(),
    }));
    let threads: Vec<_> = (0..THREADS)
        .map(|number| {
            thread::spawn(move || {
                let mut dice = Dice(seed << 8 | number as u64);
                while !engine.stop.load(Ordering::Relaxed) {
                    let seed = dice.next();
                    let life = thread::spawn(move || engine.live(number, &mut Dice(seed)));
                    // Whoever stops a thread learns of its panic, and goes on.
                    if let Err(fault) = life.join() {
                        assert!(fault.is::<usize>(), "thread {number}: a fault of ours");
                    }
                }
            })
        })
        .collect();
    let (mut dice, began, mut flips) = (Dice(seed), Instant::now(), 0);
    while began.elapsed() < time {
        memory.set_policy(policy(&mut dice)).unwrap();
        flips += 1;
        thread::sleep(Duration::from_micros(dice.below(3000)));
    }
    engine.stop.store(true, Ordering::Relaxed);
    for thread in threads {
        thread.join().expect("only lives may panic");
    }
    engine.table.lock().unwrap().clear();

    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let (lives, panics, moved) =
        (count(&engine.lives), count(&engine.panics), count(&engine.moved));
    println!(
        "{flips} policies, {lives} lives, {panics} panics, {moved} moved, {} dry",
        count(&engine.dry)
    );
    assert!(flips > 20 && panics > 0 && lives > panics && moved > 1000, "much happened");
    assert!(count(&engine.dry) > 0, "memory ran out, and came back");
    assert_eq!(count(&engine.promised), count(&engine.kept), "each destructor was called once");

    // Nobody sits anywhere, so all is in the depots: shells, and the data that is not with a shell.
    let ledgers = memory.ledgers();
    let shells = ledgers.shells;
    assert_eq!((shells.depot, shells.in_use), (shells.made, 0), "{shells:?}");
    assert_eq!((ledgers.data.cached, ledgers.data.travelling), (0, 0));
    if cfg!(feature = "audit") {
        assert_eq!(memory.places().at(grilse_mem::Place::Depot), shells.made);
    }
    let mut ctx = Ctx::new(memory.seat(Role::Worker)).unwrap();
    let all: Vec<_> = (0..SKBS).map_while(|_| ctx.take()).collect();
    assert_eq!(all.len() as u32, SKBS, "all can be had again");
    assert!(ctx.take().is_none());
    ctx.end();
    let ledgers = memory.ledgers();
    assert_eq!(ledgers.data.made - ledgers.data.depot - ledgers.data.cached, SKBS, "one data each");
    all.into_iter().for_each(|skb| ctx.consume(skb));
}

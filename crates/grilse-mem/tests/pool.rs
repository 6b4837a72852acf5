//! Page pools: by which way frames come back, what closing waits for, and what a device may claim.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex};
use std::thread;

use grilse_mem::{FrameLedger, FramePool, FrameSlice, Loans, Place, Policy, Returns};

fn take(pool: &mut FramePool, returns: &mut Returns, count: usize) -> Vec<FrameSlice> {
    (0..count).map_while(|_| pool.take_with(returns)).collect()
}

fn policy(change: impl Fn(&mut Policy)) -> Policy {
    let mut policy = Policy::GRILSE;
    change(&mut policy);
    policy.check().unwrap();
    policy
}

/// The ledger adds up, and agrees with the bytes that the frames carry where they carry any.
#[track_caller]
fn ledger(pool: &FramePool) -> FrameLedger {
    let ledger = pool.ledger();
    let FrameLedger { fresh, stacked, returned, kept, in_use } = ledger;
    assert_eq!(fresh + stacked + returned + kept + in_use, pool.count());
    if cfg!(feature = "audit") {
        let at = |place| pool.places().at(place);
        assert_eq!(at(Place::Depot), fresh);
        assert_eq!(at(Place::Cache) + at(Place::Inbox), stacked + returned);
        assert_eq!(at(Place::InUse) + at(Place::Outbox), in_use + kept);
    }
    ledger
}

#[test]
fn the_owners_thread_gets_its_own_frames_back() {
    let mut pool = FramePool::new(64, 64, None).unwrap();
    let mut returns = Returns::new();
    for round in 0..10 {
        returns.begin(&Policy::GRILSE);
        let frames = take(&mut pool, &mut returns, 32);
        let freed: Vec<u32> = frames.iter().map(FrameSlice::index).collect();
        frames.into_iter().for_each(|frame| returns.free(frame));
        assert_eq!((returns.held(&pool), pool.available()), (32, 32), "round {round}");
        returns.end();
        let kept = FrameLedger { fresh: 32, kept: 32, ..FrameLedger::default() };
        assert_eq!(ledger(&pool), kept);
        let again = pool.take_with(&mut returns).unwrap();
        assert_eq!(again.index(), freed[31], "the warmest first");
        returns.free(again);
        let rest = take(&mut pool, &mut returns, 31);
        rest.into_iter().for_each(|frame| returns.free(frame));
    }
    assert_eq!(pool.ledger().fresh, 32, "nothing else was ever touched");
}

#[test]
fn others_give_back_in_bulk() {
    let mut pool = FramePool::new(64, 64, None).unwrap();
    let mut here = Returns::new();
    let mut frames = take(&mut pool, &mut here, 40).into_iter();
    let mut there = Returns::new();
    let mut returned = |count: usize| {
        frames.by_ref().take(count).for_each(|frame| there.free(frame));
        (there.held(&pool), ledger(&pool).returned)
    };
    assert_eq!(returned(15), (15, 0));
    assert_eq!(returned(1), (0, 16));
    assert_eq!(returned(17), (1, 32));
    there.end();
    assert_eq!(ledger(&pool).returned, 33);
    drop(frames);
    assert_eq!(ledger(&pool).returned, 40, "those that went out of scope came one by one");
}

#[test]
fn shares_end_one_by_one() {
    let mut pool = FramePool::new(1, 64, None).unwrap();
    let mut returns = Returns::new();
    let frame = pool.take_with(&mut returns).unwrap();
    let shares = [frame.clone(), frame.clone()];
    for share in shares {
        returns.free(share);
        assert_eq!((returns.held(&pool), pool.take_with(&mut returns).is_none()), (0, true));
    }
    returns.free(frame);
    assert_eq!(pool.take_with(&mut returns).unwrap().index(), 0);
}

#[test]
fn a_refill_takes_what_the_policy_says() {
    let mut pool = FramePool::new(100, 64, None).unwrap();
    let mut returns = Returns::new();
    returns.begin(&policy(|policy| policy.pp_refill = 10));
    drop(take(&mut pool, &mut returns, 100));
    for left in (0..100).rev() {
        std::mem::forget(pool.take_with(&mut returns).unwrap());
        let ledger = ledger(&pool);
        assert_eq!(ledger.stacked + ledger.returned, left);
        assert_eq!(ledger.stacked, left % 10);
    }
    assert!(pool.take_with(&mut returns).is_none());
}

#[test]
fn the_cache_is_bounded_and_direct_returns_can_be_forbidden() {
    let mut pool = FramePool::new(100, 64, None).unwrap();
    let mut returns = Returns::new();
    returns.begin(&policy(|policy| policy.pp_cache = 30));
    let mut frames = take(&mut pool, &mut returns, 100);
    frames.drain(..29).for_each(|frame| returns.free(frame));
    assert_eq!((returns.held(&pool), ledger(&pool).returned), (29, 0));
    frames.drain(..2).for_each(|frame| returns.free(frame));
    assert_eq!((returns.held(&pool), ledger(&pool).returned), (1, 30));
    // The bound shrinks below what is there.
    frames.drain(..20).for_each(|frame| returns.free(frame));
    returns.begin(&policy(|policy| policy.pp_cache = 8));
    returns.end();
    assert_eq!((returns.held(&pool), ledger(&pool).returned), (0, 51));

    returns.begin(&policy(|policy| policy.pp_direct = false));
    let again = take(&mut pool, &mut returns, 51);
    assert_eq!(again.len(), 51);
    again.into_iter().for_each(|frame| returns.free(frame));
    assert_eq!((returns.held(&pool), ledger(&pool).returned), (3, 48));
    returns.end();
    assert_eq!((ledger(&pool).kept, ledger(&pool).returned), (0, 51));
}

/// A device that moves to another thread, and one whose owner has no returns at hand any more: what
/// was kept for it comes at the end of the round.
#[test]
fn what_is_kept_follows_the_owner() {
    let mut pool = FramePool::new(20, 64, None).unwrap();
    let (mut old, mut new) = (Returns::new(), Returns::new());
    take(&mut pool, &mut old, 20).into_iter().for_each(|frame| old.free(frame));
    old.end();
    assert_eq!((pool.ledger().kept, old.held(&pool)), (20, 20));
    assert!(pool.take_with(&mut new).is_none(), "they are still there");
    assert_eq!(ledger(&pool).kept, 0);
    old.end();
    assert_eq!((ledger(&pool).returned, old.held(&pool)), (20, 0));

    take(&mut pool, &mut new, 20).into_iter().for_each(|frame| new.free(frame));
    new.end();
    assert!(pool.take().is_none());
    new.end();
    assert_eq!(pool.take().unwrap().frame_size(), 64);
}

#[test]
fn a_flush_or_a_death_keeps_nothing() {
    let mut pool = FramePool::new(20, 64, None).unwrap();
    let mut returns = Returns::new();
    for _ in 0..2 {
        take(&mut pool, &mut returns, 20).into_iter().for_each(|frame| returns.free(frame));
        returns.end();
        returns.flush();
        assert_eq!((ledger(&pool).returned, ledger(&pool).kept), (20, 0));
    }
    take(&mut pool, &mut returns, 20).into_iter().for_each(|frame| returns.free(frame));
    returns.end();
    let died = thread::spawn(move || {
        let _returns = returns;
        std::panic::resume_unwind(Box::new("the worker's end"));
    });
    died.join().unwrap_err();
    assert_eq!((ledger(&pool).returned, ledger(&pool).kept), (20, 0));
    assert_eq!(pool.take().unwrap().frame_size(), 64);
}

/// More pools than a thread tells apart.
#[test]
fn many_pools_share_lanes() {
    let mut returns = Returns::new();
    let mut pools: Vec<_> = (0..20).map(|_| FramePool::new(30, 64, None).unwrap()).collect();
    for round in 0..50 {
        let mut frames = Vec::new();
        for pool in &mut pools {
            frames.push(take(pool, &mut returns, 1 + round % 20));
        }
        while frames.iter().any(|frames| !frames.is_empty()) {
            frames.iter_mut().filter_map(Vec::pop).for_each(|frame| returns.free(frame));
        }
        returns.end();
        for pool in &pools {
            assert_eq!((ledger(pool).in_use, ledger(pool).kept), (0, returns.held(pool)));
        }
    }
    returns.flush();
    assert!(pools.iter().all(|pool| ledger(pool).kept == 0));
}

#[test]
fn exhausted_until_a_frame_is_back() {
    let mut pool = FramePool::new(5, 64, None).unwrap();
    let mut returns = Returns::new();
    let mut frames = take(&mut pool, &mut returns, 9);
    assert_eq!((frames.len(), pool.available()), (5, 0));
    for _ in 0..100 {
        assert!(pool.take_with(&mut returns).is_none());
        let frame = frames.pop().unwrap();
        if frame.index().is_multiple_of(2) {
            returns.free(frame)
        } else {
            drop(frame)
        }
        frames.insert(0, pool.take_with(&mut returns).unwrap());
    }
    assert_eq!(ledger(&pool).in_use, 5);
}

/// Invariant I13: what is out is never below zero, zero when the pool is done with, and nothing
/// else keeps it from being done with.
#[test]
fn a_closed_pool_counts_what_is_out() {
    let mut pool = FramePool::new(50, 4096, None).unwrap();
    let (mut here, mut there) = (Returns::new(), Returns::new());
    drop(take(&mut pool, &mut here, 30));
    let mut frames = take(&mut pool, &mut here, 20);
    frames[0].bytes_mut().unwrap().fill(7);
    here.free(frames.pop().unwrap());
    there.free(frames.pop().unwrap());
    let mut loans = Loans::new(&pool);
    let address = loans.lend(frames.pop().unwrap()).unwrap();
    let clone = frames[0].clone();

    let closing = pool.close();
    assert_eq!(closing.in_flight(), 20);
    let closing = closing.try_finish().unwrap_err();
    here.end();
    there.end();
    assert_eq!(closing.in_flight(), 18, "a round ended, and what it had gathered is back");
    drop(loans.claim(address).unwrap());
    drop(frames);
    assert_eq!(closing.in_flight(), 1);
    let closing = closing.try_finish().unwrap_err();
    assert_eq!(closing.in_flight(), 1, "what was taken back stays counted");
    assert_eq!(clone.bytes(), [7; 4096], "a frame that is out stays good");
    thread::spawn(move || drop(clone)).join().unwrap();
    assert_eq!(closing.in_flight(), 0);
    closing.try_finish().unwrap();

    let unused = FramePool::new(3, 64, None).unwrap();
    unused.close().try_finish().unwrap();
    FramePool::new(0, 64, None).unwrap().close().try_finish().unwrap();
}

#[test]
fn frames_outlive_an_owner_that_died() {
    let (sender, frames) = mpsc::channel();
    let died = thread::spawn(move || {
        let mut pool = FramePool::new(4, 64, None).unwrap();
        std::iter::from_fn(|| pool.take()).for_each(|frame| sender.send(frame).unwrap());
        std::panic::resume_unwind(Box::new("the owner's end"));
    });
    died.join().unwrap_err();
    let mut returns = Returns::new();
    for mut frame in frames {
        frame.bytes_mut().unwrap().fill(1);
        returns.free(frame);
    }
    returns.end();
}

#[test]
fn only_what_was_lent_can_be_claimed() {
    let mut pool = FramePool::new(4, 2048, None).unwrap();
    let mut other = FramePool::new(4, 2048, None).unwrap();
    let mut loans = Loans::new(&pool);
    let _first = pool.take().unwrap();
    let mut frame = pool.take().unwrap();
    frame.set_range(256..2048);
    frame.bytes_mut().unwrap()[0] = 9;
    let address = loans.lend(frame).unwrap();
    assert_eq!((address, loans.out()), (2048 + 256, 1));

    assert!(loans.claim(0).is_none(), "in use, but not lent");
    for never in [2 * 2048, 4 * 2048, u64::MAX] {
        assert!(loans.claim(never).is_none());
    }
    // A device may move within the frame.
    let frame = loans.claim(2048).unwrap();
    assert_eq!((frame.offset(), frame.bytes()[0]), (256, 9), "as it was lent");
    assert!(loans.claim(address).is_none(), "claimed before");
    assert_eq!((loans.out(), loans.refused()), (0, 5));

    let share = frame.clone();
    let frame = loans.lend(frame).unwrap_err();
    drop(share);
    let stranger = loans.lend(other.take().unwrap()).unwrap_err();
    assert!(!stranger.same_pool(&frame));

    loans.lend(frame).unwrap();
    loans.lend(pool.take().unwrap()).unwrap();
    assert_eq!(ledger(&pool).in_use, 3);
    assert_eq!(loans.claim_all().count(), 2);
    assert_eq!((loans.out(), ledger(&pool).in_use), (0, 1));

    loans.lend(pool.take().unwrap()).unwrap();
    drop(loans);
    assert_eq!(ledger(&pool).in_use, 2, "the device may still write it");
}

/// Who holds how many shares of which frame, and what was last written to it.
#[derive(Default)]
struct Oracle(Mutex<HashMap<u32, (u32, u8)>>);

impl Oracle {
    fn took(&self, index: u32, written: u8) {
        let before = self.0.lock().unwrap().insert(index, (1, written));
        assert_eq!(before, None, "frame {index} was taken while somebody held it");
    }

    fn cloned(&self, index: u32) {
        self.0.lock().unwrap().get_mut(&index).unwrap().0 += 1;
    }

    /// Called before the share ends.
    fn ends(&self, frame: &FrameSlice) {
        let mut held = self.0.lock().unwrap();
        let (shares, written) = held.get_mut(&frame.index()).unwrap();
        assert!(frame.bytes().iter().all(|byte| byte == written), "nobody else wrote to it");
        *shares -= 1;
        if *shares == 0 {
            held.remove(&frame.index());
        }
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

fn random_policy(random: &mut Random) -> Policy {
    policy(|policy| {
        policy.pp_cache = 1 + random.0 as u32 % 60;
        policy.pp_refill = 1 + random.0 as u32 / 64 % 60;
        policy.pp_direct = !random.0.is_multiple_of(5);
    })
}

/// One step of a thread with what it holds.
fn step(
    random: &mut Random,
    held: &mut Vec<FrameSlice>,
    returns: &mut Returns,
    oracle: &Oracle,
    peers: &[Sender<FrameSlice>],
) {
    let Some(at) = (!held.is_empty()).then(|| random.below(held.len() as u64) as usize) else {
        return;
    };
    match random.below(8) {
        0 => {
            let clone = held[at].clone();
            oracle.cloned(clone.index());
            held.push(clone);
        }
        1 => {
            let cut = random.below(64) as usize;
            held[at].set_range(cut..64);
        }
        2 => {
            let frame = held.swap_remove(at);
            oracle.ends(&frame);
            drop(frame);
        }
        3 | 4 => {
            let peer = random.below(peers.len() as u64) as usize;
            // A peer that is done already lets the frame go with the error.
            let frame = held.swap_remove(at);
            if let Err(mpsc::SendError(frame)) = peers[peer].send(frame) {
                oracle.ends(&frame);
            }
        }
        _ => {
            let frame = held.swap_remove(at);
            oracle.ends(&frame);
            returns.free(frame);
        }
    }
    if random.below(40) == 0 {
        returns.end();
        returns.begin(&random_policy(random));
    }
}

/// An owner and two other threads take, clone, cut, send, free and let go at random.
fn against_the_oracle(seed: u64, takes: u32) {
    const FRAMES: u32 = 100;
    let oracle = Arc::new(Oracle::default());
    let taken = Arc::new(AtomicU32::new(0));
    let mut pool = FramePool::new(FRAMES, 64, None).unwrap();
    let (senders, inboxes): (Vec<_>, Vec<_>) = (0..3).map(|_| mpsc::channel()).unzip();
    let mut owner = Some(&mut pool);
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for (number, inbox) in inboxes.into_iter().enumerate() {
            let (oracle, peers, taken) = (oracle.clone(), senders.clone(), taken.clone());
            let mut pool = owner.take();
            threads.push(scope.spawn(move || {
                let mut random = Random(seed * 3 + number as u64 + 1);
                let (mut returns, mut held) = (Returns::new(), Vec::new());
                // All go on until the owner has taken that many.
                while taken.load(Ordering::Relaxed) < takes {
                    held.extend(inbox.try_iter());
                    let pool = pool.as_mut().filter(|_| held.len() < 40);
                    let frame = pool.and_then(|pool| match random.below(50) {
                        0 => pool.take(),
                        _ => pool.take_with(&mut returns),
                    });
                    if let Some(mut frame) = frame {
                        let written = random.below(256) as u8;
                        oracle.took(frame.index(), written);
                        frame.bytes_mut().expect("just taken").fill(written);
                        held.push(frame);
                        taken.fetch_add(1, Ordering::Relaxed);
                    }
                    if held.is_empty() {
                        thread::yield_now();
                    }
                    step(&mut random, &mut held, &mut returns, &oracle, &peers);
                }
                drop(peers);
                held.extend(inbox.try_iter());
                for frame in held {
                    oracle.ends(&frame);
                    returns.free(frame);
                }
                // What is still to come goes out of scope with the channel.
                (returns, inbox)
            }));
        }
        drop(senders);
        for thread in threads {
            let (mut returns, inbox) = thread.join().unwrap();
            returns.end();
            returns.flush();
            inbox.iter().for_each(|frame| oracle.ends(&frame));
        }
    });
    assert!(oracle.0.lock().unwrap().is_empty());
    assert_eq!((ledger(&pool).in_use, ledger(&pool).kept), (0, 0));
    pool.close().try_finish().unwrap();
}

#[test]
fn three_threads_against_a_set() {
    (1..6).for_each(|seed| against_the_oracle(seed, 20_000));
}

/// The same for a minute: `cargo test -p grilse-mem --release --test pool -- --ignored`.
#[test]
#[ignore = "takes a minute"]
fn soak() {
    let began = std::time::Instant::now();
    let minute = |_: &u64| began.elapsed().as_secs() < 60;
    (100..).take_while(minute).for_each(|seed| against_the_oracle(seed, 200_000));
}

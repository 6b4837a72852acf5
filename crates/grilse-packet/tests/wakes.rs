//! Sleeping: who starves is woken by whatever it starves of (I9), and who sleeps for long has nothing
//! parked (I10). A wake-up that is lost shows as a test that does not end.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use grilse_mem::{FramePool, FrameSlice, Policy, Role};
use grilse_packet::{Ctx, Memory, Skb};

/// Long enough for another thread to fall asleep; that it may not have is right as well.
const A_WHILE: Duration = Duration::from_millis(20);

/// The way home that adapts leaves objects of who sleeps in the depot, but not of who starves.
#[test]
fn i9_whoever_frees() {
    for role in [Role::Worker, Role::Foreign, Role::Device] {
        let memory = Memory::new(60, None).unwrap();
        let mut ctx = Ctx::new(memory.seat(Role::Worker)).unwrap();
        let (tx, rx) = mpsc::channel::<Skb>();
        let away = memory.seat(role);
        let other = thread::spawn(move || {
            let mut ctx = Ctx::new(away).unwrap();
            for skb in rx {
                ctx.begin(0);
                ctx.consume(skb);
                ctx.end();
            }
        });
        let mut sent = 0;
        while sent < 5000 {
            ctx.begin(sent);
            match ctx.take() {
                Some(skb) => {
                    tx.send(skb).unwrap();
                    sent += 1;
                }
                None => ctx.sleep(true),
            }
        }
        drop(tx);
        other.join().unwrap();
    }
}

/// All shells lie in another context's cache, and come to the depot as that one is flushed.
#[test]
fn i9_what_comes_to_the_depot() {
    let memory = Memory::new(60, None).unwrap();
    let mut hoarder = Ctx::new(memory.seat(Role::Worker)).unwrap();
    let all: Vec<_> = std::iter::from_fn(|| hoarder.take()).collect();
    let seat = memory.seat(Role::Worker);
    let sleeper = thread::spawn(move || {
        let mut ctx = Ctx::new(seat).unwrap();
        let skb = loop {
            match ctx.take() {
                Some(skb) => break skb,
                None => ctx.sleep(true),
            }
        };
        ctx.consume(skb);
    });
    thread::sleep(A_WHILE);
    all.into_iter().for_each(|skb| hoarder.consume(skb));
    hoarder.end();
    thread::sleep(A_WHILE);
    assert!(!sleeper.is_finished(), "nothing came to where it looks");
    hoarder.flush();
    sleeper.join().unwrap();
}

/// All frames of its pool are with others, who give one back: alone, or at the end of a round.
#[test]
fn i9_what_comes_to_a_page_pool() {
    type Give = fn(&mut Ctx, FrameSlice);
    let ways: [Give; 2] = [
        |_, frame| drop(frame),
        |ctx, frame| {
            let skb = ctx.build(frame, 0, 10).unwrap();
            ctx.consume(skb);
            ctx.end();
        },
    ];
    let memory = Memory::new(600, None).unwrap();
    let mut ctx = Ctx::new(memory.seat(Role::Worker)).unwrap();
    for give in ways {
        let (tx, rx) = mpsc::channel();
        let seat = memory.seat(Role::Worker);
        let sleeper = thread::spawn(move || {
            let mut ctx = Ctx::new(seat).unwrap();
            let mut pool = FramePool::new(4, 512, None).unwrap();
            let mut sent = 0;
            while sent < 200 {
                match ctx.take_frame(&mut pool) {
                    Some(frame) => {
                        tx.send(frame).unwrap();
                        sent += 1;
                    }
                    None => ctx.sleep(true),
                }
            }
        });
        for (number, frame) in rx.into_iter().enumerate() {
            if number % 50 == 3 {
                thread::sleep(A_WHILE);
            }
            give(&mut ctx, frame);
        }
        sleeper.join().unwrap();
    }
}

/// A thread that sleeps for longer than `idle.flush_us` sleeps on with nothing cached.
#[test]
fn i10_a_long_sleep_leaves_nothing_parked() {
    let memory = Memory::new(600, None).unwrap();
    memory.set_policy(Policy { idle_flush_us: 1000, ..Policy::GRILSE }).unwrap();
    let (tx, rx) = mpsc::channel::<Skb>();
    let seat = memory.seat(Role::Worker);
    let sleeper = thread::spawn(move || {
        let mut ctx = Ctx::new(seat).unwrap();
        ctx.begin(0);
        let skbs: Vec<_> = (0..100).filter_map(|_| ctx.take()).collect();
        tx.send(ctx.take().unwrap()).unwrap();
        skbs.into_iter().for_each(|skb| ctx.consume(skb));
        ctx.sleep(true);
    });
    let waker = rx.recv().unwrap();
    let began = Instant::now();
    loop {
        // Amid a flush the ledger may have seen the depot after it, and the cache before.
        let shells = memory.ledgers().shells;
        let kept = (shells.cached, shells.travelling, shells.in_use);
        if shells.depot == shells.made - 1 && kept == (0, 0, 1) {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(20), "{shells:?}");
        thread::sleep(Duration::from_millis(1));
    }
    assert!(!sleeper.is_finished(), "it sleeps on");
    drop(waker);
    sleeper.join().unwrap();
}

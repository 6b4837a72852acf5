//! Packets that end away from home: on other threads, after their context, while unwinding.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::thread;

use grilse_mem::{FramePool, Ledger, Role};
use grilse_packet::{Ctx, DropReason, Memory, Skb};

fn ledger(memory: &Memory) -> Ledger {
    let ledger = memory.ledgers().shells;
    let places = ledger.depot + ledger.cached + ledger.travelling + ledger.in_use;
    assert_eq!(ledger.made, places, "{ledger:?}");
    ledger
}

fn packets(ctx: &mut Ctx, pool: &mut FramePool, count: usize) -> Vec<Skb> {
    let build = |number: usize| {
        let frame = pool.take().unwrap();
        let mut skb = ctx.build(frame, 64, 100).unwrap();
        if number.is_multiple_of(3) {
            skb.add_frag(pool.take().unwrap()).unwrap();
        }
        if number.is_multiple_of(5) {
            let mut chained = ctx.take().unwrap();
            chained.put(10).unwrap();
            skb.chain(chained).unwrap();
        }
        skb
    };
    (0..count).map(build).collect()
}

/// What a foreign thread does with a packet that it is done with.
type End = fn(&mut Ctx, Skb);

const ENDS: [End; 3] = [
    |ctx, skb| ctx.consume(skb),
    |ctx, skb| ctx.drop_with(skb, DropReason::NoBuffers),
    |_, skb| drop(skb),
];

#[test]
fn freed_elsewhere_they_come_home() {
    for (end, role) in ENDS
        .into_iter()
        .flat_map(|end| [Role::Worker, Role::Foreign, Role::Device].map(|role| (end, role)))
    {
        let memory = Memory::new(512, None).unwrap();
        let mut ctx = Ctx::new(memory.seat(role)).unwrap();
        let mut pool = FramePool::new(256, 512, None).unwrap();
        let away = memory.seat(Role::Foreign);
        let skbs = packets(&mut ctx, &mut pool, 100);
        let shells = 120;
        ctx.end();
        assert_eq!(ledger(memory).in_use, shells);
        thread::spawn(move || {
            let mut ctx = Ctx::new(away).unwrap();
            skbs.into_iter().for_each(|skb| end(&mut ctx, skb));
            ctx.end();
        })
        .join()
        .unwrap();
        let under_way = ledger(memory);
        assert_eq!((under_way.travelling, under_way.in_use), (shells, 0));
        ctx.begin(1);
        ctx.end();
        let home = ledger(memory);
        assert_eq!((home.travelling, home.in_use), (0, 0));
        assert_eq!(pool.ledger().in_use, 0);
    }
}

#[test]
fn they_outlive_their_context() {
    let memory = Memory::new(512, None).unwrap();
    let mut ctx = Ctx::new(memory.seat(Role::Worker)).unwrap();
    let mut pool = FramePool::new(256, 512, None).unwrap();
    let mut early = packets(&mut ctx, &mut pool, 50);
    let late = early.split_off(25);
    // These wait at home when it closes; the others find it closed.
    drop(early);
    drop(ctx);
    let closed = ledger(memory);
    assert_eq!((closed.cached, closed.travelling), (0, 0));
    assert_eq!(closed.in_use, 30);
    let mut other = Ctx::new(memory.seat(Role::Worker)).unwrap();
    for (number, skb) in late.into_iter().enumerate() {
        ENDS[number % 3](&mut other, skb);
    }
    // The seat, and with it the home, is the one that stood empty: what came one by one waits there.
    other.begin(1);
    other.end();
    let after = ledger(memory);
    assert_eq!((after.in_use, after.travelling), (0, 0));
    assert_eq!(pool.ledger().in_use, 0);
    let all: Vec<_> = (0..memory.capacity()).map_while(|_| other.take()).collect();
    assert_eq!(all.len() as u32, memory.capacity(), "all can be had again");
    all.into_iter().for_each(|skb| other.consume(skb));
}

#[test]
fn unwinding_sends_them_home() {
    let memory = Memory::new(64, None).unwrap();
    let mut ctx = Ctx::new(memory.seat(Role::Worker)).unwrap();
    let mut pool = FramePool::new(64, 512, None).unwrap();
    let fault = catch_unwind(AssertUnwindSafe(|| {
        let held = packets(&mut ctx, &mut pool, 10);
        std::panic::panic_any(held.len());
    }));
    assert_eq!(fault.unwrap_err().downcast_ref(), Some(&10usize));
    ctx.begin(0);
    ctx.end();
    assert_eq!((ledger(memory).in_use, pool.ledger().in_use), (0, 0));
}

/// Two threads read clones of one packet, part from them by writing, and let go in any order.
#[test]
fn clones_part_on_other_threads() {
    let memory = Memory::new(1024, None).unwrap();
    let mut ctx = Ctx::new(memory.seat(Role::Worker)).unwrap();
    let mut pool = FramePool::new(64, 512, None).unwrap();
    for _ in 0..200 {
        ctx.begin(0);
        let mut skb = packets(&mut ctx, &mut pool, 1).remove(0);
        let mut clone = skb.try_clone(&mut ctx).unwrap();
        let write = |skb: &mut Skb, byte: u8| {
            use grilse_wire::Packet;
            skb.front_mut(20).unwrap().fill(byte);
            assert!(skb.linear()[..20].iter().all(|b| *b == byte));
        };
        let other = thread::spawn(move || {
            write(&mut clone, 2);
            assert_eq!(clone.pull(150), 150);
        });
        write(&mut skb, 1);
        assert_eq!(skb.frag_list().count(), 1);
        ctx.consume(skb);
        other.join().unwrap();
    }
    ctx.begin(0);
    ctx.end();
    assert_eq!((ledger(memory).in_use, pool.ledger().in_use), (0, 0));
}

/// A pipeline: one thread takes, one frees, in bounded memory, for a while.
#[test]
fn a_pipeline_runs_on_what_comes_home() {
    let memory = Memory::new(512, None).unwrap();
    let mut ctx = Ctx::new(memory.seat(Role::Worker)).unwrap();
    let mut pool = FramePool::new(256, 512, None).unwrap();
    let away = memory.seat(Role::Foreign);
    let (tx, rx) = mpsc::sync_channel::<Skb>(64);
    let far = thread::spawn(move || {
        let mut ctx = Ctx::new(away).unwrap();
        for (number, skb) in rx.into_iter().enumerate() {
            assert_eq!(skb.linear()[..8], (number as u64).to_be_bytes());
            ENDS[number % 3](&mut ctx, skb);
        }
    });
    let mut sent = 0u64;
    while sent < 100_000 {
        ctx.begin(sent);
        let Some(frame) = pool.take() else { continue };
        let Ok(mut skb) = ctx.build(frame, 64, 8) else { continue };
        skb.linear_mut().unwrap().copy_from_slice(&sent.to_be_bytes());
        tx.send(skb).unwrap();
        sent += 1;
    }
    drop(tx);
    far.join().unwrap();
    ctx.begin(0);
    ctx.end();
    assert_eq!((ledger(memory).in_use, pool.ledger().in_use), (0, 0));
}

/// A foreign thread ends, by a panic or in order, while others hold what it took: that it did is
/// counted, what finds it gone is counted, and all comes back.
#[test]
fn a_thread_that_dies_is_counted_and_its_buffers_return() {
    for panics in [false, true] {
        let memory = Memory::new(512, None).unwrap();
        let (tx, rx) = mpsc::channel::<Skb>();
        let seat = memory.seat(Role::Foreign);
        let dead = thread::spawn(move || {
            let mut ctx = Ctx::new(seat).unwrap();
            let mut held: Vec<_> = (0..100).map(|_| ctx.take().unwrap()).collect();
            held.drain(..70).for_each(|skb| tx.send(skb).unwrap());
            if panics {
                std::panic::resume_unwind(Box::new(held.len()));
            }
        });
        assert_eq!(dead.join().is_err(), panics);
        let ledgers = memory.ledgers();
        assert_eq!((ledgers.unwound, ledgers.orphans), (u32::from(panics), 0));
        assert_eq!((ledgers.shells.in_use, ledgers.shells.cached), (70, 0));

        let mut ctx = Ctx::new(memory.seat(Role::Worker)).unwrap();
        for (number, skb) in rx.into_iter().enumerate() {
            ENDS[number % 3](&mut ctx, skb);
        }
        ctx.flush();
        let ledgers = memory.ledgers();
        assert_eq!((ledgers.unwound, ledgers.orphans), (u32::from(panics), 70));
        assert_eq!((ledgers.shells.in_use, ledgers.shells.depot), (0, ledgers.shells.made));
    }
}

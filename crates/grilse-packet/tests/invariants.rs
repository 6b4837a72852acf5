//! The invariants of the memory, by number (I1 to I17): each on its own, in the plainest way.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use grilse_mem::{FramePool, Place, Policy, Role};
use grilse_packet::{Ctx, Ledgers, Memory, Pair, Skb};
use grilse_wire::{How, Packet};

fn seat(memory: &'static Memory) -> Ctx {
    Ctx::new(memory.seat(Role::Worker)).unwrap()
}

/// The ledger, which in checked builds equals what the objects' own bytes say.
fn ledgers(memory: &'static Memory) -> Ledgers {
    let ledgers = memory.ledgers();
    let shells = ledgers.shells;
    let sum = shells.depot + shells.cached + shells.travelling + shells.in_use;
    assert_eq!(shells.made, sum, "{shells:?}");
    if cfg!(feature = "audit") {
        let places = memory.places();
        let travelling = places.at(Place::Outbox) + places.at(Place::Inbox);
        let walked = [places.at(Place::Depot), places.at(Place::Cache), travelling];
        assert_eq!(walked, [shells.depot, shells.cached, shells.travelling]);
        assert_eq!(places.at(Place::InUse), shells.in_use);
    }
    ledgers
}

/// I1, I2: at every step of a packet's way, it is in one place, and that is the one counted.
#[test]
fn i1_i2_one_place_at_every_step() {
    let memory = Memory::new(300, None).unwrap();
    let (mut here, mut there) = (seat(memory), seat(memory));
    let held: Vec<_> = (0..100).map(|_| here.take().unwrap()).collect();
    here.end();
    assert_eq!(ledgers(memory).shells.in_use, 100);
    held.into_iter().for_each(|skb| there.consume(skb));
    assert_eq!((there.stats().sent_home, there.stats().magazines_sent), (60, 1));
    there.end();
    assert_eq!(ledgers(memory).shells.travelling, 100);
    here.begin(1);
    here.end();
    let home = ledgers(memory).shells;
    assert_eq!((home.travelling, home.in_use), (0, 0));
    [&mut here, &mut there].into_iter().for_each(Ctx::flush);
    assert_eq!(ledgers(memory).shells.depot, home.made);
}

/// I4: the bytes of clones live as long as the last of them, whatever the order, and no longer.
#[test]
fn i4_shared_until_the_last() {
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let memory = Memory::new(64, None).unwrap();
        let mut ctx = seat(memory);
        let mut pool = FramePool::new(4, 1024, None).unwrap();
        let mut skb = ctx.take().unwrap();
        skb.put(4).unwrap().copy_from_slice(b"data");
        skb.add_frag(pool.take().unwrap()).unwrap();
        let mut pair = Pair::new(&mut ctx, skb).unwrap();
        let (one, mut two) = (pair.take_clone().unwrap(), None);
        assert!(pair.take_clone().is_none() && pair.refill(&mut ctx));
        two.replace(pair.take_clone().unwrap());
        let mut all = [Some(pair.into_skb(&mut ctx)), Some(one), two];
        for (gone, which) in order.into_iter().enumerate() {
            assert_eq!(pool.ledger().in_use, 1);
            let left = all[which].take().unwrap();
            assert_eq!((left.is_shared(), &left.linear()[..4]), (gone < 2, &b"data"[..]));
            ctx.consume(left);
        }
        ctx.end();
        assert_eq!((pool.ledger().in_use, ledgers(memory).shells.in_use), (0, 0));
    }
}

/// I5: what live packets are charged is what they hold, whatever was merged, cut and moved.
#[test]
fn i5_truesize_is_what_is_held() {
    let memory = Memory::new(64, None).unwrap();
    let mut ctx = seat(memory);
    let mut pool = FramePool::new(64, 1024, None).unwrap();
    let unit = ctx.take().map(|skb| skb.truesize()).unwrap();
    ctx.begin(0);
    let mut head = ctx.build(pool.take().unwrap(), 64, 500).unwrap();
    for step in 0..40 {
        let next = ctx.build(pool.take().unwrap(), 64, 500).unwrap();
        let how = if step % 3 == 0 { How::Whole } else { How::Bytes };
        if let Some(empty) = head.absorb(next, 40, how).unwrap() {
            ctx.consume(empty);
        }
        if step % 7 == 3 {
            head.pull(700);
        }
        if step % 5 == 4 {
            head.trim(head.len() - 200).unwrap();
        }
        ctx.begin(0);
        ctx.end();
        let shells = 1 + head.frag_list().count() as u32;
        assert_eq!(ledgers(memory).shells.in_use, shells);
        let held = pool.ledger().in_use * pool.size();
        assert_eq!(head.truesize(), shells * unit + held, "step {step}");
    }
    ctx.consume(head);
    ctx.end();
    assert_eq!((pool.ledger().in_use, ledgers(memory).shells.in_use), (0, 0));
}

/// A policy that sends each object home at once, under this bound, and wakes at half of it.
fn homing(defer_max: u32) -> Policy {
    let mut policy = Policy::GRILSE;
    for (knob, value) in
        [("free.tx_alien", "home"), ("defer.outbox", "0"), ("defer.kick_how", "wake")]
    {
        policy.set(knob, value).unwrap();
    }
    policy.set("defer.max", &defer_max.to_string()).unwrap();
    policy
}

/// I6, I7, I8: for every bound, 0, 1 and 2 too, and where it changes on the way: never more than
/// that at home, nothing stuck, and one round of the owner makes room again.
#[test]
fn i6_i7_i8_bounded_and_never_stuck() {
    let bounds = [0, 1, 2, 3, 64, 128, 5, 2, 1, 0, 7];
    let memory = Memory::new(600, None).unwrap();
    let (mut here, mut there) = (seat(memory), seat(memory));
    for max in bounds {
        memory.set_policy(homing(max)).unwrap();
        for _ in 0..3 {
            [&mut here, &mut there].into_iter().for_each(|ctx| ctx.begin(0));
            let held: Vec<_> = (0..200).map(|_| here.take().unwrap()).collect();
            let before = there.stats().clone();
            held.into_iter().for_each(|skb| there.consume(skb));
            [&mut there, &mut here].into_iter().for_each(Ctx::end);
            let most = max.saturating_sub(1);
            assert_eq!(ledgers(memory).shells.travelling, most.min(200), "defer.max {max}");
            let stats = there.stats();
            assert_eq!(stats.sent_home - before.sent_home, u64::from(most.min(200)));
            assert_eq!(stats.adopted - before.adopted, u64::from(200 - most.min(200)));
            // The owner is awake: nobody makes a system call for it.
            assert_eq!(stats.wakes, 0);
            here.begin(0);
            here.end();
            assert_eq!(ledgers(memory).shells.travelling, 0, "one round empties it");
            [&mut here, &mut there].into_iter().for_each(Ctx::flush);
        }
    }
}

/// I9: an owner that has nothing and sleeps is woken by the first that comes home, whichever way.
#[test]
fn i9_no_wake_up_is_lost() {
    let memory = Memory::new(60, None).unwrap();
    let mut ctx = seat(memory);
    let (tx, rx) = std::sync::mpsc::channel::<Skb>();
    let away = memory.seat(Role::Foreign);
    let other = thread::spawn(move || {
        let mut ctx = Ctx::new(away).unwrap();
        for (number, skb) in rx.into_iter().enumerate() {
            ctx.begin(0);
            if number % 2 == 0 {
                drop(skb)
            } else {
                ctx.consume(skb)
            }
            ctx.end();
        }
    });
    let mut slept = 0;
    for round in 0..20_000 {
        ctx.begin(round);
        match ctx.take() {
            Some(skb) => tx.send(skb).unwrap(),
            None => {
                ctx.sleep(true);
                slept += 1;
            }
        }
    }
    println!("slept {slept} times");
    drop(tx);
    other.join().unwrap();
}

/// I10: who will be idle flushes; then nothing is parked anywhere.
#[test]
fn i10_idle_means_all_is_in_the_depot() {
    for (name, policy) in Policy::PROFILES {
        let memory = Memory::new(2000, None).unwrap();
        memory.set_policy(*policy).unwrap();
        let mut ctxs = [seat(memory), seat(memory), seat(memory)];
        for round in 0..20u64 {
            ctxs.iter_mut().for_each(|ctx| ctx.begin(round));
            let held: Vec<_> = (0..300).map(|number| ctxs[number % 3].take().unwrap()).collect();
            for (number, skb) in held.into_iter().enumerate() {
                ctxs[(number / 3) % 3].consume(skb);
            }
            ctxs.iter_mut().for_each(Ctx::end);
        }
        // Twice: what one posts may reach another that has flushed.
        (0..2).for_each(|_| ctxs.iter_mut().for_each(Ctx::flush));
        let shells = ledgers(memory).shells;
        assert_eq!((shells.cached, shells.travelling, shells.in_use), (0, 0, 0), "{name}");
        assert_eq!(memory.ledgers().data.cached, 0, "{name}");
    }
}

/// I11: a destructor is called on the thread that frees, after the frames are free, and before any
/// shell of the packet is parked; those of chained packets too.
#[test]
fn i11_told_before_anything_is_parked() {
    type End = fn(&mut Ctx, Skb);
    let ends: [End; 3] =
        [|ctx, skb| ctx.consume(skb), |ctx, skb| ctx.recycle(skb.into_bare()), |_, skb| drop(skb)];
    for end in ends {
        let memory = Memory::new(64, None).unwrap();
        let mut ctx = seat(memory);
        let mut pool = FramePool::new(8, 1024, None).unwrap();
        let told = Arc::new(Mutex::new(Vec::new()));
        let tell = |name: u32| {
            let told = Arc::clone(&told);
            move || {
                let parked = match cfg!(feature = "audit") {
                    true => Some(memory.places().at(Place::InUse)),
                    false => None,
                };
                told.lock().unwrap().push((name, thread::current().id(), parked));
            }
        };
        let mut head = ctx.build(pool.take().unwrap(), 0, 100).unwrap();
        head.add_frag(pool.take().unwrap()).unwrap();
        assert!(head.set_destructor(Box::new(tell(0))).is_ok());
        assert!(head.set_destructor(Box::new(tell(9))).is_err(), "one at a time");
        for name in 1..4 {
            let mut skb = ctx.build(pool.take().unwrap(), 0, 100).unwrap();
            assert!(skb.set_destructor(Box::new(tell(name))).is_ok());
            head.chain(skb).unwrap();
        }
        let away = memory.seat(Role::Foreign);
        let freed = thread::spawn(move || {
            end(&mut Ctx::new(away).unwrap(), head);
            thread::current().id()
        });
        let thread = freed.join().unwrap();
        let told = told.lock().unwrap();
        assert_eq!(told.last().map(|(name, ..)| *name), Some(0), "the whole packet's, at the end");
        let mut names: Vec<_> = told.iter().map(|(name, ..)| *name).collect();
        names.sort_unstable();
        assert_eq!(names, [0, 1, 2, 3], "each once");
        for (_, on, in_use) in told.iter() {
            assert_eq!(*on, thread);
            assert!(in_use.is_none_or(|in_use| in_use == 4), "{in_use:?} of 4 are in use");
        }
        assert_eq!(pool.ledger().in_use, 0);
    }
}

/// A destructor that panics harms nothing but its own thread's round.
#[test]
fn i11_a_destructor_that_panics() {
    let memory = Memory::new(64, None).unwrap();
    let mut ctx = seat(memory);
    let mut head = ctx.take().unwrap();
    head.chain(ctx.take().unwrap()).unwrap();
    let panic = || std::panic::resume_unwind(Box::new(()));
    assert!(head.set_destructor(Box::new(panic)).is_ok());
    let fault = std::panic::AssertUnwindSafe(|| ctx.consume(head));
    assert!(std::panic::catch_unwind(fault).is_err());
    ctx.begin(0);
    ctx.end();
    assert_eq!(ledgers(memory).shells.in_use, 0);
}

/// I13: frames in flight are counted, and are none once all packets are gone.
#[test]
fn i13_frames_in_flight() {
    let memory = Memory::new(64, None).unwrap();
    let mut ctx = seat(memory);
    let mut pool = FramePool::new(32, 1024, None).unwrap();
    let held: Vec<_> = (1..=32)
        .map(|count| {
            let frame = ctx.take_frame(&mut pool).unwrap();
            assert_eq!(pool.ledger().in_use, count);
            ctx.build(frame, 0, 100).unwrap()
        })
        .collect();
    assert!(ctx.take_frame(&mut pool).is_none());
    for (gone, skb) in held.into_iter().enumerate() {
        assert_eq!(pool.ledger().in_use, 32 - gone as u32);
        ctx.consume(skb);
        ctx.end();
    }
    assert_eq!(pool.ledger().in_use, 0);
}

/// I16: every policy after every other, with packets under way both ways.
#[test]
fn i16_policies_flip_while_packets_travel() {
    for (_, before) in Policy::PROFILES {
        for (_, after) in Policy::PROFILES {
            let memory = Memory::new(1000, None).unwrap();
            let mut ctxs = [seat(memory), seat(memory)];
            for round in 0..6u64 {
                memory.set_policy(if round % 2 == 0 { *before } else { *after }).unwrap();
                ctxs.iter_mut().for_each(|ctx| ctx.begin(round));
                for from in [0, 1] {
                    let held: Vec<_> = (0..150).map(|_| ctxs[from].take().unwrap()).collect();
                    held.into_iter().for_each(|skb| ctxs[1 - from].consume(skb));
                }
                ctxs.iter_mut().for_each(Ctx::end);
                assert_eq!(ledgers(memory).shells.in_use, 0);
            }
        }
    }
}

/// I17: memory that holds 0, 1, 2, ... packets: wherever the work fails, nothing is lost, and it
/// is done once as many are there.
#[test]
fn i17_each_allocation_fails_in_turn() {
    fn work(ctx: &mut Ctx, pool: &mut FramePool) -> Option<()> {
        let mut head = ctx.take()?;
        head.put(10).ok()?;
        for _ in 0..3 {
            let mut skb = ctx.build(pool.take()?, 0, 50).ok()?;
            skb.add_frag(pool.take()?).ok()?;
            head.chain(skb).ok()?;
        }
        let mut pair = Pair::new(ctx, head).ok()?;
        let mut clone = pair.take_clone()?;
        clone.front_mut(12)?.fill(1);
        clone.trim(70).ok()?;
        pair.refill(ctx).then_some(())?;
        let original = pair.into_skb(ctx);
        ctx.consume(original);
        ctx.consume(clone);
        Some(())
    }
    // A context takes 60 at a time; copy-on-write, which has no context, takes three from the depot.
    const ENOUGH: u32 = 60 + 3;
    for (shells, frames) in (0..=ENOUGH).map(|n| (n, 6)).chain((0..6).map(|n| (ENOUGH, n))) {
        let memory = Memory::new(shells, None).unwrap();
        let mut ctx = seat(memory);
        let mut pool = FramePool::new(frames.max(1), 1024, None).unwrap();
        let hold = if frames == 0 { pool.take() } else { None };
        let done = work(&mut ctx, &mut pool).is_some();
        assert_eq!(done, (shells, frames) == (ENOUGH, 6), "{shells} shells, {frames} frames");
        drop(hold);
        ctx.begin(0);
        ctx.flush();
        let shells_now = ledgers(memory).shells;
        assert_eq!((shells_now.in_use, pool.ledger().in_use), (0, 0), "{shells} shells");
        assert_eq!(shells_now.depot, shells_now.made);
        let all: Vec<_> = std::iter::from_fn(|| ctx.take()).collect();
        assert_eq!(all.len() as u32, shells, "all can be had again");
    }
}

/// BL-25: a broadcast of three fragments in a chain is flooded to three ports, one clone trimmed,
/// one grown at the front; freed in every order, on two other threads, a hundred times in a pool of
/// 64. Elsewhere: a double free, or a leak until allocation fails.
#[test]
fn a_chain_flooded_to_several_ports() {
    static FREED: AtomicU32 = AtomicU32::new(0);
    let memory = Memory::new(64, None).unwrap();
    let mut ctx = seat(memory);
    let mut pool = FramePool::new(64, 1024, None).unwrap();
    let ports = [(); 2].map(|()| {
        let (tx, rx) = std::sync::mpsc::channel::<Skb>();
        let away = memory.seat(Role::Worker);
        let port = thread::spawn(move || {
            let mut ctx = Ctx::new(away).unwrap();
            for skb in rx {
                ctx.begin(0);
                ctx.consume(skb);
                FREED.fetch_add(1, Ordering::Release);
                ctx.end();
            }
        });
        (tx, port)
    });
    let bytes = |skb: &Skb| skb.pieces(0..skb.len()).collect::<Vec<_>>().concat();
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    for round in 0..100 {
        for order in orders {
            ctx.begin(round);
            let mut chain = (0..3u8).map(|part| {
                let mut skb = ctx.build(pool.take().unwrap(), 64, 100).unwrap();
                skb.linear_mut().unwrap().fill(part);
                skb
            });
            let mut first = chain.next().unwrap();
            let rest: Vec<_> = chain.collect();
            rest.into_iter().for_each(|skb| first.chain(skb).unwrap());
            let before = bytes(&first);
            let mut flooded = vec![first.try_clone(&mut ctx).unwrap()];
            flooded.push(first.try_clone(&mut ctx).unwrap());
            flooded.insert(0, first);
            flooded[1].trim(150).unwrap();
            // The head is shared, so it is copied before it grows.
            assert!(flooded[2].push(4).is_err() && flooded[2].front_mut(1).is_some());
            flooded[2].push(4).unwrap()[..4].fill(9);
            assert_eq!(bytes(&flooded[0]), before, "what was not touched");
            assert_eq!(bytes(&flooded[1]), before[..150]);
            assert_eq!(bytes(&flooded[2]), [&[9; 4][..], &before].concat());
            let mut flooded: Vec<_> = flooded.into_iter().map(Some).collect();
            let freed = FREED.load(Ordering::Acquire);
            for (turn, which) in order.into_iter().enumerate() {
                ports[turn % 2].0.send(flooded[which].take().unwrap()).unwrap();
                while FREED.load(Ordering::Acquire) <= freed + turn as u32 {
                    thread::yield_now();
                }
            }
        }
    }
    for (tx, port) in ports {
        drop(tx);
        port.join().unwrap();
    }
    ctx.begin(0);
    ctx.flush();
    let shells = ledgers(memory).shells;
    assert_eq!((shells.in_use, shells.depot, pool.ledger().in_use), (0, shells.made, 0));
    let all: Vec<_> = std::iter::from_fn(|| ctx.take()).collect();
    assert_eq!(all.len(), 64, "the pool is full again");
}

/// A packet that is consumed where another memory is worked with goes home all the same.
#[test]
fn of_another_memory() {
    let memories = [(); 2].map(|()| Memory::new(100, None).unwrap());
    let mut ctxs = memories.map(seat);
    for _ in 0..100 {
        let skb = ctxs[0].take().unwrap();
        ctxs[1].consume(skb);
        ctxs[1].end();
    }
    ctxs[0].begin(0);
    ctxs.iter_mut().for_each(Ctx::flush);
    for memory in memories {
        let shells = ledgers(memory).shells;
        assert_eq!((shells.in_use, shells.depot), (0, shells.made));
    }
}

/// A packet that is forgotten is missed, by count and by place.
#[test]
fn forgotten_packets_are_missed() {
    let memory = Memory::new(64, None).unwrap();
    let mut ctx = seat(memory);
    let lost = ctx.take().unwrap();
    std::mem::forget(lost);
    ctx.flush();
    let shells = ledgers(memory).shells;
    assert_eq!((shells.in_use, shells.depot), (1, shells.made - 1));
    if cfg!(feature = "audit") {
        let places = memory.places();
        assert_eq!(places.at(Place::InUse), 1, "with a user, though no user is left");
        assert_eq!(places.at(Place::Depot), shells.depot);
    }
}

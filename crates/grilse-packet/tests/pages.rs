//! Frames of packets that are consumed: by their pool's owner, elsewhere, and in rounds.

use std::thread;

use grilse_mem::{FrameLedger, FramePool, Policy, Role};
use grilse_packet::{Ctx, Memory, Skb};

/// Three frames: a head, a fragment, and the head of a chained packet.
fn packet(ctx: &mut Ctx, pool: &mut FramePool) -> Skb {
    let frame = ctx.take_frame(pool).unwrap();
    let mut skb = ctx.build(frame, 64, 100).unwrap();
    skb.add_frag(ctx.take_frame(pool).unwrap()).unwrap();
    let frame = ctx.take_frame(pool).unwrap();
    let chained = ctx.build(frame, 64, 100).unwrap();
    skb.chain(chained).unwrap();
    skb
}

#[test]
fn what_the_owners_thread_consumes_is_taken_again_without_a_list() {
    let memory = Memory::new(512, None).unwrap();
    let mut ctx = Ctx::new(memory.seat(Role::Worker)).unwrap();
    let mut pool = FramePool::new(60, 256, None).unwrap();
    for round in 0..100 {
        ctx.begin(round);
        let skbs: Vec<_> = (0..10).map(|_| packet(&mut ctx, &mut pool)).collect();
        skbs.into_iter().for_each(|skb| ctx.consume(skb));
        assert_eq!(ctx.available_frames(&pool), 60);
        ctx.end();
        assert_eq!(pool.ledger(), FrameLedger { fresh: 30, kept: 30, ..FrameLedger::default() });
    }
    ctx.flush();
    assert_eq!((pool.ledger().returned, pool.ledger().kept), (30, 0));
}

#[test]
fn with_direct_returns_off_they_go_by_the_list() {
    let memory = Memory::new(512, None).unwrap();
    memory.set_policy(Policy { pp_direct: false, ..Policy::GRILSE }).unwrap();
    let mut ctx = Ctx::new(memory.seat(Role::Worker)).unwrap();
    let mut pool = FramePool::new(60, 256, None).unwrap();
    ctx.begin(0);
    let skb = packet(&mut ctx, &mut pool);
    ctx.consume(skb);
    ctx.end();
    assert_eq!((pool.ledger().returned, pool.ledger().kept), (3, 0));
}

#[test]
fn what_others_consume_comes_back_by_the_end_of_their_round() {
    let memory = Memory::new(512, None).unwrap();
    let mut ctx = Ctx::new(memory.seat(Role::Worker)).unwrap();
    let mut pool = FramePool::new(60, 256, None).unwrap();
    let away = memory.seat(Role::Worker);
    let skbs: Vec<_> = (0..20).map(|_| packet(&mut ctx, &mut pool)).collect();
    assert!(ctx.take_frame(&mut pool).is_none());
    thread::scope(|scope| {
        let pool = &pool;
        let consumer = scope.spawn(move || {
            let mut ctx = Ctx::new(away).unwrap();
            skbs.into_iter().for_each(|skb| ctx.consume(skb));
            assert_eq!(pool.available(), 48, "three times sixteen");
            ctx.end();
            assert_eq!(pool.available(), 60);
        });
        consumer.join().unwrap();
    });
    assert_eq!(packet(&mut ctx, &mut pool).frags().count(), 1);
}

//! Long chains: no recursion, and no step that walks the chain for each of its members.

use std::time::{Duration, Instant};

use grilse_mem::Role;
use grilse_packet::{Ctx, Memory, Skb};
use grilse_wire::Packet;

const MEMBERS: u32 = 100_000;

fn chain(memory: &'static Memory, ctx: &mut Ctx) -> Skb {
    let mut head = ctx.take().unwrap();
    for number in 0..MEMBERS {
        let mut skb = ctx.take().unwrap();
        skb.put(4).unwrap().copy_from_slice(&number.to_be_bytes());
        head.chain(skb).unwrap();
    }
    assert_eq!(head.len(), 4 * MEMBERS as usize);
    assert_eq!(memory.capacity(), 2 * MEMBERS + 400);
    head
}

/// Ten seconds are a thousand times what a linear walk takes, and a hundredth of a quadratic one.
fn linear_time(work: impl FnOnce()) {
    let began = Instant::now();
    work();
    assert!(began.elapsed() < Duration::from_secs(10), "took {:?}", began.elapsed());
}

#[test]
fn hundred_thousand_members() {
    let memory = Memory::new(2 * MEMBERS + 400, None).unwrap();
    let mut ctx = Ctx::new(memory.seat(Role::Worker)).unwrap();

    let head = chain(memory, &mut ctx);
    linear_time(|| ctx.consume(head));

    let head = chain(memory, &mut ctx);
    linear_time(|| drop(head));
    ctx.begin(0);

    // In order, by whatever mixture of reading and growing.
    let mut head = chain(memory, &mut ctx);
    linear_time(|| {
        assert!(head.front_mut(0).is_some());
        let numbers = head.pieces(0..head.len()).map(|piece| piece.try_into().unwrap());
        assert!(numbers.map(u32::from_be_bytes).eq(0..MEMBERS));
        for number in 0..MEMBERS / 2 {
            let first = head.unchain().unwrap();
            assert_eq!(first.linear(), number.to_be_bytes());
            ctx.consume(first);
        }
        head.trim(4 * 1000).unwrap();
        assert_eq!(head.frag_list().count(), 1000);
        assert_eq!(head.pull(4 * 999), 4 * 999);
        assert_eq!(head.frag_list().count(), 1);
    });
    ctx.consume(head);

    // What was cut off went home by itself.
    ctx.begin(0);

    // A clone parts from a long chain in one walk; both then clear theirs.
    let mut head = chain(memory, &mut ctx);
    let mut clone = head.try_clone(&mut ctx).unwrap();
    linear_time(|| {
        assert_eq!(clone.pull(4), 4);
        assert_eq!(clone.frag_list().count() as u32, MEMBERS - 1);
        assert_eq!(head.frag_list().count() as u32, MEMBERS);
    });
    ctx.consume(head);
    ctx.consume(clone);
    ctx.begin(0);
    ctx.end();
    assert_eq!(memory.ledgers().shells.in_use, 0);
}

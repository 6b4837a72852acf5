//! One test for each fault that was found and mended, told briefly.

use grilse_mem::{FramePool, Role};
use grilse_packet::{Ctx, HEAD_SIZE, Memory, copied_bytes};
use grilse_wire::Packet;

fn rig(frame_size: u32) -> (Ctx, FramePool) {
    let memory = Memory::new(64, None).unwrap();
    let ctx = Ctx::new(memory.seat(Role::Worker)).unwrap();
    (ctx, FramePool::new(64, frame_size, None).unwrap())
}

/// A frame's tailroom can take more than a small head has bytes; the bytes to move went through a
/// buffer of that size, past its end.
#[test]
fn gathering_more_than_a_small_head_into_a_frame() {
    let (mut ctx, mut pool) = rig(16_384);
    let mut skb = ctx.build(pool.take().unwrap(), 0, 64).unwrap();
    for byte in 1..4 {
        let mut frag = pool.take().unwrap();
        frag.bytes_mut().unwrap().fill(byte);
        frag.set_range(0..2000);
        skb.add_frag(frag).unwrap();
    }
    let n = 64 + 5000;
    assert!(n > HEAD_SIZE);
    let copied = copied_bytes();
    let linear = skb.pull_to_linear(n).unwrap();
    assert_eq!((linear[2063], linear[2064], linear[5063]), (1, 2, 3));
    assert_eq!(copied_bytes() - copied, 5000, "each byte once");
    assert_eq!((skb.len(), skb.frags().count()), (6064, 1));
    ctx.consume(skb);
}

/// A packet that had been cloned counted as shared for ever, so that it took no more fragments and
/// could not grow although its clone was gone.
#[test]
fn writing_again_once_the_clone_is_gone() {
    let (mut ctx, mut pool) = rig(1024);
    let mut skb = ctx.take().unwrap();
    skb.put(4).unwrap().copy_from_slice(b"data");
    let mut clone = skb.try_clone(&mut ctx).unwrap();
    assert!(skb.put(1).is_err() && clone.push(1).is_err(), "while both are there");
    ctx.consume(clone);
    let copied = copied_bytes();
    skb.put(1).unwrap()[0] = b'!';
    skb.push(1).unwrap()[0] = b'>';
    skb.add_frag(pool.take().unwrap()).unwrap();
    skb.chain(ctx.take().unwrap()).unwrap();
    assert_eq!(skb.linear(), b">data!");
    assert_eq!(copied_bytes(), copied, "what is alone again needs no copy");
    ctx.consume(skb);
}

/// Moving the linear bytes within a small head, to make room behind them, is a copy too.
#[test]
fn moving_within_the_head_is_counted() {
    let (mut ctx, mut pool) = rig(1024);
    let mut skb = ctx.take().unwrap();
    let room = skb.tailroom();
    skb.put(room).unwrap();
    skb.pull(room - 10);
    skb.add_frag(pool.take().unwrap()).unwrap();
    let copied = copied_bytes();
    assert!(skb.front_mut(100).is_some());
    assert_eq!(copied_bytes() - copied, 10 + 90);
    ctx.consume(skb);
}

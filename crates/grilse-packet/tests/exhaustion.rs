//! Memory that runs dry in the middle of an operation: the packet is as before, and the operation
//! works once buffers are back.

use grilse_mem::{FramePool, FrameSlice, Role};
use grilse_packet::{Ctx, Memory, NoRoom, Skb};
use grilse_wire::Packet;

fn bytes(skb: &Skb) -> Vec<u8> {
    skb.pieces(0..skb.len()).collect::<Vec<_>>().concat()
}

/// What a cache takes from the depot at a time.
const MAGAZINE: u32 = grilse_mem::Magazine::<Nothing>::CAPACITY as u32;

struct Nothing;

impl grilse_mem::Recycle for Nothing {
    fn recycle(slot: grilse_mem::Slot<Self>) {
        std::mem::forget(slot);
    }
}

const CHAINED: u32 = 5;

/// A packet with a fragment and a chain of five, the third with a fragment; and its clone.
fn shared_pair(ctx: &mut Ctx, pool: &mut FramePool) -> (Skb, Skb) {
    let frag = |pool: &mut FramePool, byte| -> FrameSlice {
        let mut frame = pool.take().unwrap();
        frame.bytes_mut().unwrap().fill(byte);
        frame.set_range(0..10);
        frame
    };
    let mut head = ctx.take().unwrap();
    head.put(10).unwrap().fill(b'h');
    head.add_frag(frag(pool, b'f')).unwrap();
    for number in 0..CHAINED as u8 {
        let mut skb = ctx.take().unwrap();
        skb.put(10).unwrap().fill(b'0' + number);
        if number == 2 {
            skb.add_frag(frag(pool, b'F')).unwrap();
        }
        head.chain(skb).unwrap();
    }
    let clone = head.try_clone(ctx).unwrap();
    (head, clone)
}

type Operation = fn(&mut Skb) -> bool;

/// Operations that write to what a clone shares.
const OPERATIONS: [(&str, Operation); 5] = [
    ("trim", |skb| skb.trim(45) == Ok(())),
    ("pull", |skb| skb.pull(55) == 55),
    ("pull_to_linear", |skb| skb.pull_to_linear(55).is_ok()),
    ("front_mut", |skb| skb.front_mut(55).map(|front| front[54] ^= 1).is_some()),
    ("add to the front", |skb| skb.front_mut(1).map(|front| front[0] ^= 1).is_some()),
];

/// Copy-on-write takes one shell per chained packet from the depot: here it finds 0, 1, ... of them.
#[test]
fn each_shell_of_a_copy_fails_in_turn() {
    for (name, operation) in OPERATIONS {
        for left in 0..=CHAINED {
            let memory = Memory::new(MAGAZINE + left, None).unwrap();
            let mut ctx = Ctx::new(memory.seat(Role::Worker)).unwrap();
            let mut pool = FramePool::new(4, 1024, None).unwrap();
            let (mut head, clone) = shared_pair(&mut ctx, &mut pool);
            let (before, charged) = (bytes(&head), head.truesize());
            let done = operation(&mut head);
            assert_eq!(done, left == CHAINED, "{name} with {left} shells");
            if !done && name != "pull" {
                assert_eq!((bytes(&head), head.truesize()), (before.clone(), charged), "{name}");
            }
            assert_eq!(bytes(&clone), before, "{name}: the clone never changes");
            ctx.consume(clone);
            if !done && name != "pull" {
                assert!(operation(&mut head), "{name} works once the clone is gone");
            }
            ctx.consume(head);
            ctx.begin(0);
            ctx.end();
            assert_eq!(memory.ledgers().shells.in_use, 0, "{name} with {left} shells");
            assert_eq!(pool.ledger().in_use, 0);
        }
    }
}

#[test]
fn a_full_head_refuses() {
    let memory = Memory::new(4, None).unwrap();
    let mut ctx = Ctx::new(memory.seat(Role::Worker)).unwrap();
    let mut skb = ctx.take().unwrap();
    let (front, back) = (skb.headroom(), skb.tailroom());
    assert_eq!(skb.push(front + 1), Err(NoRoom));
    assert_eq!(skb.put(back + 1), Err(NoRoom));
    assert_eq!(skb.put(usize::MAX), Err(NoRoom));
    assert_eq!(skb.push(usize::MAX), Err(NoRoom));
    assert!(skb.put(back).is_ok() && skb.push(front).is_ok());
    assert_eq!((skb.headroom(), skb.tailroom()), (0, 0));
    assert_eq!(skb.len(), grilse_packet::HEAD_SIZE);
    ctx.consume(skb);
}

/// A chain of shared frames charges more than `truesize` can say: refused, not wrapped.
#[test]
fn four_gigabytes_are_the_most_that_is_charged() {
    let memory = Memory::new(9000, None).unwrap();
    let mut ctx = Ctx::new(memory.seat(Role::Worker)).unwrap();
    let mut pool = FramePool::new(1, 32_768, None).unwrap();
    let frame = pool.take().unwrap();
    let mut head = ctx.take().unwrap();
    let refused = (0..8000).find_map(|_| {
        let mut skb = ctx.take().unwrap();
        (0..17).for_each(|_| skb.add_frag(frame.clone()).unwrap());
        head.chain(skb).err()
    });
    let refused = refused.expect("4 GiB are reached before 8000 packets of 544 KiB");
    assert!(head.truesize() > u32::MAX - refused.truesize());
    ctx.consume(refused);
    ctx.consume(head);
    drop(frame);
    assert_eq!(pool.ledger().in_use, 0);
}

//! The cable within the process: packets cross it in order, and whoever sleeps is told.

use std::thread;

use grilse_dev::{Armed, Device, Fault, OpenError, Opener, Queues, Spec, Wanted};
use grilse_mem::Role;
use grilse_packet::{Batch, Ctx, Memory};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

const ONE: Wanted = Wanted { rx: true, tx: true, queues: 1 };

fn open(opener: &mut Opener, spec: &str) -> Result<Queues, OpenError> {
    opener.open(&spec.parse::<Spec>().unwrap(), ONE)
}

fn ends(spec: &str) -> (Box<dyn Device>, Box<dyn Device>) {
    let mut opener = Opener::default();
    let mut end = || open(&mut opener, spec).unwrap().pop().unwrap();
    (end(), end())
}

fn ctx() -> Ctx {
    Ctx::new(Memory::new(1024, None).unwrap().seat(Role::Worker)).unwrap()
}

/// A packet that carries a number.
fn numbered(ctx: &mut Ctx, number: u64) -> grilse_packet::Skb {
    let mut skb = ctx.take().unwrap();
    skb.put(60).unwrap()[..8].copy_from_slice(&number.to_ne_bytes());
    skb
}

fn number(skb: &grilse_packet::Skb) -> u64 {
    u64::from_ne_bytes(*skb.linear().first_chunk().unwrap())
}

/// Sleeps as a worker does; true when it was told within the time.
fn sleep(device: &mut dyn Device, sending: bool) -> bool {
    match device.arm(sending) {
        Armed::Ready => true,
        Armed::Event(fd) => {
            let mut fds = [PollFd::new(&fd, PollFlags::IN)];
            poll(&mut fds, Some(&Timespec { tv_sec: 10, tv_nsec: 0 })).unwrap() == 1
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_full_ring_leaves_the_rest_to_the_sender() {
    let (mut a, mut b) = ends("pair:x,ring=4");
    let mut ctx = ctx();
    let mut batch = Batch::new();
    for i in 0..6 {
        batch.push(numbered(&mut ctx, i)).unwrap();
    }
    assert_eq!(a.tx(&mut ctx, &mut batch).unwrap(), 4);
    assert_eq!((batch.len(), a.counters().tx_full), (2, 1));
    let mut out = Batch::new();
    assert_eq!(b.rx(&mut ctx, &mut out, 3).unwrap().taken, 3);
    assert_eq!(a.tx(&mut ctx, &mut batch).unwrap(), 2);
    assert_eq!(b.rx(&mut ctx, &mut out, 64).unwrap().taken, 3);
    let numbers: Vec<_> = std::iter::from_fn(|| out.pop()).map(|skb| number(&skb)).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4, 5]);
    assert_eq!(b.counters().rx_packets, 6);
}

#[test]
fn an_end_that_leaves_is_missed_by_the_other() {
    let (mut a, b) = ends("pair:x");
    let mut ctx = ctx();
    drop(b);
    let mut batch = Batch::new();
    batch.push(numbered(&mut ctx, 0)).unwrap();
    assert!(matches!(a.tx(&mut ctx, &mut batch), Err(Fault::Gone { .. })));
    assert_eq!(batch.len(), 1, "the packet is still the sender's");
    assert!(a.rx(&mut ctx, &mut Batch::new(), 64).unwrap().ended);
}

#[test]
fn a_third_end_belongs_to_a_pair_of_its_own() {
    let mut opener = Opener::default();
    for _ in 0..3 {
        open(&mut opener, "pair:x").unwrap();
    }
    let two = Wanted { queues: 2, ..ONE };
    let error = opener.open(&"pair:x".parse().unwrap(), two).err().unwrap();
    assert!(error.to_string().contains("1 queues at its other end"), "{error}");
    assert!(open(&mut opener, "pair:x").is_ok(), "the end that waited still waits");
}

/// One worker sends as fast as it can, both sleep whenever they find nothing to do, and everything
/// arrives in order: no wake-up is lost.
#[test]
fn sleepers_are_told() {
    const PACKETS: u64 = 50_000;
    let memory = Memory::new(256, None).unwrap();
    let (mut a, mut b) = ends("pair:x,ring=8");
    let sender = thread::spawn(move || {
        let mut ctx = Ctx::new(memory.seat(Role::Worker)).unwrap();
        let mut batch = Batch::new();
        let mut next = 0;
        while next < PACKETS || !batch.is_empty() {
            ctx.begin(0);
            while next < PACKETS && batch.room() > 48 {
                let Some(mut skb) = ctx.take() else { break };
                skb.put(60).unwrap()[..8].copy_from_slice(&next.to_ne_bytes());
                batch.push(skb).unwrap();
                next += 1;
            }
            let sent = a.tx(&mut ctx, &mut batch).unwrap();
            ctx.end();
            assert!(sent > 0 || sleep(&mut *a, !batch.is_empty()), "not told of room");
        }
        a
    });
    let mut ctx = Ctx::new(memory.seat(Role::Worker)).unwrap();
    let mut out = Batch::new();
    let mut due = 0;
    while due < PACKETS {
        ctx.begin(0);
        let received = b.rx(&mut ctx, &mut out, 64).unwrap();
        while let Some(skb) = out.pop() {
            assert_eq!(number(&skb), due);
            due += 1;
            ctx.consume(skb);
        }
        ctx.end();
        if received.taken == 0 && due < PACKETS {
            assert!(sleep(&mut *b, false), "not told of packet {due}");
        }
    }
    drop(sender.join().unwrap());
    assert!(b.rx(&mut ctx, &mut out, 64).unwrap().ended);
}

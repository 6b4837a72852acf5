//! Devices that give packets nobody can cut, take more than they were asked for, lie in what they
//! say or fail amid a burst: a worker neither hangs nor loses count.

use std::sync::Arc;

use grilse_dev::{Armed, Caps, Device, Fault, Opener, Received, RxCsum, Spec, Wanted};
use grilse_engine::{Account, Forward, Limit, Mode, Port, Worker};
use grilse_mem::{FramePool, Role};
use grilse_offload::{Config, Gro};
use grilse_packet::{Batch, Ctx, DropReason, Memory, Skb};
use grilse_wire::build::{Check, Eth, Ext, Ipv6, Tcp, frame};
use grilse_wire::{Csum, Gso, GsoType, Meta, eth::ethertype, tcp};

/// Makes the next packet to be received; `None` behind the last.
type Make = Box<dyn FnMut(&mut Ctx) -> Option<Skb> + Send>;
/// Sends as it likes.
type Take = Box<dyn FnMut(&mut Ctx, &mut Batch) -> Result<usize, Fault> + Send>;

struct Hostile {
    caps: Caps,
    make: Make,
    /// Takes this many more than it was asked for.
    beyond: usize,
    take: Take,
}

impl Device for Hostile {
    fn caps(&self) -> &Caps {
        &self.caps
    }

    fn rx(&mut self, ctx: &mut Ctx, out: &mut Batch, budget: usize) -> Result<Received, Fault> {
        let mut taken = 0;
        while taken < budget + self.beyond && out.room() > 0 {
            let Some(skb) = (self.make)(ctx) else { return Ok(Received { taken, ended: true }) };
            out.push(skb).unwrap();
            taken += 1;
        }
        Ok(Received { taken, ended: false })
    }

    fn tx(&mut self, ctx: &mut Ctx, batch: &mut Batch) -> Result<usize, Fault> {
        (self.take)(ctx, batch)
    }

    fn arm(&mut self, _: bool) -> Armed<'_> {
        Armed::Never
    }
}

fn device(make: Make, beyond: usize, take: Take) -> Box<dyn Device> {
    let spec: Spec = "null:".parse().unwrap();
    let null = Opener::default().open(&spec, Wanted { rx: true, tx: true, queues: 1 }).unwrap();
    let mut caps = null[0].caps().clone();
    (caps.tx_gso, caps.tx_csum, caps.rx_csum) = (GsoType::default(), false, RxCsum::None);
    Box::new(Hostile { caps, make, beyond, take })
}

fn all() -> Take {
    Box::new(|ctx, batch| {
        let sent = batch.len();
        while let Some(skb) = batch.pop() {
            ctx.consume(skb);
        }
        Ok(sent)
    })
}

/// Runs to the end, or for a while; what was counted, and whether it came to an end.
fn run(make: Make, beyond: usize, take: Take, limit: Option<u64>) -> (Account, bool) {
    let memory = Memory::new(2048, None).unwrap();
    let ctx = Ctx::new(memory.seat(Role::Worker)).unwrap();
    let rx = Port::new(device(make, beyond, all()), Gro::new(Config::default()));
    let tx = Port::sending(device(Box::new(|_| None), 0, take));
    let mut worker = Worker::new(ctx, vec![rx, tx], Forward::new(Mode::Io, &[1, 0]));
    if let Some(frames) = limit {
        worker.limit(Arc::new(Limit::new(frames)));
    }
    let mut ended = false;
    for now_ns in 0..2000 {
        let round = worker.round(now_ns);
        assert_eq!(worker.account().missing(), 0, "in round {now_ns}");
        if let Ok(round) = round
            && round.ended
        {
            ended = true;
            break;
        }
    }
    let account = worker.account();
    drop(worker.stop());
    assert_eq!(memory.ledgers().shells.in_use, 0);
    (account, ended)
}

const HEADERS: [u8; 2040] = [0; 2040];

/// TCP behind more headers than a segment has room for.
fn long_headers(n: u32) -> Vec<u8> {
    let ext = [Ext::DestOpts(&HEADERS)];
    let tcp = Tcp { seq: 1000 + 100 * n, ..Tcp::default() };
    frame(Eth::default(), Ipv6 { ext: &ext, ..Ipv6::default() }, tcp, &[7; 100])
}

fn v6(network: u16) -> Meta {
    Meta { protocol: ethertype::IPV6, network, ..Meta::default() }
}

fn built(ctx: &mut Ctx, pool: &mut FramePool, bytes: &[u8]) -> Skb {
    let mut frame = ctx.take_frame(pool).unwrap();
    frame.bytes_mut().unwrap()[..bytes.len()].copy_from_slice(bytes);
    ctx.build(frame, 0, bytes.len()).unwrap()
}

/// They merge, and then no segment can have them.
#[test]
fn headers_that_no_segment_has_room_for_are_dropped() {
    let mut pool = FramePool::new(64, 16 << 10, None).unwrap();
    let mut n = 0;
    let make = move |ctx: &mut Ctx| {
        n += 1;
        let mut skb = (n <= 20).then(|| built(ctx, &mut pool, &long_headers(n)))?;
        *skb.meta_mut() = v6(14);
        Some(skb)
    };
    let (account, ended) = run(Box::new(make), 0, all(), None);
    assert!(ended, "{account:?}");
    assert_eq!((account.rx_frames, account.held), (20, 0));
}

/// A segment of more pieces than a packet has slots, and longer than what is copied.
#[test]
fn payload_in_too_many_pieces_is_dropped() {
    let mut pool = FramePool::new(256, 16 << 10, None).unwrap();
    let partial = Tcp { check: Check::Partial, ..Tcp::default() };
    let headers = frame(Eth::default(), Ipv6::default(), partial, &[]);
    let mut left = 1;
    let make = move |ctx: &mut Ctx| {
        left = i32::checked_sub(left, 1).filter(|left| *left >= 0)?;
        let mut skb = built(ctx, &mut pool, &headers);
        for _ in 0..60 {
            let member = built(ctx, &mut pool, &[7; 100]);
            skb.chain(member).unwrap();
        }
        *skb.meta_mut() = Meta {
            gso: Gso { size: 3000, segs: 2, kind: GsoType::TCPV6 },
            csum: Csum::Partial { start: 54, offset: tcp::CHECK as u16 },
            ..v6(14)
        };
        Some(skb)
    };
    let (account, ended) = run(Box::new(make), 0, all(), None);
    assert!(ended, "{account:?}");
    assert_eq!((account.drops.count(DropReason::BadGso), account.held), (2, 0));
}

fn small(ctx: &mut Ctx) -> Option<Skb> {
    let mut skb = ctx.take()?;
    skb.put(60).ok()?.fill(1);
    Some(skb)
}

#[test]
fn a_device_that_takes_more_than_its_budget_reaches_the_limit() {
    let (account, ended) = run(Box::new(small), 10, all(), Some(5));
    assert!(ended, "{account:?}");
}

/// It takes less than comes in, so that what waits soon fills its queue.
#[test]
fn a_slow_sender_gets_all_in_the_end() {
    let one: Take = Box::new(|ctx, batch| {
        batch.pop().into_iter().for_each(|skb| ctx.consume(skb));
        Ok(1)
    });
    let (account, ended) = run(Box::new(small), 0, one, Some(700));
    assert!(ended, "{account:?}");
    assert_eq!(account.tx_frames, 700);
}

/// Faults amid bursts, takes nothing for long, and says what is not true.
#[test]
fn a_sender_that_lies_costs_no_count() {
    let mut calls = 0;
    let take: Take = Box::new(move |ctx, batch| {
        calls += 1;
        let most = calls % 5;
        for skb in std::iter::from_fn(|| batch.pop()).take(most) {
            ctx.consume(skb);
        }
        match calls % 3 {
            0 => Err(Fault::Gone { device: "hostile".to_owned() }),
            1 => Ok(usize::MAX >> 8),
            _ => Ok(0),
        }
    });
    let (account, ended) = run(Box::new(small), 0, take, Some(500));
    assert!(ended, "{account:?}");
    assert_eq!((account.rx_frames, account.tx_frames), (500, 500));
}

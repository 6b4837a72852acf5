//! A worker loses nothing: not at a fault amid a poll, and not at its end.

use grilse_dev::pcap::{Error, Reader};
use grilse_dev::{Fault, Offloads, Replay, ReplayPool};
use grilse_engine::{Handler, Poll, PollCtx, Port, Worker};
use grilse_mem::{Policy, Role};
use grilse_offload::{Config, Gro, Why};
use grilse_packet::{Ctx, DropReason, Memory, Skb};
use grilse_wire::Meta;

/// Counts frames as they arrive, and again as segments of what is delivered.
#[derive(Default)]
struct Tally {
    frames: u64,
    arrived: u64,
}

impl Handler for Tally {
    fn arriving(&mut self, packet: Option<&Meta>) {
        self.arrived += u64::from(packet.is_some());
    }

    fn deliver(&mut self, poll: &mut PollCtx<'_>, skb: Skb, _: Why) {
        self.frames += u64::from(skb.meta().gso.segs.max(1));
        // Either way of letting go leads home.
        if self.frames.is_multiple_of(2) { poll.consume(skb) } else { drop(skb) }
    }
}

/// Receives `capture` to its end or fault; all memory must be back then. Returns the frames
/// delivered, those dropped, and the fault.
fn receive(capture: &'static [u8], budget: usize) -> (u64, u64, Option<Fault>) {
    let pool = ReplayPool::new().expect("memory for frames");
    let memory = Memory::new(1024, None).expect("memory for packets");
    let reader = Reader::new(capture).expect("a capture");
    let device = Replay::on(&pool, "t", reader, Offloads { hash: true, ..Offloads::default() });
    let ctx = Ctx::new(memory.seat(Role::Worker)).expect("the first seat");
    let port = Port::new(Box::new(device), Gro::new(Config::default()));
    let mut worker = Worker::new(ctx, vec![port], Tally::default());
    let fault = loop {
        match worker.poll(0, 0, budget) {
            Ok(Poll { ended: false, taken }) => assert!(taken <= budget),
            Ok(Poll { ended: true, .. }) => break None,
            Err(fault) => break Some(fault),
        }
    };
    let after = worker.poll(0, 0, budget).expect("a fault is told once");
    assert_eq!(after, Poll { taken: 0, ended: true });
    let dropped = worker.ctx().drops().count(DropReason::LinkTruncated);
    let tally = worker.stop();
    assert_eq!(tally.arrived, tally.frames, "GRO holds something still");
    assert_eq!(pool.ledger().in_use, 0, "{:?}", pool.ledger());
    let shells = memory.ledgers().shells;
    assert_eq!((shells.in_use, shells.cached, shells.travelling), (0, 0, 0), "{shells:?}");
    (tally.frames, dropped, fault)
}

const CAPTURE: &[u8] = include_bytes!("../../../captures/tcp4-bulk-16flows.pcap");
const FRAMES: u64 = 2166;

#[test]
fn every_frame_is_delivered_and_all_memory_comes_home() {
    for budget in [1, 7, 64, 1000] {
        let (frames, dropped, fault) = receive(CAPTURE, budget);
        assert!(fault.is_none(), "{fault:?}");
        assert_eq!((frames, dropped), (FRAMES, 0), "budget {budget}");
    }
}

#[test]
fn frames_before_a_fault_are_delivered() {
    for budget in [1, 7, 64] {
        let (frames, _, fault) = receive(&CAPTURE[..CAPTURE.len() - 1], budget);
        let Some(Fault::Read { source: Error::Truncated { record, .. }, .. }) = fault else {
            panic!("{fault:?}")
        };
        assert_eq!((frames, record), (FRAMES - 1, FRAMES - 1), "budget {budget}");
    }
}

#[test]
fn refused_frames_are_counted_and_cost_no_memory() {
    let short = [&CAPTURE[..24], &[0; 8], &3_u32.to_le_bytes(), &3_u32.to_le_bytes(), b"abc"];
    let mut capture = short.concat();
    capture.extend_from_slice(&CAPTURE[24..]);
    let (frames, dropped, fault) = receive(capture.leak(), 64);
    assert!(fault.is_none(), "{fault:?}");
    assert_eq!((frames, dropped), (FRAMES, 1));
}

/// Invariant I10: a worker that nothing has come to for `idle.flush_us` has nothing parked, and not
/// before; nor has it later, when something comes home to it.
#[test]
fn i10_an_idle_worker_has_nothing_parked() {
    let pool = ReplayPool::new().expect("memory for frames");
    let memory = Memory::new(1024, None).expect("memory for packets");
    let idle_ns = Policy::GRILSE.idle_flush().expect("it is on").as_nanos() as u64;
    let reader = Reader::new(CAPTURE).expect("a capture");
    let device = Replay::on(&pool, "t", reader, Offloads { hash: true, ..Offloads::default() });
    let mut ctx = Ctx::new(memory.seat(Role::Worker)).expect("the first seat");
    let late = ctx.take().expect("nothing is in use yet");
    let port = Port::new(Box::new(device), Gro::new(Config::default()));
    let mut worker = Worker::new(ctx, vec![port], Tally::default());
    while !worker.poll(0, 1000, 64).expect("the capture is whole").ended {}
    let parked = |memory: &Memory| {
        let shells = memory.ledgers().shells;
        assert_eq!(shells.in_use + shells.depot + shells.cached + shells.travelling, shells.made);
        shells.cached + shells.travelling
    };
    worker.poll(0, 1000 + idle_ns - 1, 64).expect("nothing comes");
    assert!(parked(memory) > 0, "it may still be needed");
    worker.poll(0, 1000 + idle_ns, 64).expect("nothing comes");
    assert_eq!((parked(memory), memory.ledgers().shells.in_use), (0, 1));
    assert_eq!((pool.ledger().in_use, pool.ledger().kept), (0, 0));
    drop(late);
    assert_eq!(parked(memory), 1);
    worker.poll(0, 1001 + idle_ns, 64).expect("nothing comes");
    let ledgers = memory.ledgers();
    assert_eq!((ledgers.shells.depot, ledgers.data.cached), (ledgers.shells.made, 0));
}

//! Rounds between devices: what comes in goes out as it came, or is counted, also where the device
//! that sends is slow, cannot cut super-packets, or memory is short.

use std::sync::{Arc, Mutex};

use grilse_dev::{
    Armed, Caps, Device, Fault, OnWire, Opener, Queues, Received, RxCsum, Spec, Wanted,
};
use grilse_engine::{Forward, Mode, Port, Worker};
use grilse_mem::Role;
use grilse_offload::{Config, Gro};
use grilse_packet::{Batch, Ctx, DropReason, Memory};
use grilse_wire::GsoType;

type Frames = Arc<Mutex<Vec<Vec<u8>>>>;

/// A device that sends a few packets a call, and remembers them.
struct Sink {
    caps: Caps,
    per_call: usize,
    frames: Frames,
}

impl Device for Sink {
    fn caps(&self) -> &Caps {
        &self.caps
    }

    fn rx(&mut self, _: &mut Ctx, _: &mut Batch, _: usize) -> Result<Received, Fault> {
        Ok(Received { taken: 0, ended: false })
    }

    fn tx(&mut self, ctx: &mut Ctx, batch: &mut Batch) -> Result<usize, Fault> {
        let sent = batch.len().min(self.per_call);
        let mut frames = self.frames.lock().unwrap();
        for skb in std::iter::from_fn(|| batch.pop()).take(sent) {
            frames.push(OnWire::new(&skb).pieces().flatten().copied().collect());
            ctx.consume(skb);
        }
        Ok(sent)
    }

    fn arm(&mut self, _: bool) -> Armed<'_> {
        Armed::Never
    }
}

fn sink(per_call: usize, tx_gso: GsoType, max_frame: usize) -> (Port, Frames) {
    let frames = Frames::default();
    let mut caps = null().caps().clone();
    (caps.tx_gso, caps.tx_csum, caps.max_frame) = (tx_gso, false, max_frame);
    caps.rx_csum = RxCsum::None;
    (Port::sending(Box::new(Sink { caps, per_call, frames: frames.clone() })), frames)
}

fn open(spec: &str) -> Queues {
    let spec: Spec = spec.parse().unwrap();
    Opener::default().open(&spec, Wanted { rx: true, tx: false, queues: 1 }).unwrap()
}

fn null() -> Box<dyn Device> {
    open("null:").pop().unwrap()
}

fn generator(spec: &str, gro: bool) -> Port {
    let mut config = Config::default();
    config.gro = gro;
    config.udp_fwd = true;
    Port::new(open(spec).pop().unwrap(), Gro::new(config))
}

/// Runs to the end; what was sent, what was dropped for this reason, and how many frames came in.
fn run(memory: u32, rx: Port, tx: Port, reason: DropReason) -> (u64, u64) {
    let memory = Memory::new(memory, None).unwrap();
    let ctx = Ctx::new(memory.seat(Role::Worker)).unwrap();
    let mut worker = Worker::new(ctx, vec![rx, tx], Forward::new(Mode::Io, &[1, 0]));
    for round in 0.. {
        assert!(round < 1_000_000, "it comes to no end");
        let ended = worker.round(round).unwrap().ended;
        assert_eq!(worker.account().missing(), 0, "in round {round}");
        if ended {
            break;
        }
    }
    let account = worker.account();
    drop(worker.stop());
    let ledgers = memory.ledgers();
    assert_eq!((ledgers.shells.in_use, account.held), (0, 0));
    (account.rx_frames, account.drops.count(reason))
}

#[test]
fn what_was_coalesced_leaves_as_it_came() {
    for proto in ["tcp", "udp"] {
        for ip in ["4", "6"] {
            let spec = format!("gen:,proto={proto},ip={ip},size=1514,flows=4,count=3000");
            let reference = {
                let (tx, frames) = sink(64, GsoType::default(), 1514);
                run(4096, generator(&spec, false), tx, DropReason::TooBig);
                frames.lock().unwrap().clone()
            };
            // A sink that is slow, so that cutting stops and goes on.
            let (tx, frames) = sink(7, GsoType::default(), 1514);
            let (came, _) = run(4096, generator(&spec, true), tx, DropReason::TooBig);
            let mut frames = frames.lock().unwrap().clone();
            assert_eq!((came, frames.len()), (3000, 3000), "{spec}");
            // Within a flow the order is the same: that of flows among each other is GRO's.
            frames.sort();
            let mut reference = reference;
            reference.sort();
            assert!(frames == reference, "{spec}");
        }
    }
}

#[test]
fn cutting_waits_for_memory() {
    let (tx, frames) = sink(1, GsoType::default(), 1514);
    let spec = "gen:,proto=tcp,size=1514,count=2000";
    let (came, _) = run(300, generator(spec, true), tx, DropReason::NoBuffers);
    assert_eq!((came, frames.lock().unwrap().len()), (2000, 2000));
}

#[test]
fn a_device_gets_the_super_packets_that_it_takes() {
    let spec = "gen:,proto=tcp,size=1514,count=640";
    let (tx, frames) = sink(64, GsoType(u32::MAX), 1514);
    run(4096, generator(spec, true), tx, DropReason::TooBig);
    let frames = frames.lock().unwrap();
    assert!(frames.len() < 30, "{} packets", frames.len());
}

/// BL-22: a segment's size counts, not that of the whole.
#[test]
fn bl_22_what_no_segment_of_fits_is_dropped_once() {
    let spec = "gen:,proto=tcp,size=1514,count=640";
    let (tx, frames) = sink(64, GsoType::default(), 1513);
    let (came, too_big) = run(4096, generator(spec, true), tx, DropReason::TooBig);
    assert_eq!((came, too_big, frames.lock().unwrap().len()), (640, 640, 0));
}

#[test]
fn every_mode_accounts_for_every_frame() {
    use Mode::{Csum, Echo, FiveTupleSwap, Io, Mac, MacSwap, RxOnly};
    for mode in [Io, Mac, MacSwap, FiveTupleSwap, RxOnly, Csum, Echo] {
        let memory = Memory::new(4096, None).unwrap();
        let ctx = Ctx::new(memory.seat(Role::Worker)).unwrap();
        let rx = generator("gen:,proto=tcp,size=100..1514,count=1000,flows=3", true);
        let (tx, frames) = sink(64, GsoType::default(), 1514);
        let mut worker = Worker::new(ctx, vec![rx, tx], Forward::new(mode, &[1, 0]));
        while !worker.round(0).unwrap().ended {}
        let account = worker.account();
        assert_eq!((account.rx_frames, account.missing()), (1000, 0), "{mode:?}");
        let sent = if matches!(mode, RxOnly | Echo) { 0 } else { 1000 };
        assert_eq!(account.tx_frames, sent, "{mode:?}");
        for frame in frames.lock().unwrap().iter() {
            check(frame, mode);
        }
    }
}

/// Checksums verify, and addresses are where the mode puts them.
fn check(frame: &[u8], mode: Mode) {
    let packet = etherparse::PacketHeaders::from_ethernet_slice(frame).unwrap();
    let Some(etherparse::NetHeaders::Ipv4(ip, _)) = packet.net else { panic!("not IPv4") };
    let Some(etherparse::TransportHeader::Tcp(tcp)) = packet.transport else { panic!("not TCP") };
    assert_eq!(ip.header_checksum, ip.calc_header_checksum());
    assert_eq!(tcp.checksum, tcp.calc_checksum_ipv4(&ip, packet.payload.slice()).unwrap());
    let link = packet.link.and_then(|link| link.ethernet2()).unwrap();
    let (there, back) = ([2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1]);
    let (destination, port) = match mode {
        Mode::Mac => ([2, 0, 0, 0, 0, 1], 5001),
        Mode::MacSwap => (back, 5001),
        Mode::FiveTupleSwap => (back, tcp.destination_port),
        _ => (there, 5001),
    };
    assert_eq!((link.destination, tcp.destination_port), (destination, port), "{mode:?}");
    assert_eq!(mode == Mode::FiveTupleSwap, tcp.source_port == 5001);
}

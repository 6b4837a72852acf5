//! A capture as a device: what it says of frames, and where its memory is.

use std::collections::VecDeque;

use grilse_dev::pcap::{Format, Interface, Packet as Written, Reader, Resolution, Writer};
use grilse_dev::{Device, Fault, Offloads, OnWire, Replay, ReplayPool, RxCsum};
use grilse_mem::Role;
use grilse_packet::{Batch, Ctx, Memory, Skb};
use grilse_wire::build::{Eth, Ipv4, Tcp, frame, payload};
use grilse_wire::dissect::dissect;
use grilse_wire::{Csum, VlanTag, toeplitz};

const TAG: VlanTag = VlanTag { tpid: 0x8100, tci: 0x6005 };

/// A capture of one interface for each link type, with these frames of these interfaces.
fn capture(links: &[u16], frames: &[(u32, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, Format::Pcapng);
    for &link in links {
        writer.interface(&Interface::new(link, Resolution::NANO));
    }
    for &(interface, data) in frames {
        let orig_len = data.len() as u32;
        let direction = None;
        let packet =
            Written { interface, ticks: 7, orig_len, direction, data: &[data], comments: &[] };
        writer.write(&packet).expect("a vector takes everything");
    }
    writer.finish().expect("a vector takes everything");
    drop(writer);
    bytes
}

fn segment(tags: &[VlanTag], len: usize) -> Vec<u8> {
    frame(Eth { tags, ..Eth::default() }, Ipv4::default(), Tcp::default(), &payload(0, len))
}

fn ctx() -> (&'static Memory, Ctx) {
    let memory = Memory::new(4096, None).expect("memory for packets");
    (memory, Ctx::new(memory.seat(Role::Worker)).expect("the first seat"))
}

/// Polls to the end and checks that frames come out in order with their own bytes; returns how many
/// polls brought less than was there because memory was short.
fn receive_all(ctx: &mut Ctx, device: &mut dyn Device, mut due: VecDeque<&[u8]>) -> usize {
    let (mut batch, mut short) = (Batch::new(), 0);
    loop {
        ctx.begin(0);
        let received = device.rx(ctx, &mut batch, 64).expect("a whole capture");
        short += usize::from(!received.ended && received.taken < 64);
        while let Some(skb) = batch.pop() {
            assert_eq!(bytes(&skb), due.pop_front().expect("no more than went in"));
            ctx.consume(skb);
        }
        ctx.end();
        if received.ended {
            assert!(due.is_empty(), "{} frames did not come", due.len());
            return short;
        }
    }
}

fn bytes(skb: &Skb) -> Vec<u8> {
    OnWire::new(skb).pieces().flatten().copied().collect()
}

#[test]
fn offloads_say_what_a_nic_says() {
    let (_, mut ctx) = ctx();
    for tags in [&[][..], &[TAG], &[TAG, TAG]] {
        let sent = segment(tags, 100);
        let file = capture(&[1], &[(0, &sent)]);
        for (csum, vlan) in [
            (RxCsum::None, true),
            (RxCsum::None, false),
            (RxCsum::Valid, true),
            (RxCsum::Partial, true),
            (RxCsum::Partial, false),
        ] {
            let reader = Reader::new(&file[..]).expect("a capture");
            let offloads = Offloads { hash: true, csum, vlan };
            let mut device = Replay::new("t", reader, offloads).expect("memory");
            let mut batch = Batch::new();
            device.rx(&mut ctx, &mut batch, 1).expect("one frame");
            let skb = batch.pop().expect("one frame");
            let meta = *skb.meta();
            let stripped = vlan && !tags.is_empty();
            assert_eq!(meta.vlan, stripped.then_some(TAG));
            assert_eq!(skb.len(), sent.len() - if stripped { 4 } else { 0 });
            assert_eq!(bytes(&skb), sent, "the tag is back in its place");
            // The hash is of the flow, wherever its headers stand.
            let linear = skb.linear();
            let flow = dissect(linear, meta.network.into(), meta.protocol).expect("IPv4");
            assert_eq!(meta.hash, flow.hash(&toeplitz::MICROSOFT));
            let transport = flow.transport.expect("TCP") as u16;
            let expected = match csum {
                RxCsum::None => Csum::None,
                RxCsum::Valid => Csum::Unnecessary { level: 0 },
                RxCsum::Partial => Csum::Partial { start: transport, offset: 16 },
            };
            assert_eq!(meta.csum, expected, "{tags:?} {vlan}");
            ctx.consume(skb);
        }
    }
}

/// Long records wait for frames while those before them are under way; none is lost, and none
/// overtakes.
#[test]
fn records_wait_for_frames_in_order() {
    let (memory, mut ctx) = ctx();
    let long = segment(&[], 10 << 20);
    let short = segment(&[TAG], 100);
    let frames: Vec<&[u8]> =
        (0..24).map(|n| if n % 3 == 0 { &long[..] } else { &short[..] }).collect();
    let numbered: Vec<_> = frames.iter().map(|&frame| (0, frame)).collect();
    let file = capture(&[1], &numbered);
    let pool = ReplayPool::new().expect("memory for frames");
    // A second capture goes on with the same frames.
    for _ in 0..2 {
        let offloads = Offloads { vlan: true, ..Offloads::default() };
        let mut device = Replay::on(&pool, "t", Reader::new(&file[..]).expect("whole"), offloads);
        let waited = receive_all(&mut ctx, &mut device, frames.iter().copied().collect());
        assert!(waited > 0, "the pool is larger than this test thinks");
        let ledger = pool.ledger();
        assert_eq!(ledger.in_use, 0, "{ledger:?}");
        assert_eq!(memory.ledgers().shells.in_use, 0);
    }
    let ledger = pool.ledger();
    assert!(ledger.fresh > 0, "the second capture took fresh frames: {ledger:?}");
}

#[test]
fn fault_comes_behind_the_frames_before_it() {
    let (_, mut ctx) = ctx();
    let sent = segment(&[], 100);
    let file = capture(&[1, 105], &[(0, &sent), (0, &sent), (1, &sent), (0, &sent)]);
    let reader = Reader::new(&file[..]).expect("a capture");
    let mut device = Replay::new("t", reader, Offloads::default()).expect("memory");
    let mut batch = Batch::new();
    let received = device.rx(&mut ctx, &mut batch, 64).expect("two frames come first");
    assert_eq!((received.taken, received.ended, batch.len()), (2, false, 2));
    let fault = device.rx(&mut ctx, &mut batch, 64).expect_err("then the fault");
    assert!(
        matches!(&fault, Fault::LinkType { device, record: 2, link_type: 105 } if device == "t"),
        "{fault:?}"
    );
    while let Some(skb) = batch.pop() {
        ctx.consume(skb);
    }
    ctx.end();
    assert_eq!(device.frames().in_use, 0);
}

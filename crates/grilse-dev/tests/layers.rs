//! Layers that watch: what a capture and a trace say is what passed.

use std::path::PathBuf;
use std::{fs, process};

use grilse_dev::pcap::{Direction, Reader};
use grilse_dev::{Device, Opener, Wanted};
use grilse_mem::Role;
use grilse_packet::{Batch, Ctx, Memory, Skb};
use grilse_wire::{Packet, VlanTag};

fn open(opener: &mut Opener, spec: &str) -> Box<dyn Device> {
    let wanted = Wanted { rx: true, tx: true, queues: 1 };
    opener.open(&spec.parse().expect("a spec"), wanted).expect("it opens").pop().expect("one queue")
}

fn path(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("grilse-layers-{}-{name}", process::id()))
}

fn numbered(ctx: &mut Ctx, number: u8) -> Skb {
    let mut skb = ctx.take().expect("memory");
    skb.put(60).expect("room")[20] = number;
    skb.meta_mut().network = 14;
    skb
}

/// Three packets one way through a cable of two places, and one the other way.
fn pass(spec: &str) {
    let mut opener = Opener::default();
    let (mut near, mut far) = (open(&mut opener, spec), open(&mut opener, "pair:x"));
    let memory = Memory::new(64, None).expect("memory");
    let mut ctx = Ctx::new(memory.seat(Role::Worker)).expect("a seat");
    let mut batch = Batch::new();
    for number in 1..=3 {
        let mut skb = numbered(&mut ctx, number);
        skb.meta_mut().vlan = (number == 2).then_some(VlanTag { tpid: 0x8100, tci: 5 });
        batch.push(skb).expect("room");
    }
    ctx.begin(1_000_000_007);
    assert_eq!(near.tx(&mut ctx, &mut batch).expect("a cable"), 2);
    let refused = batch.pop().expect("no place for the third");
    assert_eq!(refused.front()[20], 3);
    batch.push(numbered(&mut ctx, 4)).expect("room");
    assert_eq!(far.tx(&mut ctx, &mut batch).expect("a cable"), 1);
    assert_eq!(near.rx(&mut ctx, &mut batch, 64).expect("a cable").taken, 1);
    near.finish(&mut ctx).expect("room for a file");
}

#[test]
fn a_capture_has_what_passed_and_which_way() {
    let path = path("both.pcapng");
    pass(&format!("pair:x,ring=2,capture={}", path.display()));
    let file = fs::read(&path).expect("a file");
    let mut reader = Reader::new(&file[..]).expect("a capture");
    let mut records = Vec::new();
    while let Some(record) = reader.next().expect("it is whole") {
        assert_eq!(record.described.name.as_deref(), Some(&b"pair:x"[..]));
        assert!(record.time.ns() > 1_700_000_000_000_000_000, "the system's time");
        // The tag is back in its place.
        let tag = record.data.len() - 60;
        records.push((record.direction, tag, record.data[20 + tag]));
    }
    let (rx, tx) = (Some(Direction::Inbound), Some(Direction::Outbound));
    assert_eq!(records, [(tx, 0, 1), (tx, 4, 2), (rx, 0, 4)]);
    fs::remove_file(path).expect("it is there");
}

#[test]
fn a_trace_has_a_line_for_each() {
    let path = path("trace.txt");
    pass(&format!("pair:x,ring=2,trace={}", path.display()));
    let text = fs::read_to_string(&path).expect("a file");
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], "1.000000007 pair:x tx 60 bytes, ethertype 0x0000");
    assert_eq!(lines[1], "1.000000007 pair:x tx 60 bytes, vlan 5, ethertype 0x0000");
    assert_eq!(lines[2], "1.000000007 pair:x rx 60 bytes, ethertype 0x0000");
    assert_eq!(lines.len(), 3);
    fs::remove_file(path).expect("it is there");
}

#[test]
fn a_flow_is_told() {
    let path = path("flow.txt");
    let spec = format!("gen:,proto=tcp,count=1,trace={}", path.display());
    let mut opener = Opener::default();
    let mut device = open(&mut opener, &spec);
    let memory = Memory::new(64, None).expect("memory");
    let mut ctx = Ctx::new(memory.seat(Role::Worker)).expect("a seat");
    device.rx(&mut ctx, &mut Batch::new(), 64).expect("a generator");
    device.finish(&mut ctx).expect("room for a file");
    let text = fs::read_to_string(&path).expect("a file");
    assert!(text.contains("gen: rx 64 bytes, TCP 10."), "{text}");
    assert!(text.ends_with(":5001, checksum vouched for\n"), "{text}");
    fs::remove_file(path).expect("it is there");
}

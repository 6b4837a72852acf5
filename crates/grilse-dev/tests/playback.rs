//! A capture by name: played as often and as fast as is asked for, and written.

use std::fs;
use std::path::{Path, PathBuf};

use grilse_dev::pcap::{self, FileWriter, Format, Interface, Packet, Reader, Resolution};
use grilse_dev::{Device, Fault, OnWire, OpenError, Opener, Spec, Wanted};
use grilse_mem::Role;
use grilse_packet::{Batch, Ctx, Memory};
use grilse_wire::build::{Eth, Ipv4, Tcp, frame, payload};

const RX: Wanted = Wanted { rx: true, tx: false, queues: 1 };
const TX: Wanted = Wanted { rx: false, tx: true, queues: 1 };

fn open(opener: &mut Opener, spec: &str, wanted: Wanted) -> Result<Box<dyn Device>, OpenError> {
    let spec: Spec = spec.parse()?;
    Ok(opener.open(&spec, wanted)?.pop().expect("one queue"))
}

fn ctx() -> Ctx {
    Ctx::new(Memory::new(4096, None).expect("memory").seat(Role::Worker)).expect("a seat")
}

/// A file of its own for each test, which the test removes.
fn path(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("grilse-playback-{}-{name}", std::process::id()))
}

fn segments(n: usize) -> Vec<Vec<u8>> {
    let segment = |i| frame(Eth::default(), Ipv4::default(), Tcp::default(), &payload(i, 100 + i));
    (0..n).map(segment).collect()
}

/// Writes these frames, `gap_ns` after each other.
fn record(path: &Path, link: u16, frames: &[Vec<u8>], gap_ns: u64) {
    let mut writer = FileWriter::create(path, Format::Pcapng).expect("a file");
    writer.interface(&Interface::new(link, Resolution::NANO));
    for (i, data) in frames.iter().enumerate() {
        let (ticks, orig_len) = (1_000_000 + i as u64 * gap_ns, data.len() as u32);
        let (interface, direction) = (0, None);
        let packet = Packet { interface, ticks, orig_len, direction, data: &[data], comments: &[] };
        writer.write(&packet).expect("room");
    }
}

/// All records of a file: link type, time, bytes.
fn read(path: &Path) -> Vec<(u16, i64, Vec<u8>)> {
    let file = fs::read(path).expect("a file");
    let mut reader = Reader::new(&file[..]).expect("a capture");
    let mut records = Vec::new();
    while let Some(record) = reader.next().expect("whole") {
        records.push((record.described.link_type, record.time.ns(), record.data.to_vec()));
    }
    records
}

/// Polls to the end, a millisecond a poll; returns frames with the times of the polls.
fn play(device: &mut dyn Device, poll_ns: u64) -> Vec<(u64, Vec<u8>)> {
    let (mut ctx, mut batch, mut came) = (ctx(), Batch::new(), Vec::new());
    for poll in 0..100_000 {
        ctx.begin(poll * poll_ns);
        let received = device.rx(&mut ctx, &mut batch, 64).expect("a whole capture");
        assert_eq!(received.taken, batch.len());
        while let Some(skb) = batch.pop() {
            assert_eq!(skb.meta().seq, came.len() as u64, "numbers go on");
            came.push((ctx.now_ns, OnWire::new(&skb).pieces().flatten().copied().collect()));
            ctx.consume(skb);
        }
        ctx.end();
        if received.ended {
            return came;
        }
    }
    panic!("it comes to no end");
}

#[test]
fn loops_yield_all_again() {
    let (path, frames) = (path("loop.pcapng"), segments(70));
    record(&path, 1, &frames, 1000);
    for (options, turns) in [("", 1), (",loop=1", 1), (",loop=3,speed=max", 3)] {
        let spec = format!("pcap:{}{options}", path.display());
        let mut device = open(&mut Opener::default(), &spec, RX).expect("it opens");
        let came: Vec<_> = play(&mut *device, 0).into_iter().map(|(_, frame)| frame).collect();
        assert!(came == vec![frames.clone(); turns].concat(), "{options}: {} frames", came.len());
        assert_eq!(device.counters().rx_packets, 70 * turns as u64);
    }
    // A file without records ends, even where it is to be played without end.
    record(&path, 1, &[], 0);
    let spec = format!("pcap:{},loop=0", path.display());
    assert!(play(&mut *open(&mut Opener::default(), &spec, RX).expect("it opens"), 0).is_empty());
    fs::remove_file(path).expect("it is there");
}

#[test]
fn real_speed_is_that_of_the_file() {
    const GAP_NS: u64 = 10_000_000;
    const POLL_NS: u64 = 1_000_000;
    let (path, frames) = (path("real.pcapng"), segments(5));
    record(&path, 1, &frames, GAP_NS);
    let spec = format!("pcap:{},speed=real,loop=2", path.display());
    let mut device = open(&mut Opener::default(), &spec, RX).expect("it opens");
    let came = play(&mut *device, POLL_NS);
    // The second turn begins with the end of the first, which takes a poll to find.
    let mut due = [0, 1, 2, 3, 4, 4, 5, 6, 7, 8].map(|gaps| gaps * GAP_NS);
    due[5] += POLL_NS;
    assert_eq!(came.iter().map(|(ns, _)| *ns).collect::<Vec<_>>(), due);
    fs::remove_file(path).expect("it is there");
}

#[test]
fn a_device_that_is_early_says_when_it_is_due() {
    let (path, frames) = (path("due.pcapng"), segments(2));
    record(&path, 1, &frames, 5_000_000);
    let spec = format!("pcap:{},speed=real", path.display());
    let mut device = open(&mut Opener::default(), &spec, RX).expect("it opens");
    let (mut ctx, mut batch) = (ctx(), Batch::new());
    ctx.begin(7);
    assert_eq!(device.rx(&mut ctx, &mut batch, 64).expect("a capture").taken, 1);
    assert_eq!(device.due_ns(), Some(5_000_007));
    fs::remove_file(path).expect("it is there");
}

#[test]
fn what_is_sent_is_written_with_its_link_type_and_time() {
    let (from, to) = (path("from.pcapng"), path("to.pcapng"));
    for (link, strip) in [(1, 0), (101, 14)] {
        let frames: Vec<_> =
            segments(100).iter().map(|frame: &Vec<u8>| frame[strip..].to_vec()).collect();
        record(&from, link, &frames, 1000);
        let mut opener = Opener::default();
        let mut rx = open(&mut opener, &format!("pcap:{}", from.display()), RX).expect("it opens");
        let mut tx = open(&mut opener, &format!("pcap:{}", to.display()), TX).expect("it opens");
        let (mut ctx, mut batch) = (ctx(), Batch::new());
        let mut ended = false;
        while !ended {
            ended = rx.rx(&mut ctx, &mut batch, 64).expect("a capture").ended;
            tx.tx(&mut ctx, &mut batch).expect("room");
            assert!(batch.is_empty());
        }
        tx.finish(&mut ctx).expect("room");
        assert!(read(&from) == read(&to), "link type {link}");
    }
    fs::remove_file(from).expect("it is there");
    fs::remove_file(to).expect("it is there");
}

#[test]
fn what_cannot_be_is_refused() {
    let path = path("refused.pcapng");
    record(&path, 1, &segments(1), 0);
    let here = path.display();
    let refused = |opener: &mut Opener, spec: &str, wanted| {
        open(opener, spec, wanted).err().map(|error| error.to_string()).unwrap_or_default()
    };
    let mut opener = Opener::default();
    assert!(refused(&mut opener, "pcap:", RX).contains("needs the name of a file"));
    let both = Wanted { rx: true, tx: true, queues: 1 };
    assert!(refused(&mut opener, "pcap:x.pcap", both).contains("name two files"));
    let two = Wanted { queues: 2, ..RX };
    assert!(refused(&mut opener, &format!("pcap:{here}"), two).contains("one queue"));
    assert!(refused(&mut opener, "pcap:x.txt", TX).contains("no suffix"));
    assert!(refused(&mut opener, "pcap:x.pcap,loop=2", TX).contains("loop is for what is read"));
    assert!(refused(&mut opener, &format!("pcap:{here},lop=2"), RX).contains("\"loop\""));
    let missing = open(&mut opener, "pcap:not-there.pcap", RX).err();
    let io = |fault: &Fault| matches!(fault, Fault::Read { source: pcap::Error::Io(_), .. });
    assert!(matches!(missing, Some(OpenError::Fault(fault)) if io(&fault)));
    let _reads = open(&mut opener, &format!("pcap:{here}"), RX).expect("it opens");
    assert!(refused(&mut opener, &format!("pcap:{here}"), TX).contains("in use"));
    assert_eq!(read(&path).len(), 1, "the file is whole");
    fs::remove_file(path).expect("it is there");
}

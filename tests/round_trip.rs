//! Law, round trip: what `gso` cuts is what `gro` coalesced. Under `exact` nothing is lost: bytes,
//! lengths, times, interfaces, comments and order; under `kernel-6.18` what the kernel itself loses.

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use grilse::wire::build::{Check, Eth, Ipv4, Tcp, Udp, frame as build, payload};
use grilse::wire::csum;

use support::pcap::{self, Interface, Record};
use support::traffic::{Extensions, Scope, group};
use support::tunnel::VXLAN_PORT;
use support::{Rng, Scratch, captures, frame, grilse, number, oracle};

const BATCHES: [&str; 3] = ["1", "8", "64"];

/// Runs a command on `files` with `-o`, and returns what it wrote.
fn run(command: &str, files: &[&Path], options: &[&str], out: &Path) -> Vec<u8> {
    let args: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
    let out_arg = out.display().to_string();
    let args = [command].into_iter().chain(args.iter().map(String::as_str));
    let args: Vec<_> = args.chain(options.iter().copied()).chain(["-o", &out_arg]).collect();
    let run = grilse(&args);
    run.ended(&args.join(" "), &[0]);
    assert_eq!(run.stderr, "", "{args:?}");
    fs::read(out).expect("-o wrote its file")
}

/// There and back.
fn back(scratch: &Scratch, file: &Path, options: &[&str], suffix: &str) -> Vec<u8> {
    let coalesced = scratch.path("coalesced.pcapng");
    run("gro", &[file], options, &coalesced);
    run("gso", &[&coalesced], &[], &scratch.path("back").with_extension(suffix))
}

/// The captures and cases, each with its options.
fn inputs() -> Vec<(PathBuf, Vec<String>)> {
    let captures = captures().into_iter().map(|path| (path, Vec::new()));
    let cases = oracle::cases().into_iter().map(|case| (case.capture(), case.options()));
    captures.chain(cases).collect()
}

/// What differs between the records, by the offset of the byte; nothing but bytes may.
fn changed_bytes(input: &[Record], output: &[Record], what: &str) -> Vec<(usize, Vec<usize>)> {
    assert_eq!(input.len(), output.len(), "{what}: frames");
    let mut changed = Vec::new();
    for (at, (input, output)) in input.iter().zip(output).enumerate() {
        let (theirs, ours) = (&input.data, &output.data);
        assert_eq!(theirs.len(), ours.len(), "{what}: length of frame {at}");
        let bytes =
            theirs.iter().zip(ours).enumerate().filter(|(_, (theirs, ours))| theirs != ours);
        let bytes: Vec<usize> = bytes.map(|(at, _)| at).collect();
        assert_eq!(Record { data: ours.clone(), ..input.clone() }, *output, "{what}: frame {at}");
        if !bytes.is_empty() {
            changed.push((at, bytes));
        }
    }
    changed
}

#[test]
fn exact_loses_nothing() {
    let scratch = Scratch::new();
    for (path, options) in inputs() {
        let input = fs::read(&path).expect("committed");
        for batch in BATCHES {
            for hash in [&[][..], &["--no-hash"]] {
                let options = options.iter().map(String::as_str);
                let options: Vec<_> = options
                    .chain(["--profile", "exact", "--batch", batch])
                    .chain(hash.iter().copied())
                    .collect();
                let output = back(&scratch, &path, &options, "pcap");
                let what = format!("{} {options:?}", path.display());
                let (input, output) = (&input[24..], &output[24..]);
                assert_eq!(input.len(), output.len(), "{what}");
                let first = input.iter().zip(output).position(|(input, output)| input != output);
                assert_eq!(first, None, "{what}: the first byte that differs");
            }
        }
    }
}

/// The recorded cases of which the kernel loses something, and which bytes.
const LOST: [(&str, Range<usize>); 1] = [
    // The GRE checksum of a short last packet is that of the others.
    ("tunnel-gre-csum", 38..40),
];

/// The order comes back also of those that overtook.
#[test]
fn recorded_cases_come_back_under_the_kernels_rules() {
    let scratch = Scratch::new();
    for (path, options) in inputs() {
        let input = pcap::classic_records(&fs::read(&path).expect("committed"));
        let name = path.file_stem().and_then(|name| name.to_str()).expect("ASCII");
        let known = LOST.iter().find(|(case, _)| *case == name).map(|(_, lost)| lost);
        let mut lost = 0;
        for batch in BATCHES {
            let options = options.iter().map(String::as_str).chain(["--batch", batch]);
            let output = back(&scratch, &path, &options.collect::<Vec<_>>(), "pcap");
            for (at, bytes) in changed_bytes(&input, &pcap::classic_records(&output), name) {
                let listed = |byte| known.is_some_and(|range| range.contains(byte));
                assert!(bytes.iter().all(listed), "{name}: frame {at}: {bytes:?}");
                lost += 1;
            }
        }
        assert_eq!(lost > 0, known.is_some(), "{name}");
    }
}

/// Fields of IPv4 and TCP in an Ethernet frame without tags and options.
const FIELDS: [(&str, Range<usize>); 4] = [
    ("identification", 18..20),
    ("header checksum", 24..26),
    ("TCP checksum", 50..52),
    ("urgent pointer", 52..54),
];

/// Three frames of one flow.
type Three = [Vec<u8>; 3];

/// The kernel's whitelist: flows, and the fields that it loses of them.
fn lossy() -> [(&'static str, Three, &'static [&'static str]); 4] {
    let tcp = |n: usize| Tcp { seq: 100 * n as u32, ..Tcp::default() };
    let ip = |n: usize| Ipv4 { id: 7 + n as u16, ..Ipv4::default() };
    let data = |n: usize| payload(100 * n, 100);
    let other_form = |n| if n == 1 { Check::Exactly(0xffff) } else { Check::Right };
    let word = |frame: &[u8], at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
    let udp =
        |n| build(Eth::default(), Ipv4 { id: 7, ..Ipv4::default() }, Udp::default(), &data(n));
    let urgent = |n| build(Eth::default(), ip(n), Tcp { urgent: n as u16, ..tcp(n) }, &data(n));
    // A checksum becomes 0 where one of the words under it takes it up.
    let zero_id = {
        let plain = build(Eth::default(), ip(0), tcp(0), &data(0));
        csum::fold(csum::add(7, word(&plain, 24).into()))
    };
    let ip_form = |n| {
        let ip = Ipv4 { id: zero_id + n as u16 - 1, check: other_form(n), ..Ipv4::default() };
        build(Eth::default(), ip, tcp(n), &data(n))
    };
    let tcp_form = |n| {
        let (plain, mut data) = (build(Eth::default(), ip(n), tcp(n), &data(n)), data(n));
        let taken = csum::fold(csum::add(word(&data, 0).into(), word(&plain, 50).into()));
        data[..2].copy_from_slice(&taken.to_be_bytes());
        build(Eth::default(), ip(n), Tcp { check: other_form(n), ..tcp(n) }, &data)
    };
    [
        ("UDP of one identification", [0, 1, 2].map(udp), &["header checksum", "identification"]),
        ("urgent pointers", [0, 1, 2].map(urgent), &["TCP checksum", "urgent pointer"]),
        ("the other form of 0 in IPv4", [0, 1, 2].map(ip_form), &["header checksum"]),
        ("the other form of 0 in TCP", [0, 1, 2].map(tcp_form), &["TCP checksum"]),
    ]
}

#[test]
fn the_kernel_loses_its_whitelist_and_exact_does_not() {
    let scratch = Scratch::new();
    for (what, flow, fields) in lossy() {
        let bytes = pcap::write(&flow);
        let (file, input) = (scratch.file("flow.pcap", &bytes), pcap::classic_records(&bytes));
        let output = back(&scratch, &file, &["--udp-fwd"], "pcap");
        let packets = pcap::read_records(&fs::read(scratch.path("coalesced.pcapng")).unwrap()).1;
        assert_eq!(packets.len(), 1, "{what}: they merge");
        let mut lost = BTreeSet::new();
        for (at, bytes) in changed_bytes(&input, &pcap::classic_records(&output), what) {
            for byte in bytes {
                let field = FIELDS.iter().find(|(_, range)| range.contains(&byte));
                lost.insert(field.unwrap_or_else(|| panic!("{what}: byte {byte} of {at}")).0);
            }
        }
        assert_eq!(lost.into_iter().collect::<Vec<_>>(), fields, "{what}");
        let output = back(&scratch, &file, &["--udp-fwd", "--profile", "exact"], "pcap");
        assert_eq!(changed_bytes(&input, &pcap::classic_records(&output), what), [], "{what}");
    }
}

/// A capture of several interfaces, whose times have any resolution, with comments, and with frames
/// that were cut or that somebody miscounted.
fn rich(tunnelled: usize, rng: &mut Rng) -> (Vec<Interface>, Vec<Record>) {
    let interface = |n: usize, rng: &mut Rng| Interface {
        link: 1,
        tsresol: rng.pick(&[6, 6, 9, 3, 0, 12, 0x80 | 20]),
        offset_s: rng.pick(&[0, 0, 3600, -5]),
        name: format!("port{n}").into_bytes(),
    };
    let interfaces: Vec<_> = (0..4).map(|n| interface(n, rng)).collect();
    let scope = Scope {
        frames: 40,
        udp: 30,
        tunnelled,
        over_v6: true,
        tagged: 30,
        bulk: false,
        extensions: Extensions::Any,
        longest: 9000,
    };
    let mut records = Vec::new();
    let mut ticks = 1_796_000_000_000_000;
    for _ in 0..8 {
        let used = rng.pick(&[&[0][..], &[3], &[0, 2], &[0, 1, 2, 3]]);
        for mut data in group(&scope, rng) {
            ticks += rng.pick(&[0, 0, 1, 12, 1 << 33]);
            let mut orig_len = data.len() as u32;
            if rng.chance(5) {
                data.truncate(14 + rng.below(data.len().max(15) - 14));
            }
            if rng.chance(5) {
                orig_len = rng.pick(&[orig_len + 4, orig_len.saturating_sub(1), 0]);
            }
            let comment = |n: usize| format!("note {n} of {ticks}").into_bytes();
            let comments = (0..rng.pick(&[0, 0, 0, 1, 3])).map(comment).collect();
            let interface = rng.pick(used);
            records.push(Record { interface, ticks, orig_len, data, comments });
        }
    }
    // No device takes such frames, so none is there to come back.
    records.retain(|record| record.data.len() >= 14);
    (interfaces, records)
}

#[test]
fn interfaces_times_lengths_and_comments_come_back() {
    let scratch = Scratch::new();
    let mut rng = Rng(4);
    let mut merged = 0;
    for round in 0..80 {
        let (interfaces, records) = rich(20, &mut rng);
        let file = scratch.file("rich.pcapng", &pcap::write_records(&interfaces, &records));
        let more: &[&str] = rng.pick(&[&[], &["--udp-fwd"], &["--gro-list"], &["--vlan", "sw"]]);
        let port = VXLAN_PORT.to_string();
        let options = ["--profile", "exact", "--batch", rng.pick(&BATCHES), "--vxlan-port", &port];
        let options = [&options, more].concat();
        let output = back(&scratch, &file, &options, "pcapng");
        let coalesced = fs::read(scratch.path("coalesced.pcapng")).expect("just written");
        merged += records.len() - pcap::read_records(&coalesced).1.len();
        let (known, output) = pcap::read_records(&output);
        let what = format!("round {round}, {options:?}");
        assert_eq!(known, interfaces[..known.len()], "{what}");
        assert_eq!(changed_bytes(&records, &output, &what), [], "{what}");
    }
    assert!(merged > 500, "only {merged} frames merged: nothing was tried");
}

/// Under the kernel's rules random traffic comes back too, but for the whitelist.
#[test]
fn random_traffic_comes_back_under_the_kernels_rules() {
    let scratch = Scratch::new();
    let mut rng = Rng(7);
    let mut changed = 0;
    for round in 0..40 {
        let (interfaces, records) = rich(0, &mut rng);
        let file = scratch.file("rich.pcapng", &pcap::write_records(&interfaces, &records));
        let more: &[&str] = rng.pick(&[&[], &["--udp-fwd"], &["--gro-list"], &["--vlan", "sw"]]);
        let output = back(&scratch, &file, more, "pcapng");
        let what = format!("round {round}, {more:?}");
        for (at, bytes) in changed_bytes(&records, &pcap::read_records(&output).1, &what) {
            let listed = whitelisted(&records[at].data);
            let other = bytes.iter().find(|byte| !listed.contains(byte));
            assert_eq!(other, None, "{what}: byte of frame {at}, {listed:?}");
            changed += 1;
        }
    }
    assert!(changed > 0, "nothing of the whitelist was tried");
}

/// The bytes of a frame that the kernel may lose, wherever its headers are.
fn whitelisted(frame: &[u8]) -> Vec<usize> {
    let frame::Dissected { transport, headers, .. } =
        frame::dissect(frame).expect("only TCP and UDP merge");
    let v4 = transport.checked_sub(20).filter(|ip| frame[*ip] == 0x45);
    let ip = v4.into_iter().flat_map(|ip| [ip + 4, ip + 5, ip + 10, ip + 11]);
    let tcp = if headers > transport + 8 { transport + 16..transport + 20 } else { 0..0 };
    // Of an ethertype that says 6 and a version that does not, the kernel believes the latter when it
    // compares, and so looks for an IPv4 TTL where addresses are (__gro_receive_network_flush).
    let neither = transport
        .checked_sub(40)
        .filter(|ip| frame[*ip - 2..*ip] == [0x86, 0xdd] && frame[*ip] >> 4 != 6);
    ip.chain(tcp).chain(neither.map(|ip| ip + 7)).collect()
}

/// The order comes back also where the kernel let packets overtake.
#[test]
fn several_captures_become_one_and_come_back() {
    let scratch = Scratch::new();
    let mut rng = Rng(5);
    let (first, second) = (rich(0, &mut rng), rich(20, &mut rng));
    let files =
        [("a.pcapng", &first), ("b.pcapng", &second)].map(|(name, (interfaces, records))| {
            scratch.file(name, &pcap::write_records(interfaces, records))
        });
    let both = scratch.path("both.pcapng");
    run("gro", &[&files[0], &files[1]], &["--profile", "exact"], &both);
    let output = run("gso", &[&both], &[], &scratch.path("back.pcapng"));
    let (interfaces, output) = pcap::read_records(&output);
    let shift = interfaces.len().min(first.0.len()) as u32;
    let moved = second.1.iter().map(|record| {
        let interface = record.interface + shift;
        Record { interface, ..record.clone() }
    });
    let all: Vec<_> = first.1.iter().cloned().chain(moved).collect();
    assert_eq!(changed_bytes(&all, &output, "both"), []);
}

/// Each time, `gso` undoes the last `gro`.
#[test]
fn coalesced_twice_is_cut_twice() {
    let scratch = Scratch::new();
    let (interfaces, records) = rich(0, &mut Rng(6));
    let paths = ["0", "1", "2", "3", "4"].map(|name| scratch.path(name).with_extension("pcapng"));
    fs::write(&paths[0], pcap::write_records(&interfaces, &records)).expect("a writable folder");
    run("gro", &[&paths[0]], &["--profile", "exact", "--batch", "8"], &paths[1]);
    run("gro", &[&paths[1]], &["--profile", "exact"], &paths[2]);
    let once = run("gso", &[&paths[2]], &[], &paths[3]);
    assert_eq!(once, fs::read(&paths[1]).expect("just written"));
    let twice = run("gso", &[&paths[3]], &[], &paths[4]);
    assert_eq!(changed_bytes(&records, &pcap::read_records(&twice).1, "twice"), []);
}

/// People write comments on super-packets, and they stay.
#[test]
fn comments_on_super_packets_go_with_their_first_frame() {
    let scratch = Scratch::new();
    let flow: Vec<_> = (0..6).map(|i| frame::tcp4(4000, 1 + i * 46, 100)).collect();
    let record = |(n, data): (usize, Vec<u8>)| Record {
        interface: 0,
        ticks: n as u64,
        orig_len: 100,
        data,
        comments: vec![format!("frame {n}").into_bytes()],
    };
    let interfaces = [Interface { link: 1, tsresol: 6, ..Interface::default() }];
    let records: Vec<_> = flow.into_iter().enumerate().map(record).collect();
    let file = scratch.file("flow.pcapng", &pcap::write_records(&interfaces, &records));
    let coalesced = run("gro", &[&file], &[], &scratch.path("one.pcapng"));
    let (_, mut packets) = pcap::read_records(&coalesced);
    assert_eq!(packets.len(), 1);
    packets[0].comments.push(b"look here".to_vec());
    let file = scratch.file("noted.pcapng", &pcap::write_records(&interfaces, &packets));
    let (_, output) = pcap::read_records(&run("gso", &[&file], &[], &scratch.path("x.pcapng")));
    assert_eq!(output[0].comments, [b"look here".to_vec(), b"frame 0".to_vec()]);
    assert_eq!(output[1..], records[1..]);
}

/// Without comments, as a host with GRO on captures: all but identifications and times come back.
#[test]
fn packets_longer_than_the_mtu_are_cut_to_wire_size() {
    let scratch = Scratch::new();
    let flow: Vec<_> = (0..20).map(|i| frame::tcp4(4000, 1 + i * 1460, 1514)).collect();
    let file = scratch.file("flow.pcap", &pcap::write(&flow));
    let host = scratch.path("host.pcap");
    let captured = pcap::read(&run("gro", &[&file], &[], &host));
    assert_eq!(captured.len(), 1);
    let wire = pcap::read(&run("gso", &[&host], &[], &scratch.path("wire.pcap")));
    let without_id = |frame: &Vec<u8>| {
        let (mut frame, id) = (frame.clone(), frame[18..20].to_vec());
        assert_eq!(frame::sum(&[&frame[14..34]]), 0xffff);
        frame[18..20].fill(0);
        frame[24..26].fill(0);
        (frame, u16::from_be_bytes([id[0], id[1]]))
    };
    let want = flow.iter().map(without_id).enumerate().map(|(id, (f, _))| (f, id as u16));
    assert_eq!(wire.iter().map(without_id).collect::<Vec<_>>(), want.collect::<Vec<_>>());
    // What fits is left alone, even with the sum of the pseudo-header for a checksum.
    let whole = run("gso", &[&host], &["--mtu", "65535"], &scratch.path("whole.pcap"));
    assert_eq!(pcap::read(&whole), captured);
}

#[test]
fn lines_tell_where_each_frame_came_from() {
    let scratch = Scratch::new();
    let input = support::root().join("captures/tcp4-bulk-16flows.pcap");
    let coalesced = scratch.path("coalesced.pcapng");
    run("gro", &[&input], &["--profile", "exact"], &coalesced);
    let json = grilse([Path::new("gso"), &coalesced, Path::new("--json"), Path::new("-")]);
    json.ended("gso --json", &[0]);
    let frames = pcap::read(&fs::read(&input).expect("committed"));
    let packets = pcap::read_records(&fs::read(&coalesced).expect("just written")).1;
    let mut made = vec![0; packets.len()];
    let lines = json.lines();
    assert_eq!(lines.len(), frames.len());
    for (seq, (line, bytes)) in lines.iter().zip(&frames).enumerate() {
        assert_eq!(line["sha256"], frame::sha256(bytes), "{line}");
        assert_eq!((number(line, "seq"), number(line, "frame")), (seq, seq), "{line}");
        let made = &mut made[number(line, "from")];
        assert_eq!(number(line, "segment"), *made, "{line}");
        *made += 1;
        assert!(*made <= number(line, "segs"), "{line}");
    }
    assert!(made.iter().all(|made| *made > 0) && made.iter().any(|made| *made > 1));
    let report = grilse([Path::new("gso"), &coalesced]);
    let total = format!("{} packets in, {} frames out", packets.len(), frames.len());
    assert!(String::from_utf8_lossy(&report.stdout).contains(&total), "{report:?}");
}

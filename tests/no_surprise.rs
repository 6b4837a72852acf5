//! Law, no surprise: no file, frame, option or full disk makes the program panic or hang. It says
//! what is wrong, where, and what to do, ends with the code that the manual names, and what it had
//! written by then is whole.

mod support;

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use support::pcap::{self, Magic};
use support::{
    GRILSE, Rng, Run, Scratch, frame, grilse, is_refused, json_lines, members, number, root, run,
    wait,
};

/// Done, named drops included.
const DONE: i32 = 0;
/// The input was damaged; its readable part was processed.
const DAMAGED: i32 = 1;
/// Wrong usage, or not a capture at all.
const USAGE: i32 = 2;
/// The system refused, or the disk is full.
const SYSTEM: i32 = 3;

/// Six whole segments of one flow, which merge.
fn flow() -> Vec<Vec<u8>> {
    (0..6).map(|i| frame::tcp4(4000, 1 + i * 46, 100)).collect()
}

fn gro(file: &Path) -> Run {
    grilse([Path::new("gro"), file, Path::new("--json"), Path::new("-")])
}

/// Fails unless the complaint names `name` and tells the reader what to do: the mend is an
/// imperative, so one of these verbs stands in it.
fn complains(run: &Run, name: &str) {
    const VERBS: [&str; 22] = [
        "try", "use", "give", "check", "free", "remove", "record", "run", "pass", "choose", "make",
        "convert", "write", "copy", "capture", "name", "see", "pick", "leave", "fix", "create",
        "raise",
    ];
    assert!(run.stderr.contains(name), "{name} is not named: {}", run.stderr);
    let lower = run.stderr.to_lowercase();
    let mut words = lower.split(|c: char| !c.is_ascii_alphabetic());
    assert!(words.any(|word| VERBS.contains(&word)), "no mend: {}", run.stderr);
}

/// The frames that the lines stand for, sorted.
fn inputs(lines: &[Value]) -> Vec<usize> {
    let delivered = lines.iter().filter(|line| !is_refused(line));
    let mut inputs: Vec<usize> = delivered.flat_map(members).collect();
    inputs.sort_unstable();
    inputs
}

/// The hashes of delivered packets, in order.
fn hashes(lines: &[Value]) -> Vec<&str> {
    lines.iter().filter_map(|line| line["sha256"].as_str()).collect()
}

#[test]
fn what_is_no_capture_is_refused() {
    let scratch = Scratch::new();
    let mut rng = Rng(1);
    let noise: Vec<u8> = (0..4096).map(|_| rng.next() as u8).collect();
    let files: [(&str, &[u8]); 6] = [
        ("empty.pcap", b""),
        ("one-byte.pcap", b"\xd4"),
        ("text.pcap", b"this is a text file, and a rather long one for its kind\n"),
        ("zeros.pcapng", &[0; 4096]),
        ("noise.pcap", &noise),
        ("gzip.pcap", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x03\x00\x00\x00\x00\x00"),
    ];
    for (name, bytes) in files {
        let run = gro(&scratch.file(name, bytes));
        run.ended(name, &[USAGE]);
        assert!(run.stdout.is_empty(), "{name}: {run:?}");
        complains(&run, name);
    }
}

#[test]
fn directory_is_refused() {
    let scratch = Scratch::new();
    let folder = scratch.path("folder.pcap");
    fs::create_dir(&folder).expect("a writable folder");
    let run = gro(&folder);
    run.ended("a directory", &[USAGE]);
    complains(&run, "folder.pcap");
}

#[test]
fn missing_file_is_the_systems_refusal() {
    let run = gro(Path::new("no-such-file.pcap"));
    run.ended("a missing file", &[SYSTEM]);
    complains(&run, "no-such-file.pcap");
}

#[test]
fn wrong_usage_ends_with_two() {
    let scratch = Scratch::new();
    let file = scratch.file("good.pcap", &pcap::write(&flow())).display().to_string();
    let wrong = [
        "--frobnicate",
        "--profile=nonsense",
        "--profile=kernel-6.8",
        "--vxlan-port=0",
        "--geneve-port=65536",
        "--vlan=maybe",
        "--rx-csum=perhaps",
        "--batch=0",
        "--batch=-1",
        "--batch=many",
        "--gro-max-size=lots",
        "--gro-max-size=524281",
        "--gro-ipv4-max-size=524281",
        "--udp-gro-port=65536",
    ];
    for option in wrong {
        let run = grilse(["gro", &file, "--json", "-", option]);
        run.ended(option, &[USAGE]);
        assert!(run.stdout.is_empty(), "{option}: packets before the complaint");
        let name = option.split('=').next().expect("a split has a first part");
        assert!(run.stderr.contains(name), "{option} is not named: {}", run.stderr);
        if option.ends_with("524281") {
            assert!(run.stderr.contains("524280"), "{option}: no range: {}", run.stderr);
        }
    }
    let run = grilse(["gro", &file, "--profile", "relaxd"]);
    run.ended("a misspelt profile", &[USAGE]);
    assert!(run.stderr.contains("'relaxed'"), "no nearest name: {}", run.stderr);
    grilse(["gro"]).ended("no file", &[USAGE]);
    grilse(["frobnicate"]).ended("no such command", &[USAGE]);
}

#[test]
fn limits_are_allowed_themselves() {
    let scratch = Scratch::new();
    let file = scratch.file("good.pcap", &pcap::write(&flow())).display().to_string();
    for option in ["--gro-max-size=524280", "--gro-ipv4-max-size=524280", "--batch=1"] {
        let run = grilse(["gro", &file, "--json", "-", option]);
        run.ended(option, &[DONE]);
        assert_eq!(inputs(&run.lines()), [0, 1, 2, 3, 4, 5], "{option}");
    }
    for profile in [
        "kernel-6.9",
        "kernel-6.14",
        "kernel-6.17",
        "kernel-6.18",
        "kernel-7.0",
        "exact",
        "relaxed",
    ] {
        for more in ["--explain", "--no-hash", "--gro-list"] {
            let run = grilse(["gro", &file, "--json", "-", "--profile", profile, more]);
            run.ended(profile, &[DONE]);
            assert_eq!(inputs(&run.lines()), [0, 1, 2, 3, 4, 5], "{profile}");
        }
    }
}

/// Cuts a capture at `cut` and holds the outcome against the places where it may end whole.
fn cut_is_survived(scratch: &Scratch, name: &str, whole: &[u8], ends: &[usize], cut: usize) {
    let run = gro(&scratch.file(name, &whole[..cut]));
    let what = format!("{name} cut at {cut} of {}", whole.len());
    if name.ends_with("ng") && cut == pcap::SECTION_LEN {
        // A section without interfaces: a whole capture of nothing.
        return run.ended(&what, &[DONE]);
    }
    let Some(frames) = ends.iter().rposition(|&end| end <= cut) else {
        // Within the headers of the file there is nothing to read, and no way to tell.
        run.ended(&what, &[DAMAGED, USAGE]);
        return complains(&run, name);
    };
    if ends[frames] == cut {
        run.ended(&what, &[DONE]);
    } else {
        run.ended(&what, &[DAMAGED]);
        complains(&run, name);
        assert!(run.stderr.contains("frame"), "{what}: where? {}", run.stderr);
        let numbers: Vec<_> = run.stderr.split(|c: char| !c.is_ascii_digit()).collect();
        assert!(numbers.contains(&frames.to_string().as_str()), "{what}: which? {}", run.stderr);
    }
    assert_eq!(inputs(&run.lines()), (0..frames).collect::<Vec<_>>(), "{what}");
}

#[test]
fn cut_anywhere_the_rest_is_read() {
    let scratch = Scratch::new();
    let frames = flow();
    let mut rng = Rng(2);
    for (name, write) in
        [("cut.pcap", pcap::write as fn(&[Vec<u8>]) -> _), ("cut.pcapng", pcap::write_ng)]
    {
        let (whole, ends) = (write(&frames), pcap::ends(write, &frames));
        for cut in 0..=ends[2] {
            cut_is_survived(&scratch, name, &whole, &ends, cut);
        }
        for _ in 0..100 {
            cut_is_survived(&scratch, name, &whole, &ends, rng.below(whole.len() + 1));
        }
    }
}

#[test]
fn damaged_anywhere_nothing_panics() {
    let scratch = Scratch::new();
    let frames = flow();
    let mut rng = Rng(3);
    for whole in [pcap::write(&frames), pcap::write_ng(&frames)] {
        for round in 0..200 {
            let mut bytes = whole.clone();
            for _ in 0..=rng.below(4) {
                let at = rng.below(bytes.len());
                bytes[at] = [rng.next() as u8, 0, 0xff][rng.below(3)];
            }
            let run = gro(&scratch.file("damaged", &bytes));
            run.ended(&format!("damage in round {round}"), &[DONE, DAMAGED, USAGE]);
        }
    }
}

#[test]
fn every_container_gives_the_same_packets() {
    let scratch = Scratch::new();
    let frames = flow();
    let first = gro(&scratch.file("first", &pcap::write(&frames)));
    first.ended("the commonest form", &[DONE]);
    let classic = Magic::ALL.map(|magic| pcap::write_as(magic, &frames));
    for bytes in classic.into_iter().chain([pcap::write_ng(&frames)]) {
        let run = gro(&scratch.file("other", &bytes));
        run.ended("another form", &[DONE]);
        assert_eq!(run.lines(), first.lines());
    }
}

#[test]
fn records_that_lie_end_the_reading() {
    let scratch = Scratch::new();
    let magic = Magic::LittleMicros;
    for claimed in [1 << 24, 0x7fff_ffff, 0x8000_0000, u32::MAX] {
        let mut bytes = pcap::write(&flow());
        bytes.extend(pcap::record(magic, &[0; 60], claimed, claimed));
        let run = gro(&scratch.file("lies.pcap", &bytes));
        run.ended(&format!("a record of {claimed} bytes"), &[DAMAGED]);
        complains(&run, "lies.pcap");
        assert_eq!(inputs(&run.lines()), [0, 1, 2, 3, 4, 5]);
    }
}

#[test]
fn headers_that_lie_leave_the_bytes_alone() {
    let good = frame::tcp4(4000, 1, 200);
    // (offset, bytes): IPv4 version and length, total length, fragment offset; TCP data offset.
    let lies: [(usize, &[u8]); 11] = [
        (14, &[0x4f]),
        (14, &[0x40]),
        (14, &[0x65]),
        (16, &[0, 0]),
        (16, &[0, 19]),
        (16, &[0, 40]),
        (16, &[0xff, 0xff]),
        (20, &[0x1f, 0xff]),
        (46, &[0xf0]),
        (46, &[0x00]),
        (12, &[0x86, 0xdd]),
    ];
    let mut frames: Vec<Vec<u8>> = Vec::new();
    for (at, bytes) in lies {
        let mut frame = good.clone();
        frame[at..at + bytes.len()].copy_from_slice(bytes);
        frames.push(frame);
    }
    // And cut off within each header.
    frames.extend((14..60).map(|len| good[..len].to_vec()));
    unmerged_byte_for_byte(&frames);
}

#[test]
fn frames_beyond_64k_pass_as_they_are() {
    let sizes = [65_535, 65_535, 65_536, 65_549, 65_550, 70_000, 70_000, 200_000];
    let mut seq = 1_u32;
    let frames: Vec<_> = sizes
        .map(|len| {
            let frame = frame::tcp4(4000, seq, len);
            seq += len as u32 - 54;
            frame
        })
        .into();
    unmerged_byte_for_byte(&frames);
}

/// Delivers `frames` and checks that each comes out alone, once, with its own bytes.
fn unmerged_byte_for_byte(frames: &[Vec<u8>]) {
    let scratch = Scratch::new();
    for options in
        [&[][..], &["--no-hash"], &["--rx-csum", "valid"], &["--vlan", "sw"], &["--udp-fwd"]]
    {
        let file = scratch.file("frames.pcap", &pcap::write(frames)).display().to_string();
        let args = ["gro", &file, "--json", "-"];
        let run = grilse(args.iter().chain(options));
        run.ended(&format!("{options:?}"), &[DONE]);
        let lines = run.lines();
        assert_eq!(inputs(&lines), (0..frames.len()).collect::<Vec<_>>(), "{options:?}");
        for line in &lines {
            let [at] = members(line)[..] else { panic!("{options:?}: merged: {line}") };
            assert_eq!(line["len"], frames[at].len(), "{options:?}: frame {at}");
            assert_eq!(line["sha256"], frame::sha256(&frames[at]), "{options:?}: frame {at}");
        }
    }
}

#[test]
fn frames_no_device_takes_are_named_drops() {
    let scratch = Scratch::new();
    let mut frames = Vec::new();
    for (len, whole) in (0..14).zip(flow().into_iter().cycle()) {
        frames.push(vec![0xaa; len]);
        frames.push(whole);
    }
    let run = gro(&scratch.file("short.pcap", &pcap::write(&frames)));
    run.ended("frames of 0 to 13 bytes", &[DONE]);
    let lines = run.lines();
    let refused: Vec<_> =
        (0..14).map(|len| json!({"input": 2 * len, "refused": "EINVAL", "len": len})).collect();
    let delivered = lines.len() - refused.len();
    assert_eq!(lines[delivered..], refused, "they stand behind all delivered packets");
    assert_eq!(inputs(&lines), (0..14).map(|i| 2 * i + 1).collect::<Vec<_>>());
}

/// The only thing wrong with this output is that it takes nothing.
#[test]
fn full_device_is_reported() {
    let scratch = Scratch::new();
    for name in ["full.pcap", "full.pcapng"] {
        let out = scratch.path(name);
        symlink("/dev/full", &out).expect("a writable folder");
        let input = root().join("captures/tcp4-bulk-1flow.pcap");
        let run = grilse([Path::new("gro"), &input, Path::new("-o"), &out]);
        run.ended(name, &[SYSTEM]);
        complains(&run, name);
    }
}

/// A limit on the file's size stands for a disk that fills up: writes stop amid a record.
#[test]
fn full_disk_leaves_whole_packets() {
    let scratch = Scratch::new();
    let (out, json) = (scratch.path("out.pcap"), scratch.path("all.jsonl"));
    let input = root().join("captures/tcp4-bulk-16flows.pcap");
    let all = grilse([Path::new("gro"), &input, Path::new("--json"), &json]);
    all.ended("without a limit", &[DONE]);
    // The signal is ignored, so that the write fails as it does on a full disk. 400 blocks are 200
    // or 400 KiB, by the shell.
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' XFSZ; ulimit -f 400; exec \"$@\"", "sh", GRILSE, "gro"]);
    command.arg(&input).arg("-o").arg(&out);
    let limited = run(command);
    limited.ended("with a limit", &[SYSTEM]);
    complains(&limited, "out.pcap");
    let written = pcap::read(&fs::read(&out).expect("what was written stays"));
    assert!(!written.is_empty(), "200 KiB hold some packets");
    let all = json_lines(&fs::read(json).expect("--json wrote its file"));
    let written: Vec<_> = written.iter().map(|frame| frame::sha256(frame)).collect();
    assert_eq!(written, hashes(&all)[..written.len()]);
}

#[test]
fn unwritable_outputs_are_reported() {
    let scratch = Scratch::new();
    let file = scratch.file("good.pcap", &pcap::write(&flow())).display().to_string();
    for option in ["-o", "--json"] {
        let run = grilse(["gro", &file, option, "no-such-folder/out.pcap"]);
        run.ended(option, &[SYSTEM]);
        complains(&run, "no-such-folder/out.pcap");
    }
}

/// `--json` emptied an input that it was given as its path, and `-o` one that came through `-`.
#[test]
fn what_is_read_is_never_written_over() {
    let scratch = Scratch::new();
    let whole = pcap::write(&flow());
    let file = scratch.file("same.pcap", &whole);
    let link = scratch.path("link.pcap");
    symlink(&file, &link).expect("a writable folder");
    let tried = ["gro", "gso"].into_iter().flat_map(|name| [(name, "-o"), (name, "--json")]);
    for (name, option) in tried {
        for output in [&file, &link] {
            for stdin in [false, true] {
                let mut command = Command::new(GRILSE);
                let input = if stdin { Path::new("-") } else { &file };
                command.arg(name).arg(input).arg(option).arg(output);
                command.stdin(fs::File::open(&file).expect("just written"));
                let output = command.output().expect("the program under test");
                let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
                let run = Run { code: output.status.code(), stdout: output.stdout, stderr };
                run.ended(option, &[USAGE]);
                complains(&run, ".pcap");
                assert_eq!(fs::read(&file).expect("it is still there"), whole, "{option}");
            }
        }
    }
    let out = scratch.path("out.pcap").display().to_string();
    let run = grilse(["gro", &file.display().to_string(), "--json", &out, "-o", &out]);
    run.ended("one path for both outputs", &[USAGE]);
    complains(&run, "out.pcap");
}

/// File names are bytes.
#[test]
fn names_need_not_be_text() {
    use std::os::unix::ffi::OsStrExt;
    let scratch = Scratch::new();
    let name = |bytes: &[u8]| scratch.path("").join(std::ffi::OsStr::from_bytes(bytes));
    let (input, out) = (name(b"in\xff.pcap"), name(b"out\xff.pcap"));
    fs::write(&input, pcap::write(&flow())).expect("a writable folder");
    let run = grilse([Path::new("gro"), &input, Path::new("-o"), &out]);
    run.ended("a name that is not UTF-8", &[DONE]);
    assert_eq!(pcap::read(&fs::read(out).expect("-o wrote its file")).len(), 1);
}

/// A record whose length on the wire is less than what a merged packet holds would contradict itself.
#[test]
fn no_record_holds_more_than_was_on_the_wire() {
    let scratch = Scratch::new();
    let magic = Magic::LittleMicros;
    let mut bytes = pcap::header(magic);
    for frame in flow() {
        bytes.extend(pcap::record(magic, &frame, 100, 150));
    }
    let file = scratch.file("cut.pcap", &bytes);
    let out = scratch.path("out.pcap");
    grilse([Path::new("gro"), &file, Path::new("-o"), &out]).ended("cut frames", &[DONE]);
    let written = fs::read(&out).expect("-o wrote its file");
    let word = |at: usize| u32::from_le_bytes(written[at..at + 4].try_into().expect("four"));
    let (captured, original) = (word(24 + 8), word(24 + 12));
    assert_eq!(captured, 100 + 5 * 46, "they merged");
    assert!(original >= captured, "{captured} bytes of {original}");
}

/// What `-o` writes is what the JSON describes.
#[test]
fn written_packets_are_the_described_ones() {
    let scratch = Scratch::new();
    let out = scratch.path("out.pcap");
    let input = root().join("captures/tcp4-bulk-16flows.pcap");
    let args =
        [Path::new("gro"), &input, Path::new("--json"), Path::new("-"), Path::new("-o"), &out];
    let run = grilse(args);
    run.ended("-o", &[DONE]);
    let written = pcap::read(&fs::read(&out).expect("-o wrote its file"));
    let written: Vec<_> = written.iter().map(|frame| frame::sha256(frame)).collect();
    assert_eq!(written, hashes(&run.lines()));
}

#[test]
fn closed_pipe_ends_quietly() {
    let input = root().join("captures/tcp4-bulk-16flows.pcap").display().to_string();
    let tried = [
        ("gro", &["--json", "-"][..], 1),
        ("gro", &["--json", "-"], 0),
        ("gro", &["--explain"], 0),
        ("gso", &["--json", "-"], 1),
        ("gso", &[], 0),
    ];
    for (name, option, lines) in tried {
        let mut child = Command::new(GRILSE)
            .args([name, &input])
            .args(option)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program under test");
        let mut reader = BufReader::new(child.stdout.take().expect("piped above"));
        for _ in 0..lines {
            reader.read_line(&mut String::new()).expect("a first line");
        }
        drop(reader);
        let code = wait(&mut child, "a closed pipe");
        let output = child.wait_with_output().expect("it has ended");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let run = Run { code, stdout: output.stdout, stderr };
        run.ended("a closed pipe", &[DONE]);
        assert_eq!(run.stderr, "", "{option:?}: quietly");
    }
}

/// Six frames of one flow and one of another, coalesced: the bytes of the file, and where in it the
/// comment of the first packet stands.
fn coalesced(scratch: &Scratch) -> (Vec<u8>, std::ops::Range<usize>) {
    let frames = [flow(), vec![frame::tcp4(4001, 1, 100)]].concat();
    let file = scratch.file("frames.pcapng", &pcap::write_ng(&frames));
    let out = scratch.path("coalesced.pcapng");
    grilse([Path::new("gro"), &file, Path::new("-o"), &out]).ended("gro -o", &[DONE]);
    let bytes = fs::read(out).expect("-o wrote its file");
    let at = bytes.windows(8).position(|at| at == b"grilse1 ").expect("a comment");
    let len = usize::from(bytes[at - 2]) | usize::from(bytes[at - 1]) << 8;
    (bytes, at..at + len)
}

fn gso(file: &Path) -> Run {
    grilse([Path::new("gso"), file, Path::new("--json"), Path::new("-")])
}

#[test]
fn comments_that_lie_are_named() {
    let scratch = Scratch::new();
    let (interfaces, packets) = pcap::read_records(&coalesced(&scratch).0);
    let text = str::from_utf8(&packets[0].comments[0]).expect("ASCII");
    let known = "grilse1 gso=40000001:46:6 csum=partial:34:16 in=0+1*5 t=0+1*5 len=100+0*5";
    assert_eq!(text, known);
    let lies = [
        (":46:6", ":46:7", "field gso"),
        (":46:6", ":45:6", "field gso"),
        ("=40000001:", "=40000002:", "field gso"),
        ("=40000001:", "=10000:", "field gso"),
        ("=40000001:", "=4000000x:", "field 0 of grilse1 comment 0"),
        (":34:", ":35:", "field csum"),
        (" t=", " if=9+0*5 t=", "field if"),
        ("+0*5", "+0*5 notes=1+0*5", "field notes"),
        (&known[8..], "csum=none", "field in"),
        ("in=0+1*5", "in=0+1*4", "member columns"),
        ("in=0+1*5", "in=0-1*5", "field 2 of grilse1 comment 0"),
        ("in=0+1*5", "in=00+1*5", "would not write so"),
    ];
    for (truth, lie, field) in lies {
        let mut packets = packets.clone();
        packets[0].comments = vec![text.replacen(truth, lie, 1).into_bytes()];
        let bytes = pcap::write_records(&interfaces, &packets);
        let run = gso(&scratch.file("lie.pcapng", &bytes));
        run.ended(lie, &[DAMAGED]);
        complains(&run, "lie.pcapng");
        assert!(run.stderr.contains("frame 0") && run.stderr.contains(field), "{lie}: {run:?}");
        let lines = run.lines();
        assert_eq!(lines.len(), 2, "{lie}: one left as it is, one whole");
        assert_eq!(lines[0]["refused"], "bad-comment", "{lie}");
        assert_eq!(lines[0]["sha256"], frame::sha256(&packets[0].data), "{lie}");
    }
}

/// Whatever one byte of a comment becomes, frames come out, and a named frame where something is wrong.
#[test]
fn changed_comments_are_survived() {
    let scratch = Scratch::new();
    let (bytes, comment) = coalesced(&scratch);
    let mut rng = Rng(8);
    for at in comment {
        let mut bytes = bytes.clone();
        bytes[at] = rng.pick(b"0123456789+-*:= x\x00\xff");
        let run = gso(&scratch.file("changed.pcapng", &bytes));
        let what = format!("byte {at} as {}", bytes[at]);
        run.ended(&what, &[DONE, DAMAGED]);
        let refused = run.lines().iter().filter(|line| is_refused(line)).count();
        assert_eq!(refused > 0, run.code == Some(DAMAGED), "{what}");
        if run.code == Some(DAMAGED) {
            assert!(run.stderr.contains("frame 0"), "{what}: {}", run.stderr);
            complains(&run, "changed.pcapng");
        }
    }
}

/// What waits for its turn when a file ends is not lost.
#[test]
fn cut_captures_give_what_they_have() {
    let scratch = Scratch::new();
    let (bytes, comment) = coalesced(&scratch);
    // The end mark of the options and the second length.
    let first = comment.end.next_multiple_of(4) + 8;
    for cut in [first, first + 1, first + 40, bytes.len() - 1, bytes.len()] {
        let run = gso(&scratch.file("cut.pcapng", &bytes[..cut]));
        run.ended(
            "a cut capture",
            &[if cut == first || cut == bytes.len() { DONE } else { DAMAGED }],
        );
        let frames = if cut == bytes.len() { 7 } else { 6 };
        assert_eq!(run.lines().len(), frames, "cut at {cut}: {}", run.stderr);
    }
}

/// What should be cut and cannot be is written as it is, and counted by its reason.
#[test]
fn packets_that_cannot_be_cut_are_named() {
    let scratch = Scratch::new();
    let long = frame::tcp4(4000, 1, 3000);
    let mut fragment = long.clone();
    fragment[20] = 0x20;
    let mut trailer = long.clone();
    trailer.extend([0; 4]);
    let mut arp = vec![0; 3000];
    arp[12..14].copy_from_slice(&[8, 6]);
    let frames = [long.clone(), fragment, trailer, arp, vec![1; 5], frame::tcp4(1, 1, 100)];
    let mut bytes = pcap::write(&frames);
    bytes.extend(pcap::record(Magic::LittleMicros, &long[..200], 200, 3000));
    let file = scratch.file("long.pcap", &bytes);
    let out = scratch.path("out.pcap");
    let run = grilse([
        Path::new("gso"),
        &file,
        Path::new("--json"),
        Path::new("-"),
        Path::new("-o"),
        &out,
    ]);
    run.ended("packets that cannot be cut", &[DONE]);
    let lines = run.lines();
    let refused = |from: usize| {
        let mut of = lines.iter().filter(|line| number(line, "from") == from);
        of.next().expect("a line")["refused"].as_str().unwrap_or("-")
    };
    let reasons: Vec<_> = (0..7).map(refused).collect();
    assert_eq!(reasons, ["-", "fragment", "ip-length", "ethertype", "-", "-", "truncated"]);
    let written = pcap::read(&fs::read(&out).expect("-o wrote its file"));
    let kept: Vec<_> = frames[1..].iter().cloned().chain([long[..200].to_vec()]).collect();
    assert_eq!(written[written.len() - 6..], kept);
    assert_eq!(written.len(), 3 + 6);
    let report = grilse([Path::new("gso"), &file]);
    let report = String::from_utf8_lossy(&report.stdout);
    for said in ["1 cut", "4 refused", "2 whole", "frame 1: an IP fragment at byte 14"] {
        assert!(report.contains(said), "{said}: {report}");
    }
}

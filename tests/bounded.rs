//! Law, bounded: memory does not grow with the input, whether that is one long capture or many short
//! ones.

mod support;

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use support::{GRILSE, Scratch, frame, pcap, root, wait};

/// The most memory that a command with these arguments has had once it has read all of `input`
/// from standard input, in KiB (`VmHWM`).
fn peak(command: &[&str], input: impl Iterator<Item = Vec<u8>>) -> u64 {
    let mut child = Command::new(GRILSE)
        .args(command)
        .args(["-", "--json", "/dev/null"])
        .current_dir(root())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("the program under test");
    let mut stdin = child.stdin.take().expect("piped above");
    for bytes in input {
        stdin.write_all(&bytes).expect("it reads to the end");
    }
    // The pipe is still open, so the program is still there.
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a running one");
    let kib = line.trim().trim_end_matches(" kB").parse().expect("a number");
    drop(stdin);
    assert_eq!(wait(&mut child, "a stream"), Some(0));
    kib
}

/// A capture of so many copies of a real one.
fn stream(copies: usize) -> impl Iterator<Item = Vec<u8>> {
    let capture = fs::read(root().join("captures/tcp4-bulk-16flows.pcap")).expect("committed");
    let (header, records) = capture.split_at(24);
    std::iter::once(header.to_vec()).chain(std::iter::repeat_n(records.to_vec(), copies))
}

/// Pages come in pieces of 2 MiB where they are huge.
const NOISE_KIB: u64 = 6 << 10;

#[test]
fn long_captures_need_no_more_than_short_ones() {
    for command in [&["gro", "--explain"][..], &["gso"]] {
        let (short, long) = (peak(command, stream(4)), peak(command, stream(60)));
        assert!(
            long < short + NOISE_KIB,
            "{command:?}: 10 MB took {short} KiB, 150 MB took {long} KiB"
        );
    }
}

/// Each file had its own page pool, which outlived it: 2 MiB a file.
#[test]
fn many_captures_need_no_more_than_one() {
    let scratch = Scratch::new();
    let file = scratch.file("small.pcap", &pcap::write(&[frame::tcp4(4000, 1, 100)]));
    let file = file.display().to_string();
    for command in ["gro", "gso"] {
        let (one, many) = ([command, &file], [&[command], &vec![&file[..]; 200][..]].concat());
        let (one, many) = (peak(&one, stream(1)), peak(&many, stream(1)));
        assert!(many < one + NOISE_KIB, "{command}: one file took {one} KiB, 200 took {many} KiB");
    }
}

/// Frames wait until those before them are there, but not for ever.
#[test]
fn frames_that_wait_for_others_are_few() {
    let scratch = Scratch::new();
    let out = scratch.path("out.pcapng");
    let file = scratch.file("in.pcap", &stream(1).collect::<Vec<_>>().concat());
    let run = support::grilse([Path::new("gro"), &file, Path::new("-o"), &out]);
    run.ended("gro -o", &[0]);
    let coalesced = fs::read(out).expect("-o wrote its file");
    // The first frames are missing, so none ever follows the last one, and the numbers begin anew.
    let (head, tail) = halves(&coalesced);
    let again =
        |copies| std::iter::once(head.clone()).chain(std::iter::repeat_n(tail.clone(), copies));
    let (short, long) = (peak(&["gso"], again(8)), peak(&["gso"], again(100)));
    assert!(long < short + NOISE_KIB, "8 halves took {short} KiB, 100 took {long} KiB");
}

/// The blocks of a pcapng file in front of its first packet, and the later half of its packets.
fn halves(file: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let (mut head, mut packets, mut at) = (Vec::new(), Vec::new(), 0);
    while at < file.len() {
        let word =
            |i: usize| u32::from_le_bytes(file[at + i..at + i + 4].try_into().expect("four"));
        let block = file[at..at + word(4) as usize].to_vec();
        at += block.len();
        if block[0] == 6 { packets.push(block) } else { head.extend(block) }
    }
    (head, packets.split_off(packets.len() / 2).concat())
}

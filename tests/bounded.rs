//! Law, bounded: memory does not grow with the input, whether that is one long capture or many short
//! ones.

mod support;

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use support::{GRILSE, Scratch, frame, pcap, root, wait};

/// The most memory that `grilse gro` with these arguments has had once it has read all of `input`
/// from standard input, in KiB (`VmHWM`).
fn peak(args: &[&str], input: impl Iterator<Item = Vec<u8>>) -> u64 {
    let mut child = Command::new(GRILSE)
        .arg("gro")
        .args(args)
        .args(["-", "--explain", "--json", "/dev/null"])
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
    let (short, long) = (peak(&[], stream(4)), peak(&[], stream(60)));
    assert!(long < short + NOISE_KIB, "10 MB took {short} KiB, 150 MB took {long} KiB");
}

/// Each file had its own page pool, which outlived it: 2 MiB a file.
#[test]
fn many_captures_need_no_more_than_one() {
    let scratch = Scratch::new();
    let file = scratch.file("small.pcap", &pcap::write(&[frame::tcp4(4000, 1, 100)]));
    let file = file.display().to_string();
    let (one, many) = (peak(&[&file], stream(1)), peak(&vec![&file[..]; 200], stream(1)));
    assert!(many < one + NOISE_KIB, "one file took {one} KiB, 200 took {many} KiB");
}

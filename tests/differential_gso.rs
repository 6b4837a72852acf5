//! Law, kernel-equal, for super-packets that nobody thought of: what `gso::segment` makes of them is
//! what the running kernel's software segmentation sends out of a TAP device without offloads.
//!
//! A super-packet that differs is saved beside its metadata, as `tests/oracle/kernel-gso` reads it,
//! and reported with both answers. The seed is fixed, so that one commit gets one answer; see
//! `differential.rs` for the variables that hunt.

mod support;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use grilse::gso::{self, Checksums};
use grilse::wire::{Csum, GsoType, Heap, Linear, Packet};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use support::hunt::Hunt;
use support::oracle::Kernel;
use support::trains::{Train, train};
use support::{Scratch, number, pcap, skip};

/// How long it looks where nobody says.
const SECONDS: u64 = 20;

/// Super-packets in one run of the oracle, which takes a moment to start.
const ROUND: usize = 300;

#[test]
fn random_super_packets_are_cut_as_the_kernel_does() {
    let kernel = match Kernel::open() {
        Ok(kernel) => kernel,
        Err(why) => return skip("random_super_packets_are_cut_as_the_kernel_does", &why),
    };
    let hunt = Hunt::new(SECONDS);
    let (seed, mut rng) = (hunt.seed, hunt.rng());
    let (mut cut, mut segments, mut refused, mut found) = (0, 0, 0, Vec::new());
    while hunt.has_time() && found.len() < 5 {
        let trains: Vec<Train> = (0..ROUND).map(|_| train(&mut rng)).collect();
        let theirs = theirs(&kernel, &trains);
        for (train, theirs) in trains.iter().zip(theirs) {
            let ours = ours(train);
            cut += 1;
            segments += ours.as_ref().map_or(0, Vec::len);
            refused += usize::from(ours.is_err());
            if ours.clone().unwrap_or_default() != theirs {
                found.push(report(&format!("{seed}-{}", found.len()), train, &ours, &theirs));
            }
        }
    }
    println!("{cut} super-packets, {segments} segments, {refused} refused");
    assert!(segments > cut, "most are cut");
    assert!(found.is_empty(), "seed {seed}: the kernel differs\n\n{}", found.join("\n"));
}

type Frames = Vec<(usize, String)>;

/// Length and digest of each segment, or why there are none.
fn ours(train: &Train) -> Result<Frames, String> {
    let packet = Linear::new(train.frame.clone(), train.meta);
    let describe = |bytes: &[u8]| (bytes.len(), hex(&Sha256::digest(bytes)));
    let mut plain = match gso::segment(packet, Checksums::Finish) {
        Ok(mut segments) => {
            let packets: Vec<Linear> = segments.packets(&mut Heap).collect();
            // Each way to cut gives the same.
            let packet = Linear::new(train.frame.clone(), train.meta);
            let mut left = gso::segment(packet, Checksums::Leave).expect("it was cut above");
            for packet in &packets {
                let mut finished =
                    left.cut(&mut Heap).expect("the heap has room").expect("one each");
                if !train.meta.gso.kind.contains(GsoType::UDP) {
                    assert!(matches!(finished.meta().csum, Csum::Partial { .. }));
                }
                gso::finish(&mut finished).expect("the place is right");
                assert!(equal_but_zero(packet.bytes(), finished.bytes()));
            }
            return Ok(packets.iter().map(|packet| describe(packet.bytes())).collect());
        }
        Err(rejected) => match rejected.why {
            gso::Invalid::OneSegment { .. } if is_plain(train) => rejected.packet,
            why => return Err(why.to_string()),
        },
    };
    gso::finish(&mut plain).map_err(|why| why.to_string())?;
    Ok(vec![describe(plain.bytes())])
}

/// Whether the kernel finds, before it segments, that one segment holds everything. It takes all TCP
/// headers for 20 bytes long then (`virtio_net_hdr_to_skb`), and drops what it finds out later.
fn is_plain(train: &Train) -> bool {
    let header =
        if train.meta.gso.kind.intersects(GsoType::TCPV4 | GsoType::TCPV6) { 20 } else { 8 };
    let behind = train.frame.len() - usize::from(train.meta.transport) - header;
    behind <= train.meta.gso.size.into()
}

/// A checksum of zero has two forms, and the kernel writes either, depending on who computes it.
fn equal_but_zero(a: &[u8], b: &[u8]) -> bool {
    let differs: Vec<usize> = (0..a.len()).filter(|&at| a[at] != b[at]).collect();
    a.len() == b.len() && differs.len() <= 2 && differs.iter().all(|&at| a[at] ^ b[at] == 0xff)
}

/// What the kernel made of each; nothing where it refused, or dropped it.
fn theirs(kernel: &Kernel, trains: &[Train]) -> Vec<Frames> {
    let scratch = Scratch::new();
    let prefix = save(&scratch.path("trains"), trains);
    let mut answers = vec![Frames::new(); trains.len()];
    for line in kernel.gso(&prefix) {
        if line.get("refused").is_none() {
            let digest = line["sha256"].as_str().expect("a digest").to_owned();
            answers[number(&line, "from")].push((number(&line, "len"), digest));
        }
    }
    answers
}

/// Writes super-packets as the oracle reads them, and returns the name without suffix.
fn save(prefix: &Path, trains: &[Train]) -> String {
    let frames: Vec<Vec<u8>> = trains.iter().map(|train| train.frame.clone()).collect();
    let lines: Vec<String> = trains.iter().zip(0..).map(|(t, n)| line(t, n).to_string()).collect();
    fs::write(prefix.with_extension("pcap"), pcap::write(&frames)).expect("a writable folder");
    fs::write(prefix.with_extension("jsonl"), lines.join("\n")).expect("a writable folder");
    prefix.display().to_string()
}

fn line(train: &Train, seq: usize) -> Value {
    let kind = train.meta.gso.kind;
    let names = [
        (GsoType::TCPV4, "tcpv4"),
        (GsoType::TCPV6, "tcpv6"),
        (GsoType::UDP_L4, "udp-l4"),
        (GsoType::UDP, "udp-ufo"),
    ];
    let name = names.into_iter().find(|(bit, _)| kind.contains(*bit)).map(|(_, name)| name);
    let (csum, start, offset) = match train.meta.csum {
        Csum::Partial { start, offset } => ("partial", start, offset),
        _ => ("none", 0, 0),
    };
    json!({
        "seq": seq,
        "gso_type": name.expect("a type that virtio knows"),
        "gso_ecn": kind.contains(GsoType::TCP_ECN),
        "gso_size": train.meta.gso.size,
        "csum": csum,
        "csum_start": start,
        "csum_offset": offset,
    })
}

/// Saves a super-packet that differs, and says how to see it.
fn report(name: &str, train: &Train, ours: &Result<Frames, String>, theirs: &Frames) -> String {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("differential-gso");
    fs::create_dir_all(&folder).expect("the target folder is writable");
    let prefix = save(&folder.join(name), std::slice::from_ref(train));
    let mut text = format!("{:?}\n  tests/oracle/kernel-gso {prefix}\n", train.meta);
    match ours {
        Err(why) => _ = writeln!(text, "  refused: {why}; the kernel made {}", theirs.len()),
        Ok(ours) => {
            let same = |n: &usize| ours.get(*n) != theirs.get(*n);
            let first = (0..ours.len().max(theirs.len())).find(same);
            let (us, them) = (ours.len(), theirs.len());
            _ = writeln!(
                text,
                "  {us} segments, the kernel made {them}; first differing: {first:?}"
            );
        }
    }
    text
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

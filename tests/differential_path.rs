//! Law, kernel-equal, for the whole path: random groups of frames, each one poll, go through `grilse
//! gro` and `grilse gso`, and come out as the kernel that runs forwards them from one TAP device to
//! another without offloads, by GRO, a bridge and software GSO.
//!
//! Here is seen of a super-packet what no virtio header tells: tunnels and fixed identifications. Lists
//! are left out: in a file they are no more than their bytes. Of a group the frames are compared, not
//! their order: `gso` gives back the input's, and that of GRO is held by `differential.rs`, where also
//! stands how to hunt.

mod support;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use grilse::wire::build::{Eth, ethernet};
use serde_json::Value;
use support::hunt::Hunt;
use support::oracle::Kernel;
use support::traffic::{Extensions, Scope, group};
use support::tunnel::VXLAN_PORT;
use support::{Rng, Scratch, grilse, number, pcap, skip};

/// How long it looks where nobody says.
const SECONDS: u64 = 20;

/// Groups in one run of the oracle, which takes a moment to start.
const GROUPS: usize = 60;

/// One frame less than a poll takes, so that each group is one poll, which ends by itself.
const POLL: usize = 63;

/// Differences after which the rest are of little use.
const ENOUGH: usize = 5;

type Group = Vec<Vec<u8>>;

/// Digests and headers of the frames that came out of a group, in the order of the digests.
type Out = Vec<(String, String)>;

#[test]
fn random_traffic_is_forwarded_as_the_kernel_does() {
    let kernel = match Kernel::open() {
        Ok(kernel) => kernel,
        Err(why) => return skip("random_traffic_is_forwarded_as_the_kernel_does", &why),
    };
    let hunt = Hunt::new(SECONDS);
    let (seed, mut rng) = (hunt.seed, hunt.rng());
    let (mut groups, mut frames, mut found) = (0, 0, Vec::new());
    while hunt.has_time() && found.len() < ENOUGH {
        let (scope, options) = round(&mut rng);
        let traffic: Vec<Group> =
            (0..GROUPS).map(|_| passing(group(&scope, &mut rng), &scope)).collect();
        groups += traffic.len();
        frames += traffic.iter().map(Vec::len).sum::<usize>();
        for at in differing(&kernel, &options, &traffic).into_iter().take(ENOUGH) {
            let name = format!("{seed}-{}", found.len());
            found.push(report(&kernel, &options, &name, traffic[at].clone()));
        }
    }
    println!("{groups} groups, {frames} frames in {:.0?}", hunt.elapsed());
    assert!(groups > 0, "no time to look");
    assert!(found.is_empty(), "seed {seed}: the kernel differs\n\n{}", found.join("\n"));
}

/// Traffic of one kind, and the options that both programs know.
fn round(rng: &mut Rng) -> (Scope, Vec<String>) {
    let mut options = Vec::new();
    let mut option = |words: &[&str]| options.extend(words.iter().map(|w| (*w).to_owned()));
    if rng.chance(50) {
        option(&["--udp-fwd"]);
    }
    let big = rng.chance(25);
    if big {
        option(&["--gro-ipv4-max-size", rng.pick(&["65537", "180000"])]);
        option(&["--gro-max-size", rng.pick(&["65537", "180000"])]);
    }
    // Above 64 KiB the kernel drops IPv6 in tunnels, and what it cuts behind extension headers keeps
    // the jumbo option.
    let tunnelled = if big { 0 } else { rng.pick(&[0, 50, 100]) };
    if tunnelled > 0 && rng.chance(80) {
        option(&["--vxlan-port", &VXLAN_PORT.to_string()]);
    }
    let scope = Scope {
        frames: POLL,
        tunnelled,
        over_v6: true,
        udp: rng.pick(&[0, 20, 50, 90]),
        tagged: 0,
        bulk: big && rng.chance(60),
        extensions: if big { Extensions::Short } else { Extensions::Any },
        // A bridge forwards no more than its MTU.
        longest: 9000,
    };
    (scope, options)
}

/// The frames that the kernel forwards, merged or not: a bridge takes no group address and no address
/// 0; and a super-packet with a second Ethernet header in front of IP cannot be cut.
fn passing(mut group: Group, scope: &Scope) -> Group {
    let expected = ethernet(Eth::default(), 0, &[]);
    group.retain(|frame| {
        let extended = matches!(frame.get(20), Some(0 | 43 | 60)) && frame[12..14] == [0x86, 0xdd];
        frame.len() > 14
            && frame[..12] == expected[..12]
            && frame[12..14] != [0x65, 0x58]
            && !(extended && scope.extensions == Extensions::Short)
    });
    group
}

/// The groups, by number, that come out otherwise than the kernel's.
fn differing(kernel: &Kernel, options: &[String], groups: &[Group]) -> Vec<usize> {
    let (theirs, ours) = answers(kernel, options, groups);
    (0..groups.len()).filter(|&at| theirs[at] != ours[at]).collect()
}

/// What comes out of each group, at the kernel's end and at ours.
fn answers(kernel: &Kernel, options: &[String], groups: &[Group]) -> (Vec<Out>, Vec<Out>) {
    let scratch = Scratch::new();
    let frames: Group = groups.iter().flat_map(filled).collect();
    let capture = scratch.file("traffic.pcap", &pcap::write(&frames));
    let batch = ["--batch".to_owned(), POLL.to_string()];
    let theirs = kernel.path(&capture, &[&batch, options].concat());
    let coalesced = scratch.path("coalesced.pcapng").display().to_string();
    let words = ["gro", &capture.display().to_string(), "--no-hash", "--vlan", "none"];
    let words = words.into_iter().chain(["-o", &coalesced]).map(str::to_owned);
    grilse(words.chain(batch).chain(options.iter().cloned())).ended("grilse gro", &[0]);
    let ours = grilse(["gso", &coalesced, "--mtu", "65535", "--json", "-"]);
    ours.ended("grilse gso", &[0]);
    let group = |line: &Value| number(line, "frame") / POLL;
    let ours = by_group(ours.lines(), groups.len(), group);
    (by_group(theirs, groups.len(), |line| number(line, "batch")), ours)
}

/// The group and as many ARP frames as make it a poll, which touch nothing.
fn filled(group: &Group) -> impl Iterator<Item = Vec<u8>> {
    let arp = ethernet(Eth::default(), 0x0806, &[0; 28]);
    group.iter().cloned().chain(std::iter::repeat_n(arp, POLL - group.len()))
}

fn by_group(lines: Vec<Value>, groups: usize, group: impl Fn(&Value) -> usize) -> Vec<Out> {
    let mut sorted = vec![Out::new(); groups];
    let text = |line: &Value, key| line[key].as_str().unwrap_or_default().to_owned();
    for line in lines {
        sorted[group(&line)].push((text(&line, "sha256"), text(&line, "hdr")));
    }
    sorted.iter_mut().for_each(|out| out.sort());
    sorted
}

/// Shrinks a group that differs, saves it as `name`, and says what differs and how to see it.
fn report(kernel: &Kernel, options: &[String], name: &str, group: Group) -> String {
    let group = shrink(kernel, options, group);
    let path = saved(name, &group);
    let (options_text, path) = (options.join(" "), path.display());
    let mut text = format!(
        "{} frames in {path}:\n  grilse gro {path} --no-hash --vlan none -o x.pcapng {options_text}\
         \n  tests/oracle/kernel-path {path} {options_text}\n",
        group.len()
    );
    let (theirs, ours) = answers(kernel, options, &[group]);
    for (whose, these, those) in [("kernel", &theirs[0], &ours[0]), ("ours", &ours[0], &theirs[0])]
    {
        for (_, header) in these.iter().filter(|frame| !those.contains(frame)).take(4) {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "    {whose} alone: {header}");
        }
    }
    text
}

/// Leaves out frames, large runs of them first, as long as the rest still differs.
fn shrink(kernel: &Kernel, options: &[String], mut group: Group) -> Group {
    loop {
        let halves = |n: &usize| Some(n / 2).filter(|n| *n > 0);
        let mut smaller: Vec<Group> = Vec::new();
        for size in std::iter::successors(halves(&group.len()), halves) {
            for at in (0..group.len()).step_by(size) {
                let end = (at + size).min(group.len());
                smaller.push([&group[..at], &group[end..]].concat());
            }
        }
        match differing(kernel, options, &smaller).first() {
            Some(&best) => group = smaller.swap_remove(best),
            None => return group,
        }
    }
}

/// Saves a capture where a clean build leaves it, and nobody commits it.
fn saved(name: &str, group: &Group) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("differential-path");
    fs::create_dir_all(&folder).expect("the target folder is writable");
    let path = folder.join(name).with_extension("pcap");
    fs::write(&path, pcap::write(group)).expect("the target folder is writable");
    path
}

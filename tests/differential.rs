//! Law, kernel-equal, for traffic that nobody thought of: random groups of frames, each one poll,
//! come out of `grilse gro` as they come out of the kernel that runs.
//!
//! A group that differs is shrunk to the fewest frames that still do, saved, and reported with the
//! commands that show it. The seed is fixed, so that one commit gets one answer; the test runs for
//! [`SECONDS`], for [`MOST`] groups at most. To hunt, say for how long, and the clock gives another seed,
//! which is printed:
//!
//!     GRILSE_DIFFERENTIAL_SECS=3600 cargo test --release --test differential -- --nocapture
//!     GRILSE_DIFFERENTIAL_SEED=7 cargo test --test differential
//!
//! What is not tried is told in `support/traffic.rs`.

mod support;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use grilse::wire::build::{Eth, ethernet};
use serde_json::Value;
use support::hunt::Hunt;
use support::oracle::{Compare, Kernel};
use support::traffic::{Extensions, Scope, group};
use support::tunnel::VXLAN_PORT;
use support::{Rng, Scratch, grilse, number, pcap, skip};

/// How long it looks where nobody says.
const SECONDS: u64 = 40;

/// The kernel's oracle takes a tenth of a second to start: many groups share a run.
const GROUPS: usize = 60;

/// Groups of a run that nobody asked to hunt: so the gate sees the same traffic on any machine.
const MOST: usize = 4000;

/// One frame less than a poll takes, so that each group is one poll, which ends by itself.
const POLL: usize = 63;

/// Differences after which the rest are of little use.
const ENOUGH: usize = 5;

type Group = Vec<Vec<u8>>;

#[test]
fn random_traffic_is_coalesced_as_the_kernel_does() {
    let kernel = match Kernel::open() {
        Ok(kernel) => kernel,
        Err(why) => return skip("random_traffic_is_coalesced_as_the_kernel_does", &why),
    };
    let hunt = Hunt::new(SECONDS);
    let (seed, mut rng) = (hunt.seed, hunt.rng());
    let (mut groups, mut frames, mut found) = (0, 0, Vec::new());
    let most = if hunt.is_asked_for { usize::MAX } else { MOST };
    while hunt.has_time() && groups < most && found.len() < ENOUGH {
        let round = Round::new(&kernel, &mut rng);
        let traffic: Vec<Group> = (0..GROUPS).map(|_| group(&round.scope, &mut rng)).collect();
        groups += traffic.len();
        frames += traffic.iter().map(Vec::len).sum::<usize>();
        for at in round.differing(&traffic).into_iter().take(ENOUGH) {
            found.push(round.report(&format!("{seed}-{}", found.len()), traffic[at].clone()));
        }
    }
    println!("{groups} groups, {frames} frames in {:.0?}", hunt.elapsed());
    assert!(groups > 0, "no time to look");
    assert!(found.is_empty(), "seed {seed}: the kernel differs\n\n{}", found.join("\n"));
}

/// Groups of one kind under the same options.
struct Round<'a> {
    kernel: &'a Kernel,
    scope: Scope,
    /// Options that both programs know.
    options: Vec<String>,
    /// Tags are taken out of the frames before GRO.
    hw_vlan: bool,
}

impl<'a> Round<'a> {
    fn new(kernel: &'a Kernel, rng: &mut Rng) -> Self {
        let mut options = Vec::new();
        let mut option = |words: &[&str]| options.extend(words.iter().map(|w| (*w).to_owned()));
        if rng.chance(40) {
            option(&["--udp-fwd"]);
        }
        if rng.chance(25) {
            option(&["--gro-list"]);
        }
        if rng.chance(25) {
            option(&["--udp-gro-port", "5000"]);
        }
        let limit = rng.below(4);
        if limit == 1 {
            option(&["--gro-max-size", rng.pick(&["100", "2000", "16000", "65535", "65536"])]);
        }
        if limit >= 2 {
            option(&["--gro-ipv4-max-size", rng.pick(&["3000", "65537", "180000", "524280"])]);
        }
        if limit == 3 {
            option(&["--gro-max-size", rng.pick(&["65537", "131072", "524280"])]);
        }
        let hw_vlan = rng.chance(15);
        let tunnelled = rng.pick(&[0, 30, 100]);
        if tunnelled > 0 && rng.chance(70) {
            option(&["--vxlan-port", &VXLAN_PORT.to_string()]);
        }
        let scope = Scope {
            frames: POLL,
            tunnelled,
            over_v6: limit < 2,
            udp: rng.pick(&[0, 20, 50, 90]),
            tagged: if hw_vlan { 60 } else { rng.pick(&[0, 10]) },
            bulk: limit >= 2 && rng.chance(60),
            // Under a bridged Ethernet header the IPv4 limit holds for IPv6 too.
            extensions: if limit >= 2 { Extensions::Short } else { Extensions::Any },
            // The bridge that takes tags out forwards no more than its MTU; a TAP device takes more.
            longest: if hw_vlan { 9000 } else { 20_000 },
        };
        Self { kernel, scope, options, hw_vlan }
    }

    /// The groups, by number, that come out otherwise than the kernel's.
    fn differing(&self, groups: &[Group]) -> Vec<usize> {
        let differences = self.differences(groups);
        (0..groups.len()).filter(|&at| !differences[at].is_empty()).collect()
    }

    /// For each group, what differs from the kernel's.
    fn differences(&self, groups: &[Group]) -> Vec<Vec<String>> {
        let scratch = Scratch::new();
        let frames: Group = groups.iter().flat_map(filled).collect();
        let capture = scratch.file("traffic.pcap", &pcap::write(&frames));
        let theirs = self.kernel.gro(&capture, &self.kernel_args());
        let ours = grilse(self.our_args(&capture));
        ours.ended("grilse gro", &[0]);
        let compare = Compare { batch: false, vlan: self.hw_vlan };
        let (theirs, ours) = (by_group(theirs, groups.len()), by_group(ours.lines(), groups.len()));
        theirs.iter().zip(ours).map(|(theirs, ours)| compare.differences(theirs, &ours)).collect()
    }

    fn kernel_args(&self) -> Vec<String> {
        let mut args = vec!["--batch".to_owned(), POLL.to_string()];
        args.extend(self.options.iter().cloned());
        args.extend(self.hw_vlan.then(|| "--hw-vlan".to_owned()));
        args
    }

    fn our_args(&self, capture: &Path) -> Vec<String> {
        let vlan = if self.hw_vlan { "hw" } else { "none" };
        let words = ["--json", "-", "--no-hash", "--vlan", vlan, "--batch"];
        let mut args = vec!["gro".to_owned(), capture.display().to_string()];
        args.extend(words.map(str::to_owned));
        args.push(POLL.to_string());
        args.extend(self.options.iter().cloned());
        args
    }

    /// Shrinks a group that differs, saves it as `name`, and says what differs and how to see it.
    fn report(&self, name: &str, group: Group) -> String {
        let group = self.shrink(group);
        let path = saved(name, &group);
        let kernel = self.kernel_args().join(" ");
        let mut text = format!(
            "{} frames in {path}:\n  grilse {}\n  tests/oracle/kernel-gro {path} {kernel}\n",
            group.len(),
            self.our_args(&path).join(" "),
            path = path.display(),
        );
        let differences = self.differences(&[group]).remove(0);
        if differences.is_empty() {
            text.push_str("    it does not differ when it runs alone\n");
        }
        for difference in differences.iter().take(8) {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "    {difference}");
        }
        text
    }

    /// Leaves out frames, large runs of them first, as long as the rest still differs. All that may
    /// be left out next is tried in one run.
    fn shrink(&self, mut group: Group) -> Group {
        loop {
            let halves = |n: &usize| Some(n / 2).filter(|n| *n > 0);
            let sizes: Vec<usize> = std::iter::successors(Some(group.len() / 2), halves).collect();
            let mut smaller: Vec<Group> = Vec::new();
            for size in sizes.into_iter().filter(|size| *size > 0) {
                for at in (0..group.len()).step_by(size) {
                    let end = (at + size).min(group.len());
                    smaller.push([&group[..at], &group[end..]].concat());
                }
            }
            match self.differing(&smaller).first() {
                Some(&best) => group = smaller.swap_remove(best),
                None => return group,
            }
        }
    }
}

/// The group and as many ARP frames as make it a poll: GRO delivers them as they come, and they
/// touch nothing.
fn filled(group: &Group) -> impl Iterator<Item = Vec<u8>> {
    let arp = ethernet(Eth::default(), 0x0806, &[0; 28]);
    group.iter().cloned().chain(std::iter::repeat_n(arp, POLL - group.len()))
}

/// The lines of each group, without their running number, which one more packet in an earlier group
/// would shift. Refused frames stand at the end of all, with the number of the frame.
fn by_group(lines: Vec<Value>, groups: usize) -> Vec<Vec<Value>> {
    let mut sorted = vec![Vec::new(); groups];
    for mut line in lines {
        let at = match line.get("input") {
            Some(_) => number(&line, "input") / POLL,
            None => number(&line, "batch"),
        };
        line.as_object_mut().expect("a line is an object").remove("seq");
        sorted[at].push(line);
    }
    sorted
}

/// Saves a capture where a clean build leaves it, and nobody commits it.
fn saved(name: &str, group: &Group) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("differential");
    fs::create_dir_all(&folder).expect("the target folder is writable");
    let path = folder.join(name).with_extension("pcap");
    fs::write(&path, pcap::write(group)).expect("the target folder is writable");
    path
}

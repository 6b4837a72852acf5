//! Law, order: within a flow, packets leave in the order in which they came, save for the kernel's
//! own overtakes: frames that it refuses to look into, delivered while their flow is held.

mod support;

use std::collections::HashMap;
use std::fs;

use support::sweep::samples;
use support::{captures, frame, members, number, oracle, pcap};

/// The highest frame number delivered so far in a flow.
#[derive(Debug, Default)]
struct Newest {
    /// Of the packets that keep their place.
    in_order: Option<usize>,
    /// Of all, overtakers too.
    of_all: Option<usize>,
}

#[test]
fn flows_keep_their_order() {
    for sample in samples() {
        let frames = &sample.frames;
        let mut flows: HashMap<Vec<u8>, Newest> = HashMap::new();
        for line in sample.delivered() {
            let members = members(line);
            let what = format!("{}: {line}", sample.what);
            assert!(members.is_sorted_by(|a, b| a < b), "members out of order: {what}");
            // All that is not TCP or UDP never waits, so it is one flow for this law.
            let dissected = frame::dissect(&frames[members[0]]);
            let overtakes = dissected.as_ref().is_some_and(|d| d.overtakes);
            let newest = flows.entry(dissected.map_or(Vec::new(), |d| d.flow)).or_default();
            // An overtaker is never late itself: nothing that came after it may have left.
            let before = if overtakes { newest.of_all } else { newest.in_order };
            assert!(Some(members[0]) > before, "frame {before:?} of the flow left before: {what}");
            let last = members.last().copied();
            newest.of_all = newest.of_all.max(last);
            if overtakes {
                assert_eq!(members.len(), 1, "such a frame merges with none: {what}");
            } else {
                newest.in_order = newest.in_order.max(last);
            }
        }
    }
}

#[test]
fn nothing_waits_for_the_next_poll() {
    for sample in samples() {
        let mut poll = 0;
        for line in sample.delivered() {
            assert!(number(line, "batch") >= poll, "{}: {line}", sample.what);
            poll = number(line, "batch");
            for member in members(line) {
                assert_eq!(member / sample.batch, poll, "frame {member}, {}: {line}", sample.what);
            }
        }
    }
}

#[test]
fn one_flow_in_one_packet() {
    for sample in samples() {
        let frames = &sample.frames;
        for line in sample.delivered() {
            let flow = |at: &usize| frame::dissect(&frames[*at]).map(|d| d.flow);
            let flows: Vec<_> = members(line).iter().map(flow).collect();
            let same = flows.windows(2).all(|pair| pair[0].is_some() && pair[0] == pair[1]);
            assert!(same, "{}: {line}", sample.what);
        }
    }
}

/// The judge is judged: it must see the kernel's overtakers, and no others.
#[test]
fn dissector_knows_overtakers() {
    let overtakers = |path| -> Vec<usize> {
        let frames = pcap::read(&fs::read(path).expect("committed"));
        let overtakes = |frame: &Vec<u8>| frame::dissect(frame).is_some_and(|d| d.overtakes);
        frames.iter().enumerate().filter(|(_, f)| overtakes(f)).map(|(at, _)| at).collect()
    };
    for path in captures() {
        assert_eq!(overtakers(path), Vec::<usize>::new(), "the captures' sums are right");
    }
    let of_case = |name: &str| {
        let cases = oracle::cases();
        overtakers(cases.iter().find(|case| case.name == name).expect("the case exists").capture())
    };
    assert_eq!(of_case("tcp4-inorder-10"), Vec::<usize>::new());
    assert_eq!(of_case("tcp6-inorder-10"), Vec::<usize>::new());
    assert_eq!(of_case("udp4-fwd"), Vec::<usize>::new());
    assert_eq!(of_case("tcp4-bad-tcp-csum"), [2]);
    assert_eq!(of_case("tcp4-bad-ip-csum"), [2]);
    assert_eq!(of_case("tcp6-bad-csum"), [2]);
    assert_eq!(of_case("udp4-fwd-bad-csum"), [2]);
}

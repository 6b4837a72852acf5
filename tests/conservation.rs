//! Law, conservation: every frame that goes in comes out once, as a segment of one delivered packet
//! or as a refusal, with all of its bytes.

mod support;

use support::sweep::samples;
use support::{frame, is_refused, members, number};

#[test]
fn every_frame_is_a_member_once() {
    for sample in samples() {
        let frames = &sample.frames;
        let mut seen = vec![0_u32; frames.len()];
        let mut segments = 0;
        for line in &sample.lines {
            let inputs = match is_refused(line) {
                true => vec![number(line, "input")],
                false => members(line),
            };
            if !is_refused(line) {
                assert_eq!(inputs.len(), number(line, "segs"), "{}: {line}", sample.what);
            }
            segments += inputs.len();
            for input in inputs {
                let count = seen.get_mut(input);
                *count.unwrap_or_else(|| panic!("{}: no frame {input}", sample.what)) += 1;
            }
        }
        assert_eq!(segments, frames.len(), "{}: frames in, segments out", sample.what);
        let odd: Vec<_> = seen.iter().enumerate().filter(|(_, times)| **times != 1).collect();
        assert!(odd.is_empty(), "{}: (frame, times): {odd:?}", sample.what);
    }
}

#[test]
fn every_byte_comes_out() {
    for sample in samples() {
        let frames = &sample.frames;
        for line in sample.delivered() {
            let members = members(line);
            match members[..] {
                // The kernel touches no byte of a packet that merged with none (`napi_gro_complete`).
                [alone] => assert_eq!(
                    line["sha256"],
                    frame::sha256(&frames[alone]),
                    "{}: frame {alone}: {line}",
                    sample.what
                ),
                _ => assert_eq!(
                    number(line, "len"),
                    merged_len(frames, &members),
                    "{}: {line}",
                    sample.what
                ),
            }
        }
    }
}

/// The length of the packet that these frames make: the first one whole, the payload of the rest.
fn merged_len(frames: &[Vec<u8>], members: &[usize]) -> usize {
    let payload = |&at: &usize| {
        let dissected = frame::dissect(&frames[at]).expect("only TCP and UDP merge");
        frames[at].len() - dissected.headers
    };
    frames[members[0]].len() + members[1..].iter().map(payload).sum::<usize>()
}

#[test]
fn lines_are_numbered_in_delivery_order() {
    for sample in samples() {
        for (at, line) in sample.delivered().enumerate() {
            assert_eq!(number(line, "seq"), at, "{}: {line}", sample.what);
        }
    }
}

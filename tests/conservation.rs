//! Law, conservation: every frame that goes in comes out once, as a segment of one delivered packet
//! or as a refusal, with all of its bytes.

mod support;

use serde_json::Value;
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
                    merged_len(frames, &members) + jumbo_len(line),
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
        let inner = frame::innermost(&frames[at]);
        inner.len() - frame::dissect(&inner).expect("only TCP and UDP merge").headers
    };
    frames[members[0]].len() + members[1..].iter().map(payload).sum::<usize>()
}

/// What a jumbogram's Hop-by-Hop header adds: IPv6 and a payload length of 0 (RFC 2675).
fn jumbo_len(line: &Value) -> usize {
    let hdr = line["hdr"].as_str().expect("a header");
    let digits = hdr.as_bytes().chunks(2).map(|pair| str::from_utf8(pair).expect("ASCII"));
    let mut bytes: Vec<u8> =
        digits.map(|pair| u8::from_str_radix(pair, 16).expect("hexadecimal")).collect();
    if line.get("vlan").is_some() {
        bytes.drain(12..16);
    }
    let inner = frame::innermost(&bytes);
    if inner[12..14] == [0x86, 0xdd] && inner[18..20] == [0, 0] { 8 } else { 0 }
}

#[test]
fn lines_are_numbered_in_delivery_order() {
    for sample in samples() {
        for (at, line) in sample.delivered().enumerate() {
            assert_eq!(number(line, "seq"), at, "{}: {line}", sample.what);
        }
    }
}

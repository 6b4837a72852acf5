//! GRO of any traffic under any rules: no packet and no payload byte is lost, mixed up or moved
//! ahead of its flow, and what packets are made of changes no result.

use arbitrary::{Arbitrary, Unstructured};
use grilse_offload::Rules;
use grilse_wire::{Heap, Meta, Packet};

use crate::buffers::{Buffers, Skbs, bytes};
use crate::coalesce::{Out, coalesce};
use crate::traffic::{Frame, Traffic};

/// Coalesces the traffic that the input decides.
///
/// # Panics
/// Where the delivered packets do not stand for those pushed, each once, in order, with all their
/// bytes; or where skbs and vectors differ.
pub fn gro(data: &[u8]) {
    let Ok(traffic) = Traffic::arbitrary_take_rest(Unstructured::new(data)) else { return };
    let (frames, rules) = (traffic.frames(), traffic.setup.rules());
    let (config, batch) = (traffic.setup.config(rules), traffic.setup.batch());
    let in_vectors = coalesce(&config, &frames, batch, &mut Heap);
    check(&rules, &frames, &in_vectors);
    Skbs::with(|skbs| {
        let in_skbs = coalesce(&config, &frames, batch, skbs);
        check(&rules, &frames, &in_skbs);
        // A vector cannot chain whole packets, and then merges fewer.
        if !traffic.setup.gro_list {
            assert!(seen(&in_vectors).eq(seen(&in_skbs)), "skbs and vectors differ");
        }
        in_skbs.into_iter().for_each(|out| skbs.give_back(out.packet));
    });
}

fn seen<P: Packet>(out: &[Out<P>]) -> impl Iterator<Item = (Vec<u8>, Meta, Vec<u64>)> {
    out.iter().map(|out| (bytes(&out.packet), *out.packet.meta(), out.members.clone()))
}

fn check<P: Packet>(rules: &Rules, frames: &[Frame], out: &[Out<P>]) {
    let mut numbers: Vec<u64> = out.iter().flat_map(|out| out.members.iter().copied()).collect();
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(0..frames.len() as u64), "each packet is delivered once");
    for out in out {
        assert!(out.members.is_sorted(), "segments stand in order");
        let members: Vec<&Frame> = out.members.iter().map(|n| &frames[*n as usize]).collect();
        match members[..] {
            [alone] => unchanged(rules, alone, &out.packet),
            _ => all_payload(rules, &members, &out.packet),
        }
    }
    if rules.ordered {
        in_order(frames, out);
    }
}

/// A packet that merged with none leaves as it came, but for padding where the rules trim it. One that
/// came as a super-packet has its headers completed, as if it had merged.
fn unchanged<P: Packet>(rules: &Rules, frame: &Frame, packet: &P) {
    let left = bytes(packet);
    assert!(left.len() == frame.bytes.len() || rules.trims_padding);
    if frame.meta.gso.size == 0 {
        assert!(frame.bytes.starts_with(&left), "a packet changed on its way");
        assert_eq!(packet.meta().gso, frame.meta.gso);
    }
}

/// The payload of a super-packet is that of its members, one behind another.
fn all_payload<P: Packet>(rules: &Rules, members: &[&Frame], packet: &P) {
    let (gso, merged) = (packet.meta().gso, bytes(packet));
    let count = |frame: &&Frame| usize::from(frame.meta.gso.segs.max(1));
    assert_eq!(usize::from(gso.segs), members.iter().map(count).sum::<usize>());
    let head = members[0];
    // Behind padding that was trimmed the frame does not tell where its payload ends.
    if head.meta.gso.size != 0 || rules.trims_padding {
        return;
    }
    let headers = head.bytes.len() - usize::from(gso.size);
    let payload: Vec<u8> =
        members.iter().flat_map(|frame| &frame.bytes[headers..]).copied().collect();
    assert!(merged.ends_with(&payload), "payload was lost, changed or moved");
    // A jumbo payload option may have come in front of it.
    let grown = merged.len() - headers - payload.len();
    assert!(grown == 0 || grown == 8, "{grown} bytes that nobody sent");
    for (n, member) in members.iter().enumerate() {
        let len = member.bytes.len() - headers;
        let last = n + 1 == members.len();
        let fits = len == usize::from(gso.size) || (last && len < usize::from(gso.size));
        assert!(fits || member.meta.gso.size != 0, "a segment that could not be cut again");
    }
}

/// Within a flow nothing is overtaken.
fn in_order<P: Packet>(frames: &[Frame], out: &[Out<P>]) {
    let mut last = [0; 256];
    for out in out {
        let Some(flow) = frames[out.members[0] as usize].flow else { continue };
        let last = &mut last[usize::from(flow)];
        assert!(*last <= out.members[0], "{:?}: overtaken by {}", out.why, out.members[0]);
        *last = *out.members.last().expect("a packet stands for itself");
    }
}

//! segment(coalesce(x)) == x: what `exact` merges is cut to the same bytes again, whatever came in.

use arbitrary::{Arbitrary, Unstructured};
use grilse_offload::Rules;
use grilse_offload::gso::{self, Checksums};
use grilse_wire::{Heap, Packet};

use crate::buffers::{Buffers, Skbs, bytes};
use crate::coalesce::coalesce;
use crate::traffic::{Frame, Traffic};

/// Coalesces the traffic that the input decides by the rules of `exact`, and cuts it again.
///
/// # Panics
/// Where the segments are not the frames.
pub fn round_trip(data: &[u8]) {
    let Ok(traffic) = Traffic::arbitrary_take_rest(Unstructured::new(data)) else { return };
    // What is a super-packet already would be cut further than it came.
    let frames = traffic.frames().into_iter().filter(|frame| frame.meta.gso.size == 0);
    let mut frames: Vec<Frame> = frames.collect();
    for (frame, seq) in frames.iter_mut().zip(0..) {
        frame.meta.seq = seq;
    }
    back(&traffic, &frames, &mut Heap);
    Skbs::with(|skbs| back(&traffic, &frames, skbs));
}

fn back<B: Buffers>(traffic: &Traffic, frames: &[Frame], buffers: &mut B) {
    let config = traffic.setup.config(Rules::EXACT);
    for out in coalesce(&config, frames, traffic.setup.batch(), buffers) {
        let members = || out.members.iter().map(|n| &frames[*n as usize].bytes);
        if out.members.len() == 1 {
            assert_eq!(bytes(&out.packet), *members().next().expect("one"));
            buffers.give_back(out.packet);
            continue;
        }
        let rejected = |rejected: gso::Rejected<_>| rejected.why;
        let mut segments = gso::segment(out.packet, Checksums::Finish)
            .map_err(rejected)
            .expect("a packet that GRO made can be cut");
        let cut: Vec<B::Packet> = segments.packets(buffers).collect();
        buffers.give_back(segments.into_packet());
        assert_eq!(cut.len(), out.members.len());
        for (segment, frame) in cut.into_iter().zip(members()) {
            assert_eq!(bytes(&segment), *frame, "segments differ from what was coalesced");
            assert_eq!(segment.meta().gso.size, 0);
            buffers.give_back(segment);
        }
    }
}

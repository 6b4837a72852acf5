//! Traffic sent through GRO, and what came of it.

use grilse_offload::{Config, Gro, Outcome, Sink, Why};
use grilse_wire::{Meta, Packet};

use crate::buffers::Buffers;
use crate::traffic::Frame;

/// A delivered packet, and the numbers of those that it stands for.
#[derive(Debug)]
pub(crate) struct Out<P> {
    pub(crate) packet: P,
    pub(crate) why: Why,
    pub(crate) members: Vec<u64>,
}

#[derive(Debug)]
struct Kept<P> {
    out: Vec<Out<P>>,
    joined: Vec<(u64, u64)>,
}

impl<P: Packet> Sink<P> for Kept<P> {
    fn merged(&mut self, head: &Meta, packet: &Meta) {
        self.joined.push((head.seq, packet.seq));
    }

    fn deliver(&mut self, packet: P, why: Why) {
        let head = packet.meta().seq;
        let joined = self.joined.iter().filter(|(to, _)| *to == head).map(|(_, from)| *from);
        let members = std::iter::once(head).chain(joined).collect();
        self.out.push(Out { packet, why, members });
    }
}

/// Pushes the frames, `batch` to a poll, and keeps what comes out.
pub(crate) fn coalesce<B: Buffers>(
    config: &Config,
    frames: &[Frame],
    batch: usize,
    buffers: &mut B,
) -> Vec<Out<B::Packet>> {
    let mut gro = Gro::new(config.clone());
    let mut kept = Kept { out: Vec::new(), joined: Vec::new() };
    for poll in frames.chunks(batch) {
        for frame in poll {
            let packet = buffers.packet(&frame.bytes, frame.meta);
            let delivered = kept.out.len();
            match gro.push(packet, 0, &mut kept) {
                Outcome::Merged(Some(emptied)) => buffers.give_back(emptied),
                Outcome::Merged(None) | Outcome::Held => {}
                Outcome::Delivered => {
                    let last = kept.out[delivered..].last().expect("it is in the sink");
                    assert_eq!(last.packet.meta().seq, frame.meta.seq);
                }
            }
        }
        gro.flush(&mut kept);
        assert_eq!(gro.held(), 0, "a flush leaves nothing behind");
    }
    kept.out
}

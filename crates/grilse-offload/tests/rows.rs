//! Faults that GRO has had, the kernel's among them: one test each, named by the number of its row in
//! the specification. Those of tunnels stand in `regression.rs`, those of segmentation in
//! `gso_regression.rs`; faults with a number of their own carry both.

use grilse_mem::{FramePool, Role};
use grilse_offload::{Config, Reason, Rules};
use grilse_packet::{Ctx, Memory, Skb};
use grilse_wire::build::Ext;
use grilse_wire::{Gso, GsoType, Linear, Meta, Packet, VlanTag};

mod support;
use support::frame::{LEN, Parts, packets, tcp4, tcp6, udp4};
use support::{Frame, Out, Split, ethernet, reasons, run};

fn members<P>(out: &[Out<P>]) -> Vec<Vec<u64>> {
    out.iter().map(|out| out.members.clone()).collect()
}

/// As a router that forwards UDP sets it.
fn forwarding() -> Config {
    let mut config = Config::default();
    config.udp_fwd = true;
    config
}

/// CVE-2019-11683: an empty datagram became a segment of size 0.
#[test]
fn row_01_an_empty_datagram_joins_nothing() {
    let datagram = |id, len| {
        udp4(0, |p| {
            p.v4.id = id;
            p.resize(len);
        })
    };
    let sent = || packets([datagram(0, LEN), datagram(9, 0), datagram(1, LEN)]);
    let out = run(&forwarding(), sent(), 64);
    assert_eq!(members(&out), [vec![1], vec![0, 2]]);
    assert_eq!(out[1].packet.meta().gso.size, LEN as u16);
    let mut config = forwarding();
    config.rules = Rules::EXACT;
    let out = run(&config, sent(), 64);
    assert_eq!(members(&out), [[0], [1], [2]], "nothing overtakes in exact");
}

/// Datagrams behind a shorter one joined it, and could not be told apart again.
#[test]
fn row_02_a_short_datagram_is_the_last() {
    let lens = [100, 50, 50];
    let sent = lens.iter().zip(0..).map(|(len, n)| udp4(n, |p| p.resize(*len)));
    let out = run(&forwarding(), packets(sent), 64);
    assert_eq!(members(&out), [vec![0, 1], vec![2]]);
    assert_eq!(reasons(&out), [Reason::ShortSegment, Reason::PollEnd]);
    assert_eq!(out[0].packet.len(), 14 + 28 + 150);
}

/// Datagrams of unequal TTL, TOS or identification merged, and the second's was lost.
#[test]
fn row_03_what_differs_in_ip_keeps_datagrams_apart() {
    type Edit = fn(&mut Parts);
    let edits: [(Edit, Reason); 3] = [
        (|p| p.v4.ttl = 63, Reason::Ttl),
        (|p| p.v4.tos = 1, Reason::Tos),
        (|p| p.v4.id = 40, Reason::IpId),
    ];
    for (edit, reason) in edits {
        let out = run(&forwarding(), packets([udp4(0, |_| ()), udp4(1, edit)]), 64);
        assert_eq!(reasons(&out), [reason, Reason::PollEnd]);
    }
}

/// Headers that began in one piece and ended in the next were compared where they had been before
/// they were gathered.
#[test]
fn row_08_extension_headers_may_lie_in_two_pieces() {
    const EXT: &[Ext<'static>] = &[Ext::HopByHop(&[1, 4, 1, 2, 3, 4]), Ext::DestOpts(&[1, 12])];
    let frame = |n: u32| tcp6(n, |p| p.v6.ext = EXT);
    let whole = run(&Config::default(), packets((0..3).map(frame)), 64);
    assert_eq!(members(&whole), [[0, 1, 2]]);
    for front in 0..110 {
        let split = |seq: u64| {
            let frame = frame(seq as u32);
            // The second of them lies in one piece.
            let front = if seq == 1 { frame.len() } else { front };
            Split::new(frame.clone(), front, ethernet(&frame, seq))
        };
        let out = run(&Config::default(), (0..3).map(split).collect(), 64);
        assert_eq!(members(&out), [[0, 1, 2]], "{front} bytes in front");
        assert_eq!(out[0].packet.frame(), whole[0].packet.frame(), "{front} bytes in front");
    }
}

/// Skbs of one memory.
struct Rig {
    ctx: Ctx,
    pool: FramePool,
}

impl Rig {
    fn new() -> Self {
        let memory = Memory::new(256, None).unwrap();
        Self {
            ctx: Ctx::new(memory.seat(Role::Worker)).unwrap(),
            pool: FramePool::new(256, 2048, None).unwrap(),
        }
    }

    /// All bytes in a fragment, and `tailroom` bytes of room behind the linear ones, which are none.
    fn in_fragment(&mut self, bytes: &[u8], seq: u64, tailroom: usize) -> Skb {
        let mut skb = self.ctx.take().unwrap();
        let room = skb.tailroom();
        skb.put(room - tailroom).unwrap();
        skb.pull(room - tailroom);
        let mut frag = self.pool.take().unwrap();
        frag.bytes_mut().unwrap()[..bytes.len()].copy_from_slice(bytes);
        frag.set_range(0..bytes.len());
        skb.add_frag(frag).unwrap();
        *skb.meta_mut() = ethernet(bytes, seq);
        skb
    }

    /// All bytes in the head, which then can only be chained.
    fn in_head(&mut self, bytes: &[u8], seq: u64) -> Skb {
        let mut skb = self.ctx.take().unwrap();
        skb.put(bytes.len()).unwrap().copy_from_slice(bytes);
        *skb.meta_mut() = ethernet(bytes, seq);
        skb
    }
}

fn bytes<P: Packet>(packet: &P) -> Vec<u8> {
    packet.pieces(0..packet.len()).flatten().copied().collect()
}

/// A header was pulled out of the fragment past the end of the room behind the linear bytes. Where that
/// is short, room in front of them serves.
#[test]
fn row_09_headers_are_gathered_where_there_is_room() {
    let mut rig = Rig::new();
    let sized = |n: u32| {
        tcp4(n, |p| {
            p.tcp.seq = 1400 * n;
            p.resize(1400);
        })
    };
    let frames: Vec<_> = (0..3).map(sized).collect();
    let want = run(&Config::default(), packets(frames.clone()), 64).remove(0).packet;
    for tailroom in [0, 1, 13, 14, 20, 34, 53, 54, 60, 100] {
        let skbs = frames.iter().zip(0..).map(|(f, n)| rig.in_fragment(f, n, tailroom)).collect();
        let mut out = run(&Config::default(), skbs, 64);
        assert_eq!(members(&out), [[0, 1, 2]], "{tailroom} bytes of room");
        let merged = out.remove(0).packet;
        assert_eq!(bytes(&merged), want.frame(), "{tailroom} bytes of room");
        rig.ctx.consume(merged);
    }
}

/// The third packet of a chain was linked to the first, and the second lost.
#[test]
fn row_12_a_chain_of_many_loses_none() {
    let mut rig = Rig::new();
    for count in [2, 3, 4, 17, 18, 40] {
        let frames: Vec<_> = (0..count).map(|n| tcp4(n, |p| p.resize(LEN))).collect();
        let payload: Vec<u8> = frames.iter().flat_map(|frame| &frame[54..]).copied().collect();
        for chained in [false, true] {
            let skb = |(frame, seq): (&Vec<u8>, u64)| match chained {
                true => rig.in_head(frame, seq),
                false => rig.in_fragment(frame, seq, 100),
            };
            let skbs = frames.iter().zip(0..).map(skb).collect();
            let mut out = run(&Config::default(), skbs, 64);
            assert_eq!(members(&out), [(0..u64::from(count)).collect::<Vec<_>>()]);
            let merged = out.remove(0).packet;
            assert_eq!(bytes(&merged)[54..], payload, "{count} packets, chained: {chained}");
            rig.ctx.consume(merged);
        }
    }
}

/// Another hop limit made another flow, so that two packets of one connection were held at once and
/// came out in any order.
#[test]
fn row_14_another_hop_limit_completes_the_flow() {
    let limits = [64, 63, 63, 64];
    let sent = limits.iter().zip(0..).map(|(limit, n)| tcp6(n, |p| p.v6.hop_limit = *limit));
    let out = run(&Config::default(), packets(sent), 64);
    assert_eq!(members(&out), [vec![0], vec![1, 2], vec![3]]);
    assert_eq!(reasons(&out), [Reason::HopLimit, Reason::HopLimit, Reason::PollEnd]);
}

/// The length of a packet was read once its bytes had been taken, and so was 0, which ended the
/// super-packet as a short segment does. These take all bytes and leave an empty packet.
#[test]
fn row_15_a_packet_that_was_emptied_does_not_count_as_short() {
    let frames: Vec<_> = (0..5).map(|n| tcp4(n, |_| ())).collect();
    let linear = frames.iter().zip(0..).map(|(f, n)| Linear::of(f, ethernet(f, n))).collect();
    let out = run(&Config::default(), linear, 64);
    assert_eq!(members(&out), [[0, 1, 2, 3, 4]]);
    let mut rig = Rig::new();
    let skbs = frames.iter().zip(0..).map(|(f, n)| rig.in_fragment(f, n, 100)).collect();
    let out = run(&Config::default(), skbs, 64);
    assert_eq!(members(&out), [[0, 1, 2, 3, 4]]);
    assert_eq!(out[0].why.reason, Reason::PollEnd);
}

/// A segment longer than the first joined it, so that cutting gave other segments than were sent.
#[test]
fn row_16_a_longer_segment_begins_anew() {
    let at = |seq, id, len| {
        tcp4(0, |p| {
            (p.tcp.seq, p.v4.id) = (seq, id);
            p.resize(len);
        })
    };
    let sent = [at(0, 0, 100), at(100, 1, 200), at(300, 2, 200)];
    let out = run(&Config::default(), packets(sent), 64);
    assert_eq!(members(&out), [vec![0], vec![1, 2]]);
    let why = out[0].why;
    assert_eq!((why.reason, why.head, why.packet), (Reason::LongerSegment, 100, 200));
}

/// A super-packet of the device that ends in a short segment stayed open, and the short one came to
/// stand within the train.
#[test]
fn row_17_a_train_with_a_short_tail_is_the_last() {
    let train = |seq, id, len, segs| {
        let frame = tcp4(0, |p| {
            (p.tcp.seq, p.v4.id) = (seq, id);
            p.resize(len);
        });
        (frame, Gso { size: 100, segs, kind: GsoType::TCPV4 })
    };
    let trains = [train(0, 0, 300, 3), train(300, 3, 150, 2), train(450, 5, 200, 2)];
    let mut sent = packets(trains.iter().map(|(frame, _)| frame.clone()));
    for (packet, (_, gso)) in sent.iter_mut().zip(trains) {
        packet.meta_mut().gso = gso;
    }
    let out = run(&Config::default(), sent, 64);
    assert_eq!(members(&out), [vec![0, 1], vec![2]]);
    assert_eq!(reasons(&out), [Reason::GsoTail, Reason::PollEnd]);
    assert_eq!(out[0].packet.meta().gso.segs, 5);
}

/// What was beside one packet was still beside the next that had its memory.
#[test]
fn row_35_an_skb_that_is_used_again_remembers_nothing() {
    let mut rig = Rig::new();
    for n in 0..300 {
        let frames = [tcp4(0, |_| ()), tcp4(1, |_| ())];
        let skbs = frames.iter().zip(0..).map(|(frame, seq)| {
            let mut skb = rig.in_fragment(frame, seq, 100);
            let meta = skb.meta_mut();
            meta.vlan = Some(VlanTag { tpid: 0x8100, tci: n });
            (meta.encapsulated, meta.hash, meta.interface) = (true, 9, 2);
            skb
        });
        let skbs = skbs.collect();
        let mut out = run(&Config::default(), skbs, 64);
        assert_eq!(out.len(), 1);
        rig.ctx.consume(out.remove(0).packet);
        let again = rig.ctx.take().unwrap();
        assert_eq!(*again.meta(), Meta::default());
        assert_eq!((again.len(), again.frags().count(), again.frag_list().count()), (0, 0, 0));
        rig.ctx.consume(again);
    }
}

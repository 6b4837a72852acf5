//! Laws of segmentation: it undoes GRO, and no input panics.

use grilse_offload::gso::{self, Checksums, Invalid};
use grilse_offload::{Config, Rules};
use grilse_wire::build::{Check, Eth, Ext, Ipv4, Ipv6, Tcp, Udp, frame, packet, payload};
use grilse_wire::tcp::flag;
use grilse_wire::{Csum, Gso, GsoType, Heap, Linear, Meta, Packet, VlanTag};
use proptest::prelude::*;

mod support;
use support::cut::{cut, eth};
use support::{Frame, ethernet, run};

/// One flow, in which every packet differs from the one before as `steps` say.
#[derive(Clone, Debug)]
struct Flow {
    v6: bool,
    udp: bool,
    options: bool,
    ext: bool,
    tagged: bool,
    id: (u16, u16),
    df: bool,
    seq: u32,
    size: usize,
    flags: u16,
    packets: Vec<Sent>,
}

/// What is special in one packet.
#[derive(Clone, Debug)]
struct Sent {
    shorter: usize,
    last: u16,
    ttl: u8,
}

fn flow() -> impl Strategy<Value = Flow> {
    let sent = (
        prop_oneof![9 => Just(0usize), 1 => 1usize..50],
        prop_oneof![9 => Just(0u16), 1 => Just(flag::PSH), 1 => Just(flag::FIN | flag::PSH)],
        prop_oneof![12 => Just(64u8), 1 => Just(63)],
    );
    let sent = sent.prop_map(|(shorter, last, ttl)| Sent { shorter, last, ttl });
    let bits = any::<(bool, bool, bool, bool, bool, bool)>();
    let id = (prop_oneof![Just(1u16), Just(0xfffe), Just(0)], 0u16..3);
    let seq = prop_oneof![Just(1000u32), Just(u32::MAX - 700)];
    let flags =
        prop_oneof![Just(flag::ACK), Just(flag::ACK | flag::ECE), Just(flag::ACK | flag::CWR)];
    let packets = prop::collection::vec(sent, 1..40);
    (bits, id, seq, 50usize..1500, flags, packets).prop_map(
        |(bits, id, seq, size, flags, packets)| {
            let (v6, udp, options, ext, tagged, df) = bits;
            Flow { v6, udp, options, ext, tagged, id, df, seq, size, flags, packets }
        },
    )
}

impl Flow {
    fn frames(&self) -> Vec<Vec<u8>> {
        let mut at = 0;
        let one = |(n, sent): (usize, &Sent)| {
            let len = self.size - sent.shorter;
            let id = self.id.0.wrapping_add(self.id.1 * n as u16);
            let tags: &[VlanTag] = &[VlanTag { tpid: 0x8100, tci: 5 }];
            let eth = Eth { tags: if self.tagged { tags } else { &[] }, ..Eth::default() };
            let options: &[u8] = if self.options { &[1; 12] } else { &[] };
            let flags = self.flags | sent.last;
            let seq = self.seq.wrapping_add(at as u32);
            let tcp = Tcp { seq, flags, options, ..Tcp::default() };
            let ext: &[Ext<'_>] = &[Ext::HopByHop(&[1, 4, 0, 0, 0, 0]), Ext::DestOpts(&[1, 20])];
            let v6 = Ipv6 {
                hop_limit: sent.ttl,
                ext: if self.ext { ext } else { &[] },
                ..Ipv6::default()
            };
            let v4 = Ipv4 { id, df: self.df, ttl: sent.ttl, ..Ipv4::default() };
            let data = payload(at, len);
            at += len;
            match (self.v6, self.udp) {
                (false, false) => frame(eth, v4, tcp, &data),
                (false, true) => frame(eth, v4, Udp::default(), &data),
                (true, false) => frame(eth, v6, tcp, &data),
                (true, true) => frame(eth, v6, Udp::default(), &data),
            }
        };
        self.packets.iter().enumerate().map(one).collect()
    }

    /// A frame without the fields that GRO by these rules is known to lose: the identification of UDP
    /// where it stays the same, and before 6.10 all that it has in IP.
    fn less_lost(&self, mut frame: Vec<u8>, rules: &Rules) -> Vec<u8> {
        let ip = if self.tagged { 18 } else { 14 };
        let untested = self.udp && !rules.udp_obeys_l3;
        if self.v6 {
            frame[ip + 7] = if untested { 0 } else { frame[ip + 7] };
        } else if untested || (self.udp && self.id.1 == 0 && !rules.lossless) {
            frame[ip + 4..ip + 6].fill(0);
            frame[ip + 8] = if untested { 0 } else { frame[ip + 8] };
            frame[ip + 10..ip + 12].fill(0);
        }
        frame
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// segment(coalesce(x)) == x, byte for byte, in every profile.
    #[test]
    fn segmentation_undoes_gro(flow in flow(), profile in 0..Rules::ALL.len()) {
        let frames = flow.frames();
        let mut config = Config::default();
        config.rules = Rules::ALL[profile];
        config.udp_fwd = true;
        let packets = frames.iter().zip(0..);
        let packets = packets.map(|(frame, seq)| Linear::of(frame, ethernet(frame, seq))).collect();
        let mut seen = 0;
        for out in run(&config, packets, 64) {
            let members: Vec<Vec<u8>> =
                out.members.iter().map(|n| frames[*n as usize].clone()).collect();
            seen += members.len();
            let merged = out.packet.frame();
            if members.len() == 1 {
                prop_assert_eq!(&merged, &members[0]);
                continue;
            }
            let segments = cut(&merged, *out.packet.meta()).unwrap();
            let less_lost = |frames: Vec<Vec<u8>>| -> Vec<Vec<u8>> {
                frames.into_iter().map(|frame| flow.less_lost(frame, &config.rules)).collect()
            };
            prop_assert_eq!(less_lost(segments), less_lost(members));
        }
        prop_assert_eq!(seen, frames.len());
    }

    /// Whatever the metadata says, and whatever the headers say: a packet is cut, or comes back.
    #[test]
    fn no_metadata_and_no_header_panics(
        (v6, udp, tunnel) in any::<(bool, bool, bool)>(),
        kind in any::<u32>(), usual in any::<bool>(), size in any::<u16>(),
        (network, protocol) in (prop_oneof![Just(14u16), any::<u16>()],
            prop_oneof![Just(0x0800u16), Just(0x86dd), Just(0x6558), Just(0x8847), Just(0x894f)]),
        (inner, start, offset) in (0u16..200, 0u16..200, 0u16..40), len in 0usize..400,
        damage in prop::collection::vec((0usize..120, any::<u8>()), 0..6), cut_at in 0usize..500,
        mtu in 0usize..400,
    ) {
        let data = payload(0, len);
        let mut frame = match (v6, udp) {
            (false, false) => packet(Ipv4::default(), Tcp::default(), &data),
            (false, true) => packet(Ipv4::default(), Udp::default(), &data),
            (true, false) => packet(Ipv6::default(), Tcp::default(), &data),
            (true, true) => packet(Ipv6::default(), Udp::default(), &data),
        };
        if tunnel {
            frame = packet(Ipv4::default(), Udp { check: Check::Right, ..Udp::default() }, &frame);
        }
        let mut frame = eth(protocol, &frame);
        for (at, byte) in damage {
            if let Some(there) = frame.get_mut(at) {
                *there = byte;
            }
        }
        frame.truncate(cut_at);
        let all = GsoType::TCPV4 | GsoType::TCPV6 | GsoType::UDP_L4 | GsoType::UDP;
        let kind = if usual { all | GsoType(kind & 0xfc0) } else { GsoType(kind) };
        let gso = Gso { size: if usual { size % 200 } else { size }, segs: 1, kind };
        let meta = Meta {
            protocol, network, gso, inner_network: inner, transport: start,
            csum: if start % 2 == 0 { Csum::Partial { start, offset } } else { Csum::None },
            ..Meta::default()
        };
        let mut packet = Linear::new(frame.clone(), meta);
        match gso::segment(packet.clone(), Checksums::Finish) {
            Err(rejected) => prop_assert_eq!(rejected.packet.bytes(), &frame[..]),
            Ok(mut segments) => {
                let count = segments.remaining();
                prop_assert_eq!(segments.packets(&mut Heap).count(), count);
            }
        }
        let _ = gso::finish(&mut packet);
        packet.meta_mut().gso = Gso::default();
        if let Ok(true) = gso::plan(&mut packet, mtu) {
            let made = gso::segment(packet, Checksums::Finish);
            let mut segments = made.map_err(|rejected| rejected.why).unwrap();
            for segment in segments.packets(&mut Heap) {
                prop_assert!(segment.len() - usize::from(network) <= mtu);
            }
        }
    }
}

/// What a socket does with a send of `len` bytes (`udp_send_skb`), and what arrives.
fn send(v6: bool, len: usize, gso: Option<usize>) -> Option<Vec<usize>> {
    let mss = if v6 { 1452 } else { 1472 };
    let most = 65_535 - if v6 { 8 } else { 28 };
    let size = gso.unwrap_or(mss);
    let segments = len.div_ceil(size);
    if len > most || (gso.is_none() && len > mss) || segments > 128 {
        return None;
    }
    let udp = Udp { check: Check::Partial, ..Udp::default() };
    let (train, l4, protocol) = if v6 {
        (frame(Eth::default(), Ipv6::default(), udp, &payload(0, len)), 54, 0x86dd)
    } else {
        (frame(Eth::default(), Ipv4::default(), udp, &payload(0, len)), 34, 0x0800)
    };
    let meta = Meta {
        protocol,
        network: 14,
        csum: Csum::Partial { start: l4, offset: 6 },
        gso: Gso { size: size as u16, segs: 0, kind: GsoType::UDP_L4 },
        ..Meta::default()
    };
    let headers = usize::from(l4) + 8;
    match cut(&train, meta) {
        Ok(segments) => Some(segments.iter().map(|segment| segment.len() - headers).collect()),
        Err(Invalid::OneSegment { payload, .. }) => Some(vec![payload]),
        Err(why) => panic!("{why}"),
    }
}

/// The kernel's selftest udpgso.c, every row.
#[test]
fn the_table_of_udpgso() {
    for (v6, mss, most) in [(false, 1472, 65_507), (true, 1452, 65_527)] {
        let all = 65_535 / mss;
        let multiple = most / mss * mss;
        assert_eq!(send(v6, 1, None), Some(vec![1]));
        assert_eq!(send(v6, mss, None), Some(vec![mss]));
        assert_eq!(send(v6, mss + 1, None), None);
        assert_eq!(send(v6, mss, Some(mss)), Some(vec![mss]));
        assert_eq!(send(v6, mss + 1, Some(mss)), Some(vec![mss, 1]));
        assert_eq!(send(v6, 2 * mss, Some(mss)), Some(vec![mss; 2]));
        assert_eq!(send(v6, 2 * mss + 1, Some(mss)), Some(vec![mss, mss, 1]));
        assert_eq!(send(v6, multiple, Some(mss)), Some(vec![mss; most / mss]));
        let mut last = vec![mss; all];
        last.push(most - all * mss);
        assert_eq!(send(v6, most, Some(mss)), Some(last));
        assert_eq!(send(v6, most + 1, Some(mss)), None);
        assert_eq!(send(v6, 1, Some(1)), Some(vec![1]));
        assert_eq!(send(v6, 2, Some(1)), Some(vec![1; 2]));
        assert_eq!(send(v6, 5, Some(2)), Some(vec![2, 2, 1]));
        assert_eq!(send(v6, 128, Some(1)), Some(vec![1; 128]));
        assert_eq!(send(v6, 129, Some(1)), None);
    }
}

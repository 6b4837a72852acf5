//! Laws that hold for any traffic.

use std::collections::HashMap;

use grilse_offload::{Config, Frag0, Reason, Rules};
use grilse_wire::build::{Check, payload};
use grilse_wire::tcp::flag;
use grilse_wire::{Csum, Meta, Packet};
use proptest::prelude::*;

mod support;
use support::frame::{Parts, tcp4, tcp6, udp4};
use support::{Frame, Out, Split, ethernet, run};

/// What one packet of the traffic does to its flow.
#[derive(Clone, Copy, Debug)]
struct Sent {
    flow: u8,
    len: usize,
    quirk: u8,
}

fn sent() -> impl Strategy<Value = Vec<Sent>> {
    let len = prop_oneof![4 => Just(100usize), 1 => 0usize..140];
    let quirk = prop_oneof![8 => Just(0u8), 2 => any::<u8>()];
    let one = (0u8..12, len, quirk).prop_map(|(flow, len, quirk)| Sent { flow, len, quirk });
    prop::collection::vec(one, 1..120)
}

/// The frames: flows 0-4 are TCP over IPv4, 5-8 TCP over IPv6, the others UDP.
fn frames(traffic: &[Sent]) -> Vec<(u8, Vec<u8>)> {
    let mut next: HashMap<u8, (u32, u16)> = HashMap::new();
    let mut frames = Vec::new();
    for Sent { flow, len, quirk } in traffic.iter().copied() {
        let (at, id) = next.entry(flow).or_default();
        let edit = |p: &mut Parts| {
            (p.v4.id, p.tcp.seq) = (*id, *at);
            p.payload = payload(*at as usize, len);
            p.tcp.src_port += u16::from(flow);
            p.udp.src_port += u16::from(flow);
            match quirk {
                1..=20 => p.tcp.flags |= flag::PSH,
                21..=30 => p.tcp.flags |= flag::FIN,
                31..=40 => p.tcp.flags |= flag::URG,
                41..=60 => p.tcp.ack += 1,
                61..=80 => (p.v4.ttl, p.v6.hop_limit) = (3, 3),
                81..=90 => p.eth.padding = 2,
                91..=110 => (p.tcp.check, p.udp.check) = (Check::Flipped(8), Check::Flipped(8)),
                111..=120 => p.v4.options = &[1, 1, 1, 1],
                121..=130 => p.tcp.seq = p.tcp.seq.wrapping_add(1),
                131..=140 => p.v4.mf = true,
                141..=150 => p.udp.check = Check::Exactly(0),
                _ => {}
            }
        };
        let frame = match flow {
            0..=4 => tcp4(0, edit),
            5..=8 => tcp6(0, edit),
            _ => udp4(0, edit),
        };
        *at += len as u32;
        *id = id.wrapping_add(1);
        frames.push((flow, frame));
    }
    frames
}

fn config(list: bool) -> Config {
    let mut config = Config::default();
    (config.udp_fwd, config.gro_list) = (true, list);
    config
}

fn with(rules: Rules, list: bool) -> Config {
    let mut config = config(list);
    config.rules = rules;
    config
}

fn packets(frames: &[(u8, Vec<u8>)], front: impl Fn(usize) -> usize) -> Vec<Split> {
    let frames = frames.iter().zip(0..);
    let packet = |((flow, frame), seq): (&(u8, Vec<u8>), u64)| {
        let mut packet = Split::new(frame.clone(), front(seq as usize), ethernet(frame, seq));
        packet.meta_mut().hash = u32::from(flow % 3);
        packet
    };
    frames.map(packet).collect()
}

fn seen(out: &[Out<Split>]) -> Vec<(Vec<u8>, Vec<u64>, String)> {
    let one = |out: &Out<Split>| {
        let meta = out.packet.meta();
        (
            out.packet.frame(),
            out.members.clone(),
            format!("{:?} {:?} {:?}", out.why, meta.gso, meta.csum),
        )
    };
    out.iter().map(one).collect()
}

proptest! {
    #[test]
    fn no_packet_is_lost_or_mixed(traffic in sent(), list: bool, batch in 1usize..100) {
        let frames = frames(&traffic);
        let out = run(&config(list), packets(&frames, |_| 2000), batch);
        let mut numbers: Vec<_> = out.iter().flat_map(|out| out.members.clone()).collect();
        numbers.sort_unstable();
        prop_assert_eq!(numbers, (0..frames.len() as u64).collect::<Vec<_>>());
        for out in &out {
            prop_assert!(out.members.is_sorted());
            let flows = out.members.iter().map(|n| frames[*n as usize].0);
            prop_assert!(flows.clone().all(|flow| Some(flow) == flows.clone().next()));
            let gso = out.packet.meta().gso;
            if out.members.len() == 1 {
                prop_assert_eq!(&out.packet.frame(), &frames[out.members[0] as usize].1);
                prop_assert_eq!((gso.size, gso.segs), (0, 0));
            } else {
                prop_assert_eq!(usize::from(gso.segs), out.members.len());
                // The payload is that of the members, one behind another.
                let headers = frames[out.members[0] as usize].1.len() - usize::from(gso.size);
                let parts = out.members.iter().map(|n| &frames[*n as usize].1[headers..]);
                let parts = parts.collect::<Vec<_>>().concat();
                prop_assert_eq!(&out.packet.frame()[headers..], &parts);
            }
        }
    }

    #[test]
    fn a_flow_keeps_its_order_save_overtakers(traffic in sent(), batch in 1usize..100) {
        let frames = frames(&traffic);
        let out = run(&config(false), packets(&frames, |_| 2000), batch);
        let mut last: HashMap<u8, u64> = HashMap::new();
        for out in &out {
            let flow = frames[out.members[0] as usize].0;
            // Padding keeps UDP from merging, but does not complete its head.
            let overtakes = out.members.len() == 1 && match out.why.reason {
                Reason::TcpChecksum | Reason::UdpChecksum | Reason::IpOptions => true,
                Reason::UdpLength | Reason::UdpZeroChecksum | Reason::IpFragment => true,
                Reason::IpTotalLength => flow > 8,
                _ => false,
            };
            if !overtakes {
                let last = last.entry(flow).or_default();
                prop_assert!(*last <= out.members[0]);
                *last = *out.members.last().unwrap();
            }
        }
    }

    #[test]
    fn profiles_that_keep_the_order_have_no_overtakers(
        traffic in sent(),
        list: bool,
        relaxed: bool,
        batch in 1usize..100,
    ) {
        let frames = frames(&traffic);
        let rules = if relaxed { Rules::RELAXED } else { Rules::EXACT };
        let config = with(rules, list);
        let out = run(&config, packets(&frames, |_| 2000), batch);
        let mut last: HashMap<u8, u64> = HashMap::new();
        for out in &out {
            let last = last.entry(frames[out.members[0] as usize].0).or_default();
            prop_assert!(*last <= out.members[0], "{:?}", out.why);
            *last = *out.members.last().unwrap();
        }
    }

    /// Headers in one buffer, split off from the payload, in no linear buffer at all, or cut anywhere;
    /// found in place or looked for anew each time.
    #[test]
    fn where_the_bytes_lie_changes_nothing(
        traffic in sent(),
        fronts in prop::collection::vec(0usize..200, 120),
        list: bool,
        profile in 0..Rules::ALL.len(),
    ) {
        let frames = frames(&traffic);
        let config = with(Rules::ALL[profile], list);
        let reset = Rules { frag0: Frag0::ResetAlways, ..config.rules };
        let reset = with(reset, list);
        let whole = run(&config, packets(&frames, |_| 2000), 64);
        for config in [config, reset] {
            for front in [2000, 54, 0] {
                let split = run(&config, packets(&frames, |_| front), 64);
                prop_assert_eq!(seen(&whole), seen(&split));
            }
            let split = run(&config, packets(&frames, |n| fronts[n]), 64);
            prop_assert_eq!(seen(&whole), seen(&split));
        }
    }

    #[test]
    fn any_bytes_pass_or_are_refused(
        bytes in prop::collection::vec(any::<u8>(), 14..200),
        kind in prop::sample::select(&[0x0800u16, 0x86dd, 0x8100, 0x88a8, 0x6558]),
        network in 0u16..40,
    ) {
        let csum = Csum::Unnecessary { level: 3 };
        let meta = Meta { protocol: kind, network, csum, ..ethernet(&bytes, 0) };
        let packet = Split::new(bytes.clone(), 5, meta);
        let out = run(&config(false), vec![packet], 1);
        prop_assert_eq!(out.len(), 1);
        prop_assert_eq!(out[0].packet.frame(), bytes);
    }
}

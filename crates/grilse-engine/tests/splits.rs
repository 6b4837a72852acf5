//! However a frame is split into linear part and fragments, GRO makes the same of it: the same
//! bytes, metadata and reasons as of the frame in one plain vector.

use std::cell::RefCell;

use grilse_mem::{FramePool, Role};
use grilse_offload::{Config, Gro, Outcome, Why};
use grilse_packet::{Ctx, HEADROOM, MAX_FRAGS, Memory, Skb};
use grilse_wire::build::{Check, Eth, Ext, Ipv4, Ipv6, Network, Tcp, Udp, frame};
use grilse_wire::eth::ethertype;
use grilse_wire::tcp::flag;
use grilse_wire::{Csum, Linear, Meta, Packet};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::TestRunner;

/// Bytes in a frame of the pool: small, so that one pool does for many cases.
const PAGE: u32 = 2048;

/// A frame, what the device says of it, and where it is cut.
#[derive(Clone, Debug)]
struct Input {
    frame: Vec<u8>,
    meta: Meta,
    cuts: Vec<usize>,
}

/// What GRO delivered, and what it did with each packet.
#[derive(Debug, PartialEq)]
struct Output {
    delivered: Vec<(Vec<u8>, Meta, Why)>,
    outcomes: Vec<&'static str>,
}

fn run<P: Packet>(config: &Config, packets: impl Iterator<Item = P>) -> Output {
    let mut gro = Gro::new(config.clone());
    let (mut delivered, mut outcomes) = (Vec::new(), Vec::new());
    let mut sink = |packet: P, why: Why| {
        let bytes = packet.pieces(0..packet.len()).flatten().copied().collect();
        delivered.push((bytes, *packet.meta(), why));
    };
    for packet in packets {
        outcomes.push(match gro.push(packet, 0, &mut sink) {
            Outcome::Merged(_) => "merged",
            Outcome::Held => "held",
            Outcome::Delivered => "delivered",
        });
    }
    gro.flush(&mut sink);
    Output { delivered, outcomes }
}

/// A plain packet, with room to merge and the headroom that an skb has.
fn plain(input: &Input) -> Linear {
    let mut bytes = Vec::with_capacity(80_000);
    bytes.resize(HEADROOM, 0);
    bytes.extend_from_slice(&input.frame);
    Linear::with_headroom(bytes, HEADROOM, input.meta)
}

/// The same frame in a head frame up to the first cut, and in fragments between the others.
fn split(ctx: &mut Ctx, pool: &mut FramePool, input: &Input) -> Skb {
    let mut at = input.cuts[0];
    let mut head = pool.take().expect("the pool is large enough");
    let bytes = head.bytes_mut().expect("nobody shares a fresh frame");
    bytes[HEADROOM..HEADROOM + at].copy_from_slice(&input.frame[..at]);
    let mut skb = ctx.build(head, HEADROOM, at).expect("a shell is left");
    for &to in input.cuts[1..].iter().chain([&input.frame.len()]) {
        let mut frag = pool.take().expect("the pool is large enough");
        let len = to - at;
        frag.bytes_mut().expect("nobody shares a fresh frame")[..len]
            .copy_from_slice(&input.frame[at..to]);
        frag.set_range(0..len);
        skb.add_frag(frag).expect("a slot is left");
        at = to;
    }
    *skb.meta_mut() = input.meta;
    skb
}

/// A frame of one of two flows of each kind, most often the next one of its flow.
fn frames() -> impl Strategy<Value = Vec<(Vec<u8>, Meta)>> {
    let one = (0..3_u8, 0..2_u16, select(vec![0, 1, 7, 100, 100, 100, 1400]), 0..12_u8);
    let device = (any::<bool>(), any::<bool>());
    (prop::collection::vec(one, 1..24), device).prop_map(|(list, (hashed, vouched))| {
        let mut next = [[(1_u32, 0_u16); 2]; 3];
        let mut build = |(kind, flow, len, twist): (u8, u16, usize, u8)| {
            let (seq, id) = &mut next[usize::from(kind)][usize::from(flow)];
            let payload: Vec<u8> = (0..len).map(|i| (i as u32 + *seq) as u8).collect();
            let flags = flag::ACK | if twist == 1 { flag::PSH } else { 0 };
            let check = if twist == 2 { Check::Flipped(1) } else { Check::Right };
            let tcp = Tcp { src_port: 4000 + flow, seq: *seq, flags, check, ..Tcp::default() };
            let udp = Udp { src_port: 4000 + flow, dst_port: 443, check, ..Udp::default() };
            let ttl = if twist == 3 { 63 } else { 64 };
            let v4 = Ipv4 { id: *id, ttl, ..Ipv4::default() };
            let ext = [Ext::DestOpts(&[])];
            let ext = if flow == 1 { &ext[..] } else { &[] };
            let v6 = Ipv6 { hop_limit: ttl, ext, ..Ipv6::default() };
            *seq += payload.len() as u32;
            *id += 1;
            let ip: Network<'_> = if kind == 1 { v6.into() } else { v4.into() };
            let bytes = match kind {
                2 => frame(Eth::default(), ip, udp, &payload),
                _ => frame(Eth::default(), ip, tcp, &payload),
            };
            let protocol = if kind == 1 { ethertype::IPV6 } else { ethertype::IPV4 };
            let csum = if vouched { Csum::Unnecessary { level: 0 } } else { Csum::None };
            let hash = if hashed { u32::from(kind) * 2 + u32::from(flow) } else { 0 };
            (bytes, Meta { protocol, network: 14, csum, hash, ..Meta::default() })
        };
        list.into_iter().map(&mut build).collect()
    })
}

fn inputs() -> impl Strategy<Value = Vec<Input>> {
    frames().prop_flat_map(|frames| {
        let cut: Vec<_> = frames
            .into_iter()
            .enumerate()
            .map(|(n, (frame, meta))| {
                let meta = Meta { seq: n as u64, ..meta };
                // The first bytes are where it matters.
                let place = prop_oneof![0..=frame.len().min(90), 0..=frame.len()];
                prop::collection::vec(place, 1..=MAX_FRAGS.min(5)).prop_map(move |mut cuts| {
                    cuts.sort_unstable();
                    Input { frame: frame.clone(), meta, cuts }
                })
            })
            .collect();
        cut
    })
}

#[test]
fn the_split_does_not_matter() {
    let memory = Memory::new(256, None).expect("memory for packets");
    let ctx = RefCell::new(Ctx::new(memory.seat(Role::Worker)).expect("the first seat"));
    let pool = RefCell::new(FramePool::new(256, PAGE, None).expect("memory for frames"));
    let mut runner = TestRunner::new(ProptestConfig { cases: 1000, ..ProptestConfig::default() });
    let property = |(inputs, vlan): (Vec<Input>, bool)| {
        // Packets of the case before went out of scope, and so home.
        ctx.borrow_mut().begin(0);
        let mut config = Config::default();
        config.vlan = vlan;
        config.udp_gro_ports = vec![443].into();
        let skb = |input| split(&mut ctx.borrow_mut(), &mut pool.borrow_mut(), input);
        let whole = run(&config, inputs.iter().map(plain));
        let parts = run(&config, inputs.iter().map(skb));
        prop_assert_eq!(whole, parts);
        prop_assert_eq!(pool.borrow().ledger().in_use, 0, "frames that did not come back");
        Ok(())
    };
    runner.run(&(inputs(), any::<bool>()), property).unwrap_or_else(|error| panic!("{error}"));
}

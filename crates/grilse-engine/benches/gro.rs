//! Time per packet of GRO on the skb, next to plain buffers: 1024 segments of 1448 bytes in 1 flow
//! or in 64 interleaved ones, a flush after them; checksums vouched for by the device, or verified.
//!
//! Only GRO is measured: packets are made before and given back after. `skb` moves payload and
//! `linear` copies it.

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use grilse_mem::{FramePool, Role};
use grilse_offload::{Config, Gro, Outcome, Why};
use grilse_packet::{Ctx, HEADROOM, Memory, Skb};
use grilse_wire::build::{Eth, Ipv4, Tcp, frame};
use grilse_wire::eth::ethertype;
use grilse_wire::{Csum, Linear, Meta, Packet};

const PACKETS: u32 = 1024;
const PAYLOAD: u32 = 1448;

/// The frames of `flows` flows in turn, and what the device says of them.
fn traffic(flows: u32, csum: Csum) -> Vec<(Vec<u8>, Meta)> {
    (0..PACKETS)
        .map(|n| {
            let (flow, n) = (n % flows, n / flows);
            let ip = Ipv4 { id: n as u16, ..Ipv4::default() };
            let tcp = Tcp { src_port: 40_000 + flow as u16, seq: n * PAYLOAD, ..Tcp::default() };
            let (protocol, network) = (ethertype::IPV4, 14);
            let meta = Meta { hash: flow, csum, protocol, network, ..Meta::default() };
            (frame(Eth::default(), ip, tcp, &[0x5a; PAYLOAD as usize]), meta)
        })
        .collect()
}

/// The time that GRO takes for `rounds` times the traffic; `give` takes back what it leaves.
fn coalesce<P: Packet>(
    rounds: u64,
    traffic: &[(Vec<u8>, Meta)],
    mut make: impl FnMut(&[u8], Meta) -> P,
    mut give: impl FnMut(P),
) -> Duration {
    let mut gro = Gro::new(Config::default());
    let mut spent = Duration::ZERO;
    let mut out: Vec<P> = Vec::with_capacity(PACKETS as usize);
    let mut emptied: Vec<P> = Vec::with_capacity(PACKETS as usize);
    for _ in 0..rounds {
        let packets: Vec<P> = traffic.iter().map(|(frame, meta)| make(frame, *meta)).collect();
        let start = Instant::now();
        let mut sink = |packet: P, _: Why| out.push(packet);
        for packet in packets {
            if let Outcome::Merged(Some(shell)) = gro.push(packet, 0, &mut sink) {
                emptied.push(shell);
            }
        }
        gro.flush(&mut sink);
        spent += start.elapsed();
        assert!(out.len() <= 64, "{} packets came out", out.len());
        out.drain(..).for_each(&mut give);
        black_box(&mut emptied).drain(..).for_each(&mut give);
    }
    spent
}

fn coalesce_skbs(rounds: u64, traffic: &[(Vec<u8>, Meta)], memory: &'static Memory) -> Duration {
    let ctx = Ctx::new(memory.seat(Role::Worker)).expect("one context at a time");
    let ctx = std::cell::RefCell::new(ctx);
    let mut pool = FramePool::new(2 * PACKETS, 4096, None).expect("8 MiB");
    let make = |frame: &[u8], meta| {
        let mut page = pool.take().expect("all came back");
        let bytes = page.bytes_mut().expect("nobody shares a fresh frame");
        bytes[HEADROOM..HEADROOM + frame.len()].copy_from_slice(frame);
        let mut skb = ctx.borrow_mut().build(page, HEADROOM, frame.len()).expect("a shell is left");
        *skb.meta_mut() = meta;
        skb
    };
    coalesce(rounds, traffic, make, |skb: Skb| ctx.borrow_mut().consume(skb))
}

fn coalesce_linear(rounds: u64, traffic: &[(Vec<u8>, Meta)]) -> Duration {
    let make = |frame: &[u8], meta| {
        let mut bytes = Vec::with_capacity(70_000);
        bytes.extend_from_slice(frame);
        Linear::new(bytes, meta)
    };
    coalesce(rounds, traffic, make, drop)
}

fn gro(c: &mut Criterion) {
    let memory = Memory::new(2 * PACKETS, None).expect("a few MiB");
    let vouched = Csum::Unnecessary { level: 0 };
    for (name, csum) in [("vouched", vouched), ("verified", Csum::None)] {
        let mut group = c.benchmark_group(format!("gro/{name}"));
        group.throughput(Throughput::Elements(PACKETS.into()));
        for flows in [1, 64] {
            let traffic = traffic(flows, csum);
            group.bench_function(BenchmarkId::new("skb", flows), |b| {
                b.iter_custom(|rounds| coalesce_skbs(rounds, &traffic, memory));
            });
            group.bench_function(BenchmarkId::new("linear", flows), |b| {
                b.iter_custom(|rounds| coalesce_linear(rounds, &traffic));
            });
        }
    }
}

criterion_group!(benches, gro);
criterion_main!(benches);

//! Time per segment of GSO: super-packets of 64 KB, TCP and UDP, cut into 1448-byte segments whose
//! checksums are finished, or left to a device.
//!
//! `skb` shares the payload: 32 frames of 2 KiB, as GRO or an application leaves it; making and
//! giving back each segment is part of the time. `buffer` writes segments into one buffer, in turn,
//! and so copies all payload.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use grilse_mem::{FramePool, Role};
use grilse_offload::gso::{self, Checksums, Segments};
use grilse_packet::{Ctx, Memory, Skb};
use grilse_wire::build::{Check, Eth, Ipv4, Ipv6, Network, Tcp, Transport, Udp, frame};
use grilse_wire::{Csum, Gso, GsoType, Linear, Meta, tcp, udp};

const MSS: usize = 1448;
const SEGMENTS: usize = 45;
/// Payload bytes of one fragment: the super-packet has 17, the most that an skb holds.
const FRAG: usize = MSS * SEGMENTS / 17 + 1;

/// Headers and payload of a super-packet, and its metadata.
fn train(name: &str) -> (Vec<u8>, Meta) {
    let (network, l4): (Network<'_>, usize) = match name {
        "tcp6" => (Ipv6::default().into(), 54),
        _ => (Ipv4::default().into(), 34),
    };
    let check = Check::Partial;
    let tcp = Tcp { check, options: &[1; 12], ..Tcp::default() };
    let (transport, kind, offset): (Transport<'_>, _, _) = match name {
        "tcp4" => (tcp.into(), GsoType::TCPV4, tcp::CHECK),
        "tcp6" => (tcp.into(), GsoType::TCPV6, tcp::CHECK),
        _ => (Udp { check, ..Udp::default() }.into(), GsoType::UDP_L4, udp::CHECK),
    };
    let frame = frame(Eth::default(), network, transport, &[0x5a; MSS * SEGMENTS]);
    let meta = Meta {
        protocol: u16::from_be_bytes([frame[12], frame[13]]),
        network: 14,
        csum: Csum::Partial { start: l4 as u16, offset: offset as u16 },
        gso: Gso { size: MSS as u16, segs: SEGMENTS as u16, kind },
        ..Meta::default()
    };
    (frame, meta)
}

/// The train as an skb: headers in its small head, payload in frames.
fn skb(ctx: &mut Ctx, pool: &mut FramePool, (bytes, meta): &(Vec<u8>, Meta)) -> Skb {
    let mut skb = ctx.take().expect("memory for the bench");
    let (headers, payload) = bytes.split_at(bytes.len() - MSS * SEGMENTS);
    skb.put(headers.len()).expect("a small head holds headers").copy_from_slice(headers);
    for piece in payload.chunks(FRAG) {
        let mut frame = pool.take().expect("frames for the bench");
        frame.bytes_mut().expect("nobody shares it")[..piece.len()].copy_from_slice(piece);
        frame.set_range(0..piece.len());
        skb.add_frag(frame).expect("17 fragments fit");
    }
    *skb.meta_mut() = *meta;
    skb
}

/// Cuts all of the skb, gives the segments back, and returns it.
fn cut(ctx: &mut Ctx, skb: Skb, checksums: Checksums) -> Skb {
    let mut segments = gso::segment(skb, checksums).expect("a super-packet");
    let mut made = 0;
    while let Ok(Some(segment)) = segments.cut(ctx) {
        ctx.consume(black_box(segment));
        made += 1;
    }
    assert_eq!(made, SEGMENTS);
    segments.into_packet()
}

/// Writes all of the packet into `out`, each segment over the last, and returns it.
fn write(packet: Linear, out: &mut [u8]) -> Linear {
    let mut segments: Segments<Linear> =
        gso::segment(packet, Checksums::Finish).expect("a super-packet");
    let mut made = 0;
    while let Ok(Some(len)) = segments.write(out) {
        black_box(&out[..len]);
        made += 1;
    }
    assert_eq!(made, SEGMENTS);
    segments.into_packet()
}

fn gso(c: &mut Criterion) {
    let memory = Memory::new(4096, None).expect("memory for the bench");
    let mut ctx = Ctx::new(memory.seat(Role::Worker)).expect("a seat");
    let mut pool = FramePool::new(64, 4096, None).expect("frames for the bench");
    for name in ["tcp4", "tcp6", "udp4"] {
        let train = train(name);
        let mut group = c.benchmark_group(format!("gso/{name}"));
        group.throughput(Throughput::Elements(SEGMENTS as u64));
        for (id, checksums) in [("finish", Checksums::Finish), ("leave", Checksums::Leave)] {
            let mut packet = Some(skb(&mut ctx, &mut pool, &train));
            group.bench_function(BenchmarkId::new("skb", id), |b| {
                b.iter(|| packet = packet.take().map(|skb| cut(&mut ctx, skb, checksums)));
            });
            if let Some(skb) = packet {
                ctx.consume(skb);
            }
        }
        let mut packet = Some(Linear::new(train.0.clone(), train.1));
        let mut out = [0; 2048];
        group.bench_function("buffer", |b| {
            b.iter(|| packet = packet.take().map(|linear| write(linear, &mut out)));
        });
    }
}

criterion_group!(benches, gso);
criterion_main!(benches);

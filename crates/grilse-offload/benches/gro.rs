//! Time per packet of GRO: 1024 segments of 1448 bytes in 1 flow or in 64 interleaved ones, a flush
//! after them; checksums vouched for by the device, or verified.
//!
//! Beside them, on pages: `frag0`, headers found by the contiguous length or looked for anew each time
//! (the knob `gro.frag0`), of vouched segments; `held`, four segments each of up to 1000 interleaved
//! flows in one bucket of 1024 heads, by the rules of 6.18; and `relaxed`, the same by that profile,
//! which sums every payload.
//!
//! `linear` copies payload as it merges; `pages` moves it, as an skb does, and so shows the rules
//! alone. Between rounds, outside the measured time, `linear` makes its packets afresh, and `pages`
//! writes new headers into the pages that it has, as a device does.

use std::ops::Range;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use grilse_offload::{Config, Frag0, Gro, Outcome, Rules, Why};
use grilse_wire::{Csum, How, Linear, Meta, Packet, Refused, csum};

const PACKETS: u32 = 1024;
const PAYLOAD: usize = 1448;
const HEADERS: usize = 14 + 20 + 32;

/// A packet of one page that owns the pages of those that joined it.
struct Paged(Box<Shell>);

struct Shell {
    page: Option<Box<[u8]>>,
    frags: Vec<Box<[u8]>>,
    len: usize,
    meta: Meta,
}

impl Packet for Paged {
    fn len(&self) -> usize {
        self.0.len
    }

    fn front(&self) -> &[u8] {
        self.0.page.as_deref().unwrap_or_default()
    }

    fn gather(&mut self, n: usize) -> Option<&[u8]> {
        (n <= self.front().len()).then(|| self.front())
    }

    fn front_mut(&mut self, n: usize) -> Option<&mut [u8]> {
        self.0.page.as_deref_mut()?.get_mut(..n)
    }

    fn headroom(&self) -> usize {
        0
    }

    fn push(&mut self, _: usize) -> Option<&mut [u8]> {
        None
    }

    fn pieces(&self, range: Range<usize>) -> impl Iterator<Item = &[u8]> {
        std::iter::once(&self.front()[range])
    }

    fn meta(&self) -> &Meta {
        &self.0.meta
    }

    fn meta_mut(&mut self) -> &mut Meta {
        &mut self.0.meta
    }

    fn absorb(
        &mut self,
        mut other: Self,
        skip: usize,
        _: How,
    ) -> Result<Option<Self>, Refused<Self>> {
        match other.0.page.take() {
            Some(page) if self.0.frags.len() < self.0.frags.capacity() => {
                self.0.len += page.len() - skip;
                self.0.frags.push(page);
                Ok(Some(other))
            }
            page => {
                other.0.page = page;
                Err(Refused(other))
            }
        }
    }
}

fn paged(frame: &[u8], meta: Meta) -> Paged {
    let page = Some(frame.into());
    Paged(Box::new(Shell { page, frags: Vec::with_capacity(48), len: frame.len(), meta }))
}

/// Makes the packets of the next round out of those of the last.
fn recycled(traffic: &[(Vec<u8>, Meta)], used: Vec<Paged>) -> Vec<Paged> {
    if used.is_empty() {
        return traffic.iter().map(|(frame, meta)| paged(frame, *meta)).collect();
    }
    let mut shells = used;
    let mut pages: Vec<_> = Vec::with_capacity(shells.len());
    for Paged(shell) in &mut shells {
        pages.extend(shell.page.take().into_iter().chain(shell.frags.drain(..)));
    }
    for ((Paged(shell), mut page), (frame, meta)) in shells.iter_mut().zip(pages).zip(traffic) {
        page[..HEADERS].copy_from_slice(&frame[..HEADERS]);
        (shell.page, shell.len, shell.meta) = (Some(page), frame.len(), *meta);
    }
    shells
}

/// Packets with room for 64 KiB. They cannot be taken apart again, so each round makes its own.
fn linear(traffic: &[(Vec<u8>, Meta)], _: Vec<Linear>) -> Vec<Linear> {
    let make = |(frame, meta): &(Vec<u8>, Meta)| {
        let mut bytes = Vec::with_capacity(70_000);
        bytes.extend_from_slice(frame);
        Linear::new(bytes, *meta)
    };
    traffic.iter().map(make).collect()
}

/// Segment `n` of the flow from port `flow`, with timestamps and valid checksums.
fn segment(flow: u16, n: u32) -> Vec<u8> {
    let mut frame = vec![0; HEADERS + PAYLOAD];
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0]);
    let (ip, tcp) = frame[14..].split_at_mut(20);
    ip.copy_from_slice(&[0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    ip[2..4].copy_from_slice(&(20 + 32 + PAYLOAD as u16).to_be_bytes());
    ip[4..6].copy_from_slice(&(n as u16).to_be_bytes());
    let check = !csum::fold(csum::sum(ip));
    ip[10..12].copy_from_slice(&check.to_be_bytes());
    tcp[..4].copy_from_slice(&[(flow >> 8) as u8, flow as u8, 0, 80]);
    tcp[4..8].copy_from_slice(&(n * PAYLOAD as u32).to_be_bytes());
    tcp[12..16].copy_from_slice(&[0x80, 0x10, 1, 0]);
    tcp[20..24].copy_from_slice(&[1, 1, 8, 10]);
    tcp[32..].fill(0x5a);
    let pseudo = csum::pseudo_v4([10, 0, 0, 1], [10, 0, 0, 2], 6, tcp.len() as u32);
    let check = !csum::fold(csum::add(pseudo, csum::sum(tcp)));
    tcp[16..18].copy_from_slice(&check.to_be_bytes());
    frame
}

/// `packets` frames of `flows` flows in turn, and what the device says of them.
fn traffic(packets: u32, flows: u32, csum: Csum) -> Vec<(Vec<u8>, Meta)> {
    (0..packets)
        .map(|n| {
            let (flow, n) = (n % flows, n / flows);
            let meta = Meta { hash: flow, csum, protocol: 0x0800, network: 14, ..Meta::default() };
            (segment(40_000 + flow as u16, n), meta)
        })
        .collect()
}

fn coalesce<P: Packet>(
    rules: Rules,
    rounds: u64,
    traffic: &[(Vec<u8>, Meta)],
    make: impl Fn(&[(Vec<u8>, Meta)], Vec<P>) -> Vec<P>,
) -> Duration {
    let mut config = Config::default();
    config.rules = rules;
    let mut gro = Gro::new(config);
    let mut spent = Duration::ZERO;
    let mut out: Vec<P> = Vec::with_capacity(traffic.len());
    let mut emptied: Vec<P> = Vec::with_capacity(traffic.len());
    for _ in 0..rounds {
        out.append(&mut emptied);
        let packets = make(traffic, std::mem::take(&mut out));
        out.reserve(packets.len());
        let start = Instant::now();
        let mut sink = |packet: P, _: Why| out.push(packet);
        for packet in packets {
            if let Outcome::Merged(Some(shell)) = gro.push(packet, 0, &mut sink) {
                emptied.push(shell);
            }
        }
        gro.flush(&mut sink);
        spent += start.elapsed();
        assert!(out.len() <= traffic.len().div_ceil(4).max(64), "{} packets came out", out.len());
    }
    spent
}

fn gro(c: &mut Criterion) {
    let vouched = Csum::Unnecessary { level: 0 };
    for (name, csum) in [("vouched", vouched), ("verified", Csum::None)] {
        let mut group = c.benchmark_group(format!("gro/{name}"));
        group.throughput(Throughput::Elements(PACKETS.into()));
        for flows in [1, 64] {
            let traffic = traffic(PACKETS, flows, csum);
            group.bench_function(BenchmarkId::new("pages", flows), |b| {
                b.iter_custom(|rounds| coalesce(Rules::KERNEL_6_18, rounds, &traffic, recycled));
            });
            group.bench_function(BenchmarkId::new("linear", flows), |b| {
                b.iter_custom(|rounds| coalesce(Rules::KERNEL_6_18, rounds, &traffic, linear));
            });
        }
    }
}

fn frag0(c: &mut Criterion) {
    let mut group = c.benchmark_group("gro/frag0");
    group.throughput(Throughput::Elements(PACKETS.into()));
    let traffic = traffic(PACKETS, 1, Csum::Unnecessary { level: 0 });
    for (name, frag0) in
        [("reset-always", Frag0::ResetAlways), ("length-checked", Frag0::LengthChecked)]
    {
        let rules = Rules { frag0, ..Rules::KERNEL_6_18 };
        group.bench_function(name, |b| {
            b.iter_custom(|rounds| coalesce(rules, rounds, &traffic, recycled));
        });
    }
}

fn many(c: &mut Criterion) {
    let held = Rules { bucket_bits: 0, bucket_depth: 1024, ..Rules::KERNEL_6_18 };
    for (name, rules) in [("held", held), ("relaxed", Rules::RELAXED)] {
        let mut group = c.benchmark_group(format!("gro/{name}"));
        for flows in [64, 250, 1000] {
            let traffic = traffic(4 * flows, flows, Csum::Unnecessary { level: 0 });
            group.throughput(Throughput::Elements(traffic.len() as u64));
            group.bench_function(BenchmarkId::new("pages", flows), |b| {
                b.iter_custom(|rounds| coalesce(rules, rounds, &traffic, recycled));
            });
        }
    }
}

criterion_group!(benches, gro, frag0, many);
criterion_main!(benches);

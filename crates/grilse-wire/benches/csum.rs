//! The Internet checksum, beside the crate `internet-checksum` and a plain loop on the same bytes.
//!
//! The loop adds 16-bit words into 32 bits, which compilers turn into vectors of whatever CPU they
//! build for: `RUSTFLAGS=-Ctarget-cpu=native` gives it what the others find out at run time.
//!
//! Pinned and undisturbed: `taskset -c 1 chrt -f 10 cargo bench -p grilse-wire --bench csum`.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use grilse_wire::{build, csum};

/// Little-endian words, of which no sum wraps in the lengths below.
fn plain_loop(bytes: &[u8]) -> u16 {
    let words = bytes.as_chunks().0;
    let mut sum: u32 = words.iter().map(|&word| u32::from(u16::from_le_bytes(word))).sum();
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    !(sum as u16).swap_bytes()
}

fn checksum(c: &mut Criterion) {
    let mut group = c.benchmark_group("csum");
    for len in [20, 64, 1500, 65_536] {
        let bytes = build::payload(0, len);
        group.throughput(Throughput::Bytes(len as u64));
        group.bench_with_input(BenchmarkId::new("grilse", len), &bytes[..], |b, bytes| {
            b.iter(|| !csum::fold(csum::sum(black_box(bytes))));
        });
        group.bench_with_input(BenchmarkId::new("loop", len), &bytes[..], |b, bytes| {
            b.iter(|| plain_loop(black_box(bytes)));
        });
        group.bench_with_input(
            BenchmarkId::new("internet-checksum", len),
            &bytes[..],
            |b, bytes| {
                b.iter(|| internet_checksum::checksum(black_box(bytes)));
            },
        );
    }
}

criterion_group!(benches, checksum);
criterion_main!(benches);

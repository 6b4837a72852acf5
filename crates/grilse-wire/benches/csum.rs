//! The Internet checksum, beside the crate `internet-checksum` on the same bytes.
//!
//! Pinned and undisturbed: `taskset -c 1 chrt -f 10 cargo bench -p grilse-wire --bench csum`.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use grilse_wire::{build, csum};

fn checksum(c: &mut Criterion) {
    let mut group = c.benchmark_group("csum");
    for len in [20, 64, 1500, 65_536] {
        let bytes = build::payload(0, len);
        group.throughput(Throughput::Bytes(len as u64));
        group.bench_with_input(BenchmarkId::new("grilse", len), &bytes[..], |b, bytes| {
            b.iter(|| !csum::fold(csum::sum(black_box(bytes))));
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

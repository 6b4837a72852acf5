//! The receive hash: the table alone, and dissecting a frame as well.
//!
//! Pinned and undisturbed: `taskset -c 1 chrt -f 10 cargo bench -p grilse-wire --bench hash`.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use grilse_wire::build::{Eth, Ipv4, Ipv6, Tcp, frame};
use grilse_wire::eth::{self, ethertype};
use grilse_wire::{dissect, toeplitz};

fn hash(c: &mut Criterion) {
    let table = &toeplitz::MICROSOFT;
    let v4 = frame(Eth::default(), Ipv4::default(), Tcp::default(), &[]);
    let v6 = frame(Eth::default(), Ipv6::default(), Tcp::default(), &[]);
    let mut group = c.benchmark_group("hash");
    for (name, frame, kind) in [("v4", &v4, ethertype::IPV4), ("v6", &v6, ethertype::IPV6)] {
        let flow = dissect::dissect(frame, eth::LEN, kind).expect("an IP packet");
        group.bench_function(format!("toeplitz-{name}"), |b| {
            b.iter(|| black_box(&flow).hash(table));
        });
        group.bench_function(format!("dissect-{name}"), |b| {
            b.iter(|| dissect::dissect(black_box(frame), eth::LEN, kind));
        });
        group.bench_function(format!("frame-{name}"), |b| {
            b.iter(|| dissect::hash(black_box(frame), eth::LEN, kind, table));
        });
    }
}

criterion_group!(benches, hash);
criterion_main!(benches);

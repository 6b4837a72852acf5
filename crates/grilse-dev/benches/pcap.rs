//! Reading and writing throughput, on the capture with the most packets in the repository.

use std::hint::black_box;
use std::io;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use grilse_dev::pcap::{Format, Packet, Reader, Writer};

const CAPTURE: &[u8] = include_bytes!("../../../captures/tcp4-bulk-16flows.pcap");

/// Copies a capture into another format.
fn copy(input: &[u8], format: Format, sink: impl io::Write) -> u64 {
    let mut reader = Reader::new(input).expect("a capture");
    let mut writer = Writer::new(sink, format);
    writer.interface(&reader.interfaces()[0]);
    while let Some(record) = reader.next().expect("a whole capture") {
        let packet = Packet {
            interface: record.interface,
            ticks: record.time.ticks,
            orig_len: record.orig_len,
            data: &[record.data],
            direction: None,
            comments: &[],
        };
        writer.write(&packet).expect("a sink that takes all");
    }
    writer.finish().expect("a sink that takes all")
}

fn read(input: &[u8]) -> u64 {
    let mut reader = Reader::new(input).expect("a capture");
    let mut bytes = 0;
    while let Some(record) = reader.next().expect("a whole capture") {
        bytes += black_box(&record).data.len() as u64;
    }
    bytes
}

fn throughput(c: &mut Criterion) {
    let mut pcapng = Vec::new();
    let records = copy(CAPTURE, Format::Pcapng, &mut pcapng);
    let mut group = c.benchmark_group("pcap");
    group.throughput(Throughput::Elements(records));
    group.bench_function("read/pcap", |b| b.iter(|| read(black_box(CAPTURE))));
    group.bench_function("read/pcapng", |b| b.iter(|| read(black_box(&pcapng))));
    for (name, format) in [("write/pcap", Format::Pcap), ("write/pcapng", Format::Pcapng)] {
        group.bench_function(name, |b| {
            b.iter(|| copy(black_box(CAPTURE), format, io::sink()));
        });
    }
    group.finish();
}

criterion_group!(benches, throughput);
criterion_main!(benches);

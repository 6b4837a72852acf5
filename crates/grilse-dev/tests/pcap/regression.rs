//! One test per fault that others had, named and told.

use grilse_dev::pcap::{Format, Packet, Reader, Resolution, Timestamp, Writer};
use proptest::prelude::*;

use crate::build::*;

/// Half a second past a full second: exact at every resolution below.
const SECONDS: u64 = 1_796_000_000;
const INSTANT_NS: i64 = 1_796_000_000_500_000_000;

/// Interfaces with `if_tsresol` 9, none, 0x8a, and 6 with an offset of an hour, and one packet on
/// each, all at the same instant.
fn section_of_four(o: Order) -> Vec<u8> {
    let hour = [option(o, 9, &[6]), option(o, 14, &o.i64(3600)), option(o, 0, b"")].concat();
    let ticks = [
        SECONDS * 1_000_000_000 + 500_000_000,
        SECONDS * 1_000_000 + 500_000,
        SECONDS * 1024 + 512,
        (SECONDS - 3600) * 1_000_000 + 500_000,
    ];
    let mut section = section(o);
    section.extend(interface(o, 1, 0, &option(o, 9, &[9])));
    section.extend(interface(o, 1, 0, b""));
    section.extend(interface(o, 1, 0, &option(o, 9, &[0x8a])));
    section.extend(interface(o, 1, 0, &hour));
    for (id, ticks) in ticks.into_iter().enumerate() {
        section.extend(enhanced(o, id as u32, ticks, 4, b"same", b""));
    }
    section
}

/// BL-28: time resolution and interfaces of pcapng. Readers masked the high bit of `if_tsresol`
/// wrongly, read the first interface only, or took nanoseconds for the default.
#[test]
fn bl_28_equal_instants_at_every_resolution() {
    for (a, b) in [(ORDERS[0], ORDERS[1]), (ORDERS[1], ORDERS[0])] {
        // The second section numbers its interfaces from 0 again.
        let file = [section_of_four(a), section_of_four(b)].concat();
        let whole = read(file.as_slice());
        assert!(whole.error.is_none());
        assert_eq!(whole.records.len(), 8);
        for (number, record) in whole.records.iter().enumerate() {
            assert_eq!(record.interface, number as u32);
            assert_eq!(record.ns, INSTANT_NS, "record {number}");
        }

        let mut written = Vec::new();
        let mut writer = Writer::new(&mut written, Format::Pcapng);
        for interface in &whole.interfaces {
            writer.interface(interface);
        }
        for record in &whole.records {
            let packet = Packet {
                interface: record.interface,
                ticks: record.ticks,
                orig_len: record.orig_len,
                data: &[&record.data],
                direction: None,
                comments: &[],
            };
            writer.write(&packet).expect("a Vec takes all");
        }
        writer.finish().expect("a Vec takes all");
        drop(writer);
        let again = read(written.as_slice());
        for (before, after) in whole.records.iter().zip(&again.records) {
            assert_eq!((before.interface, before.ticks), (after.interface, after.ticks));
        }
        for (before, after) in whole.interfaces.iter().zip(&again.interfaces) {
            assert_eq!(before.resolution, after.resolution);
            assert_eq!(before.offset_s, after.offset_s);
        }
    }
}

/// BL-28, the classic half: both magics in both orders state the same instant.
#[test]
fn bl_28_classic_magics() {
    for order in ORDERS {
        for (magic, half) in [(MICRO, 500_000), (NANO, 500_000_000)] {
            let record = classic_record(order, SECONDS as u32, half, 4, b"same");
            let file = [classic_header(order, magic, 1), record].concat();
            let mut reader = Reader::new(file.as_slice()).expect("a capture");
            let record = reader.next().expect("whole").expect("a record");
            assert_eq!(record.time.ns(), INSTANT_NS);
        }
    }
}

proptest! {
    /// The dull twin of the conversion: long division, digit by digit, in one base.
    #[test]
    fn nanoseconds_are_long_division(ticks: u64, byte: u8, offset_s in -4_000_000_000i64..4_000_000_000) {
        let (base, exponent) = (if byte & 0x80 == 0 { 10u128 } else { 2 }, byte & 0x7f);
        // ticks * 10^9 / base^exponent, rounded down at every step: floors of floors are floors.
        let ns = (0..exponent).fold(u128::from(ticks) * 1_000_000_000, |ns, _| ns / base);
        let exact = ns as i128 + i128::from(offset_s) * 1_000_000_000;
        let expected = exact.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        let resolution = Resolution::from_tsresol(byte);
        prop_assert_eq!(Timestamp { ticks, resolution, offset_s }.ns(), expected);
    }
}

//! Files that are cut, that lie, or that are no captures.

use std::io::{self, Read};

use grilse_dev::pcap::{Damage, Error, MAX_BLOCK};
use proptest::prelude::*;

use crate::build::*;
use crate::read::varied;

fn classic() -> Vec<u8> {
    [
        classic_header(Order::Little, MICRO, 1),
        classic_record(Order::Little, 1, 2, 60, &[3; 60]),
        classic_record(Order::Little, 1, 3, 0, b""),
        classic_record(Order::Little, 1, 4, 9, &[4; 9]),
    ]
    .concat()
}

/// The places at which a file may end, and how many records stand before each.
fn ends(file: &[u8]) -> Vec<(usize, usize)> {
    let mut ends = Vec::new();
    if file[..4] == MICRO.to_le_bytes() {
        let mut at = 24;
        while at <= file.len() {
            ends.push((at, ends.len()));
            let Some(len) = file.get(at + 8..at + 12) else { break };
            at += 16 + u32::from_le_bytes(len.try_into().unwrap()) as usize;
        }
        return ends;
    }
    let (mut at, mut records, mut order) = (0, 0, Order::Little);
    while at < file.len() {
        let word = |at: usize| -> [u8; 4] { file[at..][..4].try_into().unwrap() };
        if word(at) == [0x0a, 0x0d, 0x0d, 0x0a] {
            order = if word(at + 8)[0] == 0x1a { Order::Big } else { Order::Little };
        }
        let number = |at: usize| match order {
            Order::Little => u32::from_le_bytes(word(at)),
            Order::Big => u32::from_be_bytes(word(at)),
        };
        records += usize::from([2, 3, 6].contains(&number(at)));
        at += number(at + 4) as usize;
        ends.push((at, records));
    }
    ends
}

#[test]
fn a_file_cut_at_every_byte_gives_all_before_the_cut() {
    // Of the long packet every 997th byte is enough.
    let big_first = varied(Order::Big, Order::Little);
    for file in [classic(), varied(Order::Little, Order::Big), big_first] {
        let all = read(file.as_slice()).records;
        let ends = ends(&file);
        assert_eq!(ends.last(), Some(&(file.len(), all.len())));
        let cuts = (0..file.len()).filter(|cut| *cut < 2000 || cut % 997 == 0);
        for cut in cuts.chain([file.len() - 1]) {
            let whole = read(&file[..cut]);
            let before = ends.iter().rev().find(|(end, _)| *end <= cut);
            let (start, records) = before.copied().unwrap_or((0, 0));
            assert_eq!(whole.records, all[..records], "cut at {cut}");
            match whole.error {
                None => assert_eq!(start, cut, "cut at {cut}"),
                Some(Error::NotACapture) => assert!(cut < 4, "cut at {cut}"),
                Some(Error::Truncated { offset, record, missing }) => {
                    assert_eq!((offset, record), (start as u64, records as u64), "cut at {cut}");
                    assert!(cut + missing as usize <= file.len() && missing > 0, "cut at {cut}");
                }
                other => panic!("cut at {cut}: {other:?}"),
            }
        }
    }
}

#[test]
fn what_is_no_capture() {
    for file in [&b""[..], b"\xd4", b"GET / HTTP/1.1\r\n", b"\x0a\x0d\x0d\x0a0123456789abcdef"] {
        assert!(matches!(read(file).error, Some(Error::NotACapture)), "{file:?}");
    }
}

/// Reads a section that holds one good packet and then these bytes; returns the damage.
fn damage(order: Order, tail: &[u8]) -> Damage {
    let good =
        [section(order), interface(order, 1, 0, b""), enhanced(order, 0, 1, 4, b"good", b"")];
    let good = good.concat();
    let whole = read([&good, tail].concat().as_slice());
    assert_eq!(whole.records.len(), 1);
    match whole.error {
        Some(Error::Damaged { offset, record: 1, what }) => {
            assert_eq!(offset, good.len() as u64);
            what
        }
        other => panic!("expected damage: {other:?}"),
    }
}

/// The block with its stated captured length changed.
fn captured(order: Order, captured: u32) -> Vec<u8> {
    let mut block = enhanced(order, 0, 1, 4, b"four", b"");
    block[20..24].copy_from_slice(&order.u32(captured));
    block
}

#[test]
fn every_lie_has_a_name() {
    for o in ORDERS {
        let lengths = |front: u32, behind: u32| {
            [o.u32(9), o.u32(front), o.u32(0), o.u32(0), o.u32(behind), vec![0; 8]].concat()
        };
        for len in [0, 4, 11, 13, 0xffff_ffff] {
            assert_eq!(damage(o, &lengths(len, len)), Damage::BlockLength(len));
        }
        assert_eq!(damage(o, &lengths(20, 24)), Damage::TrailingLength { front: 20, behind: 24 });
        // Too short for their fixed fields.
        for (kind, body) in [(1, 4), (2, 16), (6, 16), (3, 0), (0x0a0d0d0a, 12)] {
            let mut body = vec![0; body];
            if kind == 0x0a0d0d0a {
                body[..4].copy_from_slice(&o.u32(0x1a2b3c4d));
            }
            let len = body.len() as u32 + 12;
            assert_eq!(damage(o, &block(o, kind, &body)), Damage::BlockLength(len));
        }
        assert_eq!(damage(o, &captured(o, 5)), Damage::CapturedLength { captured: 5, room: 4 });
        assert_eq!(
            damage(o, &simple(o, 0xffff_ffff, b"four")),
            Damage::CapturedLength { captured: 0xffff_ffff, room: 4 }
        );
        assert_eq!(
            damage(o, &enhanced(o, 1, 1, 0, b"", b"")),
            Damage::UnknownInterface { interface: 1, described: 1 }
        );
        let new_section = section(o).len();
        let whole = read([section(o), simple(o, 0, b"")].concat().as_slice());
        assert!(matches!(
            whole.error,
            Some(Error::Damaged {
                offset,
                what: Damage::UnknownInterface { interface: 0, described: 0 },
                ..
            }) if offset == new_section as u64
        ));
        let mut version = section(o);
        version[12..14].copy_from_slice(&o.u16(2));
        assert_eq!(damage(o, &version), Damage::Version { major: 2, minor: 0 });
        let mut magic = section(o);
        magic[8..12].copy_from_slice(b"nope");
        assert_eq!(damage(o, &magic), Damage::ByteOrder(*b"nope"));
        let mut beyond = option(o, 1, b"four");
        beyond[2..4].copy_from_slice(&o.u16(5));
        let lie = Damage::OptionLength { code: 1, len: 5, room: 4 };
        assert_eq!(damage(o, &enhanced(o, 0, 1, 0, b"", &beyond)), lie);
        assert_eq!(damage(o, &interface(o, 1, 0, &beyond)), lie);
        for (code, value) in [(9, &b"99"[..]), (14, b"1234")] {
            let len = value.len() as u16;
            let what = Damage::OptionSize { code, len };
            assert_eq!(damage(o, &interface(o, 1, 0, &option(o, code, value))), what);
        }
    }
}

#[test]
fn a_classic_file_of_another_version() {
    let mut file = classic();
    file[6] = 3;
    let what = Damage::Version { major: 2, minor: 3 };
    assert!(matches!(
        read(file.as_slice()).error,
        Some(Error::Damaged { offset: 0, record: 0, what: found }) if found == what
    ));
}

#[test]
fn lengths_beyond_the_limit() {
    let over = MAX_BLOCK + 4;
    let header = classic_header(Order::Little, MICRO, 1);
    let mut record = classic_record(Order::Little, 0, 0, 0, b"");
    record[8..12].copy_from_slice(&over.to_le_bytes());
    let block = [6u32.to_le_bytes(), over.to_le_bytes(), [0; 4], [0; 4]].concat();
    for (start, tail) in [(header, record), (section(Order::Little), block)] {
        let whole = read([&start[..], &tail].concat().as_slice());
        assert!(matches!(
            whole.error,
            Some(Error::TooLong { offset, record: 0, len })
                if offset == start.len() as u64 && len == over
        ));
    }
}

#[test]
fn the_longest_record_is_read() {
    let data = vec![7; MAX_BLOCK as usize];
    let file = [classic_header(Order::Big, MICRO, 1), classic_record(Order::Big, 0, 0, 0, &data)];
    let whole = read(file.concat().as_slice());
    assert!(whole.error.is_none());
    assert!(whole.records[0].data == data);
}

#[test]
fn interfaces_without_end_are_refused() {
    let one = interface(Order::Little, 1, 0, &option(Order::Little, 2, &[b'x'; 60_000]));
    let mut file = section(Order::Little);
    for _ in 0..300 {
        file.extend_from_slice(&one);
    }
    let whole = read(file.as_slice());
    assert!(whole.interfaces.len() < 280);
    let what = Damage::TooManyInterfaces;
    assert!(matches!(whole.error, Some(Error::Damaged { what: found, .. }) if found == what));
}

#[test]
fn a_directory() {
    let folder = std::fs::File::open(env!("CARGO_MANIFEST_DIR")).expect("Unix opens it");
    let error = read(folder).error;
    assert!(matches!(error, Some(Error::Io(error)) if error.kind() == io::ErrorKind::IsADirectory));
}

#[test]
fn a_source_that_fails() {
    struct Failing<'a>(&'a [u8]);
    impl Read for Failing<'_> {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            match self.0.read(buf)? {
                0 => Err(io::Error::other("unplugged")),
                n => Ok(n),
            }
        }
    }
    let whole = read(Failing(&classic()));
    assert_eq!(whole.records.len(), 3);
    assert!(matches!(whole.error, Some(Error::Io(error)) if error.to_string() == "unplugged"));
}

proptest! {
    #[test]
    fn garbage_never_panics(start in 0usize..5, mut bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let starts = [
            vec![],
            classic_header(Order::Little, MICRO, 1),
            classic_header(Order::Big, NANO, 1),
            [section(Order::Little), interface(Order::Little, 1, 0, b"")].concat(),
            [section(Order::Big), interface(Order::Big, 1, 0, b"")].concat(),
        ];
        let mut file = starts[start].clone();
        file.append(&mut bytes);
        read(file.as_slice());
    }

    /// Small numbers in the wrong place get further than noise does.
    #[test]
    fn changed_bytes_never_panic(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), 0u8..40), 1..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut file = varied(Order::Little, Order::Big);
        // Without the tail of the long packet, so that most changes hit a field.
        file.truncate(700);
        for (place, value) in changes {
            let place = place.index(file.len());
            file[place] = value;
        }
        file.truncate(cut.index(file.len()) + 1);
        read(file.as_slice());
    }
}

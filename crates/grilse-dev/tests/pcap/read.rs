//! Whole files in every shape.

use std::io::{self, ErrorKind, Read};

use grilse_dev::pcap::{Format, Reader, Resolution, link_type};

use crate::build::*;

/// Gives one byte a call, and is interrupted before each.
struct Dribble<'a> {
    rest: &'a [u8],
    interrupted: bool,
}

impl Read for Dribble<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.interrupted = !self.interrupted;
        if self.interrupted {
            return Err(ErrorKind::Interrupted.into());
        }
        let len = self.rest.len().min(1).min(buf.len());
        self.rest.read(&mut buf[..len])
    }
}

/// A file with all that pcapng has: two sections in different orders, every kind of packet block,
/// blocks that hold none, options with and without an end mark.
pub(crate) fn varied(first: Order, second: Order) -> Vec<u8> {
    let (a, b) = (first, second);
    let options = [
        option(a, 2, b"eth0"),
        option(a, 3, b"uplink"),
        option(a, 9, &[9]),
        option(a, 14, &a.i64(-60)),
        option(a, 0, b""),
    ];
    let comments = [option(a, 1, b"one"), option(a, 2, &a.u32(1)), option(a, 1, b"two!")];
    let mut long = vec![0x5a; 300_000];
    long[299_999] = 1;
    [
        section(a),
        block(a, 0xbad, b"a custom block"),
        interface(a, 1, 96, &options.concat()),
        enhanced(a, 0, 5_000_000_000, 1500, &[1; 96], &comments.concat()),
        simple(a, 1500, &[2; 96]),
        block(a, 5, &[0; 12]),
        interface(a, 101, 0, b""),
        obsolete(a, 1, 7, 1 << 40, 3, &[3; 3]),
        enhanced(a, 1, 8, 0, b"", b""),
        section(b),
        interface(b, 113, 0, b""),
        simple(b, 5, &[4; 5]),
        enhanced(b, 0, 9, 300_000, &long, &[option(b, 1, b""), option(b, 0, b"")].concat()),
    ]
    .concat()
}

#[test]
fn classic_in_both_orders_and_resolutions() {
    for order in ORDERS {
        for (magic, resolution) in [(MICRO, Resolution::MICRO), (NANO, Resolution::NANO)] {
            // The upper bits of the link type state a frame check sequence of 4 bytes.
            let file = [
                classic_header(order, magic, 0x4400_0001),
                classic_record(order, 7, 12, 1514, &[1; 60]),
                classic_record(order, u32::MAX, 999_999, 0, b""),
            ];
            let whole = read(file.concat().as_slice());
            assert!(whole.error.is_none());
            assert_eq!(whole.interfaces.len(), 1);
            let interface = &whole.interfaces[0];
            assert_eq!(interface.link_type, link_type::ETHERNET);
            assert_eq!((interface.resolution, interface.snaplen), (resolution, 65535));
            let [first, last] = &whole.records[..] else { panic!("two records") };
            let (per_second, tick_ns) =
                if magic == MICRO { (1_000_000, 1000) } else { (1_000_000_000, 1) };
            assert_eq!(first.ticks, 7 * per_second + 12);
            assert_eq!(first.ns, 7_000_000_000 + 12 * tick_ns);
            assert_eq!((first.index, first.offset, first.orig_len), (0, 24, 1514));
            assert_eq!(first.data, [1; 60]);
            assert_eq!(last.ticks, u64::from(u32::MAX) * per_second + 999_999);
            assert_eq!((last.index, last.offset, last.data.len()), (1, 24 + 16 + 60, 0));
        }
    }
}

#[test]
fn pcapng_with_everything() {
    for (a, b) in [(ORDERS[0], ORDERS[1]), (ORDERS[1], ORDERS[0])] {
        let file = varied(a, b);
        let whole = read(file.as_slice());
        assert!(whole.error.is_none(), "{:?}", whole.error);
        let links: Vec<_> = whole.interfaces.iter().map(|interface| interface.link_type).collect();
        assert_eq!(links, [link_type::ETHERNET, link_type::RAW, link_type::LINUX_SLL]);
        let eth0 = &whole.interfaces[0];
        assert_eq!(eth0.name.as_deref(), Some(&b"eth0"[..]));
        assert_eq!(eth0.description.as_deref(), Some(&b"uplink"[..]));
        assert_eq!((eth0.resolution, eth0.offset_s), (Resolution::NANO, -60));
        assert_eq!(whole.interfaces[1].resolution, Resolution::MICRO);

        let records = &whole.records;
        let shape: Vec<_> =
            records.iter().map(|r| (r.interface, r.ticks, r.orig_len, r.data.len())).collect();
        assert_eq!(
            shape,
            [
                (0, 5_000_000_000, 1500, 96),
                (0, 0, 1500, 96),
                (1, 1 << 40, 3, 3),
                (1, 8, 0, 0),
                (2, 0, 5, 5),
                (2, 9, 300_000, 300_000)
            ]
        );
        assert_eq!(records[0].ns, -55_000_000_000);
        assert_eq!(records[0].comments, [&b"one"[..], b"two!"]);
        assert_eq!(records[5].comments, [b""]);
        for (number, record) in records.iter().enumerate() {
            assert_eq!(record.index, number as u64);
            let kind = &file[record.offset as usize..][..4];
            assert!([6, 3, 2].iter().any(|k| kind == a.u32(*k) || kind == b.u32(*k)));
        }
    }
}

#[test]
fn one_byte_at_a_time_gives_the_same() {
    let classic = [
        classic_header(Order::Big, NANO, 1),
        classic_record(Order::Big, 1, 2, 3, &[4; 5]),
        classic_record(Order::Big, 6, 7, 8, &[9; 1514]),
    ];
    for file in [varied(Order::Big, Order::Little), classic.concat()] {
        let at_once = read(file.as_slice());
        let dribbled = read(Dribble { rest: &file, interrupted: false });
        assert!(dribbled.error.is_none());
        assert_eq!(dribbled.records, at_once.records);
        assert_eq!(dribbled.interfaces, at_once.interfaces);
    }
}

#[test]
fn the_captures_of_the_repository() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../captures");
    let mut files = 0;
    for entry in std::fs::read_dir(folder).expect("the folder") {
        let path = entry.expect("an entry").path();
        if Format::of_path(&path) != Some(Format::Pcap) {
            continue;
        }
        files += 1;
        let file = std::fs::read(&path).expect("a readable file");
        // The dull twin: little endian, microseconds, nothing wrong.
        let mut expected = Vec::new();
        let mut at = 24;
        while at < file.len() {
            let field = |n: usize| u32::from_le_bytes(file[at + 4 * n..][..4].try_into().unwrap());
            let data = file[at + 16..][..field(2) as usize].to_vec();
            expected.push((field(0), field(1), field(3), data));
            at += 16 + field(2) as usize;
        }
        let whole = read(file.as_slice());
        assert!(whole.error.is_none());
        let read: Vec<_> = whole
            .records
            .into_iter()
            .map(|r| {
                let (seconds, micros) = (r.ticks / 1_000_000, r.ticks % 1_000_000);
                (seconds as u32, micros as u32, r.orig_len, r.data)
            })
            .collect();
        assert!(!read.is_empty());
        assert_eq!(read, expected, "{}", path.display());
    }
    assert!(files >= 4);
}

#[test]
fn states_format_and_place() {
    let file = varied(Order::Little, Order::Big);
    let mut reader = Reader::new(file.as_slice()).expect("a capture");
    assert_eq!(reader.format(), Format::Pcapng);
    assert!(reader.interfaces().is_empty(), "none is described in front of the first block");
    while reader.next().expect("whole").is_some() {}
    assert_eq!(reader.offset(), file.len() as u64);
}

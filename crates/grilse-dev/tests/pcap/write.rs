//! What is written can be read, also by others' rules, and also when the sink gives out.

use std::io::{self, Write};
use std::path::Path;
use std::process::Command;
use std::{env, fs};

use grilse_dev::pcap::{
    Error, FileWriter, Format, Interface, Packet, Resolution, WriteError, Writer, link_type,
};
use proptest::prelude::*;

use crate::build::*;
use crate::read::varied;

/// Writes all that was read, each packet in two parts.
fn copy(whole: &Whole, format: Format) -> Vec<u8> {
    let mut file = Vec::new();
    let mut writer = Writer::new(&mut file, format);
    for interface in &whole.interfaces {
        writer.interface(interface);
    }
    for record in &whole.records {
        let comments: Vec<_> = record.comments.iter().map(Vec::as_slice).collect();
        let (front, back) = record.data.split_at(record.data.len() / 3);
        let packet = Packet {
            interface: record.interface,
            ticks: record.ticks,
            orig_len: record.orig_len,
            data: &[front, back],
            direction: None,
            comments: &comments,
        };
        writer.write(&packet).expect("a Vec takes all");
    }
    assert_eq!(writer.finish().expect("a Vec takes all"), whole.records.len() as u64);
    drop(writer);
    file
}

/// All of a record but its place in the file.
fn content(whole: &Whole) -> Vec<Owned> {
    whole.records.iter().map(|record| Owned { offset: 0, ..record.clone() }).collect()
}

/// The interfaces but for the snap lengths, which are raised.
fn described(whole: &Whole) -> Vec<Interface> {
    whole.interfaces.iter().map(|i| Interface { snaplen: 0, ..i.clone() }).collect()
}

#[test]
fn everything_of_pcapng_comes_back() {
    let whole = read(varied(Order::Big, Order::Little).as_slice());
    let again = read(copy(&whole, Format::Pcapng).as_slice());
    assert!(again.error.is_none(), "{:?}", again.error);
    assert_eq!(content(&again), content(&whole));
    assert_eq!(described(&again), described(&whole));
    assert!(again.interfaces.iter().all(|interface| interface.snaplen >= 262_144));
}

fn bytes(most: usize) -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..most)
}

fn any_interface() -> impl Strategy<Value = (u16, u8, i64, Option<Vec<u8>>, Option<Vec<u8>>)> {
    (any::<u16>(), any::<u8>(), any::<i64>(), option_of(bytes(9)), option_of(bytes(30)))
}

fn option_of(bytes: impl Strategy<Value = Vec<u8>>) -> impl Strategy<Value = Option<Vec<u8>>> {
    proptest::option::of(bytes)
}

type AnyPacket = (prop::sample::Index, u64, u32, Vec<u8>, Vec<Vec<u8>>);

fn any_packet() -> impl Strategy<Value = AnyPacket> {
    let comments = proptest::collection::vec(bytes(20), 0..4);
    (any::<prop::sample::Index>(), any::<u64>(), any::<u32>(), bytes(100), comments)
}

proptest! {
    /// read(write(read(x))) = read(x), and read(x) = x, with x in both byte orders.
    #[test]
    fn pcapng_round_trip(
        big: bool,
        interfaces in proptest::collection::vec(any_interface(), 1..5),
        packets in proptest::collection::vec(any_packet(), 0..20),
    ) {
        let o = ORDERS[usize::from(big)];
        let mut file = section(o);
        for (link, tsresol, offset_s, name, description) in &interfaces {
            let mut options = vec![option(o, 9, &[*tsresol]), option(o, 14, &o.i64(*offset_s))];
            options.extend(name.iter().map(|name| option(o, 2, name)));
            options.extend(description.iter().map(|description| option(o, 3, description)));
            file.extend(interface(o, *link, 0, &options.concat()));
        }
        for (index, ticks, orig, data, comments) in &packets {
            let options: Vec<_> = comments.iter().flat_map(|c| option(o, 1, c)).collect();
            let id = index.index(interfaces.len()) as u32;
            file.extend(enhanced(o, id, *ticks, *orig, data, &options));
        }

        let whole = read(file.as_slice());
        prop_assert!(whole.error.is_none());
        prop_assert_eq!(whole.interfaces.len(), interfaces.len());
        for (read, (link, tsresol, offset_s, name, description)) in whole.interfaces.iter().zip(&interfaces) {
            prop_assert_eq!(read.link_type, *link);
            prop_assert_eq!(read.resolution.tsresol(), *tsresol);
            prop_assert_eq!(read.offset_s, *offset_s);
            prop_assert_eq!(&read.name, name);
            prop_assert_eq!(&read.description, description);
        }
        prop_assert_eq!(whole.records.len(), packets.len());
        for (read, (index, ticks, orig, data, comments)) in whole.records.iter().zip(&packets) {
            prop_assert_eq!(read.interface, index.index(interfaces.len()) as u32);
            prop_assert_eq!((read.ticks, read.orig_len), (*ticks, *orig));
            prop_assert_eq!(&read.data, data);
            prop_assert_eq!(&read.comments, comments);
        }

        let again = read(copy(&whole, Format::Pcapng).as_slice());
        prop_assert!(again.error.is_none());
        prop_assert_eq!(content(&again), content(&whole));
        prop_assert_eq!(described(&again), described(&whole));
    }

    #[test]
    fn classic_round_trip(
        big: bool,
        nano: bool,
        link: u16,
        packets in proptest::collection::vec((any::<u32>(), 0u32..1_000_000, any::<u32>(), bytes(100)), 1..20),
    ) {
        let o = ORDERS[usize::from(big)];
        let mut file = classic_header(o, if nano { NANO } else { MICRO }, link.into());
        for (seconds, fraction, orig, data) in &packets {
            file.extend(classic_record(o, *seconds, *fraction, *orig, data));
        }
        let whole = read(file.as_slice());
        prop_assert!(whole.error.is_none());
        let copied = copy(&whole, Format::Pcap);
        let again = read(copied.as_slice());
        prop_assert!(again.error.is_none());
        prop_assert_eq!(&again.records, &whole.records);
        prop_assert_eq!(described(&again), described(&whole));
        if !big {
            // Little endian is what is written: all but the snap length is the same.
            prop_assert_eq!(&copied[..16], &file[..16]);
            prop_assert_eq!(&copied[20..], &file[20..]);
        }
    }
}

fn ethernet(resolution: Resolution) -> Interface {
    Interface::new(link_type::ETHERNET, resolution)
}

fn packet(interface: u32, ticks: u64) -> Packet<'static> {
    Packet {
        interface,
        ticks,
        orig_len: 4,
        direction: None,
        data: &[b"four"],
        comments: &[b"lost in pcap"],
    }
}

#[test]
fn a_classic_file_refuses_what_it_cannot_keep() {
    let mut file = Vec::new();
    let mut writer = Writer::new(&mut file, Format::Pcap);
    let micro = writer.interface(&ethernet(Resolution::MICRO));
    let milli = writer.interface(&ethernet(Resolution::from_tsresol(3)));
    let nano = writer.interface(&ethernet(Resolution::NANO));
    let binary = writer.interface(&ethernet(Resolution::from_tsresol(0x8a)));
    let raw = writer.interface(&Interface::new(link_type::RAW, Resolution::MICRO));
    let early = writer.interface(&Interface { offset_s: -2, ..ethernet(Resolution::MICRO) });
    writer.write(&packet(micro, 1_000_001)).expect("decides the file");
    writer.write(&packet(milli, 1_002)).expect("a coarser time fits");
    writer.write(&packet(early, 3_000_003)).expect("an offset is added");
    for unfit in [nano, binary] {
        let result = writer.write(&packet(unfit, 1));
        assert!(matches!(result, Err(WriteError::Time { file: Resolution::MICRO, .. })));
    }
    for late in [packet(early, 1_999_999), packet(micro, 1_000_000 << 32)] {
        assert!(matches!(writer.write(&late), Err(WriteError::Time { .. })));
    }
    let result = writer.write(&packet(raw, 1));
    assert!(matches!(
        result,
        Err(WriteError::LinkType { file: link_type::ETHERNET, packet: link_type::RAW })
    ));
    let result = writer.write(&packet(9, 1));
    assert!(matches!(result, Err(WriteError::UnknownInterface(9))));
    assert_eq!(writer.finish().expect("goes on after a refusal"), 3);
    drop(writer);
    let whole = read(file.as_slice());
    let times: Vec<_> = whole.records.iter().map(|record| record.ticks).collect();
    assert_eq!(times, [1_000_001, 1_002_000, 1_000_003]);
}

#[test]
fn too_long_to_be_read_is_not_written() {
    let long = vec![0; (16 << 20) + 1];
    let parts = [&long[..]];
    for format in [Format::Pcap, Format::Pcapng] {
        let mut file = Vec::new();
        let mut writer = Writer::new(&mut file, format);
        let id = writer.interface(&ethernet(Resolution::NANO));
        let result = writer.write(&Packet { data: &parts, comments: &[], ..packet(id, 0) });
        assert!(matches!(result, Err(WriteError::TooLong { .. })));
        if format == Format::Pcapng {
            let comment = &long[..65_536];
            let result = writer.write(&Packet { comments: &[comment], ..packet(id, 0) });
            assert!(matches!(result, Err(WriteError::CommentTooLong { len: 65_536 })));
        }
        writer.finish().expect("a Vec takes all");
        drop(writer);
        let whole = read(file.as_slice());
        assert!(whole.error.is_none() && whole.records.is_empty());
    }
}

#[test]
fn a_file_without_packets_is_a_capture() {
    for format in [Format::Pcap, Format::Pcapng] {
        let mut file = Vec::new();
        Writer::new(&mut file, format).finish().expect("a Vec takes all");
        let whole = read(file.as_slice());
        assert!(whole.error.is_none() && whole.records.is_empty());
    }
}

#[test]
fn an_endless_name_is_cut() {
    let name = Some(vec![b'x'; 70_000]);
    let mut file = Vec::new();
    let mut writer = Writer::new(&mut file, Format::Pcapng);
    writer.interface(&Interface { name, ..ethernet(Resolution::NANO) });
    drop(writer);
    let whole = read(file.as_slice());
    assert!(whole.error.is_none());
    assert_eq!(whole.interfaces[0].name.as_ref().map(Vec::len), Some(65_535));
}

/// Takes so many bytes, at most 1000 a call, and then has no more room.
struct Narrow {
    taken: Vec<u8>,
    room: usize,
}

impl Write for Narrow {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = bytes.len().min(1000).min(self.room - self.taken.len());
        if len == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.taken.extend_from_slice(&bytes[..len]);
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_sink_is_told_in_whole_records() {
    const DATA: [u8; 1400] = [5; 1400];
    for format in [Format::Pcap, Format::Pcapng] {
        // Around the first hand-over of 64 KiB and before it.
        for room in (0..300).chain((60_000..200_000).step_by(1237)) {
            let mut sink = Narrow { taken: Vec::new(), room };
            let mut writer = Writer::new(&mut sink, format);
            let id = writer.interface(&ethernet(Resolution::NANO));
            let full = Packet { data: &[&DATA], comments: &[], ..packet(id, 7) };
            let told = loop {
                match writer.write(&full) {
                    Ok(()) => {}
                    Err(WriteError::Io { source, records }) => {
                        assert_eq!(source.kind(), io::ErrorKind::StorageFull);
                        break records;
                    }
                    Err(other) => panic!("{other}"),
                }
            };
            assert_eq!(writer.records(), told);
            let again = writer.finish();
            assert!(matches!(again, Err(WriteError::Io { records, .. }) if records == told));
            drop(writer);
            assert_eq!(sink.taken.len(), room, "nothing is tried behind a failure");
            let whole = read(sink.taken.as_slice());
            assert_eq!(whole.records.len() as u64, told, "{format:?} in {room} bytes");
            let end = whole.error;
            assert!(matches!(end, None | Some(Error::Truncated { .. } | Error::NotACapture)));
        }
    }
}

#[test]
fn dropping_hands_on_what_is_gathered() {
    let mut file = Vec::new();
    let mut writer = Writer::new(&mut file, Format::Pcap);
    let id = writer.interface(&ethernet(Resolution::NANO));
    writer.write(&packet(id, 7)).expect("a Vec takes all");
    drop(writer);
    assert_eq!(read(file.as_slice()).records.len(), 1);
}

#[test]
fn a_full_device() {
    let mut writer =
        FileWriter::create(Path::new("/dev/full"), Format::Pcapng).expect("every Linux has it");
    let id = writer.interface(&ethernet(Resolution::NANO));
    writer.write(&packet(id, 1)).expect("is gathered");
    let result = writer.finish();
    assert!(matches!(
        result,
        Err(WriteError::Io { source, records: 0 }) if source.kind() == io::ErrorKind::StorageFull
    ));
}

/// Names the file that the copy of this program below is to fill.
const FILL: &str = "GRILSE_TEST_FILL";

/// Runs this test again in a shell that limits the size of files, which the file system then
/// refuses to exceed in the midst of a record.
#[test]
fn a_full_disk_leaves_a_whole_capture() {
    if let Some(path) = env::var_os(FILL) {
        return fill(Path::new(&path));
    }
    for suffix in ["pcap", "pcapng"] {
        let name = format!("grilse-full-disk-{}.{suffix}", std::process::id());
        let path = env::temp_dir().join(name);
        let script = "trap '' XFSZ; ulimit -f 401; exec \"$0\" --exact \"$1\"";
        let output = Command::new("sh")
            .args(["-c", script])
            .arg(env::current_exe().expect("this program"))
            .arg("write::a_full_disk_leaves_a_whole_capture")
            .env(FILL, &path)
            .output()
            .expect("a shell");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        let file = fs::read(&path).expect("what was written");
        fs::remove_file(&path).expect("it is there");
        // Units of 512 bytes by POSIX, of 1024 in some shells.
        let limit = if file.len() > 401 * 512 { 401 * 1024 } else { 401 * 512 };
        assert!(file.len() <= limit && file.len() > limit - 3000, "{}", file.len());
        let whole = read(file.as_slice());
        assert!(whole.error.is_none(), "{:?}", whole.error);
        assert!(whole.records.iter().enumerate().all(|(n, record)| record.ticks == n as u64));
    }
}

fn fill(path: &Path) {
    let format = Format::of_path(path).expect("a known suffix");
    let mut writer = FileWriter::create(path, format).expect("room for an empty file");
    let id = writer.interface(&ethernet(Resolution::NANO));
    let data = [9; 1400];
    let mut ticks = 0;
    let told = loop {
        let packet = Packet { data: &[&data], comments: &[], ..packet(id, ticks) };
        match writer.write(&packet) {
            Ok(()) => ticks += 1,
            Err(WriteError::Io { records, .. }) => break records,
            Err(other) => panic!("{other}"),
        }
    };
    drop(writer);
    let file = fs::read(path).expect("what was written");
    assert_eq!(read(file.as_slice()).records.len() as u64, told);
}

#[test]
fn the_suffix_names_the_format() {
    let format = |name: &str| Format::of_path(Path::new(name));
    assert_eq!(format("a.pcap"), Some(Format::Pcap));
    assert_eq!(format("a.b/c.PcapNG"), Some(Format::Pcapng));
    for other in ["pcap", ".pcap", "a.cap", "a.pcap.gz", ""] {
        assert_eq!(format(other), None, "{other}");
    }
}

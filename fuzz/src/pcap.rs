//! Captures: whatever a file says, it is read in bounded steps to its end or to its first fault; and
//! what was read can be written and read again.

use grilse_dev::pcap::{Direction, Error, Format, Grilse1, Interface, Packet, Reader, Writer};

/// What is kept of a record.
#[derive(Debug, PartialEq)]
struct Kept {
    interface: u32,
    ticks: u64,
    ns: i64,
    orig_len: u32,
    direction: Option<Direction>,
    data: Vec<u8>,
    comments: Vec<Vec<u8>>,
}

/// Reads the input as a capture, and writes what it held as pcapng.
///
/// # Panics
/// Where a record is longer than the file, where reading goes on behind a fault, or where the copy
/// holds something else.
pub fn pcap(file: &[u8]) {
    let Some((records, interfaces)) = read(file) else { return };
    let mut copy = Vec::new();
    let mut writer = Writer::new(&mut copy, Format::Pcapng);
    interfaces.iter().for_each(|interface| {
        writer.interface(interface);
    });
    for record in &records {
        let comments: Vec<&[u8]> = record.comments.iter().map(Vec::as_slice).collect();
        let packet = Packet {
            interface: record.interface,
            ticks: record.ticks,
            orig_len: record.orig_len,
            data: &[&record.data],
            direction: record.direction,
            comments: &comments,
        };
        writer.write(&packet).expect("what was read can be written");
    }
    writer.finish().expect("memory takes all");
    drop(writer);
    let (again, _) = read(&copy).expect("what was written is a capture");
    assert_eq!(again, records);
}

fn read(file: &[u8]) -> Option<(Vec<Kept>, Vec<Interface>)> {
    let mut reader = Reader::new(file).ok()?;
    let mut records = Vec::new();
    loop {
        match reader.next() {
            Ok(Some(record)) => {
                assert_eq!(record.index, records.len() as u64);
                assert!(record.data.len() < file.len());
                let comments: Vec<Vec<u8>> = record.comments.clone().map(<[u8]>::to_vec).collect();
                // One that only begins like ours is told apart by an error.
                let _ = Grilse1::parse(comments.iter().map(Vec::as_slice));
                records.push(Kept {
                    interface: record.interface,
                    ticks: record.time.ticks,
                    ns: record.time.ns(),
                    orig_len: record.orig_len,
                    direction: record.direction,
                    data: record.data.to_vec(),
                    comments,
                });
            }
            Ok(None) => break,
            Err(Error::Io(why)) => panic!("memory does not fail: {why}"),
            Err(_) => {
                assert!(matches!(reader.next(), Ok(None)), "a fault ends the reading");
                break;
            }
        }
    }
    let interfaces = reader.interfaces().to_vec();
    Some((records, interfaces))
}

//! Captures, written and read by the shortest code that can: whole files in memory, one frame a
//! microsecond.

/// `LINKTYPE_ETHERNET`.
const ETHERNET: u32 = 1;

/// The snapshot length written: above every frame of these tests.
const SNAPLEN: u32 = 1 << 18;

/// Bytes of the section header block that stands first in a pcapng file of ours.
pub(crate) const SECTION_LEN: usize = 28;

/// Byte order and resolution of a classic capture, by the magic of its first four bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Magic {
    LittleMicros,
    LittleNanos,
    BigMicros,
    BigNanos,
}

impl Magic {
    pub(crate) const ALL: [Self; 4] =
        [Self::LittleMicros, Self::LittleNanos, Self::BigMicros, Self::BigNanos];

    fn number(self) -> u32 {
        match self {
            Self::LittleMicros | Self::BigMicros => 0xa1b2_c3d4,
            Self::LittleNanos | Self::BigNanos => 0xa1b2_3c4d,
        }
    }

    fn u32(self, value: u32) -> [u8; 4] {
        match self {
            Self::LittleMicros | Self::LittleNanos => value.to_le_bytes(),
            Self::BigMicros | Self::BigNanos => value.to_be_bytes(),
        }
    }
}

/// The file header: 24 bytes.
pub(crate) fn header(magic: Magic) -> Vec<u8> {
    let version = match magic {
        Magic::LittleMicros | Magic::LittleNanos => [2, 0, 4, 0],
        Magic::BigMicros | Magic::BigNanos => [0, 2, 0, 4],
    };
    let mut out = magic.u32(magic.number()).to_vec();
    out.extend(version);
    for word in [0, 0, SNAPLEN, ETHERNET] {
        out.extend(magic.u32(word));
    }
    out
}

/// One record: 16 bytes that claim `captured` and `original` bytes, then the frame as it is.
pub(crate) fn record(magic: Magic, frame: &[u8], captured: u32, original: u32) -> Vec<u8> {
    let mut out = Vec::with_capacity(16 + frame.len());
    for word in [0, 0, captured, original] {
        out.extend(magic.u32(word));
    }
    out.extend(frame);
    out
}

/// A whole classic capture.
pub(crate) fn write_as(magic: Magic, frames: &[Vec<u8>]) -> Vec<u8> {
    let mut out = header(magic);
    for frame in frames {
        let len = frame.len() as u32;
        out.extend(record(magic, frame, len, len));
    }
    out
}

/// A whole capture in the commonest form.
pub(crate) fn write(frames: &[Vec<u8>]) -> Vec<u8> {
    write_as(Magic::LittleMicros, frames)
}

/// A whole pcapng capture, one interface, little-endian (draft-ietf-opsawg-pcapng).
pub(crate) fn write_ng(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut section = 0x1a2b_3c4d_u32.to_le_bytes().to_vec();
    section.extend([1, 0, 0, 0]);
    section.extend([0xff; 8]);
    let mut interface = vec![ETHERNET as u8, 0, 0, 0];
    interface.extend(SNAPLEN.to_le_bytes());
    let mut out = block(0x0a0d_0d0a, &section);
    out.extend(block(1, &interface));
    for (i, frame) in frames.iter().enumerate() {
        let len = frame.len() as u32;
        let mut body = Vec::new();
        for word in [0, 0, i as u32, len, len] {
            body.extend(word.to_le_bytes());
        }
        body.extend(frame);
        out.extend(block(6, &body));
    }
    out
}

/// One pcapng block: type, length, body padded to 32 bits, length again.
fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let padded = body.len().next_multiple_of(4);
    let total = (12 + padded) as u32;
    let mut out = kind.to_le_bytes().to_vec();
    out.extend(total.to_le_bytes());
    out.extend(body);
    out.resize(8 + padded, 0);
    out.extend(total.to_le_bytes());
    out
}

/// The offsets at which a capture of ours may end without a damaged record: behind the headers, and
/// behind each frame.
pub(crate) fn ends(write: impl Fn(&[Vec<u8>]) -> Vec<u8>, frames: &[Vec<u8>]) -> Vec<usize> {
    (0..=frames.len()).map(|n| write(&frames[..n]).len()).collect()
}

/// The frames of a little-endian classic capture of Ethernet. Fails on anything else, and on a
/// record that is not whole.
pub(crate) fn read(file: &[u8]) -> Vec<Vec<u8>> {
    let u32_at = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().expect("four bytes"));
    assert!(file.len() >= 24, "{} bytes are no capture", file.len());
    assert!([0xa1b2_c3d4, 0xa1b2_3c4d].contains(&u32_at(0)), "magic {:#x}", u32_at(0));
    assert_eq!(u32_at(20) & 0x0fff_ffff, ETHERNET, "link type");
    let mut frames = Vec::new();
    let mut at = 24;
    while at < file.len() {
        assert!(at + 16 <= file.len(), "record {} has half a header", frames.len());
        let end = at + 16 + u32_at(at + 8) as usize;
        assert!(end <= file.len(), "record {} is cut", frames.len());
        frames.push(file[at + 16..end].to_vec());
        at = end;
    }
    frames
}

/// An interface of a pcapng capture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Interface {
    /// `LINKTYPE_*`.
    pub(crate) link: u16,
    /// `if_tsresol`.
    pub(crate) tsresol: u8,
    /// `if_tsoffset`.
    pub(crate) offset_s: i64,
    /// `if_name`; empty: none.
    pub(crate) name: Vec<u8>,
}

/// A record with all that a capture can say of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) interface: u32,
    /// In a classic capture seconds and fraction, one behind the other as they stand.
    pub(crate) ticks: u64,
    pub(crate) orig_len: u32,
    pub(crate) data: Vec<u8>,
    pub(crate) comments: Vec<Vec<u8>>,
}

/// Code of a comment.
const COMMENT: u16 = 1;

/// A whole pcapng capture, little-endian. Every second time it describes interfaces only when they are
/// first needed.
pub(crate) fn write_records(interfaces: &[Interface], records: &[Record]) -> Vec<u8> {
    let mut section = 0x1a2b_3c4d_u32.to_le_bytes().to_vec();
    section.extend([1, 0, 0, 0]);
    section.extend([0xff; 8]);
    let mut out = block(0x0a0d_0d0a, &section);
    let mut described = 0;
    for record in records {
        let needed = match records.len() % 2 {
            0 => interfaces.len(),
            _ => record.interface as usize + 1,
        };
        for interface in &interfaces[described.min(needed)..needed] {
            out.extend(block(1, &interface_body(interface)));
        }
        described = described.max(needed);
        let mut body = Vec::new();
        let (high, low) = ((record.ticks >> 32) as u32, record.ticks as u32);
        for word in [record.interface, high, low, record.data.len() as u32, record.orig_len] {
            body.extend(word.to_le_bytes());
        }
        body.extend(&record.data);
        body.resize(body.len().next_multiple_of(4), 0);
        for comment in &record.comments {
            option(&mut body, COMMENT, comment);
        }
        out.extend(block(6, &body));
    }
    out
}

fn interface_body(interface: &Interface) -> Vec<u8> {
    let mut body = interface.link.to_le_bytes().to_vec();
    body.extend([0, 0]);
    body.extend(SNAPLEN.to_le_bytes());
    if !interface.name.is_empty() {
        option(&mut body, 2, &interface.name);
    }
    option(&mut body, 9, &[interface.tsresol]);
    option(&mut body, 14, &interface.offset_s.to_le_bytes());
    body
}

fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    body.extend(code.to_le_bytes());
    body.extend((value.len() as u16).to_le_bytes());
    body.extend(value);
    body.resize(body.len().next_multiple_of(4), 0);
}

/// The records of a little-endian classic capture.
pub(crate) fn classic_records(file: &[u8]) -> Vec<Record> {
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().expect("four bytes"));
    let mut at = 24;
    let record = |data: Vec<u8>| {
        let (seconds, fraction, orig_len) = (word(at), word(at + 4), word(at + 12));
        at += 16 + data.len();
        let ticks = u64::from(seconds) << 32 | u64::from(fraction);
        Record { interface: 0, ticks, orig_len, data, comments: Vec::new() }
    };
    read(file).into_iter().map(record).collect()
}

/// The interfaces and records of a little-endian pcapng capture of one section.
pub(crate) fn read_records(file: &[u8]) -> (Vec<Interface>, Vec<Record>) {
    let (mut interfaces, mut records) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < file.len() {
        let word =
            |i: usize| u32::from_le_bytes(file[at + i..at + i + 4].try_into().expect("four"));
        let (kind, len) = (word(0), word(4) as usize);
        let body = &file[at + 8..at + len - 4];
        match kind {
            1 => interfaces.push(read_interface(body)),
            6 => {
                let (captured, start) = (word(20) as usize, 20);
                let options = options(&body[start + captured.next_multiple_of(4)..]);
                records.push(Record {
                    interface: word(8),
                    ticks: u64::from(word(12)) << 32 | u64::from(word(16)),
                    orig_len: word(24),
                    data: body[start..start + captured].to_vec(),
                    comments: options.into_iter().filter(|o| o.0 == COMMENT).map(|o| o.1).collect(),
                });
            }
            _ => {}
        }
        at += len;
    }
    (interfaces, records)
}

fn read_interface(body: &[u8]) -> Interface {
    let link = u16::from_le_bytes([body[0], body[1]]);
    let mut interface = Interface { link, tsresol: 6, ..Interface::default() };
    for (code, value) in options(&body[8..]) {
        match code {
            2 => interface.name = value,
            9 => interface.tsresol = value[0],
            14 => interface.offset_s = i64::from_le_bytes(value.try_into().expect("eight bytes")),
            _ => {}
        }
    }
    interface
}

fn options(mut rest: &[u8]) -> Vec<(u16, Vec<u8>)> {
    let mut options = Vec::new();
    while rest.len() >= 4 && rest[..2] != [0, 0] {
        let (code, len) = (
            u16::from_le_bytes([rest[0], rest[1]]),
            usize::from(rest[2]) | usize::from(rest[3]) << 8,
        );
        options.push((code, rest[4..4 + len].to_vec()));
        rest = &rest[4 + len.next_multiple_of(4)..];
    }
    options
}

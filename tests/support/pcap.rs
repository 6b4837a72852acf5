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

//! Why reading a capture ended early, and why a packet was not written.

use std::{error, fmt, io};

use super::{MAX_BLOCK, Resolution};

/// Why reading ended early. Records delivered before it are whole and good.
#[derive(Debug)]
pub enum Error {
    /// The file starts like no capture; also an empty file.
    NotACapture,
    /// The file ends inside a record or block: it was cut, or is still being written.
    Truncated {
        /// Offset in bytes of the record or block that is not whole.
        offset: u64,
        /// How many records stand before it.
        record: u64,
        /// Bytes missing, as far as its readable part tells.
        missing: u64,
    },
    /// A record or block contradicts itself or the format.
    Damaged {
        /// Offset in bytes of that record or block.
        offset: u64,
        /// How many records stand before it.
        record: u64,
        /// What is wrong.
        what: Damage,
    },
    /// A record or block says that it is longer than [`MAX_BLOCK`].
    TooLong {
        /// Offset in bytes of that record or block.
        offset: u64,
        /// How many records stand before it.
        record: u64,
        /// The length that it states, in bytes.
        len: u32,
    },
    /// The source could not be read.
    Io(io::Error),
}

/// What is wrong with a record or block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// Another version of the format; 2.4 is read of pcap, 1.x of pcapng.
    Version {
        /// Major version.
        major: u16,
        /// Minor version.
        minor: u16,
    },
    /// The section header's byte-order magic is none; holds its bytes.
    ByteOrder([u8; 4]),
    /// The block length is no multiple of 4, or too small for the block's fixed fields.
    BlockLength(u32),
    /// The block length behind the block differs from the one before it.
    TrailingLength {
        /// The length in front.
        front: u32,
        /// The length behind.
        behind: u32,
    },
    /// The packet states more captured bytes than its block has room for.
    CapturedLength {
        /// Stated length in bytes.
        captured: u32,
        /// Bytes that the block leaves for it.
        room: u32,
    },
    /// An option reaches beyond its block.
    OptionLength {
        /// Option code.
        code: u16,
        /// Stated length in bytes.
        len: u16,
        /// Bytes that the block leaves for it.
        room: u32,
    },
    /// An option of fixed size has another one.
    OptionSize {
        /// Option code.
        code: u16,
        /// Its length in bytes.
        len: u16,
    },
    /// The packet names an interface that its section does not describe.
    UnknownInterface {
        /// The number it names.
        interface: u32,
        /// How many the section has described so far.
        described: u32,
    },
    /// The descriptions of all interfaces need more memory than [`MAX_BLOCK`].
    TooManyInterfaces,
}

/// Why a packet was not written. After every error but [`Io`](Self::Io) nothing of the packet
/// stands in the output, and the next one may be written.
#[derive(Debug)]
pub enum WriteError {
    /// A classic file has one link type; a `.pcapng` file takes several.
    LinkType {
        /// Link type of the file.
        file: u16,
        /// Link type of the packet.
        packet: u16,
    },
    /// A classic file cannot keep the packet's time; a `.pcapng` file can.
    Time {
        /// Resolution of the file.
        file: Resolution,
        /// Resolution of the packet's interface.
        packet: Resolution,
    },
    /// The record would be longer than [`MAX_BLOCK`].
    TooLong {
        /// Its length in bytes.
        len: usize,
    },
    /// A comment is longer than the 65,535 bytes that an option holds.
    CommentTooLong {
        /// Its length in bytes.
        len: usize,
    },
    /// The packet names an interface that was not described.
    UnknownInterface(u32),
    /// The sink refused. Nothing more is written.
    Io {
        /// What it said.
        source: io::Error,
        /// How many whole records it has taken.
        records: u64,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotACapture => f.write_str("neither a pcap nor a pcapng file"),
            Self::Truncated { offset, record, missing } => {
                write!(f, "cut off at offset {offset}, behind {record} records: ")?;
                write!(f, "{missing} bytes are missing")
            }
            Self::Damaged { offset, record, what } => {
                write!(f, "damaged at offset {offset}, behind {record} records: {what}")
            }
            Self::TooLong { offset, record, len } => {
                write!(f, "damaged at offset {offset}, behind {record} records: ")?;
                write!(f, "a length of {len} bytes, beyond the limit of {MAX_BLOCK}")
            }
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version { major, minor } => {
                write!(f, "version {major}.{minor}, expected 2.4 of pcap or 1.x of pcapng")
            }
            Self::ByteOrder(bytes) => {
                write!(f, "byte-order magic {bytes:02x?}, expected 1a2b3c4d in either order")
            }
            Self::BlockLength(len) => {
                write!(f, "block length {len}, expected a multiple of 4 that holds its fields")
            }
            Self::TrailingLength { front, behind } => {
                write!(f, "block length {front} in front but {behind} behind")
            }
            Self::CapturedLength { captured, room } => {
                write!(f, "{captured} captured bytes in a block with room for {room}")
            }
            Self::OptionLength { code, len, room } => {
                write!(f, "option {code} of {len} bytes in a block with room for {room}")
            }
            Self::OptionSize { code, len } => {
                write!(f, "option {code} of {len} bytes, which is not its size")
            }
            Self::UnknownInterface { interface, described } => {
                write!(f, "interface {interface}, but the section has described {described}")
            }
            Self::TooManyInterfaces => {
                write!(f, "interface descriptions of more than {MAX_BLOCK} bytes")
            }
        }
    }
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LinkType { file, packet } => {
                write!(f, "a packet of link type {packet} in a pcap file of link type {file}, ")?;
                f.write_str("which takes only one: write a .pcapng file")
            }
            Self::Time { file, packet } => {
                write!(f, "a time in ticks of {packet} does not fit a pcap file with ticks of ")?;
                write!(f, "{file}: write a .pcapng file")
            }
            Self::TooLong { len } => {
                write!(f, "{len} bytes in one record, beyond the limit of {MAX_BLOCK}")
            }
            Self::CommentTooLong { len } => {
                write!(f, "a comment of {len} bytes, beyond the limit of {}", u16::MAX)
            }
            Self::UnknownInterface(interface) => {
                write!(f, "interface {interface} is not described")
            }
            Self::Io { source, records } => {
                write!(f, "{source}; the output holds {records} whole records")
            }
        }
    }
}

impl error::Error for WriteError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl error::Error for Damage {}

//! Capture files: pcap and pcapng, read and written as streams of records.
//!
//! A [`Reader`] takes any byte stream, seekable or not, and lends one [`Record`] at a time; a
//! [`Writer`] puts records into one, and a [`FileWriter`] does the same with a file that stays
//! readable when the disk fills. What our own per-packet comments say is [`Grilse1`].
//!
//! **Invariant.** A record is lent whole or not at all, and whatever ends the reading early says
//! where in the file and why. Memory is bounded by [`MAX_BLOCK`], whatever a length field says.
//!
//! **Not here.** Nothing looks into a packet or knows what an skb is. Blocks that hold no packets
//! (statistics, names, secrets, custom ones) are skipped and not copied, and so are a packet's
//! options other than comments and direction.
//!
//! The parser is our own because the readers at hand report a damaged file without the offset, and
//! some get time resolutions and sections wrong (fault BL-28); both formats together are few lines.
//! Sources: draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng.

mod block;
mod comment;

mod encode;
mod error;
mod file;
mod format;
mod interface;
mod options;
mod order;
mod reader;
mod time;
mod window;
mod writer;

pub use comment::{CommentError, Grilse1, Member};
pub use error::{Damage, Error, WriteError};
pub use file::FileWriter;
pub use format::Format;
pub use interface::{Interface, link_type};
pub use options::{Comments, Direction};
pub use reader::{Reader, Record};
pub use time::{Resolution, Timestamp};
pub use writer::{Packet, Writer};

/// Largest record or block in bytes that is read or written: 16 MiB, the limit of Wireshark's and
/// libpcap's pcapng readers. A length beyond it is taken for a lie.
pub const MAX_BLOCK: u32 = 16 << 20;

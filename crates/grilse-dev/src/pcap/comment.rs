//! Our own per-packet comment: what a super-packet was made of, so that cutting it gives back the
//! frames of the input. `docs/pcapng.md` is the description for others.
//!
//! **Invariant.** A value has exactly one text, and no other text is accepted for it. Columns of
//! members are delta coded with runs, so 64 frames of one flow cost some tens of bytes plus what
//! their times differ.

mod column;

use std::fmt::Write;
use std::{error, fmt};

use grilse_wire::{Csum, Gso, GsoType};

use column::KEYS;

/// What our comments begin with.
const PREFIX: &str = "grilse1 ";
/// What a further comment of the same packet goes on with.
const MORE: &str = "more";
/// Most members of a packet: the kernel counts segments in 16 bits.
const MAX_MEMBERS: usize = u16::MAX as usize;
/// Members in one comment. At the worst 75 bytes each (two numbers of 64 bits and three of 32,
/// with signs), so that with everything else a comment stays below the 65,535 bytes of an option.
const PER_COMMENT: usize = 800;

/// What a packet written by `grilse gro` stands for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grilse1 {
    /// How to cut it; all zero on a plain packet.
    pub gso: Gso,
    /// State of its checksum. All offsets count in the frame as it is written.
    pub csum: Csum,
    /// Offset of the network header in a tunnel; 0: there is none.
    pub inner_network: u16,
    /// The VLAN tag in front of the frame stood beside it, and was put back to write it.
    pub vlan_restored: bool,
    /// The frames of the input that it stands for, in the order of its bytes; at most 65,535.
    pub members: Vec<Member>,
}

/// One frame of the input. Its captured length is not kept: cutting gives it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Member {
    /// Its number in the input, from 0.
    pub frame: u64,
    /// Its interface.
    pub interface: u32,
    /// When it was captured, in ticks of that interface.
    pub ticks: u64,
    /// Its length on the wire in bytes.
    pub orig_len: u32,
    /// How many of the packet's foreign comments were its own; the members' comments stand in the
    /// order of the members.
    pub comments: u32,
}

/// Why a comment that begins like ours is none of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommentError {
    /// A field is unknown, or its value is not what its key wants.
    Field {
        /// Which of the packet's comments of ours, from 0.
        comment: usize,
        /// Which of its fields, from 0.
        field: usize,
    },
    /// The columns of a comment's members differ in length.
    Uneven {
        /// Which of the packet's comments of ours, from 0.
        comment: usize,
    },
    /// A number of a member does not fit its field.
    OutOfRange {
        /// Which of the packet's comments of ours, from 0.
        comment: usize,
        /// Which of its members, from 0.
        row: usize,
    },
    /// More than 65,535 members.
    TooManyMembers,
    /// The content can be read, but its text is another one: fields out of order, written twice
    /// or needlessly, runs not joined, numbers with leading zeros.
    NotCanonical,
}

impl fmt::Display for CommentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field { comment, field } => {
                write!(f, "field {field} of grilse1 comment {comment} cannot be read")
            }
            Self::Uneven { comment } => {
                write!(f, "the member columns of grilse1 comment {comment} differ in length")
            }
            Self::OutOfRange { comment, row } => {
                write!(f, "a number of member {row} of grilse1 comment {comment} is too large")
            }
            Self::TooManyMembers => {
                write!(f, "a grilse1 comment with more than {MAX_MEMBERS} members")
            }
            Self::NotCanonical => f.write_str("a grilse1 comment that grilse would not write so"),
        }
    }
}

impl error::Error for CommentError {}

impl Grilse1 {
    /// Whether a comment is one of ours; all others are foreign.
    pub fn owns(comment: &[u8]) -> bool {
        comment.starts_with(PREFIX.as_bytes())
    }

    /// The comments that say this: one, or several where the members are many.
    pub fn encode(&self) -> Vec<String> {
        let mut comments = Vec::with_capacity(1);
        let mut text = String::from("grilse1");
        if self.gso != Gso::default() {
            let Gso { kind, size, segs } = self.gso;
            put(&mut text, format_args!(" gso={:x}:{size}:{segs}", kind.0));
        }
        match self.csum {
            Csum::None => text.push_str(" csum=none"),
            Csum::Unnecessary { level } => put(&mut text, format_args!(" csum=valid:{level}")),
            Csum::Complete { sum } => put(&mut text, format_args!(" csum=complete:{sum:x}")),
            Csum::Partial { start, offset } => {
                put(&mut text, format_args!(" csum=partial:{start}:{offset}"));
            }
        }
        if self.inner_network != 0 {
            put(&mut text, format_args!(" inner={}", self.inner_network));
        }
        if self.vlan_restored {
            text.push_str(" vlan=restored");
        }
        for (part, members) in self.members.chunks(PER_COMMENT).enumerate() {
            if part > 0 {
                comments.push(text);
                text = format!("{PREFIX}{MORE}");
            }
            column::put(&mut text, members);
        }
        comments.push(text);
        comments
    }

    /// Parts the comments of one packet: those of ours that were written last, together, and all
    /// others. A packet of a capture that was coalesced twice has two sets; the first was there when
    /// the second was written, as foreign comments are.
    pub fn split<'a>(
        comments: impl IntoIterator<Item = &'a [u8]>,
    ) -> (Vec<&'a [u8]>, Vec<&'a [u8]>) {
        let mut foreign: Vec<_> = comments.into_iter().collect();
        let opens = |comment: &&[u8]| Self::owns(comment) && !Self::continues(comment);
        let first = foreign.iter().rposition(opens).unwrap_or(0);
        let (ours, behind) = foreign.split_off(first).into_iter().partition(|it| Self::owns(it));
        let behind: Vec<_> = behind;
        foreign.extend(behind);
        (ours, foreign)
    }

    /// Whether a comment of ours goes on with another one.
    fn continues(comment: &[u8]) -> bool {
        let words = comment.get(PREFIX.len()..).unwrap_or_default();
        words.strip_prefix(MORE.as_bytes()).is_some_and(|rest| rest.first() == Some(&b' '))
    }

    /// Reads what the comments of one packet say, of which one set is ours; `None` where none of
    /// them is.
    ///
    /// # Errors
    /// Where one begins like ours and differs from every text that [`encode`](Self::encode) gives.
    pub fn parse<'a>(
        comments: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Option<Self>, CommentError> {
        let ours: Vec<_> = comments.into_iter().filter(|comment| Self::owns(comment)).collect();
        if ours.is_empty() {
            return Ok(None);
        }
        let mut value = Self::default();
        for (comment, bytes) in ours.iter().enumerate() {
            value.read(comment, &bytes[PREFIX.len()..])?;
        }
        // The reading above does not look at order and spelling. This does, once for everything.
        let text = value.encode();
        if text.iter().map(String::as_bytes).ne(ours) {
            return Err(CommentError::NotCanonical);
        }
        Ok(Some(value))
    }

    /// Adds what one comment says behind the prefix.
    fn read(&mut self, comment: usize, text: &[u8]) -> Result<(), CommentError> {
        let text = str::from_utf8(text).map_err(|_| CommentError::Field { comment, field: 0 })?;
        let room = MAX_MEMBERS - self.members.len();
        let mut columns: [Option<Vec<u64>>; KEYS.len()] = Default::default();
        for (field, word) in text.split(' ').enumerate() {
            if comment > 0 && field == 0 && word == MORE {
                continue;
            }
            let wrong = CommentError::Field { comment, field };
            let (key, value) = word.split_once('=').ok_or(wrong)?;
            match key {
                "gso" => self.gso = gso(value).ok_or(wrong)?,
                "csum" => self.csum = csum(value).ok_or(wrong)?,
                "inner" => self.inner_network = value.parse().map_err(|_| wrong)?,
                "vlan" if value == "restored" => self.vlan_restored = true,
                _ => {
                    let column = KEYS.iter().position(|known| *known == key).ok_or(wrong)?;
                    let numbers = column::numbers(value, room).ok_or(wrong)?;
                    if numbers.len() > room {
                        return Err(CommentError::TooManyMembers);
                    }
                    columns[column] = Some(numbers);
                }
            }
        }
        let count = columns[0].as_ref().map_or(0, Vec::len);
        let columns = columns.map(|column| column.unwrap_or_else(|| vec![0; count]));
        if columns.iter().any(|column| column.len() != count) {
            return Err(CommentError::Uneven { comment });
        }
        for row in 0..count {
            let member = Member::from_row(columns.each_ref().map(|column| column[row]));
            self.members.push(member.ok_or(CommentError::OutOfRange { comment, row })?);
        }
        Ok(())
    }
}

fn put(text: &mut String, part: fmt::Arguments<'_>) {
    text.write_fmt(part).expect("a String takes all");
}

fn gso(text: &str) -> Option<Gso> {
    let (kind, counts) = text.split_once(':')?;
    let (size, segs) = counts.split_once(':')?;
    Some(Gso {
        kind: GsoType(u32::from_str_radix(kind, 16).ok()?),
        size: size.parse().ok()?,
        segs: segs.parse().ok()?,
    })
}

fn csum(text: &str) -> Option<Csum> {
    let (state, value) = text.split_once(':').unwrap_or((text, ""));
    match state {
        "none" => Some(Csum::None),
        "valid" => {
            let level = value.parse().ok().filter(|level| *level <= 3)?;
            Some(Csum::Unnecessary { level })
        }
        "complete" => Some(Csum::Complete { sum: u32::from_str_radix(value, 16).ok()? }),
        "partial" => {
            let (start, offset) = value.split_once(':')?;
            Some(Csum::Partial { start: start.parse().ok()?, offset: offset.parse().ok()? })
        }
        _ => None,
    }
}

//! What a `grilse1` comment says of a packet, held against the packet.
//!
//! A comment can be read and still lie. What would be cut by a lie is no frame of anybody's, so
//! nothing is cut until all that can be compared agrees.

use std::fmt;

use grilse::gso::Invalid;
use grilse::pcap::{CommentError, Grilse1, Interface};
use grilse::wire::GsoType;

/// What a comment of ours says that cannot be.
#[derive(Debug)]
pub(super) enum Contradiction {
    /// It cannot be read.
    Comment(CommentError),
    /// It names no frame.
    NoMembers,
    /// A member's interface is not described, or has another link type than the packet.
    Interface { row: usize, interface: u32 },
    /// The members have more comments than the packet.
    Notes { stated: u64, have: usize },
    /// As many segments are stated as there are no members.
    Segs { stated: usize, members: usize },
    /// As many segments are cut as there are no members.
    Cut { cut: usize, members: usize },
    /// The packet cannot be cut like that.
    Invalid(Invalid),
}

/// Reads the comments of ours of one packet, and compares them with the packet's own interface,
/// those that the capture has described so far, and the number of other comments. `None`: there is
/// no comment of ours.
pub(super) fn read(
    ours: &[&[u8]],
    interface: u32,
    interfaces: &[Interface],
    notes: usize,
) -> Result<Option<Grilse1>, Contradiction> {
    let Some(value) = Grilse1::parse(ours.iter().copied()).map_err(Contradiction::Comment)? else {
        return Ok(None);
    };
    let members = value.members.len();
    if members == 0 {
        return Err(Contradiction::NoMembers);
    }
    let stated = usize::from(value.gso.segs).max(1);
    if stated != members {
        return Err(Contradiction::Segs { stated, members });
    }
    if value.gso.kind.intersects(GsoType::UDP) {
        // GRO makes no super-packets of fragments, and cutting some is not free of side effects.
        let want = GsoType::TCPV4 | GsoType::TCPV6 | GsoType::UDP_L4;
        return Err(Contradiction::Invalid(Invalid::Kind { kind: value.gso.kind, want }));
    }
    let link_type = |interface: u32| Some(interfaces.get(interface as usize)?.link_type);
    for (row, member) in value.members.iter().enumerate() {
        if link_type(member.interface).is_none_or(|kind| Some(kind) != link_type(interface)) {
            return Err(Contradiction::Interface { row, interface: member.interface });
        }
    }
    let stated = value.members.iter().map(|member| u64::from(member.comments)).sum();
    if stated > notes as u64 {
        return Err(Contradiction::Notes { stated, have: notes });
    }
    Ok(Some(value))
}

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = match self {
            Self::Comment(error) => return error.fmt(f),
            Self::NoMembers => "in",
            Self::Interface { .. } => "if",
            Self::Notes { .. } => "notes",
            Self::Invalid(Invalid::ChecksumStart { .. }) => "csum",
            Self::Invalid(Invalid::Inner { .. }) => "inner",
            Self::Segs { .. } | Self::Cut { .. } | Self::Invalid(_) => "gso",
        };
        write!(f, "field {field} of its grilse1 comment: ")?;
        match self {
            Self::Comment(_) => Ok(()),
            Self::NoMembers => f.write_str("no frame"),
            Self::Interface { row, interface } => {
                write!(f, "member {row} is of interface {interface}, which is not described alike")
            }
            Self::Notes { stated, have } => write!(f, "{stated} comments, the packet has {have}"),
            Self::Segs { stated, members } => write!(f, "{stated} segments of {members} members"),
            Self::Cut { cut, members } => write!(f, "{cut} segments are cut of {members} members"),
            Self::Invalid(invalid) => invalid.fmt(f),
        }
    }
}

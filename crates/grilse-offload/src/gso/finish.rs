//! Finishing the checksum of a plain packet.

use grilse_wire::csum::Summer;
use grilse_wire::{Csum, Packet};

/// The checksum of a packet cannot be finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadPartial {
    /// Its place lies outside of the packet, or cannot be gathered.
    Place {
        /// Offset of the first byte to sum.
        start: u16,
        /// Offset of the checksum field from there.
        offset: u16,
        /// Length of the packet.
        len: usize,
    },
    /// The packet cannot be written to.
    ReadOnly,
}

impl core::fmt::Display for BadPartial {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Place { start, offset, len } => {
                write!(f, "a checksum at byte {start} + {offset} of a packet of {len}")
            }
            Self::ReadOnly => f.write_str("the headers cannot be written"),
        }
    }
}

impl core::error::Error for BadPartial {}

/// Finishes the layer-4 checksum of a packet that is not a super-packet, where that is left to be
/// done (`skb_checksum_help`); other packets stay as they are. A sum of 0 is written as 0xffff, as
/// UDP wants it, TCP included.
///
/// # Errors
/// A [`BadPartial`] where the metadata lies, or the packet is not writable; it has not changed then.
pub fn finish<P: Packet>(packet: &mut P) -> Result<(), BadPartial> {
    let Csum::Partial { start, offset } = packet.meta().csum else { return Ok(()) };
    let (from, len) = (usize::from(start), packet.len());
    let field = from + usize::from(offset);
    if packet.gather(field + 2).is_none() {
        return Err(BadPartial::Place { start, offset, len });
    }
    let mut summer = Summer::default();
    for piece in packet.pieces(from..len) {
        summer.push(piece);
    }
    let check = match !summer.fold() {
        0 => 0xffff,
        check => check,
    };
    let header = packet.front_mut(field + 2).ok_or(BadPartial::ReadOnly)?;
    header[field..field + 2].copy_from_slice(&check.to_be_bytes());
    packet.meta_mut().csum = Csum::None;
    Ok(())
}

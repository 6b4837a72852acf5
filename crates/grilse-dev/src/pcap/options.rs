//! The options at the end of a pcapng block: code, length, value, padding to 4 bytes.

use super::Damage;
use super::order::Order;

/// End of the list; what follows it is padding.
pub(super) const END: u16 = 0;
/// A comment, in every kind of block and as often as one likes.
pub(super) const COMMENT: u16 = 1;
/// Packet: flags, of which the lowest two bits are its [`Direction`].
pub(super) const EPB_FLAGS: u16 = 2;
/// Interface: its name.
pub(super) const IF_NAME: u16 = 2;
/// Interface: its description.
pub(super) const IF_DESCRIPTION: u16 = 3;
/// Interface: length of a tick.
pub(super) const IF_TSRESOL: u16 = 9;
/// Interface: seconds to add to all times.
pub(super) const IF_TSOFFSET: u16 = 14;
/// Section: the hardware that wrote it.
pub(super) const SHB_HARDWARE: u16 = 2;
/// Section: the operating system that wrote it.
pub(super) const SHB_OS: u16 = 3;
/// Section: the program that wrote it.
pub(super) const SHB_USERAPPL: u16 = 4;

/// Which way a packet went, as seen from the host that captured it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// It was received.
    Inbound,
    /// It was sent.
    Outbound,
}

impl Direction {
    /// Length of the option's value in bytes.
    pub(super) const LEN: usize = 4;

    /// As the option says it.
    pub(super) fn to_flags(self) -> u32 {
        match self {
            Self::Inbound => 1,
            Self::Outbound => 2,
        }
    }

    /// As the first option of the list says that says it; one of another size is none.
    pub(super) fn of(options: &Options<'_>) -> Option<Self> {
        let mut flags = options.clone().flatten().filter(|(code, _)| *code == EPB_FLAGS);
        let (_, value) = flags.find(|(_, value)| value.len() == Self::LEN)?;
        match options.order.u32(value, 0) & 3 {
            1 => Some(Self::Inbound),
            2 => Some(Self::Outbound),
            _ => None,
        }
    }
}

/// Walks a list of options; ends behind the first one that is wrong.
#[derive(Clone, Debug)]
pub(super) struct Options<'a> {
    rest: &'a [u8],
    order: Order,
}

impl<'a> Options<'a> {
    pub(super) fn new(rest: &'a [u8], order: Order) -> Self {
        Self { rest, order }
    }

    /// Whether every option lies inside the block.
    pub(super) fn check(&self) -> Result<(), Damage> {
        self.clone().try_for_each(|option| option.map(drop))
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = Result<(u16, &'a [u8]), Damage>;

    fn next(&mut self) -> Option<Self::Item> {
        // The end mark may be left out, the block's end then ends the list.
        if self.rest.len() < 4 {
            return None;
        }
        let (code, len) = (self.order.u16(self.rest, 0), self.order.u16(self.rest, 2));
        let body = &self.rest[4..];
        self.rest = &[];
        if code == END {
            return None;
        }
        let Some(value) = body.get(..len.into()) else {
            return Some(Err(Damage::OptionLength { code, len, room: body.len() as u32 }));
        };
        self.rest = body.get(value.len().next_multiple_of(4)..).unwrap_or_default();
        Some(Ok((code, value)))
    }
}

/// The comments of one packet, in their order. By the format's rule they are UTF-8; they are lent
/// as they are.
#[derive(Clone, Debug)]
pub struct Comments<'a>(Options<'a>);

impl<'a> Comments<'a> {
    pub(super) fn new(options: Options<'a>) -> Self {
        Self(options)
    }
}

impl<'a> Iterator for Comments<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        // The reader has checked the list before it lent the record.
        self.0.by_ref().flatten().find(|(code, _)| *code == COMMENT).map(|(_, value)| value)
    }
}

//! The bodies of the pcapng blocks that matter: what lies between a block's two lengths. Pure
//! functions from bytes to fields; they know no file and no state.

use std::ops::Range;

use super::order::Order;
use super::{Damage, Interface, Resolution, options};
use options::Options;

/// Interface description.
pub(super) const INTERFACE: u32 = 1;
/// Packet, obsolete: the enhanced one with 16-bit interface and drop counter.
pub(super) const PACKET: u32 = 2;
/// Simple packet: no interface, no time, no options.
pub(super) const SIMPLE: u32 = 3;
/// Enhanced packet.
pub(super) const ENHANCED: u32 = 6;

/// A packet block. The ranges are relative to the body.
#[derive(Debug)]
pub(super) struct Body {
    /// Number of the interface within its section.
    pub(super) interface: u32,
    pub(super) ticks: u64,
    pub(super) orig_len: u32,
    pub(super) data: Range<usize>,
    pub(super) options: Range<usize>,
}

/// Bytes around a body: type and length before it, length behind it.
pub(super) const FRAME: usize = 12;

/// That the body reaches to the end of the fixed fields.
fn fixed(body: &[u8], len: usize) -> Result<(), Damage> {
    if body.len() < len {
        return Err(Damage::BlockLength((body.len() + FRAME) as u32));
    }
    Ok(())
}

/// Checks a section header's version. The stated section length is not used: blocks say where
/// they end, and writers often do not know it.
pub(super) fn section(order: Order, body: &[u8]) -> Result<(), Damage> {
    fixed(body, 16)?;
    let (major, minor) = (order.u16(body, 4), order.u16(body, 6));
    if major != 1 { Err(Damage::Version { major, minor }) } else { Ok(()) }
}

/// Reads an interface description.
pub(super) fn interface(order: Order, body: &[u8]) -> Result<Interface, Damage> {
    fixed(body, 8)?;
    let mut interface = Interface::new(order.u16(body, 0), Resolution::MICRO);
    interface.snaplen = order.u32(body, 4);
    for option in Options::new(&body[8..], order) {
        let (code, value) = option?;
        let size = Damage::OptionSize { code, len: value.len() as u16 };
        match code {
            options::IF_NAME => interface.name = Some(value.to_vec()),
            options::IF_DESCRIPTION => interface.description = Some(value.to_vec()),
            options::IF_TSRESOL => {
                let &[byte] = value else { return Err(size) };
                interface.resolution = Resolution::from_tsresol(byte);
            }
            options::IF_TSOFFSET => {
                interface.offset_s = order.i64(value.try_into().map_err(|_| size)?);
            }
            _ => {}
        }
    }
    Ok(interface)
}

/// Reads an enhanced packet block.
pub(super) fn enhanced(order: Order, body: &[u8]) -> Result<Body, Damage> {
    fixed(body, 20)?;
    packet(order, body, order.u32(body, 0))
}

/// Reads an obsolete packet block: the same but for the first four bytes.
pub(super) fn obsolete(order: Order, body: &[u8]) -> Result<Body, Damage> {
    fixed(body, 20)?;
    packet(order, body, order.u16(body, 0).into())
}

fn packet(order: Order, body: &[u8], interface: u32) -> Result<Body, Damage> {
    let ticks = u64::from(order.u32(body, 4)) << 32 | u64::from(order.u32(body, 8));
    let captured = order.u32(body, 12);
    let data = data(body, 20, captured)?;
    // A body's length is a multiple of 4, so the padding lies inside it too.
    let options = data.end.next_multiple_of(4)..body.len();
    Options::new(&body[options.clone()], order).check()?;
    Ok(Body { interface, ticks, orig_len: order.u32(body, 16), data, options })
}

/// Reads a simple packet block: of the section's first interface, whose snap length alone says
/// how much of the block is packet.
pub(super) fn simple(order: Order, body: &[u8], snaplen: u32) -> Result<Body, Damage> {
    fixed(body, 4)?;
    let orig_len = order.u32(body, 0);
    let captured = if snaplen == 0 { orig_len } else { orig_len.min(snaplen) };
    let data = data(body, 4, captured)?;
    let options = body.len()..body.len();
    Ok(Body { interface: 0, ticks: 0, orig_len, data, options })
}

fn data(body: &[u8], start: usize, captured: u32) -> Result<Range<usize>, Damage> {
    let room = body.len() - start;
    if captured as usize > room {
        return Err(Damage::CapturedLength { captured, room: room as u32 });
    }
    Ok(start..start + captured as usize)
}

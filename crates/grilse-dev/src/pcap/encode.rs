//! The bytes of the headers and blocks that are written, appended to a buffer. Always little
//! endian: the same records make the same file on every machine.

use super::format::{BYTE_ORDER_MAGIC, MICRO_MAGIC, NANO_MAGIC, SECTION};
use super::{Direction, Interface, Packet, Resolution, block, options};

/// Fixed fields of an enhanced packet block, frame included, in bytes.
const ENHANCED: usize = block::FRAME + 20;
/// Code and length of an option, in bytes.
const OPTION: usize = 4;

fn put16(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// Header of a classic file.
pub(super) fn file_header(out: &mut Vec<u8>, link: u16, resolution: Resolution, snaplen: u32) {
    put32(out, if resolution == Resolution::NANO { NANO_MAGIC } else { MICRO_MAGIC });
    put16(out, 2);
    put16(out, 4);
    // Time zone and accuracy, always 0.
    put32(out, 0);
    put32(out, 0);
    put32(out, snaplen);
    put32(out, link.into());
}

/// Header of a classic record.
pub(super) fn record_header(
    out: &mut Vec<u8>,
    seconds: u32,
    fraction: u32,
    captured: u32,
    orig_len: u32,
) {
    put32(out, seconds);
    put32(out, fraction);
    put32(out, captured);
    put32(out, orig_len);
}

/// Seconds and their fraction as a classic file of this resolution states them; `None` where that
/// would lose something.
pub(super) fn classic_time(
    ticks: u64,
    interface: &Interface,
    file: Resolution,
) -> Option<(u32, u32)> {
    let digits = file.decimal()?;
    let finer = digits.checked_sub(interface.resolution.decimal()?)?;
    let per_second = 10i128.pow(digits);
    let ticks = i128::from(ticks) * 10i128.pow(finer) + i128::from(interface.offset_s) * per_second;
    let seconds = u32::try_from(ticks.div_euclid(per_second)).ok()?;
    Some((seconds, ticks.rem_euclid(per_second) as u32))
}

/// Puts type and length, the body, and the length again.
fn block(out: &mut Vec<u8>, kind: u32, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    put32(out, kind);
    put32(out, 0);
    body(out);
    let len = (out.len() - start + 4) as u32;
    out[start + 4..start + 8].copy_from_slice(&len.to_le_bytes());
    put32(out, len);
}

/// Pads what was put since `start` to a multiple of 4 bytes.
fn pad(out: &mut Vec<u8>, start: usize) {
    let len = (out.len() - start).next_multiple_of(4);
    out.resize(start + len, 0);
}

/// Puts an option, of which the length field has room for 65,535 bytes; more are left out.
fn option(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    let value = &value[..value.len().min(u16::MAX.into())];
    put16(out, code);
    put16(out, value.len() as u16);
    let start = out.len();
    out.extend_from_slice(value);
    pad(out, start);
}

fn end_of_options(out: &mut Vec<u8>) {
    option(out, options::END, &[]);
}

/// Section header, naming the machine, its system and this program.
pub(super) fn section_header(out: &mut Vec<u8>) {
    block(out, SECTION, |out| {
        put32(out, BYTE_ORDER_MAGIC);
        put16(out, 1);
        put16(out, 0);
        // Section length: not known while streaming.
        out.extend_from_slice(&(-1i64).to_le_bytes());
        option(out, options::SHB_HARDWARE, std::env::consts::ARCH.as_bytes());
        option(out, options::SHB_OS, std::env::consts::OS.as_bytes());
        option(
            out,
            options::SHB_USERAPPL,
            concat!("grilse ", env!("CARGO_PKG_VERSION")).as_bytes(),
        );
        end_of_options(out);
    });
}

/// Interface description block.
pub(super) fn interface_block(out: &mut Vec<u8>, interface: &Interface, snaplen: u32) {
    block(out, block::INTERFACE, |out| {
        put16(out, interface.link_type);
        put16(out, 0);
        put32(out, snaplen);
        if let Some(name) = &interface.name {
            option(out, options::IF_NAME, name);
        }
        if let Some(description) = &interface.description {
            option(out, options::IF_DESCRIPTION, description);
        }
        option(out, options::IF_TSRESOL, &[interface.resolution.tsresol()]);
        if interface.offset_s != 0 {
            option(out, options::IF_TSOFFSET, &interface.offset_s.to_le_bytes());
        }
        end_of_options(out);
    });
}

/// Length in bytes of an enhanced packet block with so many bytes of packet.
pub(super) fn packet_block_len(captured: usize, packet: &Packet<'_>) -> usize {
    let comments = packet.comments.iter().map(|comment| comment.len().next_multiple_of(4));
    let flags = packet.direction.map(|_| Direction::LEN);
    let options: usize = comments.chain(flags).map(|len| OPTION + len).sum();
    let end = if options > 0 { OPTION } else { 0 };
    ENHANCED + captured.next_multiple_of(4) + options + end
}

/// Enhanced packet block.
pub(super) fn packet_block(out: &mut Vec<u8>, packet: &Packet<'_>, captured: u32) {
    block(out, block::ENHANCED, |out| {
        put32(out, packet.interface);
        put32(out, (packet.ticks >> 32) as u32);
        put32(out, packet.ticks as u32);
        put32(out, captured);
        put32(out, packet.orig_len);
        let start = out.len();
        packet.data.iter().for_each(|part| out.extend_from_slice(part));
        pad(out, start);
        if let Some(direction) = packet.direction {
            option(out, options::EPB_FLAGS, &direction.to_flags().to_le_bytes());
        }
        for comment in packet.comments {
            option(out, options::COMMENT, comment);
        }
        if !packet.comments.is_empty() || packet.direction.is_some() {
            end_of_options(out);
        }
    });
}

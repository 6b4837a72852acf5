//! TCP: reading a segment (`tcp4_gro_receive`, `tcp6_gro_receive`), and the meeting of a segment
//! with the head of its flow (`tcp_gro_receive`).

use grilse_wire::{Packet, tcp};

use super::Sink;
use super::held::{Fate, Held, Step};
use super::levels::Addresses;
use super::parse::{Flow, Layer};
use crate::{Config, Cwr, Reason, Why};

pub(super) use tcp::PROTOCOL;

/// The fields of a segment that decide.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    /// Bytes 12-15: data offset, reserved bits and flags, window.
    pub(super) word: u32,
    pub(super) seq: u32,
    pub(super) ack: u32,
}

/// A flag as a bit of [`Segment::word`].
const fn bit(flag: u16) -> u32 {
    (flag as u32) << 16
}

const FIN: u32 = bit(tcp::flag::FIN);
const SYN: u32 = bit(tcp::flag::SYN);
const RST: u32 = bit(tcp::flag::RST);
const PSH: u32 = bit(tcp::flag::PSH);
const ACK: u32 = bit(tcp::flag::ACK);
const URG: u32 = bit(tcp::flag::URG);
const ECE: u32 = bit(tcp::flag::ECE);
const CWR: u32 = bit(tcp::flag::CWR);
const AE: u32 = bit(tcp::flag::AE);
const RESERVED: u32 = 0x0e00_0000;
const DATA_OFFSET: u32 = 0xf000_0000;
const WINDOW: u32 = 0x0000_ffff;
/// The flags that a head takes over from what joins it.
pub(super) const LAST: u32 = PSH | FIN;

impl Segment {
    fn header_len(&self) -> usize {
        (self.word >> 28) as usize * 4
    }

    fn flag(&self, flag: u32, reason: Reason) -> Option<Why> {
        (self.word & flag != 0).then(|| Why::new(reason, 0u8, 1u8))
    }

    /// Why this segment never merges, and completes the head of its flow.
    fn unfit(&self, flow: &Flow) -> Option<Why> {
        if flow.len == 0 && flow.gso_size == 0 {
            return Some(Reason::NoPayload.into());
        }
        self.flag(SYN, Reason::Syn)
            .or_else(|| self.flag(RST, Reason::Rst))
            .or_else(|| self.flag(URG, Reason::Urg))
    }

    /// Why nothing merges behind this segment, although it may itself join a head.
    fn last(&self, flow: &Flow) -> Option<Why> {
        let full = usize::from(flow.segs) * usize::from(flow.gso_size);
        if flow.gso_size != 0 && flow.len != full {
            return Some(Why::lengths(Reason::GsoTail, full, flow.len));
        }
        self.flag(PSH, Reason::Psh).or_else(|| self.flag(FIN, Reason::Fin))
    }
}

/// Reads the header at the cursor, and judges its checksum unless the packet is unfit anyway.
#[inline]
pub(super) fn parse<P: Packet>(
    packet: &mut P,
    flow: &mut Flow,
    addresses: &Addresses,
    config: &Config,
) -> Result<Segment, Why> {
    let left = packet.len() - flow.at;
    if flow.unfit.is_none() {
        let pseudo = || addresses.pseudo(PROTOCOL, left);
        match flow.sums.validate(packet, flow.at, false, pseudo) {
            Ok(unfit) => flow.unfit = unfit,
            Err(sum) => return Err(Why::new(Reason::TcpChecksum, 0xffffu16, sum)),
        }
    }
    let header = flow.header::<{ tcp::MIN_LEN }, P>(packet, Reason::TcpTruncated)?;
    let [ports, seq, ack, word, sum] = *header.as_chunks::<4>().0 else {
        return Err(flow.refuse(Reason::TcpTruncated.into()));
    };
    let ports = u32::from_be_bytes(ports);
    let segment = Segment {
        word: u32::from_be_bytes(word),
        seq: u32::from_be_bytes(seq),
        ack: u32::from_be_bytes(ack),
    };
    let len = segment.header_len();
    if len < tcp::MIN_LEN {
        return Err(flow.refuse(Why::lengths(Reason::TcpDataOffset, tcp::MIN_LEN, len)));
    }
    if len > left {
        return Err(flow.refuse(Why::lengths(Reason::TcpDataOffset, left, len)));
    }
    // Segmentation would write 0, which means the same.
    if config.rules.lossless && sum[..2] == [0xff; 2] && flow.unfit.is_none() {
        flow.unfit = Some(Why::new(Reason::TcpChecksumForm, 0u16, 0xffff_u16));
    }
    flow.gather(packet, len, Reason::TcpTruncated)?;
    flow.at += len;
    flow.len = left - len;
    flow.digest ^= addresses.digest(ports);
    // No local socket takes the segment here, and then rx-gro-list chains it
    // (tcp4_check_fraglist_gro).
    flow.list = config.gro_list && config.rules.tcp_lists;
    Ok(segment)
}

/// What becomes of a segment whose flow has no head.
pub(super) fn alone<P>(packet: P, flow: &Flow, segment: &Segment) -> Fate<P> {
    match flow.unfit.or_else(|| segment.unfit(flow)).or_else(|| segment.last(flow)) {
        Some(why) => Fate::Normal(packet, why),
        None => Fate::Hold(packet),
    }
}

/// A segment meets the head of its flow.
pub(super) fn join<P: Packet>(
    head: &mut Held<P>,
    packet: P,
    flow: &Flow,
    segment: &Segment,
    config: &Config,
    sink: &mut impl Sink<P>,
) -> Step<P> {
    let unfit = flow.unfit.or_else(|| segment.unfit(flow));
    // A list takes what the IP layer flagged, padding included: skb_gro_receive_list does not ask.
    // Segmentation then counts the padding as payload.
    if let Some(why) = unfit
        && (!head.list || config.rules.lossless || segment.unfit(flow).is_some())
    {
        return Step { ended: Some(why), packet: Fate::Normal(packet, why) };
    }
    let last = segment.last(flow);
    let apart = |packet, differs| Step {
        ended: Some(unfit.unwrap_or(differs)),
        packet: match unfit.or(last) {
            Some(why) => Fate::Normal(packet, why),
            None => Fate::Hold(packet),
        },
    };
    if let Err(why) = compare(head, &packet, flow, segment, config) {
        return apart(packet, why);
    }
    match head.absorb(packet, flow, config, sink) {
        Err((packet, why)) => apart(packet, why),
        Ok(emptied) => {
            head.extend(segment.word & LAST, flow.len);
            let mss = usize::from(head.mss);
            let short = flow.gso_size == 0 && flow.len < mss;
            let short = short.then(|| Why::lengths(Reason::ShortSegment, mss, flow.len));
            Step { ended: short.or(last), packet: Fate::Merged(emptied) }
        }
    }
}

/// The kernel's tests of a segment against its head, in its order.
fn compare<P: Packet>(
    head: &mut Held<P>,
    packet: &P,
    flow: &Flow,
    segment: &Segment,
    config: &Config,
) -> Result<(), Why> {
    let Layer::Tcp(held) = head.layer else { return Ok(()) };
    let differs = segment.word ^ held.word;
    if segment.word & CWR != 0 || differs & !LAST != 0 {
        compare_word(held.word, segment.word, config.rules.cwr)?;
    }
    if segment.ack != held.ack {
        return Err(Why::new(Reason::AckNumber, held.ack, segment.ack));
    }
    if segment.header_len() > tcp::MIN_LEN {
        compare_options(head, packet, flow)?;
    }
    flow.levels.compare(&head.levels, head.segs, &mut head.fixed, &config.rules)?;
    // In a list each packet keeps its own, but in a file a list is no more than its bytes.
    if config.rules.lossless {
        compare_urgent(head, packet, flow)?;
    }
    let mss = usize::from(head.mss);
    if flow.gso_size != 0 {
        if flow.gso_size != head.mss {
            return Err(Why::new(Reason::GsoSize, head.mss, flow.gso_size));
        }
    } else if flow.len > mss {
        return Err(Why::lengths(Reason::LongerSegment, mss, flow.len));
    }
    if segment.seq != held.seq {
        let ahead = segment.seq.wrapping_sub(held.seq) as i32 > 0;
        let reason = if ahead { Reason::SequenceGap } else { Reason::SequenceOverlap };
        return Err(Why::new(reason, held.seq, segment.seq));
    }
    if !head.list {
        return Ok(());
    }
    if differs != 0 {
        let flags = |word| (word & LAST) >> bit(1).trailing_zeros();
        return Err(Why::new(Reason::ListFlags, flags(held.word), flags(segment.word)));
    }
    head.compare_checksums(packet)?;
    if head.segs >= config.rules.list_max_segs {
        return Err(Why::new(Reason::CountCap, head.segs, flow.segs));
    }
    Ok(())
}

/// Which part of the word with flags and window keeps a segment from its head, if any does under this
/// rule for CWR. The kernel tests CWR, then all others at once; these are named from the top bit
/// down, the window last.
#[cold]
fn compare_word(head: u32, packet: u32, cwr: Cwr) -> Result<(), Why> {
    let (alone, ignored) = match cwr {
        Cwr::First => (CWR, CWR),
        Cwr::Alone => (CWR, 0),
        Cwr::Runs => (0, 0),
    };
    let differs = (head ^ packet) & !(LAST | ignored);
    if packet & alone == 0 && differs == 0 {
        return Ok(());
    }
    let parts = [
        (DATA_OFFSET, Reason::TcpHeaderLength),
        (RESERVED, Reason::TcpReserved),
        (AE, Reason::AccurateEcn),
        (ECE, Reason::Ece),
        (ACK, Reason::AckFlag),
        (WINDOW, Reason::Window),
    ];
    let by_cwr = packet & alone != 0 || differs & CWR != 0;
    let differing = parts.into_iter().find(|(mask, _)| differs & mask != 0);
    let (mask, reason) = match differing {
        Some(part) if !by_cwr => part,
        _ => (CWR, Reason::Cwr),
    };
    let part = |word: u32| (word & mask) >> mask.trailing_zeros();
    Err(Why::new(reason, part(head), part(packet)))
}

/// The urgent pointer of a segment without URG means nothing, and the kernel does not look at it;
/// segmentation writes the head's everywhere.
fn compare_urgent<P: Packet>(head: &Held<P>, packet: &P, flow: &Flow) -> Result<(), Why> {
    let pointer = |front: &[u8], l4: u16| {
        let at = usize::from(l4) + tcp::URGENT;
        u16::from_be_bytes([front[at], front[at + 1]])
    };
    let (held, came) = (pointer(head.packet.front(), head.l4), pointer(packet.front(), flow.l4));
    if held == came { Ok(()) } else { Err(Why::new(Reason::UrgentPointer, held, came)) }
}

/// Options must be equal byte for byte, padding and timestamps included. Both headers have the same
/// length.
fn compare_options<P: Packet>(head: &Held<P>, packet: &P, flow: &Flow) -> Result<(), Why> {
    let options = usize::from(flow.l4) + tcp::MIN_LEN..flow.at;
    let held = &head.packet.front()[usize::from(head.l4) + tcp::MIN_LEN..head.payload];
    let came = &packet.front()[options];
    if held == came {
        return Ok(());
    }
    let words = held.chunks_exact(4).zip(came.chunks_exact(4));
    let word = |bytes: &[u8]| bytes.iter().fold(0u64, |word, byte| word << 8 | u64::from(*byte));
    let (held, came) =
        words.map(|(a, b)| (word(a), word(b))).find(|(a, b)| a != b).unwrap_or((0, 0));
    Err(Why { reason: Reason::TcpOptions, head: held, packet: came })
}

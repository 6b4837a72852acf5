//! Frames: a builder of TCP and UDP, and a dissector for those that a test must judge.
//!
//! The dissector knows no GRO. It says which bytes make a flow, where the payload begins, and
//! whether the frame is of a kind that the kernel lets past held packets of its own flow.

use std::ops::Range;

const TCP: u8 = 6;
const UDP: u8 = 17;

/// What a test needs to know of a TCP or UDP frame.
#[derive(Debug)]
pub(crate) struct Dissected {
    /// Everything that must be equal in two packets of one flow: link header with tags, flow label,
    /// addresses, extension headers, protocol, ports (the kernel's `same_flow`).
    pub(crate) flow: Vec<u8>,
    /// Bytes before the TCP or UDP header.
    pub(crate) transport: usize,
    /// Bytes before the payload.
    pub(crate) headers: usize,
    /// The kernel delivers such a frame at once while its flow stays held: a damaged sum, IPv4
    /// options, a fragment, a length that contradicts the frame (`tcp4_gro_receive`,
    /// `inet_gro_receive`, `udp4_gro_receive`: `goto out` without a head to flush).
    pub(crate) overtakes: bool,
}

/// Dissects TCP and UDP over IPv4 and IPv6 behind any number of tags and bridged Ethernet headers,
/// and in tunnels that [`innermost`] knows; `None` for all else.
pub(crate) fn dissect(frame: &[u8]) -> Option<Dissected> {
    if let Some((tunnel, inner)) = tunnelled(frame) {
        let mut dissected = dissect(&inner)?;
        dissected.headers = frame.len() - (inner.len() - dissected.headers);
        dissected.flow.splice(0..0, tunnel);
        return Some(dissected);
    }
    let mut network = 14;
    loop {
        network += match frame.get(network - 2..network)? {
            [0x81, 0x00] | [0x88, 0xa8] => 4,
            [0x65, 0x58] => 14,
            _ => break,
        };
    }
    let mut flow = frame[..network].to_vec();
    match *frame.get(network - 2..network)? {
        [0x08, 0x00] => ipv4(frame, network, &mut flow),
        [0x86, 0xdd] => ipv6(frame, network, &mut flow),
        _ => None,
    }
}

/// The frame that a frame carries in a tunnel; itself where there is none.
pub(crate) fn innermost(frame: &[u8]) -> Vec<u8> {
    tunnelled(frame).map_or(frame.to_vec(), |(_, inner)| inner)
}

/// What must be equal in two packets of one tunnel of IP, GRE or VXLAN, and the frame in it. A packet
/// without an Ethernet header of its own gets one, with zeros for addresses.
fn tunnelled(frame: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let (addresses, protocol, at) = match frame.get(12..14)? {
        [0x08, 0x00] => (frame.get(26..34)?, frame[23], 34),
        [0x86, 0xdd] => (frame.get(22..54)?, frame[20], 54),
        _ => return None,
    };
    let body = frame.get(at..)?;
    let packet = |kind: &[u8], packet: &[u8]| [&[0; 12], kind, packet].concat();
    let (key, inner) = match (protocol, body) {
        (4, _) => (&[][..], packet(&[0x08, 0x00], body)),
        (41, _) => (&[][..], packet(&[0x86, 0xdd], body)),
        (47, [flags, ..]) => {
            let len = 4 + 4 * (flags & 0xb0).count_ones() as usize;
            let (kind, inner) = (body.get(2..4)?, body.get(len..)?);
            let inner = if kind == [0x65, 0x58] { inner.to_vec() } else { packet(kind, inner) };
            // With neither checksum nor sequence number in it, the header is all key.
            (if flags & 0x90 == 0 { &body[..len] } else { kind }, inner)
        }
        (UDP, [_, _, 0x12, 0xb5, _, _, _, _, _, 0, ..]) => (&body[..4], body.get(16..)?.to_vec()),
        _ => return None,
    };
    Some(([&frame[..14], addresses, key].concat(), inner))
}

fn ipv4(frame: &[u8], at: usize, flow: &mut Vec<u8>) -> Option<Dissected> {
    let ip = frame.get(at..at + 20)?;
    let len = usize::from(ip[0] & 15) * 4;
    let header = frame.get(at..at + len)?;
    let fragment = u16::from_be_bytes([ip[6], ip[7]]) & 0x3fff;
    if fragment & 0x1fff != 0 {
        return None;
    }
    flow.push(ip[9]);
    flow.extend(&ip[12..20]);
    let odd = ip[0] != 0x45 || fragment != 0 || sum(&[header]) != 0xffff;
    transport(frame, at + len, ip[9], &ip[12..20], odd, flow)
}

fn ipv6(frame: &[u8], at: usize, flow: &mut Vec<u8>) -> Option<Dissected> {
    let ip = frame.get(at..at + 40)?;
    flow.extend([ip[0] & 0xf0, ip[1] & 0x0f, ip[2], ip[3], ip[6]]);
    flow.extend(&ip[8..40]);
    let (mut next, mut end) = (ip[6], at + 40);
    while matches!(next, 0 | 43 | 60) {
        let extension = frame.get(end..end + 2)?;
        let len = (usize::from(extension[1]) + 1) * 8;
        next = extension[0];
        flow.extend(frame.get(end..end + len)?);
        end += len;
    }
    transport(frame, end, next, &ip[8..40], false, flow)
}

fn transport(
    frame: &[u8],
    at: usize,
    protocol: u8,
    addresses: &[u8],
    odd: bool,
    flow: &mut Vec<u8>,
) -> Option<Dissected> {
    let segment = frame.get(at..)?;
    let len = (segment.len() as u32).to_be_bytes();
    let good = sum(&[addresses, &len, &[0, protocol], segment]) == 0xffff;
    let (headers, overtakes) = match protocol {
        TCP => {
            let doff = usize::from(segment.get(12)? >> 4) * 4;
            (at + doff, !good || doff < 20 || doff > segment.len())
        }
        UDP => {
            let [length, check] = [4, 6].map(|at| segment.get(at..at + 2));
            let length = usize::from(u16::from_be_bytes(length?.try_into().ok()?));
            (at + 8, !good || check? == [0, 0] || length <= 8 || length != segment.len())
        }
        _ => return None,
    };
    flow.extend(&segment[..4]);
    Some(Dissected { flow: flow.clone(), transport: at, headers, overtakes: odd || overtakes })
}

/// The folded ones'-complement sum of the pieces put one behind the other (RFC 1071); each but the
/// last has an even length. Over bytes that hold a right checksum it is 0xffff.
pub(crate) fn sum(pieces: &[&[u8]]) -> u16 {
    let mut sum: u64 = 0;
    for piece in pieces {
        for pair in piece.chunks(2) {
            sum += u64::from(pair[0]) << 8 | pair.get(1).map_or(0, |&low| u64::from(low));
        }
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// An Ethernet frame of `len` bytes in all: IPv4, TCP from `port` to 5000, sequence number `seq`,
/// ACK set, both checksums right. From 65550 bytes on the IP length cannot hold the truth and keeps
/// its low 16 bits.
pub(crate) fn tcp4(port: u16, seq: u32, len: usize) -> Vec<u8> {
    assert!(len >= 54, "no room for the headers");
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00];
    frame.extend([0x45, 0]);
    frame.extend(((len - 14) as u16).to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, TCP, 0, 0, 10, 9, 0, 1, 10, 9, 0, 2]);
    frame.extend(port.to_be_bytes());
    frame.extend(5000_u16.to_be_bytes());
    frame.extend(seq.to_be_bytes());
    frame.extend([0, 0, 0, 1, 0x50, 0x10, 0x20, 0, 0, 0, 0, 0]);
    frame.extend((54..len).map(|i| (i * 31) as u8));
    finish(&mut frame, 24, 14..34, &[]);
    let (addresses, tcp_len) = (frame[26..34].to_vec(), ((len - 34) as u32).to_be_bytes());
    finish(&mut frame, 50, 34..len, &[&addresses, &tcp_len, &[0, TCP]]);
    frame
}

/// Writes the checksum of `range`, with `pseudo` before it, into the two bytes at `field`.
fn finish(frame: &mut [u8], field: usize, range: Range<usize>, pseudo: &[&[u8]]) {
    frame[field..field + 2].fill(0);
    let pieces: Vec<&[u8]> = pseudo.iter().copied().chain([&frame[range]]).collect();
    let check = (!sum(&pieces)).to_be_bytes();
    frame[field..field + 2].copy_from_slice(&check);
}

/// Makes the checksums of an untagged TCP or UDP frame right for the bytes that stand there now,
/// where its headers, lies included, can still be followed to them.
pub(crate) fn mend(frame: &mut [u8]) {
    let Some(kind) = frame.get(12..14) else { return };
    let ip = &frame[14..];
    let (addresses, protocol, at) = match *kind {
        [0x08, 0x00] if ip.len() >= 20 => {
            (14 + 12..14 + 20, ip[9], 14 + usize::from(ip[0] & 15) * 4)
        }
        [0x86, 0xdd] if ip.len() >= 40 => {
            let (mut next, mut at) = (ip[6], 14 + 40);
            while matches!(next, 0 | 43 | 60) && at + 2 <= frame.len() {
                (next, at) = (frame[at], at + (usize::from(frame[at + 1]) + 1) * 8);
            }
            (14 + 8..14 + 40, next, at)
        }
        _ => return,
    };
    if kind[0] == 0x08 && (34..=frame.len()).contains(&at) {
        finish(frame, 24, 14..at, &[]);
    }
    let field = match protocol {
        TCP => at + 16,
        UDP => at + 6,
        _ => return,
    };
    if at >= 34 && field + 2 <= frame.len() {
        let (addresses, len) =
            (frame[addresses].to_vec(), ((frame.len() - at) as u32).to_be_bytes());
        finish(frame, field, at..frame.len(), &[&addresses, &len, &[0, protocol]]);
    }
}

/// A frame's SHA-256, in hexadecimal as the program prints it.
pub(crate) fn sha256(frame: &[u8]) -> String {
    use sha2::{Digest, Sha256};
    Sha256::digest(frame).iter().map(|byte| format!("{byte:02x}")).collect()
}

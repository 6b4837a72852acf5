//! Internet checksums (RFC 1071) a second time, word by word: the oracle of those that are fast.

/// The folded sum of these bytes, 16 bits at a time.
fn folded(parts: &[&[u8]]) -> u16 {
    let mut sum = 0u64;
    for part in parts {
        for word in part.chunks(2) {
            sum += u64::from(word[0]) << 8 | word.get(1).copied().map_or(0, u64::from);
        }
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Whether the IPv4 header at `ip` sums up, and the TCP or UDP packet behind the IP header at `ip`
/// (20 or 24 bytes, or 40 where it is IPv6), which reaches to the end of the frame.
pub(crate) fn are_right(frame: &[u8], ip: usize) -> bool {
    let packet = &frame[ip..];
    let (header_is_right, protocol, addresses, header) = match packet[0] >> 4 {
        4 => {
            let header = usize::from(packet[0] & 15) * 4;
            (folded(&[&packet[..header]]) == 0xffff, packet[9], &packet[12..20], header)
        }
        _ => (true, packet[6], &packet[8..40], 40),
    };
    let segment = &packet[header..];
    let tail = [(segment.len() as u32).to_be_bytes(), [0, 0, 0, protocol]].concat();
    header_is_right && folded(&[addresses, &tail, segment]) == 0xffff
}

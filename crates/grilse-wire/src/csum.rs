//! The Internet checksum (RFC 1071): sums of 16-bit words in ones' complement.

/// A sum in progress, over bytes that come in pieces of any length.
#[derive(Clone, Copy, Debug, Default)]
pub struct Summer {
    sum: u64,
    odd: bool,
}

impl Summer {
    /// Starts from an unfolded sum, such as that of a pseudo-header.
    pub fn new(initial: u32) -> Self {
        Self { sum: initial.into(), odd: false }
    }

    /// Adds the bytes that follow.
    pub fn push(&mut self, bytes: &[u8]) {
        let piece = fold(sum(bytes));
        self.sum += u64::from(if self.odd { piece.swap_bytes() } else { piece });
        self.odd ^= bytes.len() % 2 == 1;
    }

    /// The folded sum, not complemented: 0xffff where a checksum verifies.
    pub fn fold(&self) -> u16 {
        let half = (self.sum >> 32) + (self.sum & 0xffff_ffff);
        fold(((half >> 32) + (half & 0xffff_ffff)) as u32)
    }
}

/// The unfolded sum of `bytes` as 16-bit words in network order; an odd last byte is a high byte.
pub fn sum(bytes: &[u8]) -> u32 {
    let mut sum = 0u64;
    let mut words = bytes.chunks_exact(2);
    for word in &mut words {
        sum += u64::from(u16::from_be_bytes([word[0], word[1]]));
    }
    if let [last] = words.remainder() {
        sum += u64::from(*last) << 8;
    }
    let half = (sum >> 32) + (sum & 0xffff_ffff);
    ((half >> 32) + (half & 0xffff_ffff)) as u32
}

/// Folds a sum to 16 bits with end-around carry; 0 only where `sum` is 0. Not complemented.
pub fn fold(sum: u32) -> u16 {
    let half = (sum >> 16) + (sum & 0xffff);
    ((half >> 16) + (half & 0xffff)) as u16
}

/// Adds two unfolded sums.
pub fn add(a: u32, b: u32) -> u32 {
    let (sum, carry) = a.overflowing_add(b);
    sum + u32::from(carry)
}

/// Subtracts `b` from `a`.
pub fn sub(a: u32, b: u32) -> u32 {
    add(a, !b)
}

/// Sum of the pseudo-header of TCP and UDP over IPv4 (RFC 9293, 3.1). `len` counts the layer-4
/// header and its payload, and may pass 65,535 in super-packets.
pub fn pseudo_v4(src: [u8; 4], dst: [u8; 4], protocol: u8, len: u32) -> u32 {
    let len = (len >> 16) + (len & 0xffff) + u32::from(protocol);
    add(add(sum(&src), sum(&dst)), len)
}

/// The same over IPv6 (RFC 8200, 8.1).
pub fn pseudo_v6(src: &[u8; 16], dst: &[u8; 16], protocol: u8, len: u32) -> u32 {
    let len = (len >> 16) + (len & 0xffff) + u32::from(protocol);
    add(add(sum(src), sum(dst)), len)
}

/// The checksum field `check` after one 16-bit word that it covers changed from `old` to `new`
/// (RFC 1624, and bit for bit the kernel's `csum_replace2`).
pub fn replace(check: u16, old: u16, new: u16) -> u16 {
    !add16(add16(!check, !old), new)
}

fn add16(a: u16, b: u16) -> u16 {
    let (sum, carry) = a.overflowing_add(b);
    sum + u16::from(carry)
}

//! The Toeplitz hash of receive-side scaling, bit for bit as NICs compute it.
//!
//! The hash is linear: every input bit that is set contributes the 32 key bits that begin at its
//! position. [`Table`] holds those contributions for every value of every 4-bit digit, so a hash
//! is two loads a byte. Tables by whole bytes halve the loads but take 12 KiB of the first-level
//! cache for IPv4 alone, where these take 1.5 KiB.
//!
//! Nothing here decides what is hashed: that is [`Flow::hash`](crate::dissect::Flow::hash).

/// Longest input: two IPv6 addresses and two ports.
pub const MAX_INPUT: usize = 36;

/// A hash key: 40 bytes, the first bit being the highest of the first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key(pub [u8; 40]);

impl Key {
    /// The key of Microsoft's RSS verification suite, which most NIC drivers take by default.
    pub const MICROSOFT: Self = Self([
        0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f,
        0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
        0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
    ]);

    /// The 32 bits from bit `at` on, of which the last is bit 319 at most.
    const fn window(&self, at: usize) -> u32 {
        let mut bits = 0u64;
        let mut i = 0;
        while i < 5 {
            let byte = at / 8 + i;
            bits = bits << 8 | if byte < 40 { self.0[byte] as u64 } else { 0 };
            i += 1;
        }
        (bits >> (8 - at % 8)) as u32
    }
}

impl Default for Key {
    fn default() -> Self {
        Self::MICROSOFT
    }
}

/// The table of [`Key::MICROSOFT`].
pub static MICROSOFT: Table = Table::new(&Key::MICROSOFT);

/// A key made ready: what each digit of each input byte contributes. 4,608 bytes, of which IPv4
/// touches the first 1,536.
#[derive(Clone, Debug)]
pub struct Table([[[u32; 16]; 2]; MAX_INPUT]);

impl Table {
    /// Computes the table of `key`.
    pub const fn new(key: &Key) -> Self {
        let mut table = [[[0u32; 16]; 2]; MAX_INPUT];
        let mut digit = 0;
        while digit < 2 * MAX_INPUT {
            let mut value = 1usize;
            while value < 16 {
                // The digit's highest bit comes first; the rest of the digit is done already.
                let top = value.ilog2();
                let window = key.window(4 * digit + 3 - top as usize);
                let rest = table[digit / 2][digit % 2][value - (1 << top)];
                table[digit / 2][digit % 2][value] = window ^ rest;
                value += 1;
            }
            digit += 1;
        }
        Self(table)
    }

    /// Hash of IPv4 addresses, and of source and destination port if given.
    #[inline]
    pub fn v4(&self, src: [u8; 4], dst: [u8; 4], ports: Option<(u16, u16)>) -> u32 {
        let mut input = [0; 12];
        input[..4].copy_from_slice(&src);
        input[4..8].copy_from_slice(&dst);
        // Zero bits contribute nothing, so an input without ports is one whose ports are 0.
        input[8..].copy_from_slice(&port_bytes(ports));
        self.hash(&input)
    }

    /// The same of IPv6 addresses.
    #[inline]
    pub fn v6(&self, src: &[u8; 16], dst: &[u8; 16], ports: Option<(u16, u16)>) -> u32 {
        let mut input = [0; MAX_INPUT];
        input[..16].copy_from_slice(src);
        input[16..32].copy_from_slice(dst);
        input[32..].copy_from_slice(&port_bytes(ports));
        self.hash(&input)
    }

    #[inline]
    fn hash<const N: usize>(&self, input: &[u8; N]) -> u32 {
        let digits = self.0.iter().zip(input);
        digits.fold(0, |hash, ([high, low], byte)| {
            hash ^ high[usize::from(byte >> 4)] ^ low[usize::from(byte & 15)]
        })
    }
}

fn port_bytes(ports: Option<(u16, u16)>) -> [u8; 4] {
    let (src, dst) = ports.unwrap_or((0, 0));
    (u32::from(src) << 16 | u32::from(dst)).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use core::net::{Ipv4Addr, Ipv6Addr};

    use proptest::prelude::*;

    use super::*;

    /// Microsoft's verification suite for RSS: source, destination, hash without and with ports.
    #[test]
    fn verification_suite_v4() {
        let vectors = [
            ("66.9.149.187", 2794, "161.142.100.80", 1766, 0x323e8fc2, 0x51ccc178),
            ("199.92.111.2", 14230, "65.69.140.83", 4739, 0xd718262a, 0xc626b0ea),
            ("24.19.198.95", 12898, "12.22.207.184", 38024, 0xd2d0a5de, 0x5c2b394a),
            ("38.27.205.30", 48228, "209.142.163.6", 2217, 0x82989176, 0xafc7327f),
            ("153.39.163.191", 44251, "202.188.127.2", 1303, 0x5d1809c5, 0x10e828a2),
        ];
        for (src, src_port, dst, dst_port, bare, full) in vectors {
            let [src, dst] = [src, dst].map(|a| a.parse::<Ipv4Addr>().unwrap().octets());
            assert_eq!(MICROSOFT.v4(src, dst, None), bare);
            assert_eq!(MICROSOFT.v4(src, dst, Some((src_port, dst_port))), full);
        }
    }

    #[test]
    fn verification_suite_v6() {
        let vectors = [
            ("3ffe:2501:200:1fff::7", 2794, "3ffe:2501:200:3::1", 1766, 0x2cc18cd5, 0x40207d3d),
            ("3ffe:501:8::260:97ff:fe40:efab", 14230, "ff02::1", 4739, 0x0f0c461c, 0xdde51bbf),
            (
                "3ffe:1900:4545:3:200:f8ff:fe21:67cf",
                44251,
                "fe80::200:f8ff:fe21:67cf",
                38024,
                0x4b61e985,
                0x02d1feef,
            ),
        ];
        for (src, src_port, dst, dst_port, bare, full) in vectors {
            let [src, dst] = [src, dst].map(|a| a.parse::<Ipv6Addr>().unwrap().octets());
            assert_eq!(MICROSOFT.v6(&src, &dst, None), bare);
            assert_eq!(MICROSOFT.v6(&src, &dst, Some((src_port, dst_port))), full);
        }
    }

    /// The definition: for each bit of the input that is set, the key shifted by its position.
    fn bit_by_bit(key: &[u8; 40], input: &[u8]) -> u32 {
        let bit = |bytes: &[u8], i: usize| u32::from(bytes[i / 8] >> (7 - i % 8) & 1);
        let window = |at| (at..at + 32).fold(0, |window, i| window << 1 | bit(key, i));
        (0..8 * input.len()).filter(|&i| bit(input, i) == 1).fold(0, |hash, i| hash ^ window(i))
    }

    proptest! {
        #[test]
        fn tables_equal_the_definition(key: [u8; 40], input: [u8; 32], more: [u8; 4]) {
            let mut whole = [0; MAX_INPUT];
            whole[..32].copy_from_slice(&input);
            whole[32..].copy_from_slice(&more);
            prop_assert_eq!(Table::new(&Key(key)).hash(&whole), bit_by_bit(&key, &whole));
        }
    }
}

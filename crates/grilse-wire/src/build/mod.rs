//! Whole frames from plain structs, for tests, generators and whoever answers packets.
//!
//! Every header is a struct of public fields with a `Default`, and every field that is derived
//! from others (lengths, header lengths, checksums, next headers) is computed unless the caller
//! says otherwise. So a right frame takes one line, and each lie takes one field more. Unlike a
//! view, a builder owns its bytes; it is not meant for the fast path.
//!
//! Bytes stand behind one another exactly as given: nothing is padded to Ethernet's 60 bytes, and
//! nothing is cut. Layers nest by passing one frame as the payload of the next.

mod ip;
mod l4;
mod link;
#[cfg(test)]
mod tests;
mod tunnel;

use alloc::vec::Vec;

pub use ip::{Ext, Ipv4, Ipv6, Network};
pub use l4::{Tcp, Transport, Udp};
pub use link::Eth;
pub use tunnel::{Geneve, Gre, Gue, Vxlan};

/// What goes into a checksum field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Check {
    /// The right value. UDP writes 0xffff where the sum comes to 0 (RFC 768); TCP and IPv4 write 0.
    #[default]
    Right,
    /// The right value with these bits flipped: wrong for every mask but 0.
    Flipped(u16),
    /// The folded sum of the pseudo-header, not complemented, as `CHECKSUM_PARTIAL` has it. Nonsense
    /// in an IPv4 header, which has no pseudo-header: there it writes 0.
    Partial,
    /// This value, whatever is right.
    Exactly(u16),
}

impl Check {
    /// The field's value, where `right` is the finished checksum and `pseudo` the folded sum of the
    /// pseudo-header.
    fn value(self, right: u16, pseudo: u16) -> u16 {
        match self {
            Self::Right => right,
            Self::Flipped(mask) => right ^ mask,
            Self::Partial => pseudo,
            Self::Exactly(value) => value,
        }
    }
}

/// An Ethernet frame of an IP packet.
///
/// ```
/// use grilse_wire::build::{Eth, Ipv4, Tcp, frame};
/// use grilse_wire::tcp::flag;
///
/// let eth = Eth::default();
/// let ip = Ipv4 { id: 7, ttl: 9, ..Default::default() };
/// let tcp = Tcp { seq: 1000, flags: flag::ACK | flag::PSH, ..Default::default() };
/// let frame = frame(eth, ip, tcp, b"hello");
/// assert_eq!(frame.len(), 14 + 20 + 20 + 5);
/// ```
pub fn frame<'a>(
    eth: Eth<'_>,
    network: impl Into<Network<'a>>,
    transport: impl Into<Transport<'a>>,
    payload: &[u8],
) -> Vec<u8> {
    let network = network.into();
    ethernet(eth, network.ethertype(), &packet(network, transport, payload))
}

/// An IP packet without a link header, as a TUN device carries it.
///
/// Checksums of layer 4 cover `transport` and all of `payload`, with the addresses and the true
/// length in the pseudo-header, whatever lies the IP header tells.
pub fn packet<'a>(
    network: impl Into<Network<'a>>,
    transport: impl Into<Transport<'a>>,
    payload: &[u8],
) -> Vec<u8> {
    let (network, transport) = (network.into(), transport.into());
    let mut segment = transport.header();
    segment.extend_from_slice(payload);
    transport.finish(&network, &mut segment);
    let mut packet = network.headers(transport.protocol(), segment.len());
    packet.extend_from_slice(&segment);
    packet
}

/// An Ethernet frame of any bytes under any ethertype (host order): ARP, a truncated packet, or a
/// type that does not tell what follows.
pub fn ethernet(eth: Eth<'_>, ethertype: u16, body: &[u8]) -> Vec<u8> {
    let mut frame = eth.header(ethertype);
    frame.extend_from_slice(body);
    frame.resize(frame.len() + eth.padding, 0);
    frame
}

/// `len` bytes of a stream from position `at` on, each made from its position, so that a misplaced
/// byte shows.
pub fn payload(at: usize, len: usize) -> Vec<u8> {
    (at..at + len).map(|i| (i * 31 + (i >> 8)) as u8).collect()
}

/// Options as a header takes them: filled up with zeros to a multiple of four bytes.
fn padded(options: &[u8]) -> impl Iterator<Item = u8> {
    let zeros = options.len().next_multiple_of(4) - options.len();
    options.iter().copied().chain(core::iter::repeat_n(0, zeros))
}

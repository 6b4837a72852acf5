//! The packet that is delivered while the heads of its flow stay, and whom it would overtake.
//!
//! The kernel lets it (fragments, IP options, wrong checksums, and whatever else its walk gives up
//! on). Rules that keep the order complete first the heads that may be of its flow: those of the same
//! addresses, protocol and ports, and all of the same addresses where either has no ports to tell,
//! as fragments and tunnels have none.

use grilse_wire::Packet;
use grilse_wire::dissect::{Addrs, dissect};
use grilse_wire::eth::ethertype;

use super::held::Held;
use super::levels::{Addresses, Family};
use super::parse::{Flow, Layer};
use super::tcp;

/// Bytes behind the network header within which ports are looked for: a packet whose extension headers
/// reach further counts as one without.
const WINDOW: usize = 256;

/// The flow of an overtaking packet, by its outermost IP header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Overtaker {
    addresses: Addresses,
    /// Whether it is TCP, and both ports.
    ports: Option<(bool, [u8; 4])>,
}

impl Overtaker {
    /// The flow of `packet`, which was walked as far as `flow` tells; `None` where it has no
    /// addresses to tell, and so no flow.
    pub(super) fn new<P: Packet>(packet: &mut P, flow: &Flow) -> Option<Self> {
        let (at, kind) = match flow.levels.iter().next() {
            Some(level) if level.family == Family::V4 => (level.at, ethertype::IPV4),
            Some(level) => (level.at, ethertype::IPV6),
            None => (packet.meta().network, packet.meta().protocol),
        };
        // The same bytes, however many were contiguous already.
        let end = packet.len().min(usize::from(at) + WINDOW);
        let found = dissect(packet.gather(end)?.get(..end)?, at.into(), kind).ok()?;
        let addresses = match found.addrs {
            Addrs::V4 { src, dst } => Addresses::V4(src, dst),
            Addrs::V6 { src, dst } => Addresses::V6(src, dst),
        };
        let ports = found.ports.map(|(src, dst)| {
            let ([s0, s1], [d0, d1]) = (src.to_be_bytes(), dst.to_be_bytes());
            (found.protocol == tcp::PROTOCOL, [s0, s1, d0, d1])
        });
        Some(Self { addresses, ports })
    }

    /// Digest of the addresses.
    pub(super) fn pair(&self) -> u32 {
        self.addresses.pair()
    }

    /// Whether `held` may be of this flow.
    pub(super) fn overtakes<P: Packet>(&self, held: &Held<P>) -> bool {
        let mut levels = held.levels.iter();
        let Some(outer) = levels.next() else { return false };
        let tunnelled = levels.next().is_some();
        let front = held.packet.front();
        if Addresses::read(outer, front) != self.addresses {
            return false;
        }
        let Some((is_tcp, ports)) = self.ports.filter(|_| !tunnelled) else { return true };
        let l4 = usize::from(held.l4);
        matches!(held.layer, Layer::Tcp(_)) == is_tcp && front[l4..l4 + 4] == ports
    }
}

//! Random super-packets, as a guest or a tunnel driver may write them to a TAP device: mostly right,
//! and wrong in one way at a time.

use grilse::wire::build::{
    Check, Eth, Ext, Ipv4, Ipv6, Network, Tcp, Transport, Udp, frame, payload,
};
use grilse::wire::{Csum, Gso, GsoType, Meta, tcp, udp};

use super::Rng;

/// A frame, and what its virtio header says.
#[derive(Clone, Debug)]
pub(crate) struct Train {
    pub(crate) frame: Vec<u8>,
    pub(crate) meta: Meta,
}

const OPTIONS: &[&[u8]] = &[&[], &[1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2], &[1; 4], &[1; 40]];

const CHAINS: &[&[Ext<'static>]] = &[
    &[],
    &[],
    &[Ext::HopByHop(&[1, 4, 0, 0, 0, 0])],
    &[Ext::DestOpts(&[1, 4, 0, 0, 0, 1])],
    &[
        Ext::HopByHop(&[1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        Ext::Routing(&[4, 0, 0, 0, 0, 0]),
    ],
];

/// Payload lengths and segment sizes that meet at borders.
fn sizes(rng: &mut Rng) -> (usize, u16) {
    let size = rng.pick(&[1, 2, 7, 8, 100, 536, 1000, 1400, 1448, 8000, 8952]);
    let segments = rng.pick(&[1, 2, 2, 3, 7, 17, 45]);
    let len = (segments * size + rng.pick(&[0, 0, 1, size / 2, size - 1])).min(60_000);
    (len, size as u16)
}

/// One random super-packet.
pub(crate) fn train(rng: &mut Rng) -> Train {
    let (len, size) = sizes(rng);
    let network = network(rng);
    let is_v4 = matches!(network, Network::V4(_));
    let is_udp = rng.chance(40);
    // A random seed makes wrong checksums, and the same ones.
    let any = rng.next() as u16;
    let check = if rng.chance(85) { Check::Partial } else { Check::Exactly(any) };
    let mut options: &[u8] = &[];
    let (transport, kind, offset): (Transport<'_>, _, _) = if is_udp {
        let kind = if rng.chance(80) || !is_v4 { GsoType::UDP_L4 } else { GsoType::UDP };
        (Udp { check, ..Udp::default() }.into(), kind, udp::CHECK)
    } else {
        let kind = if is_v4 { GsoType::TCPV4 } else { GsoType::TCPV6 };
        let seq = rng.pick(&[1000, 0, u32::MAX - 700]);
        let flags = if rng.chance(60) { tcp::flag::ACK } else { rng.next() as u16 & 0x1ff };
        options = rng.pick(OPTIONS);
        (Tcp { seq, flags, options, check, ..Tcp::default() }.into(), kind, tcp::CHECK)
    };
    let size = if kind.contains(GsoType::UDP) { size.next_multiple_of(8) } else { size };
    let frame = frame(Eth::default(), network, transport, &payload(rng.below(100), len));
    let header = if is_udp { udp::LEN } else { tcp::MIN_LEN + options.len() };
    let l4 = (frame.len() - len - header) as u16;
    let mut csum = Csum::Partial { start: l4, offset: offset as u16 };
    // TCP needs no help to have its sum computed.
    if !is_udp && rng.chance(15) {
        csum = Csum::None;
    }
    let ecn = if !is_udp && rng.chance(10) { GsoType::TCP_ECN } else { GsoType::default() };
    let protocol = u16::from_be_bytes([frame[12], frame[13]]);
    let gso = Gso { size, segs: 0, kind: kind | ecn };
    Train {
        meta: Meta { protocol, network: 14, transport: l4, csum, gso, ..Meta::default() },
        frame,
    }
}

fn network(rng: &mut Rng) -> Network<'static> {
    if rng.chance(50) {
        let id = rng.pick(&[0, 1, 0xfffe]);
        let tos = rng.pick(&[0, 1, 2, 3, 0xb8]);
        Ipv4 {
            id,
            tos,
            df: rng.chance(70),
            ttl: rng.pick(&[1, 64, 255]),
            options: rng.pick(&[&[][..], &[], &[1; 4], &[1; 12]]),
            // GRO and some senders leave lengths and sums to whoever cuts.
            total_len: rng.pick(&[None, None, Some(0), Some(0xffff)]),
            check: rng.pick(&[Check::Right, Check::Exactly(0)]),
            ..Ipv4::default()
        }
        .into()
    } else {
        Ipv6 {
            class: rng.pick(&[0, 1, 0x28]),
            label: rng.pick(&[0, 0xf_ffff]),
            ext: rng.pick(CHAINS),
            ..Ipv6::default()
        }
        .into()
    }
}

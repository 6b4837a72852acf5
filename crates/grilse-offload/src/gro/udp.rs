//! UDP: whether a tunnel takes a datagram, or anybody wants it merged, and the meeting of a datagram with the head of its
//! flow (`udp_gro_receive`, `udp_gro_receive_segment`).

use grilse_wire::{Packet, udp};

use super::Sink;
use super::held::{Fate, Held, Step};
use super::levels::Addresses;
use super::parse::{Flow, Layer, Next};
use super::udp_tunnel;
use crate::{Config, Reason, Why};

pub(super) use udp::PROTOCOL;

/// The field of a datagram that decides.
#[derive(Clone, Copy, Debug)]
pub(super) struct Datagram {
    /// Length of header and payload.
    pub(super) len: u16,
}

/// Reads the header at the cursor, and judges its checksum unless the packet is unfit anyway.
pub(super) fn parse<P: Packet>(
    packet: &mut P,
    flow: &mut Flow,
    addresses: &Addresses,
    config: &Config,
) -> Result<Next, Why> {
    let left = packet.len() - flow.at;
    let header = *flow.header::<{ udp::LEN }, P>(packet, Reason::UdpTruncated)?;
    let [s0, s1, d0, d1, l0, l1, c0, c1] = header;
    let unsummed = [c0, c1] == [0, 0];
    if flow.unfit.is_none() {
        let pseudo = || addresses.pseudo(PROTOCOL, left);
        match flow.sums.validate(packet, flow.at, unsummed, pseudo) {
            Ok(unfit) => flow.unfit = unfit,
            Err(sum) => return Err(Why::new(Reason::UdpChecksum, 0xffffu16, sum)),
        }
    }
    let port = u16::from_be_bytes([d0, d1]);
    if let Some((_, tunnel)) = config.tunnel_ports.iter().find(|(owned, _)| *owned == port) {
        return udp_tunnel::parse(packet, flow, addresses, config, &header, *tunnel);
    }
    flow.list = mode(packet, port, config).map_err(|why| flow.refuse(why))?;
    flow.descend(&config.rules)?;
    if unsummed {
        return Err(flow.refuse(Reason::UdpZeroChecksum.into()));
    }
    let len = u16::from_be_bytes([l0, l1]);
    if usize::from(len) <= udp::LEN || usize::from(len) != left {
        return Err(flow.refuse(Why::new(Reason::UdpLength, left as u64, len)));
    }
    flow.at += udp::LEN;
    flow.len = left - udp::LEN;
    flow.digest ^= addresses.digest(u32::from_be_bytes([s0, s1, d0, d1]));
    Ok(Next::Payload(Layer::Udp(Datagram { len })))
}

/// Whether the datagram is chained whole, or merged by its bytes.
///
/// # Errors
/// Nobody asked for either.
fn mode<P: Packet>(packet: &P, port: u16, config: &Config) -> Result<bool, Why> {
    let socket = config.udp_gro_ports.contains(&port);
    if packet.meta().encapsulated {
        return Err(Reason::EncapsulatedUdp.into());
    }
    if !socket && !config.udp_fwd && !config.gro_list {
        return Err(Why::new(Reason::UdpNotAskedFor, 0u8, port));
    }
    Ok(!socket && config.gro_list)
}

/// What becomes of a datagram whose flow has no head.
pub(super) fn alone<P>(packet: P, flow: &Flow) -> Fate<P> {
    match flow.unfit {
        Some(why) => Fate::Normal(packet, why),
        None => Fate::Hold(packet),
    }
}

/// A datagram meets the head of its flow.
pub(super) fn join<P: Packet>(
    head: &mut Held<P>,
    packet: P,
    flow: &Flow,
    datagram: Datagram,
    config: &Config,
    sink: &mut impl Sink<P>,
) -> Step<P> {
    let Layer::Udp(held) = head.layer else { return Step::new(None, alone(packet, flow)) };
    if flow.list != head.list {
        let why = Why::new(Reason::ListMode, head.list, flow.list);
        return Step::new(Some(why), Fate::Normal(packet, why));
    }
    // As with TCP, a list takes what the IP layer flagged.
    if let Some(why) = flow.unfit.filter(|_| !head.list || config.rules.lossless) {
        return Step::new(Some(why), Fate::Normal(packet, why));
    }
    let apart =
        |packet, differs| Step::new(Some(flow.unfit.unwrap_or(differs)), alone(packet, flow));
    if config.rules.udp_obeys_l3
        && let Err(why) =
            flow.levels.compare(&head.levels, head.segs, &mut head.fixed, &config.rules)
    {
        return apart(packet, why);
    }
    let (mss, len) = (usize::from(held.len) - udp::LEN, flow.len);
    if datagram.len > held.len {
        return apart(packet, Why::lengths(Reason::LongerSegment, mss, len));
    }
    if head.list
        && let Err(why) = head.compare_checksums(&packet)
    {
        // In the kernel the head stays although the packet overtakes it; so does a fixed
        // identification.
        let why = flow.unfit.unwrap_or(why);
        return Step::new(config.rules.ordered.then_some(why), Fate::Normal(packet, why));
    }
    match head.absorb(packet, flow, config, sink) {
        Err((packet, why)) => apart(packet, why),
        Ok(emptied) => {
            let ended = if datagram.len != held.len {
                Some(Why::lengths(Reason::ShortSegment, mss, len))
            } else if head.segs >= config.rules.udp_max_segs {
                Some(Reason::UdpCap.into())
            } else {
                None
            };
            Step::new(ended, Fate::Merged(emptied))
        }
    }
}

//! The plain ways of forwarding: one change of headers each, and a port to send by.
//!
//! Addresses and ports are swapped in place, which keeps every checksum right, so none is computed
//! here but where a mode asks for it. A packet that a mode cannot use is dropped with a reason.

use grilse_offload::Why;
use grilse_packet::{DropReason, NoRoom, Skb};
use grilse_wire::dissect::{Addrs, Flow, Fragment, dissect};
use grilse_wire::{Csum, Packet, csum, eth, icmp, ipv4, ipv6, tcp, udp};

use crate::port::{Handler, PollCtx};

/// Bytes that are looked at for headers: link, tags, IPv6 with extensions, TCP.
const HEADERS: usize = 256;

/// What is done to packets on their way, as testpmd's forwarding modes name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Nothing.
    Io,
    /// The link addresses become those of the sending port and of its peer.
    Mac,
    /// Source and destination link addresses change places.
    MacSwap,
    /// So do link, IP and port addresses, of packets that have them.
    FiveTupleSwap,
    /// Nothing is sent.
    RxOnly,
    /// Every IPv4 header, TCP and UDP checksum is computed anew.
    Csum,
    /// ICMP echo requests and UDP are answered, by the port that they came in by.
    Echo,
}

/// A handler that forwards.
#[derive(Clone, Debug)]
pub struct Forward {
    mode: Mode,
    /// By the port that a packet came in by: the one that sends it.
    to: Box<[usize]>,
}

impl Forward {
    /// Forwards what port n receives by port `to[n]`.
    pub fn new(mode: Mode, to: &[usize]) -> Self {
        Self { mode, to: to.into() }
    }

    /// Changes a packet; the port to send it by, or why it is dropped.
    fn change(&self, skb: &mut Skb, from: usize) -> Result<usize, DropReason> {
        let to = self.to.get(from).copied().ok_or(DropReason::NoRoute)?;
        match self.mode {
            Mode::Io | Mode::RxOnly => {}
            Mode::Mac => {
                if let Some(addresses) = link(skb)? {
                    addresses[..6].copy_from_slice(&peer(to));
                    addresses[6..].copy_from_slice(&local(to));
                }
            }
            Mode::MacSwap => swap_link(skb)?,
            Mode::FiveTupleSwap => {
                swap_link(skb)?;
                if let Some(flow) = flow(skb)? {
                    swap_flow(skb, &flow)?;
                }
            }
            Mode::Csum => compute(skb)?,
            Mode::Echo => {
                answer(skb)?;
                return Ok(from);
            }
        }
        Ok(to)
    }
}

impl Handler for Forward {
    fn deliver(&mut self, poll: &mut PollCtx<'_>, mut skb: Skb, _: Why) {
        if self.mode == Mode::RxOnly {
            return poll.consume(skb);
        }
        match self.change(&mut skb, poll.port) {
            Ok(to) => poll.send(to, skb),
            Err(reason) => poll.drop_with(skb, reason),
        }
    }
}

/// The address that port n sends from in mode `mac`: locally administered.
fn local(port: usize) -> [u8; 6] {
    [0x02, 0, 0, 0, 1, port as u8]
}

/// The address that it sends to: testpmd's.
fn peer(port: usize) -> [u8; 6] {
    [0x02, 0, 0, 0, 0, port as u8]
}

/// The front of a packet, writable; its headers or all of it.
fn headers(skb: &mut Skb) -> Result<&mut [u8], DropReason> {
    let len = skb.len().min(HEADERS);
    skb.front_mut(len).ok_or(DropReason::NoBuffers)
}

/// The link addresses; `None` for a packet of a TUN device, which has no link header, and nothing to
/// change.
fn link(skb: &mut Skb) -> Result<Option<&mut [u8; 12]>, DropReason> {
    if usize::from(skb.meta().network) < eth::LEN {
        return Ok(None);
    }
    Ok(headers(skb)?.first_chunk_mut())
}

/// The addresses, and what stands where.
fn flow(skb: &mut Skb) -> Result<Option<Flow>, DropReason> {
    let (network, protocol) = (skb.meta().network.into(), skb.meta().protocol);
    Ok(dissect(headers(skb)?, network, protocol).ok())
}

/// Swaps the `n` bytes at `at` with the `n` behind them.
fn swap(bytes: &mut [u8], at: usize, n: usize) {
    if let Some(both) = bytes.get_mut(at..at + 2 * n) {
        both.rotate_left(n);
    }
}

fn swap_link(skb: &mut Skb) -> Result<(), DropReason> {
    if let Some(addresses) = link(skb)? {
        swap(addresses, 0, 6);
    }
    Ok(())
}

/// Swaps IP addresses, and ports where there are any.
fn swap_flow(skb: &mut Skb, flow: &Flow) -> Result<(), DropReason> {
    let bytes = headers(skb)?;
    match flow.addrs {
        Addrs::V4 { .. } => swap(bytes, flow.network + 12, 4),
        Addrs::V6 { .. } => swap(bytes, flow.network + 8, 16),
    }
    if let (Some(_), Some(at)) = (flow.ports, flow.transport) {
        swap(bytes, at, 2);
    }
    Ok(())
}

/// Computes the IPv4 header's checksum, and asks for that of TCP or UDP to be completed when the
/// packet is sent.
fn compute(skb: &mut Skb) -> Result<(), DropReason> {
    let Some(flow) = flow(skb)? else { return Ok(()) };
    let end = end(headers(skb)?, &flow).min(skb.len());
    // What a link added to a short frame is no part of what is summed.
    skb.trim(end).map_err(|NoRoom| DropReason::NoBuffers)?;
    let bytes = headers(skb)?;
    if let Addrs::V4 { .. } = flow.addrs {
        let len = usize::from(bytes[flow.network] & 15) * 4;
        if let Some(header) = bytes.get_mut(flow.network..flow.network + len) {
            header[ipv4::CHECK..][..2].fill(0);
            let check = !csum::fold(csum::sum(header));
            header[ipv4::CHECK..][..2].copy_from_slice(&check.to_be_bytes());
        }
    }
    let (Some(at), Fragment::No) = (flow.transport, flow.fragment) else { return Ok(()) };
    let field = match flow.protocol {
        tcp::PROTOCOL => tcp::CHECK,
        // Without a checksum before, without one after.
        udp::PROTOCOL if bytes.get(at + udp::CHECK..at + udp::LEN) != Some(&[0, 0]) => udp::CHECK,
        _ => return Ok(()),
    };
    let len = end.saturating_sub(at) as u32;
    let pseudo = match &flow.addrs {
        Addrs::V4 { src, dst } => csum::pseudo_v4(*src, *dst, flow.protocol, len),
        Addrs::V6 { src, dst } => csum::pseudo_v6(src, dst, flow.protocol, len),
    };
    let Some(check) = bytes.get_mut(at + field..at + field + 2) else { return Ok(()) };
    check.copy_from_slice(&csum::fold(pseudo).to_be_bytes());
    skb.meta_mut().csum = Csum::Partial { start: at as u16, offset: field as u16 };
    Ok(())
}

/// Where the IP packet ends by its own account; one of more than 64 KiB says nothing.
fn end(bytes: &[u8], flow: &Flow) -> usize {
    let (field, before) = match flow.addrs {
        Addrs::V4 { .. } => (2, 0),
        Addrs::V6 { .. } => (4, ipv6::LEN),
    };
    let len = bytes.get(flow.network + field..).and_then(|rest| rest.first_chunk());
    match len.map_or(0, |len| u16::from_be_bytes(*len)) {
        0 => usize::MAX,
        len => flow.network + before + usize::from(len),
    }
}

/// Turns a question into its answer.
fn answer(skb: &mut Skb) -> Result<(), DropReason> {
    let flow = flow(skb)?.filter(|flow| flow.fragment == Fragment::No);
    let (Some(flow), Some(at)) = (flow, flow.and_then(|flow| flow.transport)) else {
        return Err(DropReason::NotForUs);
    };
    let (request, reply) = match (flow.protocol, &flow.addrs) {
        (udp::PROTOCOL, _) => (None, 0),
        (icmp::PROTOCOL, Addrs::V4 { .. }) => (Some(icmp::ECHO_REQUEST), icmp::ECHO_REPLY),
        (icmp::PROTOCOL_V6, Addrs::V6 { .. }) => (Some(icmp::ECHO_REQUEST_V6), icmp::ECHO_REPLY_V6),
        _ => return Err(DropReason::NotForUs),
    };
    if let Some(request) = request {
        let Some([kind, _, a, b]) =
            headers(skb)?.get_mut(at..).and_then(|rest| rest.first_chunk_mut())
        else {
            return Err(DropReason::NotForUs);
        };
        if *kind != request {
            return Err(DropReason::NotForUs);
        }
        let check = u16::from_be_bytes([*a, *b]);
        let check = csum::replace(check, u16::from(request) << 8, u16::from(reply) << 8);
        *kind = reply;
        [*a, *b] = check.to_be_bytes();
    }
    swap_link(skb)?;
    swap_flow(skb, &flow)
}

//! The walk over the headers of one packet, from the link header to layer 4.
//!
//! Each layer reads its header at the cursor, `Flow::at`, judges it, and moves the cursor on; in the
//! end [`Flow`] holds all that merging needs to know. The walk sees no held packets. A header is
//! borrowed until the next is read and no longer, since that may move the bytes (the kernel's frag0
//! rule).

use grilse_wire::eth::{self, ethertype};
use grilse_wire::{Csum, GsoType, Packet, vlan};

use super::csum::Sums;
use super::l3;
use super::levels::Levels;
use super::{tcp, udp};
use crate::{Config, Frag0, Reason, Rules, Why};

/// What the walk learns of a packet, and where it is. Filled in place: moving it about costs more
/// than the walk.
#[derive(Debug)]
pub(super) struct Flow {
    /// Offset of the next header; behind the last one, of the payload (`skb_gro_offset`).
    pub(super) at: usize,
    /// How far headers are known to be contiguous (`frag0_len`).
    frag0: usize,
    /// Whether a header that is not known to be contiguous takes that knowledge away.
    resets: bool,
    pub(super) sums: Sums,
    /// Nested receive callbacks so far (`recursion_counter`).
    calls: u8,
    /// IP headers, outermost first.
    pub(super) levels: Levels,
    /// Whether the packet is chained whole (`is_flist`).
    pub(super) list: bool,
    /// Offset of the layer-4 header.
    pub(super) l4: u16,
    /// Length of the payload.
    pub(super) len: usize,
    /// Segments that the packet stands for.
    pub(super) segs: u16,
    /// Payload bytes per segment of a packet that came as a super-packet; 0: it did not.
    pub(super) gso_size: u16,
    /// Equal in packets of one flow, and seldom in others.
    pub(super) digest: u64,
    /// Bytes of Ethernet padding that were cut off.
    pub(super) padding: usize,
    /// Why the packet may neither be held nor merged, though its headers could be read (the
    /// kernel's `flush`): the head of its flow is completed.
    pub(super) unfit: Option<Why>,
}

/// What a header is followed by.
#[derive(Clone, Copy, Debug)]
pub(super) enum Next {
    /// The header of this ethertype, which somebody receives.
    Ethertype(u16),
    /// The payload: this was layer 4.
    Payload(Layer),
}

/// Layer 4 of a [`Flow`].
#[derive(Clone, Copy, Debug)]
pub(super) enum Layer {
    Tcp(tcp::Segment),
    Udp(udp::Datagram),
}

/// Walks all headers of `packet`, and marks the checksums that it finds good.
///
/// # Errors
/// Why the packet is delivered at once while the heads of its flow stay: it overtakes them.
#[inline]
pub(super) fn walk<P: Packet>(
    packet: &mut P,
    flow: &mut Flow,
    config: &Config,
) -> Result<Layer, Why> {
    let mut kind = packet.meta().protocol;
    if packet.len() < flow.at {
        return Err(Why::lengths(Reason::LinkTruncated, flow.at, packet.len()));
    }
    offloaded(kind, config)?;
    flow.unfit = input(packet);
    loop {
        let next = match kind {
            ethertype::IPV4 => l3::ipv4(packet, flow, config)?,
            ethertype::IPV6 => l3::ipv6(packet, flow, config)?,
            ethertype::TEB => ethernet(packet, flow, config)?,
            _ => tag(packet, flow, config)?,
        };
        match next {
            Next::Ethertype(next) => kind = next,
            Next::Payload(layer) => return Ok(layer),
        }
    }
}

/// Whether somebody receives this ethertype (the kernel's `offload_base`).
pub(super) fn offloaded(kind: u16, config: &Config) -> Result<(), Why> {
    match kind {
        ethertype::IPV4 | ethertype::IPV6 | ethertype::TEB => Ok(()),
        ethertype::VLAN | ethertype::QINQ if config.vlan => Ok(()),
        ethertype::VLAN | ethertype::QINQ => Err(Why::new(Reason::VlanNotHandled, 0u8, kind)),
        _ => Err(Why::new(Reason::NoOffload, 0u8, kind)),
    }
}

/// What is wrong with a packet before any header is read (`dev_gro_receive`).
fn input<P: Packet>(packet: &P) -> Option<Why> {
    let gso = packet.meta().gso;
    let tcp = GsoType::TCPV4 | GsoType::TCPV6;
    if packet.is_chained() {
        Some(Reason::ChainedInput.into())
    } else if gso.size == 0 {
        None
    } else if !gso.kind.intersects(tcp) {
        Some(Why::new(Reason::GsoNotTcp, tcp.0, gso.kind.0))
    } else if gso.kind.contains(GsoType::DODGY) {
        Some(Why::new(Reason::UntrustedGso, 0u8, gso.kind.0))
    } else {
        None
    }
}

/// An 802.1Q or 802.1ad tag (`vlan_gro_receive`): the ethertype behind it.
fn tag<P: Packet>(packet: &mut P, flow: &mut Flow, config: &Config) -> Result<Next, Why> {
    let tag = *flow.header::<{ vlan::LEN }, P>(packet, Reason::LinkTruncated)?;
    let kind = u16::from_be_bytes([tag[2], tag[3]]);
    offloaded(kind, config).map_err(|why| flow.refuse(why))?;
    flow.pass(&tag);
    flow.descend(&config.rules)?;
    Ok(Next::Ethertype(kind))
}

/// An Ethernet header under ethertype TEB (`eth_gro_receive`): the ethertype in it.
fn ethernet<P: Packet>(packet: &mut P, flow: &mut Flow, config: &Config) -> Result<Next, Why> {
    let header = *flow.header::<{ eth::LEN }, P>(packet, Reason::LinkTruncated)?;
    let kind = u16::from_be_bytes([header[12], header[13]]);
    offloaded(kind, config).map_err(|why| flow.refuse(why))?;
    flow.pass(&header);
    flow.descend(&config.rules)?;
    Ok(Next::Ethertype(kind))
}

impl Flow {
    /// At the network header of a packet of which nothing is known.
    #[inline]
    pub(super) fn new<P: Packet>(packet: &P, rules: &Rules) -> Self {
        let meta = packet.meta();
        let resets = rules.frag0 == Frag0::ResetAlways;
        Self {
            at: meta.network.into(),
            frag0: if resets { 0 } else { packet.front().len() },
            resets,
            sums: Sums::new(meta.csum, rules.lossless),
            calls: 0,
            levels: Levels::default(),
            list: false,
            l4: 0,
            len: 0,
            segs: if meta.gso.size == 0 { 1 } else { meta.gso.segs },
            gso_size: meta.gso.size,
            digest: meta.hash.into(),
            padding: 0,
            unfit: None,
        }
    }

    /// The `N` bytes at the cursor, where they lie if they are contiguous there
    /// (`skb_gro_header`). Also makes all bytes in front of them contiguous.
    #[inline]
    pub(super) fn header<'p, const N: usize, P: Packet>(
        &mut self,
        packet: &'p mut P,
        truncated: Reason,
    ) -> Result<&'p [u8; N], Why> {
        self.gather(packet, N, truncated)?;
        match packet.front().get(self.at..).and_then(|bytes| bytes.first_chunk()) {
            Some(header) => Ok(header),
            None => Err(self.refuse(Reason::Unreadable.into())),
        }
    }

    /// Makes the packet contiguous to `n` bytes behind the cursor.
    #[inline]
    pub(super) fn gather<P: Packet>(
        &mut self,
        packet: &mut P,
        n: usize,
        truncated: Reason,
    ) -> Result<(), Why> {
        let end = self.at + n;
        if end <= self.frag0 { Ok(()) } else { self.pull(packet, end, truncated) }
    }

    /// The slow half of [`gather`](Self::gather) (`skb_gro_header_slow`). Out of line, so that what
    /// it forgets is stored, and loaded by the next header's test.
    #[inline(never)]
    fn pull<P: Packet>(
        &mut self,
        packet: &mut P,
        end: usize,
        truncated: Reason,
    ) -> Result<(), Why> {
        if self.resets {
            self.frag0 = 0; // skb_gro_frag0_invalidate
        }
        if packet.front().len() >= end {
            return Ok(());
        }
        let len = packet.len();
        if len < end {
            return Err(self.refuse(Why::lengths(truncated, end, len)));
        }
        match packet.gather(end) {
            Some(_) => Ok(()),
            None => Err(self.refuse(Why::lengths(Reason::Unreadable, 0, end))),
        }
    }

    /// Cuts off what lies behind `end`, if that is Ethernet padding: behind the outermost IP header,
    /// and not of a super-packet. Whether it was.
    #[cold]
    pub(super) fn trim<P: Packet>(&mut self, packet: &mut P, end: usize, rules: &Rules) -> bool {
        let padding = packet.len().saturating_sub(end);
        let outermost = self.levels.iter().count() == 1;
        if !outermost || padding == 0 || end < self.at || self.gso_size != 0 || !packet.trim(end) {
            return false;
        }
        self.padding = padding;
        if matches!(packet.meta().csum, Csum::Complete { .. }) {
            // The device's sum covers the padding.
            packet.meta_mut().csum = Csum::None;
            self.sums = Sums::new(Csum::None, rules.lossless);
        }
        true
    }

    /// Moves behind a header that a device's sum covers.
    pub(super) fn pass(&mut self, header: &[u8]) {
        self.sums.pass(header);
        self.at += header.len();
    }

    /// Counts one nested receive callback (`gro_recursion_inc_test`).
    #[inline]
    pub(super) fn descend(&mut self, rules: &Rules) -> Result<(), Why> {
        self.calls += 1;
        if self.calls >= rules.recursion_limit {
            let most = rules.recursion_limit.saturating_sub(1);
            return Err(self.refuse(Why::new(Reason::RecursionLimit, most, self.calls)));
        }
        Ok(())
    }

    /// The reason to deliver the packet now: the first that was found.
    #[cold]
    pub(super) fn refuse(&self, why: Why) -> Why {
        self.unfit.unwrap_or(why)
    }
}

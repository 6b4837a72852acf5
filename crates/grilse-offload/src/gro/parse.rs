//! The walk over the headers of one packet, from the link header to layer 4.
//!
//! Each layer reads its header at the [`Cursor`], judges it, and hands the cursor on; the last one
//! makes a [`Flow`]: all that merging needs to know. The walk sees no held packets. A header is
//! copied out as it is read, since the next read may move the bytes (the kernel's frag0 rule).

use grilse_wire::eth::{self, ethertype};
use grilse_wire::{GsoType, Packet, vlan};

use super::csum::Sums;
use super::l3::{self, Levels};
use super::{tcp, udp};
use crate::{Config, Reason, Rules, Why};

/// A packet that may merge.
#[derive(Debug)]
pub(super) struct Flow {
    /// IP headers, outermost first.
    pub(super) levels: Levels,
    /// Protocol and fields of layer 4.
    pub(super) layer: Layer,
    /// Whether it is chained whole (`is_flist`).
    pub(super) list: bool,
    /// Offset of the layer-4 header.
    pub(super) l4: u16,
    /// Offset of the payload (`skb_gro_offset` when all is parsed).
    pub(super) payload: usize,
    /// Length of the payload.
    pub(super) len: usize,
    /// Segments that the packet stands for.
    pub(super) segs: u16,
    /// Payload bytes per segment of a packet that came as a super-packet; 0: it did not.
    pub(super) gso_size: u16,
    /// Equal in packets of one flow, and seldom in others.
    pub(super) digest: u64,
    /// Why the packet may neither be held nor merged, though its headers could be read (the
    /// kernel's `flush`): the head of its flow is completed.
    pub(super) unfit: Option<Why>,
}

/// Layer 4 of a [`Flow`].
#[derive(Clone, Copy, Debug)]
pub(super) enum Layer {
    Tcp(tcp::Segment),
    Udp(udp::Datagram),
}

/// Where the walk is.
#[derive(Debug)]
pub(super) struct Cursor {
    /// Offset of the next header.
    pub(super) at: usize,
    pub(super) sums: Sums,
    pub(super) levels: Levels,
    pub(super) unfit: Option<Why>,
    calls: u8,
}

/// Walks all headers of `packet`, and marks the checksums that it finds good.
///
/// # Errors
/// Why the packet is delivered at once while the heads of its flow stay: it overtakes them.
pub(super) fn walk<P: Packet>(packet: &mut P, config: &Config) -> Result<Flow, Why> {
    let meta = packet.meta();
    let mut kind = meta.protocol;
    let at = usize::from(meta.network);
    if packet.len() < at {
        return Err(Why::lengths(Reason::LinkTruncated, at, packet.len()));
    }
    offloaded(kind, config)?;
    let mut cursor = Cursor {
        at,
        sums: Sums::new(meta.csum),
        levels: Levels::default(),
        unfit: input(packet),
        calls: 0,
    };
    loop {
        kind = match kind {
            ethertype::IPV4 => return l3::ipv4(packet, cursor, config),
            ethertype::IPV6 => return l3::ipv6(packet, cursor, config),
            ethertype::TEB => ethernet(packet, &mut cursor, config)?,
            _ => tag(packet, &mut cursor, config)?,
        };
    }
}

/// Whether somebody receives this ethertype (the kernel's `offload_base`).
fn offloaded(kind: u16, config: &Config) -> Result<(), Why> {
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
fn tag<P: Packet>(packet: &mut P, cursor: &mut Cursor, config: &Config) -> Result<u16, Why> {
    let tag = cursor.header::<{ vlan::LEN }, P>(packet, Reason::LinkTruncated)?;
    let kind = u16::from_be_bytes([tag[2], tag[3]]);
    offloaded(kind, config).map_err(|why| cursor.refuse(why))?;
    cursor.pass(&tag);
    cursor.descend(&config.rules)?;
    Ok(kind)
}

/// An Ethernet header under ethertype TEB (`eth_gro_receive`): the ethertype in it.
fn ethernet<P: Packet>(packet: &mut P, cursor: &mut Cursor, config: &Config) -> Result<u16, Why> {
    let header = cursor.header::<{ eth::LEN }, P>(packet, Reason::LinkTruncated)?;
    let kind = u16::from_be_bytes([header[12], header[13]]);
    offloaded(kind, config).map_err(|why| cursor.refuse(why))?;
    cursor.pass(&header);
    cursor.descend(&config.rules)?;
    Ok(kind)
}

impl Cursor {
    /// Copies out the `N` bytes at the cursor.
    pub(super) fn header<const N: usize, P: Packet>(
        &self,
        packet: &mut P,
        truncated: Reason,
    ) -> Result<[u8; N], Why> {
        let bytes = self.read(packet, N, truncated)?;
        let mut header = [0; N];
        header.copy_from_slice(&bytes[..N]);
        Ok(header)
    }

    /// At least the `n` bytes at the cursor, from where they lie if they are contiguous there
    /// (`skb_gro_header`). Also makes all bytes in front of them contiguous.
    pub(super) fn read<'p, P: Packet>(
        &self,
        packet: &'p mut P,
        n: usize,
        truncated: Reason,
    ) -> Result<&'p [u8], Why> {
        let end = self.at + n;
        if packet.front().len() >= end {
            return Ok(&packet.front()[self.at..]);
        }
        let len = packet.len();
        if len < end {
            return Err(self.refuse(Why::lengths(truncated, end, len)));
        }
        match packet.pull(end) {
            Some(bytes) => Ok(&bytes[self.at..]),
            None => Err(self.refuse(Why::lengths(Reason::Unreadable, 0, end))),
        }
    }

    /// Moves behind a header that a device's sum covers.
    pub(super) fn pass(&mut self, header: &[u8]) {
        self.sums.pass(header);
        self.at += header.len();
    }

    /// Counts one nested receive callback (`gro_recursion_inc_test`).
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

    /// Ends the walk behind a layer-4 header at `l4`.
    pub(super) fn finish<P: Packet>(
        self,
        packet: &P,
        l4: u16,
        layer: Layer,
        list: bool,
        digest: u64,
    ) -> Flow {
        let meta = packet.meta();
        let gso = meta.gso;
        Flow {
            levels: self.levels,
            layer,
            list,
            l4,
            payload: self.at,
            len: packet.len() - self.at,
            segs: if gso.size == 0 { 1 } else { gso.segs },
            gso_size: gso.size,
            digest: digest ^ u64::from(meta.hash),
            unfit: self.unfit,
        }
    }
}

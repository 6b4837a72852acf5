//! Headers of tunnels, around the packet or frame that they carry.
//!
//! What they give is the payload of an IP packet (GRE) or of a datagram (the others). IP in IP
//! needs no header: its payload is a packet, under
//! [`Transport::Raw`](super::Transport::Raw).

use alloc::vec::Vec;

use zerocopy::IntoBytes;

use super::{Check, padded};
use crate::eth::ethertype;
use crate::{csum, geneve, gre, gue, vxlan};

/// A GRE header.
///
/// ```
/// use grilse_wire::build::{Eth, Gre, Ipv4, Tcp, Transport, frame, packet};
/// use grilse_wire::gre;
///
/// let inner = packet(Ipv4::default(), Tcp::default(), b"hello");
/// let tunnel = Gre { key: Some(7), ..Default::default() }.around(&inner);
/// let frame = frame(Eth::default(), Ipv4::default(), Transport::Raw(gre::PROTOCOL), &tunnel);
/// assert_eq!(frame.len(), 14 + 20 + 8 + inner.len());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Gre {
    /// Ethertype of the payload, host order.
    pub protocol: u16,
    /// Version, and flags beside those of the fields below.
    pub flags: u16,
    /// Checksum of header and payload.
    pub check: Option<Check>,
    /// Key.
    pub key: Option<u32>,
    /// Sequence number.
    pub seq: Option<u32>,
}

impl Default for Gre {
    /// IPv4, without optional fields.
    fn default() -> Self {
        Self { protocol: ethertype::IPV4, flags: 0, check: None, key: None, seq: None }
    }
}

impl Gre {
    /// The header, and `inner` behind it.
    pub fn around(&self, inner: &[u8]) -> Vec<u8> {
        let flag = |there: bool, flag| if there { flag } else { 0 };
        let flags = self.flags
            | flag(self.check.is_some(), gre::Header::CSUM)
            | flag(self.key.is_some(), gre::Header::KEY)
            | flag(self.seq.is_some(), gre::Header::SEQ);
        let header = gre::Header { flags: flags.into(), protocol: self.protocol.into() };
        let mut bytes = Vec::from(header.as_bytes());
        for field in [self.check.map(|_| 0), self.key, self.seq].into_iter().flatten() {
            bytes.extend_from_slice(&field.to_be_bytes());
        }
        bytes.extend_from_slice(inner);
        if let Some(check) = self.check {
            let check = check.value(!csum::fold(csum::sum(&bytes)), 0);
            bytes[gre::CHECK..gre::CHECK + 2].copy_from_slice(&check.to_be_bytes());
        }
        bytes
    }
}

/// A VXLAN header.
#[derive(Clone, Copy, Debug)]
pub struct Vxlan {
    /// Flags and reserved bits, and the next protocol of the generic protocol extension.
    pub flags: u32,
    /// Network identifier (24 bits).
    pub vni: u32,
    /// The byte behind it.
    pub reserved: u8,
}

impl Default for Vxlan {
    /// Network 0, without extensions.
    fn default() -> Self {
        Self { flags: vxlan::Header::VNI, vni: 0, reserved: 0 }
    }
}

impl Vxlan {
    /// One with the generic protocol extension, in front of this [next protocol](vxlan::next).
    pub fn gpe(next: u8) -> Self {
        let flags = vxlan::Header::VNI | vxlan::Header::GPE | u32::from(next);
        Self { flags, ..Self::default() }
    }

    /// The header, and `inner` behind it.
    pub fn around(&self, inner: &[u8]) -> Vec<u8> {
        let vni = self.vni << 8 | u32::from(self.reserved);
        let header = vxlan::Header { flags: self.flags.into(), vni: vni.into() };
        [header.as_bytes(), inner].concat()
    }
}

/// A GENEVE header.
#[derive(Clone, Copy, Debug)]
pub struct Geneve<'a> {
    /// Ethertype of the payload, host order.
    pub protocol: u16,
    /// Network identifier (24 bits).
    pub vni: u32,
    /// Flags.
    pub flags: u8,
    /// Version (2 bits).
    pub version: u8,
    /// Options, filled up with zeros to a multiple of four bytes; the header counts 252 at most.
    pub options: &'a [u8],
}

impl Default for Geneve<'_> {
    /// Ethernet in network 0, without options.
    fn default() -> Self {
        Self { protocol: ethertype::TEB, vni: 0, flags: 0, version: 0, options: &[] }
    }
}

impl Geneve<'_> {
    /// The header, and `inner` behind it.
    pub fn around(&self, inner: &[u8]) -> Vec<u8> {
        let [_, vni @ ..] = self.vni.to_be_bytes();
        let header = geneve::Header {
            version_options: self.version << 6 | self.options.len().div_ceil(4) as u8 & 0x3f,
            flags: self.flags,
            protocol: self.protocol.into(),
            vni,
            reserved: 0,
        };
        let mut bytes = Vec::from(header.as_bytes());
        bytes.extend(padded(self.options));
        bytes.extend_from_slice(inner);
        bytes
    }
}

/// A GUE header of version 0.
#[derive(Clone, Copy, Debug)]
pub struct Gue<'a> {
    /// IP protocol number of the payload, or type of the control message.
    pub protocol: u8,
    /// Version (2 bits).
    pub version: u8,
    /// The control bit.
    pub control: bool,
    /// Which optional fields there are.
    pub flags: u16,
    /// The optional fields, filled up with zeros to a multiple of four bytes; the header counts 124
    /// at most.
    pub fields: &'a [u8],
}

impl Default for Gue<'_> {
    /// IPv4, without optional fields.
    fn default() -> Self {
        Self { protocol: crate::ipv4::PROTOCOL, version: 0, control: false, flags: 0, fields: &[] }
    }
}

impl Gue<'_> {
    /// The header, and `inner` behind it.
    pub fn around(&self, inner: &[u8]) -> Vec<u8> {
        let control = if self.control { gue::Header::CONTROL } else { 0 };
        let words = self.fields.len().div_ceil(4) as u8 & 0x1f;
        let header = gue::Header {
            version_control_len: self.version << 6 | control | words,
            protocol: self.protocol,
            flags: self.flags.into(),
        };
        let mut bytes = Vec::from(header.as_bytes());
        bytes.extend(padded(self.fields));
        bytes.extend_from_slice(inner);
        bytes
    }
}

//! Tunnels around the frames of random traffic: IP, GRE and VXLAN, over IPv4 and IPv6.

use grilse::wire::build::{Check, Eth, Gre, Ipv4, Ipv6, Network, Transport, Udp, Vxlan};
use grilse::wire::build::{ethernet, packet};

use super::Rng;

/// The port at which VXLAN ends, where anybody holds it.
pub(crate) const VXLAN_PORT: u16 = 4789;

/// The headers in front of an inner packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tunnel {
    may_be_v6: bool,
    v6: bool,
    ip4: Ipv4<'static>,
    ip6: Ipv6<'static>,
    udp: Udp,
    gre: Gre,
    vxlan: Vxlan,
    kind: Kind,
    /// Its packet goes through a second one, which only differs in its addresses.
    doubled: bool,
    /// What the identification grows by.
    id_step: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Ip,
    Gre,
    /// GRE that carries Ethernet.
    Bridge,
    Vxlan,
}

const KINDS: &[Kind] = &[Kind::Ip, Kind::Gre, Kind::Bridge, Kind::Vxlan];

impl Tunnel {
    pub(crate) fn new(may_be_v6: bool, rng: &mut Rng) -> Self {
        let check = rng.pick(&[Check::Right, Check::Exactly(0)]);
        let gre_check = rng.chance(25).then_some(Check::Right);
        let key = rng.chance(40).then_some(7);
        Self {
            may_be_v6,
            v6: rng.chance(40),
            ip4: Ipv4 { id: rng.pick(&[1, 0xfffe, 0]), df: rng.chance(50), ..Ipv4::default() },
            ip6: Ipv6::default(),
            udp: Udp { src_port: 50_000, dst_port: VXLAN_PORT, check, ..Udp::default() },
            gre: Gre { check: gre_check, key, ..Gre::default() },
            vxlan: Vxlan { vni: 7, ..Vxlan::default() },
            kind: rng.pick(KINDS),
            doubled: rng.chance(3),
            id_step: rng.pick(&[1, 1, 1, 0, 2]),
        }
    }

    /// A frame whose packet is the tunnel's; `inner` is a frame too.
    pub(crate) fn around(&self, eth: Eth<'static>, inner: &[u8]) -> Vec<u8> {
        let mut whole = self.once(eth, inner);
        if self.doubled {
            whole = self.once(eth, &whole);
        }
        whole
    }

    fn once(&self, eth: Eth<'static>, inner: &[u8]) -> Vec<u8> {
        let kind = u16::from_be_bytes([inner[12], inner[13]]);
        let v6 = self.v6 && self.may_be_v6;
        let network: Network<'_> = if v6 { self.ip6.into() } else { self.ip4.into() };
        let ethertype = if v6 { 0x86dd } else { 0x0800 };
        let body = match self.kind {
            Kind::Ip => {
                let protocol = if kind == 0x86dd { 41 } else { 4 };
                packet(network, Transport::Raw(protocol), &inner[14..])
            }
            Kind::Gre => packet(network, Transport::Raw(47), &self.gre(kind).around(&inner[14..])),
            Kind::Bridge => packet(network, Transport::Raw(47), &self.gre(0x6558).around(inner)),
            Kind::Vxlan => packet(network, self.udp, &self.vxlan.around(inner)),
        };
        ethernet(eth, ethertype, &body)
    }

    /// Beside a checksum there is one key: the kernel compares the checksum in its stead, and takes two
    /// keys of equal sums for one flow, which we do not (docs/design.md).
    fn gre(&self, protocol: u16) -> Gre {
        let key = match self.gre.check {
            Some(_) => self.gre.key.map(|_| 7),
            None => self.gre.key,
        };
        Gre { protocol, key, ..self.gre }
    }

    /// The next packet follows.
    pub(crate) fn sent(&mut self) {
        self.ip4.id = self.ip4.id.wrapping_add(self.id_step);
    }

    /// Makes it odd in one way.
    pub(crate) fn disturb(&mut self, rng: &mut Rng) {
        let quirk = rng.pick(QUIRKS);
        quirk(self, rng);
    }
}

const QUIRKS: &[fn(&mut Tunnel, &mut Rng)] = &[
    |t, rng| t.ip4.id = t.ip4.id.wrapping_add(rng.pick(&[1, 2, u16::MAX])),
    |t, rng| t.id_step = rng.pick(&[0, 1, 2]),
    |t, _| t.ip4.df ^= true,
    |t, rng| t.ip4.ttl = rng.pick(&[0, 63, 64, 255]),
    |t, rng| t.ip4.tos = rng.pick(&[0, 1, 2, 3, 0x28]),
    |t, _| t.ip4.reserved ^= true,
    |t, rng| t.ip4.total_len = rng.pick(&[None, Some(0), Some(100)]),
    |t, rng| t.ip4.check = rng.pick(&[Check::Right, Check::Flipped(1), Check::Exactly(0xffff)]),
    |t, rng| t.ip4.dst[3] = rng.pick(&[2, 3]),
    |t, rng| t.ip4.protocol = rng.pick(&[None, Some(4), Some(41), Some(47), Some(17)]),
    |t, rng| t.ip4.options = rng.pick(&[&[][..], &[1; 4]]),
    |t, rng| t.ip6.hop_limit = rng.pick(&[0, 63, 64, 255]),
    |t, rng| t.ip6.class = rng.pick(&[0, 1, 2, 3, 0x28]),
    |t, rng| t.ip6.label = rng.pick(&[0, 1, 0xf_ffff]),
    |t, rng| t.ip6.payload_len = rng.pick(&[None, Some(0), Some(100)]),
    |t, rng| t.ip6.dst[15] = rng.pick(&[2, 3]),
    |t, _| t.v6 ^= true,
    |t, rng| t.kind = rng.pick(KINDS),
    |t, _| t.doubled ^= true,
    |t, rng| t.gre.key = rng.pick(&[None, Some(7), Some(8)]),
    |t, rng| t.gre.seq = rng.pick(&[None, Some(1)]),
    |t, rng| t.gre.flags = rng.pick(&[0, 1, 2, 0x0800, 0x4000]),
    |t, rng| t.gre.check = rng.pick(&[None, Some(Check::Right), Some(Check::Flipped(1))]),
    |t, rng| t.udp.src_port = rng.pick(&[50_000, 50_001]),
    |t, rng| t.udp.dst_port = rng.pick(&[VXLAN_PORT, 5000]),
    |t, rng| t.udp.check = rng.pick(&[Check::Right, Check::Exactly(0), Check::Flipped(1)]),
    |t, rng| t.udp.len = rng.pick(&[None, Some(0), Some(100)]),
    |t, rng| t.vxlan.vni = rng.pick(&[7, 8]),
    |t, rng| t.vxlan.reserved = rng.pick(&[0, 1]),
    |t, rng| t.vxlan.flags = rng.pick(&[0x0800_0000, 0, 0x0c00_0003, 0x8800_0000]),
];

//! Traffic that an input decides: some flows, and in each packet what is odd about it.
//!
//! A packet follows the one before it in its flow unless the input says otherwise, so that most
//! inputs merge something. Frames are at most [`LONGEST`] bytes.

use arbitrary::Arbitrary;
use grilse_offload::{Config, FouPayload, Rules, Tunnel};
use grilse_wire::build::{
    Check, Eth, Ext, Geneve, Gre, Gue, Ipv4, Ipv6, Network, Tcp, Transport, Udp, Vxlan, ethernet,
    packet, payload,
};
use grilse_wire::eth::ethertype;
use grilse_wire::tcp::flag;
use grilse_wire::{Csum, Gso, GsoType, Meta, VlanTag, geneve, gre, gue, ipv4, ipv6, vxlan};

/// Bytes of the longest frame: with headroom it fits a frame of 2 KiB.
pub(crate) const LONGEST: usize = 1700;
/// Packets of one run at most, which suffice for more than 64 KiB in one super-packet.
const MOST: usize = 90;
/// Where FOU of IPv4 ends; the other tunnels have ports of their own.
const FOU_PORT: u16 = 5555;
/// Where plain datagrams go, and where a socket with UDP_GRO may be.
const UDP_PORT: u16 = 5000;

/// One run of GRO.
#[derive(Arbitrary, Clone, Debug)]
pub(crate) struct Traffic {
    pub(crate) setup: Setup,
    /// Payload of a packet that the input does not size, less one.
    usual: u16,
    ids: Ids,
    sent: Vec<Sent>,
}

/// How GRO is set up.
#[derive(Arbitrary, Clone, Debug)]
pub(crate) struct Setup {
    profile: u8,
    udp_fwd: bool,
    pub(crate) gro_list: bool,
    no_vlan: bool,
    udp_gro: bool,
    no_tunnels: bool,
    size: Size,
    /// Packets in one poll, less one.
    batch: u8,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Size {
    Usual,
    Big,
    Small,
    Off,
}

/// How the identifications of IPv4 grow.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Ids {
    first: u16,
    inner_step: u8,
    outer_step: u8,
    df: bool,
}

#[derive(Arbitrary, Clone, Debug)]
struct Sent {
    /// Bits 0-1: which of its kind; 2: IPv6; 3: UDP; 4-7: what it goes through.
    flow: u8,
    len: Option<u16>,
    quirk: Option<Quirk>,
}

/// What is odd about one packet.
#[derive(Arbitrary, Clone, Debug)]
enum Quirk {
    Flags(u16),
    Seq(i8),
    Ack,
    Window,
    Urgent,
    TcpOptions([u8; 4]),
    Ttl,
    Tos,
    Id(i8),
    Df,
    Reserved,
    Fragment,
    IpOptions,
    Extensions,
    TotalLen(u16),
    UdpLen(u16),
    L4Sum(u16),
    IpSum(u16),
    OuterSum(u16),
    Padding(u8),
    Hardware(Hardware),
    Damage(u8, u8),
    Cut(u16),
    Raw { protocol: u16, network: u8, bytes: Vec<u8> },
}

/// What a device says of a packet.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Hardware {
    Hash(u32),
    Interface(bool),
    Tag(u16),
    Encapsulated,
    Valid(u8),
    Summed(u32),
    Partial,
    Train { size: u16, segs: u16, udp: bool, untrusted: bool },
}

/// A frame as it comes to GRO.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) bytes: Vec<u8>,
    pub(crate) meta: Meta,
    /// Its flow, where the bytes are sure to tell it.
    pub(crate) flow: Option<u8>,
}

impl Setup {
    pub(crate) fn rules(&self) -> Rules {
        Rules::ALL[usize::from(self.profile) % Rules::ALL.len()]
    }

    pub(crate) fn batch(&self) -> usize {
        usize::from(self.batch) + 1
    }

    pub(crate) fn config(&self, rules: Rules) -> Config {
        let mut config = Config::default();
        config.rules = rules;
        (config.udp_fwd, config.gro_list) = (self.udp_fwd, self.gro_list);
        config.vlan = !self.no_vlan;
        let size = match self.size {
            Size::Usual | Size::Off => 65_536,
            Size::Big => 180_000,
            Size::Small => 3000,
        };
        config.gro = !matches!(self.size, Size::Off);
        config.set_gro_max_size(size).expect("below the limit");
        config.set_gro_ipv4_max_size(size).expect("below the limit");
        if self.udp_gro {
            config.udp_gro_ports = [UDP_PORT].into();
        }
        if !self.no_tunnels {
            config.tunnel_ports = [
                (vxlan::PORT, Tunnel::Vxlan),
                (vxlan::GPE_PORT, Tunnel::VxlanGpe),
                (geneve::PORT, Tunnel::Geneve),
                (gue::PORT, Tunnel::Gue),
                (FOU_PORT, Tunnel::Fou(FouPayload::Ipv4)),
            ]
            .into();
        }
        config
    }
}

impl Traffic {
    /// The frames, numbered from 0.
    pub(crate) fn frames(&self) -> Vec<Frame> {
        let mut at = [(0, 0); 256];
        let frames = self.sent.iter().take(MOST).zip(0..);
        frames.map(|(sent, seq)| self.frame(sent, seq, &mut at[usize::from(sent.flow)])).collect()
    }

    /// The next frame of a flow, which has sent so many packets and bytes.
    fn frame(&self, sent: &Sent, seq: u64, (count, at): &mut (u16, usize)) -> Frame {
        let usual = usize::from(self.usual) + 1;
        let len = sent.len.map_or(usual, usize::from) % 1450;
        let mut parts = Parts::new(sent.flow, *count, *at, self.ids);
        if let Some(quirk) = &sent.quirk {
            parts.disturb(quirk);
        }
        let mut bytes = parts.frame(sent.flow, &payload(*at, len));
        *count += 1;
        *at += len;
        let mut sure = true;
        let mut place = (ethertype_of(&bytes), 14);
        match &sent.quirk {
            Some(Quirk::Damage(at, byte)) => {
                let at = usize::from(*at) % bytes.len();
                bytes[at] ^= byte;
                sure = false;
            }
            Some(Quirk::Cut(len)) => {
                bytes.truncate(14 + usize::from(*len));
                sure = false;
            }
            Some(Quirk::Raw { protocol, network, bytes: raw }) => {
                bytes.clone_from(raw);
                place = (*protocol, (*network).into());
                sure = false;
            }
            _ => {}
        }
        bytes.truncate(LONGEST);
        let (protocol, network) = place;
        let mut meta = Meta { seq, protocol, network, ..Meta::default() };
        if let Some(Quirk::Hardware(hardware)) = sent.quirk {
            hardware.say(&mut meta, parts.transport());
            // Another hash, interface or tag is another flow.
            sure = false;
        }
        Frame { bytes, meta, flow: sure.then_some(sent.flow) }
    }
}

fn ethertype_of(frame: &[u8]) -> u16 {
    u16::from_be_bytes([frame[12], frame[13]])
}

impl Hardware {
    fn say(self, meta: &mut Meta, (transport, check): (u16, u16)) {
        match self {
            Self::Hash(hash) => meta.hash = hash,
            Self::Interface(other) => meta.interface = other.into(),
            Self::Tag(tci) => meta.vlan = Some(VlanTag { tpid: ethertype::VLAN, tci }),
            Self::Encapsulated => meta.encapsulated = true,
            Self::Valid(level) => meta.csum = Csum::Unnecessary { level: level % 4 },
            Self::Summed(sum) => meta.csum = Csum::Complete { sum },
            Self::Partial => meta.csum = Csum::Partial { start: transport, offset: check },
            Self::Train { size, segs, udp, untrusted } => {
                let kind = match (udp, meta.protocol) {
                    (true, _) => GsoType::UDP_L4,
                    (false, ethertype::IPV6) => GsoType::TCPV6,
                    (false, _) => GsoType::TCPV4,
                };
                let dodgy = if untrusted { GsoType::DODGY } else { GsoType::default() };
                meta.gso = Gso { size, segs, kind: kind | dodgy };
            }
        }
    }
}

/// The headers of one packet.
#[derive(Clone, Debug)]
struct Parts {
    eth: Eth<'static>,
    v6: bool,
    is_udp: bool,
    ip4: Ipv4<'static>,
    ip6: Ipv6<'static>,
    tcp: Tcp<'static>,
    options: Option<[u8; 4]>,
    udp: Udp,
    outer: Ipv4<'static>,
    outer_sum: Check,
}

impl Parts {
    fn new(flow: u8, count: u16, at: usize, ids: Ids) -> Self {
        let tagged = flow >> 4 == 9;
        let tags: &[VlanTag] = &[VlanTag { tpid: ethertype::VLAN, tci: 5 }];
        let src_port = 4000 + u16::from(flow & 3);
        let grown = |step: u8| ids.first.wrapping_add(count.wrapping_mul(u16::from(step % 3)));
        Self {
            eth: Eth { tags: if tagged { tags } else { &[] }, ..Eth::default() },
            v6: flow & 4 != 0,
            is_udp: flow & 8 != 0,
            ip4: Ipv4 { id: grown(ids.inner_step), df: ids.df, ..Ipv4::default() },
            ip6: Ipv6::default(),
            tcp: Tcp { src_port, seq: at as u32, ..Tcp::default() },
            options: None,
            udp: Udp { src_port, dst_port: UDP_PORT, ..Udp::default() },
            outer: Ipv4 { id: grown(ids.outer_step), ..Ipv4::default() },
            outer_sum: if flow & 1 == 0 { Check::Right } else { Check::Exactly(0) },
        }
    }

    /// Where an untunnelled packet without extension headers has its transport header, and where
    /// its checksum is from there.
    fn transport(&self) -> (u16, u16) {
        (if self.v6 { 54 } else { 34 }, if self.is_udp { 6 } else { 16 })
    }

    fn disturb(&mut self, quirk: &Quirk) {
        match *quirk {
            Quirk::Flags(flags) => self.tcp.flags = flags & (flag::AE * 2 - 1),
            Quirk::Seq(step) => self.tcp.seq = self.tcp.seq.wrapping_add_signed(step.into()),
            Quirk::Ack => self.tcp.ack += 1,
            Quirk::Window => self.tcp.window ^= 1,
            Quirk::Urgent => self.tcp.urgent = 1,
            Quirk::TcpOptions(options) => self.options = Some(options),
            Quirk::Ttl => (self.ip4.ttl, self.ip6.hop_limit, self.outer.ttl) = (9, 9, 9),
            Quirk::Tos => (self.ip4.tos, self.ip6.class) = (3, 3),
            Quirk::Id(step) => self.ip4.id = self.ip4.id.wrapping_add_signed(step.into()),
            Quirk::Df => self.ip4.df ^= true,
            Quirk::Reserved => self.ip4.reserved = true,
            Quirk::Fragment => {
                self.ip4.mf = true;
                self.ip6.ext = &[Ext::Fragment { offset: 0, more: true, id: 1 }];
            }
            Quirk::IpOptions => self.ip4.options = &[1; 4],
            Quirk::Extensions => {
                self.ip6.ext = &[Ext::HopByHop(&[1, 4, 0, 0, 0, 0]), Ext::DestOpts(&[1, 20])];
            }
            Quirk::TotalLen(len) => {
                (self.ip4.total_len, self.ip6.payload_len) = (Some(len), Some(len));
            }
            Quirk::UdpLen(len) => self.udp.len = Some(len),
            Quirk::L4Sum(sum) => (self.tcp.check, self.udp.check) = (flipped(sum), flipped(sum)),
            Quirk::IpSum(sum) => self.ip4.check = flipped(sum),
            Quirk::OuterSum(sum) => self.outer_sum = flipped(sum),
            Quirk::Padding(len) => self.eth.padding = (len % 60).into(),
            Quirk::Hardware(_) | Quirk::Damage(..) | Quirk::Cut(_) | Quirk::Raw { .. } => {}
        }
    }

    fn frame(&self, flow: u8, data: &[u8]) -> Vec<u8> {
        let tcp = match &self.options {
            Some(options) => Tcp { options, ..self.tcp },
            None => self.tcp,
        };
        let transport: Transport<'_> = if self.is_udp { self.udp.into() } else { tcp.into() };
        let network: Network<'_> = if self.v6 { self.ip6.into() } else { self.ip4.into() };
        let inner = packet(network, transport, data);
        self.through(flow >> 4, inner)
    }

    /// The inner packet in the tunnel of this number; the others have none.
    fn through(&self, tunnel: u8, inner: Vec<u8>) -> Vec<u8> {
        let (kind, protocol) = match self.v6 {
            true => (ethertype::IPV6, ipv6::PROTOCOL),
            false => (ethertype::IPV4, ipv4::PROTOCOL),
        };
        let bridged = || ethernet(Eth::default(), kind, &inner);
        let check = matches!(self.outer_sum, Check::Right | Check::Flipped(_));
        let gre = Gre {
            protocol: kind,
            check: check.then_some(self.outer_sum),
            key: (tunnel == 3).then_some(7),
            ..Gre::default()
        };
        let udp = |dst_port| Udp { src_port: 777, dst_port, check: self.outer_sum, len: None };
        let outer =
            |transport: Transport<'static>, body: &[u8]| packet(self.outer, transport, body);
        let gpe = if self.v6 { 2 } else { 1 };
        let body = match tunnel {
            1 => outer(Transport::Raw(protocol), &inner),
            2 | 3 => outer(Transport::Raw(gre::PROTOCOL), &gre.around(&inner)),
            4 => {
                let gre = Gre { protocol: ethertype::TEB, ..gre };
                outer(Transport::Raw(gre::PROTOCOL), &gre.around(&bridged()))
            }
            5 => outer(udp(vxlan::PORT).into(), &Vxlan::default().around(&bridged())),
            6 => outer(udp(vxlan::GPE_PORT).into(), &Vxlan::gpe(gpe).around(&inner)),
            7 => {
                let geneve = Geneve { options: &[0, 1, 1, 0, 9, 9, 9, 9], ..Geneve::default() };
                outer(udp(geneve::PORT).into(), &geneve.around(&bridged()))
            }
            8 => {
                let gue = Gue { protocol, ..Gue::default() };
                outer(udp(gue::PORT).into(), &gue.around(&inner))
            }
            10 => outer(udp(FOU_PORT).into(), &inner),
            _ => return ethernet(self.eth, kind, &inner),
        };
        ethernet(self.eth, ethertype::IPV4, &body)
    }
}

fn flipped(mask: u16) -> Check {
    Check::Flipped(mask)
}

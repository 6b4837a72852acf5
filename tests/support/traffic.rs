//! Random traffic: groups of frames, each meant for one poll, that are mostly right and mostly of few
//! flows, so that they merge, and wrong in a few ways at a time, so that it matters.
//!
//! Nothing is judged here. What is left out, because the oracle cannot see it or because nobody
//! claims it, is named at [`is_fair`] and at [`Extensions`].

use grilse::wire::VlanTag;
use grilse::wire::build::{Check, Eth, Ext, Ipv4, Ipv6, Tcp, Udp, ethernet, frame, payload};

use super::tunnel::{Tunnel, VXLAN_PORT};
use super::{Rng, frame as bytes};

/// What the frames may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scope {
    /// Frames in a group, at most.
    pub(crate) frames: usize,
    /// Flows in percent that are UDP.
    pub(crate) udp: usize,
    /// Flows in percent that go through a tunnel.
    pub(crate) tunnelled: usize,
    /// Tunnels over IPv6. Above 64 KiB the kernel writes its jumbo option over the tunnel header, as
    /// over extension headers.
    pub(crate) over_v6: bool,
    /// Flows in percent that have VLAN tags.
    pub(crate) tagged: usize,
    /// Long trains of long segments, which reach the size limits.
    pub(crate) bulk: bool,
    /// IPv6 extension headers.
    pub(crate) extensions: Extensions,
    /// Longest frame in bytes.
    pub(crate) longest: usize,
}

/// Which IPv6 extension headers there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extensions {
    /// All of [`CHAINS`].
    Any,
    /// At most 8 bytes. Above 64 KiB the kernel writes its jumbo option over longer ones, and then
    /// warns and drops the packet, or delivers a broken one (`ipv6_gro_complete`). That is not copied.
    Short,
}

/// One sender, as its next frame shows it.
#[derive(Clone, Copy, Debug)]
struct Flow {
    eth: Eth<'static>,
    tunnel: Option<Tunnel>,
    /// An Ethernet header of its own stands in front (ethertype TEB).
    bridged: bool,
    v6: bool,
    ip4: Ipv4<'static>,
    ip6: Ipv6<'static>,
    udp: bool,
    tcp: Tcp<'static>,
    dgram: Udp,
    /// Payload of a full segment.
    mss: usize,
    /// Position in the stream, from which the payload is made.
    at: usize,
    /// What the identification grows by.
    id_step: u16,
}

/// A way to be odd: for one frame, or from one frame on.
type Quirk = fn(&mut Flow, &mut Rng);

const OPTIONS: &[&[u8]] = &[
    &[],
    &[1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2],
    &[1, 1, 8, 10, 0, 0, 0, 2, 0, 0, 0, 2],
    &[1, 1, 5, 10, 0, 0, 1, 0, 0, 0, 2, 0],
    &[1; 4],
    &[1; 40],
];

const CHAINS: &[&[Ext<'static>]] = &[
    &[],
    &[Ext::HopByHop(&[1, 4, 0, 0, 0, 0])],
    &[Ext::DestOpts(&[1, 4, 0, 0, 0, 1])],
    &[Ext::Routing(&[4, 0, 0, 0, 0, 0])],
    &[Ext::HopByHop(&[1, 12]), Ext::DestOpts(&[1, 4])],
    &[Ext::Routing(&[0; 22]), Ext::HopByHop(&[1; 30]), Ext::DestOpts(&[0; 62])],
    &[Ext::DestOpts(&[1; 2046])],
    &[Ext::HopByHop(&[]); 16],
    &[Ext::Fragment { offset: 0, more: false, id: 7 }],
    &[Ext::HopByHop(&[]), Ext::Fragment { offset: 185, more: true, id: 7 }],
    &[Ext::Other { kind: 51, rest: &[4, 0, 0, 0, 0, 1, 0, 0, 0, 1] }],
    &[Ext::Other { kind: 59, rest: &[0, 0, 0, 0, 0, 0, 0] }],
    &[Ext::Other { kind: 0, rest: &[255, 0, 0, 0, 0, 0, 0] }],
];

/// The chains above that are at most 8 bytes long.
const SHORT_CHAINS: usize = 4;

const TAGS: &[&[VlanTag]] = &[
    &[],
    &[VlanTag { tpid: 0x8100, tci: 5 }],
    &[VlanTag { tpid: 0x8100, tci: 0x2005 }],
    &[VlanTag { tpid: 0x88a8, tci: 5 }],
    &[VlanTag { tpid: 0x88a8, tci: 5 }, VlanTag { tpid: 0x8100, tci: 6 }],
];

/// What a wrong length says, from the true one.
fn lie(len: usize, rng: &mut Rng) -> Option<u16> {
    let off = rng.pick(&[0, 1, 4, 8, 100, 0x8000, 0u16.wrapping_sub(1), 0u16.wrapping_sub(8)]);
    let len = (len as u16).wrapping_add(off);
    rng.pick(&[None, Some(len), Some(len), Some(0)])
}

/// Right, wrong, or one of the values that ones' complement holds equal.
fn check(rng: &mut Rng) -> Check {
    rng.pick(&[Check::Right, Check::Flipped(0x1234), Check::Exactly(0), Check::Exactly(0xffff)])
}

const QUIRKS: &[Quirk] = &[
    |f, rng| f.tcp.flags ^= 1 << rng.below(9),
    |f, rng| f.tcp.flags ^= 1 << rng.pick(&[0, 3, 3, 4]),
    |f, rng| f.tcp.flags = rng.below(512) as u16,
    |f, rng| f.tcp.reserved = rng.below(8) as u8,
    |f, rng| f.tcp.seq = f.tcp.seq.wrapping_add(rng.pick(&[1, f.mss as u32, 1 << 31])),
    |f, rng| f.tcp.seq = f.tcp.seq.wrapping_sub(rng.pick(&[1, f.mss as u32])),
    |f, rng| f.tcp.ack = f.tcp.ack.wrapping_add(rng.pick(&[1, u32::MAX])),
    |f, rng| f.tcp.window ^= rng.pick(&[1, 0x100]),
    |f, rng| f.tcp.urgent = rng.pick(&[0, 1, 0xffff]),
    |f, rng| f.tcp.options = rng.pick(OPTIONS),
    |f, rng| f.tcp.data_offset = rng.pick(&[None, Some(0), Some(4), Some(5), Some(6), Some(15)]),
    |f, rng| f.tcp.check = check(rng),
    |f, rng| f.dgram.check = check(rng),
    |f, rng| f.dgram.len = lie(8 + f.mss, rng),
    |f, rng| f.ip4.id = f.ip4.id.wrapping_add(rng.pick(&[1, 2, 0x100, u16::MAX])),
    |f, rng| f.id_step = rng.pick(&[0, 1, 2]),
    |f, _| f.ip4.df ^= true,
    |f, rng| f.ip4.ttl = rng.pick(&[0, 63, 64, 255]),
    |f, rng| f.ip4.tos = rng.pick(&[0, 1, 2, 3, 0x28, 0xff]),
    |f, _| f.ip4.reserved ^= true,
    |f, _| f.ip4.mf ^= true,
    |f, rng| f.ip4.offset = rng.pick(&[0, 1, 185]),
    |f, rng| f.ip4.options = rng.pick(&[&[][..], &[1; 4], &[0; 40]]),
    |f, rng| f.ip4.ihl = rng.pick(&[None, Some(0), Some(4), Some(6), Some(15)]),
    |f, rng| f.ip4.total_len = lie(40 + f.mss, rng),
    |f, rng| f.ip4.check = check(rng),
    |f, rng| f.ip4.dst[3] = rng.pick(&[2, 3]),
    |f, rng| f.ip4.protocol = rng.pick(&[None, Some(1), Some(6), Some(17), Some(50)]),
    |f, rng| (f.ip4.version, f.ip6.version) = rng.pick(&[(4, 6), (6, 4), (0, 5), (15, 7)]),
    |f, rng| f.ip6.hop_limit = rng.pick(&[0, 63, 64, 255]),
    |f, rng| f.ip6.class = rng.pick(&[0, 1, 2, 3, 0x28, 0xff]),
    |f, rng| f.ip6.label = rng.pick(&[0, 1, 0xf_ffff]),
    |f, rng| f.ip6.payload_len = lie(20 + f.mss, rng),
    |f, rng| f.ip6.src[rng.below(16)] ^= 1,
    |f, rng| f.ip6.next_header = rng.pick(&[None, Some(6), Some(17), Some(58), Some(44)]),
    |f, rng| f.tcp.src_port ^= rng.pick(&[1, 0x100]),
    |f, rng| (f.tcp.dst_port, f.dgram.dst_port) = rng.pick(&[(5000, 5000), (443, 443), (0, 0)]),
    |f, rng| f.eth.padding = rng.pick(&[0, 1, 2, 3, 6, 18, 46]),
    |f, rng| f.eth.src[5] = rng.pick(&[1, 9]),
    |f, _| f.bridged ^= true,
];

/// A random group for one poll; frames that are not fair are left out of it.
pub(crate) fn group(scope: &Scope, rng: &mut Rng) -> Vec<Vec<u8>> {
    let flows = rng.pick(&[1, 1, 1, 2, 2, 3, 4, 9, 12]);
    let mut flows: Vec<Flow> = (0..flows).map(|n| Flow::new(n, scope, rng)).collect();
    // A group that is odd in few ways tells more than one that is odd in all.
    let kinds = rng.pick(&[1, 2, 4, QUIRKS.len()]);
    let quirks: Vec<Quirk> = (0..kinds).map(|_| rng.pick(QUIRKS)).collect();
    let odd = rng.pick(&[0, 5, 15, 30, 60]);
    let size = if scope.bulk { scope.frames } else { rng.pick(&[2, 3, 4, 8, 16, scope.frames]) };
    let mut group = Vec::new();
    for _ in 0..size {
        let n = rng.below(flows.len());
        let flow = &mut flows[n];
        let mut shown = *flow;
        while rng.chance(odd) {
            let quirk = rng.pick(&quirks);
            quirk(&mut shown, rng);
            if rng.chance(30) {
                quirk(flow, rng);
            }
        }
        if let (Some(tunnel), Some(lasting)) = (&mut shown.tunnel, &mut flow.tunnel) {
            while rng.chance(odd) {
                tunnel.disturb(rng);
                if rng.chance(20) {
                    lasting.disturb(rng);
                }
            }
        }
        if rng.chance(odd / 4) && scope.tagged > 0 {
            shown.eth.tags = rng.pick(TAGS);
        }
        if rng.chance(odd / 4) {
            shown.ip6.ext = chain(scope, rng);
        }
        let len = if rng.chance(odd / 2) { another_len(flow.mss, rng) } else { flow.mss };
        let mut bytes = shown.frame(len);
        if rng.chance(odd / 3) {
            damage(&mut bytes, rng);
        }
        if let Some(tunnel) = &shown.tunnel
            && bytes.len() > 14
        {
            bytes = tunnel.around(shown.eth, &bytes);
            if rng.chance(odd / 3) {
                damage(&mut bytes, rng);
            }
        }
        flow.sent(len);
        if is_fair(&bytes, scope) {
            group.push(bytes);
        }
    }
    group
}

fn chain(scope: &Scope, rng: &mut Rng) -> &'static [Ext<'static>] {
    rng.pick(if scope.extensions == Extensions::Any { CHAINS } else { &CHAINS[..SHORT_CHAINS] })
}

/// A payload length that a segment may have where `mss` is the rule.
fn another_len(mss: usize, rng: &mut Rng) -> usize {
    rng.pick(&[0, 1, mss / 2, mss.saturating_sub(1), mss + 1, 2 * mss])
}

impl Flow {
    fn new(n: usize, scope: &Scope, rng: &mut Rng) -> Self {
        let long: &[usize] = &[1448, 8000, 8900];
        let any: &[usize] = &[1, 2, 5, 6, 100, 100, 500, 1448, 8900];
        // Some flows differ in the port alone, some in nothing.
        let port = 4000 + if rng.chance(80) { n as u16 } else { 0 };
        let mss = rng.pick(if scope.bulk { long } else { any }).min(scope.longest - 500);
        let any = rng.next() as u32;
        let seq = rng.pick(&[1000, 0, u32::MAX - 2 * mss as u32, any]);
        let options = rng.pick(OPTIONS);
        let id = rng.pick(&[1, 0xfffe, 0]);
        let dst_port = rng.pick(&[5000, 5000, 443]);
        let mut flow = Self {
            eth: Eth::default(),
            tunnel: rng.chance(scope.tunnelled).then(|| Tunnel::new(scope.over_v6, rng)),
            bridged: rng.chance(5),
            v6: rng.chance(45),
            ip4: Ipv4 { id, df: rng.chance(70), ..Ipv4::default() },
            ip6: Ipv6::default(),
            udp: rng.chance(scope.udp),
            tcp: Tcp { src_port: port, dst_port, seq, options, ..Tcp::default() },
            dgram: Udp { src_port: port, dst_port, ..Udp::default() },
            mss,
            at: 0,
            id_step: rng.pick(&[1, 1, 1, 0, 2]),
        };
        if rng.chance(scope.tagged) {
            flow.eth.tags = rng.pick(TAGS);
        }
        if rng.chance(40) {
            flow.ip6.ext = chain(scope, rng);
        }
        flow
    }

    fn frame(&self, len: usize) -> Vec<u8> {
        // A bridged frame has its tags, if any, in front of the outer type.
        let inner = Eth { tags: if self.bridged { &[] } else { self.eth.tags }, ..self.eth };
        let data = payload(self.at, len);
        let whole = match (self.v6, self.udp) {
            (false, false) => frame(inner, self.ip4, self.tcp, &data),
            (false, true) => frame(inner, self.ip4, self.dgram, &data),
            (true, false) => frame(inner, self.ip6, self.tcp, &data),
            (true, true) => frame(inner, self.ip6, self.dgram, &data),
        };
        if self.bridged { ethernet(Eth { padding: 0, ..self.eth }, 0x6558, &whole) } else { whole }
    }

    /// The next frame follows this one.
    fn sent(&mut self, len: usize) {
        self.at = (self.at + len) % 60_000;
        self.tcp.seq = self.tcp.seq.wrapping_add(len as u32);
        self.ip4.id = self.ip4.id.wrapping_add(self.id_step);
        if let Some(tunnel) = &mut self.tunnel {
            tunnel.sent();
        }
    }
}

/// Flips bits of the headers, or cuts the frame within them; half the time the checksums are made
/// right again, or they would be all that is ever found wrong.
fn damage(frame: &mut Vec<u8>, rng: &mut Rng) {
    if rng.chance(30) {
        frame.truncate(1 + rng.below(frame.len().min(120)));
    } else {
        let at = 12 + rng.below(frame.len().min(90) - 12);
        frame[at] ^= if rng.chance(50) { 1 << rng.below(8) } else { rng.next() as u8 };
    }
    if rng.chance(50) {
        bytes::mend(frame);
    }
}

/// Whether the oracle can show what GRO makes of the frame, and we claim to do the same.
fn is_fair(frame: &[u8], scope: &Scope) -> bool {
    let kind = |at: usize| frame.get(at..at + 2).map(|kind| u16::from_be_bytes([kind[0], kind[1]]));
    let is_tag = |kind: Option<u16>| matches!(kind, Some(0x8100 | 0x88a8));
    let mut network = 14;
    while is_tag(kind(network - 2)) {
        network += 4;
    }
    // The stack drops a tag without two bytes behind the ethertype, before or after GRO
    // (skb_vlan_untag).
    if network > 14 && frame.len() < network + 2 {
        return false;
    }
    // Whoever ends a VXLAN tunnel says whether remote checksum offload means anything to it; the
    // oracle's does not, and we refuse it (udp_tunnel.rs).
    let udp = match kind(network - 2) {
        Some(0x0800) => network + 20,
        _ => network + 40,
    };
    let remote = frame.get(udp + 9).is_some_and(|flags| flags & 0x20 != 0);
    !(kind(udp + 2) == Some(VXLAN_PORT) && remote) && frame.len() <= scope.longest
}

//! Packets in tunnels merge like those outside, and what comes out is the frame that the builder
//! makes of all their payload at once.
//!
//! IP in IP, GRE and VXLAN are held against the running kernel elsewhere (recorded cases, random
//! traffic). What that kernel lacks rests on its source, not run: GENEVE, foo over UDP, GUE.

use grilse_offload::{Config, FouPayload, Reason, Rules, Tunnel, gso};
use grilse_wire::build::{
    Check, Eth, Geneve, Gre, Gue, Ipv4, Ipv6, Network, Transport, Udp, Vxlan,
};
use grilse_wire::build::{ethernet, packet};
use grilse_wire::{Csum, GsoType, Heap, Linear, Packet, VlanTag, vxlan};

mod support;
use support::frame::{LEN, Parts, packets, tcp4, tcp6, udp4};
use support::{Frame, Out, Split, ethernet as ethernet_meta, reasons, run};

const PORT: u16 = 4789;

/// A tunnel: what it puts around a frame, and what it adds to the type of the super-packet.
struct Case {
    name: &'static str,
    kind: GsoType,
    /// What ends at [`PORT`].
    tunnel: Option<Tunnel>,
    /// Bytes between outer IP header and inner IP header.
    header: usize,
    around: fn(&[u8], Check) -> (Transport<'static>, Vec<u8>),
}

fn udp(check: Check) -> Transport<'static> {
    Udp { src_port: 50_000, dst_port: PORT, check, ..Udp::default() }.into()
}

fn ip_protocol(frame: &[u8]) -> u8 {
    if frame[12] == 8 { 4 } else { 41 }
}

fn ethertype(frame: &[u8]) -> u16 {
    u16::from_be_bytes([frame[12], frame[13]])
}

fn cases() -> Vec<Case> {
    const UDP: GsoType = GsoType::UDP_TUNNEL;
    const OPTIONS: &[u8] = &[1, 2, 3, 1, 5, 6, 7, 8];
    let case = |name, kind, tunnel, header, around| Case { name, kind, tunnel, header, around };
    vec![
        case("ip", GsoType::default(), None, 0, |f, _| {
            (Transport::Raw(ip_protocol(f)), f[14..].to_vec())
        }),
        case("gre", GsoType::GRE, None, 4, |f, _| {
            (Transport::Raw(47), Gre { protocol: ethertype(f), ..Gre::default() }.around(&f[14..]))
        }),
        case("gre-key", GsoType::GRE, None, 8, |f, _| {
            let gre = Gre { protocol: ethertype(f), key: Some(7), ..Gre::default() };
            (Transport::Raw(47), gre.around(&f[14..]))
        }),
        case("gre-ethernet", GsoType::GRE, None, 18, |f, _| {
            (Transport::Raw(47), Gre { protocol: 0x6558, ..Gre::default() }.around(f))
        }),
        case("vxlan", UDP, Some(Tunnel::Vxlan), 30, |f, check| {
            (udp(check), Vxlan::default().around(f))
        }),
        case("vxlan-gpe", UDP, Some(Tunnel::VxlanGpe), 16, |f, check| {
            let next = if f[12] == 8 { vxlan::next::IPV4 } else { vxlan::next::IPV6 };
            (udp(check), Vxlan::gpe(next).around(&f[14..]))
        }),
        case("geneve", UDP, Some(Tunnel::Geneve), 38, |f, check| {
            (udp(check), Geneve { options: OPTIONS, ..Geneve::default() }.around(f))
        }),
        case("geneve-ip", UDP, Some(Tunnel::Geneve), 16, |f, check| {
            let geneve = Geneve { protocol: ethertype(f), ..Geneve::default() };
            (udp(check), geneve.around(&f[14..]))
        }),
        case("fou-4", UDP, Some(Tunnel::Fou(FouPayload::Ipv4)), 8, |f, check| {
            (udp(check), f[14..].to_vec())
        }),
        case("fou-6", UDP, Some(Tunnel::Fou(FouPayload::Ipv6)), 8, |f, check| {
            (udp(check), f[14..].to_vec())
        }),
        case("fou-gre", UDP | GsoType::GRE, Some(Tunnel::Fou(FouPayload::Gre)), 12, |f, check| {
            (udp(check), Gre { protocol: ethertype(f), ..Gre::default() }.around(&f[14..]))
        }),
        case("gue-0", UDP, Some(Tunnel::Gue), 16, |f, check| {
            let gue = Gue { protocol: ip_protocol(f), flags: 1, fields: &[0; 4], ..Gue::default() };
            (udp(check), gue.around(&f[14..]))
        }),
        case("gue-1", UDP, Some(Tunnel::Gue), 8, |f, check| (udp(check), f[14..].to_vec())),
    ]
}

impl Case {
    fn config(&self) -> Config {
        let mut config = Config::default();
        config.tunnel_ports = self.tunnel.into_iter().map(|tunnel| (PORT, tunnel)).collect();
        config
    }

    /// Whether an inner packet of this version goes in.
    fn carries(&self, inner6: bool) -> bool {
        !matches!(
            (self.tunnel, inner6),
            (Some(Tunnel::Fou(FouPayload::Ipv4)), true)
                | (Some(Tunnel::Fou(FouPayload::Ipv6)), false)
        )
    }

    fn frame(&self, outer6: bool, id: u16, check: Check, inner: &[u8]) -> Vec<u8> {
        let (transport, body) = (self.around)(inner, check);
        let network: Network<'_> = match outer6 {
            true => Ipv6 { hop_limit: 9, ..Ipv6::default() }.into(),
            false => Ipv4 { id, ttl: 9, df: false, ..Ipv4::default() }.into(),
        };
        ethernet(
            Eth::default(),
            if outer6 { 0x86dd } else { 0x0800 },
            &packet(network, transport, &body),
        )
    }

    /// The type bits of a super-packet, beside those of TCP.
    fn kind(&self, outer6: bool, check: Check) -> GsoType {
        let summed = check != Check::Exactly(0);
        let udp = if self.tunnel.is_some() && summed {
            GsoType(self.kind.0 & !GsoType::UDP_TUNNEL.0 | GsoType::UDP_TUNNEL_CSUM.0)
        } else {
            self.kind
        };
        // In IP directly, or as good as that.
        let in_ip = self.name == "ip"
            || matches!(self.tunnel, Some(Tunnel::Gue))
            || self.name == "fou-4"
            || self.name == "fou-6";
        match (in_ip, outer6) {
            (false, _) => udp,
            (true, false) => udp | GsoType::IPXIP4,
            (true, true) => udp | GsoType::IPXIP6,
        }
    }
}

fn check(case: &Case, outer6: bool, inner6: bool, sum: Check) {
    let name = format!("{} over {outer6} of {inner6} with {sum:?}", case.name);
    let inner =
        |n: u32, edit: &dyn Fn(&mut Parts)| if inner6 { tcp6(n, edit) } else { tcp4(n, edit) };
    let frames = (0..3).map(|n| case.frame(outer6, 70 + n as u16, sum, &inner(n, &|_| ())));
    let out = run(&case.config(), packets(frames), 64);
    assert_eq!(reasons(&out), [Reason::PollEnd], "{name}");
    assert_eq!(out[0].members, [0, 1, 2], "{name}");

    let whole = inner(0, &|p| {
        p.resize(3 * LEN);
        p.tcp.check = Check::Partial;
    });
    let partial = if sum == Check::Right { Check::Partial } else { sum };
    assert_eq!(out[0].packet.frame(), case.frame(outer6, 70, partial, &whole), "{name}");

    let meta = out[0].packet.meta();
    let outer = 14 + if outer6 { 40 } else { 20 };
    let network = outer + case.header;
    let transport = network + if inner6 { 40 } else { 20 };
    let tcp = if inner6 { GsoType::TCPV6 } else { GsoType::TCPV4 };
    assert!(meta.encapsulated, "{name}");
    assert_eq!(usize::from(meta.network), 14, "{name}");
    let told = if case.tunnel.is_some() { network } else { 0 };
    assert_eq!(usize::from(meta.inner_network), told, "{name}");
    assert_eq!(usize::from(meta.transport), transport, "{name}");
    assert_eq!(meta.csum, Csum::Partial { start: transport as u16, offset: 16 }, "{name}");
    assert_eq!((meta.gso.size, meta.gso.segs), (LEN as u16, 3), "{name}");
    assert_eq!(meta.gso.kind, case.kind(outer6, sum) | tcp, "{name}");
}

#[test]
fn every_tunnel_merges_to_the_frame_built_at_once() {
    for case in cases() {
        for (outer6, inner6) in [(false, false), (false, true), (true, false), (true, true)] {
            if case.carries(inner6) {
                check(&case, outer6, inner6, Check::Right);
                check(&case, outer6, inner6, Check::Exactly(0));
            }
        }
    }
}

/// Packets of two flows are both held, however often they alternate.
fn are_apart(config: &Config, frames: [Vec<u8>; 2]) {
    let [a, b] = frames;
    let out = run(config, packets([a, b]), 64);
    assert_eq!(reasons(&out), [Reason::PollEnd; 2]);
}

#[test]
fn what_tells_tunnels_apart_tells_flows_apart() {
    let over = |transport: Transport<'_>, body: &[u8]| {
        ethernet(Eth::default(), 0x0800, &packet(Ipv4::default(), transport, body))
    };
    let plain = Config::default();
    let gre = |n: u32, gre: Gre| over(Transport::Raw(47), &gre.around(&tcp4(n, |_| ())[14..]));
    let key = |key| Gre { key: Some(key), ..Gre::default() };
    are_apart(&plain, [gre(0, key(7)), gre(1, key(8))]);
    // The sum does not see that halves of the key changed places.
    let summed = |key| Gre { key: Some(key), check: Some(Check::Right), ..Gre::default() };
    are_apart(&plain, [gre(0, summed(0x0001_0002)), gre(1, summed(0x0002_0001))]);

    let ends = |tunnel| {
        let mut config = Config::default();
        config.tunnel_ports = Box::new([(PORT, tunnel)]);
        config
    };
    let vxlan = |n, header: Vxlan, udp: Udp| {
        let udp = Udp { dst_port: PORT, ..udp };
        over(udp.into(), &header.around(&tcp4(n, |_| ())))
    };
    let config = ends(Tunnel::Vxlan);
    let (header, udp) = (Vxlan::default(), Udp::default());
    are_apart(&config, [vxlan(0, header, udp), vxlan(1, Vxlan { vni: 1, ..header }, udp)]);
    are_apart(&config, [vxlan(0, header, udp), vxlan(1, Vxlan { reserved: 1, ..header }, udp)]);
    are_apart(&config, [vxlan(0, header, udp), vxlan(1, header, Udp { src_port: 9, ..udp })]);
    let unsummed = Udp { check: Check::Exactly(0), ..udp };
    are_apart(&config, [vxlan(0, header, udp), vxlan(1, header, unsummed)]);

    let geneve = |n, options| {
        let header = Geneve { options, ..Geneve::default() };
        let udp = Udp { dst_port: PORT, ..udp };
        over(udp.into(), &header.around(&tcp4(n, |_| ())))
    };
    are_apart(&ends(Tunnel::Geneve), [geneve(0, &[1, 2, 3, 4]), geneve(1, &[1, 2, 3, 5])]);
    // Eight bytes that are a UDP header, and GRE with a key.
    let fou = Udp { src_port: 0x2000, dst_port: 0x0800, ..udp };
    let mut config = ends(Tunnel::Fou(FouPayload::Ipv4));
    config.tunnel_ports[0].0 = 0x0800;
    let fou = over(fou.into(), &tcp4(0, |_| ())[14..]);
    let word = u32::from_be_bytes([fou[38], fou[39], fou[40], fou[41]]);
    are_apart(&config, [fou, gre(1, key(word))]);
}

#[test]
fn tags_in_a_tunnel_are_part_of_the_flow() {
    let mut config = Config::default();
    config.tunnel_ports = Box::new([(PORT, Tunnel::Vxlan)]);
    let tagged = |n| tcp4(n, |p| p.eth.tags = &[VlanTag { tpid: 0x8100, tci: 5 }]);
    let around = |inner: Vec<u8>| {
        let body = packet(Ipv4::default(), udp(Check::Right), &Vxlan::default().around(&inner));
        ethernet(Eth::default(), 0x0800, &body)
    };
    let out = run(&config, packets((0..2).map(tagged).map(around)), 64);
    assert_eq!(reasons(&out), [Reason::PollEnd]);
    assert_eq!(out[0].packet.meta().inner_network, 68);
}

/// Two packets of which the device says this of checksums, the second one damaged.
fn vouched(csum: impl Fn(&[u8]) -> Csum, outer: Check, inner: Check) -> Vec<Out<Split>> {
    let mut config = Config::default();
    config.tunnel_ports = Box::new([(PORT, Tunnel::Vxlan)]);
    let frame = |n, outer, inner| {
        let inner = tcp4(n, |p| p.tcp.check = inner);
        let body = packet(Ipv4::default(), udp(outer), &Vxlan::default().around(&inner));
        ethernet(Eth::default(), 0x0800, &body)
    };
    let frames = [frame(0, Check::Right, Check::Right), frame(1, outer, inner)];
    let mut packets = packets(frames.clone());
    for (packet, frame) in packets.iter_mut().zip(&frames) {
        packet.meta_mut().csum = csum(frame);
    }
    run(&config, packets, 64)
}

#[test]
fn a_device_vouches_for_as_many_checksums_as_it_says() {
    let wrong = Check::Flipped(1);
    let one = |_: &[u8]| Csum::Unnecessary { level: 0 };
    let two = |_: &[u8]| Csum::Unnecessary { level: 1 };
    assert_eq!(reasons(&vouched(one, wrong, Check::Right)), [Reason::PollEnd]);
    assert_eq!(reasons(&vouched(one, Check::Right, wrong)), [Reason::TcpChecksum, Reason::PollEnd]);
    assert_eq!(reasons(&vouched(two, wrong, wrong)), [Reason::PollEnd]);
    let sum = |frame: &[u8]| Csum::Complete { sum: grilse_wire::csum::sum(&frame[14..]) };
    assert_eq!(reasons(&vouched(sum, Check::Right, Check::Right)), [Reason::PollEnd]);
    for check in [[wrong, Check::Right], [Check::Right, wrong]] {
        let out = vouched(sum, check[0], check[1]);
        assert_eq!(out.len(), 2);
        assert_ne!(out[0].why.reason, Reason::PollEnd, "it overtakes");
    }
    let none = |_: &[u8]| Csum::None;
    assert_eq!(
        reasons(&vouched(none, wrong, Check::Right)),
        [Reason::UdpChecksum, Reason::PollEnd]
    );
    // The device that has not computed the inner checksum has not computed the outer one either.
    let partial = |_: &[u8]| Csum::Partial { start: 84, offset: 16 };
    assert_eq!(reasons(&vouched(partial, wrong, wrong)), [Reason::PollEnd]);
}

#[test]
fn a_datagram_for_a_tunnel_overtakes_where_its_checksum_was_not_judged() {
    let mut config = Config::default();
    config.tunnel_ports = Box::new([(PORT, Tunnel::Vxlan)]);
    let frame = |n: u32, check, padding| {
        let inner = Vxlan::default().around(&tcp4(n, |_| ()));
        let body = packet(Ipv4::default(), udp(check), &inner);
        ethernet(Eth { padding, ..Eth::default() }, 0x0800, &body)
    };
    // Padding makes a packet unfit; without an outer checksum it is read on, and ends its head.
    let summed = [frame(0, Check::Right, 0), frame(1, Check::Right, 2)];
    let out = run(&config, packets(summed), 64);
    assert_eq!(reasons(&out), [Reason::IpTotalLength, Reason::PollEnd]);
    let bare = [frame(0, Check::Exactly(0), 0), frame(1, Check::Exactly(0), 2)];
    let out = run(&config, packets(bare), 64);
    assert_eq!(reasons(&out), [Reason::IpTotalLength; 2]);
}

/// Datagrams in a tunnel merge where datagrams merge; those chained become plain bytes where the
/// tunnel is not in UDP, as the kernel has it.
#[test]
fn datagrams_merge_in_tunnels() {
    let inner = |n| udp4(n, |_| ());
    for case in cases().iter().filter(|case| case.carries(false)) {
        for list in [false, true] {
            let mut config = case.config();
            (config.udp_fwd, config.gro_list) = (true, list);
            let frames = (0..2).map(|n| case.frame(false, n as u16, Check::Right, &inner(n)));
            let out = run(&config, packets(frames), 64);
            assert_eq!(reasons(&out), [Reason::PollEnd], "{}", case.name);
            let kind = out[0].packet.meta().gso.kind;
            assert!(kind.contains(GsoType::UDP_L4), "{}", case.name);
            let chained = list && case.tunnel.is_some();
            assert_eq!(kind.contains(GsoType::FRAGLIST), chained, "{}", case.name);
        }
    }
}

/// What `exact` coalesces in a tunnel is cut to the same frames again, whichever identifications stay,
/// and however short the last is.
#[test]
fn exact_rules_lose_nothing_in_tunnels() {
    for case in cases() {
        for (outer6, inner6) in [(false, false), (false, true), (true, false), (true, true)] {
            for (steps, sum) in [
                ([0, 0], Check::Right),
                ([0, 1], Check::Right),
                ([1, 0], Check::Exactly(0)),
                ([1, 1], Check::Right),
            ] {
                if !case.carries(inner6) {
                    continue;
                }
                let mut config = case.config();
                config.rules = Rules::EXACT;
                let frame = |n: u16| {
                    let edit = |p: &mut Parts| {
                        p.v4.id = n * steps[1];
                        p.payload.truncate(if n == 3 { 30 } else { LEN });
                    };
                    let inner = if inner6 { tcp6(n.into(), edit) } else { tcp4(n.into(), edit) };
                    case.frame(outer6, n * steps[0], sum, &inner)
                };
                let frames: Vec<_> = (0..4).map(frame).collect();
                let merged = coalesced(&config, &frames);
                let name = format!("{} over {outer6} of {inner6}, {steps:?}", case.name);
                assert!(cut(merged) == frames, "{name}");
            }
        }
    }
}

/// The checksum of GRE covers what segmentation changes. The kernel merges shorter last packets, and
/// then gives them the checksum of the first.
#[test]
fn exact_rules_restore_gre_checksums() {
    let mut config = Config::default();
    config.rules = Rules::EXACT;
    let frame = |n: u16| {
        let gre = Gre { check: Some(Check::Right), ..Gre::default() };
        let inner = tcp4(n.into(), |p| p.payload.truncate(if n == 3 { 30 } else { LEN }));
        let body = packet(Ipv4::default(), Transport::Raw(47), &gre.around(&inner[14..]));
        ethernet(Eth::default(), 0x0800, &body)
    };
    let frames: Vec<_> = (0..4).map(frame).collect();
    assert!(cut(coalesced(&config, &frames)) == frames);
}

/// The one packet that the frames make.
fn coalesced(config: &Config, frames: &[Vec<u8>]) -> Linear {
    let packets = frames.iter().zip(0..).map(|(f, seq)| Linear::of(f, ethernet_meta(f, seq)));
    let mut out = run(config, packets.collect(), 64);
    assert_eq!(out.len(), 1, "{:?}", reasons(&out));
    out.remove(0).packet
}

fn cut(packet: Linear) -> Vec<Vec<u8>> {
    let mut segments = gso::segment(packet, gso::Checksums::Finish).unwrap();
    segments.packets(&mut Heap).map(|packet: Linear| packet.frame()).collect()
}

/// Found by the fuzzer: whole packets chained in a tunnel are cut by the first one's header all the
/// same, and an urgent pointer of the second's own was lost, although `exact` loses nothing.
#[test]
fn exact_rules_keep_urgent_pointers_of_lists_in_tunnels() {
    for case in cases() {
        for inner6 in [false, true].into_iter().filter(|inner6| case.carries(*inner6)) {
            let mut config = case.config();
            (config.rules, config.gro_list) = (Rules::EXACT, true);
            let frame = |n: u16| {
                let edit = |p: &mut Parts| (p.v4.id, p.tcp.urgent) = (n, n / 2);
                let inner = if inner6 { tcp6(n.into(), edit) } else { tcp4(n.into(), edit) };
                case.frame(false, n, Check::Right, &inner)
            };
            let frames: Vec<_> = (0..4).map(frame).collect();
            let out = run(&config, packets(frames), 64);
            assert_eq!(reasons(&out), [Reason::UrgentPointer, Reason::PollEnd], "{}", case.name);
        }
    }
}

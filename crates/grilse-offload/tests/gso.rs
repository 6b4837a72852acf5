//! Segments as the frame builder makes them one by one: every protocol, every tunnel.

use grilse_offload::gso::Invalid;
use grilse_wire::build::{
    Check, Eth, Ext, Geneve, Gre, Gue, Ipv4, Ipv6, Network, Tcp, Transport, Udp, Vxlan, frame,
    packet, payload,
};
use grilse_wire::tcp::flag;
use grilse_wire::{GsoType, VlanTag, gre, ipv4, ipv6, tcp, udp};

mod support;
use support::cut::{cut, eth, leave, meta};

const SIZE: usize = 1000;
const LEN: usize = 3500;

/// Payload range of segment `n`.
fn part(n: usize) -> (usize, usize) {
    (n * SIZE, SIZE.min(LEN - n * SIZE))
}

/// TCP of segment `n`, or of the super-packet.
fn segment(n: Option<usize>) -> Tcp<'static> {
    let at = n.map_or(0, |n| n * SIZE);
    let mut flags = flag::ACK | flag::URG | flag::ECE | flag::AE;
    if n.is_none_or(|n| n == 0) {
        flags |= flag::CWR;
    }
    if n.is_none_or(|n| n == 3) {
        flags |= flag::FIN | flag::PSH;
    }
    let check = if n.is_some() { Check::Right } else { Check::Partial };
    let seq = (u32::MAX - 1500).wrapping_add(at as u32);
    Tcp { seq, flags, check, urgent: 9, options: &[1; 12], ..Tcp::default() }
}

/// An inner packet: that of segment `n`, or the super-packet. `id`: what the identification begins
/// with, and grows by.
fn inner(n: Option<usize>, v6: bool, is_udp: bool, id: (u16, u16)) -> Vec<u8> {
    let (at, len) = n.map_or((0, LEN), part);
    let id = id.0.wrapping_add(id.1 * n.unwrap_or(0) as u16);
    let network: Network<'_> = if v6 {
        Ipv6 { class: 3, label: 77, ..Ipv6::default() }.into()
    } else {
        Ipv4 { id, tos: 3, options: &[1; 4], ..Ipv4::default() }.into()
    };
    let check = if n.is_some() { Check::Right } else { Check::Partial };
    let transport: Transport<'_> =
        if is_udp { Udp { check, ..Udp::default() }.into() } else { segment(n).into() };
    packet(network, transport, &payload(at, len))
}

fn kind(v6: bool, is_udp: bool) -> (GsoType, usize) {
    match (is_udp, v6) {
        (true, _) => (GsoType::UDP_L4, udp::CHECK),
        (false, true) => (GsoType::TCPV6, tcp::CHECK),
        (false, false) => (GsoType::TCPV4, tcp::CHECK),
    }
}

const fn ethertype(v6: bool) -> u16 {
    if v6 { 0x86dd } else { 0x0800 }
}

/// Length of the IP header of [`inner`].
const fn ip_len(v6: bool) -> usize {
    if v6 { 40 } else { 24 }
}

const ALL: [(bool, bool); 4] = [(false, false), (false, true), (true, false), (true, true)];

#[test]
fn tcp_and_udp_are_cut_as_if_sent_one_by_one() {
    for (v6, is_udp) in ALL {
        let (kind, check) = kind(v6, is_udp);
        for (step, fixed) in [(1, GsoType::default()), (0, GsoType::TCP_FIXEDID)] {
            let build = |n| eth(ethertype(v6), &inner(n, v6, is_udp, (0xfffe, step)));
            let meta = meta(&build(None), SIZE as u16, kind | fixed, 14 + ip_len(v6), check);
            let want: Vec<Vec<u8>> = (0..4).map(|n| build(Some(n))).collect();
            assert_eq!(cut(&build(None), meta).unwrap(), want, "v6 {v6}, UDP {is_udp}");
            assert_eq!(leave(&build(None), meta), want);
        }
    }
}

#[test]
fn tags_labels_and_service_headers_are_repeated() {
    let shims: [(u16, &[u8]); 3] = [
        (0x8847, &[0, 1, 0x20, 64, 0, 2, 0x21, 63]),
        (0x8848, &[0, 2, 0x31, 63]),
        (0x894f, &[0x0f, 0xc2, 2, 1, 0, 0, 1, 255]),
    ];
    for (ethertype, shim) in shims {
        let build = |n| eth(ethertype, &[shim, &inner(n, false, false, (5, 1))].concat());
        let at = 14 + shim.len();
        let meta = meta(&build(None), SIZE as u16, GsoType::TCPV4, at + 24, tcp::CHECK);
        let want: Vec<Vec<u8>> = (0..4).map(|n| build(Some(n))).collect();
        assert_eq!(cut(&build(None), meta).unwrap(), want, "{ethertype:#x}");
    }
    let tags = &[VlanTag { tpid: 0x88a8, tci: 9 }, VlanTag { tpid: 0x8100, tci: 0xe005 }];
    let build = |n: Option<usize>| {
        let (at, len) = n.map_or((0, LEN), part);
        let ext = &[Ext::HopByHop(&[1, 4, 0, 0, 0, 0]), Ext::DestOpts(&[1, 4, 0, 0, 0, 0])];
        let eth = Eth { tags, ..Eth::default() };
        frame(eth, Ipv6 { ext, ..Ipv6::default() }, segment(n), &payload(at, len))
    };
    let mut meta = meta(&build(None), SIZE as u16, GsoType::TCPV6, 78, tcp::CHECK);
    let want: Vec<Vec<u8>> = (0..4).map(|n| build(Some(n))).collect();
    assert_eq!(cut(&build(None), meta).unwrap(), want);
    // Above the device the network header is that behind the tags.
    (meta.network, meta.protocol) = (22, 0x86dd);
    assert_eq!(cut(&build(None), meta).unwrap(), want);
}

/// An outer IP header with identification 100 + `n` times `step`.
fn outer(n: Option<usize>, v6: bool, step: u16, protocol: u8, body: &[u8]) -> Vec<u8> {
    let id = 100 + step * n.unwrap_or(0) as u16;
    let transport = Transport::Raw(protocol);
    if v6 {
        eth(0x86dd, &packet(Ipv6::default(), transport, body))
    } else {
        eth(0x0800, &packet(Ipv4 { id, ttl: 3, ..Ipv4::default() }, transport, body))
    }
}

#[test]
fn ip_in_ip_of_every_family() {
    for outer_v6 in [false, true] {
        for (v6, is_udp) in ALL {
            let protocol = if v6 { ipv6::PROTOCOL } else { ipv4::PROTOCOL };
            for (step, inner_step) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                let build =
                    |n| outer(n, outer_v6, step, protocol, &inner(n, v6, is_udp, (7, inner_step)));
                let (mut kind, check) = kind(v6, is_udp);
                kind |= if outer_v6 { GsoType::IPXIP6 } else { GsoType::IPXIP4 };
                if step == 0 {
                    kind |= GsoType::TCP_FIXEDID;
                }
                if inner_step == 0 {
                    kind |= GsoType::TCP_FIXEDID_INNER;
                }
                let at = 14 + if outer_v6 { 40 } else { 20 } + ip_len(v6);
                let meta = meta(&build(None), SIZE as u16, kind, at, check);
                let want: Vec<Vec<u8>> = (0..4).map(|n| build(Some(n))).collect();
                assert_eq!(cut(&build(None), meta).unwrap(), want);
                assert_eq!(leave(&build(None), meta), want);
            }
        }
    }
}

#[test]
fn gre_with_and_without_fields_and_ethernet() {
    let plain = Gre::default();
    let headers = [
        plain,
        Gre { key: Some(7), ..plain },
        Gre { check: Some(Check::Right), ..plain },
        Gre { check: Some(Check::Right), key: Some(9), seq: Some(4), ..plain },
    ];
    for header in headers {
        for (v6, is_udp) in ALL {
            for bridged in [false, true] {
                let protocol = if bridged { 0x6558 } else { ethertype(v6) };
                let header = Gre { protocol, ..header };
                let build = |n| {
                    let packet = inner(n, v6, is_udp, (7, 1));
                    let packet = if bridged { eth(ethertype(v6), &packet) } else { packet };
                    outer(n, is_udp, 1, gre::PROTOCOL, &header.around(&packet))
                };
                let (mut kind, check) = kind(v6, is_udp);
                let summed = header.check.is_some();
                kind |= if summed { GsoType::GRE_CSUM } else { GsoType::GRE };
                let fields = [summed, header.key.is_some(), header.seq.is_some()];
                let gre_len = 4 + 4 * fields.iter().filter(|field| **field).count();
                let ip = if is_udp { 40 } else { 20 };
                let at = 14 + ip + gre_len + if bridged { 14 } else { 0 } + ip_len(v6);
                let meta = meta(&build(None), SIZE as u16, kind, at, check);
                let want: Vec<Vec<u8>> = (0..4).map(|n| build(Some(n))).collect();
                assert_eq!(cut(&build(None), meta).unwrap(), want, "{header:?}");
                assert_eq!(leave(&build(None), meta), want);
            }
        }
    }
}

/// A packet with a checksum, or none, in a UDP tunnel; and the super-packet, whose outer field holds
/// the sum of the pseudo-header.
fn tunnel(n: Option<usize>, outer_v6: bool, summed: bool, body: &[u8]) -> Vec<u8> {
    let check = match (summed, n) {
        (false, _) => Check::Exactly(0),
        (true, None) => Check::Partial,
        (true, Some(_)) => Check::Right,
    };
    let udp = Udp { dst_port: 4789, check, ..Udp::default() };
    if outer_v6 {
        frame(Eth::default(), Ipv6::default(), udp, body)
    } else {
        let id = 100 + n.unwrap_or(0) as u16;
        frame(Eth::default(), Ipv4 { id, ..Ipv4::default() }, udp, body)
    }
}

#[test]
fn udp_tunnels_of_every_kind() {
    type Around = fn(&[u8]) -> Vec<u8>;
    // Whether an Ethernet header is within, its length with the tunnel's, and the tunnel.
    let tunnels: [(bool, usize, Around); 5] = [
        (true, 8 + 14, |inner| Vxlan { vni: 5, ..Vxlan::default() }.around(inner)),
        (false, 8, |inner| Vxlan::gpe(1).around(inner)),
        (true, 16 + 14, |inner| Geneve { options: &[1; 8], ..Geneve::default() }.around(inner)),
        (false, 4, |inner| Gue::default().around(inner)),
        (false, 0, <[u8]>::to_vec),
    ];
    for (bridged, len, around) in tunnels {
        for (v6, is_udp) in ALL {
            for (outer_v6, summed) in ALL {
                let build = |n| {
                    let packet = inner(n, v6, is_udp, (7, 1));
                    let packet = if bridged { eth(ethertype(v6), &packet) } else { packet };
                    tunnel(n, outer_v6, summed, &around(&packet))
                };
                let (mut kind, check) = kind(v6, is_udp);
                kind |= if summed { GsoType::UDP_TUNNEL_CSUM } else { GsoType::UDP_TUNNEL };
                let ip = 14 + if outer_v6 { 40 } else { 20 } + 8 + len;
                let mut meta = meta(&build(None), SIZE as u16, kind, ip + ip_len(v6), check);
                meta.encapsulated = true;
                meta.inner_network = ip as u16;
                let want: Vec<Vec<u8>> = (0..4).map(|n| build(Some(n))).collect();
                assert_eq!(cut(&build(None), meta).unwrap(), want);
                assert_eq!(leave(&build(None), meta), want);
                meta.inner_network = 30;
                assert!(matches!(cut(&build(None), meta), Err(Invalid::Inner { .. })));
            }
        }
    }
}

/// Legacy UFO: a datagram in IP fragments, its checksum over the whole.
#[test]
fn datagrams_become_fragments() {
    let data = payload(3, 3000);
    let whole = packet(Ipv4::default(), Udp::default(), &data);
    let body = &whole[20..];
    let parts = [(0, 1480), (1480, 2960), (2960, 3008)];

    let datagram = packet(Ipv4 { id: 9, df: false, ..Ipv4::default() }, Udp::default(), &data);
    let datagram = eth(0x0800, &datagram);
    let mut meta = meta(&datagram, 1480, GsoType::UDP, 34, udp::CHECK);
    let fragment = |(from, to)| {
        let ip =
            Ipv4 { id: 9, df: false, mf: to < 3008, offset: from as u16 / 8, ..Ipv4::default() };
        eth(0x0800, &packet(ip, Transport::Raw(udp::PROTOCOL), &body[from..to]))
    };
    assert_eq!(cut(&datagram, meta).unwrap(), parts.map(fragment));

    let hop = Ext::HopByHop(&[1, 4, 0, 0, 0, 0]);
    let build = |udp: Udp, ext: &[Ext<'_>]| packet(Ipv6 { ext, ..Ipv6::default() }, udp, &data);
    let whole = build(Udp::default(), &[hop]);
    let body = &whole[48..];
    let datagram = eth(0x86dd, &build(Udp { check: Check::Exactly(1), ..Udp::default() }, &[hop]));
    (meta.protocol, meta.seq) = (0x86dd, 77);
    let fragment = |(from, to)| {
        let offset = from as u16 / 8;
        let ext = &[hop, Ext::Fragment { offset, more: to < 3008, id: 77 }];
        let ip = Ipv6 { ext, ..Ipv6::default() };
        eth(0x86dd, &packet(ip, Transport::Raw(udp::PROTOCOL), &body[from..to]))
    };
    assert_eq!(cut(&datagram, meta).unwrap(), parts.map(fragment));
    meta.gso.size = 1001;
    assert_eq!(cut(&datagram, meta), Err(Invalid::FragmentSize { size: 1001 }));
}

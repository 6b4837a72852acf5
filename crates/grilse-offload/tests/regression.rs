//! Faults of other implementations, one test each, under their numbers.

use grilse_offload::{Config, Gro, Outcome, Reason, Tunnel};
use grilse_wire::build::{Check, Eth, Gre, Ipv4, Transport, Udp, Vxlan, ethernet, packet, payload};
use grilse_wire::tcp::flag;
use grilse_wire::{Csum, Gso, GsoType, Packet, csum};

mod support;
use support::frame::{packets, tcp4, tcp6, udp4};
use support::{Frame, Kept, Out, Split, reasons, run};

fn through(frames: Vec<Vec<u8>>) -> Vec<Out<Split>> {
    run(&Config::default(), packets(frames), 64)
}

fn lens(out: &[Out<Split>]) -> Vec<usize> {
    out.iter().map(|out| out.packet.len()).collect()
}

fn members(out: &[Out<Split>]) -> Vec<Vec<u64>> {
    out.iter().map(|out| out.members.clone()).collect()
}

/// A flush delivered one packet per bucket; seven of these eight waited for later ones.
#[test]
fn bl_01_a_flush_drains_whole_buckets() {
    let out = through((0..8).map(|n| tcp4(0, |p| p.tcp.src_port = 40_000 + 8 * n)).collect());
    assert_eq!(members(&out), (0..8).map(|n| vec![n]).collect::<Vec<_>>());
}

/// The handshake's last acknowledgement sat in the table.
#[test]
fn bl_02_empty_segments_are_never_held() {
    let mut gro = Gro::new(Config::default());
    let mut kept = Kept::default();
    let empty = |flags| tcp4(0, |p| (p.payload, p.tcp.flags) = (Vec::new(), flags));
    let handshake = [flag::SYN, flag::SYN | flag::ACK, flag::ACK].map(empty);
    for packet in packets(handshake) {
        assert!(matches!(gro.push(packet, 0, &mut kept), Outcome::Delivered));
    }
    assert_eq!((gro.held(), kept.out.len()), (0, 3));
}

/// A flagged segment left before the data held in front of it.
#[test]
fn bl_03_and_row_13_flagged_segments_overtake_nothing() {
    let seg = |seq: u32, len: usize, flags: u16| {
        tcp4(0, |p| {
            (p.v4.id, p.tcp.seq, p.tcp.flags) = ((seq / 1448) as u16, seq, flag::ACK | flags);
            p.resize(len);
        })
    };
    for (flags, len) in [
        (flag::PSH, 500),
        (flag::FIN, 500),
        (flag::URG, 500),
        (flag::CWR, 500),
        (flag::ECE, 500),
        (flag::RST, 0),
    ] {
        let out = through(vec![seg(1, 1448, 0), seg(1449, 1448, 0), seg(2897, len, flags)]);
        if flags & (flag::PSH | flag::FIN) != 0 {
            assert_eq!(lens(&out), [54 + 3396]);
            assert_eq!(out[0].packet.front()[47] & 9, flags as u8);
        } else {
            assert_eq!(lens(&out), [54 + 2896, 54 + len]);
        }
    }
}

/// Ethernet padding entered the stream.
#[test]
fn bl_06_and_row_10_padding_is_not_payload() {
    for filler in [0, 0xaa] {
        let padded = |at: usize, len: usize| {
            let mut frame = tcp4(0, |p| {
                p.tcp.seq += at as u32;
                p.payload = payload(at, len);
            });
            frame.resize(60, filler);
            frame
        };
        let frames = vec![padded(0, 2), padded(2, 2), padded(4, 0)];
        let out = through(frames.clone());
        assert_eq!(out.iter().map(|out| out.packet.frame()).collect::<Vec<_>>(), frames);
        assert_eq!(reasons(&out), [Reason::IpTotalLength; 3]);
    }
}

/// Lengths that lie led past the end of the buffer, or below zero.
#[test]
fn bl_07_and_row_11_lengths_that_lie_are_refused() {
    let offset = |words| tcp4(1, |p| (p.tcp.data_offset, p.payload) = (Some(words), Vec::new()));
    for words in [0, 4, 15] {
        let out = through(vec![tcp4(0, |_| ()), offset(words)]);
        assert_eq!(reasons(&out), [Reason::TcpDataOffset, Reason::PollEnd]);
    }
    let short = tcp4(1, |p| (p.v4.total_len, p.payload) = (Some(39), Vec::new()));
    assert_eq!(reasons(&through(vec![short])), [Reason::IpTotalLength]);
    let ihl = tcp4(1, |p| p.v4.ihl = Some(4));
    assert_eq!(reasons(&through(vec![ihl])), [Reason::IpHeaderLength]);
    let long = tcp6(1, |p| p.v6.payload_len = Some(5000));
    assert_eq!(reasons(&through(vec![long])), [Reason::Ipv6PayloadLength]);
    for whole in [tcp4(0, |_| ()), tcp6(0, |_| ())] {
        for len in 14..=66 {
            let cut = whole[..len].to_vec();
            let out = through(vec![whole.clone(), cut.clone()]);
            assert_eq!(out.len(), 2, "{len}");
            assert!(out.iter().any(|out| out.packet.frame() == cut), "{len}");
        }
    }
}

/// Packets of unequal TTL, TOS or fragmentation merged.
#[test]
fn bl_08_what_a_router_changes_stays_visible() {
    let pair4 = |edit: &dyn Fn(&mut support::frame::Parts, u32)| {
        let out = through((0..2).map(|n| tcp4(n, |p| edit(p, n))).collect());
        assert_eq!(out.len(), 2);
        out[0].why
    };
    let ttl = pair4(&|p, n| p.v4.ttl = 64 - n as u8);
    assert_eq!((ttl.reason, ttl.head, ttl.packet), (Reason::Ttl, 64, 63));
    let ecn = pair4(&|p, n| p.v4.tos = 2 + n as u8);
    assert_eq!((ecn.reason, ecn.head, ecn.packet), (Reason::Tos, 2, 3));
    let df = pair4(&|p, n| p.v4.df = n == 0);
    assert_eq!((df.reason, df.head, df.packet), (Reason::Df, 0x4000, 0));
    let fragments = pair4(&|p, n| (p.v4.mf, p.v4.offset) = (n == 0, 185 * n as u16));
    assert_eq!(fragments.reason, Reason::IpFragment);
    let class = through((0..2).map(|n| tcp6(n, |p| p.v6.class = 2 + n as u8)).collect());
    assert_eq!(reasons(&class), [Reason::TrafficClass, Reason::PollEnd]);
    let hops = through((0..2).map(|n| tcp6(n, |p| p.v6.hop_limit = 64 - n as u8)).collect());
    assert_eq!(reasons(&hops), [Reason::HopLimit, Reason::PollEnd]);
}

/// Sequence numbers and identifications did not wrap.
#[test]
fn bl_11_numbers_wrap() {
    let seg = |n: u32| {
        tcp4(0, |p| {
            p.tcp.seq = 0xffff_ff00_u32.wrapping_add(512 * n);
            (p.v4.id, p.v4.df) = (65_535_u16.wrapping_add(n as u16), false);
            p.resize(512);
        })
    };
    assert_eq!(through((0..2).map(seg).collect()).len(), 1);
    let out = through((0..40).map(seg).collect());
    assert_eq!(lens(&out), [54 + 40 * 512]);
    assert_eq!(out[0].packet.meta().gso.segs, 40);
}

/// A longer-than-64-KiB IPv6 packet needs 8 bytes in front, and stops growing where they lack.
#[test]
fn a_jumbo_option_needs_headroom() {
    let mut config = Config::default();
    config.set_gro_max_size(180_000).unwrap();
    let seg = |n: u32| {
        tcp6(0, |p| {
            p.tcp.seq = 8000 * n;
            p.resize(8000);
        })
    };
    let with = run(&config, packets((0..10).map(seg)), 64);
    assert_eq!(lens(&with), [74 + 8 + 80_000]);
    assert_eq!(with[0].packet.front()[54..62], [6, 0, 0xc2, 4, 0, 1, 0x38, 0x9c]);
    assert_eq!(with[0].packet.meta().csum, Csum::Partial { start: 62, offset: 16 });
    let bare = packets((0..10).map(seg)).into_iter().map(Split::without_headroom).collect();
    let without = run(&config, bare, 64);
    assert_eq!(lens(&without), [74 + 64_000, 74 + 16_000]);
    assert_eq!(without[0].why.reason, Reason::SizeLimit);
}

/// Chained packets keep the test of identifications that a datagram refused for its checksum made.
#[test]
fn a_refused_datagram_leaves_a_fixed_identification() {
    let mut config = Config::default();
    config.gro_list = true;
    let datagram = |id| udp4(0, |p| p.v4.id = id);
    let mut datagrams = packets([datagram(7), datagram(7), datagram(8), datagram(8)]);
    datagrams[1].meta_mut().csum = Csum::Partial { start: 34, offset: 6 };
    let out = run(&config, datagrams, 64);
    assert_eq!(members(&out), [vec![1], vec![0], vec![2, 3]]);
    assert_eq!(out[1].why.reason, Reason::IpId);
}

/// A wrong sum of the device does not condemn a packet, and a right one saves the work.
#[test]
fn a_device_that_sums_is_believed_where_it_agrees() {
    for edit in [Check::Right, Check::Flipped(1)] {
        let frame = tcp6(0, |p| p.tcp.check = edit);
        let sum = grilse_wire::csum::sum(&frame[14..]);
        for sum in [sum, sum ^ 0x100] {
            let mut packet = packets([frame.clone()]);
            packet[0].meta_mut().csum = Csum::Complete { sum };
            let right = if edit == Check::Right { Reason::PollEnd } else { Reason::TcpChecksum };
            assert_eq!(reasons(&run(&Config::default(), packet, 64)), [right]);
        }
    }
}

fn around(outer: Ipv4<'_>, transport: Transport<'_>, body: &[u8]) -> Vec<u8> {
    ethernet(Eth::default(), 0x0800, &packet(outer, transport, body))
}

/// Puts a tunnel around the packet of a frame.
type Around<'a> = &'a dyn Fn(&[u8]) -> Vec<u8>;

fn vxlan() -> Config {
    let mut config = Config::default();
    config.tunnel_ports = Box::new([(4789, Tunnel::Vxlan)]);
    config
}

fn in_vxlan(outer: Ipv4<'_>, inner: &[u8]) -> Vec<u8> {
    let udp = Udp { dst_port: 4789, ..Udp::default() };
    around(outer, udp.into(), &Vxlan::default().around(inner))
}

/// UDP inside of IP was completed with the addresses of the outer header.
#[test]
fn row_04_udp_in_ip_is_summed_over_the_inner_addresses() {
    let mut config = Config::default();
    config.udp_fwd = true;
    let inner = |n| udp4(n, |p| p.v4.dst = [192, 168, 7, 7]);
    let frame = |n| around(Ipv4::default(), Transport::Raw(4), &inner(n)[14..]);
    let out = run(&config, packets((0..2).map(frame)), 64);
    let seed = csum::fold(csum::pseudo_v4([10, 9, 0, 1], [192, 168, 7, 7], 17, 208));
    assert_eq!(out[0].packet.frame()[60..62], seed.to_be_bytes());
}

/// A packet that the device called encapsulated had its outer datagram summed over inner addresses.
#[test]
fn row_05_the_outer_datagram_is_summed_over_the_outer_addresses() {
    let outer = Ipv4 { dst: [192, 168, 7, 7], ..Ipv4::default() };
    let mut flagged = packets((0..2).map(|n| in_vxlan(outer, &tcp4(n, |_| ()))));
    flagged.iter_mut().for_each(|packet| packet.meta_mut().encapsulated = true);
    let out = run(&vxlan(), flagged, 64);
    let len = 8 + 8 + 14 + 20 + 20 + 200;
    let seed = csum::fold(csum::pseudo_v4([10, 9, 0, 1], [192, 168, 7, 7], 17, len));
    assert_eq!(out[0].packet.frame()[40..42], seed.to_be_bytes());
    // What the device calls so without a tunnel that anybody sees is a plain packet when merged.
    let mut plain = packets((0..2).map(|n| tcp4(n, |_| ())));
    plain.iter_mut().for_each(|packet| packet.meta_mut().encapsulated = true);
    assert!(!run(&vxlan(), plain, 64)[0].packet.meta().encapsulated);
}

/// Headers nested without end took the stack with them.
#[test]
fn row_06_nesting_ends() {
    let nested = |ethertype: u16, header: &[u8]| {
        let mut body = header.repeat(100);
        body.extend_from_slice(&tcp4(0, |_| ())[12..]);
        ethernet(Eth::default(), ethertype, &body)
    };
    let tags = nested(0x8100, &[0, 5, 0x81, 0]);
    let frames = nested(0x6558, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x65, 0x58]);
    assert_eq!(reasons(&through(vec![tags.clone(), tags])), [Reason::RecursionLimit; 2]);
    assert_eq!(reasons(&through(vec![frames.clone(), frames])), [Reason::RecursionLimit; 2]);
}

/// A tunnel in a tunnel merged, and could not be cut again.
#[test]
fn row_07_one_level_of_encapsulation() {
    let ip = |inner: &[u8]| around(Ipv4::default(), Transport::Raw(4), &inner[14..]);
    let gre = |inner: &[u8]| {
        around(Ipv4::default(), Transport::Raw(47), &Gre::default().around(&inner[14..]))
    };
    let in_vxlan = |inner: &[u8]| in_vxlan(Ipv4::default(), inner);
    let kinds: [Around<'_>; 3] = [&ip, &gre, &in_vxlan];
    for outer in kinds {
        let once = run(&vxlan(), packets((0..2).map(|n| outer(&tcp4(n, |_| ())))), 64);
        assert_eq!(reasons(&once), [Reason::PollEnd]);
        for inner in kinds {
            let frames = (0..2).map(|n| outer(&inner(&tcp4(n, |_| ()))));
            assert_eq!(reasons(&run(&vxlan(), packets(frames), 64)), [Reason::NestedTunnel; 2]);
        }
    }
}

/// Identifications that stay the same outside, as of translated IPv6, counted up after segmentation;
/// and the inner header took the bit of the outer.
#[test]
fn row_18_and_19_each_level_has_its_own_fixed_identification() {
    let (outer_bit, inner_bit) = (GsoType::TCP_FIXEDID, GsoType::TCP_FIXEDID_INNER);
    for (outer_step, inner_step) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        for df in [false, true] {
            let frame = |n: u16| {
                let inner = tcp4(n.into(), |p| p.v4.id = n * inner_step);
                let outer = Ipv4 { id: n * outer_step, df, ..Ipv4::default() };
                (around(outer, Transport::Raw(4), &inner[14..]), in_vxlan(outer, &inner))
            };
            let (ip, udp): (Vec<_>, Vec<_>) = (0..3).map(frame).unzip();
            for frames in [ip, udp] {
                let out = run(&vxlan(), packets(frames), 64);
                assert_eq!(reasons(&out), [Reason::PollEnd]);
                let kind = out[0].packet.meta().gso.kind;
                assert_eq!(kind.contains(outer_bit), outer_step == 0);
                assert_eq!(kind.contains(inner_bit), inner_step == 0);
            }
        }
    }
    // And what is fixed in one must not count in the other.
    let frame = |(n, outer, inner): (u32, u16, u16)| {
        let inner = tcp4(n, |p| p.v4.id = inner);
        around(Ipv4 { id: outer, ..Ipv4::default() }, Transport::Raw(4), &inner[14..])
    };
    let out = through([(0, 5, 5), (1, 5, 6), (2, 6, 7)].map(frame).into());
    assert_eq!(members(&out), [vec![0, 1], vec![2]]);
    assert_eq!((out[0].why.reason, out[0].why.head, out[0].why.packet), (Reason::IpId, 5, 6));
}

/// A GRE checksum is the first packet's, as the kernel leaves it: segmentation must compute it again
/// where the last packet was shorter. With a key the kernel holds the checksum for the key, and a
/// packet with another one for another flow's.
#[test]
fn row_20_a_gre_checksum_stays_the_first_packets() {
    let gre = |n, len, key| {
        let inner = tcp4(n, |p| p.resize(len));
        let header = Gre { check: Some(Check::Right), key, ..Gre::default() };
        around(Ipv4::default(), Transport::Raw(47), &header.around(&inner[14..]))
    };
    let out = through(vec![gre(0, 100, None), gre(1, 60, None)]);
    assert_eq!(reasons(&out), [Reason::ShortSegment]);
    assert_eq!(out[0].packet.frame()[38..42], gre(0, 100, None)[38..42]);
    let kind = out[0].packet.meta().gso.kind;
    assert!(kind.contains(GsoType::GRE) && !kind.contains(GsoType::GRE_CSUM));
    let out = through(vec![gre(0, 100, Some(7)), gre(1, 100, Some(7)), gre(2, 60, Some(7))]);
    assert_eq!(members(&out), [vec![0, 1], vec![2]]);
    assert_eq!(reasons(&out), [Reason::PollEnd; 2]);
}

/// Sequence numbers of GRE were lost.
#[test]
fn row_23_gre_with_sequence_numbers_is_left_alone() {
    let frame = |n: u32| {
        let header = Gre { seq: Some(n), ..Gre::default() };
        around(Ipv4::default(), Transport::Raw(47), &header.around(&tcp4(n, |_| ())[14..]))
    };
    let out = through((0..2).map(frame).collect());
    assert_eq!(reasons(&out), [Reason::GreFlags; 2]);
    assert_eq!((out[0].why.head, out[0].why.packet), (0xa000, 0x1000));
}

/// A train of datagrams for a tunnel was parsed as one packet.
#[test]
fn row_28_a_train_of_datagrams_is_not_a_tunnelled_packet() {
    // Datagrams for a tunnel are the tunnel's, whoever else asks.
    let mut config = vxlan();
    config.udp_fwd = true;
    let arp = |_| in_vxlan(Ipv4::default(), &ethernet(Eth::default(), 0x0806, &[0; 28]));
    let out = run(&config, packets((0..2).map(arp)), 64);
    assert_eq!(reasons(&out), [Reason::NoOffload; 2]);
    // And a train that came as one stays one, by itself.
    let mut trains = packets((0..2).map(|n| in_vxlan(Ipv4::default(), &tcp4(n, |_| ()))));
    for train in &mut trains {
        train.meta_mut().gso = Gso { size: 74, segs: 2, kind: GsoType::UDP_L4 };
    }
    assert_eq!(reasons(&run(&config, trains, 64)), [Reason::GsoNotTcp; 2]);
}

//! Every reason, from the packets that have it and no other; and where a difference between two
//! packets is the reason, the pair merges once the named field alone is made equal.

use std::collections::HashSet;

use grilse_offload::{Config, FouPayload, Gro, Outcome, Reason, Rules, Tunnel};
use grilse_wire::build::{Check, Eth, Geneve, Gre, Gue, Ipv4, Transport, Udp, Vxlan};
use grilse_wire::build::{ethernet, packet};
use grilse_wire::tcp::flag;
use grilse_wire::{Csum, Gso, GsoType, Packet, VlanTag, csum};

mod support;
use support::frame::{Parts, packets, tcp4, tcp6, udp4};
use support::{Kept, Split, run};

/// Packets that have a reason, and the same packets mended.
struct Case {
    reason: Reason,
    config: Config,
    packets: Vec<Split>,
    mended: Option<(Config, Vec<Split>)>,
}

fn config(edit: impl FnOnce(&mut Config)) -> Config {
    let mut config = Config::default();
    edit(&mut config);
    config
}

fn forwarding() -> Config {
    config(|c| c.udp_fwd = true)
}

fn listing() -> Config {
    config(|c| c.gro_list = true)
}

fn exact() -> Config {
    config(|c| c.rules = Rules::EXACT)
}

fn whole(frame: Vec<u8>) -> Vec<Split> {
    packets([frame])
}

fn alone(reason: Reason, packets: Vec<Split>) -> Case {
    Case { reason, config: forwarding(), packets, mended: None }
}

/// The second of two packets of the flow is edited; as it was, the pair merges.
fn second4(reason: Reason, edit: impl Fn(&mut Parts)) -> Case {
    let packets_of = |edit: &dyn Fn(&mut Parts)| packets([tcp4(0, |_| ()), tcp4(1, edit)]);
    let mended = Some((Config::default(), packets_of(&|_| ())));
    Case { reason, config: Config::default(), packets: packets_of(&edit), mended }
}

fn second6(reason: Reason, edit: impl Fn(&mut Parts)) -> Case {
    let packets_of = |edit: &dyn Fn(&mut Parts)| packets([tcp6(0, |_| ()), tcp6(1, edit)]);
    let mended = Some((Config::default(), packets_of(&|_| ())));
    Case { reason, config: Config::default(), packets: packets_of(&edit), mended }
}

/// A pair that is edited as packets, beyond what a frame can say.
fn paired(
    reason: Reason,
    config: Config,
    frame: impl Fn(u32) -> Vec<u8>,
    edit: impl Fn(&mut [Split]),
) -> Case {
    let mut packets_edited = packets([frame(0), frame(1)]);
    edit(&mut packets_edited);
    let mended = Some((config.clone(), packets([frame(0), frame(1)])));
    Case { reason, config, packets: packets_edited, mended }
}

fn gso(packets: &mut [Split], n: usize, kind: GsoType, size: u16, segs: u16) {
    packets[n].meta_mut().gso = Gso { size, segs, kind };
}

fn plain(n: u32) -> Vec<u8> {
    tcp4(n, |_| ())
}

fn link_and_input() -> Vec<Case> {
    let tags = &[VlanTag { tpid: 0x8100, tci: 5 }; 15];
    let tagged = |n, count: usize| tcp4(n, |p| p.eth.tags = &tags[..count]);
    let no_vlan = config(|c| c.vlan = false);
    let off = config(|c| c.gro = false);
    let mut unreadable = whole(plain(0));
    unreadable[0] = Split::new(plain(0), 20, *unreadable[0].meta());
    unreadable[0].gathers = false;
    vec![
        Case {
            config: off,
            mended: Some((Config::default(), packets([plain(0), plain(1)]))),
            ..alone(Reason::GroOff, packets([plain(0), plain(1)]))
        },
        alone(Reason::LinkTruncated, whole(ethernet(Eth::default(), 0x8100, &[0, 5]))),
        alone(Reason::NoOffload, whole(ethernet(Eth::default(), 0x0806, &[0; 28]))),
        Case {
            config: no_vlan,
            mended: Some((Config::default(), packets([tagged(0, 1), tagged(1, 1)]))),
            ..alone(Reason::VlanNotHandled, packets([tagged(0, 1), tagged(1, 1)]))
        },
        Case {
            mended: Some((Config::default(), packets([tagged(0, 13), tagged(1, 13)]))),
            ..alone(Reason::RecursionLimit, packets([tagged(0, 14), tagged(1, 14)]))
        },
        alone(Reason::Unreadable, unreadable),
        paired(Reason::ChainedInput, Config::default(), plain, |p| p[1].chained_input = true),
        paired(Reason::GsoNotTcp, Config::default(), plain, |p| {
            gso(p, 1, GsoType::UDP_L4, 100, 1);
        }),
        paired(Reason::UntrustedGso, Config::default(), plain, |p| {
            gso(p, 1, GsoType::TCPV4 | GsoType::DODGY, 100, 1);
        }),
    ]
}

fn network() -> Vec<Case> {
    let cut = |mut frame: Vec<u8>, len| {
        frame.truncate(len);
        whole(frame)
    };
    vec![
        alone(Reason::Ipv4Truncated, cut(plain(0), 33)),
        alone(Reason::Ipv6Truncated, cut(tcp6(0, |_| ()), 53)),
        second4(Reason::IpProtocol, |p| p.v4.protocol = Some(1)),
        second4(Reason::IpVersion, |p| p.v4.version = 5),
        second4(Reason::IpHeaderLength, |p| p.v4.ihl = Some(4)),
        second4(Reason::IpOptions, |p| p.v4.options = &[1, 1, 1, 1]),
        second4(Reason::IpFragment, |p| p.v4.mf = true),
        second4(Reason::IpHeaderChecksum, |p| p.v4.check = Check::Flipped(4)),
        second4(Reason::IpTotalLength, |p| p.eth.padding = 3),
        second4(Reason::IpReservedFlag, |p| p.v4.reserved = true),
        second6(Reason::Ipv6NextHeader, |p| p.v6.next_header = Some(58)),
        second6(Reason::Ipv6PayloadLength, |p| p.eth.padding = 3),
        second6(Reason::TrafficClass, |p| p.v6.class = 3),
        second6(Reason::HopLimit, |p| p.v6.hop_limit = 63),
        second4(Reason::Ttl, |p| p.v4.ttl = 63),
        second4(Reason::Tos, |p| p.v4.tos = 3),
        second4(Reason::Df, |p| p.v4.df = false),
        second4(Reason::IpId, |p| p.v4.id = 7),
    ]
}

fn tcp() -> Vec<Case> {
    let flagged = |reason, bit| second4(reason, move |p: &mut Parts| p.tcp.flags |= bit);
    let timestamps = |reason, byte: &'static [u8; 12], other: &'static [u8; 12]| {
        let of = |second| {
            packets([tcp4(0, |p| p.tcp.options = byte), tcp4(1, |p| p.tcp.options = second)])
        };
        let mended = Some((Config::default(), of(byte)));
        Case { reason, config: Config::default(), packets: of(other), mended }
    };
    let stamp = &[1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0];
    let later = &[1, 1, 8, 10, 0, 0, 0, 2, 0, 0, 0, 0];
    let mut truncated = tcp4(0, |p| p.v4.total_len = Some(32));
    truncated.truncate(14 + 32);
    let mut truncated = whole(truncated);
    truncated[0].meta_mut().csum = Csum::Unnecessary { level: 0 };
    vec![
        second4(Reason::TcpChecksum, |p| p.tcp.check = Check::Flipped(1)),
        alone(Reason::TcpTruncated, truncated),
        second4(Reason::TcpDataOffset, |p| p.tcp.data_offset = Some(4)),
        second4(Reason::NoPayload, |p| p.resize(0)),
        flagged(Reason::Syn, flag::SYN),
        flagged(Reason::Rst, flag::RST),
        flagged(Reason::Urg, flag::URG),
        flagged(Reason::Cwr, flag::CWR),
        flagged(Reason::Ece, flag::ECE),
        flagged(Reason::AccurateEcn, flag::AE),
        second4(Reason::AckFlag, |p| p.tcp.flags = 0),
        second4(Reason::TcpReserved, |p| p.tcp.reserved = 1),
        second4(Reason::TcpHeaderLength, |p| p.tcp.options = &[1, 1, 1, 1]),
        second4(Reason::Window, |p| p.tcp.window = 513),
        second4(Reason::AckNumber, |p| p.tcp.ack += 1),
        timestamps(Reason::TcpOptions, stamp, later),
        second4(Reason::LongerSegment, |p| p.resize(101)),
        second4(Reason::SequenceGap, |p| p.tcp.seq += 100),
        second4(Reason::SequenceOverlap, |p| p.tcp.seq -= 100),
        alone(Reason::Psh, whole(tcp4(0, |p| p.tcp.flags |= flag::PSH))),
        alone(Reason::Fin, whole(tcp4(0, |p| p.tcp.flags |= flag::FIN))),
        paired(Reason::GsoSize, Config::default(), plain, |p| gso(p, 1, GsoType::TCPV4, 50, 2)),
        paired(Reason::GsoTail, Config::default(), plain, |p| gso(p, 1, GsoType::TCPV4, 100, 2)),
    ]
}

fn udp() -> Vec<Case> {
    let datagram = |n: u32| udp4(n, |_| ());
    let pair = |reason, edit: &dyn Fn(&mut Parts)| Case {
        reason,
        config: forwarding(),
        packets: packets([datagram(0), udp4(1, edit)]),
        mended: Some((forwarding(), packets([datagram(0), datagram(1)]))),
    };
    let mut truncated = udp4(0, |p| p.v4.total_len = Some(26));
    truncated.truncate(14 + 26);
    vec![
        alone(Reason::UdpTruncated, whole(truncated)),
        pair(Reason::UdpChecksum, &|p| p.udp.check = Check::Flipped(1)),
        pair(Reason::UdpZeroChecksum, &|p| p.udp.check = Check::Exactly(0)),
        pair(Reason::ShortSegment, &|p| p.resize(99)),
        paired(Reason::UdpLength, forwarding(), datagram, |p| {
            // A length that lies shows in the checksum too, unless the device vouched.
            p[1] = packets([udp4(1, |p| p.udp.len = Some(107))]).remove(0);
            p[1].meta_mut().csum = Csum::Unnecessary { level: 0 };
        }),
        paired(Reason::EncapsulatedUdp, forwarding(), datagram, |p| {
            p[1].meta_mut().encapsulated = true;
        }),
        Case {
            config: Config::default(),
            mended: Some((forwarding(), packets([datagram(0), datagram(1)]))),
            ..alone(Reason::UdpNotAskedFor, packets([datagram(0), datagram(1)]))
        },
        alone(Reason::UdpCap, packets((0..64).map(datagram))),
    ]
}

/// What is not coalesced of tunnels, all of which end at port 5000.
fn tunnels() -> Vec<Case> {
    let inner = plain(0);
    let ip = &inner[14..];
    let over = |transport: Transport<'_>, body: &[u8]| {
        whole(ethernet(Eth::default(), 0x0800, &packet(Ipv4::default(), transport, body)))
    };
    let gre = |gre: Gre| over(Transport::Raw(47), &gre.around(ip));
    let ends = |tunnel, reason, body: Vec<u8>| {
        let config = config(|c| c.tunnel_ports = Box::new([(5000, tunnel)]));
        Case { config, ..alone(reason, over(Udp::default().into(), &body)) }
    };
    let twice = ethernet(Eth::default(), 0x0800, &packet(Ipv4::default(), Transport::Raw(4), ip));
    let summed = Gre { check: Some(Check::Right), ..Gre::default() };
    let vxlan = Vxlan { flags: 0x0820_0000, ..Vxlan::default() };
    let remote = Gue { flags: 1, fields: &[0x80, 0, 0, 0, 0, 0, 0, 0], ..Gue::default() };
    vec![
        alone(Reason::NestedTunnel, over(Transport::Raw(4), &twice[14..])),
        alone(Reason::TunnelTruncated, over(Transport::Raw(47), &[0; 3])),
        ends(Tunnel::Vxlan, Reason::TunnelTruncated, vec![8, 0, 0, 0, 0, 0, 0]),
        ends(Tunnel::Geneve, Reason::TunnelTruncated, vec![63, 0, 0x65, 0x58, 0, 0, 0, 0]),
        ends(Tunnel::Gue, Reason::TunnelTruncated, vec![31, 4, 0, 0]),
        alone(Reason::GreFlags, gre(Gre { seq: Some(1), ..Gre::default() })),
        alone(Reason::GreFlags, gre(Gre { flags: 1, ..Gre::default() })),
        ends(Tunnel::Fou(FouPayload::Gre), Reason::GreFlags, summed.around(ip)),
        alone(Reason::GreChecksum, gre(Gre { check: Some(Check::Flipped(1)), ..Gre::default() })),
        alone(Reason::NoOffload, gre(Gre { protocol: 0x8847, ..Gre::default() })),
        ends(Tunnel::Vxlan, Reason::RemoteChecksum, vxlan.around(&inner)),
        ends(Tunnel::Gue, Reason::RemoteChecksum, remote.around(ip)),
        ends(Tunnel::VxlanGpe, Reason::VxlanGpeFlags, Vxlan::default().around(&inner)),
        ends(Tunnel::VxlanGpe, Reason::VxlanGpeProtocol, Vxlan::gpe(4).around(ip)),
        ends(
            Tunnel::Geneve,
            Reason::GeneveVersion,
            Geneve { version: 1, ..Geneve::default() }.around(&inner),
        ),
        ends(
            Tunnel::Geneve,
            Reason::GeneveOam,
            Geneve { flags: 0x80, ..Geneve::default() }.around(&inner),
        ),
        ends(Tunnel::Gue, Reason::GueVersion, vec![0x50; 40]),
        ends(Tunnel::Gue, Reason::GueVersion, vec![0x80; 40]),
        ends(Tunnel::Gue, Reason::GueControl, Gue { control: true, ..Gue::default() }.around(ip)),
        ends(Tunnel::Gue, Reason::GueFlags, Gue { flags: 2, ..Gue::default() }.around(ip)),
        ends(Tunnel::Gue, Reason::GueFlags, Gue { flags: 1, ..Gue::default() }.around(ip)),
        ends(
            Tunnel::Gue,
            Reason::GueFlags,
            Gue { flags: 1, fields: &[0, 0, 0, 1], ..Gue::default() }.around(ip),
        ),
        ends(Tunnel::Gue, Reason::GueProtocol, Gue { protocol: 6, ..Gue::default() }.around(ip)),
    ]
}

fn table() -> Vec<Case> {
    let small = config(|c| c.set_gro_max_size(200).unwrap());
    let flow = |n: u16| tcp4(0, |p| p.tcp.src_port += n);
    let listed = |n| Case {
        config: listing(),
        mended: Some((listing(), packets([plain(0), plain(1)]))),
        ..second4(n, |p| p.tcp.flags |= flag::PSH)
    };
    vec![
        listed(Reason::ListFlags),
        paired(Reason::ChecksumState, listing(), plain, |p| {
            p[1].meta_mut().csum = Csum::Partial { start: 34, offset: 16 };
        }),
        Case { config: listing(), ..alone(Reason::CountCap, packets((0..65).map(plain))) },
        paired(Reason::Source, Config::default(), plain, |p| p[1].source = 1),
        Case {
            config: small,
            mended: Some((Config::default(), packets([plain(0), plain(1)]))),
            ..alone(Reason::SizeLimit, packets([plain(0), plain(1)]))
        },
        paired(Reason::Refused, Config::default(), plain, |p| p[0].takes = false),
        alone(Reason::Evicted, packets((0..9).map(flow))),
        alone(Reason::PollEnd, whole(plain(0))),
    ]
}

/// Adds the checksum at `check` to the word at `word`, so that the sum of what it covers is 0xffff
/// and the checksum 0; and writes the 0 in its other form.
fn in_other_form(mut frame: Vec<u8>, check: usize, word: usize) -> Vec<u8> {
    let at = |frame: &[u8], n: usize| u32::from(frame[n]) << 8 | u32::from(frame[n + 1]);
    let sum = at(&frame, check) + at(&frame, word);
    let sum = (sum & 0xffff) + (sum >> 16);
    frame[word..word + 2].copy_from_slice(&(sum as u16).to_be_bytes());
    frame[check..check + 2].fill(0xff);
    frame
}

/// What only the profiles refuse that lose nothing. Each pair merges by the rules of the kernel.
fn lossless() -> Vec<Case> {
    let kept = |case: Case| Case { config: exact(), ..case };
    let forms = [
        (Reason::TcpChecksumForm, in_other_form(plain(0), 50, 54)),
        // The identification is that word.
        (Reason::IpChecksumForm, in_other_form(plain(0), 24, 18)),
    ];
    let forms = forms.map(|(reason, frame)| Case {
        config: exact(),
        mended: Some((exact(), packets([plain(0), plain(1)]))),
        ..alone(reason, whole(frame))
    });
    let wrong = |n: u32| tcp4(n, |p| p.tcp.check = Check::Flipped(u16::from(n == 1)));
    let mut vouched = packets([plain(0), wrong(1)]);
    vouched[1].meta_mut().csum = Csum::Unnecessary { level: 0 };
    let mut cases = vec![
        Case {
            config: exact(),
            mended: Some((exact(), packets([tcp6(0, |_| ()), tcp6(1, |_| ())]))),
            ..second6(Reason::OtherHeaders, |p| p.v6.label = 7)
        },
        paired(Reason::UnfinishedChecksum, exact(), plain, |p| {
            p[1].meta_mut().csum = Csum::Partial { start: 34, offset: 16 };
        }),
        Case {
            config: exact(),
            mended: Some((config(|_| ()), vouched.clone())),
            ..alone(Reason::VouchedChecksum, vouched)
        },
        kept(Case {
            mended: Some((config(|_| ()), packets([plain(0), tcp4(1, |p| p.tcp.urgent = 7)]))),
            ..second4(Reason::UrgentPointer, |p| p.tcp.urgent = 7)
        }),
    ];
    cases.extend(forms);
    cases.extend(lossless_tunnels());
    cases
}

/// What the kernel merges in tunnels, and cannot restore.
fn lossless_tunnels() -> Vec<Case> {
    let over = |transport: Transport<'_>, body: &[u8]| {
        whole(ethernet(Eth::default(), 0x0800, &packet(Ipv4::default(), transport, body)))
    };
    // A word behind the GRE checksum, which then is less by as much.
    let mut gre = Gre { check: Some(Check::Right), ..Gre::default() }.around(&plain(0)[14..]);
    let check = u16::from_be_bytes([gre[4], gre[5]]);
    gre[4..6].copy_from_slice(&csum::replace(check, 0, 1).to_be_bytes());
    gre[7] = 1;
    let udp = Udp { len: Some(100), check: Check::Exactly(0), ..Udp::default() };
    let vxlan = over(udp.into(), &Vxlan::default().around(&plain(0)));
    let mut config = exact();
    config.tunnel_ports = Box::new([(5000, Tunnel::Vxlan)]);
    vec![
        Case { config: exact(), ..alone(Reason::GreChecksumForm, over(Transport::Raw(47), &gre)) },
        Case { config, ..alone(Reason::UdpLength, vxlan) },
    ]
}

fn check(case: Case) {
    let reason = case.reason;
    let name = reason.name();
    let frames = case.packets.len();
    let out = run(&case.config, case.packets, 2000);
    let mut found: HashSet<_> = out.iter().map(|out| out.why.reason).collect();
    assert!(found.remove(&reason), "{name}: {found:?}");
    found.remove(&Reason::PollEnd);
    if reason == Reason::ListFlags {
        // The segment that could not be chained ends alone.
        assert!(found.remove(&Reason::Psh));
    }
    assert!(found.is_empty(), "{name}: {found:?}");
    assert_eq!(out.iter().map(|out| out.members.len()).sum::<usize>(), frames, "{name}");
    for out in &out {
        let why = out.why;
        assert_eq!(why.reason.field().is_some(), why.head != why.packet, "{name}: {why:?}");
    }
    if let Some((config, packets)) = case.mended {
        let out = run(&config, packets, 2000);
        assert_eq!(out.len(), 1, "{name}: {:?}", support::reasons(&out));
        assert_eq!(out[0].members, [0, 1], "{name}");
    }
}

#[test]
fn each_has_packets_that_have_it_alone() {
    // These two need time, or settings that change; they have tests of their own.
    let mut checked = HashSet::from([Reason::Age, Reason::ListMode]);
    let cases = [link_and_input(), network(), tcp(), udp(), tunnels(), table(), lossless()];
    for case in cases.into_iter().flatten() {
        checked.insert(case.reason);
        check(case);
    }
    let unchecked: Vec<_> = Reason::ALL.iter().filter(|reason| !checked.contains(reason)).collect();
    assert!(unchecked.is_empty(), "{unchecked:?}");
}

#[test]
fn age_is_that_of_the_head() {
    let mut gro = Gro::new(Config::default());
    let mut kept = Kept::default();
    for (packet, now_ns) in packets([plain(0), plain(1)]).into_iter().zip([1000, 2000]) {
        assert!(!matches!(gro.push(packet, now_ns, &mut kept), Outcome::Delivered));
    }
    gro.flush_older(1000, &mut kept);
    assert_eq!(gro.held(), 1);
    gro.flush_older(1001, &mut kept);
    assert_eq!(gro.held(), 0);
    let why = kept.out[0].why;
    assert_eq!((why.reason, why.head, why.packet), (Reason::Age, 1000, 1001));
    assert_eq!(kept.out[0].members, [0, 1]);
}

#[test]
fn a_list_and_plain_segments_do_not_mix() {
    let mut gro = Gro::new(listing());
    let mut kept = Kept::default();
    let [first, second] = packets([udp4(0, |_| ()), udp4(1, |_| ())]).try_into().unwrap();
    assert!(matches!(gro.push(first, 0, &mut kept), Outcome::Held));
    gro.configure(forwarding());
    assert!(matches!(gro.push(second, 0, &mut kept), Outcome::Delivered));
    assert_eq!(support::reasons(&kept.out), [Reason::ListMode; 2]);
}

#[test]
fn a_head_ends_for_what_is_wrong_with_the_packet_that_came() {
    let of = |second: Vec<u8>| {
        let out = run(&Config::default(), packets([plain(0), second]), 64);
        support::reasons(&out)
    };
    // The acknowledgement moved too, but an empty segment never merges.
    let ack = tcp4(1, |p| (p.payload, p.tcp.ack) = (Vec::new(), 9000));
    assert_eq!(of(ack), [Reason::NoPayload; 2]);
    assert_eq!(of(tcp4(1, |p| p.tcp.flags |= flag::RST)), [Reason::Rst; 2]);
    // PSH would have merged, so the head ends for the difference.
    let psh = tcp4(1, |p| (p.tcp.flags, p.tcp.ack) = (flag::ACK | flag::PSH, 9000));
    assert_eq!(of(psh), [Reason::AckNumber, Reason::Psh]);
    // Overtaken, not ended.
    let options = tcp4(1, |p| p.v4.options = &[1, 1, 1, 1]);
    assert_eq!(of(options), [Reason::IpOptions, Reason::PollEnd]);
}

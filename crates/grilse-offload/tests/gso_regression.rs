//! Faults that segmenters have had, the kernel's among them: one test each, named by the number of
//! its row in the specification.

use grilse_mem::{FramePool, Role};
use grilse_offload::gso::{self, Checksums, Invalid, Segments};
use grilse_offload::{Config, Gro, Outcome, Why};
use grilse_packet::{Ctx, Memory, Skb};
use grilse_wire::build::{
    Check, Eth, Gre, Ipv4, Ipv6, Tcp, Transport, Udp, Vxlan, frame, packet, payload,
};
use grilse_wire::tcp::flag;
use grilse_wire::{Csum, GsoType, Meta, Packet, csum, gre, ipv4, ipv6, tcp, udp};

mod support;
use support::cut::{cut, eth, leave, meta};

fn word(frame: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([frame[at], frame[at + 1]])
}

/// Words at the same place of each segment.
fn words(segments: &[Vec<u8>], at: usize) -> Vec<u16> {
    segments.iter().map(|segment| word(segment, at)).collect()
}

const IDS: (GsoType, GsoType) = (GsoType::TCP_FIXEDID, GsoType::TCP_FIXEDID_INNER);

/// Translated IPv6 in a tunnel: DF, and 0 for every identification.
#[test]
fn row_18_an_outer_identification_of_zero_stays() {
    let inner = packet(Ipv4 { id: 50, ..Ipv4::default() }, partial_tcp(), &payload(0, 300));
    let train = eth(0x0800, &packet(Ipv4::default(), Transport::Raw(ipv4::PROTOCOL), &inner));
    let kind = GsoType::TCPV4 | GsoType::IPXIP4 | IDS.0;
    let segments = cut(&train, meta(&train, 100, kind, 54, tcp::CHECK)).unwrap();
    assert_eq!(words(&segments, 18), [0, 0, 0]);
    assert_eq!(words(&segments, 38), [50, 51, 52]);
}

fn partial_tcp() -> Tcp<'static> {
    Tcp { check: Check::Partial, ..Tcp::default() }
}

/// The kernel reads the outer bit for what is in GRE or VXLAN; each header's own where GRO says so.
#[test]
fn row_19_identifications_go_by_their_own_bit_in_tunnels() {
    let inner = packet(Ipv4 { id: 50, ..Ipv4::default() }, partial_tcp(), &payload(0, 300));
    let outer = Ipv4 { id: 9, ..Ipv4::default() };
    let gre = packet(outer, Transport::Raw(gre::PROTOCOL), &Gre::default().around(&inner));
    let vxlan = packet(
        outer,
        Udp { check: Check::Exactly(0), ..Udp::default() },
        &Vxlan::default().around(&eth(0x0800, &inner)),
    );
    let cases = [
        (eth(0x0800, &gre), GsoType::GRE, 38),
        (eth(0x0800, &vxlan), GsoType::UDP_TUNNEL, 14 + 20 + 8 + 8 + 14),
    ];
    for (train, tunnel, ip) in cases {
        let ids = |bits| {
            let mut meta = meta(&train, 100, GsoType::TCPV4 | tunnel | bits, ip + 20, tcp::CHECK);
            (meta.inner_network, meta.encapsulated) = (ip as u16, true);
            let segments = cut(&train, meta).unwrap();
            (words(&segments, 18), words(&segments, ip + 4))
        };
        let (up, same) = ([vec![9, 10, 11], vec![50, 51, 52]], [vec![9; 3], vec![50; 3]]);
        let own = GsoType::IDS_PER_LEVEL;
        assert_eq!(ids(IDS.0), (same[0].clone(), same[1].clone()), "the kernel's");
        assert_eq!(ids(IDS.1), (up[0].clone(), up[1].clone()), "the kernel's");
        assert_eq!(ids(IDS.0 | own), (same[0].clone(), up[1].clone()));
        assert_eq!(ids(IDS.1 | own), (up[0].clone(), same[1].clone()));
    }
}

#[test]
fn row_20_a_gre_checksum_is_computed_for_the_short_last_segment() {
    let inner = packet(Ipv4::default(), partial_tcp(), &payload(0, 250));
    let header = Gre { check: Some(Check::Exactly(0x1234)), ..Gre::default() };
    let train = packet(Ipv4::default(), Transport::Raw(gre::PROTOCOL), &header.around(&inner));
    let train = eth(0x0800, &train);
    let sums = |kind| {
        let segments =
            cut(&train, meta(&train, 100, GsoType::TCPV4 | kind, 62, tcp::CHECK)).unwrap();
        segments.iter().map(|segment| csum::fold(csum::sum(&segment[34..]))).collect::<Vec<_>>()
    };
    assert_eq!(sums(GsoType::GRE_CSUM), [0xffff; 3]);
    assert_ne!(sums(GsoType::GRE), [0xffff; 3], "the kernel leaves what it does not know of");
}

#[test]
fn row_21_fixed_identifications_of_udp_stay_fixed() {
    let udp = Udp { check: Check::Partial, ..Udp::default() };
    let train = frame(Eth::default(), Ipv4 { id: 8, ..Ipv4::default() }, udp, &payload(0, 250));
    let kind = GsoType::UDP_L4 | GsoType::IDS_PER_LEVEL | IDS.0;
    let segments = cut(&train, meta(&train, 100, kind, 34, udp::CHECK)).unwrap();
    assert_eq!(words(&segments, 18), [8, 8, 8]);
}

#[test]
fn row_22_accurate_ecn_keeps_cwr_on_all() {
    let tcp = Tcp { flags: flag::ACK | flag::CWR, ..partial_tcp() };
    let train = frame(Eth::default(), Ipv4::default(), tcp, &payload(0, 250));
    for (bit, want) in [(GsoType::TCP_ACCECN, [true; 3]), (GsoType::TCP_ECN, [true, false, false])]
    {
        let meta = meta(&train, 100, GsoType::TCPV4 | bit, 34, tcp::CHECK);
        let flags = words(&cut(&train, meta).unwrap(), 46);
        assert_eq!(flags.iter().map(|word| word & flag::CWR != 0).collect::<Vec<_>>(), want);
    }
}

/// More than 64 KiB: lengths of 0, and in IPv6 the kernel's jumbo payload option or none.
#[test]
fn row_24_big_tcp_is_cut() {
    const LEN: usize = 70_000;
    let data = payload(0, LEN);
    let v4 = frame(Eth::default(), Ipv4::default(), partial_tcp(), &data);
    let v6 = frame(Eth::default(), Ipv6::default(), partial_tcp(), &data);
    let jumbo = (LEN as u32 + 28).to_be_bytes();
    let option = [&[6, 0, 0xc2, 4], &jumbo[..]].concat();
    let mut with_option = [&v6[..54], &option, &v6[54..]].concat();
    with_option[20] = 0;
    let cases = [
        (v4, GsoType::TCPV4, 34, 0x0800),
        (v6, GsoType::TCPV6, 54, 0x86dd),
        (with_option, GsoType::TCPV6, 62, 0x86dd),
    ];
    for (train, kind, l4, ethertype) in cases {
        let segments = cut(&train, meta(&train, 8000, kind, l4, tcp::CHECK)).unwrap();
        let want: Vec<Vec<u8>> = (0..9)
            .map(|n| {
                let (at, len) = (n * 8000, 8000.min(LEN - n * 8000));
                let tcp = Tcp { seq: 1000 + at as u32, ..Tcp::default() };
                let (v4, v6) = (Ipv4 { id: n as u16, ..Ipv4::default() }, Ipv6::default());
                match ethertype {
                    0x0800 => frame(Eth::default(), v4, tcp, &data[at..at + len]),
                    _ => frame(Eth::default(), v6, tcp, &data[at..at + len]),
                }
            })
            .collect();
        assert_eq!(segments, want);
    }
}

/// 65,535 is the kernel's mark for segments of no fixed size.
#[test]
fn row_25_the_sentinel_is_no_size() {
    let udp = Udp { check: Check::Partial, ..Udp::default() };
    let train = frame(Eth::default(), Ipv6::default(), partial_tcp(), &payload(0, 65_535));
    let cut_at = |size| cut(&train, meta(&train, size, GsoType::TCPV6, 54, tcp::CHECK));
    assert_eq!(cut_at(21_845).unwrap().len(), 3);
    assert_eq!(cut_at(0xffff), Err(Invalid::GsoSize { size: 0xffff }));
    assert_eq!(cut_at(0), Err(Invalid::GsoSize { size: 0 }));
    assert_eq!(cut_at(65_534), Err(Invalid::SegmentLength { len: 65_554 }));
    let train = frame(Eth::default(), Ipv4::default(), udp, &payload(0, 100));
    let meta = meta(&train, 100, GsoType::UDP_L4, 34, udp::CHECK);
    assert_eq!(cut(&train, meta), Err(Invalid::OneSegment { payload: 100, size: 100 }));
}

/// What one list is made of: frames of a pool as heads, so that there is headroom to show headers in.
struct Lists {
    ctx: Ctx,
    pool: FramePool,
}

impl Lists {
    fn new() -> Self {
        let memory = Memory::new(512, None).unwrap();
        Self {
            ctx: Ctx::new(memory.seat(Role::Worker)).unwrap(),
            pool: FramePool::new(64, 2048, None).unwrap(),
        }
    }

    /// The frames as one list that GRO makes.
    fn list(&mut self, frames: &[Vec<u8>], csum: Csum) -> Skb {
        let mut config = Config::default();
        config.gro_list = true;
        let mut gro = Gro::new(config);
        let mut out = Vec::new();
        for (bytes, seq) in frames.iter().zip(0..) {
            let mut frame = self.pool.take().unwrap();
            frame.bytes_mut().unwrap()[200..200 + bytes.len()].copy_from_slice(bytes);
            let mut skb = self.ctx.build(frame, 200, bytes.len()).unwrap();
            let protocol = word(bytes, 12);
            *skb.meta_mut() = Meta { seq, protocol, network: 14, csum, ..Meta::default() };
            match gro.push(skb, 0, &mut |skb: Skb, _: Why| out.push(skb)) {
                Outcome::Merged(emptied) => assert!(emptied.is_none()),
                Outcome::Held | Outcome::Delivered => {}
            }
        }
        gro.flush(&mut |skb: Skb, _: Why| out.push(skb));
        assert_eq!(out.len(), 1, "GRO makes one list");
        out.pop().unwrap()
    }

    fn cut(&mut self, list: Skb, checksums: Checksums) -> Vec<(Vec<u8>, Csum)> {
        let mut segments: Segments<Skb> = gso::segment(list, checksums).unwrap();
        let made: Vec<Skb> = segments.packets(&mut self.ctx).collect();
        assert_eq!(segments.remaining(), 0);
        self.ctx.consume(segments.into_packet());
        let bytes = |skb: &Skb| skb.pieces(0..skb.len()).flatten().copied().collect::<Vec<u8>>();
        let all = made.iter().map(|skb| (bytes(skb), skb.meta().csum)).collect();
        made.into_iter().for_each(|skb| self.ctx.consume(skb));
        all
    }

    /// The same into one buffer.
    fn write(list: Skb) -> Vec<Vec<u8>> {
        let mut segments: Segments<Skb> = gso::segment(list, Checksums::Finish).unwrap();
        let (mut out, mut all) = (vec![0; 2000], Vec::new());
        while segments.remaining() > 0 {
            assert!(segments.write(&mut out[..60]).is_err(), "too short, and nothing is lost");
            let len = segments.write(&mut out).unwrap().unwrap();
            all.push(out[..len].to_vec());
        }
        all
    }
}

/// Six segments of one flow, the last of them short, as TCP or UDP.
fn members(v6: bool, is_udp: bool, src_port: u16, address: u8, check: Check) -> Vec<Vec<u8>> {
    (0..6)
        .map(|n| {
            let len = if n == 5 { 40 } else { 300 };
            let seq = 1000 + 300 * n;
            // Only lists keep an urgent pointer of each packet's own.
            let tcp = Tcp { seq, src_port, check, urgent: n as u16, ..Tcp::default() };
            let udp = Udp { src_port, check, ..Udp::default() };
            let transport: Transport<'_> = if is_udp { udp.into() } else { tcp.into() };
            let mut v4 = Ipv4 { id: 5 + n as u16, ..Ipv4::default() };
            let mut six = Ipv6::default();
            (v4.src[3], six.src[15]) = (address, address);
            let data = payload(300 * n as usize, len);
            if v6 {
                frame(Eth::default(), six, transport, &data)
            } else {
                frame(Eth::default(), v4, transport, &data)
            }
        })
        .collect()
}

/// Behind the first packet, whose address, port and link header the way changed, all follow.
#[test]
fn row_26_a_rewritten_list_is_rewritten_in_all_its_packets() {
    for (v6, is_udp) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut lists = Lists::new();
        let mut sent = members(v6, is_udp, 4000, 1, Check::Right);
        let list = lists.list(&sent, Csum::None);
        assert_eq!(frames(lists.cut(list, Checksums::Finish)), sent, "untouched, it is as it came");
        let list = lists.list(&sent, Csum::None);
        assert_eq!(Lists::write(list), sent);

        // What a source NAT and a router do, to the head alone.
        let mut list = lists.list(&sent, Csum::None);
        let translated = members(v6, is_udp, 4001, 77, Check::Right);
        let headers = list.meta().transport as usize + 8;
        let head = list.front_mut(headers + 12).unwrap();
        let total = head[16..20].to_vec();
        head[..headers].copy_from_slice(&translated[0][..headers]);
        head[16..20].copy_from_slice(&total);
        let check = headers - 8 + if is_udp { udp::CHECK } else { tcp::CHECK };
        head[check..check + 2].copy_from_slice(&translated[0][check..check + 2]);
        head[5] = 0x99;
        sent = translated;
        sent.iter_mut().for_each(|frame| frame[5] = 0x99);
        assert_eq!(frames(lists.cut(list, Checksums::Finish)), sent, "v6 {v6}, UDP {is_udp}");

        // Bytes moved between the packets: they are cut at the size, and summed.
        let sent = members(v6, is_udp, 4000, 1, Check::Right);
        let mut list = lists.list(&sent, Csum::None);
        list.gather(400).unwrap();
        let cut = frames(lists.cut(list, Checksums::Finish));
        let urgent = |frame: &Vec<u8>| {
            let mut frame = frame.clone();
            let at = if v6 { 54 } else { 34 };
            if !is_udp {
                // The head's own, and so another checksum.
                frame[at + 16..at + 20].fill(0);
            }
            frame
        };
        assert_eq!(
            cut.iter().map(urgent).collect::<Vec<_>>(),
            sent.iter().map(urgent).collect::<Vec<_>>()
        );
    }
}

fn frames(cut: Vec<(Vec<u8>, Csum)>) -> Vec<Vec<u8>> {
    cut.into_iter().map(|(frame, _)| frame).collect()
}

/// Packets of a guest whose sums nobody computed yet stay so, or get them; none is called verified.
#[test]
fn row_27_unfinished_checksums_of_a_list_stay_unfinished() {
    for (is_udp, offset) in [(false, tcp::CHECK), (true, udp::CHECK)] {
        let mut lists = Lists::new();
        let state = Csum::Partial { start: 34, offset: offset as u16 };
        let sent = members(false, is_udp, 4000, 1, Check::Partial);
        let list = lists.list(&sent, state);
        let left = lists.cut(list, Checksums::Leave);
        assert!(left.iter().all(|(_, csum)| *csum == state));
        assert_eq!(frames(left), sent);
        let list = lists.list(&sent, state);
        for (frame, csum) in lists.cut(list, Checksums::Finish) {
            assert_eq!(csum, Csum::None);
            let protocol = if is_udp { 17 } else { 6 };
            let len = frame.len() as u32 - 34;
            let pseudo = csum::pseudo_v4([10, 9, 0, 1], [10, 9, 0, 2], protocol, len);
            assert_eq!(csum::fold(csum::add(pseudo, csum::sum(&frame[34..]))), 0xffff);
        }
    }
}

/// BL-14: a last datagram as long as the others is like them.
#[test]
fn row_32_an_exact_multiple_has_no_odd_tail() {
    for (len, want) in
        [(2000, vec![1008, 1008]), (2001, vec![1008, 1008, 9]), (1999, vec![1008, 1007])]
    {
        let udp = Udp { check: Check::Partial, ..Udp::default() };
        let train = frame(Eth::default(), Ipv4::default(), udp, &payload(0, len));
        let meta = meta(&train, 1000, GsoType::UDP_L4, 34, udp::CHECK);
        assert_eq!(words(&cut(&train, meta).unwrap(), 38), want);
    }
}

#[test]
fn row_36_the_type_must_be_that_of_the_packet() {
    let udp = Udp { check: Check::Partial, ..Udp::default() };
    let trains = [
        (frame(Eth::default(), Ipv4::default(), udp, &[0; 300]), 34, GsoType::UDP_L4),
        (frame(Eth::default(), Ipv4::default(), partial_tcp(), &[0; 300]), 34, GsoType::TCPV4),
        (frame(Eth::default(), Ipv6::default(), partial_tcp(), &[0; 300]), 54, GsoType::TCPV6),
    ];
    let kinds = [GsoType::TCPV4, GsoType::TCPV6, GsoType::UDP_L4, GsoType::UDP, GsoType(0)];
    for (train, l4, right) in &trains {
        for kind in kinds {
            let result = cut(train, meta(train, 96, kind, *l4, tcp::CHECK));
            let ufo = kind == GsoType::UDP && *right == GsoType::UDP_L4;
            if kind == *right || ufo {
                assert!(result.is_ok(), "{kind:?}");
            } else {
                assert!(matches!(result, Err(Invalid::Kind { .. })), "{kind:?}: {result:?}");
            }
        }
    }
    // A tunnel that nobody spoke of.
    let inner = packet(Ipv6::default(), partial_tcp(), &[0; 300]);
    let train = eth(0x0800, &packet(Ipv4::default(), Transport::Raw(ipv6::PROTOCOL), &inner));
    let meta = meta(&train, 100, GsoType::TCPV6, 74, tcp::CHECK);
    let want = GsoType::IPXIP4;
    assert_eq!(cut(&train, meta), Err(Invalid::Kind { kind: GsoType::TCPV6, want }));
}

/// BL-20: where a UDP sum comes to 0, 0xffff is sent, and TCP sends 0.
#[test]
fn a_udp_sum_of_zero_becomes_ffff() {
    let mut data = payload(0, 200);
    let udp = Udp { check: Check::Partial, ..Udp::default() };
    for at in [0, 100] {
        data[at..at + 2].fill(0);
        let lone = frame(Eth::default(), Ipv4::default(), Udp::default(), &data[at..at + 100]);
        // The complement of the sum, as one word more, brings it to zero.
        data[at..at + 2].copy_from_slice(&lone[40..42]);
    }
    let train = frame(Eth::default(), Ipv4::default(), udp, &data);
    let meta = meta(&train, 100, GsoType::UDP_L4, 34, udp::CHECK);
    assert_eq!(words(&cut(&train, meta).unwrap(), 40), [0xffff, 0xffff]);
    assert_eq!(words(&leave(&train, meta), 40), [0xffff, 0xffff]);
}

/// What one datagram cannot be: longer than its length field and the offsets of its fragments tell.
#[test]
fn datagrams_beyond_64_kib_are_no_fragments() {
    let udp = Udp { check: Check::Partial, len: Some(0), ..Udp::default() };
    for (v6, l4) in [(false, 34), (true, 54)] {
        let build = |len: usize| match v6 {
            false => frame(Eth::default(), Ipv4::default(), udp, &payload(0, len)),
            true => frame(Eth::default(), Ipv6::default(), udp, &payload(0, len)),
        };
        let cut = |train: Vec<u8>| cut(&train, meta(&train, 1480, GsoType::UDP, l4, udp::CHECK));
        assert_eq!(cut(build(65_535 - 8)).unwrap().len(), 45);
        assert_eq!(cut(build(65_536 - 8)), Err(Invalid::DatagramLength { len: 65_536 }));
    }
}

/// Segments lose the jumbo payload option in front of a Fragment header too.
#[test]
fn fragments_lose_a_jumbo_payload_option() {
    let udp = Udp { check: Check::Partial, ..Udp::default() };
    let plain = frame(Eth::default(), Ipv6::default(), udp, &payload(0, 3000));
    let jumbo = (3000 + 16_u32).to_be_bytes();
    let mut train = [&plain[..54], &[17, 0, 0xc2, 4], &jumbo, &plain[54..]].concat();
    (train[18], train[19], train[20]) = (0, 0, 0);
    let cut = |train: &[u8], l4| cut(train, meta(train, 1480, GsoType::UDP, l4, udp::CHECK));
    assert_eq!(cut(&train, 62).unwrap(), cut(&plain, 54).unwrap());
}

//! Two oracles: the frames that the hand-made kernel cases hold, byte for byte, and etherparse.

extern crate std;

use std::vec::Vec;

use etherparse::{NetHeaders, PacketHeaders, TransportHeader};
use proptest::prelude::*;

use super::*;
use crate::eth::ethertype;
use crate::tcp::flag;
use crate::{VlanTag, ipv4, ipv6};

macro_rules! case {
    ($name:literal) => {
        frames(include_bytes!(concat!("../../../../tests/oracle/cases/", $name, ".pcap")))
    };
}

/// The frames of a little-endian pcap without truncated records.
fn frames(mut pcap: &[u8]) -> Vec<Vec<u8>> {
    pcap = &pcap[24..];
    let mut frames = Vec::new();
    while !pcap.is_empty() {
        let len = u32::from_le_bytes(pcap[8..12].try_into().unwrap()) as usize;
        frames.push(pcap[16..16 + len].to_vec());
        pcap = &pcap[16 + len..];
    }
    frames
}

/// Segment `i` of the cases' usual flow: 500 bytes each.
fn segment(i: usize) -> (Ipv4<'static>, Tcp<'static>, Vec<u8>) {
    let ip = Ipv4 { id: 1 + i as u16, ..Default::default() };
    let tcp = Tcp { seq: 1000 + 500 * i as u32, ..Default::default() };
    (ip, tcp, payload(500 * i, 500))
}

#[test]
fn tcp_cases_are_reproduced() {
    let eth = Eth::default();
    let tags = [VlanTag { tpid: ethertype::VLAN, tci: 5 }];
    let options = [1, 1, 8, 10, 0, 0, 0, 10, 0, 0, 0, 20];
    for i in 0..6 {
        let (ip, tcp, data) = segment(i);
        assert_eq!(frame(eth, ip, tcp, &data), case!("tcp4-inorder-10")[i]);
        let tagged = Eth { tags: &tags, ..eth };
        assert_eq!(frame(tagged, ip, tcp, &data), case!("vlan-tcp4")[i]);
        let stamped = Tcp { options: &options, ..tcp };
        assert_eq!(frame(eth, ip, stamped, &data), case!("tcp4-timestamps-same")[i]);
        let check = if i == 2 { Check::Flipped(0x1234) } else { Check::Right };
        assert_eq!(frame(eth, ip, Tcp { check, ..tcp }, &data), case!("tcp4-bad-tcp-csum")[i]);
        let check = if i == 2 { Check::Flipped(0x5555) } else { Check::Right };
        assert_eq!(frame(eth, Ipv4 { check, ..ip }, tcp, &data), case!("tcp4-bad-ip-csum")[i]);
        let class = if i < 3 { 0 } else { 0x28 };
        let ip = Ipv6 { class, ..Default::default() };
        assert_eq!(frame(eth, ip, tcp, &data), case!("tcp6-class-change")[i]);
    }
}

#[test]
fn fragments_and_arp_are_reproduced() {
    let (ip, tcp, data) = segment(2);
    let first = Ipv4 { mf: true, df: false, ..ip };
    assert_eq!(frame(Eth::default(), first, tcp, &data), case!("ip4-fragments")[2]);
    let (ip, tcp, data) = segment(3);
    let later = Ipv4 { offset: 40, df: false, ..ip };
    assert_eq!(frame(Eth::default(), later, tcp, &data), case!("ip4-fragments")[3]);

    let mut arp = Vec::from([0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 10, 9, 0, 1]);
    arp.extend_from_slice(&[0, 0, 0, 0, 0, 0, 10, 9, 0, 2]);
    let padded = Eth { padding: 18, ..Default::default() };
    assert_eq!(ethernet(padded, ethertype::ARP, &arp), case!("tcp4-arp-between")[3]);
}

#[test]
fn udp_cases_are_reproduced() {
    let udp = Udp::default();
    let zero = Udp { check: Check::Exactly(0), ..udp };
    let ip = Ipv4 { id: 2, ..Default::default() };
    let data = payload(7, 300);
    assert_eq!(frame(Eth::default(), ip, udp, &data), case!("udp4-fwd")[1]);
    assert_eq!(frame(Eth::default(), ip, zero, &data), case!("udp4-fwd-zero-csum")[1]);
    assert_eq!(frame(Eth::default(), Ipv6::default(), udp, &data), case!("udp6-fwd")[1]);
    let bad = Udp { check: Check::Flipped(0x1234), ..udp };
    let ip = Ipv4 { id: 3, ..ip };
    assert_eq!(frame(Eth::default(), ip, bad, &payload(0, 300)), case!("udp4-fwd-bad-csum")[2]);
}

/// faults.md BL-20: a UDP sum that comes to 0 is written as 0xffff, a TCP sum is not.
#[test]
fn udp_sum_of_zero_becomes_ffff() {
    let mut src = [0; 16];
    (src[0], src[15]) = (0xfd, 1);
    let mut dst = src;
    dst[15] = 2;
    let ip = Ipv6 { src, dst, ..Default::default() };
    let field = |segment: &[u8], at: usize| u16::from_be_bytes([segment[at], segment[at + 1]]);
    for at in [40, 41] {
        // The last word makes the sum come to zero, whatever stands before it.
        let mut data = payload(at, 8);
        data.extend_from_slice(&[0, 0]);
        let probe = packet(ip, Udp::default(), &data);
        data[8..].copy_from_slice(&probe[46..48]);
        assert_eq!(field(&packet(ip, Udp::default(), &data), 46), 0xffff);
        data[8..].copy_from_slice(&[0, 0]);
        let probe = packet(ip, Tcp::default(), &data);
        data[8..].copy_from_slice(&probe[56..58]);
        assert_eq!(field(&packet(ip, Tcp::default(), &data), 56), 0);
    }
}

#[test]
fn lies_change_only_their_field() {
    let honest = packet(Ipv4::default(), Tcp::default(), b"abc");
    let ip = Ipv4 { ihl: Some(4), total_len: Some(39), version: 5, ..Default::default() };
    let lying = packet(ip, Tcp { data_offset: Some(15), ..Default::default() }, b"abc");
    let differs: Vec<usize> = (0..43).filter(|&i| honest[i] != lying[i]).collect();
    assert_eq!(differs, [0, 3, 10, 11, 32, 36, 37]);
    let honest = packet(Ipv6::default(), Udp::default(), b"abc");
    let ip = Ipv6 { payload_len: Some(9), next_header: Some(59), ..Default::default() };
    let lying = packet(ip, Udp::default(), b"abc");
    let differs: Vec<usize> = (0..51).filter(|&i| honest[i] != lying[i]).collect();
    assert_eq!(differs, [5, 6]);
}

#[test]
fn partial_holds_the_pseudo_header_sum() {
    let tcp = Tcp { check: Check::Partial, ..Default::default() };
    let packet = packet(Ipv4::default(), tcp, b"abc");
    let pseudo = crate::csum::pseudo_v4([10, 9, 0, 1], [10, 9, 0, 2], 6, 23);
    assert_eq!(packet[36..38], crate::csum::fold(pseudo).to_be_bytes());
}

proptest! {
    #[test]
    fn etherparse_reads_what_ipv4_and_tcp_were_built_from(
        (ttl, tos, id, df) in any::<(u8, u8, u16, bool)>(),
        (seq, ack, flags, window, urgent) in any::<(u32, u32, u16, u16, u16)>(),
        option_words in 0usize..=10, ip_options in 0usize..=40,
        data in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let options = [1u8; 40];
        let ip = Ipv4 { ttl, tos, id, df, options: &options[..ip_options], ..Default::default() };
        let options = &options[..4 * option_words];
        let tcp = Tcp { seq, ack, flags, window, urgent, options, ..Default::default() };
        let frame = frame(Eth::default(), ip, tcp, &data);
        let parsed = PacketHeaders::from_ethernet_slice(&frame).unwrap();
        let Some(NetHeaders::Ipv4(v4, _)) = parsed.net else { panic!("not IPv4") };
        prop_assert_eq!((v4.time_to_live, v4.identification, v4.dont_fragment), (ttl, id, df));
        prop_assert_eq!(v4.dscp.value() << 2 | v4.ecn.value(), tos);
        prop_assert_eq!(v4.header_checksum, v4.calc_header_checksum());
        prop_assert_eq!(v4.header_len(), (20 + ip_options).next_multiple_of(4));
        let Some(TransportHeader::Tcp(parsed_tcp)) = parsed.transport else { panic!("not TCP") };
        prop_assert_eq!(parsed_tcp.sequence_number, seq);
        prop_assert_eq!(parsed_tcp.acknowledgment_number, ack);
        prop_assert_eq!((parsed_tcp.window_size, parsed_tcp.urgent_pointer), (window, urgent));
        prop_assert_eq!(parsed_tcp.cwr, flags & flag::CWR != 0);
        prop_assert_eq!(parsed_tcp.ns, flags & flag::AE != 0);
        prop_assert_eq!(parsed_tcp.fin, flags & flag::FIN != 0);
        prop_assert_eq!(parsed_tcp.header_len(), 20 + options.len());
        prop_assert_eq!(parsed_tcp.checksum, parsed_tcp.calc_checksum_ipv4(&v4, &data).unwrap());
    }

    #[test]
    fn etherparse_reads_what_ipv6_and_udp_were_built_from(
        (class, hop_limit, label) in any::<(u8, u8, u32)>(),
        (src_port, dst_port) in any::<(u16, u16)>(),
        hop in prop::option::of(0usize..300), dst in prop::option::of(0usize..300),
        fragment in any::<bool>(),
        data in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let pads = [0u8; 300];
        let mut ext = Vec::new();
        ext.extend(hop.map(|n| Ext::HopByHop(&pads[..n])));
        ext.extend(dst.map(|n| Ext::DestOpts(&pads[..n])));
        // A Fragment header of an atomic fragment (RFC 6946), which etherparse reads through.
        ext.extend(fragment.then_some(Ext::Fragment { offset: 0, more: false, id: 9 }));
        let ip = Ipv6 { class, hop_limit, label, ext: &ext, ..Default::default() };
        let udp = Udp { src_port, dst_port, ..Default::default() };
        let frame = frame(Eth::default(), ip, udp, &data);
        let parsed = PacketHeaders::from_ethernet_slice(&frame).unwrap();
        let Some(NetHeaders::Ipv6(v6, _)) = parsed.net else { panic!("not IPv6") };
        prop_assert_eq!((v6.traffic_class, v6.hop_limit), (class, hop_limit));
        prop_assert_eq!(v6.flow_label.value(), label & 0xf_ffff);
        prop_assert_eq!(usize::from(v6.payload_length), frame.len() - 14 - ipv6::LEN);
        let Some(TransportHeader::Udp(parsed_udp)) = parsed.transport else { panic!("not UDP") };
        prop_assert_eq!((parsed_udp.source_port, parsed_udp.destination_port), (src_port, dst_port));
        prop_assert_eq!(usize::from(parsed_udp.length), 8 + data.len());
        prop_assert_eq!(parsed_udp.checksum, parsed_udp.calc_checksum_ipv6(&v6, &data).unwrap());
    }

    #[test]
    fn every_sum_verifies(v6 in any::<bool>(), tcp in any::<bool>(), data: Vec<u8>) {
        let network = if v6 { Ipv6::default().into() } else { Network::V4(Ipv4::default()) };
        let transport = if tcp { Tcp::default().into() } else { Transport::Udp(Udp::default()) };
        let packet = packet(network, transport, &data);
        let (head, segment) = packet.split_at(if v6 { ipv6::LEN } else { ipv4::MIN_LEN });
        let pseudo = network.pseudo(transport.protocol(), segment.len() as u32);
        let total = crate::csum::add(pseudo, crate::csum::sum(segment));
        prop_assert_eq!(crate::csum::fold(total), 0xffff);
        prop_assert!(v6 || crate::csum::fold(crate::csum::sum(head)) == 0xffff);
    }
}

#[test]
fn tunnels_stand_where_their_rfcs_put_them() {
    let gre = Gre { key: Some(7), seq: Some(9), check: Some(Check::Right), ..Default::default() };
    let bytes = gre.around(b"abc");
    assert_eq!(bytes[..4], [0xb0, 0, 8, 0]);
    assert_eq!(bytes[8..], *b"\0\0\0\x07\0\0\0\x09abc");
    assert_eq!(crate::csum::fold(crate::csum::sum(&bytes)), 0xffff);
    assert_eq!(Gre::default().around(b"a"), [0, 0, 8, 0, b'a']);
    assert_eq!(
        Vxlan { vni: 0x123456, ..Default::default() }.around(b"a"),
        *b"\x08\0\0\0\x12\x34\x56\0a"
    );
    assert_eq!(Vxlan::gpe(2).around(b""), [0x0c, 0, 0, 2, 0, 0, 0, 0]);
    let geneve = Geneve { vni: 0x123456, options: &[1, 2, 3, 0, 5], ..Default::default() };
    assert_eq!(geneve.around(b"a"), *b"\x02\0\x65\x58\x12\x34\x56\0\x01\x02\x03\0\x05\0\0\0a");
    let gue = Gue { flags: 1, fields: &[0x80, 0, 0, 0], ..Default::default() };
    assert_eq!(gue.around(b"a"), [1, 4, 0, 1, 0x80, 0, 0, 0, b'a']);
}

//! Super-packets that come in with a vnet header, through GRO, and out with one again: faults of
//! other implementations, one test each. Numbers are those of their lists.

use grilse_offload::{Config, Reason};
use grilse_wire::build::Check;
use grilse_wire::tcp::flag;
use grilse_wire::vnet::{Form, Header, NEEDS_CSUM, gso};
use grilse_wire::{Csum, Packet};

mod support;
use support::frame::{packets, tcp4, tcp6, udp4};
use support::{Frame, Split, reasons, run};

/// The header of a delivered packet, as bytes over a buffer that had another one.
fn header(packet: &Split) -> Header {
    let mut buffer = [0xff; 10];
    let header = Header::from_meta(packet.meta(), packet.front()).unwrap();
    header.write(&mut buffer, Form::NATIVE).unwrap();
    Header::read(&buffer, Form::NATIVE).map(|read| Header { num_buffers: 1, ..read }).unwrap()
}

fn with_header(frame: Vec<u8>, header: Header) -> Split {
    let mut packet = packets([frame]).remove(0);
    let (front, len) = (packet.front().to_vec(), packet.len());
    header.to_meta(&front, len, packet.meta_mut()).unwrap();
    packet
}

/// Row 30: a packet with a bad checksum ended the merge, and the head went out under the vnet header
/// of the super-packet that it never became.
#[test]
fn row_30_no_stale_header_after_a_bad_checksum() {
    let bad = tcp4(1, |p| p.tcp.check = Check::Flipped(1));
    let out = run(&Config::default(), packets([tcp4(0, |_| ()), bad]), 64);
    assert_eq!(reasons(&out), [Reason::TcpChecksum, Reason::PollEnd]);
    for out in &out {
        let header = header(&out.packet);
        assert_eq!((header.gso_type, header.gso_size, header.hdr_len), (gso::NONE, 0, 0));
        assert_eq!(header.flags & NEEDS_CSUM, 0);
    }
}

/// Row 31 and BL-14, on the way out: what GRO made is a header that the strictest reader takes, the
/// sum where the transport header is, the hint all headers, and a short or an equal tail.
#[test]
fn row_31_super_packets_leave_with_exact_headers() {
    for (last, total) in [(100, 300), (40, 240)] {
        let frames = (0..3).map(|n| tcp4(n, |p| p.resize(if n == 2 { last } else { 100 })));
        let out = run(&Config::default(), packets(frames), 64);
        assert_eq!((out.len(), out[0].packet.len()), (1, 54 + total));
        let header = header(&out[0].packet);
        assert_eq!((header.flags, header.gso_type, header.gso_size), (NEEDS_CSUM, gso::TCPV4, 100));
        assert_eq!((header.hdr_len, header.csum_start, header.csum_offset), (54, 34, 16));
        let back = with_header(out[0].packet.frame(), header);
        assert_eq!(back.meta().gso.segs, 3);
    }
}

/// Row 32: a UDP train whose tail is as long as the others came out mangled. Equal and short tails
/// are told by the same numbers.
#[test]
fn row_32_an_equal_tail_is_like_any_other() {
    for last in [100, 60] {
        let mut config = Config::default();
        config.udp_fwd = true;
        let frames = (0..4).map(|n| udp4(n, |p| p.resize(if n == 3 { last } else { 100 })));
        let out = run(&config, packets(frames), 64);
        assert_eq!(out.len(), 1);
        let header = header(&out[0].packet);
        assert_eq!((header.gso_type, header.gso_size), (gso::UDP_L4, 100));
        assert_eq!((header.hdr_len, header.csum_start, header.csum_offset), (42, 34, 6));
        let back = with_header(out[0].packet.frame(), header);
        assert_eq!((back.meta().gso.segs, back.len()), (4, 42 + 300 + last));
    }
}

/// Row 34: a buffer sized for the MTU met a super-packet. Lengths beyond it are lengths here.
#[test]
fn row_34_a_super_packet_is_as_long_as_it_is() {
    for (frame, gso_type, csum_start) in [
        (tcp4(0, |p| p.resize(65_495)), gso::TCPV4, 34),
        (tcp6(0, |p| p.resize(65_515)), gso::TCPV6, 54),
    ] {
        let len = frame.len();
        let flags = NEEDS_CSUM;
        let right = Header {
            flags,
            gso_type,
            gso_size: 1,
            csum_start,
            csum_offset: 16,
            ..Default::default()
        };
        let out = run(&Config::default(), vec![with_header(frame, right)], 64);
        assert_eq!(out[0].packet.len(), len);
        assert_eq!(usize::from(out[0].packet.meta().gso.segs), len - usize::from(csum_start) - 20);
        assert_eq!(header(&out[0].packet).gso_size, 1);
    }
}

/// A super-packet that a guest wrote is delivered as it is, behind the data held before it, and is
/// never merged: its numbers are claims.
#[test]
fn untrusted_super_packets_pass_in_order() {
    let first = packets([tcp4(0, |_| ())]).remove(0);
    let train = tcp4(1, |p| p.resize(300));
    let header = Header {
        flags: NEEDS_CSUM,
        gso_type: gso::TCPV4,
        hdr_len: 54,
        gso_size: 100,
        csum_start: 34,
        csum_offset: 16,
        num_buffers: 1,
    };
    let mut second = with_header(train.clone(), header);
    second.meta_mut().seq = 1;
    let mut third = packets([tcp4(4, |_| ())]).remove(0);
    third.meta_mut().seq = 2;
    let out = run(&Config::default(), vec![first, second, third], 64);
    assert_eq!(out.iter().map(|out| out.members.clone()).collect::<Vec<_>>(), [[0], [1], [2]]);
    assert_eq!(reasons(&out), [Reason::UntrustedGso, Reason::UntrustedGso, Reason::PollEnd]);
    assert_eq!(out[1].packet.frame(), train);
    assert_eq!(self::header(&out[1].packet), header);
}

/// What hardware coalesced is trusted, and merges; CWR stays where it was.
#[test]
fn hardware_super_packets_merge() {
    let mut both = packets([tcp4(0, |p| p.resize(300)), tcp4(3, |p| p.tcp.flags |= flag::PSH)]);
    let gso = grilse_wire::Gso { size: 100, segs: 3, kind: grilse_wire::GsoType::TCPV4 };
    both[0].meta_mut().gso = gso;
    let out = run(&Config::default(), both, 64);
    assert_eq!(out.len(), 1);
    let header = header(&out[0].packet);
    assert_eq!((header.gso_size, out[0].packet.meta().gso.segs), (100, 4));
    assert_eq!(out[0].packet.meta().csum, Csum::Partial { start: 34, offset: 16 });
}

/// BL-20, the merging half: a UDP checksum of 0 says that there is none, and a merged datagram would
/// get one.
#[test]
fn bl_20_and_row_29_datagrams_without_checksum_never_merge() {
    let mut config = Config::default();
    config.udp_fwd = true;
    let frames: Vec<_> = (0..2).map(|n| udp4(n, |p| p.udp.check = Check::Exactly(0))).collect();
    let out = run(&config, packets(frames.clone()), 64);
    assert_eq!(out.iter().map(|out| out.packet.frame()).collect::<Vec<_>>(), frames);
}

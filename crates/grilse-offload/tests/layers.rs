//! Headers in front of IP, behind it, and super-packets that come as such.

use grilse_offload::{Config, Reason};
use grilse_wire::build::{Eth, Ext, ethernet};
use grilse_wire::{Csum, Gso, GsoType, Packet, VlanTag};

mod support;
use support::frame::{packets, tcp4, tcp6};
use support::{Frame, reasons, run};

#[test]
fn tags_in_the_frame_are_part_of_the_flow() {
    let tagged = |n, tci| {
        tcp4(n, |p| {
            p.eth.tags = if tci == 5 {
                &[VlanTag { tpid: 0x88a8, tci: 1 }, VlanTag { tpid: 0x8100, tci: 5 }]
            } else {
                &[VlanTag { tpid: 0x88a8, tci: 1 }, VlanTag { tpid: 0x8100, tci: 6 }]
            };
        })
    };
    let out = run(&Config::default(), packets([tagged(0, 5), tagged(1, 5), tagged(2, 6)]), 64);
    assert_eq!(out.iter().map(|out| out.members.len()).collect::<Vec<_>>(), [2, 1]);
    let meta = out[0].packet.meta();
    assert_eq!((meta.network, meta.transport), (14, 42));
    assert_eq!(meta.csum, Csum::Partial { start: 42, offset: 16 });
    let merged = out[0].packet.frame();
    assert_eq!(merged[24..26], 240_u16.to_be_bytes());
    assert_eq!(grilse_wire::csum::fold(grilse_wire::csum::sum(&merged[22..42])), 0xffff);
}

#[test]
fn packets_of_two_interfaces_stay_apart() {
    let mut segments = packets((0..4).map(|n| tcp4(n, |_| ())));
    for (n, segment) in segments.iter_mut().enumerate() {
        segment.meta_mut().interface = u32::from(n >= 2);
    }
    let out = run(&Config::default(), segments, 64);
    assert_eq!(out.iter().map(|out| out.members.len()).collect::<Vec<_>>(), [2, 2]);
}

#[test]
fn a_bridged_ethernet_header_is_looked_through() {
    let bridged = |n, src: u8| {
        let inner = tcp4(n, |p| p.eth.src[5] = src);
        ethernet(Eth::default(), 0x6558, &inner)
    };
    let out = run(&Config::default(), packets([bridged(0, 1), bridged(1, 1), bridged(2, 9)]), 64);
    assert_eq!(out.iter().map(|out| out.members.len()).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(out[0].packet.meta().csum, Csum::Partial { start: 48, offset: 16 });
}

const EXT: &[Ext<'static>] =
    &[Ext::HopByHop(&[1, 4, 1, 2, 3, 4]), Ext::DestOpts(&[1, 4, 5, 6, 7, 8])];

/// 6.18 breaks extension headers of more than 8 bytes here; these stay whole.
#[test]
fn a_jumbo_option_stands_before_other_extension_headers() {
    let mut config = Config::default();
    config.set_gro_max_size(180_000).unwrap();
    let seg = |n: u32| {
        let edit = |p: &mut support::frame::Parts| {
            p.v6.ext = EXT;
            p.tcp.seq = 8000 * n;
            p.resize(8000);
        };
        tcp6(0, edit)
    };
    let out = run(&config, packets((0..10).map(seg)), 64);
    assert_eq!(out.len(), 1);
    let frame = out[0].packet.frame();
    assert_eq!(frame.len(), 14 + 40 + 8 + 16 + 20 + 80_000);
    assert_eq!(frame[54..62], [0, 0, 0xc2, 4, 0, 1, 0x38, 0x9c + 16]);
    assert_eq!(frame[62..78], [60, 0, 1, 4, 1, 2, 3, 4, 6, 0, 1, 4, 5, 6, 7, 8]);
    assert_eq!(out[0].packet.meta().transport, 78);
}

/// A packet of hardware GRO counts for all its segments, and the identification follows.
#[test]
fn super_packets_join_by_their_segments() {
    let train = |n: u32, len: usize| {
        tcp4(n, |p| {
            p.v4.id = n as u16;
            p.resize(len);
        })
    };
    let mut trains = packets([train(0, 300), train(3, 200), train(5, 150)]);
    for (packet, segs) in trains.iter_mut().zip([3, 2, 2]) {
        packet.meta_mut().gso = Gso { size: 100, segs, kind: GsoType::TCPV4 };
    }
    let out = run(&Config::default(), trains, 64);
    assert_eq!(reasons(&out), [Reason::GsoTail]);
    let gso = out[0].packet.meta().gso;
    assert_eq!((gso.size, gso.segs, gso.kind), (100, 7, GsoType::TCPV4));
}

extern crate std;

use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::build::{Eth, Ext, Ipv4, Ipv6, Network, Tcp, Transport, Udp, frame};
use crate::{Csum, Gso, GsoType, Meta, tcp};

/// A frame of 4,000 payload bytes, and the metadata that says where its headers are.
fn super_packet<'a>(
    network: impl Into<Network<'a>>,
    transport: impl Into<Transport<'a>>,
) -> (Vec<u8>, Meta) {
    let frame = frame(Eth::default(), network, transport, &[7; 4000]);
    let protocol = u16::from_be_bytes([frame[12], frame[13]]);
    (frame, Meta { network: 14, protocol, ..Default::default() })
}

fn tcp4() -> (Vec<u8>, Meta, Header) {
    let (frame, meta) = super_packet(Ipv4::default(), Tcp { options: &[1; 12], ..Tcp::default() });
    let header = Header {
        flags: NEEDS_CSUM,
        gso_type: gso::TCPV4,
        hdr_len: 66,
        gso_size: 1388,
        csum_start: 34,
        csum_offset: 16,
        num_buffers: 0,
    };
    (frame, meta, header)
}

fn verdict(header: Header, frame: &[u8], mut meta: Meta) -> Result<Meta, Invalid> {
    let before = meta;
    let result = header.to_meta(frame, frame.len(), &mut meta);
    assert!(result.is_ok() || meta == before, "a refusal leaves the metadata alone");
    result.map(|()| meta)
}

#[test]
fn layout_of_each_form() {
    let (_, _, mut header) = tcp4();
    header.num_buffers = 3;
    let mut out = [0xaa; 12];
    assert_eq!(header.write(&mut out, Form::VIRTIO_1), Some(12));
    assert_eq!(out, [1, 1, 66, 0, 0x6c, 5, 34, 0, 16, 0, 3, 0]);
    assert_eq!(Header::read(&out, Form::VIRTIO_1), Some(header));
    let big = Form { endian: Endian::Big, num_buffers: false };
    assert_eq!(header.write(&mut out, big), Some(10));
    assert_eq!(out, [1, 1, 0, 66, 5, 0x6c, 0, 34, 0, 16, 3, 0]);
    assert_eq!(Header::read(&out, big), Some(Header { num_buffers: 0, ..header }));
    assert_eq!(Header::read(&out[..9], big), None);
    assert_eq!(header.write(&mut out[..11], Form::VIRTIO_1), None);
}

#[test]
fn super_packets_of_each_type() {
    let (frame, meta, header) = tcp4();
    let meta = verdict(header, &frame, meta).unwrap();
    assert_eq!(meta.csum, Csum::Partial { start: 34, offset: 16 });
    let kind = GsoType::TCPV4 | GsoType::DODGY;
    assert_eq!((meta.transport, meta.gso), (34, Gso { size: 1388, segs: 3, kind }));

    let ext = [Ext::HopByHop(&[]), Ext::DestOpts(&[])];
    let (frame, meta) = super_packet(Ipv6 { ext: &ext, ..Default::default() }, Tcp::default());
    let gso_type = gso::TCPV6 | gso::ECN;
    let header = Header { csum_start: 70, gso_size: 1000, gso_type, ..header };
    let meta = verdict(header, &frame, meta).unwrap();
    let kind = GsoType::TCPV6 | GsoType::TCP_ECN | GsoType::DODGY;
    assert_eq!((meta.transport, meta.gso), (70, Gso { size: 1000, segs: 4, kind }));

    let (frame, meta) = super_packet(Ipv6::default(), Udp::default());
    let header = Header { csum_start: 54, csum_offset: 6, gso_type: gso::UDP_L4, ..header };
    let meta = verdict(header, &frame, meta).unwrap();
    assert_eq!(meta.gso.kind, GsoType::UDP_L4 | GsoType::DODGY);
    assert_eq!(meta.gso.segs, 4);
}

/// Others believed the length hint. The first four are what they are without one, the rest is refused.
#[test]
fn bl_17_the_header_length_is_not_believed() {
    let (frame, meta, header) = tcp4();
    let right = verdict(header, &frame, meta);
    for hdr_len in [1500, 0, 52, 65535] {
        assert_eq!(verdict(Header { hdr_len, ..header }, &frame, meta), right);
    }
    let refusal = |lie: Header| verdict(lie, &frame, meta).unwrap_err();
    let start = frame.len() as u16;
    let beyond = Header { csum_start: start, ..header };
    assert_eq!(refusal(beyond), Invalid::CsumRange { start, offset: 16 });
    let (transport, start) = (34, 34);
    let of_udp = Header { csum_offset: 6, ..header };
    assert_eq!(refusal(of_udp), Invalid::CsumPlace { transport, start, offset: 6 });
    for start in [0, 20, 33] {
        let within = Header { csum_start: start, ..header };
        assert_eq!(refusal(within), Invalid::CsumRange { start, offset: 16 });
    }
    let elsewhere = Header { csum_start: 36, ..header };
    assert_eq!(refusal(elsewhere), Invalid::CsumPlace { transport, start: 36, offset: 16 });
    for gso_size in [0, 0xffff] {
        assert_eq!(refusal(Header { gso_size, ..header }), Invalid::GsoSize { gso_size });
    }
    for gso_type in [gso::TCPV6, gso::UDP, gso::UDP_L4] {
        let lie = Header { gso_type, ..header };
        assert_eq!(refusal(lie), Invalid::Protocol { gso_type, protocol: tcp::PROTOCOL });
    }
    for gso_type in [2, gso::UDP | gso::ECN, gso::ECN, gso::UDP_L4 | gso::ECN, 0x21] {
        assert_eq!(refusal(Header { gso_type, ..header }), Invalid::GsoType { gso_type });
    }
    let (frame6, meta6) = super_packet(Ipv6::default(), Tcp::default());
    let lie = Header { csum_start: 54, ..header };
    let protocol = Invalid::Protocol { gso_type: gso::TCPV4, protocol: tcp::PROTOCOL };
    assert_eq!(verdict(lie, &frame6, meta6), Err(protocol));
}

#[test]
fn data_offsets_that_lie_are_refused() {
    for words in [0, 4] {
        let tcp = Tcp { data_offset: Some(words), ..Default::default() };
        let (frame, meta) = super_packet(Ipv4::default(), tcp);
        let len = 4 * usize::from(words);
        assert_eq!(verdict(tcp4().2, &frame, meta), Err(Invalid::HeaderLen { len }));
    }
    let (frame, mut meta, header) = tcp4();
    let cut = header.to_meta(&frame[..60], frame.len(), &mut meta);
    assert_eq!(cut, Err(Invalid::HeaderLen { len: 32 }));
}

#[test]
fn fragments_are_no_super_packets() {
    let (frame, meta) = super_packet(Ipv4 { mf: true, ..Default::default() }, Tcp::default());
    let wrong = Invalid::Protocol { gso_type: gso::TCPV4, protocol: tcp::PROTOCOL };
    assert_eq!(verdict(tcp4().2, &frame, meta), Err(wrong));
}

#[test]
fn checksum_flags() {
    let (frame, meta, header) = tcp4();
    let plain = Header { gso_type: gso::NONE, ..header };
    let got = verdict(plain, &frame, meta).unwrap();
    assert_eq!((got.gso, got.transport), (Gso::default(), 34));
    let valid = verdict(Header { flags: DATA_VALID, ..plain }, &frame, meta).unwrap();
    assert_eq!(valid.csum, Csum::Unnecessary { level: 0 });
    assert_eq!(verdict(Header { flags: 0, ..plain }, &frame, meta).unwrap().csum, Csum::None);
    // TCP may leave its checksum finished, UDP may not.
    assert!(verdict(Header { flags: 0, ..header }, &frame, meta).is_ok());
    let (frame, meta) = super_packet(Ipv4::default(), Udp::default());
    let udp = Header { flags: 0, gso_type: gso::UDP_L4, csum_offset: 6, ..header };
    assert_eq!(verdict(udp, &frame, meta), Err(Invalid::NeedsCsum));
}

#[test]
fn payload_of_one_segment_is_plain() {
    let (frame, meta, header) = tcp4();
    let got = verdict(Header { gso_size: 4000, ..header }, &frame, meta).unwrap();
    assert_eq!(got.gso, Gso::default());
    let got = verdict(Header { gso_size: 3999, ..header }, &frame, meta).unwrap();
    assert_eq!(got.gso.segs, 2);
    let mut meta = meta;
    let refused = Header { gso_size: 1, ..header }.to_meta(&frame, 66 + 65_536, &mut meta);
    assert_eq!(refused, Err(Invalid::Segments { segs: 65_536 }));
}

/// A validator refused tails that are shorter than the others, or counted an equal one as a further
/// segment; and what fits one segment went out as a super-packet.
#[test]
fn bl_14_and_row_31_tails_may_be_short_or_equal() {
    for (udp, v6) in [(false, false), (false, true), (true, false), (true, true)] {
        let transport = |options| -> Transport<'_> {
            if udp { Udp::default().into() } else { Tcp { options, ..Tcp::default() }.into() }
        };
        let network: Network<'_> = if v6 { Ipv6::default().into() } else { Ipv4::default().into() };
        for (payload, segs) in [(4544, 4), (4344, 3), (1448, 0), (1447, 0), (1449, 2)] {
            let frame = frame(Eth::default(), network, transport(&[]), &[7; 4544][..payload]);
            let header = Header {
                flags: NEEDS_CSUM,
                gso_type: match (udp, v6) {
                    (true, _) => gso::UDP_L4,
                    (_, false) => gso::TCPV4,
                    (_, true) => gso::TCPV6,
                },
                gso_size: 1448,
                csum_start: if v6 { 54 } else { 34 },
                csum_offset: if udp { 6 } else { 16 },
                ..Header::default()
            };
            let protocol = if v6 { 0x86dd } else { 0x0800 };
            let meta = Meta { network: 14, protocol, ..Meta::default() };
            let meta = verdict(header, &frame, meta).unwrap();
            assert_eq!(meta.gso.segs, segs);
            let back = Header::from_meta(&meta, &frame).unwrap();
            assert_eq!(back.gso_type == gso::NONE, segs == 0, "one segment is a plain packet");
        }
    }
}

/// A header length that left out options made 12 bytes of each later segment options.
#[test]
fn bl_16_the_header_length_counts_options() {
    let tcp = Tcp { options: &[1; 12], ..Tcp::default() };
    for (options, transport) in [(&[][..], 34), (&[1; 4][..], 38)] {
        let (frame, meta) = super_packet(Ipv4 { options, ..Ipv4::default() }, tcp);
        let header = Header { csum_start: transport, hdr_len: 0, ..tcp4().2 };
        let meta = verdict(header, &frame, meta).unwrap();
        let back = Header::from_meta(&meta, &frame).unwrap();
        assert_eq!((meta.transport, back.hdr_len), (transport, transport + 32));
    }
}

/// 130 segments were 127 and an end of the reader. Here they are counted, or refused by number.
#[test]
fn bl_18_segments_are_counted_or_refused() {
    let (frame, meta) = super_packet(Ipv4::default(), Udp::default());
    let udp = Header { csum_offset: 6, gso_type: gso::UDP_L4, ..tcp4().2 };
    let of = |gso_size| verdict(Header { gso_size, ..udp }, &frame, meta).map(|meta| meta.gso.segs);
    assert_eq!(of(32), Ok(125));
    assert_eq!(of(31), Err(Invalid::Segments { segs: 130 }));
    assert_eq!(of(1), Err(Invalid::Segments { segs: 4000 }));
    let (frame, meta, header) = tcp4();
    let meta = verdict(Header { gso_size: 31, ..header }, &frame, meta).unwrap();
    assert_eq!(meta.gso.segs, 130);
}

/// Fragments carry the UDP header as payload, and may have no checksum to finish.
#[test]
fn udp_fragments() {
    let (frame, meta) = super_packet(Ipv4::default(), Udp::default());
    let ufo = Header { flags: 0, gso_type: gso::UDP, gso_size: 1480, ..Header::default() };
    let got = verdict(ufo, &frame, meta).unwrap();
    assert_eq!((got.transport, got.gso.segs), (34, 3));
    assert_eq!(got.gso.kind, GsoType::UDP | GsoType::DODGY);
    assert_eq!(Header::from_meta(&got, &frame).unwrap().gso_type, gso::UDP);
    let exact = verdict(Header { gso_size: 4008, ..ufo }, &frame, meta).unwrap();
    assert_eq!(exact.gso, Gso::default());
}

#[test]
fn metadata_comes_back() {
    let (frame, meta, header) = tcp4();
    let meta = verdict(header, &frame, meta).unwrap();
    let back = Header::from_meta(&meta, &frame).unwrap();
    assert_eq!(back, Header { num_buffers: 1, ..header });
    assert_eq!(Header::from_meta(&meta, &frame[..50]), Err(Unsupported::Cut));
    for kind in [
        GsoType::UDP_L4 | GsoType::FRAGLIST,
        GsoType::TCPV4 | GsoType::GRE,
        GsoType::TCPV4 | GsoType::IPXIP6,
        GsoType::TCPV6 | GsoType::UDP_TUNNEL_CSUM,
    ] {
        let other = Meta { gso: Gso { kind, ..meta.gso }, ..meta };
        assert_eq!(Header::from_meta(&other, &frame), Err(Unsupported::GsoType(kind)));
    }
}

proptest! {
    #[test]
    fn any_header_on_any_frame(
        bytes: [u8; 12], little: bool, num_buffers: bool,
        front in prop::collection::vec(any::<u8>(), 0..120), more in 0usize..100_000,
        protocol in prop::sample::select(&[0x0800u16, 0x86dd, 0x8100]), network in 0u16..130,
        // Nonsense alone seldom gets past the first check.
        flags in 0u8..4, gso_type in 0u8..8, ipv4: bool,
    ) {
        let form = Form { endian: if little { Endian::Little } else { Endian::Big }, num_buffers };
        let mut header = Header::read(&bytes, form).unwrap();
        let mut out = bytes;
        prop_assert_eq!(header.write(&mut out, form), Some(form.header_len()));
        prop_assert_eq!(out, bytes);
        let mut front = front;
        if let (true, Some(first)) = (ipv4, front.get_mut(usize::from(network))) {
            *first = 0x45;
        }
        (header.flags, header.gso_type) = (flags, gso_type);
        let mut meta = Meta { network, protocol, ..Default::default() };
        if header.to_meta(&front, front.len() + more, &mut meta).is_ok() {
            if let Csum::Partial { start, offset } = meta.csum {
                prop_assert!(usize::from(start) + usize::from(offset) + 2 <= front.len());
            }
            if meta.gso.size != 0 {
                prop_assert!(meta.gso.kind.contains(GsoType::DODGY));
                prop_assert!(meta.gso.segs >= 2);
                prop_assert!(usize::from(meta.transport) + 8 <= front.len());
            }
            prop_assert!(Header::from_meta(&meta, &front).is_ok());
        }
    }
}

//! Captures with packets longer than the link carries, cut to wire size.

use grilse_offload::gso::{self, Checksums, Invalid};
use grilse_wire::build::{
    Check, Eth, Gre, Ipv4, Ipv6, Tcp, Transport, Udp, frame, packet, payload,
};
use grilse_wire::tcp::flag;
use grilse_wire::{Csum, Gso, GsoType, Heap, Linear, Packet, VlanTag, gre, ipv6};

mod support;
use support::cut::eth;
use support::ethernet;

fn planned(bytes: &[u8], mtu: usize) -> Result<Vec<Vec<u8>>, Invalid> {
    let mut packet = Linear::new(bytes.to_vec(), ethernet(bytes, 0));
    if !gso::plan(&mut packet, mtu)? {
        assert_eq!(packet.bytes(), bytes);
        return Ok(vec![bytes.to_vec()]);
    }
    let mut segments = gso::segment(packet, Checksums::Finish).map_err(|rejected| rejected.why)?;
    assert!(segments.remaining() > 1);
    Ok(segments.packets(&mut Heap).map(|packet| packet.bytes().to_vec()).collect())
}

/// Whatever stands in the checksum field of a capture: nothing, the pseudo-header's sum, or a sum.
const FIELDS: [Check; 3] = [Check::Exactly(0), Check::Partial, Check::Right];

#[test]
fn tcp_is_cut_at_what_the_mtu_leaves() {
    let data = payload(0, 3000);
    for check in FIELDS {
        let tcp =
            |at: usize, flags| Tcp { seq: at as u32, flags, options: &[1; 12], ..Tcp::default() };
        let whole = Tcp { check, ..tcp(0, flag::ACK | flag::PSH) };
        let parts =
            [(0, 1448, flag::ACK), (1448, 2896, flag::ACK), (2896, 3000, flag::ACK | flag::PSH)];
        let want = parts.map(|(from, to, flags)| {
            let id = (from / 1448) as u16;
            let ip = Ipv4 { id, ..Ipv4::default() };
            frame(Eth::default(), ip, tcp(from, flags), &data[from..to])
        });
        assert_eq!(
            planned(&frame(Eth::default(), Ipv4::default(), whole, &data), 1500).unwrap(),
            want
        );
    }
}

#[test]
fn udp_and_tunnels_are_cut_too() {
    let data = payload(0, 4000);
    for check in FIELDS {
        let udp = Udp { check, ..Udp::default() };
        let segments = planned(&frame(Eth::default(), Ipv6::default(), udp, &data), 1280).unwrap();
        assert_eq!(segments.len(), 4);
        let want = frame(Eth::default(), Ipv6::default(), Udp::default(), &data[..1232]);
        assert_eq!(segments[0], want);

        let inner = packet(Ipv6::default(), Tcp { check, ..Tcp::default() }, &data);
        let header = Gre { protocol: 0x86dd, check: Some(check), key: Some(3), ..Gre::default() };
        let ip = Ipv4 { id: 3, ..Ipv4::default() };
        let train = packet(ip, Transport::Raw(gre::PROTOCOL), &header.around(&inner));
        let segments = planned(&eth(0x0800, &train), 1500).unwrap();
        let inner = packet(Ipv6::default(), Tcp::default(), &data[..1500 - 20 - 12 - 40 - 20]);
        let header = Gre { check: Some(Check::Right), ..header };
        let want = packet(ip, Transport::Raw(gre::PROTOCOL), &header.around(&inner));
        assert_eq!(segments[0], eth(0x0800, &want));

        let inner = packet(Ipv6::default(), Tcp { check, ..Tcp::default() }, &data);
        let train = eth(0x0800, &packet(ip, Transport::Raw(ipv6::PROTOCOL), &inner));
        let mut packet = Linear::new(train.clone(), ethernet(&train, 0));
        assert_eq!(gso::plan(&mut packet, 1500), Ok(true));
        let kind = GsoType::TCPV6 | GsoType::IPXIP4;
        assert_eq!(packet.meta().gso, Gso { size: 1420, segs: 3, kind });
        assert_eq!(packet.meta().csum, Csum::Partial { start: 74, offset: 16 });
    }
}

#[test]
fn what_fits_stays_and_what_cannot_be_cut_is_named() {
    let data = payload(0, 1460);
    let fits = frame(Eth::default(), Ipv4::default(), Tcp::default(), &data);
    assert_eq!(planned(&fits, 1500).unwrap(), std::slice::from_ref(&fits));
    assert_eq!(planned(&fits, 40), Err(Invalid::Mtu { mtu: 40, headers: 40 }));
    let fragment = Ipv4 { mf: true, ..Ipv4::default() };
    let fragment = frame(Eth::default(), fragment, Tcp::default(), &data);
    assert_eq!(planned(&fragment, 1000), Err(Invalid::Fragment { at: 14 }));
    let icmp = eth(0x0800, &packet(Ipv4::default(), Transport::Raw(1), &data));
    assert_eq!(planned(&icmp, 1000), Err(Invalid::Protocol { protocol: 1 }));
    let vxlan = Udp { dst_port: 4789, ..Udp::default() };
    let vxlan = frame(Eth::default(), Ipv4::default(), vxlan, &data);
    assert_eq!(planned(&vxlan, 1000), Err(Invalid::Tunnel { port: 4789 }));
    let mut long = frame(Eth::default(), Ipv4::default(), Tcp::default(), &payload(0, 3000));
    let end = long.len();
    long.truncate(1000);
    let mut packet = Linear::new(long.clone(), ethernet(&long, 0));
    packet.meta_mut().wire_len = end as u32;
    assert_eq!(gso::plan(&mut packet, 1500), Err(Invalid::Truncated { end, len: 1000 }));
    assert_eq!(packet.bytes(), long);
}

/// What stands in front of IP, and behind it, is not of the MTU; a capture that was cut short neither.
#[test]
fn only_the_ip_packet_counts() {
    let tags = &[VlanTag { tpid: 0x88a8, tci: 5 }, VlanTag { tpid: 0x8100, tci: 6 }];
    let tagged = Eth { tags, ..Eth::default() };
    let data = payload(0, 1460);
    let fits = frame(tagged, Ipv4::default(), Tcp::default(), &data);
    let more = frame(tagged, Ipv4::default(), Tcp::default(), &payload(0, 1461));
    assert_eq!(planned(&fits, 1500).unwrap(), std::slice::from_ref(&fits));
    assert_eq!(planned(&more, 1500).unwrap()[0].len(), fits.len());
    let esp = packet(Ipv6::default(), Transport::Raw(50), &data);
    let trailed = [eth(0x86dd, &esp), vec![1; 4]].concat();
    assert_eq!(planned(&trailed, 1500).unwrap(), std::slice::from_ref(&trailed));
    let mut cut = Linear::new(fits[..64].to_vec(), ethernet(&fits, 0));
    cut.meta_mut().wire_len = fits.len() as u32;
    assert_eq!(gso::plan(&mut cut, 1500), Ok(false));
}

/// Bytes behind the packet would become payload.
#[test]
fn lengths_that_contradict_are_refused() {
    let data = payload(0, 3000);
    let whole = frame(Eth::default(), Ipv4::default(), Tcp::default(), &data);
    let trailed = [&whole[..], &[1; 4]].concat();
    assert_eq!(planned(&trailed, 1500), Err(Invalid::Length { stated: 3040, have: 3044 }));
    let ip = Ipv4 { total_len: Some(0), ..Ipv4::default() };
    let unstated = frame(Eth::default(), ip, Tcp::default(), &data);
    assert_eq!(planned(&unstated, 1500).unwrap(), planned(&whole, 1500).unwrap());
    let ip = Ipv6 { payload_len: Some(0), ..Ipv6::default() };
    let unstated = frame(Eth::default(), ip, Tcp::default(), &data);
    assert_eq!(planned(&unstated, 1500).unwrap().len(), 3);
}

//! The vnet header against the live kernel: what it takes from a TUN device is metadata here, and
//! what it refuses is an error here.
//!
//! Headers are right but for a few fields. The kernel looks into headers later than
//! [`Header::to_meta`] does, when it cuts the packet, and drops it silently then: those complaints
//! are ours alone, and named below. The length hint is kept right, for TUN refuses one beyond the
//! packet and nobody else looks at it.

use std::io;

use grilse_wire::build::{Eth, Ext, Ipv4, Ipv6, Network, Tcp, Transport, Udp, frame};
use grilse_wire::vnet::{Form, Header, Invalid, NEEDS_CSUM, gso};
use grilse_wire::{Meta, link};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use tun_rs::{DeviceBuilder, SyncDevice};

mod support;
use support::namespace::namespaces;

#[test]
fn kernel_agrees() {
    let Some([namespace]) = namespaces("kernel_agrees") else { return };
    namespace.enter().unwrap();
    let builder = DeviceBuilder::new().name("vnet0").ipv4("10.9.0.1", 24, None);
    let device = builder.ipv6("fd09::1", 64).offload(true).build_sync().unwrap();
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let cases = Config { cases: 20_000, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(cases, rng);
    let (mut taken, mut refused) = (0, 0);
    let seen = std::cell::RefCell::new((&mut taken, &mut refused));
    let strategy = (shape(), field(), field());
    let run = runner.run(&strategy, |(shape, (one, value), (other, again))| {
        let (packet, mut header) = packet(shape);
        set(&mut header, one, value);
        set(&mut header, other, again);
        let ours = verdict(&header, &packet);
        let kernel = write(&device, &header, &packet);
        match (&ours, kernel) {
            (Ok(()), true) => *seen.borrow_mut().0 += 1,
            (Err(_), false) => *seen.borrow_mut().1 += 1,
            (Err(why), true) if is_ours_alone(why) => {}
            (ours, kernel) => {
                prop_assert!(false, "{header:?}: {ours:?}, the kernel took it: {kernel}")
            }
        }
        Ok(())
    });
    run.unwrap();
    assert!(taken > 1000 && refused > 1000, "{taken} taken, {refused} refused: no test of either");
}

/// What the kernel finds only when it cuts the packet; and ECN on UDP fragments, a bit without
/// meaning there that it lets pass.
fn is_ours_alone(why: &Invalid) -> bool {
    match why {
        Invalid::GsoType { gso_type } => *gso_type == gso::UDP | gso::ECN,
        Invalid::Protocol { .. }
        | Invalid::CsumPlace { .. }
        | Invalid::HeaderLen { .. }
        | Invalid::Segments { .. }
        | Invalid::NoFlow(_) => true,
        _ => false,
    }
}

/// What is varied of a packet and its right header.
#[derive(Clone, Copy, Debug)]
struct Shape {
    v6: bool,
    udp: bool,
    /// An extension header or options of TCP.
    more: bool,
    payload: usize,
    gso_size: u16,
}

fn shape() -> impl Strategy<Value = Shape> {
    (any::<bool>(), any::<bool>(), any::<bool>(), 0usize..4000, 1u16..2000)
        .prop_map(|(v6, udp, more, payload, gso_size)| Shape { v6, udp, more, payload, gso_size })
}

/// A packet, and the header that is right for it.
fn packet(Shape { v6, udp, more, payload, gso_size }: Shape) -> (Vec<u8>, Header) {
    let ext = [Ext::HopByHop(&[])];
    let network: Network<'_> = match v6 {
        false => Ipv4 { dst: [10, 9, 0, 9], ..Default::default() }.into(),
        true => Ipv6 { ext: if more { &ext } else { &[] }, ..Default::default() }.into(),
    };
    let options: &[u8] = if more { &[1; 12] } else { &[] };
    let (transport, gso_type): (Transport<'_>, u8) = match (udp, v6) {
        (true, _) => (Udp::default().into(), gso::UDP_L4),
        (_, false) => (Tcp { options, ..Default::default() }.into(), gso::TCPV4),
        (_, true) => (Tcp { options, ..Default::default() }.into(), gso::TCPV6),
    };
    let frame = frame(Eth::default(), network, transport, &vec![7; payload]);
    let l4_len = if udp { 8 } else { 20 + options.len() };
    let csum_start = (frame.len() - 14 - payload - l4_len) as u16;
    let header = Header {
        flags: NEEDS_CSUM,
        gso_type,
        hdr_len: csum_start + l4_len as u16,
        gso_size,
        csum_start,
        csum_offset: if udp { 6 } else { 16 },
        num_buffers: 0,
    };
    (frame[14..].to_vec(), header)
}

/// A field of the header, and a value that may be wrong there; 6 is none.
fn field() -> impl Strategy<Value = (usize, u16)> {
    let value = prop_oneof![
        0u16..80,
        prop::sample::select(&[0u16, 1, 1447, 1448, 4000, 0xfffe, 0xffff]),
        any::<u16>()
    ];
    (0usize..7, value)
}

fn set(header: &mut Header, field: usize, value: u16) {
    match field {
        0 => header.flags = value as u8,
        1 => header.gso_type = value as u8,
        2 => header.gso_type = [0, 1, 3, 4, 5, 0x81, 0x84, 0x85][usize::from(value) % 8],
        3 => header.gso_size = value,
        4 => header.csum_start = value,
        5 => header.csum_offset = value,
        _ => {}
    }
}

fn verdict(header: &Header, packet: &[u8]) -> Result<(), Invalid> {
    let (network, protocol) = link::Type::Raw.network(packet).unwrap();
    let mut meta = Meta { network, protocol, ..Meta::default() };
    header.to_meta(packet, packet.len(), &mut meta)
}

/// Whether the kernel takes the packet.
fn write(device: &SyncDevice, header: &Header, packet: &[u8]) -> bool {
    let mut bytes = vec![0; Form::NATIVE.header_len()];
    header.write(&mut bytes, Form::NATIVE).unwrap();
    bytes.extend_from_slice(packet);
    match device.send(&bytes) {
        Ok(_) => true,
        Err(e) if e.kind() == io::ErrorKind::InvalidInput => false,
        Err(e) => panic!("{header:?}: {e}"),
    }
}

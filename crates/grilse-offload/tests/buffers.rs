//! What packets are made of changes no result: every capture, on one vector and on pieces of
//! `BytesMut`.

use std::path::Path;

use grilse_offload::{Config, Why};
use grilse_wire::{Linear, Meta, Scattered};

mod support;
use support::{Frame, ethernet, pcap, run};

#[test]
fn pieces_of_bytes_equal_one_vector() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../captures");
    let mut captures = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|suffix| suffix != "pcap") {
            continue;
        }
        let frames = pcap::read(&path);
        for udp_fwd in [false, true] {
            let mut config = Config::default();
            config.udp_fwd = udp_fwd;
            let linear = delivered::<Linear>(&config, &frames);
            assert_eq!(delivered::<Scattered>(&config, &frames), linear, "{}", path.display());
            assert!(linear.len() <= frames.len());
        }
        captures += 1;
    }
    assert!(captures > 0, "there are captures");
}

/// All that is known of a packet that came out.
type Delivered = (Vec<u8>, Meta, Why, Vec<u64>);

fn delivered<P: Frame>(config: &Config, frames: &[Vec<u8>]) -> Vec<Delivered> {
    let packets = frames.iter().zip(0..).map(|(frame, seq)| P::of(frame, ethernet(frame, seq)));
    let out = run(config, packets.collect(), 64);
    out.into_iter()
        .map(|out| (out.packet.frame(), *out.packet.meta(), out.why, out.members))
        .collect()
}

//! The recorded cases and captures, coalesced and cut again: what the kernel gives back byte for byte.

use std::path::Path;

use grilse_offload::Config;
use grilse_wire::{Linear, Packet};

mod support;
use support::cut::cut;
use support::{Frame, ethernet, pcap, run};

/// The kernel was seen to restore all of these (`kernel-gro`, then `kernel-gso`), but for the fixed
/// identifications that virtio has no place for, where here the metadata has one, and but for
/// tunnels, which virtio does not tell. Of these one is lost in the kernel, by its source: a shorter
/// last packet in GRE keeps the checksum of the first.
#[test]
fn every_recorded_case_comes_back() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut config = Config::default();
    config.udp_fwd = true;
    config.set_gro_max_size(180_000).unwrap();
    config.set_gro_ipv4_max_size(180_000).unwrap();
    let (mut merged, mut lost) = (0, Vec::new());
    for folder in ["tests/oracle/cases", "captures"] {
        let files =
            std::fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path());
        for path in files.filter(|path| path.extension().is_some_and(|suffix| suffix == "pcap")) {
            let frames = pcap::read(&path);
            let long = frames.iter().zip(0..).filter(|(frame, _)| frame.len() >= 14);
            let packets =
                long.map(|(frame, seq)| Linear::of(frame, ethernet(frame, seq))).collect();
            for out in run(&config, packets, 64).into_iter().filter(|out| out.members.len() > 1) {
                let members: Vec<_> =
                    out.members.iter().map(|n| frames[*n as usize].clone()).collect();
                merged += 1;
                if cut(&out.packet.frame(), *out.packet.meta()).as_ref() != Ok(&members) {
                    lost.push((path.file_stem().unwrap().to_owned(), out.members));
                }
            }
        }
    }
    assert!(merged > 100, "{merged} super-packets");
    assert_eq!(lost, [("tunnel-gre-csum".into(), vec![0, 1, 2, 3, 4])]);
}

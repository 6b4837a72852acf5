//! Every recorded case: what comes out equals what Linux 6.18 delivered for the same frames.

use std::path::Path;

use grilse_offload::{Config, Tunnel};
use grilse_wire::{Csum, GsoType, Linear, Meta, Scattered, VlanTag};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

mod support;
use support::{Frame, Split, ethernet, pcap, run};

#[test]
fn on_one_vector() {
    // A plain vector cannot chain packets.
    check::<Linear>(|args| !args.contains(&"--gro-list"));
}

#[test]
fn on_pieces_of_bytes() {
    check::<Scattered>(|args| !args.contains(&"--gro-list"));
}

#[test]
fn on_split_packets() {
    check::<Split>(|_| true);
}

fn check<P: Frame>(can: impl Fn(&[&str]) -> bool) {
    let oracle = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/oracle");
    let index = std::fs::read_to_string(oracle.join("cases/index.json")).unwrap();
    let index: Value = serde_json::from_str(&index).unwrap();
    let index = index.as_object().unwrap();
    assert!(index.len() >= 67);
    let mut wrong = Vec::new();
    for (name, case) in index {
        let args: Vec<&str> =
            case["args"].as_array().unwrap().iter().map(|a| a.as_str().unwrap()).collect();
        if !can(&args) {
            continue;
        }
        let frames = pcap::read(&oracle.join(format!("cases/{name}.pcap")));
        let expected =
            std::fs::read_to_string(oracle.join(format!("expected/{name}.jsonl"))).unwrap();
        let got = replay::<P>(&frames, &args);
        let expected: Vec<Value> =
            expected.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        for n in 0..got.len().max(expected.len()) {
            let (got, expected) = (got.get(n), expected.get(n));
            let equal = got.zip(expected).is_some_and(|(got, expected)| {
                got.as_object().unwrap().iter().all(|(key, value)| {
                    (key == "batch" && !args.contains(&"--batch")) || *value == expected[key]
                })
            });
            if !equal {
                wrong.push(format!("{name}[{n}]:\n  got {got:?}\n  not {expected:?}"));
                break;
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn replay<P: Frame>(frames: &[Vec<u8>], args: &[&str]) -> Vec<Value> {
    let mut config = Config::default();
    config.vlan = false;
    let (mut batch, mut strip) = (64, false);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut number = || args.next().unwrap().parse::<u32>().unwrap();
        match *arg {
            "--batch" => batch = number() as usize,
            "--no-gro" => config.gro = false,
            "--gro-max-size" => config.set_gro_max_size(number()).unwrap(),
            "--gro-ipv4-max-size" => config.set_gro_ipv4_max_size(number()).unwrap(),
            "--hw-vlan" => strip = true,
            "--udp-fwd" => config.udp_fwd = true,
            "--gro-list" => config.gro_list = true,
            "--udp-gro-port" => config.udp_gro_ports = Box::new([number() as u16]),
            "--vxlan-port" => {
                config.tunnel_ports = Box::new([(number() as u16, Tunnel::Vxlan)]);
            }
            other => panic!("{other}"),
        }
    }
    let packets =
        frames.iter().zip(0..).map(|(frame, seq)| packet::<P>(frame, seq, strip)).collect();
    let out = run(&config, packets, batch);
    out.iter()
        .zip(0..)
        .map(|(out, seq)| describe(&out.packet, seq, out.packet.meta().seq as usize / batch))
        .collect()
}

fn packet<P: Frame>(frame: &[u8], seq: u64, strip: bool) -> P {
    let mut meta = ethernet(frame, seq);
    if !strip || meta.protocol != 0x8100 {
        return P::of(frame, meta);
    }
    let tci = u16::from_be_bytes([frame[14], frame[15]]);
    let stripped = [&frame[..12], &frame[16..]].concat();
    meta = Meta { vlan: Some(VlanTag { tpid: 0x8100, tci }), ..ethernet(&stripped, seq) };
    P::of(&stripped, meta)
}

fn describe<P: Frame>(packet: &P, seq: u64, batch: usize) -> Value {
    let meta = packet.meta();
    let mut frame = packet.frame();
    let mut tag = 0;
    if let Some(VlanTag { tpid, tci }) = meta.vlan {
        frame.splice(12..12, [tpid.to_be_bytes(), tci.to_be_bytes()].concat());
        tag = 4;
    }
    let gso = meta.gso;
    let kind = match gso.kind {
        _ if gso.size == 0 => "none",
        kind if kind.contains(GsoType::TCPV4) => "tcpv4",
        kind if kind.contains(GsoType::TCPV6) => "tcpv6",
        _ => "udp-l4",
    };
    let (csum, start, offset) = match meta.csum {
        Csum::None | Csum::Complete { .. } => ("none", Value::Null, Value::Null),
        Csum::Unnecessary { .. } => ("valid", Value::Null, Value::Null),
        Csum::Partial { start, offset } => ("partial", json!(start + tag), json!(offset)),
    };
    json!({
        "seq": seq,
        "batch": batch,
        "len": frame.len(),
        "gso_type": kind,
        "gso_ecn": gso.kind.contains(GsoType::TCP_ECN),
        "gso_size": gso.size,
        "segs": gso.segs.max(1),
        "csum": csum,
        "csum_start": start,
        "csum_offset": offset,
        "sha256": Sha256::digest(&frame).iter().map(|b| format!("{b:02x}")).collect::<String>(),
    })
}

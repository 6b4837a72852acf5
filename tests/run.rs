//! `grilse run`: it begins at once, ends when it is asked to, and accounts for every frame.

mod support;

use std::collections::HashMap;
use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use grilse::pcap::Reader;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use support::{GRILSE, Run, grilse, json_lines, wait};

/// Runs `grilse run` with these arguments.
fn grilse_run(args: &[&str]) -> Run {
    grilse(["run"].iter().chain(args))
}

/// The object at the end.
fn total(stdout: &[u8]) -> Value {
    let lines = json_lines(stdout);
    let last = lines.last().expect("a total is printed").clone();
    assert_eq!(last["of"], "total");
    last
}

fn n(object: &Value, key: &str) -> u64 {
    object[key].as_u64().unwrap_or_else(|| panic!("no {key} in {object}"))
}

#[test]
fn a_count_is_kept_to_the_frame() {
    for (args, consumed) in [
        (&["--count", "100001"][..], false),
        (&["--count", "50000", "--workers", "0,0"], false),
        (&["--count", "7", "--mode", "rxonly"], true),
        (&["--rx", "gen:,proto=tcp,size=64..9000,flows=9,count=20000"], false),
        (&["--rx", "gen:,count=999,reorder=500000", "--gro", "off", "--workers", "0,0,0"], false),
    ] {
        let run = grilse_run(&[args, &["--json"]].concat());
        run.ended(&format!("{args:?}"), &[0]);
        let total = total(&run.stdout);
        let asked = args.iter().find_map(|arg| arg.parse::<u64>().ok()).unwrap_or_else(|| {
            let spec = args[1].split("count=").nth(1).expect("a count is asked for");
            spec.split(',').next().and_then(|count| count.parse().ok()).expect("a number")
        });
        assert_eq!(n(&total, "rx_frames"), asked, "{args:?}");
        let out = if consumed { "consumed" } else { "tx_frames" };
        assert_eq!((n(&total, out), n(&total, "dropped"), n(&total, "held")), (asked, 0, 0));
    }
}

#[test]
fn every_policy_and_mode_accounts_for_all() {
    let policies = ["kernel-2016", "kernel-2022", "kernel-2025-11-home", "grilse"];
    let modes = ["io", "mac", "macswap", "5tswap", "rxonly", "csum", "echo"];
    for (i, mode) in modes.iter().enumerate() {
        let rx = "gen:,size=64/576/1500,flows=5,count=5000";
        let policy = policies[i % policies.len()];
        let run = grilse_run(&["--rx", rx, "--mode", mode, "--policy", policy, "--json"]);
        run.ended(mode, &[0]);
        let total = total(&run.stdout);
        let gone: u64 = ["tx_frames", "consumed", "dropped"].map(|key| n(&total, key)).iter().sum();
        assert_eq!((n(&total, "rx_frames"), gone), (5000, 5000), "{mode}");
    }
}

#[test]
fn signals_drain_and_report() {
    for signal in [Signal::INT, Signal::TERM] {
        let mut child = Command::new(GRILSE)
            .args(["run", "--rx", "gen:,rate=10000", "--json", "--interval", "0.05"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program under test");
        thread::sleep(Duration::from_millis(400));
        kill_process(Pid::from_child(&child), signal).expect("it runs");
        let code = wait(&mut child, "a run that was asked to end");
        assert_eq!(code, Some(0));
        let mut out = Vec::new();
        std::io::Read::read_to_end(&mut child.stdout.take().expect("piped"), &mut out)
            .expect("its output");
        let total = total(&out);
        assert!(n(&total, "rx_frames") > 0 && n(&total, "held") == 0, "{total}");
        let lines = json_lines(&out);
        let parts = lines.iter().filter(|line| line["of"] == "interval").count();
        assert!(parts >= 2, "{parts} intervals in 400 ms");
    }
}

#[test]
fn a_time_is_kept() {
    let begun = std::time::Instant::now();
    let run = grilse_run(&["--rx", "null:", "--duration", "0.3"]);
    run.ended("null", &[0]);
    let took = begun.elapsed();
    assert!(took >= Duration::from_millis(300) && took < Duration::from_secs(5), "{took:?}");
}

/// A run may be given more than it can ever need.
#[test]
fn the_largest_numbers_are_numbers() {
    for args in [
        &["--count", "500", "--duration", "1e19"][..],
        &["--count", "500", "--interval", "1e19"],
        &["--rx", "gen:,count=18446744073709551615", "--workers", "0,0", "--count", "500"],
    ] {
        let run = grilse_run(&[args, &["--json"]].concat());
        run.ended(&format!("{args:?}"), &[0]);
        assert_eq!(n(&total(&run.stdout), "tx_frames"), 500, "{args:?}");
    }
}

#[test]
fn what_is_wrong_is_named_with_the_mend() {
    for (args, code, says) in [
        (&["--rx", "gne:"][..], 2, "did you mean \"gen\"?"),
        (&["--rx", "gen:,sizes=64"], 2, "did you mean \"size\"?"),
        (&["--rx", "gen:,size=64,size=65"], 2, "given twice"),
        (&["--rx", "nothing"], 2, "write its kind"),
        (&["--rx", "pair:"], 2, "needs a name"),
        (&["--tx", "gen:"], 2, "does not send"),
        (&["--policy", "kernel-1999"], 2, "use one of"),
        (&["--duration", "0"], 2, "0.001"),
        (&["--count", "0"], 2, "--count"),
        (&["--tx", "pair:alone"], 3, "other end"),
        (&["--workers", "0,1023"], 2, "--workers 1023"),
        (&["--workers", "1024"], 2, "--workers 1024"),
        (&["--workers", "18446744073709551615"], 2, "may run on"),
        (&["--rx", "pcap:not-there.pcap"], 3, "check the name"),
        (
            &["--rx", concat!("pcap:", env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")],
            2,
            "neither a pcap",
        ),
        (&["--rx", "gen:,drop=1"], 2, "did you mean \"fault.drop\"?"),
        (&["--tx", "null:,capture=x.pcap"], 2, ".pcapng"),
        (&["--tx", "pcap:/dev/full/x.pcap"], 3, "pcap:/dev/full/x.pcap"),
    ] {
        let run = grilse_run(args);
        run.ended(&format!("{args:?}"), &[code]);
        assert!(run.stderr.contains(says), "{args:?}: {}", run.stderr);
    }
}

/// The frames of a capture, flow by flow in their order: two runs order flows among each other as
/// their polls fall.
fn by_flow(file: &[u8]) -> HashMap<Vec<u8>, Vec<Vec<u8>>> {
    let mut reader = Reader::new(file).expect("a capture");
    let mut flows: HashMap<_, Vec<_>> = HashMap::new();
    while let Some(record) = reader.next().expect("it is whole") {
        // Addresses and ports, behind untagged headers without options.
        let key = if record.data[12..14] == [0x08, 0x00] { 26..38 } else { 22..58 };
        flows.entry(record.data[key].to_vec()).or_default().push(record.data.to_vec());
    }
    flows
}

#[test]
fn captures_are_restored_behind_gro_and_gso() {
    for name in ["tcp4-bulk-16flows", "tcp6-bulk-4flows", "tcp4-pingpong-8conns"] {
        let from = format!("{}/../../captures/{name}.pcap", env!("CARGO_MANIFEST_DIR"));
        let frames = fs::read(&from).expect("the captures");
        for suffix in ["pcap", "pcapng"] {
            let to = std::env::temp_dir()
                .join(format!("grilse-run-{}-{name}.{suffix}", std::process::id()));
            let (rx, tx) = (format!("pcap:{from}"), format!("pcap:{}", to.display()));
            // The file takes super-packets; who asks for damage, of which there is none here, is sent
            // what a wire takes.
            let cut = format!("{tx},fault.corrupt=1,fault.seed=2");
            for (tx, gro, is_cut) in [(&tx, "off", true), (&tx, "on", false), (&cut, "on", true)] {
                let run = grilse_run(&["--rx", &rx, "--tx", tx, "--gro", gro, "--json"]);
                run.ended(tx, &[0]);
                let written = fs::read(&to).expect("a file");
                let same = by_flow(&frames) == by_flow(&written);
                let merges = name != "tcp4-pingpong-8conns";
                assert_eq!(same, is_cut || !merges, "{name}.{suffix}, GRO {gro}");
            }
            fs::remove_file(to).expect("it is there");
        }
    }
}

#[test]
fn faults_are_accounted_for() {
    let faults = "fault.drop=10000,fault.dup=10000,fault.reorder=10000,fault.corrupt=10000,\
                  fault.stall=100,fault.stall_us=100,fault.delay=50";
    let rx = format!("gen:,proto=tcp,flows=4,size=1514,count=50000,{faults}");
    let tx = format!("null:,{faults}");
    let run = grilse_run(&["--rx", &rx, "--tx", &tx, "--json"]);
    run.ended("faults", &[0]);
    let total = total(&run.stdout);
    let injected = total["drops"][0][1].as_u64().expect("some are lost");
    assert_eq!(total["drops"][0][0], "injected");
    let [came, copied, sent] = ["rx_frames", "copied", "tx_frames"].map(|key| n(&total, key));
    assert_eq!((came, came + copied), (50000, sent + injected));
    // One in a hundred each way.
    assert!((800..1200).contains(&injected) && (800..1200).contains(&copied), "{total}");

    let run = grilse_run(&["--rx", "gen:,count=1000", "--tx", "null:,fault.lost=10000", "--json"]);
    run.ended("lost completions", &[3]);
    assert!(run.stderr.contains("do not come back"), "{}", run.stderr);
}

//! `grilse probe`, as its user runs it: with the rights that it needs, and without.

mod support;

use std::process::Command;

use support::{GRILSE, run, skip};

/// The answer of the program, or, said aloud, `None` where this user may not make namespaces.
fn probe(test: &str, args: &[&str]) -> Option<support::Run> {
    let mut command = Command::new(GRILSE);
    command.arg("probe").args(args);
    let ran = run(command);
    if ran.code == Some(3) {
        skip(test, ran.stderr.trim());
        return None;
    }
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    Some(ran)
}

#[test]
fn every_kind_of_super_packet_has_a_verdict() {
    let Some(ran) = probe("every_kind_of_super_packet_has_a_verdict", &[]) else { return };
    let text = String::from_utf8(ran.stdout).expect("text is UTF-8");
    assert!(text.starts_with("Linux "), "{text}");
    for proto in ["tcp4", "tcp6", "udp4", "udp6"] {
        let line = text.lines().find(|line| line.starts_with(proto)).unwrap_or_else(|| {
            panic!("no line of {proto}: {text}");
        });
        assert!(line.contains("right"), "{text}");
    }
}

#[test]
fn the_object_says_the_same() {
    let Some(ran) = probe("the_object_says_the_same", &["--json"]) else { return };
    let [object] = &ran.lines()[..] else { panic!("one object") };
    let findings = object["findings"].as_array().expect("a list");
    assert_eq!(findings.len(), 12);
    for proto in ["tcp4", "tcp6", "udp4", "udp6"] {
        let right = |tail| {
            let mut of_proto = findings.iter().filter(|found| found["proto"] == proto);
            let found = of_proto.find(|found| found["tail"] == tail).expect("each was tried");
            found["outcome"] == "right"
        };
        let whole = object["takes"][proto] == "whole";
        assert_eq!(whole, right("short") && right("equal"), "{object}");
    }
}

/// Without the right to make a namespace the program says what it lacks and what helps.
#[test]
fn without_rights_it_says_so() {
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set", "-sys_admin", "--inh-caps", "-all", GRILSE, "probe"]);
    let ran = run(command);
    if ran.stderr.starts_with("setpriv") {
        return skip("without_rights_it_says_so", ran.stderr.trim());
    }
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    assert!(ran.stdout.is_empty());
    for part in ["namespace", "not permitted", "run it as root", "unshare --map-root-user"] {
        assert!(ran.stderr.contains(part), "{}", ran.stderr);
    }
}

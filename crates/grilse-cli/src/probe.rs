//! `grilse probe`: which super-packets this kernel takes, cuts and gives as it should.

use std::io::ErrorKind;

use grilse::probe::{Finding, Outcome, Proto, Refused, Report, Tail, Takes};
use serde_json::{Value, json};

use crate::args::ProbeArgs;
use crate::failure::Failure;
use crate::{stdout, table};

pub(crate) fn run(args: &ProbeArgs) -> Result<(), Failure> {
    let report = grilse::probe::probe().map_err(|why| refused(&why))?;
    let text = if args.json { format!("{}\n", object(&report)) } else { tables(&report) };
    stdout::print(&text)
}

/// What the system refused, and the mend.
fn refused(why: &Refused) -> Failure {
    let mend = match why {
        Refused::Namespace(_) => {
            "run it as root, or as unshare --map-root-user grilse probe where users may have \
             namespaces"
        }
        Refused::Tun(source) if source.kind() == ErrorKind::NotFound => {
            "load the driver with modprobe tun, and in a container let /dev/net/tun in"
        }
        Refused::Tun(_) => "run it as root, or ask for the right to open /dev/net/tun",
        Refused::Path(_) => {
            "mount /proc with /proc/sys/net writable, as it is outside of containers"
        }
    };
    Failure::System(format!("{why}: {mend}"))
}

/// The report for people.
fn tables(report: &Report) -> String {
    let yes = |is| if is { "yes" } else { "no" };
    let mut table = table::plain(
        ["super-packets", "short tail", "equal tail", "one segment", "falls back"],
        &[],
    );
    for proto in Proto::ALL {
        let mut row = vec![proto.name().to_owned()];
        row.extend(Tail::ALL.map(|tail| {
            let mut findings = report.findings.iter();
            let found = findings.find(|found| found.proto == proto && found.tail == tail);
            found.map_or_else(String::new, |found| words(found.outcome))
        }));
        row.push(report.takes(proto).fallback().to_owned());
        table.add_row(row);
    }
    format!(
        "Linux {}; its TUN devices give TCP super-packets: {}, UDP: {}\n\n{}\n",
        report.kernel,
        yes(report.gives_tcp),
        yes(report.gives_udp),
        table
    )
}

fn words(outcome: Outcome) -> String {
    match outcome {
        Outcome::Right => "right".to_owned(),
        Outcome::Refused => "refused".to_owned(),
        Outcome::Mangled { segment, at, right, read } => {
            format!("segment {segment} mangled: byte {at} is {read:#04x}, not {right:#04x}")
        }
        Outcome::Cut { segment, right, read } => {
            format!("segment {segment} is {read} bytes long, not {right}")
        }
        Outcome::Lost { right, read } => format!("{read} segments, not {right}"),
        Outcome::Untried => "untried".to_owned(),
    }
}

/// The report for programs.
fn object(report: &Report) -> Value {
    let takes: serde_json::Map<_, _> = Proto::ALL
        .into_iter()
        .map(|proto| {
            let takes = match report.takes(proto) {
                Takes::Whole => "whole",
                Takes::EqualTails => "equal-tails",
                Takes::ShortTails => "short-tails",
                Takes::Nothing => "nothing",
            };
            (proto.name().to_owned(), takes.into())
        })
        .collect();
    json!({
        "kernel": report.kernel,
        "gives": { "tcp": report.gives_tcp, "udp": report.gives_udp },
        "takes": takes,
        "findings": report.findings.iter().map(finding).collect::<Vec<_>>(),
    })
}

fn finding(found: &Finding) -> Value {
    let mut object = match found.outcome {
        Outcome::Right => json!({ "outcome": "right" }),
        Outcome::Refused => json!({ "outcome": "refused" }),
        Outcome::Mangled { segment, at, right, read } => {
            json!({ "outcome": "mangled", "segment": segment, "at": at, "right": right, "read": read })
        }
        Outcome::Cut { segment, right, read } => {
            json!({ "outcome": "cut", "segment": segment, "right": right, "read": read })
        }
        Outcome::Lost { right, read } => {
            json!({ "outcome": "lost", "right": right, "read": read })
        }
        Outcome::Untried => json!({ "outcome": "untried" }),
    };
    object["proto"] = found.proto.name().into();
    object["tail"] = found.tail.name().into();
    object
}

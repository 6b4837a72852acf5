//! Law, kernel-equal: the same packets, in the same order, with the same metadata as the kernel's
//! GRO gives, for the recorded cases and for the kernel that runs.
//!
//! Not judged here: what the kernel's virtio header has no room for (fixed IDs, frag lists). The
//! unit tests of the offload crate do that.

mod support;

use std::iter;

use serde_json::{Value, json};
use support::oracle::{Case, Compare, Kernel, cases};
use support::{captures, grilse, skip};

/// All cases whose answer must be the same again where the record is held against the live kernel:
/// one per kind of delivery.
const RE_RECORDED: [&str; 7] = [
    "tcp4-batch-4",
    "tcp4-bad-tcp-csum",
    "tcp4-nine-flows",
    "tcp6-big",
    "udp4-fwd-short-middle",
    "vlan-hw-change",
    "tunnel-vxlan-4in6",
];

/// How `case` is compared.
fn compare(case: &Case) -> Compare {
    Compare { batch: case.batch().is_some(), vlan: case.takes_tags_out() }
}

/// `grilse gro` on a capture as a TAP device would see it.
fn ours(capture: &str, options: &[String], batch: &str) -> Result<Vec<Value>, String> {
    let head = ["gro", capture, "--json", "-", "--no-hash", "--batch", batch];
    let run = grilse(head.into_iter().chain(options.iter().map(String::as_str)));
    if run.code == Some(0) {
        Ok(run.lines())
    } else {
        Err(format!("exit code {:?}: {}", run.code, run.stderr))
    }
}

#[test]
fn recorded_cases() {
    let mut wrong = Vec::new();
    let cases = cases();
    for case in &cases {
        let capture = case.capture().display().to_string();
        let found = match ours(&capture, &case.options(), case.batch().unwrap_or("64")) {
            Ok(lines) => compare(case).differences(&case.expected(), &lines),
            Err(complaint) => vec![complaint],
        };
        wrong.extend(report(&case.name, &found));
    }
    assert!(
        wrong.is_empty(),
        "{} of {} cases differ:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
}

#[test]
fn live_captures() {
    let kernel = match Kernel::open() {
        Ok(kernel) => kernel,
        Err(why) => return skip("live_captures", &why),
    };
    // 63: one frame less than a poll takes, so that a batch is one poll that also completes.
    let batch = ["--batch".to_owned(), "63".to_owned()];
    let options = ["--vlan".to_owned(), "none".to_owned()];
    let mut wrong = Vec::new();
    for capture in captures() {
        let theirs = kernel.gro(&capture, &batch);
        let name = capture.display().to_string();
        let found = match ours(&name, &options, "63") {
            Ok(lines) => Compare { batch: true, vlan: false }.differences(&theirs, &lines),
            Err(complaint) => vec![complaint],
        };
        wrong.extend(report(&name, &found));
    }
    assert!(wrong.is_empty(), "the live kernel differs:\n{}", wrong.join("\n"));
}

#[test]
fn live_kernel_still_gives_the_record() {
    let kernel = match Kernel::open() {
        Ok(kernel) => kernel,
        Err(why) => return skip("live_kernel_still_gives_the_record", &why),
    };
    let cases = cases();
    for name in RE_RECORDED {
        let case = cases.iter().find(|case| case.name == name).expect("the case exists");
        assert_eq!(kernel.gro(&case.capture(), &case.args), case.expected(), "{name}");
    }
}

/// One paragraph on a case that differs: its name and its first differences.
fn report(name: &str, found: &[String]) -> Option<String> {
    let rest = found.len().saturating_sub(8);
    let more = (rest > 0).then(|| format!("and {rest} more"));
    let lines = found.iter().take(8).cloned().chain(more).map(|line| format!("    {line}\n"));
    (!found.is_empty()).then(|| iter::once(format!("{name}\n")).chain(lines).collect())
}

#[test]
fn comparer_accepts_the_record_itself() {
    for case in cases() {
        let mut ours = case.expected();
        assert!(!ours.is_empty(), "{} has no answer", case.name);
        for line in &mut ours {
            line["members"] = json!([0]);
            line["closed_by"] = json!("end-of-poll");
        }
        assert_eq!(compare(&case).differences(&case.expected(), &ours), Vec::<String>::new());
    }
}

#[test]
fn comparer_names_every_change() {
    let strict = Compare { batch: true, vlan: true };
    for case in cases() {
        let kernel = case.expected();
        for (at, line) in kernel.iter().enumerate() {
            for key in line.as_object().expect("a line is an object").keys() {
                for change in [Some(json!("other")), None] {
                    let mut ours = kernel.clone();
                    let object = ours[at].as_object_mut().expect("a line is an object");
                    match change {
                        Some(value) => object.insert(key.clone(), value),
                        None => object.remove(key),
                    };
                    let found = strict.differences(&kernel, &ours);
                    assert_eq!(found.len(), 1, "{}: {found:?}", case.name);
                    assert!(found[0].starts_with(&format!("line {at}, {key}: ")), "{found:?}");
                }
            }
        }
        let short = &kernel[1..];
        assert!(!strict.differences(&kernel, short).is_empty(), "{}: a line is lost", case.name);
    }
}

#[test]
fn comparer_leaves_out_what_does_not_compare() {
    let lax = Compare { batch: false, vlan: false };
    let kernel = [json!({"seq": 0, "batch": 0, "vlan": {"tpid": "8100", "tci": 7}})];
    assert!(lax.differences(&kernel, &[json!({"seq": 0, "batch": 3})]).is_empty());
    let strict = Compare { batch: true, vlan: true };
    assert_eq!(strict.differences(&kernel, &[json!({"seq": 0, "batch": 3})]).len(), 2);
    let tagged = json!({"seq": 0, "vlan": {"tpid": "8100", "tci": 7}});
    assert_eq!(strict.differences(&[json!({"seq": 0})], &[tagged]).len(), 1);
}

//! Law, says why: every packet names the one reason for which it stopped growing, every frame that
//! was dropped names its own, and the sums agree between the JSON and `--explain`.

mod support;

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;
use support::sweep::{Sample, samples};
use support::{Run, Scratch, frame, grilse, is_refused, json_lines, pcap};

/// Packets per reason.
type Reasons = BTreeMap<String, usize>;

#[test]
fn every_packet_has_a_reason() {
    for sample in samples() {
        for line in sample.delivered() {
            let reason = line["closed_by"].as_str();
            assert!(reason.is_some_and(|r| !r.is_empty()), "{}: {line}", sample.what);
        }
    }
}

#[test]
fn explain_and_json_agree() {
    let scratch = Scratch::new();
    for sample in samples() {
        let (lines, run) = explained(&scratch, sample);
        let mut counted = Reasons::new();
        for line in lines.iter().filter(|line| !is_refused(line)) {
            let reason = line["closed_by"].as_str().expect("a reason is a string");
            *counted.entry(reason.to_owned()).or_default() += 1;
        }
        let tables = reason_tables(&String::from_utf8_lossy(&run.stdout));
        assert!(
            tables.contains(&counted),
            "{}: the JSON has {counted:?}, --explain has {tables:?}",
            sample.what
        );
    }
}

/// The JSON and the explanation of one and the same run.
fn explained(scratch: &Scratch, sample: &Sample) -> (Vec<Value>, Run) {
    let json = scratch.path("out.jsonl");
    let path = json.display().to_string();
    let tail = ["--explain", "--json", path.as_str()];
    let run = grilse(sample.args.iter().map(String::as_str).chain(tail));
    run.ended(&sample.what, &[0]);
    (json_lines(&fs::read(json).expect("--json wrote its file")), run)
}

/// Every table of the explanation that has the columns `reason` and `count`, as reason and count.
///
/// A table ends at an empty line. Cells are parted by a drawn line or by two spaces; a row without a
/// number in the column `count` continues the row above.
fn reason_tables(text: &str) -> Vec<Reasons> {
    let mut tables = Vec::new();
    let mut columns = None;
    for line in text.lines() {
        let cells = cells(line);
        let column = |name: &str| cells.iter().position(|cell| cell == name);
        if let (Some(reason), Some(count)) = (column("reason"), column("count")) {
            columns = Some((reason, count));
            tables.push(Reasons::new());
        } else if line.trim().is_empty() {
            columns = None;
        } else if let (Some((reason, count)), Some(table)) = (columns, tables.last_mut()) {
            let number = cells.get(count).map(|cell| cell.replace([',', '_'], "").parse::<usize>());
            if let (Some(name), Some(Ok(number))) = (cells.get(reason), number) {
                *table.entry(name.clone()).or_default() += number;
            }
        }
    }
    tables
}

fn cells(line: &str) -> Vec<String> {
    let drawn = ['│', '┆', '|', '║'];
    let line = line.replace(drawn, "  ");
    line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect()
}

#[test]
fn table_reader_reads_both_kinds() {
    let want = [Reasons::from([("end-of-poll".to_owned(), 1204), ("seq".to_owned(), 3)])];
    let plain =
        "total\n\nreason       count  first\nend-of-poll  1,204  frame 3\nseq   3   x\n\nq  9";
    let drawn = "│ reason ┆ count │\n╞═══╪═══╡\n│ end-of-poll ┆ 1204 │\n│ seq ┆ 3 │\n└───┴───┘";
    assert_eq!(reason_tables(plain), want);
    assert_eq!(reason_tables(drawn), want);
}

#[test]
fn explain_counts_the_dropped() {
    let scratch = Scratch::new();
    let frames = [vec![1; 5], frame::tcp4(1, 1, 100), vec![], vec![2; 13]];
    let file = scratch.file("short.pcap", &pcap::write(&frames)).display().to_string();
    let run = grilse(["gro", file.as_str(), "--explain"]);
    run.ended("gro --explain", &[0]);
    let text = String::from_utf8_lossy(&run.stdout);
    let said = text.lines().any(|line| {
        let words: Vec<&str> = line.split(|c: char| !c.is_ascii_alphanumeric()).collect();
        words.contains(&"3")
            && words.iter().any(|w| ["EINVAL", "refused", "dropped", "drops"].contains(w))
    });
    assert!(said, "three frames were dropped, and --explain does not say so:\n{text}");
}

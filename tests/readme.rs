//! The README does not rot: its two commands are there, and the first prints what the README says it
//! prints.

mod support;

use std::fs;

use support::{grilse, root};

/// A fenced block: the word after its fence, and its lines.
type Block = (String, Vec<String>);

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut open = false;
    for line in text.lines() {
        if let Some(info) = line.strip_prefix("```") {
            open = !open;
            if open {
                blocks.push((info.trim().to_owned(), Vec::new()));
            }
        } else if open {
            blocks.last_mut().expect("a fence opened it").1.push(line.to_owned());
        }
    }
    blocks
}

/// The commands: the lines of the `sh` blocks that are not comments.
fn commands(blocks: &[Block]) -> Vec<String> {
    let lines = blocks.iter().filter(|(info, _)| info == "sh").flat_map(|(_, lines)| lines);
    lines.filter(|line| !line.is_empty() && !line.starts_with('#')).cloned().collect()
}

/// A line without trailing blanks; where it tells a speed or a time, without its digits.
fn timeless(line: &str) -> String {
    let timed = ["/s", " ms", " µs", " s,"].iter().any(|unit| line.contains(unit));
    let digitless = |c: char| if timed && c.is_ascii_digit() { '#' } else { c };
    line.trim_end().chars().map(digitless).collect()
}

fn readme() -> Vec<Block> {
    blocks(&fs::read_to_string(root().join("README.md")).expect("a README at the root"))
}

#[test]
fn two_commands_are_named() {
    let commands = commands(&readme());
    let [first, second, ..] = &commands[..] else { panic!("two commands, not {commands:?}") };
    assert!(first.starts_with("cargo run "), "the first runs the program: {first}");
    assert!(second.starts_with("cargo test"), "the second runs all tests: {second}");
}

#[test]
fn first_command_prints_what_is_written() {
    let blocks = readme();
    let first = commands(&blocks).remove(0);
    // The program under test stands for the one that cargo would build: the gate runs the command
    // exactly as it is written.
    let (_, args) = first.split_once(" -- ").expect("cargo's arguments, then the program's");
    let run = grilse(args.split_whitespace());
    run.ended(&first, &[0]);
    let shown = blocks.iter().skip_while(|(info, _)| info != "sh").nth(1);
    let (info, shown) = shown.expect("a block of output behind the command");
    assert!(info.is_empty() || info == "text", "output is plain text, not `{info}`");
    let printed = String::from_utf8(run.stdout).expect("text");
    let printed: Vec<_> = printed.trim_end().lines().map(timeless).collect();
    let shown: Vec<_> = shown.iter().map(|line| timeless(line)).collect();
    assert_eq!(shown, printed, "README.md says left, the program right");
}

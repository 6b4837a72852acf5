//! Law, no surprise: what the fuzzer found worth keeping holds still, and any bytes besides.
//!
//! The fuzzer itself is not needed: a target is a plain function. New finds go into `fuzz/corpus/`,
//! as CONTRIBUTING.md tells.

use std::fs;
use std::path::{Path, PathBuf};

use grilse_fuzz::{TARGETS, Target};
use proptest::prelude::*;

/// The committed inputs of a target.
fn corpus(name: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let files = fs::read_dir(&folder).unwrap_or_else(|why| panic!("{}: {why}", folder.display()));
    files.map(|file| file.expect("a readable folder").path()).collect()
}

fn replay(name: &str) {
    let (_, target) = TARGETS.iter().find(|(known, _)| *known == name).expect("a target");
    let files = corpus(name);
    assert!(!files.is_empty(), "no corpus of {name}");
    for file in files {
        // Which input it was, where it fails.
        println!("{}", file.display());
        target(&fs::read(&file).expect("a readable file"));
    }
}

macro_rules! replayed {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            replay(stringify!($name));
        })*

        #[test]
        fn every_target_is_replayed() {
            let replayed = [$(stringify!($name)),*];
            assert!(TARGETS.iter().map(|(name, _)| *name).eq(replayed));
            let corpora = corpus("").len();
            assert_eq!(corpora, replayed.len(), "a corpus without a target");
        }
    };
}

replayed! { dissect gro gso pcap round_trip views vnet }

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..600), n in 0..TARGETS.len()) {
        let target: Target = TARGETS[n].1;
        target(&bytes);
    }
}

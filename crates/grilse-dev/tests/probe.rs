//! The probe on the running kernel.

use std::io::{self, Write};

use grilse_dev::probe::{Outcome, Proto, Takes, probe};

#[test]
fn the_running_kernel_takes_super_packets() {
    match probe() {
        Ok(report) => {
            assert!(report.gives_tcp && report.gives_udp, "{report:?}");
            for found in &report.findings {
                assert_eq!(found.outcome, Outcome::Right, "{found:?} on {}", report.kernel);
            }
            assert_eq!(Proto::ALL.map(|proto| report.takes(proto)), [Takes::Whole; 4]);
        }
        Err(why) => {
            let set = |name, value| std::env::var_os(name).is_some_and(|v| v == value);
            let forbidden = set("CI", "true") || set("GRILSE_NO_SKIP", "1");
            assert!(!forbidden, "the probe may not be skipped here, but {why}");
            // Not eprintln!: the test runner hides what that prints in a test that passes.
            let said = format!("SKIPPED (needs root/TUN): the probe: {why}\n");
            io::stderr().write_all(said.as_bytes()).expect("standard error is open");
        }
    }
}

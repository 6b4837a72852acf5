//! What faults are asked for.

use crate::open::OpenError;
use crate::spec::Spec;

pub(in crate::layer) const OPTIONS: &[(&str, &str, &str)] = &[
    ("fault.drop", "N", "packets in a million that are lost (0)"),
    ("fault.dup", "N", "in a million that come twice (0)"),
    ("fault.reorder", "N", "in a million that come behind their successor (0)"),
    ("fault.corrupt", "N", "in a million that have one bit flipped (0)"),
    ("fault.stall", "N", "in a million before which the device stops for fault.stall_us (0)"),
    ("fault.stall_us", "N", "microseconds for which it stops (10000)"),
    ("fault.lost", "N", "in a million that are sent but not given back (0)"),
    ("fault.delay", "N", "microseconds by which all come later (0)"),
    ("fault.on", "rx | tx | both", "which way (both)"),
    ("fault.seed", "N", "begins the numbers drawn (1)"),
];

/// Longest delay and stall: a second, so that what is held is out when a worker has drained.
const LONGEST_US: u64 = 1_000_000;

/// The faults of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) drop_ppm: u32,
    pub(super) copy_ppm: u32,
    pub(super) late_ppm: u32,
    pub(super) corrupt_ppm: u32,
    pub(super) stall_ppm: u32,
    pub(super) stall_ns: u64,
    /// Only of what is sent.
    pub(super) lost_ppm: u32,
    pub(super) delay_ns: u64,
}

/// The faults of a device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plans {
    pub(super) rx: Plan,
    pub(super) tx: Plan,
    pub(super) seed: u64,
}

impl Plans {
    /// What the options ask for; `None` where that is nothing.
    pub(super) fn of(spec: &Spec) -> Result<Option<Self>, OpenError> {
        let ppm = |key| -> Result<_, OpenError> {
            Ok(spec.number(key, 0..=1_000_000)?.unwrap_or(0) as u32)
        };
        let ns = |key, default| -> Result<_, OpenError> {
            Ok(spec.number(key, 0..=LONGEST_US)?.unwrap_or(default) * 1000)
        };
        let plan = Plan {
            drop_ppm: ppm("fault.drop")?,
            copy_ppm: ppm("fault.dup")?,
            late_ppm: ppm("fault.reorder")?,
            corrupt_ppm: ppm("fault.corrupt")?,
            stall_ppm: ppm("fault.stall")?,
            stall_ns: ns("fault.stall_us", 10_000)?,
            lost_ppm: ppm("fault.lost")?,
            delay_ns: ns("fault.delay", 0)?,
        };
        let ways = [("rx", (true, false)), ("tx", (false, true)), ("both", (true, true))];
        let (rx, tx) = spec.choice("fault.on", &ways)?.unwrap_or((true, true));
        let only = |asked: bool| if asked { plan } else { Plan::default() };
        let plans = Self {
            rx: only(rx),
            tx: only(tx),
            seed: spec.number("fault.seed", 0..=u64::MAX)?.unwrap_or(1),
        };
        let asked = OPTIONS.iter().any(|(name, ..)| spec.text(name).is_some());
        Ok(asked.then_some(plans))
    }
}

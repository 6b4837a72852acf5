//! What a generator is asked for.

use grilse_wire::{eth, ipv4, ipv6, tcp, udp};

use crate::open::OpenError;
use crate::spec::Spec;

pub(crate) const OPTIONS: &[(&str, &str, &str)] = &[
    (
        "size",
        "N | N..M | N/M/...",
        "bytes of a frame, without its FCS: one, any between, in turn (64)",
    ),
    ("flows", "N", "flows, in turn (1)"),
    ("proto", "udp | tcp", "what they speak (udp)"),
    ("ip", "4 | 6", "over which IP (4)"),
    ("rate", "N", "packets per second, of all queues (as fast as they are taken)"),
    ("burst", "N", "packets that come together where there is a rate (1)"),
    ("count", "N", "packets in all, and then it ends (it does not)"),
    ("reorder", "N", "packets in a million that come behind their successor (0)"),
    ("vouch", "on | off", "say of checksums that they are right, as they are (on)"),
    ("seed", "N", "begins the numbers drawn for sizes and order (1)"),
];

/// Longest frame: the jumbo frames of most NICs.
const LONGEST: u64 = 9018;

/// What one queue is asked for.
#[derive(Clone, Debug)]
pub(super) struct Options {
    pub(super) sizes: Sizes,
    pub(super) first_flow: u32,
    pub(super) flows: u32,
    pub(super) tcp: bool,
    pub(super) v6: bool,
    pub(super) rate: Option<u64>,
    pub(super) burst: u64,
    pub(super) count: Option<u64>,
    pub(super) reorder_ppm: u32,
    pub(super) vouch: bool,
    pub(super) seed: u64,
}

/// Lengths of frames, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Sizes {
    /// These, in turn.
    InTurn(Vec<usize>),
    /// Any from the first to the second.
    Between(usize, usize),
}

impl Options {
    pub(super) fn of(spec: &Spec) -> Result<Self, OpenError> {
        if !spec.target().is_empty() {
            let what = format!("has no target: write {}:,option=value", spec.kind());
            return Err(OpenError::Cannot { device: spec.to_string(), what });
        }
        let is_tcp = spec.choice("proto", &[("udp", false), ("tcp", true)])?.unwrap_or(false);
        let v6 = spec.choice("ip", &[("4", false), ("6", true)])?.unwrap_or(false);
        let ip = if v6 { ipv6::LEN } else { ipv4::MIN_LEN };
        // The payload of UDP holds the number of the packet.
        let rest = if is_tcp { tcp::MIN_LEN } else { udp::LEN + size_of::<u64>() };
        let shortest = (eth::LEN + ip + rest) as u64;
        Ok(Self {
            sizes: Sizes::of(spec, shortest)?,
            first_flow: 0,
            flows: spec.number("flows", 1..=1 << 20)?.unwrap_or(1) as u32,
            tcp: is_tcp,
            v6,
            rate: spec.number("rate", 1..=1_000_000_000)?,
            burst: spec.number("burst", 1..=1 << 16)?.unwrap_or(1),
            count: spec.number("count", 1..=u64::MAX)?,
            reorder_ppm: spec.number("reorder", 0..=1_000_000)?.unwrap_or(0) as u32,
            vouch: spec.switch("vouch")?.unwrap_or(true),
            seed: spec.number("seed", 0..=u64::MAX)?.unwrap_or(1),
        })
    }

    /// The part of queue number `queue` of `queues`: flows, rate and count are divided.
    pub(super) fn share(&self, queue: usize, queues: usize) -> Self {
        let (queue, queues) = (queue as u64, queues as u64);
        // Where the part of a queue begins; a count may be as large as there are numbers.
        let begin = |all: u64, queue: u64| {
            (u128::from(all) * u128::from(queue) / u128::from(queues)) as u64
        };
        let part = |all: u64| begin(all, queue + 1) - begin(all, queue);
        // Each queue has one flow at least, of its own.
        let flows = u64::from(self.flows).max(queues);
        Self {
            first_flow: (flows * queue / queues) as u32,
            flows: part(flows) as u32,
            rate: self.rate.map(|rate| part(rate).max(1)),
            count: self.count.map(part),
            ..self.clone()
        }
    }
}

impl Sizes {
    fn of(spec: &Spec, shortest: u64) -> Result<Self, OpenError> {
        let allowed = || format!("N, N..M or N/M/..., each in {shortest}..={LONGEST}");
        let Some(text) = spec.text("size") else {
            return Ok(Self::InTurn(vec![shortest.max(64) as usize]));
        };
        let size = |text: &str| {
            let size = text.parse().ok().filter(|size| (shortest..=LONGEST).contains(size));
            size.map(|size: u64| size as usize).ok_or_else(|| spec.bad("size", allowed()))
        };
        match text.split_once("..") {
            Some((from, to)) => match (size(from)?, size(to)?) {
                (from, to) if from <= to => Ok(Self::Between(from, to)),
                _ => Err(spec.bad("size", allowed())),
            },
            None => Ok(Self::InTurn(text.split('/').map(size).collect::<Result<_, _>>()?)),
        }
    }

    pub(super) fn longest(&self) -> usize {
        match self {
            Self::InTurn(sizes) => sizes.iter().copied().max().unwrap_or(0),
            Self::Between(_, to) => *to,
        }
    }

    pub(super) fn varies(&self) -> bool {
        matches!(self, Self::Between(..))
    }

    /// The length of packet number `n`, where any number was `drawn`.
    pub(super) fn pick(&self, n: u64, drawn: u64) -> usize {
        match self {
            Self::InTurn(sizes) => sizes[(n % sizes.len() as u64) as usize],
            Self::Between(from, to) => from + (drawn % (to - from + 1) as u64) as usize,
        }
    }
}

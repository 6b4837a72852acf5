//! Nodes: which part of a memory is near which threads, and what it costs to reach over.
//!
//! A memory has a share of cells and a depot for each node, so the node of an object follows from
//! its address and never changes, whoever takes it. Nodes are those of the machine, or virtual ones,
//! by which policies can be tried where there is only one: they bind no memory, and a thread of one
//! waits where the memory of another would have let it wait.
//!
//! Virtual nodes charge for three things: an object of another node that is taken, a magazine that
//! comes from another node (or a single object, where the list is one that tells where from), and a
//! turn to another node's depot. They do not charge for a push to a home of another node, nor what
//! anybody frees without a context, as nobody knows then where it runs.

use std::fmt;
use std::fs;
use std::str::FromStr;
use std::time::{Duration, Instant};

use crate::policy::BadPolicy;
use crate::region;

/// A NUMA node: one of this machine by the system's number, or a virtual one, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node(pub u16);

/// The knob `numa.mode`: which nodes a memory has. Set when the memory is made, as the share that
/// an object stands in is for good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Numa {
    /// One, which is wherever memory is first touched. In text `off`.
    #[default]
    Off,
    /// Those of this machine that have memory. In text `real`.
    Real,
    /// So many, and a wait for whoever uses another one's memory. In text `virtual:COUNT:NS`.
    Virtual {
        /// How many, 1 to 64.
        count: u16,
        /// The wait, in nanoseconds, up to a millisecond. It never ends early, and late by up to two
        /// readings of the clock, some 50 ns.
        cost_ns: u32,
    },
}

impl Numa {
    const NAME: &str = "numa.mode";
    const COUNTS: (u16, u16) = (1, 64);
    const COSTS_NS: (u32, u32) = (0, 1_000_000);

    /// The nodes that this stands for, on this machine.
    ///
    /// # Errors
    /// Where a number is out of range, with what is allowed.
    pub fn nodes(self) -> Result<Nodes, BadPolicy> {
        match self {
            Self::Off => Ok(Nodes::one(None)),
            Self::Real => Ok(Nodes::real()),
            Self::Virtual { count, cost_ns } => {
                let within = (Self::COUNTS.0..=Self::COUNTS.1).contains(&count)
                    && (Self::COSTS_NS.0..=Self::COSTS_NS.1).contains(&cost_ns);
                if !within {
                    return Err(Self::refused(self.to_string()));
                }
                Ok(Nodes { of: (0..count).map(Node).collect(), bound: false, cost_ns })
            }
        }
    }

    fn refused(value: String) -> BadPolicy {
        let ((least, most), (low, high)) = (Self::COUNTS, Self::COSTS_NS);
        let allowed =
            format!("off, real, virtual:COUNT:NS with {least} to {most} and {low} to {high}");
        BadPolicy::Value { knob: Self::NAME, value, allowed }
    }
}

impl fmt::Display for Numa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::Real => f.write_str("real"),
            Self::Virtual { count, cost_ns } => write!(f, "virtual:{count}:{cost_ns}"),
        }
    }
}

impl FromStr for Numa {
    type Err = BadPolicy;

    fn from_str(text: &str) -> Result<Self, BadPolicy> {
        let numbers = |text: &str| {
            let (count, cost_ns) = text.strip_prefix("virtual:")?.split_once(':')?;
            Some(Self::Virtual { count: count.parse().ok()?, cost_ns: cost_ns.parse().ok()? })
        };
        let read = match text {
            "off" => Some(Self::Off),
            "real" => Some(Self::Real),
            _ => numbers(text),
        };
        let numa = read.ok_or_else(|| Self::refused(text.to_owned()))?;
        numa.nodes()?;
        Ok(numa)
    }
}

/// The nodes of a memory, in the order of their shares.
#[derive(Clone, Debug)]
pub struct Nodes {
    of: Box<[Node]>,
    /// Whether the shares are bound to them.
    bound: bool,
    cost_ns: u32,
}

impl Nodes {
    /// One node, to which memory is bound where it is given.
    pub fn one(node: Option<Node>) -> Self {
        Self { of: Box::new([node.unwrap_or(Node(0))]), bound: node.is_some(), cost_ns: 0 }
    }

    /// Those of this machine that have memory; where that is one, there is nothing to bind.
    fn real() -> Self {
        // Kernels without NUMA have no such file, and one node.
        let listed = fs::read_to_string("/sys/devices/system/node/has_memory").unwrap_or_default();
        let of: Box<[Node]> = listed_nodes(&listed).collect();
        match of.len() {
            0 | 1 => Self::one(None),
            _ => Self { of, bound: true, cost_ns: 0 },
        }
    }

    /// The nodes.
    pub fn all(&self) -> &[Node] {
        &self.of
    }

    /// Where in [`all`](Self::all) a node stands.
    pub fn position(&self, node: Node) -> Option<usize> {
        self.of.iter().position(|of| *of == node)
    }

    /// Where in [`all`](Self::all) the node of the processor stands that this thread is on: for
    /// nodes of the machine. Of virtual ones no processor has any.
    pub fn here(&self) -> Option<usize> {
        if self.bound { self.position(region::node_of_this_cpu()?) } else { None }
    }

    pub(crate) fn count(&self) -> usize {
        self.of.len()
    }

    /// What the share at this position is bound to.
    pub(crate) fn binding(&self, position: usize) -> Option<Node> {
        if self.bound { self.of.get(position).copied() } else { None }
    }

    pub(crate) fn toll(&self) -> Toll {
        Toll { ns: self.cost_ns }
    }
}

/// The numbers of a list such as `0-1,3`.
fn listed_nodes(list: &str) -> impl Iterator<Item = Node> {
    list.trim()
        .split(',')
        .filter_map(|run| {
            let (first, last) = run.split_once('-').unwrap_or((run, run));
            Some(first.parse().ok()?..=last.parse().ok()?)
        })
        .flatten()
        .map(Node)
}

/// What it costs to use another node's memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Toll {
    ns: u32,
}

impl Toll {
    /// Waits for so many uses. Reads the clock until the time is over: a loop that counts would be
    /// as long as the processor's speed at that moment makes it.
    #[cold]
    pub(crate) fn pay(self, times: usize) {
        let cost = Duration::from_nanos(u64::from(self.ns) * times as u64);
        if cost.is_zero() {
            return;
        }
        let began = Instant::now();
        while began.elapsed() < cost {
            std::hint::spin_loop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_as_the_system_writes_them() {
        let numbers = |list| listed_nodes(list).map(|node| node.0).collect::<Vec<_>>();
        assert_eq!(numbers("0\n"), [0]);
        assert_eq!(numbers("0-3\n"), [0, 1, 2, 3]);
        assert_eq!(numbers("0,2-3,8"), [0, 2, 3, 8]);
        assert_eq!(numbers("\n"), []);
    }
}

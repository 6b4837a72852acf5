//! What this kernel makes of super-packets: a probe to run at start-up.
//!
//! There are kernels that refuse a super-packet whose last segment is shorter than the others, that
//! mangle the last one where it is as long, or that know no UDP super-packets. None of it shows when
//! a device is set up. [`probe`] writes one of each kind along a path of two TUN devices, in a
//! network namespace of its own and for a fraction of a second, and compares what comes out with
//! what is right, byte for byte; [`Report::takes`] then says what a program may write.
//!
//! Not here: devices of the caller's. What the kernel does to a packet behind them cannot be seen,
//! and it is the same code.

mod case;
mod netlink;
mod path;

use std::{fs, io, panic, thread};

use case::Case;
use path::Path;

use crate::sys::tun;

/// A protocol of super-packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proto {
    /// TCP over IPv4.
    Tcp4,
    /// TCP over IPv6.
    Tcp6,
    /// UDP over IPv4, cut into datagrams (USO).
    Udp4,
    /// The same over IPv6.
    Udp6,
}

impl Proto {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Tcp4, Self::Tcp6, Self::Udp4, Self::Udp6];

    /// As programs print it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tcp4 => "tcp4",
            Self::Tcp6 => "tcp6",
            Self::Udp4 => "udp4",
            Self::Udp6 => "udp6",
        }
    }
}

/// The last segment of a super-packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// It is shorter than the others.
    Short,
    /// It is as long as the others.
    Equal,
    /// It is the only one.
    One,
}

impl Tail {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Short, Self::Equal, Self::One];

    /// As programs print it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Short => "short",
            Self::Equal => "equal",
            Self::One => "one",
        }
    }
}

/// What became of a super-packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Its segments came out, every byte right.
    Right,
    /// The write failed (`EINVAL`).
    Refused,
    /// A byte of a segment is wrong.
    Mangled {
        /// Which segment, from 0.
        segment: usize,
        /// Offset of the byte, from the IP header on.
        at: usize,
        /// What it should be.
        right: u8,
        /// What it is.
        read: u8,
    },
    /// A segment is too long or too short.
    Cut {
        /// Which segment, from 0.
        segment: usize,
        /// How long it should be, from the IP header on.
        right: usize,
        /// How long it is.
        read: usize,
    },
    /// More or fewer segments came out.
    Lost {
        /// How many there should be.
        right: usize,
        /// How many there are.
        read: usize,
    },
    /// It was not tried: this system has no IPv6.
    Untried,
}

/// One super-packet that was tried.
#[derive(Clone, Copy, Debug)]
pub struct Finding {
    /// Its protocol.
    pub proto: Proto,
    /// Its last segment.
    pub tail: Tail,
    /// What became of it.
    pub outcome: Outcome,
}

/// What a program may write to a TUN device, and what it has to do for the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Every super-packet.
    Whole,
    /// Those whose segments are all equal; a shorter last one goes in a packet of its own.
    EqualTails,
    /// Those whose last segment is shorter; the others are segmented first.
    ShortTails,
    /// None: all are segmented first.
    Nothing,
}

impl Takes {
    /// What falls back, as programs print it.
    pub fn fallback(self) -> &'static str {
        match self {
            Self::Whole => "none needed",
            Self::EqualTails => "write a shorter last segment as a packet of its own",
            Self::ShortTails => "segment those whose last segment is as long as the others",
            Self::Nothing => "segment before writing",
        }
    }
}

/// What the probe found.
#[derive(Clone, Debug)]
pub struct Report {
    /// Release of the kernel.
    pub kernel: String,
    /// Whether a TUN device gives TCP super-packets to its reader (`TUN_F_TSO4`, `TUN_F_TSO6`).
    pub gives_tcp: bool,
    /// Whether it gives UDP super-packets (`TUN_F_USO4`, `TUN_F_USO6`, Linux 6.2); else the kernel
    /// cuts them first, which costs a read for each datagram.
    pub gives_udp: bool,
    /// Every super-packet that was written to one, by protocol and tail.
    pub findings: Vec<Finding>,
}

impl Report {
    /// What may be written of a protocol.
    pub fn takes(&self, proto: Proto) -> Takes {
        let right = |tail| {
            let mut findings = self.findings.iter();
            let found = findings.find(|found| found.proto == proto && found.tail == tail);
            found.is_some_and(|found| found.outcome == Outcome::Right)
        };
        match (right(Tail::Short), right(Tail::Equal)) {
            (true, true) => Takes::Whole,
            (false, true) => Takes::EqualTails,
            (true, false) => Takes::ShortTails,
            (false, false) => Takes::Nothing,
        }
    }
}

/// Why there is no report.
#[derive(Debug)]
pub enum Refused {
    /// No network namespace; `EPERM` without `CAP_SYS_ADMIN`.
    Namespace(io::Error),
    /// No TUN device; `ENOENT` where the driver is missing.
    Tun(io::Error),
    /// The devices could not be joined.
    Path(io::Error),
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Namespace(source) => write!(f, "make a network namespace: {source}"),
            Self::Tun(source) => write!(f, "open /dev/net/tun: {source}"),
            Self::Path(source) => write!(f, "forward between two TUN devices: {source}"),
        }
    }
}

impl std::error::Error for Refused {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Namespace(source) | Self::Tun(source) | Self::Path(source) => Some(source),
        }
    }
}

/// Tries every kind of super-packet on the running kernel. Takes a fraction of a second, and
/// `CAP_SYS_ADMIN` and `CAP_NET_ADMIN`, those of a user namespace being enough. The caller's network
/// is not touched: a thread with a namespace of its own does the work.
///
/// # Errors
/// What the system refused.
pub fn probe() -> Result<Report, Refused> {
    match thread::spawn(on_this_thread).join() {
        Ok(result) => result,
        Err(panicked) => panic::resume_unwind(panicked),
    }
}

fn on_this_thread() -> Result<Report, Refused> {
    let path = Path::new()?;
    let mut findings = Vec::new();
    for proto in Proto::ALL {
        for tail in Tail::ALL {
            let is_v4 = matches!(proto, Proto::Tcp4 | Proto::Udp4);
            let outcome = match is_v4 || path.v6 {
                true => path.send(Case { proto, tail })?,
                false => Outcome::Untried,
            };
            findings.push(Finding { proto, tail, outcome });
        }
    }
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    Ok(Report {
        kernel: kernel.trim().to_owned(),
        gives_tcp: path.knows(tun::F_TSO4 | tun::F_TSO6),
        gives_udp: path.knows(tun::F_TSO4 | tun::F_TSO6 | tun::F_USO4 | tun::F_USO6),
        findings,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_written_follows_from_what_came_out() {
        let report = |short, equal| {
            let found = |tail, outcome| Finding { proto: Proto::Udp4, tail, outcome };
            let findings = vec![found(Tail::Short, short), found(Tail::Equal, equal)];
            Report { kernel: String::new(), gives_tcp: true, gives_udp: true, findings }
        };
        let takes = |short, equal| report(short, equal).takes(Proto::Udp4);
        let lost = Outcome::Lost { right: 3, read: 0 };
        assert_eq!(takes(Outcome::Right, Outcome::Right), Takes::Whole);
        assert_eq!(takes(Outcome::Refused, Outcome::Right), Takes::EqualTails);
        assert_eq!(takes(Outcome::Right, lost), Takes::ShortTails);
        assert_eq!(takes(Outcome::Refused, Outcome::Refused), Takes::Nothing);
        assert_eq!(report(lost, lost).takes(Proto::Udp6), Takes::Nothing);
    }
}

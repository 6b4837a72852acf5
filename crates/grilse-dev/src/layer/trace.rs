//! `trace=FILE`: a line for every packet that passes a device.
//!
//! A line has the engine's time in seconds, the device, the direction, the length, and then what is
//! known: tag, protocol, addresses and ports, segmentation, checksum.

use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::{self, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex};

use grilse_packet::Skb;
use grilse_wire::dissect::{Addrs, Flow, dissect};
use grilse_wire::{Csum, tcp, udp};

use super::Around;
use super::watch::{Watched, Watcher};
use crate::fault::Fault;
use crate::open::{OpenError, Opener};
use crate::pcap::Direction;
use crate::spec::Spec;

pub(super) const OPTIONS: &[(&str, &str, &str)] =
    &[("trace", "FILE", "a line for every packet; without a value, to standard error (nothing)")];

/// Where lines go, from all queues of a device.
type Sink = Arc<Mutex<Box<dyn Write + Send>>>;

struct Trace {
    device: String,
    sink: Sink,
    line: String,
}

/// The layer, where it is asked for.
pub(super) fn of(opener: &mut Opener, spec: &Spec) -> Result<Option<Around>, OpenError> {
    let device = spec.to_string();
    let sink: Box<dyn Write + Send> = match spec.text("trace") {
        None => return Ok(None),
        Some("on") => Box::new(io::stderr()),
        Some(path) => {
            let create = |path: &Path| {
                File::create(path).map_err(|source| OpenError::System {
                    device: device.clone(),
                    doing: "create the trace",
                    source,
                    mend: format!("see whether you may write {}", path.display()),
                })
            };
            let file = opener.files.write(&device, Path::new(path), create)?;
            Box::new(io::BufWriter::new(file))
        }
    };
    let sink = Arc::new(Mutex::new(sink));
    Ok(Some(Box::new(move |inner, _| {
        let trace = Trace { device: device.clone(), sink: sink.clone(), line: String::new() };
        Box::new(Watched::new(inner, trace))
    })))
}

impl Trace {
    fn write(&self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Fault> {
        let mut sink = self.sink.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let (device, doing) = (self.device.clone(), "write the trace");
        write(&mut **sink).map_err(|source| Fault::System { device, doing, source })
    }
}

impl Watcher for Trace {
    fn look(&mut self, now_ns: u64, direction: Direction, skb: &Skb) {
        let Self { device, line, .. } = self;
        line.clear();
        let way = if direction == Direction::Inbound { "rx" } else { "tx" };
        let (seconds, rest) = (now_ns / 1_000_000_000, now_ns % 1_000_000_000);
        // Writing to a string does not fail.
        _ = writeln!(line, "{seconds}.{rest:09} {device} {way} {}", Described(skb));
    }

    fn passed(&mut self) -> Result<(), Fault> {
        self.write(|sink| sink.write_all(self.line.as_bytes()))
    }

    fn finish(&mut self) -> Result<(), Fault> {
        self.write(|sink| sink.flush())
    }
}

/// A packet in words.
struct Described<'a>(&'a Skb);

impl fmt::Display for Described<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (skb, meta) = (self.0, self.0.meta());
        write!(f, "{} bytes", skb.len())?;
        if let Some(tag) = meta.vlan {
            write!(f, ", vlan {}", tag.tci & 0xfff)?;
        }
        match dissect(skb.linear(), meta.network.into(), meta.protocol) {
            Ok(flow) => describe_flow(f, &flow)?,
            Err(_) => write!(f, ", ethertype {:#06x}", meta.protocol)?,
        }
        if meta.gso.size > 0 {
            write!(f, ", {} segments of {}", meta.gso.segs, meta.gso.size)?;
        }
        f.write_str(match meta.csum {
            Csum::None => "",
            Csum::Unnecessary { .. } | Csum::Complete { .. } => ", checksum vouched for",
            Csum::Partial { .. } => ", checksum partial",
        })
    }
}

fn describe_flow(f: &mut fmt::Formatter<'_>, flow: &Flow) -> fmt::Result {
    match flow.protocol {
        tcp::PROTOCOL => f.write_str(", TCP ")?,
        udp::PROTOCOL => f.write_str(", UDP ")?,
        other => write!(f, ", IP protocol {other} ")?,
    }
    let (src, dst) = match flow.addrs {
        Addrs::V4 { src, dst } => (Ipv4Addr::from(src).into(), Ipv4Addr::from(dst).into()),
        Addrs::V6 { src, dst } => (Ipv6Addr::from(src).into(), Ipv6Addr::from(dst).into()),
    };
    match flow.ports {
        Some((from, to)) => {
            write!(f, "{} > {}", SocketAddr::new(src, from), SocketAddr::new(dst, to))
        }
        None => write!(f, "{src} > {dst}"),
    }
}

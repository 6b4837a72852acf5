//! `capture=FILE.pcapng`: all that passes a device, both ways, in a file that says which.
//!
//! Super-packets are written whole, as they pass. Times are the system's, of the round in which a
//! packet passed; those that a packet carries may be of any clock.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use grilse_packet::Skb;
use grilse_wire::link;

use super::Around;
use super::watch::{Watched, Watcher};
use crate::fault::Fault;
use crate::on_wire::OnWire;
use crate::open::{OpenError, Opener};
use crate::pcap::{Direction, FileWriter, Format, Interface, Packet, Resolution, WriteError};
use crate::spec::Spec;

pub(super) const OPTIONS: &[(&str, &str, &str)] =
    &[("capture", "FILE.pcapng", "write all that passes, both ways (nothing)")];

/// The file, which all queues of a device write.
#[derive(Debug)]
struct Shared {
    device: String,
    writer: FileWriter,
    /// The number of the interface for each link type that came up.
    links: Vec<(u16, u32)>,
}

/// What one queue writes.
struct Capture {
    shared: Arc<Mutex<Shared>>,
    /// When the engine's clock began, in nanoseconds since 1970; known with the first packet.
    epoch_ns: Option<u64>,
    seen: Seen,
}

/// The packet looked at last.
#[derive(Default)]
struct Seen {
    link: u16,
    time_ns: u64,
    direction: Option<Direction>,
    orig_len: u32,
    bytes: Vec<u8>,
}

/// The layer, where it is asked for.
pub(super) fn of(opener: &mut Opener, spec: &Spec) -> Result<Option<Around>, OpenError> {
    let Some(path) = spec.text("capture").map(Path::new) else { return Ok(None) };
    if Format::of_path(path) != Some(Format::Pcapng) {
        return Err(spec.bad("capture", "a name that ends in .pcapng".to_owned()));
    }
    let device = spec.to_string();
    let writer = opener.files.write(&device, path, |path| {
        FileWriter::create(path, Format::Pcapng).map_err(|source| Fault::Write {
            device: path.display().to_string(),
            source: WriteError::Io { source, records: 0 },
        })
    })?;
    let shared = Arc::new(Mutex::new(Shared { device, writer, links: Vec::new() }));
    Ok(Some(Box::new(move |inner, _| {
        let shared = shared.clone();
        Box::new(Watched::new(inner, Capture { shared, epoch_ns: None, seen: Seen::default() }))
    })))
}

impl Shared {
    fn write(&mut self, seen: &Seen) -> Result<(), Fault> {
        let interface = match self.links.iter().find(|(link, _)| *link == seen.link) {
            Some((_, interface)) => *interface,
            None => {
                let mut interface = Interface::new(seen.link, Resolution::NANO);
                interface.name = Some(self.device.clone().into_bytes());
                let number = self.writer.interface(&interface);
                self.links.push((seen.link, number));
                number
            }
        };
        let packet = Packet {
            interface,
            ticks: seen.time_ns,
            orig_len: seen.orig_len,
            direction: seen.direction,
            data: &[&seen.bytes],
            comments: &[],
        };
        let written = self.writer.write(&packet);
        written.map_err(|source| Fault::Write { device: self.device.clone(), source })
    }
}

impl Capture {
    fn with_shared<T>(
        &mut self,
        act: impl FnOnce(&mut Shared, &Seen) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        // Records are written whole, so a writer that panicked elsewhere is as good as any.
        let mut shared = self.shared.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        act(&mut shared, &self.seen)
    }
}

impl Watcher for Capture {
    fn look(&mut self, now_ns: u64, direction: Direction, skb: &Skb) {
        let epoch_ns = *self.epoch_ns.get_or_insert_with(|| {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            (now.as_nanos() as u64).saturating_sub(now_ns)
        });
        let frame = OnWire::new(skb);
        let seen = &mut self.seen;
        seen.link = link::Type::of_header(skb.meta().network).to_pcap();
        seen.time_ns = epoch_ns + now_ns;
        seen.direction = Some(direction);
        seen.orig_len = skb.meta().wire_len.max(frame.len() as u32);
        seen.bytes.clear();
        frame.pieces().for_each(|piece| seen.bytes.extend_from_slice(piece));
    }

    fn passed(&mut self) -> Result<(), Fault> {
        self.with_shared(Shared::write)
    }

    fn finish(&mut self) -> Result<(), Fault> {
        self.with_shared(|shared, _| {
            let finished = shared.writer.finish().map(drop);
            finished.map_err(|source| Fault::Write { device: shared.device.clone(), source })
        })
    }
}

impl fmt::Debug for Capture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Capture").field("shared", &self.shared).finish_non_exhaustive()
    }
}

//! `grilse gso`: captures of super-packets cut into the frames that those stand for.
//!
//! A record is read, opened ([`packet`]), put in order ([`queue`]) and shown frame by frame to the
//! outlets. What `grilse gro -o` said of a packet in its comment is restored exactly; of other
//! packets those are cut that are longer than the MTU; and what is not cut is not changed, its
//! checksum included, even where that is only the sum of the pseudo-header.

mod json;
mod metadata;
mod outlets;
mod packet;
mod queue;
mod report;

use std::path::Path;

use grilse::Fault;
use grilse::pcap::Reader;

use crate::args::GsoArgs;
use crate::failure::{Failure, Gravest};
use crate::source::{self, Bytes};
use crate::stdout;
use outlets::Outlets;
use packet::Packet;
use queue::Queue;

/// Runs the command.
///
/// # Errors
/// The gravest of what befell, by exit code; the others have been printed.
pub(crate) fn run(args: &GsoArgs) -> Result<(), Failure> {
    let mut outlets = Outlets::create(&args.paths)?;
    let mut gravest = Gravest::default();
    for file in &args.paths.files {
        gravest.add(one_file(args, file, &mut outlets));
        // The next file may be better; but without an outlet there is nothing left to do.
        if outlets.broken() {
            return gravest.result();
        }
    }
    for ended in outlets.finish(!args.paths.json_to_stdout()) {
        gravest.add(ended);
    }
    gravest.result()
}

fn one_file(args: &GsoArgs, file: &Path, outlets: &mut Outlets) -> Result<(), Failure> {
    // Lines and a bar on one terminal would write over each other.
    let hidden = args.paths.json_to_stdout() && stdout::is_terminal();
    let (mut reader, bar) = source::open(file, hidden)?;
    outlets.begin(&file.display().to_string(), args.paths.files.len() > 1);
    let mut queue = Queue::default();
    let mut damage = Damage::default();
    let name = source::name(file);
    let read = loop {
        match next(&mut reader, &name, args.mtu) {
            Ok(Some(packet)) => {
                damage.look(&packet);
                outlets.describe(reader.interfaces());
                queue.push(packet);
                queue.pass(outlets)?;
            }
            Ok(None) => break Ok(()),
            Err(failure) => break Err(failure),
        }
    };
    // What came before the damage is whole.
    queue.drain(outlets)?;
    outlets.describe(reader.interfaces());
    bar.finish_and_clear();
    read.and(damage.result(&name))
}

/// The next packet of a capture, opened.
fn next(reader: &mut Reader<Bytes>, name: &str, mtu: u16) -> Result<Option<Packet>, Failure> {
    let record = match reader.next() {
        Ok(Some(record)) => record,
        Ok(None) => return Ok(None),
        Err(error) => return Err(Failure::capture(name, &error)),
    };
    let (record, link_type) = (packet::Record::of(&record), record.described.link_type);
    let Some(link) = grilse::wire::link::Type::from_pcap(link_type) else {
        let device = name.to_owned();
        return Err(Fault::LinkType { device, record: record.from, link_type }.into());
    };
    Ok(Some(Packet::open(record, link, reader.interfaces(), mtu)))
}

/// Comments of ours that are none: the first, and how many there are.
#[derive(Default)]
struct Damage {
    first: Option<(u64, String)>,
    packets: u64,
}

impl Damage {
    fn look(&mut self, packet: &Packet) {
        if let Some(contradiction) = packet.contradiction() {
            self.first.get_or_insert_with(|| (packet.from(), contradiction.to_string()));
            self.packets += 1;
        }
    }

    fn result(self, name: &str) -> Result<(), Failure> {
        let Some((from, what)) = self.first else { return Ok(()) };
        let more = match self.packets - 1 {
            0 => String::new(),
            more => format!(", and {more} more packets"),
        };
        Err(Failure::Damaged(format!(
            "{name}: frame {from}: {what}; it was left as it is{more}: make the capture anew with \
             grilse gro -o, or remove the comment"
        )))
    }
}

//! A capture as a device that sends: what is sent to it is written to a file.

use std::path::Path;

use grilse_packet::{Batch, Ctx, Skb};
use grilse_wire::{GsoType, link};

use crate::device::{Armed, Caps, Counters, Device, Received, RxCsum};
use crate::fault::Fault;
use crate::on_wire::OnWire;
use crate::pcap::{self, FileWriter, Format, Interface, Resolution};

/// A capture that is written. Super-packets are written as they are.
#[derive(Debug)]
pub struct Recorder {
    caps: Caps,
    writer: FileWriter,
    /// The interfaces that sent packets are of: theirs, with a link type, and that in the file.
    links: Vec<(u32, u16, u32)>,
    counters: Counters,
}

impl Recorder {
    /// Creates the file, or empties one that is there. `name` stands in messages.
    ///
    /// # Errors
    /// Where the system refuses.
    pub fn create(name: &str, path: &Path, format: Format) -> Result<Self, Fault> {
        let writer = FileWriter::create(path, format).map_err(|source| Fault::Write {
            device: name.to_owned(),
            source: pcap::WriteError::Io { source, records: 0 },
        })?;
        let caps = Caps {
            name: name.to_owned(),
            rx: false,
            tx: true,
            rx_hash: false,
            rx_csum: RxCsum::None,
            vlan_offload: true,
            tx_gso: GsoType(u32::MAX),
            tx_csum: true,
            max_frame: usize::MAX,
        };
        Ok(Self { caps, writer, links: Vec::new(), counters: Counters::default() })
    }

    /// Describes the next interface, the first of which has number 0.
    pub fn describe(&mut self, interface: &Interface) {
        self.writer.interface(interface);
    }

    /// How many interfaces are described.
    pub fn interfaces(&self) -> usize {
        self.writer.interfaces().len()
    }

    /// Writes a packet that need not be an skb.
    ///
    /// # Errors
    /// Where the file does not take it; it holds whole records in any case.
    pub fn write(&mut self, packet: &pcap::Packet<'_>) -> Result<(), Fault> {
        self.writer.write(packet).map_err(|source| self.fault(source))
    }

    /// Writes a packet as one of `interface`, with the time `ticks` of that.
    fn record(&mut self, skb: &Skb, interface: u32, ticks: u64) -> Result<(), Fault> {
        let frame = OnWire::new(skb);
        let pieces: Vec<&[u8]> = frame.pieces().collect();
        self.write(&pcap::Packet {
            interface,
            ticks,
            // A cut frame may have merged where the rest of it was padding.
            orig_len: skb.meta().wire_len.max(frame.len() as u32),
            direction: None,
            data: &pieces,
            comments: &[],
        })
    }

    /// Completes the file and returns how many records it has.
    ///
    /// # Errors
    /// Where the rest could not be written.
    pub fn complete(&mut self) -> Result<u64, Fault> {
        self.writer.finish().map_err(|source| self.fault(source))
    }

    /// The interface in the file for a packet that was sent, with nanoseconds. What link header a
    /// packet has its length tells.
    fn interface_of(&mut self, skb: &Skb) -> u32 {
        let meta = skb.meta();
        let key = (meta.interface, link::Type::of_header(meta.network).to_pcap());
        let known = self.links.iter().find(|(interface, link, _)| (*interface, *link) == key);
        if let Some((.., interface)) = known {
            return *interface;
        }
        let interface = self.writer.interface(&Interface::new(key.1, Resolution::NANO));
        self.links.push((key.0, key.1, interface));
        interface
    }

    fn fault(&self, source: pcap::WriteError) -> Fault {
        Fault::Write { device: self.caps.name.clone(), source }
    }
}

impl Device for Recorder {
    fn caps(&self) -> &Caps {
        &self.caps
    }

    fn rx(&mut self, _ctx: &mut Ctx, _out: &mut Batch, _budget: usize) -> Result<Received, Fault> {
        Err(Fault::Direction { device: self.caps.name.clone(), asked: "receive" })
    }

    fn tx(&mut self, ctx: &mut Ctx, batch: &mut Batch) -> Result<usize, Fault> {
        let mut sent = 0;
        while let Some(skb) = batch.pop() {
            let interface = self.interface_of(&skb);
            let ticks = self.writer.interfaces()[interface as usize].ticks(skb.meta().time_ns);
            if let Err(fault) = self.record(&skb, interface, ticks) {
                let back = batch.unpop(skb);
                debug_assert!(back.is_ok(), "its place is still free");
                return Err(fault);
            }
            self.counters.tx_packets += 1;
            self.counters.tx_bytes += skb.len() as u64;
            ctx.consume(skb);
            sent += 1;
        }
        Ok(sent)
    }

    fn arm(&mut self, _sending: bool) -> Armed<'_> {
        Armed::Never
    }

    fn finish(&mut self, _ctx: &mut Ctx) -> Result<(), Fault> {
        self.complete().map(drop)
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}

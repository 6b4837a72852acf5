//! A capture as a device that sends: what is sent to it is written to a file.

use std::path::Path;

use grilse_packet::{Batch, Ctx, Skb};
use grilse_wire::GsoType;

use crate::device::{Caps, Device, Received, RxCsum};
use crate::fault::Fault;
use crate::on_wire::OnWire;
use crate::pcap::{self, FileWriter, Format, Interface, Resolution, link_type};

/// A capture that is written. Super-packets are written as they are.
#[derive(Debug)]
pub struct Recorder {
    caps: Caps,
    writer: FileWriter,
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
        Ok(Self { caps, writer })
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

    /// Writes a packet with the time `ticks` of its interface.
    fn record(&mut self, skb: &Skb, ticks: u64) -> Result<(), Fault> {
        let frame = OnWire::new(skb);
        let pieces: Vec<&[u8]> = frame.pieces().collect();
        self.write(&pcap::Packet {
            interface: skb.meta().interface,
            ticks,
            // A cut frame may have merged where the rest of it was padding.
            orig_len: skb.meta().wire_len.max(frame.len() as u32),
            data: &pieces,
            comments: &[],
        })
    }

    /// Completes the file and returns how many records it has.
    ///
    /// # Errors
    /// Where the rest could not be written.
    pub fn finish(&mut self) -> Result<u64, Fault> {
        self.writer.finish().map_err(|source| self.fault(source))
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

    /// Packets of an interface that nobody described are recorded as Ethernet, with nanoseconds.
    fn tx(&mut self, ctx: &mut Ctx, batch: &mut Batch) -> Result<usize, Fault> {
        let mut sent = 0;
        while let Some(skb) = batch.pop() {
            let interface = skb.meta().interface;
            while interface as usize >= self.interfaces() {
                self.describe(&Interface::new(link_type::ETHERNET, Resolution::NANO));
            }
            let ticks = self.writer.interfaces()[interface as usize].ticks(skb.meta().time_ns);
            if let Err(fault) = self.record(&skb, ticks) {
                let back = batch.unpop(skb);
                debug_assert!(back.is_ok(), "its place is still free");
                return Err(fault);
            }
            ctx.consume(skb);
            sent += 1;
        }
        Ok(sent)
    }
}

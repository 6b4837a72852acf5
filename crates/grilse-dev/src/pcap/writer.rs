//! Writing a capture to any sink.
//!
//! Whole records are put together in memory and handed on in one write, so the writer knows at
//! every byte how many whole records the sink has: that is what an error reports.

use std::io::{ErrorKind, Write};

use super::{Direction, Format, Interface, MAX_BLOCK, Resolution, WriteError, encode, link_type};

/// Bytes that are gathered before they are handed on.
const GATHER: usize = 64 << 10;

/// Least snap length that is stated, in bytes. Super-packets outgrow the input's, and the largest
/// of the kernel has 8 * 65535 bytes (`GRO_MAX_SIZE`). libpcap takes 0 (no limit) for 262144 and
/// stops at a packet that is longer than stated. Packets of more than 262144 bytes it never shows
/// (nor does Wireshark), but in pcapng it then at least goes on to the next one.
const SNAPLEN: u32 = 1 << 19;

/// A packet to write.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// The number that [`Writer::interface`] returned.
    pub interface: u32,
    /// When it was captured, in ticks of its interface.
    pub ticks: u64,
    /// Length on the wire in bytes.
    pub orig_len: u32,
    /// Which way it went. A classic file has no place for it.
    pub direction: Option<Direction>,
    /// Its bytes, in parts that are written one behind the other.
    pub data: &'a [&'a [u8]],
    /// Its comments, by the format's rule UTF-8. A classic file has no place for them.
    pub comments: &'a [&'a [u8]],
}

/// Writes a capture.
///
/// Dropping a writer hands on what it has gathered, and ignores errors; [`finish`](Self::finish)
/// reports them.
#[derive(Debug)]
pub struct Writer<W: Write> {
    sink: W,
    format: Format,
    interfaces: Vec<Interface>,
    /// Link type and resolution of a classic file, once its first packet has decided them.
    classic: Option<(u16, Resolution)>,
    gathered: Vec<u8>,
    /// What of `gathered` is whole: ascending ends of records and headers.
    marks: Vec<Mark>,
    /// What the sink holds that is whole, counted from the start.
    whole: Mark,
    /// Why the sink refused.
    failed: Option<ErrorKind>,
}

/// A place at which a file may end.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    /// Bytes before it.
    bytes: u64,
    /// Records before it.
    records: u64,
}

impl<W: Write> Writer<W> {
    /// A writer that begins a file of this format at the sink's present place.
    pub fn new(sink: W, format: Format) -> Self {
        let mut writer = Self {
            sink,
            format,
            interfaces: Vec::new(),
            classic: None,
            gathered: Vec::with_capacity(2 * GATHER),
            marks: Vec::new(),
            whole: Mark::default(),
            failed: None,
        };
        if format == Format::Pcapng {
            encode::section_header(&mut writer.gathered);
            writer.mark(0);
        }
        writer
    }

    /// Describes an interface and returns its number; numbers count from 0. The snap length is
    /// raised to what super-packets need; of a name or description 65,535 bytes are kept.
    ///
    /// A classic file takes link type and resolution (microseconds, or nanoseconds where finer)
    /// from the interface of its first packet.
    pub fn interface(&mut self, interface: &Interface) -> u32 {
        if self.format == Format::Pcapng {
            let snaplen = interface.snaplen.max(SNAPLEN);
            encode::interface_block(&mut self.gathered, interface, snaplen);
            self.mark(self.records());
        }
        self.interfaces.push(interface.clone());
        (self.interfaces.len() - 1) as u32
    }

    /// The interfaces described so far.
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// Writes one packet.
    ///
    /// # Errors
    /// [`WriteError::Io`] for good, and the others for this packet only.
    pub fn write(&mut self, packet: &Packet<'_>) -> Result<(), WriteError> {
        self.refuse_if_failed()?;
        let id = packet.interface;
        if id as usize >= self.interfaces.len() {
            return Err(WriteError::UnknownInterface(id));
        }
        match self.format {
            Format::Pcap => self.classic_record(packet)?,
            Format::Pcapng => self.packet_block(packet)?,
        }
        self.mark(self.records() + 1);
        if self.gathered.len() >= GATHER { self.flush() } else { Ok(()) }
    }

    /// Records written so far, those included that are still gathered.
    pub fn records(&self) -> u64 {
        self.marks.last().unwrap_or(&self.whole).records
    }

    /// Hands on what is gathered.
    ///
    /// # Errors
    /// [`WriteError::Io`].
    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.refuse_if_failed()?;
        let mut done = 0;
        let result = loop {
            if done == self.gathered.len() {
                break self.sink.flush();
            }
            match self.sink.write(&self.gathered[done..]) {
                Ok(0) => break Err(ErrorKind::WriteZero.into()),
                Ok(n) => done += n,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
        };
        // Every block is marked, so a complete write leaves nothing behind the last mark.
        let taken = self.whole.bytes + done as u64;
        let whole = self.marks.partition_point(|mark| mark.bytes <= taken);
        if let Some(last) = whole.checked_sub(1) {
            self.whole = self.marks[last];
        }
        self.gathered.clear();
        self.marks.clear();
        result.map_err(|source| {
            self.failed = Some(source.kind());
            WriteError::Io { source, records: self.whole.records }
        })
    }

    /// Completes the file and returns how many records it has. A classic file without records
    /// takes its link type from the first interface, or is Ethernet.
    ///
    /// # Errors
    /// [`WriteError::Io`].
    pub fn finish(&mut self) -> Result<u64, WriteError> {
        self.refuse_if_failed()?;
        if self.format == Format::Pcap && self.classic.is_none() {
            let link = self.interfaces.first().map_or(link_type::ETHERNET, |first| first.link_type);
            self.file_header(link, Resolution::MICRO);
        }
        self.flush()?;
        Ok(self.whole.records)
    }

    /// Where the sink must be cut to end behind its last whole record, in bytes from its start.
    pub(super) fn whole_bytes(&self) -> u64 {
        self.whole.bytes
    }

    /// The sink.
    pub(super) fn sink(&mut self) -> &mut W {
        &mut self.sink
    }

    fn refuse_if_failed(&self) -> Result<(), WriteError> {
        match self.failed {
            Some(kind) => Err(WriteError::Io { source: kind.into(), records: self.whole.records }),
            None => Ok(()),
        }
    }

    /// Notes that a file may end here.
    fn mark(&mut self, records: u64) {
        self.marks.push(Mark { bytes: self.whole.bytes + self.gathered.len() as u64, records });
    }

    fn classic_record(&mut self, packet: &Packet<'_>) -> Result<(), WriteError> {
        let interface = &self.interfaces[packet.interface as usize];
        let (link, resolution) = (interface.link_type, interface.resolution);
        let (file_link, file_resolution) = self.classic.unwrap_or_else(|| {
            let micro = resolution.decimal().is_some_and(|n| n <= 6);
            (link, if micro { Resolution::MICRO } else { Resolution::NANO })
        });
        if link != file_link {
            return Err(WriteError::LinkType { file: file_link, packet: link });
        }
        let Some((seconds, fraction)) =
            encode::classic_time(packet.ticks, interface, file_resolution)
        else {
            return Err(WriteError::Time { file: file_resolution, packet: resolution });
        };
        let captured = bounded(captured(packet))?;
        if self.classic.is_none() {
            self.file_header(link, file_resolution);
        }
        encode::record_header(&mut self.gathered, seconds, fraction, captured, packet.orig_len);
        packet.data.iter().for_each(|part| self.gathered.extend_from_slice(part));
        Ok(())
    }

    fn file_header(&mut self, link: u16, resolution: Resolution) {
        encode::file_header(&mut self.gathered, link, resolution, SNAPLEN);
        self.classic = Some((link, resolution));
        self.mark(self.records());
    }

    fn packet_block(&mut self, packet: &Packet<'_>) -> Result<(), WriteError> {
        for comment in packet.comments {
            if comment.len() > usize::from(u16::MAX) {
                return Err(WriteError::CommentTooLong { len: comment.len() });
            }
        }
        let captured = captured(packet);
        bounded(encode::packet_block_len(captured, packet))?;
        encode::packet_block(&mut self.gathered, packet, captured as u32);
        Ok(())
    }
}

impl<W: Write> Drop for Writer<W> {
    fn drop(&mut self) {
        let _ = self.flush();
    }
}

fn captured(packet: &Packet<'_>) -> usize {
    packet.data.iter().map(|part| part.len()).sum()
}

fn bounded(len: usize) -> Result<u32, WriteError> {
    match u32::try_from(len) {
        Ok(fits) if fits <= MAX_BLOCK => Ok(fits),
        _ => Err(WriteError::TooLong { len }),
    }
}

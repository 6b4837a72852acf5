//! Reading a capture record by record.
//!
//! The reader walks: it never seeks, and it stops for good at the first thing that is wrong. A
//! format without sync marks gives no safe place to go on from.

use std::io::Read;
use std::ops::Range;

use super::format::{BYTE_ORDER_MAGIC, MICRO_MAGIC, NANO_MAGIC, SECTION};
use super::options::Options;
use super::order::Order;
use super::window::Window;
use super::{
    Comments, Damage, Direction, Error, Format, Interface, MAX_BLOCK, Resolution, Timestamp, block,
};

/// Bytes of a classic file's header.
const FILE_HEADER: usize = 24;
/// Bytes of a classic record's header.
const RECORD_HEADER: usize = 16;

/// A captured packet, lent until the next one is read.
#[derive(Clone, Debug)]
pub struct Record<'a> {
    /// Number of the record in the file, from 0.
    pub index: u64,
    /// Offset in the file of the record's header or block, in bytes.
    pub offset: u64,
    /// Index into [`Reader::interfaces`].
    pub interface: u32,
    /// That interface.
    pub described: &'a Interface,
    /// When it was captured; 0 ticks in a simple packet block, which has no time.
    pub time: Timestamp,
    /// Length on the wire in bytes. Sloppy writers state less than they captured.
    pub orig_len: u32,
    /// Which way it went, where the file says so.
    pub direction: Option<Direction>,
    /// The bytes that were captured.
    pub data: &'a [u8],
    /// Its comments; a classic file has none.
    pub comments: Comments<'a>,
}

/// Reads a capture from any stream of bytes, in bounded memory.
#[derive(Debug)]
pub struct Reader<R> {
    window: Window<R>,
    format: Format,
    /// Byte order of the file, in pcapng of the section.
    order: Order,
    /// All of the file so far; those of a section follow those of the sections before it.
    interfaces: Vec<Interface>,
    /// Index of the section's first interface.
    base: usize,
    /// Memory that the interfaces hold, in bytes.
    footprint: usize,
    records: u64,
    ended: bool,
}

/// A record's fields, with ranges in the window where [`Record`] has slices.
struct Found {
    offset: u64,
    interface: u32,
    ticks: u64,
    orig_len: u32,
    data: Range<usize>,
    options: Range<usize>,
}

impl<R: Read> Reader<R> {
    /// Reads the file header.
    ///
    /// # Errors
    /// [`Error::NotACapture`] where the first bytes are no magic number of a capture; the others
    /// where the rest of the header is cut or damaged.
    pub fn new(source: R) -> Result<Self, Error> {
        let mut window = Window::new(source);
        if window.fill(4).map_err(Error::Io)? < 4 {
            return Err(Error::NotACapture);
        }
        let magic = window.bytes();
        let classic = [(MICRO_MAGIC, Resolution::MICRO), (NANO_MAGIC, Resolution::NANO)]
            .into_iter()
            .find_map(|(number, resolution)| Some((Order::of_magic(magic, number)?, resolution)));
        if classic.is_none() && Order::of_magic(magic, SECTION).is_none() {
            return Err(Error::NotACapture);
        }
        let mut reader = Self {
            window,
            format: if classic.is_some() { Format::Pcap } else { Format::Pcapng },
            order: classic.map_or(Order::Little, |(order, _)| order),
            interfaces: Vec::new(),
            base: 0,
            footprint: 0,
            records: 0,
            ended: false,
        };
        match classic {
            Some((_, resolution)) => reader.file_header(resolution)?,
            None => reader.first_section()?,
        }
        Ok(reader)
    }

    /// The format of the file.
    pub fn format(&self) -> Format {
        self.format
    }

    /// All interfaces described so far, over all sections; a pcapng file may describe more of them
    /// between its records.
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// Bytes of the file that are behind the reader.
    pub fn offset(&self) -> u64 {
        self.window.offset()
    }

    /// Reads the next record; `None` at the end, and for ever after an error.
    ///
    /// # Errors
    /// Says where and why reading ended early. All records before were whole.
    #[expect(clippy::should_implement_trait, reason = "an Iterator cannot lend its items")]
    pub fn next(&mut self) -> Result<Option<Record<'_>>, Error> {
        if self.ended {
            return Ok(None);
        }
        let found = match self.format {
            Format::Pcap => self.classic(),
            Format::Pcapng => self.packet_block(),
        };
        let found = match found {
            Ok(Some(found)) => found,
            end => {
                self.ended = true;
                return end.map(|_| None);
            }
        };
        let index = self.records;
        self.records += 1;
        let described = &self.interfaces[found.interface as usize];
        let &Interface { resolution, offset_s, .. } = described;
        let options = Options::new(self.window.slice(found.options), self.order);
        Ok(Some(Record {
            index,
            offset: found.offset,
            interface: found.interface,
            described,
            time: Timestamp { ticks: found.ticks, resolution, offset_s },
            orig_len: found.orig_len,
            direction: Direction::of(&options),
            data: self.window.slice(found.data),
            comments: Comments::new(options),
        }))
    }

    fn file_header(&mut self, resolution: Resolution) -> Result<(), Error> {
        self.need(FILE_HEADER)?;
        let order = self.order;
        let header = self.window.bytes();
        let (major, minor) = (order.u16(header, 4), order.u16(header, 6));
        if (major, minor) != (2, 4) {
            return Err(self.damaged(Damage::Version { major, minor }));
        }
        // The upper half says how long the frame check sequence is, which may stand behind a
        // packet. The two words before the snap length (time zone, accuracy) are always 0.
        let mut interface = Interface::new(order.u32(header, 20) as u16, resolution);
        interface.snaplen = order.u32(header, 16);
        self.interfaces.push(interface);
        self.window.take(FILE_HEADER);
        Ok(())
    }

    fn first_section(&mut self) -> Result<(), Error> {
        self.need(block::FRAME)?;
        if Order::of_magic(&self.window.bytes()[8..], BYTE_ORDER_MAGIC).is_none() {
            return Err(Error::NotACapture);
        }
        let len = self.block()?;
        self.visit(len).map_err(|what| self.damaged(what))?;
        self.window.take(len);
        Ok(())
    }

    fn classic(&mut self) -> Result<Option<Found>, Error> {
        if self.at_end()? {
            return Ok(None);
        }
        self.need(RECORD_HEADER)?;
        let (offset, order) = (self.window.offset(), self.order);
        let header = self.window.bytes();
        let (seconds, fraction) = (order.u32(header, 0), order.u32(header, 4));
        let (captured, orig_len) = (order.u32(header, 8), order.u32(header, 12));
        self.bounded(captured)?;
        let len = RECORD_HEADER + captured as usize;
        self.need(len)?;
        let taken = self.window.take(len);
        let nano = self.interfaces[0].resolution == Resolution::NANO;
        let per_second = if nano { 1_000_000_000 } else { 1_000_000 };
        Ok(Some(Found {
            offset,
            interface: 0,
            ticks: u64::from(seconds) * per_second + u64::from(fraction),
            orig_len,
            data: taken.start + RECORD_HEADER..taken.end,
            options: taken.end..taken.end,
        }))
    }

    /// Walks blocks up to the next one that holds a packet.
    fn packet_block(&mut self) -> Result<Option<Found>, Error> {
        while !self.at_end()? {
            self.need(block::FRAME)?;
            let len = self.block()?;
            let packet = self.visit(len).map_err(|what| self.damaged(what))?;
            let offset = self.window.offset();
            let body = self.window.take(len).start + 8;
            if let Some(packet) = packet {
                return Ok(Some(Found {
                    offset,
                    interface: self.base as u32 + packet.interface,
                    ticks: packet.ticks,
                    orig_len: packet.orig_len,
                    data: body + packet.data.start..body + packet.data.end,
                    options: body + packet.options.start..body + packet.options.end,
                }));
            }
        }
        Ok(None)
    }

    /// Brings the whole of the next block, checks its frame and returns its length in bytes. A
    /// section header sets the byte order from here on.
    fn block(&mut self) -> Result<usize, Error> {
        let head = self.window.bytes();
        if self.order.u32(head, 0) == SECTION {
            let magic = [head[8], head[9], head[10], head[11]];
            match Order::of_magic(&magic, BYTE_ORDER_MAGIC) {
                Some(order) => self.order = order,
                None => return Err(self.damaged(Damage::ByteOrder(magic))),
            }
        }
        let front = self.order.u32(self.window.bytes(), 4);
        if !front.is_multiple_of(4) || front < block::FRAME as u32 {
            return Err(self.damaged(Damage::BlockLength(front)));
        }
        self.bounded(front)?;
        let len = front as usize;
        self.need(len)?;
        let behind = self.order.u32(self.window.bytes(), len - 4);
        if front != behind {
            return Err(self.damaged(Damage::TrailingLength { front, behind }));
        }
        Ok(len)
    }

    /// Acts on the block of `len` bytes that is at hand; returns its packet if it holds one.
    fn visit(&mut self, len: usize) -> Result<Option<block::Body>, Damage> {
        let order = self.order;
        let bytes = self.window.bytes();
        let body = &bytes[8..len - 4];
        let packet = match order.u32(bytes, 0) {
            block::ENHANCED => block::enhanced(order, body)?,
            block::PACKET => block::obsolete(order, body)?,
            block::SIMPLE => {
                // Without an interface any limit does: the packet is refused below.
                let snaplen = self.interfaces.get(self.base).map_or(0, |first| first.snaplen);
                block::simple(order, body, snaplen)?
            }
            block::INTERFACE => {
                let interface = block::interface(order, body)?;
                self.footprint += interface.footprint();
                if self.footprint > MAX_BLOCK as usize {
                    return Err(Damage::TooManyInterfaces);
                }
                self.interfaces.push(interface);
                return Ok(None);
            }
            SECTION => {
                block::section(order, body)?;
                self.base = self.interfaces.len();
                return Ok(None);
            }
            _ => return Ok(None),
        };
        let described = (self.interfaces.len() - self.base) as u32;
        if packet.interface >= described {
            return Err(Damage::UnknownInterface { interface: packet.interface, described });
        }
        Ok(Some(packet))
    }

    fn at_end(&mut self) -> Result<bool, Error> {
        Ok(self.window.fill(1).map_err(Error::Io)? == 0)
    }

    /// Brings `len` bytes, or says how many of them are missing.
    fn need(&mut self, len: usize) -> Result<(), Error> {
        let have = self.window.fill(len).map_err(Error::Io)?;
        if have < len {
            let missing = (len - have) as u64;
            return Err(Error::Truncated {
                offset: self.window.offset(),
                record: self.records,
                missing,
            });
        }
        Ok(())
    }

    fn bounded(&self, len: u32) -> Result<(), Error> {
        if len > MAX_BLOCK {
            return Err(Error::TooLong { offset: self.window.offset(), record: self.records, len });
        }
        Ok(())
    }

    fn damaged(&self, what: Damage) -> Error {
        Error::Damaged { offset: self.window.offset(), record: self.records, what }
    }
}

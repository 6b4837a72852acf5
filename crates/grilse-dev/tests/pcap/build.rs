//! Builds capture files field by field, in either byte order, and reads one whole. It shares no
//! code with the module under test.

use std::io::Read;

use grilse_dev::pcap::{Error, Interface, Reader};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Little,
    Big,
}

pub(crate) const ORDERS: [Order; 2] = [Order::Little, Order::Big];

impl Order {
    pub(crate) fn u16(self, value: u16) -> Vec<u8> {
        match self {
            Self::Little => value.to_le_bytes().to_vec(),
            Self::Big => value.to_be_bytes().to_vec(),
        }
    }

    pub(crate) fn u32(self, value: u32) -> Vec<u8> {
        match self {
            Self::Little => value.to_le_bytes().to_vec(),
            Self::Big => value.to_be_bytes().to_vec(),
        }
    }

    pub(crate) fn i64(self, value: i64) -> Vec<u8> {
        match self {
            Self::Little => value.to_le_bytes().to_vec(),
            Self::Big => value.to_be_bytes().to_vec(),
        }
    }
}

pub(crate) const MICRO: u32 = 0xa1b2c3d4;
pub(crate) const NANO: u32 = 0xa1b23c4d;

pub(crate) fn classic_header(order: Order, magic: u32, link: u32) -> Vec<u8> {
    let fields = [order.u32(magic), order.u16(2), order.u16(4), order.u32(0), order.u32(0)];
    [fields.concat(), order.u32(65535), order.u32(link)].concat()
}

pub(crate) fn classic_record(
    order: Order,
    seconds: u32,
    fraction: u32,
    orig: u32,
    data: &[u8],
) -> Vec<u8> {
    let header = [seconds, fraction, data.len() as u32, orig].map(|field| order.u32(field));
    [header.concat(), data.to_vec()].concat()
}

fn padded(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    while !bytes.len().is_multiple_of(4) {
        bytes.push(0xee);
    }
    bytes
}

pub(crate) fn option(order: Order, code: u16, value: &[u8]) -> Vec<u8> {
    [order.u16(code), order.u16(value.len() as u16), padded(value)].concat()
}

pub(crate) fn block(order: Order, kind: u32, body: &[u8]) -> Vec<u8> {
    let body = padded(body);
    let len = order.u32(12 + body.len() as u32);
    [order.u32(kind), len.clone(), body, len].concat()
}

pub(crate) fn section(order: Order) -> Vec<u8> {
    let fields = [order.u32(0x1a2b3c4d), order.u16(1), order.u16(0), order.i64(-1)];
    block(order, 0x0a0d0d0a, &fields.concat())
}

pub(crate) fn interface(order: Order, link: u16, snaplen: u32, options: &[u8]) -> Vec<u8> {
    let body = [order.u16(link), order.u16(0), order.u32(snaplen), options.to_vec()];
    block(order, 1, &body.concat())
}

pub(crate) fn enhanced(
    order: Order,
    id: u32,
    ticks: u64,
    orig: u32,
    data: &[u8],
    options: &[u8],
) -> Vec<u8> {
    let fields = [id, (ticks >> 32) as u32, ticks as u32, data.len() as u32, orig];
    let fields = fields.map(|field| order.u32(field)).concat();
    block(order, 6, &[fields, padded(data), options.to_vec()].concat())
}

pub(crate) fn obsolete(
    order: Order,
    id: u16,
    drops: u16,
    ticks: u64,
    orig: u32,
    data: &[u8],
) -> Vec<u8> {
    let first = [order.u16(id), order.u16(drops)].concat();
    let fields = [(ticks >> 32) as u32, ticks as u32, data.len() as u32, orig];
    block(order, 2, &[first, fields.map(|field| order.u32(field)).concat(), padded(data)].concat())
}

pub(crate) fn simple(order: Order, orig: u32, data: &[u8]) -> Vec<u8> {
    block(order, 3, &[order.u32(orig), padded(data)].concat())
}

/// A record that owns its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owned {
    pub(crate) index: u64,
    pub(crate) offset: u64,
    pub(crate) interface: u32,
    pub(crate) ticks: u64,
    pub(crate) ns: i64,
    pub(crate) orig_len: u32,
    pub(crate) data: Vec<u8>,
    pub(crate) comments: Vec<Vec<u8>>,
}

/// All that a file gives, and what ended it if that was not its end.
#[derive(Debug)]
pub(crate) struct Whole {
    pub(crate) records: Vec<Owned>,
    pub(crate) interfaces: Vec<Interface>,
    pub(crate) error: Option<Error>,
}

pub(crate) fn read(source: impl Read) -> Whole {
    let mut whole = Whole { records: Vec::new(), interfaces: Vec::new(), error: None };
    let mut reader = match Reader::new(source) {
        Ok(reader) => reader,
        Err(error) => {
            whole.error = Some(error);
            return whole;
        }
    };
    loop {
        match reader.next() {
            Ok(Some(record)) => whole.records.push(Owned {
                index: record.index,
                offset: record.offset,
                interface: record.interface,
                ticks: record.time.ticks,
                ns: record.time.ns(),
                orig_len: record.orig_len,
                data: record.data.to_vec(),
                comments: record.comments.map(<[u8]>::to_vec).collect(),
            }),
            Ok(None) => break,
            Err(error) => {
                whole.error = Some(error);
                assert!(matches!(reader.next(), Ok(None)), "an error ends the reading");
                break;
            }
        }
    }
    whole.interfaces = reader.interfaces().to_vec();
    whole
}

//! A `tun-rs` device with offloads on, as GRO and segmentation want it: packets are
//! [`Scattered`], and the vnet header that the kernel writes in front of each is their headroom, in
//! which the one for the kernel is written again.
//!
//! It allocates one large buffer at a time; packets are pieces of it, which `bytes` takes back when
//! the last of them is gone.

use std::fmt::{self, Display};
use std::fs::File;
use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::str::FromStr;
use std::thread;

use bytes::BytesMut;
use grilse_wire::vnet::{Form, Header, Invalid};
use grilse_wire::{Meta, Packet, Scattered, link};
use tun_rs::{DeviceBuilder, SyncDevice};

/// What TUN puts in front of a packet: 10 bytes.
pub(crate) const FORM: Form = Form::NATIVE;
/// The largest packet that a TUN device gives: 64 KiB, and its header.
const LARGEST: usize = FORM.header_len() + 65_536;

/// A TUN device, and the buffer that the next packets are read into.
pub(crate) struct Tun {
    pub(crate) device: SyncDevice,
    pub(crate) name: String,
    buffer: BytesMut,
    seq: u64,
}

/// What a command line says of a device: `NAME[@NETNS]` and `ADDRESS/PREFIX`.
pub(crate) struct Spec {
    pub(crate) name: String,
    pub(crate) namespace: Option<String>,
    pub(crate) address: IpAddr,
    pub(crate) prefix: u8,
}

/// What [`Tun::read`] found.
pub(crate) enum Read {
    Packet(Scattered),
    /// Nothing to read at the moment.
    Empty,
    /// A packet whose vnet header lies, or which is no IP packet; it is gone.
    Refused(Refusal),
}

/// Why a packet was refused.
pub(crate) enum Refusal {
    /// It ends within the vnet header, or behind it.
    Short,
    /// The vnet header does not fit the packet.
    Header(Invalid),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short => f.write_str("nothing behind the vnet header"),
            Self::Header(invalid) => invalid.fmt(f),
        }
    }
}

impl Spec {
    /// Reads the two words of a device.
    pub(crate) fn parse(device: &str, address: &str) -> Result<Self, String> {
        let (name, namespace) = match device.split_once('@') {
            Some((name, path)) => (name, Some(path.to_owned())),
            None => (device, None),
        };
        let (ip, prefix) = address.split_once('/').ok_or("an address is ADDRESS/PREFIX")?;
        let address = word("address", ip)?;
        Ok(Self { name: name.to_owned(), namespace, address, prefix: word("prefix", prefix)? })
    }
}

/// A word of the command line as what it should be.
pub(crate) fn word<T: FromStr<Err: Display>>(what: &str, word: &str) -> Result<T, String> {
    word.parse().map_err(|e| format!("{what} {word}: {e}"))
}

impl Tun {
    /// Creates the device, in its network namespace, and brings it up.
    pub(crate) fn open(spec: &Spec) -> io::Result<Self> {
        // A namespace belongs to a thread, so the device is made on one of its own.
        let device = thread::scope(|scope| {
            let opened = scope.spawn(|| {
                if let Some(path) = &spec.namespace {
                    rustix::thread::move_into_link_name_space(File::open(path)?.as_fd(), None)?;
                }
                let builder = DeviceBuilder::new().name(&spec.name).offload(true);
                let builder = match spec.address {
                    IpAddr::V4(address) => builder.ipv4(address, spec.prefix, None),
                    IpAddr::V6(address) => builder.ipv6(address, spec.prefix),
                };
                builder.build_sync()
            });
            opened.join().expect("opening a device does not panic")
        })?;
        device.set_nonblocking(true)?;
        let buffer = BytesMut::with_capacity(16 * LARGEST);
        Ok(Self { device, name: spec.name.clone(), buffer, seq: 0 })
    }

    /// The next packet.
    pub(crate) fn read(&mut self) -> io::Result<Read> {
        // Fills anew only what the last packet took.
        self.buffer.resize(LARGEST, 0);
        match self.device.recv(&mut self.buffer) {
            Ok(len) => {
                let bytes = self.buffer.split_to(len);
                let packet = parse(bytes, self.seq);
                self.seq += 1;
                Ok(packet.map_or_else(Read::Refused, Read::Packet))
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(Read::Empty),
            Err(e) => Err(e),
        }
    }

    /// Writes a packet, all of its pieces in one call and none of them copied here.
    pub(crate) fn write(&self, mut packet: Scattered) -> io::Result<()> {
        let header = Header::from_meta(packet.meta(), packet.front()).map_err(io::Error::other)?;
        let room = packet.push(FORM.header_len()).ok_or(io::ErrorKind::InvalidInput)?;
        header.write(room, FORM).ok_or(io::ErrorKind::InvalidInput)?;
        let pieces: Vec<_> = packet.pieces(0..packet.len()).map(IoSlice::new).collect();
        self.device.send_vectored(&pieces).map(drop)
    }
}

/// A packet of what was read: its vnet header becomes metadata, and then headroom.
fn parse(bytes: BytesMut, seq: u64) -> Result<Scattered, Refusal> {
    let header = Header::read(&bytes, FORM).ok_or(Refusal::Short)?;
    let frame = &bytes[FORM.header_len()..];
    let (network, protocol) = link::Type::Raw.network(frame).map_err(|_| Refusal::Short)?;
    let mut meta = Meta { seq, network, protocol, ..Meta::default() };
    header.to_meta(frame, frame.len(), &mut meta).map_err(Refusal::Header)?;
    Ok(Scattered::with_headroom(bytes, FORM.header_len(), meta))
}

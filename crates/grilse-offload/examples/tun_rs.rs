//! A VPN without its cipher, over `tun-rs`: super-packets from the TUN device are cut into datagrams
//! for the peer, and what the peer sends is coalesced before it goes to the TUN device.
//!
//! ```sh
//! cargo run --example tun_rs -- tun0 10.9.0.1/24 192.0.2.1:7000 192.0.2.2:7000
//! ```
//!
//! The arguments are the device, in a network namespace of its own if so wished (`NAME@NETNS`), its
//! address, and both ends of the UDP path. It runs until its standard input ends, and then says what
//! it did. Where a cipher belongs: each datagram lies whole in one buffer, before it is sent and
//! behind what was received.

use std::env;
use std::error::Error;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::process::ExitCode;

use bytes::BytesMut;
use grilse_offload::gso::{self, Checksums};
use grilse_offload::{Config, Gro, Outcome, Why};
use grilse_wire::{Meta, Packet, Scattered, link};
use rustix::event::{PollFd, PollFlags, poll};

mod adapter;
use adapter::{FORM, Read, Spec, Tun, word};

/// Packets read before GRO is flushed, as in a poll of NAPI.
const BUDGET: usize = 64;
/// The longest packet of the peer's; its device has an MTU of 1,500.
const LONGEST: usize = 1500;

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let [device, address, local, peer] = &args[..] else {
        eprintln!("usage: tun_rs NAME[@NETNS] ADDRESS/PREFIX LOCAL:PORT PEER:PORT");
        return ExitCode::from(2);
    };
    match Vpn::open(device, address, local, peer).and_then(Vpn::run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("tun_rs: {e}");
            ExitCode::FAILURE
        }
    }
}

struct Vpn {
    tun: Tun,
    udp: UdpSocket,
    gro: Gro<Scattered>,
    /// What datagrams are received into; packets are pieces of it.
    buffer: BytesMut,
    /// What is sent, one datagram at a time.
    datagram: Vec<u8>,
    count: Count,
}

#[derive(Default)]
struct Count {
    /// Super-packets and other packets from the device, and the datagrams that they became.
    trains: usize,
    plain: usize,
    sent: usize,
    /// Datagrams from the peer, and the packets that they became.
    received: usize,
    written: usize,
    coalesced: usize,
    /// Packets that were not what they said, or that a socket or the device did not take.
    lost: usize,
}

impl Vpn {
    fn open(device: &str, address: &str, local: &str, peer: &str) -> Result<Self, Box<dyn Error>> {
        let spec = Spec::parse(device, address)?;
        let tun = Tun::open(&spec).map_err(|e| format!("{device}: {e}"))?;
        let udp = UdpSocket::bind(word::<SocketAddr>("address", local)?)?;
        udp.connect(word::<SocketAddr>("address", peer)?)?;
        udp.set_nonblocking(true)?;
        let mut config = Config::default();
        // UDP super-packets only for a kernel that takes them (Linux 6.2).
        config.udp_fwd = tun.device.udp_gso();
        let gro = Gro::new(config);
        let buffer = BytesMut::with_capacity(1 << 20);
        Ok(Self { tun, udp, gro, buffer, datagram: vec![0; 1 << 16], count: Count::default() })
    }

    fn run(mut self) -> Result<(), Box<dyn Error>> {
        let input = io::stdin();
        loop {
            let mut waiting = [
                PollFd::new(&self.tun.device, PollFlags::IN),
                PollFd::new(&self.udp, PollFlags::IN),
                PollFd::new(&input, PollFlags::IN),
            ];
            poll(&mut waiting, None)?;
            let [from_tun, from_udp, ended] = waiting.map(|fd| !fd.revents().is_empty());
            if from_tun {
                self.encapsulate()?;
            }
            if from_udp {
                self.decapsulate()?;
            }
            if ended {
                break;
            }
        }
        let Count { trains, plain, sent, received, written, coalesced, lost } = self.count;
        println!("{trains} super-packets and {plain} plain packets became {sent} datagrams");
        println!(
            "{received} datagrams became {written} packets, {coalesced} of them super-packets; \
             {lost} lost"
        );
        Ok(())
    }

    /// From the device to the peer.
    fn encapsulate(&mut self) -> io::Result<()> {
        for _ in 0..BUDGET {
            match self.tun.read()? {
                Read::Packet(packet) if packet.meta().gso.size != 0 => self.send_train(packet),
                Read::Packet(packet) => self.send_plain(packet),
                Read::Refused(why) => {
                    self.count.lost += 1;
                    eprintln!("{}: a packet was refused: {why}", self.tun.name);
                }
                Read::Empty => break,
            }
        }
        Ok(())
    }

    /// Each segment is written to one buffer with its checksums finished, for a cipher to work on.
    fn send_train(&mut self, packet: Scattered) {
        self.count.trains += 1;
        let Ok(mut segments) = gso::segment(packet, Checksums::Finish) else {
            self.count.lost += 1;
            return;
        };
        while let Ok(Some(len)) = segments.write(&mut self.datagram) {
            self.send(len);
        }
    }

    fn send_plain(&mut self, mut packet: Scattered) {
        self.count.plain += 1;
        if gso::finish(&mut packet).is_err() {
            self.count.lost += 1;
            return;
        }
        // What was just read lies in one piece.
        let len = packet.len();
        self.datagram[..len].copy_from_slice(packet.front());
        self.send(len);
    }

    fn send(&mut self, len: usize) {
        match self.udp.send(&self.datagram[..len]) {
            Ok(_) => self.count.sent += 1,
            Err(_) => self.count.lost += 1,
        }
    }

    /// From the peer to the device.
    fn decapsulate(&mut self) -> io::Result<()> {
        let Self { tun, udp, gro, buffer, count, .. } = self;
        let (mut written, mut coalesced, mut lost) = (0, 0, 0);
        let mut sink = |packet: Scattered, _: Why| {
            let train = packet.meta().gso.size != 0;
            match tun.write(packet) {
                Ok(()) => (written, coalesced) = (written + 1, coalesced + usize::from(train)),
                Err(_) => lost += 1,
            }
        };
        for _ in 0..BUDGET {
            // Room for the vnet header in front, which is written when the packet is.
            buffer.resize(FORM.header_len() + LONGEST, 0);
            let len = match udp.recv(&mut buffer[FORM.header_len()..]) {
                Ok(len) => len,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                // The peer is not there yet.
                Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => break,
                Err(e) => return Err(e),
            };
            let bytes = buffer.split_to(FORM.header_len() + len);
            let ip = &bytes[FORM.header_len()..];
            let Ok((network, protocol)) = link::Type::Raw.network(ip) else { continue };
            let meta = Meta { seq: count.received as u64, network, protocol, ..Meta::default() };
            count.received += 1;
            let packet = Scattered::with_headroom(bytes, FORM.header_len(), meta);
            // What is merged leaves nothing behind that could be used again.
            if let Outcome::Merged(emptied) = gro.push(packet, 0, &mut sink) {
                drop(emptied);
            }
        }
        gro.flush(&mut sink);
        count.written += written;
        count.coalesced += coalesced;
        count.lost += lost;
        Ok(())
    }
}

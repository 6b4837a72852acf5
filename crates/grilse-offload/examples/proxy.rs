//! A proxy between two TUN devices with offloads on: the kernel's super-packets pass whole, and what
//! comes as single packets leaves as super-packets.
//!
//! ```sh
//! ip netns add blue
//! cargo run --example proxy -- tun0 10.9.0.1/24 tun1@/run/netns/blue 10.9.0.2/24
//! ip netns exec blue iperf3 -s     # and here: iperf3 -c 10.9.0.2
//! ```
//!
//! Each device may stand in a network namespace of its own. The proxy runs until its standard input
//! ends, and then says what it did, a line for each direction.

use std::env;
use std::error::Error;
use std::io;
use std::process::ExitCode;

use grilse_offload::{Config, Gro, Outcome, Why};
use grilse_wire::{Packet, Scattered};
use rustix::event::{PollFd, PollFlags, poll};

mod adapter;
use adapter::{Read, Spec, Tun};

/// Packets read before GRO is flushed, as in a poll of NAPI.
const BUDGET: usize = 64;

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let [left, left_address, right, right_address] = &args[..] else {
        eprintln!("usage: proxy NAME[@NETNS] ADDRESS/PREFIX NAME[@NETNS] ADDRESS/PREFIX");
        return ExitCode::from(2);
    };
    let opened = open(left, left_address).and_then(|left| Ok((left, open(right, right_address)?)));
    match opened.and_then(|(left, right)| run(left, right)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("proxy: {e}");
            ExitCode::FAILURE
        }
    }
}

fn open(device: &str, address: &str) -> Result<Tun, Box<dyn Error>> {
    let spec = Spec::parse(device, address)?;
    Tun::open(&spec).map_err(|e| format!("{device}: {e}").into())
}

fn run(mut left: Tun, mut right: Tun) -> Result<(), Box<dyn Error>> {
    let (mut rightwards, mut leftwards) = (Way::to(&right), Way::to(&left));
    let input = io::stdin();
    loop {
        let mut waiting = [
            PollFd::new(&left.device, PollFlags::IN),
            PollFd::new(&right.device, PollFlags::IN),
            PollFd::new(&input, PollFlags::IN),
        ];
        poll(&mut waiting, None)?;
        let [from_left, from_right, ended] = waiting.map(|fd| !fd.revents().is_empty());
        if from_left {
            rightwards.carry(&mut left, &right)?;
        }
        if from_right {
            leftwards.carry(&mut right, &left)?;
        }
        if ended {
            break;
        }
    }
    rightwards.report(&left, &right);
    leftwards.report(&right, &left);
    Ok(())
}

/// One direction: its GRO table, and what it did.
struct Way {
    gro: Gro<Scattered>,
    count: Count,
}

#[derive(Default)]
struct Count {
    read: usize,
    refused: usize,
    merged: usize,
    written: usize,
    /// Of those written, super-packets.
    trains: usize,
    /// Packets that the kernel did not take.
    lost: usize,
}

impl Way {
    fn to(device: &Tun) -> Self {
        let mut config = Config::default();
        // UDP super-packets only for a kernel that takes them (Linux 6.2).
        config.udp_fwd = device.device.udp_gso();
        Self { gro: Gro::new(config), count: Count::default() }
    }

    /// Carries what there is to read, a poll at most.
    fn carry(&mut self, from: &mut Tun, to: &Tun) -> io::Result<()> {
        let Self { gro, count } = self;
        let (mut written, mut trains, mut lost) = (0, 0, 0);
        let mut sink = |packet: Scattered, _: Why| {
            let train = packet.meta().gso.size != 0;
            match to.write(packet) {
                Ok(()) => (written, trains) = (written + 1, trains + usize::from(train)),
                Err(_) => lost += 1,
            }
        };
        for _ in 0..BUDGET {
            match from.read()? {
                Read::Packet(packet) => {
                    count.read += 1;
                    if let Outcome::Merged(_) = gro.push(packet, 0, &mut sink) {
                        count.merged += 1;
                    }
                }
                Read::Refused(why) => {
                    count.refused += 1;
                    eprintln!("{}: a packet was refused: {why}", from.name);
                }
                Read::Empty => break,
            }
        }
        gro.flush(&mut sink);
        count.written += written;
        count.trains += trains;
        count.lost += lost;
        Ok(())
    }

    fn report(&self, from: &Tun, to: &Tun) {
        let Count { read, refused, merged, written, trains, lost } = self.count;
        println!(
            "{} to {}: {read} read, {refused} refused, {merged} merged, {written} written, \
             {trains} of them super-packets, {lost} lost",
            from.name, to.name
        );
    }
}

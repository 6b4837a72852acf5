//! GRO of 1024 segments, a flush after them.
//!
//! `verified`: everybody sums every byte. `vouched`: the device did, and DPDK never asks. Making the
//! packets, and freeing what comes out, is no part of the time; freeing what was emptied is. Each
//! round has the buffers of the last, so that nobody waits for pages of the kernel.

use std::cmp::Reverse;
use std::time::Instant;

use bytes::BytesMut;
use grilse_mem::{FramePool, Role};
use grilse_offload::{Config, Gro, Outcome, Why};
use grilse_packet::{Ctx, Memory, Skb};
use grilse_wire::{Csum, Linear, Packet, Scattered};
use tun_rs::{GROTable, VIRTIO_NET_HDR_LEN};

use crate::dpdk::Dpdk;
use crate::traffic::{ETHERNET, Kind, MSS};
use crate::{Contestant, Round, run};

const PACKETS: usize = 1024;
/// Room for a super-packet behind the headers of its first segment.
const ROOM: usize = 66_000;

pub(crate) fn works(dpdk: Option<&Dpdk>, asked: &dyn Fn(&str) -> bool) {
    for (kind, name) in Kind::ALL {
        for flows in [1, 64] {
            let work = format!("gro/verified/{name}/{flows}");
            if asked(&work) {
                let csum = Csum::None;
                let contestants = vec![
                    Contestant::new("skb", skb(kind, flows, csum)),
                    Contestant::new("Scattered", scattered(kind, flows)),
                    Contestant::new("Linear (copies)", linear(kind, flows)),
                    Contestant::new("tun-rs (copies)", tun_rs(kind, flows)),
                ];
                run(&work, contestants);
            }
        }
    }
    for flows in [1, 64] {
        let work = format!("gro/vouched/tcp4/{flows}");
        if asked(&work) {
            let csum = Csum::Unnecessary { level: 0 };
            let mut contestants = vec![Contestant::new("skb", skb(Kind::Tcp4, flows, csum))];
            if let Some(dpdk) = dpdk {
                let request = format!("gro {flows}");
                contestants.push(Contestant::new("rte_gro", move || dpdk.round(&request)));
            }
            run(&work, contestants);
        }
    }
}

/// One round: the time of pushing `packets` and flushing, and what came out. `emptied` takes shells.
fn coalesce<P: Packet>(
    gro: &mut Gro<P>,
    packets: Vec<P>,
    out: &mut Vec<P>,
    mut emptied: impl FnMut(P),
) -> Round {
    out.reserve(packets.len());
    let start = Instant::now();
    let mut sink = |packet: P, _: Why| out.push(packet);
    for packet in packets {
        if let Outcome::Merged(Some(shell)) = gro.push(packet, 0, &mut sink) {
            emptied(shell);
        }
    }
    gro.flush(&mut sink);
    let ns = start.elapsed().as_nanos() as f64 / PACKETS as f64;
    Round { ns, out: out.len() }
}

fn config() -> Config {
    let mut config = Config::default();
    config.udp_fwd = true;
    config
}

fn skb(kind: Kind, flows: usize, csum: Csum) -> impl FnMut() -> Round {
    let memory = Memory::new(4096, None).expect("memory for the bench");
    let mut ctx = Ctx::new(memory.seat(Role::Worker)).expect("a seat");
    let mut pool = FramePool::new(2048, 2048, None).expect("frames for the bench");
    let frames = kind.segments(PACKETS, flows);
    let (mut gro, mut out) = (Gro::new(config()), Vec::<Skb>::new());
    move || {
        let mut make = |(n, bytes): (usize, &Vec<u8>)| {
            let mut frame = pool.take().expect("a frame");
            frame.bytes_mut().expect("nobody shares it")[..bytes.len()].copy_from_slice(bytes);
            let mut skb = ctx.build(frame, 0, bytes.len()).expect("a shell");
            *skb.meta_mut() = kind.meta(n, flows, csum, ETHERNET);
            skb
        };
        let packets = frames.iter().enumerate().map(&mut make).collect();
        let round = coalesce(&mut gro, packets, &mut out, |shell| ctx.consume(shell));
        out.drain(..).for_each(|skb| ctx.consume(skb));
        ctx.end();
        round
    }
}

/// Packets are pieces of one buffer, as a program reads them.
fn scattered(kind: Kind, flows: usize) -> impl FnMut() -> Round {
    let frames = kind.segments(PACKETS, flows);
    let (mut gro, mut out) = (Gro::new(config()), Vec::new());
    let mut buffer = BytesMut::new();
    move || {
        // The same memory again, as all pieces of it are gone.
        buffer.reserve(frames.iter().map(Vec::len).sum());
        let mut make = |(n, bytes): (usize, &Vec<u8>)| {
            buffer.extend_from_slice(bytes);
            Scattered::new(buffer.split(), kind.meta(n, flows, Csum::None, ETHERNET))
        };
        let packets = frames.iter().enumerate().map(&mut make).collect();
        let round = coalesce(&mut gro, packets, &mut out, drop);
        out.clear();
        round
    }
}

fn linear(kind: Kind, flows: usize) -> impl FnMut() -> Round {
    let frames = kind.segments(PACKETS, flows);
    let (mut gro, mut out) = (Gro::new(config()), Vec::new());
    let mut spare: Vec<Vec<u8>> = frames.iter().map(|_| Vec::with_capacity(ROOM)).collect();
    spare.sort_by_key(|buffer| Reverse(buffer.as_ptr()));
    move || {
        let mut make = |(n, bytes): (usize, &Vec<u8>)| {
            let mut buffer = spare.pop().expect("one for each packet");
            buffer.clear();
            buffer.extend_from_slice(bytes);
            Linear::new(buffer, kind.meta(n, flows, Csum::None, ETHERNET))
        };
        let packets = frames.iter().enumerate().map(&mut make).collect();
        let round = coalesce(&mut gro, packets, &mut out, |shell| spare.push(shell.into_vec()));
        spare.extend(out.drain(..).map(Linear::into_vec));
        // Each packet gets the buffer that it had, so that the same few grow large.
        spare.sort_by_key(|buffer| Reverse(buffer.as_ptr()));
        round
    }
}

/// The same packets as TUN has them, with room for the vnet header in front.
fn tun_rs(kind: Kind, flows: usize) -> impl FnMut() -> Round {
    let frames = kind.segments(PACKETS, flows);
    let mut table = GROTable::new();
    let mut buffers: Vec<_> = frames.iter().map(|_| BytesMut::with_capacity(ROOM)).collect();
    move || {
        for (buffer, bytes) in buffers.iter_mut().zip(&frames) {
            buffer.clear();
            buffer.extend_from_slice(&[0; VIRTIO_NET_HDR_LEN]);
            buffer.extend_from_slice(&bytes[ETHERNET..]);
        }
        let before: usize = buffers.iter().map(BytesMut::len).sum();
        let start = Instant::now();
        table.apply_gro(&mut buffers, VIRTIO_NET_HDR_LEN, true).expect("valid packets");
        let ns = start.elapsed().as_nanos() as f64 / PACKETS as f64;
        // It copies the payload of what merged, and leaves the packet where it was.
        let grown = buffers.iter().map(BytesMut::len).sum::<usize>() - before;
        Round { ns, out: PACKETS - grown / MSS }
    }
}

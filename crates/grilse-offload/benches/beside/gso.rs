//! GSO of one super-packet of 65,160 bytes of payload into 45 segments, again and again.
//!
//! `finished`: with checksums. `left`: without, as DPDK does it. The skb shares its payload with its
//! segments, and so does DPDK; giving them back is part of the time. The others write each segment
//! into a buffer of its own.

use std::hint::black_box;
use std::time::Instant;

use grilse_mem::{FramePool, Role};
use grilse_offload::gso::{self, Checksums};
use grilse_packet::{Ctx, Memory, Skb};
use grilse_wire::{Csum, Linear};
use tun_rs::{
    VIRTIO_NET_HDR_GSO_TCPV4, VIRTIO_NET_HDR_GSO_TCPV6, VIRTIO_NET_HDR_GSO_UDP_L4, VirtioNetHdr,
    gso_split,
};

use crate::dpdk::Dpdk;
use crate::traffic::{ETHERNET, Kind, MSS, SEGMENTS};
use crate::{Contestant, Round, run};

/// Super-packets a round.
const TRAINS: usize = 200;
/// Payload bytes of one fragment: the super-packet has 17, the most that an skb holds.
const FRAG: usize = MSS * SEGMENTS / 17 + 1;

pub(crate) fn works(dpdk: Option<&Dpdk>, asked: &dyn Fn(&str) -> bool) {
    for (kind, name) in Kind::ALL {
        let work = format!("gso/finished/{name}");
        if asked(&work) {
            let contestants = vec![
                Contestant::new("skb (shares)", skb(kind, Checksums::Finish)),
                Contestant::new("buffers", buffers(kind)),
                Contestant::new("tun-rs", tun_rs(kind)),
            ];
            run(&work, contestants);
        }
    }
    let work = "gso/left/tcp4";
    if asked(work) {
        let mut contestants = vec![
            Contestant::new("skb (shares)", skb(Kind::Tcp4, Checksums::Leave)),
            Contestant::new("skb, finished", skb(Kind::Tcp4, Checksums::Finish)),
        ];
        if let Some(dpdk) = dpdk {
            contestants.push(Contestant::new("rte_gso", || dpdk.round("gso")));
        }
        run(work, contestants);
    }
}

/// The time of `TRAINS` trains by segment; `cut` says how many segments it made of one.
fn round(mut cut: impl FnMut() -> usize) -> Round {
    let start = Instant::now();
    let made: usize = (0..TRAINS).map(|_| cut()).sum();
    let ns = start.elapsed().as_nanos() as f64 / made as f64;
    Round { ns, out: made / TRAINS }
}

fn skb(kind: Kind, checksums: Checksums) -> impl FnMut() -> Round {
    let memory = Memory::new(4096, None).expect("memory for the bench");
    let mut ctx = Ctx::new(memory.seat(Role::Worker)).expect("a seat");
    let mut pool = FramePool::new(64, 4096, None).expect("frames for the bench");
    let (bytes, meta) = kind.train();
    let (headers, payload) = bytes.split_at(bytes.len() - MSS * SEGMENTS);
    let mut train = ctx.take().expect("a shell");
    train.put(headers.len()).expect("a small head holds headers").copy_from_slice(headers);
    for piece in payload.chunks(FRAG) {
        let mut frame = pool.take().expect("a frame");
        frame.bytes_mut().expect("nobody shares it")[..piece.len()].copy_from_slice(piece);
        frame.set_range(0..piece.len());
        train.add_frag(frame).expect("17 fragments fit");
    }
    *train.meta_mut() = meta;
    let mut train = Some(train);
    move || {
        round(|| {
            let packet: Skb = train.take().expect("it comes back each time");
            let mut segments = gso::segment(packet, checksums).expect("a super-packet");
            let mut made = 0;
            while let Ok(Some(segment)) = segments.cut(&mut ctx) {
                ctx.consume(black_box(segment));
                made += 1;
            }
            train = Some(segments.into_packet());
            made
        })
    }
}

fn buffers(kind: Kind) -> impl FnMut() -> Round {
    let (bytes, meta) = kind.train();
    let mut train = Some(Linear::new(bytes, meta));
    let mut out = vec![[0; 2048]; SEGMENTS];
    move || {
        round(|| {
            let packet = train.take().expect("it comes back each time");
            let mut segments = gso::segment(packet, Checksums::Finish).expect("a super-packet");
            let mut made = 0;
            while let Some(buffer) = out.get_mut(made)
                && let Ok(Some(len)) = segments.write(buffer)
            {
                black_box(&buffer[..len]);
                made += 1;
            }
            train = Some(segments.into_packet());
            made
        })
    }
}

/// The same packet as TUN has it.
fn tun_rs(kind: Kind) -> impl FnMut() -> Round {
    let (frame, meta) = kind.train();
    let mut packet = frame[ETHERNET..].to_vec();
    let Csum::Partial { start, offset } = meta.csum else { unreachable!("as trains are made") };
    let header = VirtioNetHdr {
        flags: 1,
        gso_type: match kind {
            Kind::Tcp4 => VIRTIO_NET_HDR_GSO_TCPV4,
            Kind::Tcp6 => VIRTIO_NET_HDR_GSO_TCPV6,
            Kind::Udp4 => VIRTIO_NET_HDR_GSO_UDP_L4,
        },
        hdr_len: (packet.len() - MSS * SEGMENTS) as u16,
        gso_size: MSS as u16,
        csum_start: start - ETHERNET as u16,
        csum_offset: offset,
    };
    let mut out = vec![[0; 2048]; SEGMENTS];
    let mut sizes = [0; SEGMENTS];
    move || {
        round(|| {
            let v6 = kind == Kind::Tcp6;
            let made = gso_split(&mut packet, header, &mut out, &mut sizes, 0, v6);
            black_box(&out);
            made.expect("a super-packet")
        })
    }
}

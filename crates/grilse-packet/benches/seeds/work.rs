//! The workloads: what two threads do with skbs where a seed's numbers were taken, as far as memory
//! is concerned. The same code, and the same bytes touched, whatever the policy: whoever takes an
//! skb writes two lines of metadata, and whoever frees it reads them.

use std::collections::VecDeque;
use std::hint::spin_loop;

use grilse_mem::Role;
use grilse_packet::{Ctx, Skb};

use crate::lane::{BURST, Burst, Lane};

/// A workload, named after its traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    Forward,
    Echo,
    RxSocket,
    RxGro,
    UdpTx,
    UdpBoth,
    XdpTx,
}

/// Bursts that stand in the rings of a device, or in a socket's queue, while one core works.
const HELD: usize = 32;

/// Skbs that an AF_XDP sender has under way at most: two groups of descriptors (`xdpsock` sends 32
/// a call).
const WINDOW: u64 = 64;

/// Skbs of each burst that are not merged into others: a super-packet has up to 17 frags.
const MERGED_INTO: usize = 2;

impl Work {
    pub(crate) const ALL: [Self; 7] = [
        Self::Forward,
        Self::Echo,
        Self::RxSocket,
        Self::RxGro,
        Self::UdpTx,
        Self::UdpBoth,
        Self::XdpTx,
    ];

    /// The word for it on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Echo => "echo",
            Self::RxSocket => "rx-socket",
            Self::RxGro => "rx-gro",
            Self::UdpTx => "udp-tx",
            Self::UdpBoth => "udp-both",
            Self::XdpTx => "xdp-tx",
        }
    }

    /// What it is, for the reader of the table.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Forward => "one worker forwards: bursts, 1024 skbs in its rings (S1: N1, N2)",
            Self::Echo => "one worker answers small messages, one by one (S0: N3, N4)",
            Self::RxSocket => "a worker receives, a task on another core reads (2022, UDP 2025)",
            Self::RxGro => "the same, but of 32 skbs 30 are merged and freed at once (S0: N6)",
            Self::UdpTx => "a task sends without pause, a worker completes (S2, S3: N7, N8, N9)",
            Self::UdpBoth => "two workers send, and complete what the other sent (S2: N7)",
            Self::XdpTx => "a task sends 32 a call and waits for completions (S3: N10, N11)",
        }
    }

    /// Who sits on the first core, and on the second where the work crosses.
    pub(crate) fn roles(self) -> (Role, Option<Role>) {
        match self {
            Self::Forward | Self::Echo => (Role::Worker, None),
            Self::RxSocket | Self::RxGro => (Role::Worker, Some(Role::Foreign)),
            Self::UdpTx | Self::XdpTx => (Role::Foreign, Some(Role::Worker)),
            Self::UdpBoth => (Role::Worker, Some(Role::Worker)),
        }
    }

    /// What both sides of a round of `skbs` must have read in all.
    pub(crate) fn checksum(self, skbs: u64) -> u64 {
        let once: u64 = (0..skbs).map(digest).sum();
        if self == Self::UdpBoth { 2 * once } else { once }
    }

    /// The side on the first core, which is the clock's; returns the sum of what it read.
    pub(crate) fn first(self, ctx: &mut Ctx, lane: &mut Lane, skbs: u64) -> u64 {
        match self {
            Self::Forward => forward(ctx, skbs),
            Self::Echo => echo(ctx, skbs),
            Self::RxSocket | Self::UdpTx => send(ctx, lane, skbs, u64::MAX),
            Self::RxGro => merge(ctx, lane, skbs),
            Self::UdpBoth => exchange(ctx, lane, skbs),
            Self::XdpTx => send(ctx, lane, skbs, WINDOW),
        }
    }

    /// The side on the second core.
    pub(crate) fn second(self, ctx: &mut Ctx, lane: &mut Lane, skbs: u64) -> u64 {
        match self {
            Self::Forward | Self::Echo => 0,
            Self::RxSocket | Self::RxGro => read_socket(ctx, lane, skbs),
            Self::UdpTx | Self::XdpTx => complete(ctx, lane, skbs),
            Self::UdpBoth => exchange(ctx, lane, skbs),
        }
    }
}

/// Receives a burst, and sends the one that waited longest.
#[inline(never)]
fn forward(ctx: &mut Ctx, skbs: u64) -> u64 {
    let mut held = VecDeque::with_capacity(HELD + 1);
    let mut sum = 0;
    for round in 0..skbs / BURST as u64 {
        ctx.begin(0);
        held.push_back(take(ctx, round));
        if held.len() > HELD
            && let Some(mut done) = held.pop_front()
        {
            sum += read(&done);
            ctx.consume_bulk(&mut done.0);
        }
        ctx.end();
    }
    for mut done in held {
        sum += read(&done);
        ctx.consume_bulk(&mut done.0);
    }
    ctx.end();
    sum
}

/// Four requests a poll; for each an skb is taken, used and freed before the next.
#[inline(never)]
fn echo(ctx: &mut Ctx, skbs: u64) -> u64 {
    let mut sum = 0;
    for seq in 0..skbs {
        if seq % 4 == 0 {
            ctx.begin(0);
        }
        let mut skb = ctx.take().expect("all others are free");
        write(&mut skb, seq);
        sum += sum_of(std::hint::black_box(&skb));
        ctx.consume(skb);
        if seq % 4 == 3 {
            ctx.end();
        }
    }
    sum
}

/// Sends bursts, at most `window` skbs ahead of what the other side has completed.
#[inline(never)]
fn send(ctx: &mut Ctx, lane: &mut Lane, skbs: u64, window: u64) -> u64 {
    for round in 0..skbs / BURST as u64 {
        let sent = (round + 1) * BURST as u64;
        while sent.saturating_sub(lane.completed()) > window {
            spin_loop();
        }
        ctx.begin(0);
        let burst = take(ctx, round);
        lane.push(burst);
        ctx.end();
    }
    0
}

/// Receives bursts; most of each is merged and freed at once, and the rest goes up.
#[inline(never)]
fn merge(ctx: &mut Ctx, lane: &mut Lane, skbs: u64) -> u64 {
    let mut sum = 0;
    for round in 0..skbs / BURST as u64 {
        ctx.begin(0);
        let mut merged = take(ctx, round);
        let mut rest = Burst::empty();
        rest.0[..MERGED_INTO].swap_with_slice(&mut merged.0[..MERGED_INTO]);
        sum += read(&merged);
        ctx.consume_bulk(&mut merged.0);
        lane.push(rest);
        ctx.end();
    }
    sum
}

/// A `recvmsg` for each burst: frees one by one.
#[inline(never)]
fn read_socket(ctx: &mut Ctx, lane: &mut Lane, skbs: u64) -> u64 {
    let mut sum = 0;
    for _ in 0..skbs / BURST as u64 {
        let mut burst = lane.pop();
        ctx.begin(0);
        sum += read(&burst);
        burst.0.iter_mut().filter_map(Option::take).for_each(|skb| ctx.consume(skb));
        ctx.end();
    }
    sum
}

/// A poll of transmit completions for each burst: frees in bulk, and says so.
#[inline(never)]
fn complete(ctx: &mut Ctx, lane: &mut Lane, skbs: u64) -> u64 {
    let mut sum = 0;
    for round in 0..skbs / BURST as u64 {
        let mut burst = lane.pop();
        ctx.begin(0);
        sum += read(&burst);
        ctx.consume_bulk(&mut burst.0);
        lane.complete((round + 1) * BURST as u64);
        ctx.end();
    }
    sum
}

/// Sends, and completes what the other sent, until as much went either way.
#[inline(never)]
fn exchange(ctx: &mut Ctx, lane: &mut Lane, skbs: u64) -> u64 {
    let bursts = skbs / BURST as u64;
    let (mut sent, mut received, mut sum) = (0, 0, 0);
    while sent < bursts || received < bursts {
        ctx.begin(0);
        if sent < bursts && lane.has_room() {
            let burst = take(ctx, sent);
            lane.push(burst);
            sent += 1;
        }
        if let Some(mut came) = lane.try_pop() {
            sum += read(&came);
            ctx.consume_bulk(&mut came.0);
            received += 1;
        }
        ctx.end();
    }
    sum
}

/// A whole burst, written to; waits for what is under way.
#[inline(always)]
fn take(ctx: &mut Ctx, round: u64) -> Burst {
    let mut burst = Burst::empty();
    let mut have = ctx.take_bulk(&mut burst.0);
    while have < BURST {
        ctx.begin(0);
        have += ctx.take_bulk(&mut burst.0[have..]);
    }
    for (skb, seq) in burst.0.iter_mut().flatten().zip(round * BURST as u64..) {
        write(skb, seq);
    }
    burst
}

/// To take an skb is to clear its two lines; these are the words that a driver fills in.
#[inline(always)]
fn write(skb: &mut Skb, seq: u64) {
    let meta = skb.meta_mut();
    meta.seq = seq;
    meta.time_ns = seq + 1;
    meta.hash = seq as u32;
}

#[inline(always)]
fn read(burst: &Burst) -> u64 {
    burst.0.iter().flatten().map(sum_of).sum()
}

#[inline(always)]
fn sum_of(skb: &Skb) -> u64 {
    let meta = skb.meta();
    skb.len() as u64 + meta.seq + meta.time_ns + u64::from(meta.hash)
}

/// What skb number `seq` says, if it is whole.
fn digest(seq: u64) -> u64 {
    seq + (seq + 1) + seq
}

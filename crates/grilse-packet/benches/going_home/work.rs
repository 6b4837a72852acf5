//! The work: what the threads do with a pool, the same for every contestant.

use std::hint::black_box;

use rtrb::{Consumer, Producer};

use crate::pool::{BURST, Burst, Object, Seat, digest, empty};

/// One row of DESIGN's table, or one of its neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// One core takes 32 one by one, and frees them one by one; no byte is touched.
    SameOne,
    /// The same in bursts.
    SameBurst,
    /// One core takes a burst, initialises each object (two metadata lines, one header line), and
    /// frees it.
    SameInit,
    /// One core takes, the other frees; no byte is touched.
    Pipe,
    /// One core takes and writes two metadata lines, the other reads them and frees.
    PipeShell,
    /// The same with four metadata lines and two of the head.
    PipeHead,
    /// Both cores take, each frees what the other took, at once; no byte is touched.
    Pairwise,
}

impl Work {
    pub(crate) const ALL: [Self; 7] = [
        Self::SameOne,
        Self::SameBurst,
        Self::SameInit,
        Self::Pipe,
        Self::PipeShell,
        Self::PipeHead,
        Self::Pairwise,
    ];

    /// The word for it on the command line, and between the program and the DPDK peer.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::SameOne => "same-1",
            Self::SameBurst => "same-32",
            Self::SameInit => "same-init",
            Self::Pipe => "pipe",
            Self::PipeShell => "pipe-128",
            Self::PipeHead => "pipe-256+128",
            Self::Pairwise => "pairwise",
        }
    }

    /// What it is, for the reader of the table.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::SameOne => "same core, one by one, handles only",
            Self::SameBurst => "same core, bursts of 32, handles only",
            Self::SameInit => "same core, take + initialise (2 lines, 1 header line) + free",
            Self::Pipe => "one core takes, the other frees, handles only",
            Self::PipeShell => "the same, 128 B of metadata written by one and read by the other",
            Self::PipeHead => "the same, 256 B, and the first 128 B of the head (no target)",
            Self::Pairwise => "both take and free each other's, handles only (per object and core)",
        }
    }

    /// Whether it takes two cores.
    pub(crate) fn crosses(self) -> bool {
        !matches!(self, Self::SameOne | Self::SameBurst | Self::SameInit)
    }

    /// Objects in one round: a few milliseconds for most.
    pub(crate) fn objects(self) -> u64 {
        if self.crosses() { 1 << 17 } else { 1 << 18 }
    }

    /// What the side that frees must have summed up after a round of `objects`.
    pub(crate) fn checksum(self, objects: u64) -> u64 {
        let each = |digest: fn(u64) -> u64, step| (0..objects).step_by(step).map(digest).sum();
        match self {
            Self::SameOne | Self::SameBurst | Self::Pipe | Self::Pairwise => objects,
            Self::SameInit => each(digest::<2, 1>, BURST),
            Self::PipeShell => each(digest::<2, 0>, 1),
            Self::PipeHead => each(digest::<4, 2>, 1),
        }
    }

    /// All of it on one thread; returns the checksum.
    pub(crate) fn alone<H: Object>(self, seat: &mut impl Seat<H>, objects: u64) -> u64 {
        match self {
            Self::SameOne => one_by_one(seat, objects),
            Self::SameBurst => in_bursts::<0, 0, _>(seat, objects),
            _ => in_bursts::<2, 1, _>(seat, objects),
        }
    }

    /// The first side of work that crosses: the one that takes, and the clock's.
    pub(crate) fn first<H: Object>(
        self,
        seat: &mut impl Seat<H>,
        lane: &mut Lane<H>,
        objects: u64,
    ) -> u64 {
        match self {
            Self::PipeShell => send::<2, 0, _>(seat, lane, objects),
            Self::PipeHead => send::<4, 2, _>(seat, lane, objects),
            Self::Pairwise => return exchange(seat, lane, objects),
            _ => send::<0, 0, _>(seat, lane, objects),
        }
        0
    }

    /// The second side: the one that frees.
    pub(crate) fn second<H: Object>(
        self,
        seat: &mut impl Seat<H>,
        lane: &mut Lane<H>,
        objects: u64,
    ) -> u64 {
        match self {
            Self::PipeShell => receive::<2, 0, _>(seat, lane, objects),
            Self::PipeHead => receive::<4, 2, _>(seat, lane, objects),
            Self::Pairwise => exchange(seat, lane, objects),
            _ => receive::<0, 0, _>(seat, lane, objects),
        }
    }
}

/// One side's ends of the rings between two threads. A ring's item is a burst, moved whole: one
/// index for 32 objects, as DPDK's rings do it.
pub(crate) struct Lane<H> {
    pub(crate) out: Producer<Burst<H>>,
    pub(crate) coming: Consumer<Burst<H>>,
}

#[inline(never)]
fn one_by_one<H: Object>(seat: &mut impl Seat<H>, objects: u64) -> u64 {
    let mut burst = empty();
    let mut freed = 0;
    while freed < objects {
        for place in &mut burst.0 {
            *place = seat.take();
        }
        black_box(&mut burst);
        for object in burst.0.iter_mut().filter_map(Option::take) {
            seat.free(object);
            freed += 1;
        }
    }
    freed
}

#[inline(never)]
fn in_bursts<const SHELL: usize, const HEAD: usize, H: Object>(
    seat: &mut impl Seat<H>,
    objects: u64,
) -> u64 {
    let mut burst = empty();
    let mut sum = 0;
    for round in 0..objects / BURST as u64 {
        seat.begin();
        take(seat, &mut burst);
        write::<SHELL, HEAD, _>(&mut burst, round);
        black_box(&mut burst);
        // One object speaks for its burst: reading all would be work that the row does not have.
        sum += read::<SHELL, HEAD, _>(&burst.0[..1], BURST as u64);
        seat.free_burst(&mut burst);
        seat.end();
    }
    sum
}

#[inline(never)]
fn send<const SHELL: usize, const HEAD: usize, H: Object>(
    seat: &mut impl Seat<H>,
    lane: &mut Lane<H>,
    objects: u64,
) {
    for round in 0..objects / BURST as u64 {
        let mut burst = empty();
        seat.begin();
        take(seat, &mut burst);
        write::<SHELL, HEAD, _>(&mut burst, round);
        push(lane, burst);
        seat.end();
    }
}

#[inline(never)]
fn receive<const SHELL: usize, const HEAD: usize, H: Object>(
    seat: &mut impl Seat<H>,
    lane: &mut Lane<H>,
    objects: u64,
) -> u64 {
    let (mut sum, mut left) = (0, objects / BURST as u64);
    while left > 0 {
        let Ok(mut burst) = lane.coming.pop() else { continue };
        seat.begin();
        sum += read::<SHELL, HEAD, _>(&burst.0, 1);
        seat.free_burst(&mut burst);
        seat.end();
        left -= 1;
    }
    sum
}

/// Sends and receives until as much went either way.
#[inline(never)]
fn exchange<H: Object>(seat: &mut impl Seat<H>, lane: &mut Lane<H>, objects: u64) -> u64 {
    let bursts = objects / BURST as u64;
    let (mut sent, mut received) = (0, 0);
    let (mut burst, mut have) = (empty(), 0);
    while sent < bursts || received < bursts {
        seat.begin();
        if sent < bursts {
            // What there is may be fewer: the rest has not come home yet.
            have = seat.take_burst(&mut burst, have);
            if have == BURST && !lane.out.is_full() {
                push(lane, std::mem::replace(&mut burst, empty()));
                (have, sent) = (0, sent + 1);
            }
        }
        if let Ok(mut came) = lane.coming.pop() {
            seat.free_burst(&mut came);
            received += 1;
        }
        seat.end();
    }
    received * BURST as u64
}

/// Takes a whole burst, and waits for what is under way.
#[inline(always)]
fn take<H>(seat: &mut impl Seat<H>, burst: &mut Burst<H>) {
    let mut have = seat.take_burst(burst, 0);
    while have < BURST {
        seat.begin();
        have = seat.take_burst(burst, have);
    }
}

#[inline(always)]
fn push<H>(lane: &mut Lane<H>, burst: Burst<H>) {
    while lane.out.is_full() {}
    let pushed = lane.out.push(burst);
    debug_assert!(pushed.is_ok(), "there was room, and nobody else pushes");
}

#[inline(always)]
fn write<const SHELL: usize, const HEAD: usize, H: Object>(burst: &mut Burst<H>, round: u64) {
    if SHELL > 0 {
        for (object, seq) in burst.0.iter_mut().flatten().zip(round * BURST as u64..) {
            object.write::<SHELL, HEAD>(seq);
        }
    }
}

/// The sum of what the objects say, or `counts` for each where nothing was written.
#[inline(always)]
fn read<const SHELL: usize, const HEAD: usize, H: Object>(
    objects: &[Option<H>],
    counts: u64,
) -> u64 {
    if SHELL == 0 {
        return objects.len() as u64 * counts;
    }
    objects.iter().flatten().map(H::read::<SHELL, HEAD>).sum()
}

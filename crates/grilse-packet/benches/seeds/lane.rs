//! What passes between the two threads of a workload: bursts of skbs, and how many are done with.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use grilse_packet::Skb;
use rtrb::{Consumer, Producer, RingBuffer};

/// Skbs that travel together, half a NAPI poll.
pub(crate) const BURST: usize = 32;

/// Bursts under way in one direction at most: 1024 skbs, a queue of a common size.
const RING: usize = 32;

/// Up to [`BURST`] skbs, on cache lines of their own.
#[repr(align(64))]
pub(crate) struct Burst(pub(crate) [Option<Skb>; BURST]);

impl Burst {
    pub(crate) const fn empty() -> Self {
        Self([const { None }; BURST])
    }
}

/// One side's ends of the rings, and the count of completions that both see.
pub(crate) struct Lane {
    out: Producer<Burst>,
    coming: Consumer<Burst>,
    completed: Arc<Completed>,
}

/// Skbs of this round that the second side is done with. On two lines: processors fetch them in
/// pairs.
#[repr(align(128))]
struct Completed(AtomicU64);

impl Lane {
    /// The lanes of both sides.
    pub(crate) fn pair() -> (Self, Self) {
        let (out, there) = RingBuffer::new(RING);
        let (back, coming) = RingBuffer::new(RING);
        let completed = Arc::new(Completed(AtomicU64::new(0)));
        let first = Self { out, coming, completed: Arc::clone(&completed) };
        (first, Self { out: back, coming: there, completed })
    }

    /// Sends a burst, once there is room.
    #[inline(always)]
    pub(crate) fn push(&mut self, burst: Burst) {
        while self.out.is_full() {}
        let pushed = self.out.push(burst);
        debug_assert!(pushed.is_ok(), "there was room, and nobody else pushes");
    }

    pub(crate) fn has_room(&self) -> bool {
        !self.out.is_full()
    }

    /// The next burst, once there is one.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Burst {
        loop {
            if let Ok(burst) = self.coming.pop() {
                return burst;
            }
        }
    }

    pub(crate) fn try_pop(&mut self) -> Option<Burst> {
        self.coming.pop().ok()
    }

    /// Says that so many of this round are done with.
    pub(crate) fn complete(&self, skbs: u64) {
        self.completed.0.store(skbs, Ordering::Release);
    }

    /// How many are.
    pub(crate) fn completed(&self) -> u64 {
        self.completed.0.load(Ordering::Acquire)
    }
}

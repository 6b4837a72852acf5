//! A number of frames that several workers receive between them, and no more.

use std::sync::atomic::{AtomicU64, Ordering};

/// How many frames are left to receive. Workers reserve a poll's worth before it and return what it
/// did not bring, so together they take exactly what is asked for.
#[derive(Debug)]
pub struct Limit {
    left: AtomicU64,
    /// Frames not received yet: those left, and those reserved.
    due: AtomicU64,
}

impl Limit {
    /// `frames` in all.
    pub fn new(frames: u64) -> Self {
        Self { left: AtomicU64::new(frames), due: AtomicU64::new(frames) }
    }

    /// Whether all have been received.
    pub fn is_reached(&self) -> bool {
        self.due.load(Ordering::Relaxed) == 0
    }

    /// Up to `most` of what is left, for the caller alone.
    pub(crate) fn reserve(&self, most: usize) -> usize {
        let relaxed = Ordering::Relaxed;
        let taken =
            self.left.fetch_update(relaxed, relaxed, |left| Some(left.saturating_sub(most as u64)));
        // The update never refuses.
        taken.map_or(0, |left| left.min(most as u64) as usize)
    }

    /// Of what was reserved, so many were received. What a device took beyond is nobody's due.
    pub(crate) fn settle(&self, reserved: usize, received: usize) {
        let received = received.min(reserved);
        self.left.fetch_add((reserved - received) as u64, Ordering::Relaxed);
        self.due.fetch_sub(received as u64, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_take_exactly_what_is_asked_for() {
        let limit = Limit::new(100_000);
        let received = std::thread::scope(|scope| {
            let take = |step: usize| {
                let mut received = 0;
                while !limit.is_reached() {
                    let reserved = limit.reserve(64);
                    let came = reserved.min(step);
                    limit.settle(reserved, came);
                    received += came;
                }
                received
            };
            let (a, b) = (scope.spawn(move || take(1)), scope.spawn(move || take(50)));
            a.join().unwrap() + b.join().unwrap()
        });
        assert_eq!(received, 100_000);
    }
}

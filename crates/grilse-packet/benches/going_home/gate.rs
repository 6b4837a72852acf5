//! Where two threads start and stop the clock, awake: a wake-up costs more than many objects.

use std::sync::atomic::{AtomicU32, Ordering};

/// A word that either thread waits at for the other. It begins shut.
pub(crate) struct Gate(AtomicU32);

/// Nobody works, or the work is done.
pub(crate) const SHUT: u32 = 0;
/// The second thread is awake and waits.
pub(crate) const READY: u32 = 1;
/// Both work.
pub(crate) const OPEN: u32 = 2;

impl Gate {
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(SHUT))
    }

    pub(crate) fn pass(&self, to: u32) {
        self.0.store(to, Ordering::Release);
    }

    pub(crate) fn wait(&self, until: u32) {
        while self.0.load(Ordering::Acquire) != until {}
    }
}

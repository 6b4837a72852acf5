//! The request to stop, which also wakes whoever sleeps.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{EventfdFlags, eventfd};

/// Asked of all workers of an engine at once, from any thread; cannot be taken back.
#[derive(Debug)]
pub struct Stop {
    asked: AtomicBool,
    /// Readable from the request on.
    event: OwnedFd,
}

impl Stop {
    /// Nobody has asked yet.
    ///
    /// # Errors
    /// Where the system has no descriptors left.
    pub fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Self { asked: AtomicBool::new(false), event })
    }

    /// Asks all to stop.
    pub fn ask(&self) {
        self.asked.store(true, Ordering::Release);
        // It fails only where the counter is full, and then the descriptor is readable.
        _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
    }

    /// Whether somebody has asked.
    pub fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Acquire)
    }
}

impl AsFd for Stop {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

//! A network namespace for the calling thread.

use std::io;

use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Moves the calling thread into a network namespace of its own, which goes when the thread has
/// ended and its devices are closed.
///
/// # Errors
/// `EPERM` without `CAP_SYS_ADMIN`.
pub(crate) fn enter_new() -> io::Result<()> {
    // SAFETY: the call is unsafe for the sake of `FILES`, which takes descriptors away from other
    // threads. `NEWNET` alone leaves the table of descriptors shared.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?;
    Ok(())
}

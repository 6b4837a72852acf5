//! Copying packet bytes, and the count of it.
//!
//! Moving packets must not copy payload. Every copy that the skb makes goes through here, so that a
//! test, or a user with a suspicion, can count.

use std::cell::Cell;
use std::ops::Range;

thread_local! {
    static COPIED: Cell<u64> = const { Cell::new(0) };
}

/// How many packet bytes this thread has copied within or between skbs: pulled headers, and what
/// copy-on-write took.
pub fn copied_bytes() -> u64 {
    COPIED.get()
}

/// Moves the bytes at `from` to begin at `to`.
pub(crate) fn copy_within(bytes: &mut [u8], from: Range<usize>, to: usize) {
    COPIED.set(COPIED.get() + from.len() as u64);
    bytes.copy_within(from, to);
}

/// Copies all of `from` to the front of `to`.
pub(crate) fn copy(to: &mut [u8], from: &[u8]) {
    COPIED.set(COPIED.get() + from.len() as u64);
    to[..from.len()].copy_from_slice(from);
}

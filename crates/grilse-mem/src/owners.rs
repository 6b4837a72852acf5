//! A count of owners, as `Arc` keeps one: cells and frames share this file and its orderings.
//!
//! Invariant: the count is at least one while an owner exists. It does not know what is owned, and
//! frees nothing.

use crate::sync::{AtomicU32, Ordering, edge, fence};

/// How many own a thing.
#[derive(Debug)]
pub(crate) struct Owners(AtomicU32);

/// More owners than any machine holds. What lies above it leaves room for every thread that is
/// just being refused: a wrap would free the thing under its owners.
const MOST: u32 = u32::MAX / 2;

impl Owners {
    pub(crate) fn new(count: u32) -> Self {
        Self(AtomicU32::new(count))
    }

    /// How many there are, at some moment during the call.
    pub(crate) fn count(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// Whether the caller, an owner, is the only one. If so, all that others did with the thing
    /// happened before.
    #[inline]
    pub(crate) fn is_sole(&self) -> bool {
        // Acquire: pairs with the release in `leave`.
        self.0.load(edge("sole", Ordering::Acquire)) == 1
    }

    /// One owner more, made by one that is there.
    #[inline]
    pub(crate) fn join(&self) {
        // Relaxed: who makes the new owner keeps the thing alive; the count guards nothing yet.
        if self.0.fetch_add(1, Ordering::Relaxed) >= MOST {
            self.refuse();
        }
    }

    /// One owner less; says whether it was the last. If so, all that others did with the thing
    /// happened before, and the count is the caller's to reset.
    #[inline]
    pub(crate) fn leave(&self) -> bool {
        // The sole owner needs no locked instruction: nobody is left to join.
        if self.is_sole() {
            return true;
        }
        // Release: what we did with the thing happens before the last owner frees it.
        if self.0.fetch_sub(1, edge("leave", Ordering::Release)) != 1 {
            return false;
        }
        // Acquire: pairs with the releases of all other owners.
        fence(Ordering::Acquire);
        true
    }

    /// Begins to count anew, for a thing that the caller has to itself.
    #[inline]
    pub(crate) fn reset(&self) {
        // Relaxed: nobody else is there to see it.
        self.0.store(1, Ordering::Relaxed);
    }

    #[cold]
    #[inline(never)]
    fn refuse(&self) -> ! {
        // Taken back before the panic, which a caller may catch and try again.
        self.0.fetch_sub(1, Ordering::Relaxed);
        panic!("too many owners of one object");
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn refused_owners_are_not_counted() {
        let owners = Owners::new(MOST - 1);
        owners.join();
        for _ in 0..3 {
            assert!(std::panic::catch_unwind(|| owners.join()).is_err());
            assert_eq!(owners.count(), MOST, "a refusal leaves the count as it was");
        }
        assert!(!owners.leave());
        owners.join();
    }

    #[test]
    fn exactly_one_leaves_last() {
        let owners = Owners::new(1);
        (0..9).for_each(|_| owners.join());
        let last = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..10).map(|_| scope.spawn(|| owners.leave())).collect();
            threads.into_iter().map(|t| t.join().unwrap()).filter(|l| *l).count()
        });
        assert_eq!(last, 1);
        owners.reset();
        assert!(owners.is_sole());
    }
}

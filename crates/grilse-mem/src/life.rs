//! Which life of a cell a handle is of: kept in checked builds (feature `audit`), and free otherwise.
//!
//! Whenever an object leaves its user its cell begins another life, and the bytes that mean nothing
//! while it is free are filled with [`POISON`]. A handle knows the life that it was made in. So a
//! handle that outlived its object is found as it is used, and a write to a free object as that is
//! next taken.
//!
//! Six bits of the life stand in the handle, in the low bits of its pointer, which the alignment of
//! cells leaves zero: a handle that is late by a multiple of 64 lives is not found.

use std::ptr::NonNull;

use crate::place::Place;

/// What free bytes are filled with (`POISON_FREE` of the kernel).
pub(crate) const POISON: u8 = 0x6b;

/// A pointer to a cell, and the life of the cell that it is of.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Mark<C>(NonNull<C>);

impl<C> Clone for Mark<C> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<C> Copy for Mark<C> {}

impl<C> Mark<C> {
    #[inline(always)]
    pub(crate) fn new(at: NonNull<C>, life: &Life) -> Self {
        Self(life.mark(at))
    }

    #[inline(always)]
    pub(crate) fn at(self) -> NonNull<C> {
        Life::unmark(self.0)
    }

    /// Checked builds end the process where the cell, which is in `place`, is in another life.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn check(self, life: &Life, place: Place) {
        life.check(self.0, place);
    }
}

#[cfg(feature = "audit")]
mod kept {
    use std::num::NonZero;
    use std::panic::Location;
    use std::ptr::NonNull;
    use std::sync::atomic::{AtomicU8, Ordering};

    use super::POISON;
    use crate::place::Place;

    const BITS: usize = 0x3f;

    /// How often a cell was freed. Comes to be as zeroed memory, which is the first life.
    #[derive(Debug)]
    pub(crate) struct Life(AtomicU8);

    impl Life {
        pub(crate) fn first() -> Self {
            Self(AtomicU8::new(0))
        }

        pub(crate) fn is_first(&self) -> bool {
            self.0.load(Ordering::Relaxed) == 0
        }

        /// Begins the next life. For the owner.
        pub(crate) fn end(&self) {
            // 64 follows upon 255: the same six bits as of 0, which is the first life's alone.
            let next = self.0.load(Ordering::Relaxed).checked_add(1).unwrap_or(64);
            // Relaxed: the life follows the object, whose own moves carry the edges.
            self.0.store(next, Ordering::Relaxed);
        }

        pub(super) fn mark<C>(&self, at: NonNull<C>) -> NonNull<C> {
            at.map_addr(|addr| addr | self.bits())
        }

        pub(super) fn unmark<C>(marked: NonNull<C>) -> NonNull<C> {
            // No cell stands at address 0, so there is something left.
            marked.map_addr(|addr| NonZero::new(addr.get() & !BITS).unwrap_or(addr))
        }

        #[track_caller]
        pub(super) fn check<C>(&self, marked: NonNull<C>, place: Place) {
            let (of, is) = (marked.addr().get() & BITS, self.bits());
            if of != is {
                let at = Location::caller();
                eprintln!(
                    "audit: a handle of life {of} is used in life {is}, place: {place} ({at})"
                );
                std::process::abort();
            }
        }

        fn bits(&self) -> usize {
            usize::from(self.0.load(Ordering::Relaxed)) & BITS
        }
    }

    /// Ends the process where these bytes, which leave `place`, changed since they were poisoned.
    pub(crate) fn check_poison(bytes: &[u8], place: Place) {
        if let Some(at) = bytes.iter().position(|byte| *byte != POISON) {
            eprintln!("audit: byte {at} of an object was written to while it was in {place}");
            std::process::abort();
        }
    }
}

#[cfg(not(feature = "audit"))]
mod kept {
    use std::ptr::NonNull;

    use crate::place::Place;

    #[derive(Debug)]
    pub(crate) struct Life;

    impl Life {
        pub(crate) fn first() -> Self {
            Self
        }

        pub(crate) fn is_first(&self) -> bool {
            true
        }

        pub(crate) fn end(&self) {}

        #[inline(always)]
        pub(super) fn mark<C>(&self, at: NonNull<C>) -> NonNull<C> {
            at
        }

        #[inline(always)]
        pub(super) fn unmark<C>(marked: NonNull<C>) -> NonNull<C> {
            marked
        }

        #[inline(always)]
        pub(super) fn check<C>(&self, _marked: NonNull<C>, _place: Place) {}
    }

    pub(crate) fn check_poison(_bytes: &[u8], _place: Place) {}
}

pub(crate) use kept::{Life, check_poison};

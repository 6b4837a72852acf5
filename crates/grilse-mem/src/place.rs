//! Where an object is: one byte for each, kept in checked builds (feature `audit`) and free
//! otherwise.

use std::fmt;

/// The places that an object can be in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Place {
    /// With its user, or just made.
    InUse = 0,
    /// In a thread's cache.
    Cache = 1,
    /// In a thread's outbox, to be posted.
    Outbox = 2,
    /// At its home, to be collected.
    Inbox = 3,
    /// In the depot.
    Depot = 4,
}

impl Place {
    /// All places, in the order of their numbers.
    pub const ALL: [Self; 5] = [Self::InUse, Self::Cache, Self::Outbox, Self::Inbox, Self::Depot];
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InUse => "in use",
            Self::Cache => "a cache",
            Self::Outbox => "an outbox",
            Self::Inbox => "an inbox",
            Self::Depot => "the depot",
        })
    }
}

/// How many objects are in each place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Places([u32; Place::ALL.len()]);

impl Places {
    /// Objects in `place`.
    pub fn at(&self, place: Place) -> u32 {
        self.0[place as usize]
    }

    pub(crate) fn count(&mut self, byte: &PlaceByte) {
        self.0[byte.place() as usize] += 1;
    }
}

impl std::iter::Sum for Places {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::default(), |sum, part| {
            Self(std::array::from_fn(|place| sum.0[place] + part.0[place]))
        })
    }
}

#[cfg(feature = "audit")]
mod byte {
    use std::sync::atomic::{AtomicU8, Ordering};

    use super::Place;

    /// Comes to be as zeroed memory, which is [`Place::InUse`].
    #[derive(Debug)]
    pub(crate) struct PlaceByte(AtomicU8);

    impl PlaceByte {
        pub(crate) fn new() -> Self {
            Self(AtomicU8::new(Place::InUse as u8))
        }

        #[track_caller]
        pub(crate) fn step(&self, from: Place, to: Place) {
            // Relaxed: the byte follows the object, whose own moves carry the edges.
            let (old, new) = (from as u8, to as u8);
            let swap = self.0.compare_exchange(old, new, Ordering::Relaxed, Ordering::Relaxed);
            if let Err(is) = swap {
                let is = Place::ALL[usize::from(is)];
                let at = std::panic::Location::caller();
                eprintln!("audit: an object moves from {from} to {to}, but is in {is} ({at})");
                std::process::abort();
            }
        }

        /// Ends the process where the object is elsewhere.
        #[track_caller]
        pub(crate) fn check(&self, place: Place) {
            let is = self.place();
            if is != place {
                let at = std::panic::Location::caller();
                eprintln!("audit: an object is used as if {place}, but its place is {is} ({at})");
                std::process::abort();
            }
        }

        pub(crate) fn place(&self) -> Place {
            Place::ALL[usize::from(self.0.load(Ordering::Relaxed))]
        }
    }
}

#[cfg(not(feature = "audit"))]
mod byte {
    use super::Place;

    #[derive(Debug)]
    pub(crate) struct PlaceByte;

    impl PlaceByte {
        pub(crate) fn new() -> Self {
            Self
        }

        #[inline(always)]
        pub(crate) fn step(&self, _from: Place, _to: Place) {}

        #[inline(always)]
        pub(crate) fn check(&self, _place: Place) {}

        pub(crate) fn place(&self) -> Place {
            Place::InUse
        }
    }
}

pub(crate) use byte::PlaceByte;

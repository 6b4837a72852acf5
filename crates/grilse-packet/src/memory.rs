//! The memory that skbs are made of, and the seats at which threads work with it.

use std::sync::Mutex;

use grilse_mem::{Counted, Depot, Home, Ledger, MapError, Node, Role};

use crate::shell::{Data, Shell};

/// Shells and data for a number of skbs, shared by all workers of an engine. Lasts as long as the
/// process.
#[derive(Debug)]
pub struct Memory {
    pub(crate) shells: &'static Depot<Shell>,
    pub(crate) data: &'static Depot<Counted<Data>>,
    homes: Mutex<Vec<&'static Home<Shell>>>,
}

/// The right to work with a memory from one thread: made anywhere, sat down at
/// ([`Ctx::new`](crate::Ctx::new)) on the thread that will use it.
#[derive(Debug)]
#[must_use]
pub struct Seat {
    pub(crate) memory: &'static Memory,
    pub(crate) home: &'static Home<Shell>,
}

/// Where the objects of a [`Memory`] are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ledgers {
    /// The metadata blocks: one for each skb.
    pub shells: Ledger,
}

impl Memory {
    /// Memory for `skbs` packets, on `node` where one is given. Pages are touched as they are first
    /// needed.
    ///
    /// # Errors
    /// As [`MapError`] tells.
    pub fn new(skbs: u32, node: Option<Node>) -> Result<&'static Self, MapError> {
        // Clones leave shells without data, and data that waits in the caches of those who cloned:
        // up to two magazines each. Half as much again keeps all others from starving as long as
        // there are 240 skbs for each context; pages that are never needed are never touched.
        let data = skbs.saturating_add(skbs / 2).saturating_add(4 * 64);
        Ok(Box::leak(Box::new(Self {
            shells: Depot::new(skbs, node, Shell::fresh)?,
            data: Depot::new(data, node, Data::fresh)?,
            homes: Mutex::new(Vec::new()),
        })))
    }

    /// A new seat. Its number counts from 0.
    pub fn seat(&'static self, role: Role) -> Seat {
        let mut homes = self.homes.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let home = Home::new(role, homes.len() as u16, self.shells);
        homes.push(home);
        Seat { memory: self, home }
    }

    /// Where the objects are; exact when all contexts have ended their rounds and nothing is under
    /// way.
    pub fn ledgers(&self) -> Ledgers {
        let homes = self.homes.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        Ledgers { shells: Ledger::count(self.shells, homes.iter().copied()) }
    }

    /// How many skbs there can be.
    pub fn capacity(&self) -> u32 {
        self.shells.capacity()
    }
}

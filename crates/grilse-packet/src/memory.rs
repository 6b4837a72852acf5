//! The memory that skbs are made of, and the seats at which threads work with it.

use std::sync::{Mutex, MutexGuard};

use grilse_mem::{
    BadPolicy, Counted, Depot, Home, Ledger, MapError, Node, Places, Policy, Role, Switch,
};

use crate::shell::{Data, Shell};

/// Shells and data for a number of skbs, shared by all workers of an engine, and the policy that
/// they are handled by. Lasts as long as the process.
#[derive(Debug)]
pub struct Memory {
    pub(crate) shells: &'static Depot<Shell>,
    pub(crate) data: &'static Depot<Counted<Data>>,
    pub(crate) switch: Switch,
    homes: Mutex<Vec<Homes>>,
}

/// The homes of one seat.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Homes {
    pub(crate) shells: &'static Home<Shell>,
    pub(crate) data: &'static Home<Counted<Data>>,
    taken: bool,
}

/// The right to work with a memory from one thread: made anywhere, sat down at
/// ([`Ctx::new`](crate::Ctx::new)) on the thread that will use it.
#[derive(Debug)]
#[must_use]
pub struct Seat {
    pub(crate) memory: &'static Memory,
    pub(crate) homes: Homes,
}

impl Drop for Seat {
    /// A seat that stands empty is given to the next who asks: homes are never freed.
    fn drop(&mut self) {
        let id = usize::from(self.homes.shells.id());
        self.memory.homes()[id].taken = false;
    }
}

/// Where the objects of a [`Memory`] are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ledgers {
    /// The metadata blocks: one for each skb.
    pub shells: Ledger,
    /// Small heads and shared info, those apart from their shells: what clones left behind. The
    /// data of a shell that is not in use counts as in use here.
    pub data: Ledger,
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
            switch: Switch::new(),
            homes: Mutex::new(Vec::new()),
        })))
    }

    /// A seat that nobody has. Its number counts from 0.
    pub fn seat(&'static self, role: Role) -> Seat {
        let mut homes = self.homes();
        let free = homes.iter_mut().find(|homes| !homes.taken && homes.shells.role() == role);
        if let Some(free) = free {
            free.taken = true;
            return Seat { memory: self, homes: *free };
        }
        let id = homes.len() as u16;
        let new = Homes {
            shells: Home::new(role, id, self.shells),
            data: Home::new(role, id, self.data),
            taken: true,
        };
        homes.push(new);
        Seat { memory: self, homes: new }
    }

    /// Puts a policy in force: for each context with the round that it begins next.
    ///
    /// # Errors
    /// Where a knob is out of range; then nothing changes.
    pub fn set_policy(&self, policy: Policy) -> Result<(), BadPolicy> {
        self.switch.set(policy)
    }

    /// Where the objects are; exact when all contexts have ended their rounds and nothing is under
    /// way.
    pub fn ledgers(&self) -> Ledgers {
        let homes = self.homes();
        Ledgers {
            shells: Ledger::count(self.shells, homes.iter().map(|homes| homes.shells)),
            data: Ledger::count(self.data, homes.iter().map(|homes| homes.data)),
        }
    }

    /// Where the shells are by the bytes that they carry, in builds with feature `audit`: an
    /// independent count of the same.
    pub fn places(&self) -> Places {
        self.shells.places()
    }

    /// How many skbs there can be.
    pub fn capacity(&self) -> u32 {
        self.shells.capacity()
    }

    fn homes(&self) -> MutexGuard<'_, Vec<Homes>> {
        // What the lock guards is whole at every step, also where somebody panicked with it.
        self.homes.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

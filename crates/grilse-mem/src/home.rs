//! Homes: who allocated an object, and how it gets back to them.
//!
//! Every thread or device that allocates has a home. An object is stamped with the home of whoever
//! took it; whoever frees it elsewhere posts it there. Homes are never freed: an object that comes
//! late still finds its home's word, and learns from it that nobody lives there any more.

use crate::arena::{Recycle, Slot};
use crate::depot::Depot;
use crate::list::{TakeAll, Taken};
use crate::sync::{AtomicU32, Ordering};

/// What kind of owner a home has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A pinned thread that runs poll rounds.
    Worker,
    /// Any other thread: it allocates from a cache of its own, and drains its inbox itself.
    Foreign,
    /// A device, which hands back what it has sent.
    Device,
}

/// The address that objects of one class carry.
#[derive(Debug)]
pub struct Home<T: Recycle> {
    role: Role,
    id: u16,
    depot: &'static Depot<T>,
    inbox: TakeAll,
    /// How many objects the owner's cache holds, as it last said.
    cached: AtomicU32,
}

impl<T: Recycle> Home<T> {
    /// A home for the owner number `id`. It lasts as long as the process.
    pub fn new(role: Role, id: u16, depot: &'static Depot<T>) -> &'static Self {
        let (inbox, cached) = (TakeAll::new(), AtomicU32::new(0));
        Box::leak(Box::new(Self { role, id, depot, inbox, cached }))
    }

    /// What kind of owner it has.
    pub fn role(&self) -> Role {
        self.role
    }

    /// The owner's number.
    pub fn id(&self) -> u16 {
        self.id
    }

    /// Where the objects of this home are made.
    pub fn depot(&self) -> &'static Depot<T> {
        self.depot
    }

    /// Sends one object home. May be called on any thread, in a signal handler and while unwinding:
    /// no lock, no allocation; only where the owner is gone does the object go to the depot.
    pub fn post(&self, slot: Slot<T>) {
        let objects = self.depot.objects();
        let index = match objects.park(slot) {
            Ok(index) => index,
            Err(foreign) => {
                // An object of another depot was stamped with this home: a fault of ours. It stays
                // out of use, for its depot is unknown here.
                debug_assert!(false, "an object came to a home of another depot");
                return std::mem::forget(foreign);
            }
        };
        if self.inbox.push(objects.links(), index).is_err()
            && let Some(slot) = objects.unpark(index)
        {
            self.depot.give_one(slot);
        }
    }

    /// Takes what came home. For the owner; what it does not take from the iterator goes to the
    /// depot.
    pub fn collect(&self) -> impl Iterator<Item = Slot<T>> {
        Arrivals { depot: self.depot, indices: self.inbox.take(self.depot.objects().links()) }
    }

    /// Closes the home: what comes from now on goes to the depot, and what came before goes there
    /// now. For the owner, when it stops.
    pub fn close(&self) {
        let indices = self.inbox.close(self.depot.objects().links());
        drop(Arrivals { depot: self.depot, indices });
        self.cached.store(0, Ordering::Relaxed);
    }

    /// How many objects came home and wait.
    pub fn waiting(&self) -> u32 {
        self.inbox.len()
    }

    /// How many objects the owner's cache held when it last said so.
    pub fn cached(&self) -> u32 {
        self.cached.load(Ordering::Relaxed)
    }

    /// Says how many objects the owner's cache holds.
    pub fn publish_cached(&self, objects: usize) {
        // Relaxed: a figure for the ledger, which is exact when all are idle.
        self.cached.store(objects as u32, Ordering::Relaxed);
    }
}

/// Objects that came home, all of which end somewhere.
struct Arrivals<T: Recycle> {
    depot: &'static Depot<T>,
    indices: Taken<'static>,
}

impl<T: Recycle> Iterator for Arrivals<T> {
    type Item = Slot<T>;

    #[inline]
    fn next(&mut self) -> Option<Slot<T>> {
        self.indices.find_map(|index| self.depot.objects().unpark(index))
    }
}

impl<T: Recycle> Drop for Arrivals<T> {
    fn drop(&mut self) {
        let depot = self.depot;
        self.for_each(|slot| depot.give_one(slot));
    }
}

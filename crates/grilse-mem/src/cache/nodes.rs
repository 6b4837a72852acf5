//! What a cache does about nodes, where the memory has more than one: it counts what is taken by
//! the node that each object is of, waits where virtual nodes say so, and keeps what is of another node
//! out of the front, where the policy says that.

use super::Cache;
use crate::arena::{Recycle, Slot};
use crate::magazine::Magazine;
use crate::place::Place;

impl<T: Recycle> Cache<T> {
    /// Whether the memory has other nodes than this cache's, so that whoever takes from it is to
    /// [`note`](Self::note) each object.
    pub fn has_peers(&self) -> bool {
        self.has_peers
    }

    /// Counts an object that was taken by the node that it is of, waits where that is another virtual
    /// one, and gives the object back. Apart from taking, which a memory of one node then does without
    /// asking.
    #[cold]
    #[inline(never)]
    pub fn note(&mut self, slot: Slot<T>) -> Slot<T> {
        if self.depot.is_far(&slot) {
            self.stats.locality.other += 1;
            self.depot.toll().pay(1);
        } else {
            self.stats.locality.own += 1;
        }
        slot
    }

    /// An object of another node, as this one has none left; it goes to `to`.
    #[cold]
    pub(super) fn borrow(&mut self, to: Place) -> Option<Slot<T>> {
        let slot = self.slab.take_far(to)?;
        self.stats.locality.borrowed += 1;
        Some(slot)
    }

    /// Waits for a magazine that somebody on another node filled.
    pub(super) fn pay_for(&self, magazine: &Magazine<T>) {
        let sender = magazine.sender.map(|home| home.depot());
        if self.has_peers && sender.is_some_and(|depot| !std::ptr::eq(depot, self.depot)) {
            self.depot.toll().pay(1);
        }
    }

    /// Gives objects of another node, in [`Place::Cache`], to the depots there, where the policy says
    /// so; returns how many those were.
    pub(super) fn sort(&mut self, magazine: &mut Magazine<T>) -> usize {
        let before = magazine.len();
        if self.sorts {
            let Self { depot, slab, .. } = self;
            magazine.retain(|slot| match depot.is_far(&slot) {
                true => {
                    slab.give(slot, Place::Cache);
                    None
                }
                false => Some(slot),
            });
        }
        before - magazine.len()
    }

    /// Keeps an object of another home; but one of another node goes there, where the policy says so.
    pub(super) fn adopt_one(&mut self, slot: Slot<T>) {
        let far = self.has_peers && self.depot.is_far(&slot);
        if far && self.sorts {
            self.stats.to_depot += 1;
        } else {
            self.stats.adopted += 1;
            self.stats.locality.adopted += u64::from(far);
        }
        self.put(slot);
    }

    /// The same for a magazine of objects in [`Place::Cache`].
    pub(super) fn adopt_all(&mut self, mut magazine: Slot<Magazine<T>>) {
        let given = self.sort(&mut magazine);
        if self.has_peers {
            let far = magazine.count(|slot| self.depot.is_far(slot));
            self.stats.locality.adopted += far as u64;
        }
        self.stats.to_depot += given as u64;
        self.stats.adopted += magazine.len() as u64;
        magazine.for_each_mut(|object| object.stamp(self.home));
        self.keep(magazine);
    }
}

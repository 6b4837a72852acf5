//! The slab: what stands between a thread's front and the depot, in one of four shapes.
//!
//! Each thread has its own end of it; what the ends share stands in the depot. Whichever shape it
//! has, a free object here counts as in the depot ([`Place::Depot`]), and a thread that turns to
//! another shape first gives all that its end holds to the depot's stock, where every shape looks
//! when it has nothing left.
//!
//! An end holds objects of its own node only: one of another node goes to the depot there, as SLUB
//! and SLAB send it to its node, though here always under that node's lock.

mod array;
mod sheaf;
mod slub;
mod thread;

use crate::arena::{Recycle, Slot};
use crate::depot::Depot;
use crate::place::Place;
use crate::policy::{Policy, SlabModel};

use array::Array;
use sheaf::Sheaf;
use slub::Cpu;
use thread::Thread;

pub(crate) use slub::Slub;

/// A thread's end of the slab.
#[derive(Debug)]
pub(crate) enum Slab<T: Recycle> {
    Sheaf(Sheaf<T>),
    Slub(Cpu<T>),
    Array(Array<T>),
    Thread(Thread<T>),
}

/// The same call for whichever shape it is.
macro_rules! each {
    ($slab:expr, $end:ident => $call:expr) => {
        match $slab {
            Slab::Sheaf($end) => $call,
            Slab::Slub($end) => $call,
            Slab::Array($end) => $call,
            Slab::Thread($end) => $call,
        }
    };
}

impl<T: Recycle> Slab<T> {
    /// An end that holds nothing, of the shape that the policy names.
    pub(crate) fn new(policy: &Policy, depot: &'static Depot<T>) -> Self {
        match policy.slab_model {
            SlabModel::Sheaf => Self::Sheaf(Sheaf::new(depot)),
            SlabModel::Slub => Self::Slub(Cpu::new(policy, depot)),
            SlabModel::Slab => Self::Array(Array::new(depot)),
            SlabModel::Arena => Self::Thread(Thread::new(depot)),
        }
    }

    /// Takes over what the policy says of this shape.
    pub(crate) fn tune(&mut self, policy: &Policy) {
        if let Self::Slub(cpu) = self {
            cpu.tune(policy);
        }
    }

    /// An object, which goes to `to`; `None` when the class is exhausted.
    #[inline]
    pub(crate) fn take(&mut self, to: Place) -> Option<Slot<T>> {
        let mut slot = each!(self, end => end.take())?;
        slot.step(Place::Depot, to);
        Some(slot)
    }

    /// Takes up to `n` objects, which go to `to`, to the back of `out`.
    pub(crate) fn take_bulk(&mut self, n: usize, out: &mut Vec<Slot<T>>, to: Place) {
        let before = out.len();
        each!(self, end => out.extend((0..n).map_while(|_| end.take())));
        if cfg!(feature = "audit") {
            out[before..].iter_mut().for_each(|slot| slot.step(Place::Depot, to));
        }
    }

    /// An object of another node, which goes to `to`: for a thread whose node has none left.
    #[cold]
    pub(crate) fn take_far(&mut self, to: Place) -> Option<Slot<T>> {
        let mut slot = each!(self, end => end.depot.take_far())?;
        slot.step(Place::Depot, to);
        Some(slot)
    }

    /// Gives an object back, which was in `from`.
    #[inline]
    pub(crate) fn give(&mut self, mut slot: Slot<T>, from: Place) {
        slot.step(from, Place::Depot);
        each!(self, end => if let Some(slot) = end.depot.near(slot) {
            end.give(slot);
        });
    }

    /// Gives objects back, which were in `from`.
    pub(crate) fn give_bulk(&mut self, slots: impl Iterator<Item = Slot<T>>, from: Place) {
        let depot = each!(self, end => end.depot);
        let slots = slots.filter_map(|slot| depot.near(slot.stepped(from, Place::Depot)));
        match self {
            Self::Slub(cpu) => cpu.give_bulk(slots),
            Self::Sheaf(sheaf) => slots.for_each(|slot| sheaf.give(slot)),
            Self::Array(array) => slots.for_each(|slot| array.give(slot)),
            Self::Thread(list) => slots.for_each(|slot| list.give(slot)),
        }
    }

    /// How many objects this end holds that no other thread can reach.
    pub(crate) fn len(&self) -> usize {
        each!(self, end => end.len())
    }

    /// Gives all that this end holds to the depot's stock.
    pub(crate) fn flush(&mut self) {
        each!(self, end => end.flush());
    }
}

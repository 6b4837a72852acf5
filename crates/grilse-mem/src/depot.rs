//! The depot: where a class of objects is made, and where full and empty magazines are kept.
//!
//! Workers come here once per magazine, not once per object, so a lock does. Objects are carved
//! one magazine at a time when no full one is left: memory is touched as it is needed, and never
//! more of it than the capacity says.

use crate::arena::{Arena, Recycle, Slot};
use crate::magazine::Magazine;
use crate::place::{Place, Places};
use crate::region::{MapError, Node, Pages};
use crate::sync::{Mutex, lock};

/// The objects of one class, and the magazines that carry them.
#[derive(Debug)]
pub struct Depot<T: Recycle> {
    objects: &'static Arena<T>,
    magazines: &'static Arena<Magazine<T>>,
    make: fn(&'static Depot<T>) -> T,
    stock: Mutex<Stock<T>>,
}

#[derive(Debug)]
struct Stock<T: Recycle> {
    /// Magazines that hold something, most of them full.
    full: Vec<Slot<Magazine<T>>>,
    empty: Vec<Slot<Magazine<T>>>,
    /// Objects that came back one by one.
    loose: Vec<Slot<T>>,
}

/// Magazines beyond those that a class can fill: two for each cache, and those under way.
/// A model needs few, and pays for each.
const SPARE_MAGAZINES: u32 = if cfg!(any(loom, shuttle)) { 64 } else { 1024 };

impl<T: Recycle> Depot<T> {
    /// A depot for at most `capacity` objects, made by `make` when first needed, on `node` where
    /// one is given. `make` is called with the depot locked: it may keep the depot, but takes
    /// nothing from it, gives nothing to it, and does not panic.
    ///
    /// # Errors
    /// As [`MapError`] tells.
    pub fn new(
        capacity: u32,
        node: Option<Node>,
        make: fn(&'static Depot<T>) -> T,
    ) -> Result<&'static Self, MapError> {
        let fillable = capacity.div_ceil(Magazine::<T>::CAPACITY as u32);
        let magazines = fillable + SPARE_MAGAZINES;
        let stock = Stock {
            full: Vec::with_capacity(magazines as usize),
            empty: Vec::with_capacity(magazines as usize),
            loose: Vec::with_capacity(capacity as usize),
        };
        Ok(Box::leak(Box::new(Self {
            objects: Arena::reserve(capacity, node)?,
            magazines: Arena::reserve(magazines, node)?,
            make,
            stock: Mutex::new(stock),
        })))
    }

    /// A magazine with at least one object; `None` when every object is in use or elsewhere.
    pub fn take(&'static self) -> Option<Slot<Magazine<T>>> {
        self.take_for(Place::InUse)
    }

    /// The same, of objects that go to `place`.
    pub(crate) fn take_for(&'static self, place: Place) -> Option<Slot<Magazine<T>>> {
        let mut magazine = self.take_stocked()?;
        magazine.step_all(Place::Depot, place);
        Some(magazine)
    }

    fn take_stocked(&'static self) -> Option<Slot<Magazine<T>>> {
        let mut stock = lock(&self.stock);
        if let Some(full) = stock.full.pop() {
            return Some(full);
        }
        let mut magazine = match stock.empty.pop() {
            Some(empty) => empty,
            None => self.magazines.carve(Magazine::empty(self)).ok()?,
        };
        while !magazine.is_full() {
            let Some(slot) = stock.loose.pop().or_else(|| self.make()) else { break };
            let pushed = magazine.push(slot);
            debug_assert!(pushed.is_ok(), "a magazine that is not full takes one more");
        }
        if magazine.is_empty() {
            stock.empty.push(magazine);
            return None;
        }
        Some(magazine)
    }

    /// An empty magazine; `None` when all are under way.
    pub fn take_empty(&'static self) -> Option<Slot<Magazine<T>>> {
        if let Some(empty) = lock(&self.stock).empty.pop() {
            return Some(empty);
        }
        self.magazines.carve(Magazine::empty(self)).ok()
    }

    /// Gives back a magazine, full, part full or empty.
    pub fn give(&self, magazine: Slot<Magazine<T>>) {
        self.give_from(magazine, Place::InUse);
    }

    /// The same, of objects that come from `place`.
    pub(crate) fn give_from(&self, mut magazine: Slot<Magazine<T>>, place: Place) {
        magazine.step_all(place, Place::Depot);
        magazine.sender = None;
        let mut stock = lock(&self.stock);
        if magazine.is_empty() {
            stock.empty.push(magazine);
        } else {
            stock.full.push(magazine);
        }
    }

    /// One object, the slow way: for whoever has no cache.
    pub fn take_one(&'static self) -> Option<Slot<T>> {
        let mut stock = lock(&self.stock);
        // What was used before comes first: its memory is there already.
        let slot = match (stock.loose.pop(), stock.full.pop()) {
            (Some(loose), full) => {
                stock.full.extend(full);
                loose
            }
            (None, Some(mut magazine)) => {
                let slot = magazine.pop();
                let shelf = if magazine.is_empty() { &mut stock.empty } else { &mut stock.full };
                shelf.push(magazine);
                slot?
            }
            (None, None) => self.make()?,
        };
        slot.step(Place::Depot, Place::InUse);
        Some(slot)
    }

    /// Gives back one object, the slow way.
    pub fn give_one(&self, slot: Slot<T>) {
        slot.step(Place::InUse, Place::Depot);
        lock(&self.stock).loose.push(slot);
    }

    /// How many objects there can be.
    pub fn capacity(&self) -> u32 {
        self.objects.capacity()
    }

    /// How many objects have been made.
    pub fn made(&self) -> u32 {
        self.objects.carved()
    }

    /// How many objects lie here.
    pub fn stocked(&self) -> u32 {
        let stock = lock(&self.stock);
        let full: usize = stock.full.iter().map(|magazine| magazine.len()).sum();
        (full + stock.loose.len()) as u32
    }

    /// Which pages the objects stand on.
    pub fn pages(&self) -> Pages {
        self.objects.pages()
    }

    /// Counts the objects by the place that they were last put in; in builds with feature `audit`.
    pub fn places(&self) -> Places {
        self.objects.places()
    }

    pub(crate) fn objects(&self) -> &'static Arena<T> {
        self.objects
    }

    pub(crate) fn magazines(&self) -> &'static Arena<Magazine<T>> {
        self.magazines
    }

    fn make(&'static self) -> Option<Slot<T>> {
        // The arena is asked first, as making a value that finds no room would drop it.
        if self.objects.carved() == self.objects.capacity() {
            return None;
        }
        let slot = self.objects.carve((self.make)(self)).ok()?;
        slot.step(Place::InUse, Place::Depot);
        Some(slot)
    }
}

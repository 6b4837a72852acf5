//! The depot: where a class of objects is made, and where full and empty magazines are kept; one for
//! each node of the memory.
//!
//! Invariant: what lies in a depot stands in its node's share. Whoever gives it something else gives
//! that to the depot of the node it is of ([`Depot::near`]).
//!
//! Workers come here once per magazine, not once per object, so a lock does. Objects are carved
//! one magazine at a time when no full one is left: memory is touched as it is needed, and never
//! more of it than the capacity says.
//!
//! The slab models that replay the kernel's stand beside this stock, and give to it what they held
//! when a policy ends them. So what one model freed, another one finds here.

use std::mem;
use std::sync::OnceLock;

use crate::arena::{Arena, Recycle, Slot};
use crate::magazine::Magazine;
use crate::node::{Node, Nodes, Toll};
use crate::place::{Place, Places};
use crate::region::{MapError, Pages};
use crate::slab::Slub;
use crate::sleep::Sleep;
use crate::sync::{Mutex, MutexGuard, lock, step};

/// The objects of one class on one node, and the magazines that carry them.
#[derive(Debug)]
pub struct Depot<T: Recycle> {
    node: Node,
    /// Of the node among those of the memory.
    position: usize,
    /// Whether the memory has more than this one.
    has_peers: bool,
    /// The depots of all nodes, this one among them. Set before anybody else sees the depot.
    all: OnceLock<&'static [Depot<T>]>,
    toll: Toll,
    /// Of all nodes. This depot makes those of its share.
    objects: &'static Arena<T>,
    magazines: &'static Arena<Magazine<T>>,
    make: fn(&'static Depot<T>) -> T,
    stock: Mutex<Stock<T>>,
    /// Slabs, from the first policy on that wants them.
    slub: OnceLock<Slub<T>>,
}

#[derive(Debug)]
struct Stock<T: Recycle> {
    /// Magazines that hold something, most of them full.
    full: Vec<Slot<Magazine<T>>>,
    empty: Vec<Slot<Magazine<T>>>,
    /// Objects that came back one by one.
    loose: Vec<Slot<T>>,
    /// Those who sleep until something is given.
    starving: Vec<&'static Sleep>,
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
        Ok(&Self::for_nodes(capacity, &Nodes::one(node), make)?[0])
    }

    /// The same for each of `nodes`, in their order and with equal shares of `capacity`, rounded up to
    /// multiples of 16 as far as they go.
    ///
    /// # Errors
    /// As [`MapError`] tells.
    pub fn for_nodes(
        capacity: u32,
        nodes: &Nodes,
        make: fn(&'static Depot<T>) -> T,
    ) -> Result<&'static [Self], MapError> {
        let objects = Arena::reserve_shares(capacity, nodes)?;
        let fillable = capacity.div_ceil(Magazine::<T>::CAPACITY as u32);
        // They go round between the nodes, so none has a share of them.
        let magazines = fillable + SPARE_MAGAZINES;
        let whole = if nodes.count() == 1 { nodes.binding(0) } else { None };
        let carriers = Arena::reserve(magazines, whole)?;
        let depots = nodes.all().iter().enumerate().map(|(position, node)| Self {
            node: *node,
            position,
            has_peers: nodes.count() > 1,
            all: OnceLock::new(),
            toll: nodes.toll(),
            objects,
            magazines: carriers,
            make,
            stock: Mutex::new(Stock {
                full: Vec::with_capacity(magazines as usize),
                empty: Vec::with_capacity(magazines as usize),
                loose: Vec::with_capacity(objects.share_of(position).len()),
                starving: Vec::new(),
            }),
            slub: OnceLock::new(),
        });
        let depots: &'static [Self] = Box::leak(depots.collect());
        for depot in depots {
            depot.all.get_or_init(|| depots);
        }
        Ok(depots)
    }

    /// The node that the objects made here stand on.
    pub fn node(&self) -> Node {
        self.node
    }

    /// The depots of all nodes of this memory, this one among them.
    pub fn all(&self) -> &'static [Self] {
        self.all.get().copied().unwrap_or_default()
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
            let Some(slot) = self.take_loose_of(&mut stock) else { break };
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
        if self.has_peers {
            magazine.retain(|slot| self.near(slot));
        }
        let mut stock = lock(&self.stock);
        if magazine.is_empty() {
            stock.empty.push(magazine);
        } else {
            stock.full.push(magazine);
            feed(stock);
        }
    }

    /// One object, the slow way: for whoever has no cache. It is of another node where this one has
    /// none.
    pub fn take_one(&'static self) -> Option<Slot<T>> {
        let mut slot = self.take_single().or_else(|| self.take_far())?;
        slot.step(Place::Depot, Place::InUse);
        Some(slot)
    }

    /// One of this node, which stays in [`Place::Depot`].
    fn take_single(&'static self) -> Option<Slot<T>> {
        let mut stock = lock(&self.stock);
        // What was used before comes first: its memory is there already.
        stock.pop().or_else(|| self.take_loose_of(&mut stock))
    }

    /// One of another node, which stays in [`Place::Depot`]: for a node that has none left. One at a
    /// time, so that no more of them than are needed come among those of this node.
    #[cold]
    pub(crate) fn take_far(&'static self) -> Option<Slot<T>> {
        if !self.has_peers {
            return None;
        }
        // The next ones first, so that nodes do not all fall upon the same.
        let (before, after) = self.all().split_at(self.position);
        after[1..].iter().chain(before).find_map(|depot| {
            self.toll.pay(1);
            depot.take_single()
        })
    }

    /// The object, where it is of this node; one of another goes to the depot there. In
    /// [`Place::Depot`] before and after.
    #[inline]
    pub(crate) fn near(&self, slot: Slot<T>) -> Option<Slot<T>> {
        if self.has_peers && self.is_far(&slot) {
            self.give_far(slot);
            return None;
        }
        Some(slot)
    }

    #[cold]
    fn give_far(&self, slot: Slot<T>) {
        self.toll.pay(1);
        let depot = &self.all()[self.objects.position_of(&slot)];
        let mut stock = lock(&depot.stock);
        stock.loose.push(slot);
        feed(stock);
    }

    /// Whether an object is of another node, by its address.
    pub(crate) fn is_far(&self, slot: &Slot<T>) -> bool {
        self.objects.position_of(slot) != self.position
    }

    /// Whether another depot is of the same memory, be it of another node.
    #[cold]
    #[inline(never)]
    pub(crate) fn is_kin(&self, other: &Self) -> bool {
        std::ptr::eq(self.objects, other.objects)
    }

    /// Whether the memory has other nodes than this one.
    #[inline]
    pub(crate) fn has_peers(&self) -> bool {
        self.has_peers
    }

    /// The place of this depot among [`all`](Self::all).
    #[inline]
    pub(crate) fn position(&self) -> usize {
        self.position
    }

    /// What it costs to use another node's memory.
    pub(crate) fn toll(&self) -> Toll {
        self.toll
    }

    /// Takes up to `n` objects, for a slab model, to the back of `out`; they stay in
    /// [`Place::Depot`]. Returns how many those were.
    pub(crate) fn take_loose(&'static self, n: usize, out: &mut Vec<Slot<T>>) -> usize {
        let mut stock = lock(&self.stock);
        let before = out.len();
        out.extend((0..n).map_while(|_| stock.pop().or_else(|| self.take_loose_of(&mut stock))));
        out.len() - before
    }

    /// Gives back what a slab model held: objects of this node, in [`Place::Depot`].
    pub(crate) fn give_loose(&self, slots: impl IntoIterator<Item = Slot<T>>) {
        let mut stock = lock(&self.stock);
        stock.loose.extend(slots);
        feed(stock);
    }

    /// Makes the objects of one more slab, whose cells are neighbours; fewer where the last slab
    /// was begun by somebody else, or nothing is left. They are in [`Place::Depot`].
    pub(crate) fn make_slab(&'static self, cells: u32, out: &mut Vec<Slot<T>>) {
        // Whoever makes objects holds this lock, so those made here follow each other.
        let _stock = lock(&self.stock);
        let until = (self.made() / cells + 1) * cells;
        while self.made() < until {
            let Some(slot) = self.make() else { break };
            out.push(slot);
        }
    }

    /// The slabs of this class.
    pub(crate) fn slub(&'static self) -> &'static Slub<T> {
        self.slub.get_or_init(|| Slub::new(self.objects, self.objects.share_of(self.position)))
    }

    /// Gives back one object, the slow way.
    pub fn give_one(&self, mut slot: Slot<T>) {
        slot.step(Place::InUse, Place::Depot);
        let mut stock = lock(&self.stock);
        stock.loose.extend(self.near(slot));
        feed(stock);
    }

    /// Whether there is something to take, on any node. If not, whoever gives something wakes
    /// `sleeper`, once: who asks has said before that it starves, and the locks order the two.
    pub(crate) fn watch(&self, sleeper: &'static Sleep) -> bool {
        self.all().iter().any(|depot| {
            let mut stock = lock(&depot.stock);
            let unmade = depot.made() < depot.capacity();
            let in_slabs = || depot.slub.get().is_some_and(|slub| slub.free(depot.made()) > 0);
            if unmade || !stock.full.is_empty() || !stock.loose.is_empty() || in_slabs() {
                return true;
            }
            stock.starving.push(sleeper);
            false
        })
    }

    /// Takes back what [`watch`](Self::watch) asked for.
    pub(crate) fn unwatch(&self, sleeper: &'static Sleep) {
        for depot in self.all() {
            lock(&depot.stock).starving.retain(|other| !std::ptr::eq(*other, sleeper));
        }
    }

    /// How many objects of this node there can be.
    pub fn capacity(&self) -> u32 {
        self.objects.share_of(self.position).len() as u32
    }

    /// How many objects of this node have been made.
    pub fn made(&self) -> u32 {
        self.objects.carved_of(self.position)
    }

    /// How many objects lie here, or in slabs that all can reach.
    pub fn stocked(&self) -> u32 {
        let stock = lock(&self.stock);
        let full: usize = stock.full.iter().map(|magazine| magazine.len()).sum();
        let slabs = self.slub.get().map_or(0, |slub| slub.free(self.made()));
        (full + stock.loose.len()) as u32 + slabs
    }

    /// Which pages the objects stand on.
    pub fn pages(&self) -> Pages {
        self.objects.pages()
    }

    /// Counts the objects of this node by the place that they were last put in; in builds with
    /// feature `audit`.
    pub fn places(&self) -> Places {
        self.objects.places_of(self.position)
    }

    pub(crate) fn objects(&self) -> &'static Arena<T> {
        self.objects
    }

    pub(crate) fn magazines(&self) -> &'static Arena<Magazine<T>> {
        self.magazines
    }

    /// A loose object, or one made now. Where all are made, those in slabs that no thread works on
    /// come first: the policy that put them there may be gone.
    fn take_loose_of(&'static self, stock: &mut Stock<T>) -> Option<Slot<T>> {
        if let Some(slot) = stock.loose.pop().or_else(|| self.make()) {
            return Some(slot);
        }
        self.slub.get()?.take_all(&mut stock.loose);
        stock.loose.pop()
    }

    fn make(&'static self) -> Option<Slot<T>> {
        // The arena is asked first, as making a value that finds no room would drop it.
        if self.made() == self.capacity() {
            return None;
        }
        let mut slot = self.objects.carve_of(self.position, (self.make)(self)).ok()?;
        slot.step(Place::InUse, Place::Depot);
        Some(slot)
    }
}

/// Unlocks, and wakes those who waited for what was given.
fn feed<T: Recycle>(mut stock: MutexGuard<'_, Stock<T>>) {
    if stock.starving.is_empty() || !step("feed") {
        return;
    }
    let starving = mem::take(&mut stock.starving);
    drop(stock);
    starving.into_iter().for_each(|sleeper| _ = sleeper.wake_starving());
}

impl<T: Recycle> Stock<T> {
    /// What was used before: its memory is there already.
    fn pop(&mut self) -> Option<Slot<T>> {
        if let Some(loose) = self.loose.pop() {
            return Some(loose);
        }
        let mut magazine = self.full.pop()?;
        let slot = magazine.pop();
        let shelf = if magazine.is_empty() { &mut self.empty } else { &mut self.full };
        shelf.push(magazine);
        slot
    }
}

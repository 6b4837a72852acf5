//! The kernel's deferred free of 2025 (`skb_attempt_defer_free`, one list per home): count, then
//! compare-and-swap, both per object; the home takes all at the start of each poll. Tuned as ours is:
//! no lock, one line for the list's two words, caches that refill and spill in bulk.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::object::{Llist, Owned, Store, carve};
use crate::pool::{BURST, Burst, OBJECTS, Pool, SEATS, Seat};

/// `net.core.skb_defer_max`; more, and whoever frees adopts.
const DEFER_MAX: usize = 128;
/// `NAPI_SKB_CACHE_SIZE`, and `NAPI_SKB_CACHE_BULK`, which is also `_FREE`, of kernel 6.18.
const CACHE: usize = 128;
const BULK: usize = 32;

/// `struct skb_defer_node`.
#[derive(Default)]
#[repr(align(128))]
struct Defer {
    list: Llist,
    count: AtomicUsize,
}

pub(crate) struct KernelList {
    homes: [Defer; SEATS],
    slab: Store,
}

impl KernelList {
    pub(crate) fn new() -> Self {
        Self { homes: Default::default(), slab: Store::new(carve(OBJECTS)) }
    }
}

pub(crate) struct Softnet {
    pool: &'static KernelList,
    me: usize,
    cache: Vec<Owned>,
}

impl Pool for KernelList {
    type Handle = Owned;
    type Seat = Softnet;

    fn seat(&'static self, side: usize) -> Softnet {
        Softnet { pool: self, me: side, cache: Vec::with_capacity(CACHE) }
    }

    fn in_use(&'static self) -> Option<usize> {
        Some(OBJECTS - self.slab.len())
    }
}

impl Softnet {
    #[inline]
    fn cache(&mut self, object: Owned) {
        if self.cache.len() == CACHE {
            self.pool.slab.spill(&mut self.cache, BULK);
        }
        self.cache.push(object);
    }
}

impl Seat<Owned> for Softnet {
    /// `skb_defer_free_flush`.
    #[inline]
    fn begin(&mut self) {
        let home = &self.pool.homes[self.me];
        if !home.list.is_empty() {
            let all = home.list.take();
            home.count.store(0, Ordering::Relaxed);
            all.for_each(|object| self.cache(object));
        }
    }

    #[inline]
    fn take(&mut self) -> Option<Owned> {
        if self.cache.is_empty() {
            self.pool.slab.refill(&mut self.cache, BULK);
        }
        let mut object = self.cache.pop()?;
        object.stamp(self.me);
        Some(object)
    }

    #[inline]
    fn free(&mut self, object: Owned) {
        let home = object.shell().home;
        let defer = &self.pool.homes[home];
        if home == self.me || defer.count.fetch_add(1, Ordering::Relaxed) >= DEFER_MAX {
            return self.cache(object);
        }
        defer.list.push(object);
    }

    /// `napi_skb_cache_get_bulk`.
    #[inline]
    fn take_burst(&mut self, burst: &mut Burst<Owned>, have: usize) -> usize {
        let room = BURST - have;
        if self.cache.len() < room {
            self.pool.slab.refill(&mut self.cache, BULK);
        }
        let from = self.cache.len().saturating_sub(room);
        let taken = have + self.cache.len() - from;
        for (place, mut object) in burst.0[have..].iter_mut().zip(self.cache.drain(from..)) {
            object.stamp(self.me);
            *place = Some(object);
        }
        taken
    }
}

impl Drop for Softnet {
    fn drop(&mut self) {
        self.begin();
        self.pool.slab.spill(&mut self.cache, CACHE);
        // What the other side sends from now on is the slab's too: who leaves last takes it.
        for home in &self.pool.homes {
            self.cache.extend(home.list.take());
            home.count.store(0, Ordering::Relaxed);
        }
        self.pool.slab.spill(&mut self.cache, OBJECTS);
    }
}

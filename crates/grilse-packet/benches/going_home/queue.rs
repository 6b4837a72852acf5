//! A pool as people write it: one bounded queue of free objects, which everybody takes from and
//! gives to. No caches, so every object costs two compare-and-swaps on shared lines.

use std::sync::Arc;

use crossbeam_queue::ArrayQueue;

use crate::object::{Owned, carve};
use crate::pool::{OBJECTS, Pool, Seat};

pub(crate) struct Shared(Arc<ArrayQueue<Owned>>);

impl Shared {
    pub(crate) fn new() -> Self {
        let queue = ArrayQueue::new(OBJECTS);
        for object in carve(OBJECTS) {
            queue.push(object).expect("room for all");
        }
        Self(Arc::new(queue))
    }
}

impl Pool for Shared {
    type Handle = Owned;
    type Seat = Arc<ArrayQueue<Owned>>;

    fn seat(&'static self, _side: usize) -> Self::Seat {
        Arc::clone(&self.0)
    }

    fn in_use(&'static self) -> Option<usize> {
        Some(OBJECTS - self.0.len())
    }
}

impl Seat<Owned> for Arc<ArrayQueue<Owned>> {
    #[inline]
    fn take(&mut self) -> Option<Owned> {
        self.pop()
    }

    #[inline]
    fn free(&mut self, object: Owned) {
        self.push(object).expect("room for all");
    }
}

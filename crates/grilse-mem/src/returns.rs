//! Frames that a thread has freed and not yet given back.
//!
//! They are gathered by pool. A pool whose owner works on the same thread takes its frames from
//! here ([`FramePool::take_with`]); for all others they go to the pool's return list, a chain of
//! them with one compare-and-swap, as soon as [`BULK`] are together and at the latest when the
//! round ends.
//!
//! Invariant: between rounds nothing is gathered here, save for pools whose owner last took frames
//! from here; and of those no more than `pp.cache` each.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::arena::Recycle;
use crate::frame::{FrameSlice, Frames, Stack};
use crate::home::Home;
use crate::place::Place;
use crate::policy::Policy;
use crate::pool::FramePool;

/// Frames that go to a pool of another thread at once: as many as the kernel's
/// `XDP_BULK_QUEUE_SIZE`.
const BULK: usize = 16;

/// Pools that are told apart at a time. Two that meet in one lane send each other's frames home
/// before their time, which is slower and no less right.
const LANES: usize = 8;

/// One thread's freed frames.
#[derive(Debug)]
pub struct Returns {
    /// Not 0, which stands for nobody.
    id: u32,
    lanes: [Lane; LANES],
    cache: usize,
    refill: u32,
    direct: bool,
    /// Pools whose owner found no frame here since it last slept.
    dry: Vec<&'static Frames>,
}

#[derive(Debug)]
struct Lane {
    stack: Option<Stack>,
    /// Frames at which the lane is emptied.
    most: usize,
}

impl Returns {
    /// Nothing gathered yet.
    pub fn new() -> Self {
        static IDS: AtomicU32 = AtomicU32::new(1);
        let mut returns = Self {
            // Relaxed: only told apart by it.
            id: IDS.fetch_add(1, Ordering::Relaxed).max(1),
            lanes: [const { Lane { stack: None, most: BULK } }; LANES],
            cache: 0,
            refill: 0,
            direct: false,
            dry: Vec::new(),
        };
        returns.begin(&Policy::GRILSE);
        returns
    }

    /// Begins a round under this policy: `pp.cache`, `pp.refill` and `pp.direct`.
    pub fn begin(&mut self, policy: &Policy) {
        self.cache = policy.pp_cache as usize;
        self.refill = policy.pp_refill;
        self.direct = policy.pp_direct;
    }

    /// Ends a round: what is gathered for others goes to them.
    pub fn end(&mut self) {
        let (id, direct, cache) = (self.id, self.direct, self.cache);
        for lane in &mut self.lanes {
            let Some(stack) = &mut lane.stack else { continue };
            lane.most = BULK;
            let keep = direct && stack.len() <= cache;
            if keep && stack.frames().keep(id, stack.len()) {
                lane.most = cache;
            } else {
                stack.post();
                stack.frames().keep(id, 0);
            }
        }
    }

    /// Gives back all, and forgets the pools.
    pub fn flush(&mut self) {
        for lane in &mut self.lanes {
            lane.empty(self.id);
        }
    }

    /// Ends a share in a frame; the last one gives the frame back.
    #[inline]
    pub fn free(&mut self, slice: FrameSlice) {
        let lane = &mut self.lanes[slice.frames().number() as usize % LANES];
        let Some(stack) = &mut lane.stack else { return self.free_first(slice) };
        match stack.put(slice) {
            Ok(()) if stack.len() < lane.most => {}
            // A lane is full at `most`, and emptied at once.
            Ok(()) => lane.post(self.id),
            Err(slice) => self.free_first(slice),
        }
    }

    /// How many frames of `pool` wait here.
    pub fn held(&self, pool: &FramePool) -> u32 {
        let of_pool = |stack: &&Stack| std::ptr::eq(stack.frames(), pool.frames());
        let stacks = self.lanes.iter().filter_map(|lane| lane.stack.as_ref());
        stacks.filter(of_pool).map(|stack| stack.len() as u32).sum()
    }

    /// The first frame of a pool, or of one that shared its lane with another.
    #[cold]
    #[inline(never)]
    fn free_first(&mut self, slice: FrameSlice) {
        let lane = &mut self.lanes[slice.frames().number() as usize % LANES];
        lane.empty(self.id);
        let frames = slice.frames();
        lane.most = if self.direct && frames.is_keeper(self.id) { self.cache } else { BULK };
        let stack = lane.stack.insert(Stack::new(frames, Place::Outbox));
        let put = stack.put(slice);
        debug_assert!(put.is_ok(), "the lane is of this pool now");
        if stack.len() >= lane.most {
            lane.post(self.id);
        }
    }

    /// Whether frames came back to a pool whose owner found none by this. In each case who gives
    /// some back wakes the owner of `home`, if it starves.
    pub fn watch<T: Recycle>(&self, home: &'static Home<T>) -> bool {
        // All of them, also where one says so.
        self.dry.iter().filter(|frames| frames.watch(home.sleep())).count() > 0
    }

    /// Forgets who found none.
    pub fn unwatch(&mut self) {
        self.dry.clear();
    }

    /// Notes that a pool has no frame.
    pub(crate) fn found_none(&mut self, frames: &'static Frames) {
        if !self.dry.iter().any(|known| std::ptr::eq(*known, frames)) {
            self.dry.push(frames);
        }
    }

    /// `pp.refill`.
    pub(crate) fn refill(&self) -> u32 {
        self.refill
    }

    /// Gives what is gathered to the stack of the pool's owner, which is empty, and remembers that
    /// it comes here.
    pub(crate) fn give_to(&mut self, owner: &mut Stack) {
        let frames = owner.frames();
        if self.direct {
            frames.set_keeper(self.id);
        }
        let lane = &mut self.lanes[frames.number() as usize % LANES];
        let Some(stack) = &mut lane.stack else { return };
        if !std::ptr::eq(stack.frames(), frames) {
            return;
        }
        if self.direct {
            lane.most = self.cache;
            owner.swap_in(stack);
        } else {
            lane.most = BULK;
            stack.post();
            frames.set_keeper(0);
        }
    }
}

impl Lane {
    #[cold]
    #[inline(never)]
    fn post(&mut self, id: u32) {
        if let Some(stack) = &mut self.stack {
            stack.post();
            stack.frames().keep(id, 0);
        }
    }

    fn empty(&mut self, id: u32) {
        self.post(id);
        self.stack = None;
        self.most = BULK;
    }
}

impl Default for Returns {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Returns {
    fn drop(&mut self) {
        self.flush();
    }
}

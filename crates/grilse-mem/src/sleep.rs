//! Sleeping, and being woken when it is worth it.
//!
//! A home that sleeps says so, then looks at its inbox once more; whoever sends looks whether the
//! home sleeps after the sending. Between the write and the look each side has a full fence, so at
//! least one of them sees the other (the store-buffer pattern: acquire and release are not enough).
//! A wake-up is a system call: awake homes and those that lack nothing are left alone.
//!
//! One owner has one of these for all classes, whose homes and depots share it.

use std::time::Duration;

use crate::sync::{AtomicU32, Mutex, Ordering, Thread, fence_if, lock, park_for, this_thread};

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;
/// Asleep, and will go on only with objects.
const STARVING: u32 = 2;

/// Whether a home sleeps, and who that is.
#[derive(Debug)]
pub(crate) struct Sleep {
    state: AtomicU32,
    sleeper: Mutex<Option<Thread>>,
}

impl Sleep {
    pub(crate) fn new() -> Self {
        Self { state: AtomicU32::new(AWAKE), sleeper: Mutex::new(None) }
    }

    /// Sleeps until woken, unless `ready` says that there is work, and no longer than `most`. Says
    /// whether it was woken or need not sleep; else the time was over, or it returned early.
    pub(crate) fn sleep(
        &self,
        starving: bool,
        most: Option<Duration>,
        ready: impl FnOnce() -> bool,
    ) -> bool {
        *lock(&self.sleeper) = Some(this_thread());
        self.state.store(if starving { STARVING } else { ASLEEP }, Ordering::Relaxed);
        // Pairs with the fence in `wake`: our state before our look, their object before theirs.
        fence_if("sleep");
        let ready = ready();
        if !ready {
            park_for(most);
        }
        // Not a store: of who wakes and who gives up waiting, one must see the other.
        self.state.swap(AWAKE, Ordering::Relaxed) == AWAKE || ready
    }

    /// Wakes the owner if it sleeps for want of objects; says whether it did.
    pub(crate) fn wake_starving(&self) -> bool {
        // Pairs with the fence in `sleep`.
        fence_if("wake");
        self.wake_from(STARVING)
    }

    /// Wakes the owner if it sleeps at all.
    pub(crate) fn wake(&self) -> bool {
        fence_if("wake");
        self.wake_from(STARVING) || self.wake_from(ASLEEP)
    }

    /// Whether the owner sleeps and lacks nothing, at some moment during the call.
    pub(crate) fn is_content(&self) -> bool {
        self.state.load(Ordering::Relaxed) == ASLEEP
    }

    fn wake_from(&self, state: u32) -> bool {
        if self.state.load(Ordering::Relaxed) != state {
            return false;
        }
        // One of several senders wakes. Relaxed: the objects are published by their list.
        let relaxed = Ordering::Relaxed;
        if self.state.compare_exchange(state, AWAKE, relaxed, relaxed).is_err() {
            return false;
        }
        if let Some(sleeper) = &*lock(&self.sleeper) {
            sleeper.unpark();
        }
        true
    }
}

//! One place where a model checker (loom) or a scheduler that throws dice (shuttle) changes the
//! atomics. Everything that threads share in this
//! crate goes through these names, so that a model compiles the shipped file.

#[cfg(loom)]
pub(crate) use loom::sync::{Mutex, MutexGuard};
#[cfg(shuttle)]
pub(crate) use shuttle::sync::{Mutex, MutexGuard};
#[cfg(not(any(loom, shuttle)))]
pub(crate) use std::sync::{Mutex, MutexGuard};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
#[cfg(shuttle)]
pub(crate) use shuttle::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
#[cfg(not(any(loom, shuttle)))]
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// The ordering of a named edge, as given.
#[cfg(not(loom))]
#[inline(always)]
pub(crate) const fn edge(_name: &str, order: Ordering) -> Ordering {
    order
}

/// Whether a named step is to be taken: always.
#[cfg(not(any(loom, shuttle)))]
#[inline(always)]
pub(crate) const fn step(_name: &str) -> bool {
    true
}

/// Whether a named step is to be taken: a negative twin leaves it out, as it does an [`edge`].
#[cfg(any(loom, shuttle))]
pub(crate) fn step(name: &str) -> bool {
    !weakened(name)
}

/// The ordering of a named edge. In a model, `GRILSE_WEAKEN=name,name` takes edges away: the model
/// must then fail, or its passing proves nothing. `.ci/loom` runs these negative twins.
#[cfg(loom)]
pub(crate) fn edge(name: &str, order: Ordering) -> Ordering {
    if weakened(name) { Ordering::Relaxed } else { order }
}

#[cfg(any(loom, shuttle))]
fn weakened(name: &str) -> bool {
    static WEAKENED: std::sync::LazyLock<String> =
        std::sync::LazyLock::new(|| std::env::var("GRILSE_WEAKEN").unwrap_or_default());
    WEAKENED.split(',').any(|weak| weak == name)
}

/// What the model checker watches in place of plain memory: touched wherever the memory behind it
/// is read or written, it shows an edge that is missing between two threads. Nothing in a build.
#[derive(Debug)]
pub(crate) struct Witnesses {
    #[cfg(loom)]
    cells: Box<[loom::cell::UnsafeCell<()>]>,
}

#[cfg(not(loom))]
impl Witnesses {
    pub(crate) fn new(_count: u32) -> Self {
        Self {}
    }

    #[inline(always)]
    pub(crate) fn read(&self, _index: u32) {}

    #[inline(always)]
    pub(crate) fn write(&self, _index: u32) {}
}

#[cfg(loom)]
impl Witnesses {
    pub(crate) fn new(count: u32) -> Self {
        Self { cells: (0..count).map(|_| loom::cell::UnsafeCell::new(())).collect() }
    }

    pub(crate) fn read(&self, index: u32) {
        self.cells[index as usize].with(|_| ());
    }

    pub(crate) fn write(&self, index: u32) {
        self.cells[index as usize].with_mut(|_| ());
    }
}

/// Locks, also after a panic elsewhere: what these locks guard is whole at every step, so a
/// poisoned one is still right.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[cfg(loom)]
pub(crate) use loom::thread::{Thread, current as this_thread, park};
#[cfg(shuttle)]
pub(crate) use shuttle::thread::{Thread, current as this_thread, park};
#[cfg(not(any(loom, shuttle)))]
pub(crate) use std::thread::{Thread, current as this_thread, park};

/// Parks for no longer than `most`; in a model for as long as it takes, as there is no time.
pub(crate) fn park_for(most: Option<std::time::Duration>) {
    #[cfg(not(any(loom, shuttle)))]
    if let Some(most) = most {
        return std::thread::park_timeout(most);
    }
    let _ = most;
    park();
}

/// A full fence of a name, which a negative twin can take away as it can an [`edge`].
#[cfg(not(loom))]
#[inline(always)]
pub(crate) fn fence_if(_name: &str) {
    fence(Ordering::SeqCst);
}

#[cfg(loom)]
pub(crate) fn fence_if(name: &str) {
    if step(name) {
        fence(Ordering::SeqCst);
    }
}

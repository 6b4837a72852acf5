//! What a cache does before, while and after its owner sleeps.
//!
//! The sleep is the owner's, for all its classes at once ([`Home::sleep_until`]); each class says
//! here whether it is worth one.
//!
//! [`Home::sleep_until`]: crate::Home::sleep_until

use super::Cache;
use crate::arena::Recycle;

impl<T: Recycle> Cache<T> {
    /// Ends the round before a sleep; first takes in what came home, where the policy has that done.
    pub fn settle(&mut self) {
        if self.policy.defer_drain_eager {
            self.drain();
        }
        self.end();
    }

    /// Whether there is something for this cache: at home, or in the depot, where it starves because
    /// its last takes found nothing. In that case who gives something to the depot wakes the owner.
    /// What the slab models that replay the kernel's keep in slabs wakes nobody.
    pub fn watch(&self, starving: bool) -> bool {
        let hungry = starving && self.dry;
        self.home.waiting() > 0 || (hungry && self.depot.watch(self.home.sleep()))
    }

    /// Ends what [`watch`](Self::watch) began.
    pub fn unwatch(&mut self) {
        if std::mem::take(&mut self.dry) {
            self.depot.unwatch(self.home.sleep());
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::thread;

    use crate::{Alien, Cache, DeferList, Depot, Home, Kick, Policy, Recycle, Role, Slot};

    #[derive(Debug)]
    struct Object(&'static Depot<Object>);

    impl Recycle for Object {
        fn recycle(slot: Slot<Self>) {
            slot.0.give_one(slot);
        }
    }

    /// By the kernel's lists the push that comes to the threshold wakes, and no other: `defer.max` is
    /// 8, so the list of 2022 tells with the fourth, that of 2025 with the fifth.
    #[test]
    fn the_kernels_lists_wake_at_their_threshold() {
        for (list, wakes) in [(DeferList::Mutex, 4), (DeferList::Counter, 5)] {
            let policy = Policy {
                free_tx_alien: Alien::Home,
                defer_list: list,
                defer_max: 8,
                defer_kick_how: Kick::Wake,
                ..Policy::KERNEL_2025_11_HOME
            };
            let depot = Depot::new(100, None, Object).unwrap();
            let homes = [0, 1].map(|id| Home::new(Role::Worker, id, depot));
            let [mut owner, mut away] = homes.map(|home| Cache::new(home).unwrap());
            away.begin(0, &policy);
            let held: Vec<_> = (0..wakes).map(|_| owner.take().unwrap()).collect();
            let sleeper = thread::spawn(move || homes[0].sleep_until(false, None, || false));
            while !homes[0].sleep().is_content() {
                thread::yield_now();
            }
            for (number, slot) in held.into_iter().enumerate() {
                assert!(homes[0].sleep().is_content(), "push {number} is below the threshold");
                away.free(slot, homes[0]);
            }
            assert!(!homes[0].sleep().is_content());
            assert!(sleeper.join().unwrap(), "it says that it was woken");
            assert_eq!(away.stats().wakes, 1);
        }
    }
}

//! What a cache does with objects of other homes.
//!
//! By the way of `grilse` they gather in the outbox, and a magazine at a time is sent, kept or given
//! to the depot. By the kernel's each is pushed to its home's list as it is freed; both lists may
//! also be fed from the outbox, which batches without sparing a push.

use std::mem;

use super::{Cache, Front, magazines};
use crate::arena::{Recycle, Slot};
use crate::course::{Seen, Way};
use crate::home::{Home, Role};
use crate::list::{Bound, Refused};
use crate::magazine::Magazine;
use crate::place::Place;
use crate::policy::{Alien, DeferList, Kick, Overflow, Policy};

/// What an owner does with an object of another home, as one decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// Keep it.
    Adopt,
    /// Give it to the slab.
    Slab,
    /// Push it to its home's list of 2022.
    Lock,
    /// Push it to its home's list of 2025.
    Count,
    /// Gather it in the outbox.
    Gather,
}

impl Route {
    pub(super) fn of(role: Role, policy: &Policy) -> Self {
        let overflow = match policy.defer_overflow {
            Overflow::Adopt => Self::Adopt,
            Overflow::Depot => Self::Slab,
        };
        match alien(role, policy) {
            Alien::Adopt => Self::Adopt,
            Alien::Slab => Self::Slab,
            // Off means that every object is one too many.
            Alien::Home | Alien::Adaptive if policy.defer_max == 0 => overflow,
            Alien::Home if policy.defer_outbox == 0 => match policy.defer_list {
                DeferList::Mutex => Self::Lock,
                DeferList::Counter => Self::Count,
                DeferList::Word => Self::Gather,
            },
            Alien::Home | Alien::Adaptive => Self::Gather,
        }
    }
}

impl<T: Recycle> Cache<T> {
    #[inline]
    pub(super) fn free_alien(&mut self, slot: Slot<T>, home: &'static Home<T>) {
        if !self.is_ours(home) {
            // Of another memory: nothing of it may be kept here, nor travel in our magazines.
            return home.post(slot);
        }
        match self.route {
            Route::Gather => self.gather(slot, home),
            Route::Count => {
                let list = home.counted(self.depot.position());
                let pushed = list.push(slot, self.bound, Place::InUse);
                self.pushed(pushed, home, Place::InUse);
            }
            Route::Lock => {
                let pushed = home.locked().push(slot, self.bound, Place::InUse);
                self.pushed(pushed, home, Place::InUse);
            }
            Route::Adopt => self.adopt_one(slot),
            Route::Slab => {
                self.stats.to_depot += 1;
                self.put_past_front(slot);
            }
        }
    }

    /// Posts all that is gathered.
    pub(super) fn post_all(&mut self) {
        while let Some(id) = self.outbox.any_open() {
            self.post(id);
        }
    }

    /// Keeps a magazine of objects as far as the policy allows. One that is not half full is emptied,
    /// as in stock it would stand for a full one; where there is no stock it goes to the depot as it is.
    pub(super) fn keep(&mut self, mut magazine: Slot<Magazine<T>>) {
        match &mut self.front {
            Front::Magazines(front)
                if magazine.len() >= Magazine::<T>::CAPACITY / 2 || !front.has_stock() =>
            {
                let spilt = front.keep(magazine, &mut self.slab, &mut self.empties);
                self.stats.spills += u64::from(spilt);
            }
            _ => {
                while let Some(mut slot) = magazine.pop() {
                    slot.step(Place::Cache, Place::InUse);
                    self.put_front(slot);
                }
                self.empties.give_back(magazine);
            }
        }
    }

    #[inline]
    fn gather(&mut self, mut slot: Slot<T>, home: &'static Home<T>) {
        slot.step(Place::InUse, Place::Outbox);
        let Self { outbox, empties, .. } = self;
        match outbox.push(home, slot, || empties.take()) {
            Ok(gathered) if gathered >= self.policy.defer_outbox as usize => self.post(home.id()),
            Ok(_) => {}
            Err(mut slot) => {
                slot.step(Place::Outbox, Place::InUse);
                home.post(slot);
            }
        }
    }

    /// Gathers all of `from`, whose places are filled; what finds no magazine stays there.
    #[inline]
    pub(super) fn gather_bulk<U>(
        &mut self,
        mut from: &mut [Option<U>],
        home: &'static Home<T>,
        mut each: impl FnMut(U) -> Slot<T>,
    ) {
        while !from.is_empty() {
            let Self { outbox, empties, .. } = self;
            let left = from.len();
            let (done, gathered) = outbox.push_from(home, from, &mut each, || empties.take());
            if done == 0 {
                return;
            }
            if gathered >= self.policy.defer_outbox as usize {
                self.post(home.id());
            }
            from = &mut from[..left - done];
        }
    }

    /// Sends what is gathered for the home of this number.
    #[cold]
    #[inline(never)]
    fn post(&mut self, id: u16) {
        let Some((lane, magazine)) = self.outbox.close(id) else { return };
        let home = lane.home;
        let way = match alien(self.home.role(), &self.policy) {
            Alien::Adaptive => lane.course.turn(Seen {
                asleep: home.sleep().is_content(),
                far: !std::ptr::eq(home.depot(), self.depot),
                misses: home.misses(),
                short: mem::take(&mut self.misses) > 0,
                spills: self.stats.spills,
                came: mem::take(&mut self.came),
                gathered: magazine.len() as u32,
                // A cache holds two magazines at least, and should hold an eighth at most.
                scarce: self.depot.capacity() as usize / 8 < 2 * Magazine::<T>::CAPACITY,
            }),
            _ => Way::Home,
        };
        match way {
            Way::Home => self.send(home, magazine),
            Way::Adopt => self.adopt(magazine),
            Way::Depot => self.give_up(magazine, home),
        }
    }

    fn send(&mut self, home: &'static Home<T>, mut magazine: Slot<Magazine<T>>) {
        if self.policy.defer_list != DeferList::Word {
            while let Some(slot) = magazine.pop() {
                let pushed = match self.policy.defer_list {
                    DeferList::Mutex => home.locked().push(slot, self.bound, Place::Outbox),
                    _ => {
                        let list = home.counted(self.depot.position());
                        list.push(slot, self.bound, Place::Outbox)
                    }
                };
                self.pushed(pushed, home, Place::Outbox);
            }
            return self.empties.give_back(magazine);
        }
        let objects = magazine.len() as u64;
        magazine.sender = Some(self.home);
        magazine.sent_ns = self.now_ns;
        match home.send(magazine, self.bound) {
            Ok(sent) => {
                self.stats.sent_home += objects;
                self.stats.magazines_sent += 1;
                let wake = sent.tell && self.policy.defer_kick_how == Kick::Wake;
                self.stats.wakes += u64::from(sent.woken || (wake && home.sleep().wake()));
            }
            Err(refused) if refused.closed => self.give_up(refused.slot, home),
            Err(refused) => {
                self.stats.overflows += 1;
                match self.policy.defer_overflow {
                    Overflow::Adopt => self.adopt(refused.slot),
                    Overflow::Depot => self.give_up(refused.slot, home),
                }
            }
        }
    }

    fn adopt(&mut self, mut magazine: Slot<Magazine<T>>) {
        magazine.sender = None;
        magazine.step_all(Place::Outbox, Place::Cache);
        self.adopt_all(magazine);
    }

    /// Gives what was for `home` to the slab; whole to the depot of another node, if that is where the
    /// home is.
    fn give_up(&mut self, mut magazine: Slot<Magazine<T>>, home: &'static Home<T>) {
        self.stats.to_depot += magazine.len() as u64;
        magazine.sender = None;
        magazine.step_all(Place::Outbox, Place::Cache);
        if std::ptr::eq(home.depot(), self.depot) {
            magazines::give(magazine, &mut self.slab, &mut self.empties);
        } else {
            self.depot.toll().pay(1);
            home.depot().give_from(magazine, Place::Cache);
        }
    }

    /// What a push to a home's list entails (`skb_attempt_defer_free`).
    #[inline]
    fn pushed(&mut self, pushed: Result<bool, Refused<T>>, home: &'static Home<T>, from: Place) {
        match pushed {
            Ok(tell) => {
                self.stats.sent_home += 1;
                if tell {
                    self.kick(home);
                }
            }
            Err(refused) => self.refused(refused, home, from),
        }
    }

    /// Kicks a home (`kick_defer_list_purge`): an awake one is left alone.
    #[cold]
    #[inline(never)]
    fn kick(&mut self, home: &'static Home<T>) {
        self.stats.wakes += u64::from(match self.policy.defer_kick_how {
            Kick::None => false,
            Kick::Flag => home.sleep().wake_starving(),
            Kick::Wake => home.sleep().wake(),
        });
    }

    #[cold]
    #[inline(never)]
    fn refused(&mut self, refused: Refused<T>, home: &'static Home<T>, from: Place) {
        let Refused { mut slot, closed } = refused;
        slot.step(from, Place::InUse);
        self.stats.overflows += u64::from(!closed);
        if closed {
            home.orphaned(1);
        }
        if closed || self.policy.defer_overflow == Overflow::Depot {
            self.stats.to_depot += 1;
            self.put_past_front(slot);
        } else {
            self.adopt_one(slot);
        }
    }
}

fn alien(role: Role, policy: &Policy) -> Alien {
    match role {
        Role::Foreign => policy.free_rx_socket,
        Role::Worker | Role::Device => policy.free_tx_alien,
    }
}

/// The bound that the policy's list of objects of this class keeps, each list in its own terms.
pub(super) fn bound<T: Recycle>(policy: &Policy) -> Bound {
    let by_bytes = match policy.defer_bytes_max {
        0 => u32::MAX,
        bytes => bytes / T::BYTES,
    };
    let share = u64::from(policy.defer_max) * u64::from(policy.defer_kick_at) / 100;
    let never = policy.defer_kick_at == 0;
    let (most, tell_at) = match policy.defer_list {
        // It refuses who finds `max` there, and tells as it comes to the share.
        DeferList::Mutex => (policy.defer_max, share as u32),
        // It refuses who counts to `max`, and tells who counts past the share.
        DeferList::Counter => (policy.defer_max.saturating_sub(1), share as u32 + 1),
        DeferList::Word => (policy.defer_max.saturating_sub(1), (share as u32).max(1)),
    };
    Bound { most: most.min(by_bytes), tell_at: if never { u32::MAX } else { tell_at } }
}

//! Models of what threads share in the way home, each in the shipped file: every way in which a few
//! threads can interleave, and every value that a load may then see.
//!
//! Built with `--cfg loom` only; `.ci/loom` runs them, and runs each again with the edge or step
//! that it is about taken away (`GRILSE_WEAKEN`, see `sync.rs`), when it must fail. Each model
//! counts how often the case that it is about came up: one that never did proves nothing.

use std::mem;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use loom::thread;

use crate::list::{Bound, Push, Word};
use crate::sync::AtomicU32;
use crate::{Cache, Depot, FramePool, Home, Policy, Recycle, Role, Slot};

#[derive(Debug)]
struct Object(u32);

impl Recycle for Object {
    fn recycle(slot: Slot<Self>) {
        mem::forget(slot);
    }
}

/// Runs the model, and checks that its interesting case came up.
fn model(preemptions: usize, body: impl Fn(&'static AtomicUsize) + Sync + Send + 'static) {
    let seen: &'static AtomicUsize = Box::leak(Box::default());
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(move || body(seen));
    assert!(seen.load(Relaxed) > 0, "the interesting case never came up");
}

fn depot(objects: u32) -> &'static Depot<Object> {
    Depot::new(objects, None, |depot| Object(depot.made())).unwrap()
}

/// A word and the links of what it lists.
struct Indices {
    word: Word,
    links: [AtomicU32; 5],
}

impl Indices {
    fn new() -> &'static Self {
        let links = std::array::from_fn(|_| AtomicU32::new(u32::MAX));
        Box::leak(Box::new(Self { word: Word::new(), links }))
    }

    fn push(&self, index: u32, bound: Bound) -> Push {
        let link = |next| self.links[index as usize].store(next, Relaxed);
        self.word.push(index, 1, bound, link)
    }

    /// Takes all, and returns it oldest first.
    fn take(&self) -> Vec<u32> {
        let next = |index: &u32| self.links[*index as usize].load(Relaxed).checked_sub(1);
        let mut taken: Vec<u32> =
            std::iter::successors(self.word.take().checked_sub(1), next).collect();
        taken.reverse();
        taken
    }
}

/// Two threads push two indices each, under bounds of their own, while the owner takes once.
fn bounded(bounds: [Bound; 2]) {
    model(3, move |seen| {
        let list = Indices::new();
        let pushers = [0, 1].map(|who| {
            let mine = [2 * who, 2 * who + 1];
            let push = move |index| list.push(index, bounds[who as usize]);
            thread::spawn(move || mine.map(push))
        });
        thread::yield_now();
        let first = list.take();
        let pushes: Vec<Push> =
            pushers.into_iter().flat_map(|pusher| pusher.join().unwrap()).collect();
        let second = list.take();
        let full = pushes.iter().filter(|push| **push == Push::Full).count();
        if !first.is_empty() && !second.is_empty() {
            seen.fetch_add(1, Relaxed);
        }

        let landed = |index: &u32| matches!(pushes[*index as usize], Push::Landed { .. });
        let mut all = [first.clone(), second.clone()].concat();
        all.sort_unstable();
        assert_eq!(all, (0..4).filter(landed).collect::<Vec<_>>(), "what landed, once each");
        assert_eq!(all.len() + full, 4, "an open list refuses only by its bound");
        let mut tells = 0;
        for taken in [&first, &second] {
            let weights =
                (1..).zip(taken).map(|(weight, index)| (weight, bounds[*index as usize / 2]));
            assert!(weights.clone().all(|(weight, bound)| weight <= bound.most), "past the bound");
            tells += usize::from(weights.clone().any(|(weight, bound)| weight >= bound.tell_at));
        }
        let told = pushes.iter().filter(|push| **push == Push::Landed { tell: true }).count();
        assert_eq!(told, tells, "once for each take that had crossed, and not else");

        // Nothing is stuck: the pushers have stopped, one take emptied it, and the next one lands.
        assert_eq!((list.word.weight(), list.take().len()), (0, 0));
        assert!(matches!(
            list.push(4, Bound { most: 1, tell_at: 9 }),
            Push::Landed { tell: false }
        ));
    });
}

#[test]
fn word_of_two() {
    for tell_at in 1..=3 {
        bounded([Bound { most: 2, tell_at }; 2]);
    }
}

#[test]
fn word_of_three() {
    for tell_at in 1..=4 {
        bounded([Bound { most: 3, tell_at }; 2]);
    }
}

/// The policy changed between the two: one still pushes under the old bound.
#[test]
fn word_whose_bound_changes() {
    for (before, after) in [((3, 3), (2, 1)), ((2, 2), (3, 1)), ((3, 2), (1, 1))] {
        bounded([before, after].map(|(most, tell_at)| Bound { most, tell_at }));
    }
}

/// Two threads post to a home that collects meanwhile: each object arrives once, with what its
/// sender wrote.
#[test]
fn inbox_push_and_take() {
    model(3, |seen| {
        let depot = depot(2);
        let home = Home::new(Role::Worker, 0, depot);
        let senders = [0, 1].map(|number| {
            let mut slot = depot.take_one().unwrap();
            thread::spawn(move || {
                slot.0 = 100 + number;
                home.post(slot);
            })
        });
        thread::yield_now();
        let mut got: Vec<u32> = home.strays().map(|slot| slot.0).collect();
        if !got.is_empty() {
            seen.fetch_add(1, Relaxed);
        }
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        got.extend(home.strays().map(|slot| slot.0));
        got.sort_unstable();
        assert_eq!(got, [100, 101]);
    });
}

/// Two threads post to a home that closes meanwhile: each object ends in the depot.
#[test]
fn inbox_push_and_close() {
    model(3, |seen| {
        let depot = depot(2);
        let home = Home::new(Role::Worker, 0, depot);
        let senders = [0, 1].map(|number| {
            let mut slot = depot.take_one().unwrap();
            thread::spawn(move || {
                slot.0 = 100 + number;
                home.post(slot);
            })
        });
        thread::yield_now();
        if home.waiting() == 1 {
            seen.fetch_add(1, Relaxed);
        }
        home.close();
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        assert_eq!((home.waiting(), depot.stocked()), (0, 2));
        let mut got = [depot.take_one().unwrap().0, depot.take_one().unwrap().0];
        got.sort_unstable();
        assert_eq!(got, [100, 101]);
    });
}

/// A home that starves goes to sleep while two objects come: it does not sleep on, and is woken
/// once at most.
#[test]
fn sleep_and_come_home() {
    model(3, |seen| {
        let depot = depot(2);
        let home = Home::new(Role::Worker, 0, depot);
        let sender = {
            let slots = [depot.take_one().unwrap(), depot.take_one().unwrap()];
            thread::spawn(move || {
                slots.into_iter().for_each(|slot| home.post(slot));
            })
        };
        home.sleep().sleep(true, None, || home.waiting() > 0);
        let here = home.strays().count();
        assert!(here > 0, "it sleeps until something is there");
        sender.join().unwrap();
        if here == 1 {
            seen.fetch_add(1, Relaxed);
        }
        assert_eq!(here + home.strays().count(), 2);
    });
}

/// A home that lacks nothing sleeps, and is woken all the same where the sender says so; of two
/// senders, one does it.
#[test]
fn sleep_and_wake() {
    model(3, |seen| {
        let (ready, home) = (AtomicU32::new(0), Home::new(Role::Worker, 0, depot(1)));
        let ready: &'static AtomicU32 = Box::leak(Box::new(ready));
        let senders = [(); 2].map(|()| {
            thread::spawn(move || {
                ready.fetch_add(1, Relaxed);
                assert!(!home.sleep().wake_starving(), "it does not starve");
                home.sleep().wake()
            })
        });
        home.sleep().sleep(false, None, || ready.load(Relaxed) > 0);
        let woken = senders.into_iter().map(|sender| sender.join().unwrap());
        let woken = woken.filter(|woken| *woken).count();
        assert!(woken <= 1);
        seen.fetch_add(woken, Relaxed);
    });
}

/// An owner that starves of a class goes to sleep while an object of it comes to the depot, which is
/// no home of anybody's: it does not sleep on.
#[test]
fn sleep_and_feed() {
    model(3, |seen| {
        let (shells, data) = (depot(1), depot(1));
        let home = Home::new(Role::Worker, 0, shells);
        let slot = data.take_one().unwrap();
        let giver = thread::spawn(move || data.give_one(slot));
        let beside = home.beside(data);
        home.sleep_until(true, None, || {
            let ready = data.watch(beside.sleep());
            seen.fetch_add(usize::from(!ready), Relaxed);
            ready
        });
        data.unwatch(beside.sleep());
        assert_eq!(data.stocked(), 1, "it sleeps until something is there");
        giver.join().unwrap();
    });
}

/// The same of frames: all are out, and one comes back to its pool.
#[test]
fn sleep_and_frames() {
    model(3, |seen| {
        let mut pool = FramePool::new(1, 64, None).unwrap();
        let home = Home::new(Role::Worker, 0, depot(1));
        let frame = pool.take().unwrap();
        assert!(pool.take().is_none());
        let giver = thread::spawn(move || drop(frame));
        home.sleep_until(true, None, || {
            let ready = pool.frames().watch(home.sleep());
            seen.fetch_add(usize::from(!ready), Relaxed);
            ready
        });
        assert!(pool.take().is_some(), "it sleeps until something is there");
        giver.join().unwrap();
    });
}

/// Two caches free what belongs to a third, and post it while that one drains: each object comes
/// home once, with what was written to it elsewhere.
#[test]
fn outbox_post_and_drain() {
    model(2, |seen| {
        let depot = depot(2);
        let homes = [0, 1, 2].map(|id| Home::new(Role::Worker, id, depot));
        let mut owner = Cache::new(homes[0]).unwrap();
        let sources = [1, 2].map(|number| {
            let mut cache = Cache::new(homes[number]).unwrap();
            let mut slot = owner.take().unwrap();
            thread::spawn(move || {
                slot.0 = 100 + number as u32;
                cache.free(slot, homes[0]);
                cache.end();
                assert_eq!((cache.outgoing(), cache.stats().sent_home), (0, 1));
                mem::forget(cache);
            })
        });
        thread::yield_now();
        let early = owner.drain();
        seen.fetch_add(early, Relaxed);
        sources.into_iter().for_each(|source| source.join().unwrap());
        assert_eq!(early + owner.drain(), 2);
        let mut got = [(); 2].map(|()| owner.take().unwrap().0);
        got.sort_unstable();
        assert_eq!(got, [101, 102]);
        mem::forget(owner);
    });
}

/// Emptied magazines come back to who filled them, from two sides at once.
#[test]
fn empties_come_back() {
    model(3, |seen| {
        let depot = depot(2);
        let home = Home::new(Role::Worker, 0, depot);
        let senders = [1, 2].map(|number| {
            let mut magazine = depot.take_empty().unwrap();
            thread::spawn(move || {
                magazine.sent_ns = number;
                home.send_empty(magazine).unwrap();
            })
        });
        thread::yield_now();
        let mut got: Vec<u64> = home.empties().map(|magazine| magazine.sent_ns).collect();
        seen.fetch_add(got.len(), Relaxed);
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        got.extend(home.empties().map(|magazine| magazine.sent_ns));
        got.sort_unstable();
        assert_eq!(got, [1, 2]);
    });
}

/// A cache sends home while the owner leaves and another one sits down there: what was sent is with
/// the next owner or in the depot, and nowhere else.
#[test]
fn home_changes_hands() {
    model(3, |seen| {
        let depot = depot(1);
        let homes = [0, 1].map(|id| Home::new(Role::Worker, id, depot));
        let mut first = Cache::new(homes[0]).unwrap();
        let mut slot = first.take().unwrap();
        let mut away = Cache::new(homes[1]).unwrap();
        let sender = thread::spawn(move || {
            slot.0 = 7;
            away.free(slot, homes[0]);
            away.end();
            let refused = away.stats().to_depot;
            mem::forget(away);
            refused
        });
        thread::yield_now();
        homes[0].close();
        homes[0].open();
        let refused = sender.join().unwrap();
        let stocked = depot.stocked() as usize;
        let came = first.drain();
        assert_eq!(came + stocked, 1);
        if refused > 0 {
            seen.fetch_add(1, Relaxed);
        }
        assert!(came == 0 || refused == 0);
        assert_eq!(first.take().unwrap().0, 7);
        mem::forget(first);
    });
}

/// Two caches go to the depot and back at once: a magazine is with one of them at a time.
#[test]
fn magazines_exchanged_with_the_depot() {
    model(2, |seen| {
        let depot = depot(2);
        for slot in [depot.take_one().unwrap(), depot.take_one().unwrap()] {
            let mut magazine = depot.take_empty().unwrap();
            assert!(magazine.push(slot).is_ok());
            depot.give(magazine);
        }
        let workers = [0, 1].map(|id| {
            let mut cache = Cache::new(Home::new(Role::Worker, id, depot)).unwrap();
            thread::spawn(move || {
                cache.begin(0, &Policy::GRILSE);
                let mut slot = cache.take().expect("each took one");
                slot.0 += 10;
                let refills = cache.stats().refills as usize;
                cache.put(slot);
                cache.flush();
                assert!(cache.is_empty());
                mem::forget(cache);
                refills
            })
        });
        let refills: usize = workers.into_iter().map(|worker| worker.join().unwrap()).sum();
        seen.fetch_add(refills, Relaxed);
        assert_eq!(depot.stocked(), 2);
        let sum = depot.take_one().unwrap().0 + depot.take_one().unwrap().0;
        assert_eq!(sum, 21, "two were made, 0 and 1, and each worker added ten to one");
    });
}

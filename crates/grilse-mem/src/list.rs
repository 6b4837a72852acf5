//! A stack of objects that many push and one takes whole.
//!
//! One word holds the newest object's index, the weight of all, whether their owner was told, and
//! whether the list is closed, so that the four can never disagree: a push sees a bound, a close or
//! a take in the same compare-and-swap that it lands by. Nobody pops single objects, hence no ABA:
//! a push that lands against a word which came back in between links to what is truly the newest.
//!
//! Links stand in the objects' own cells. Only the pusher writes the link of an object, before the
//! push; only the taker reads it, after the take.

#![allow(unsafe_code)]

use crate::arena::{Arena, Recycle, Slot};
use crate::place::Place;
use crate::sync::{AtomicU64, Ordering, edge, step};

const INDEX: u64 = 0xffff_ffff; // newest index + 1; 0: empty
const WEIGHT: u64 = 0x3fff_ffff << 32;
const TOLD: u64 = 1 << 62;
const CLOSED: u64 = 1 << 63;

/// Most objects that one list, and so one arena, may hold: their weight must fit its bits.
pub(crate) const MOST: u32 = 0x3fff_ffff;

/// What a push must not pass.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound {
    /// Weight that the list holds at most.
    pub(crate) most: u32,
    /// Weight at which the owner is to be told, once per take.
    pub(crate) tell_at: u32,
}

impl Bound {
    /// No bound but the bits, and nobody to tell.
    pub(crate) const NONE: Self = Self { most: MOST, tell_at: u32::MAX };
}

/// What became of a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Push {
    /// It landed; `tell`: by it the list came to [`Bound::tell_at`].
    Landed { tell: bool },
    /// The bound stood in the way.
    Full,
    /// The owner is gone.
    Closed,
}

/// The shared word, for indices whose links stand wherever the user keeps them.
#[derive(Debug)]
pub(crate) struct Word(AtomicU64);

impl Word {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Pushes `index` with its weight. `link` stores what the index is to link to; for a chain, the
    /// index is its first, the weight that of all, and the link that of its last.
    #[inline]
    pub(crate) fn push(&self, index: u32, weight: u32, bound: Bound, link: impl Fn(u32)) -> Push {
        let mut word = self.0.load(Ordering::Relaxed);
        loop {
            if word & CLOSED != 0 && step("closed") {
                return Push::Closed;
            }
            let total = ((word & WEIGHT) >> 32) as u32 + weight;
            if total > bound.most && step("bound") {
                return Push::Full;
            }
            link((word & INDEX) as u32);
            let tell = total >= bound.tell_at && word & TOLD == 0;
            let told = if tell && step("told") { TOLD } else { word & TOLD };
            let next = told | u64::from(total) << 32 | (u64::from(index) + 1);
            // Release: the object and its link; pairs with the acquire in `take`. The pushes below
            // it in the list are carried along, as a swap continues their release sequence.
            let release = edge("push", Ordering::Release);
            match self.0.compare_exchange_weak(word, next, release, Ordering::Relaxed) {
                Ok(_) => return Push::Landed { tell },
                Err(now) => word = now,
            }
        }
    }

    /// Takes all; returns the newest index plus one, 0 where there is none. For the one consumer.
    #[inline]
    pub(crate) fn take(&self) -> u32 {
        // The common answer is "nothing", and a load leaves the line shared.
        if self.0.load(Ordering::Relaxed) & INDEX == 0 {
            return 0;
        }
        // Acquire: pairs with the release in `push`.
        (self.0.fetch_and(CLOSED, edge("take", Ordering::Acquire)) & INDEX) as u32
    }

    /// Takes all as [`take`](Self::take) does, but leaves it said that the owner was told. Returns
    /// the weight as well.
    #[inline]
    pub(crate) fn take_told(&self) -> (u32, u32) {
        if self.0.load(Ordering::Relaxed) & INDEX == 0 {
            return (0, 0);
        }
        // Acquire: pairs with the release in `push`.
        let word = self.0.fetch_and(CLOSED | TOLD, edge("take", Ordering::Acquire));
        ((word & INDEX) as u32, ((word & WEIGHT) >> 32) as u32)
    }

    /// Says that the owner was told, so that no push does.
    pub(crate) fn set_told(&self) {
        // Relaxed: a note to those who push, which publishes nothing.
        self.0.fetch_or(TOLD, Ordering::Relaxed);
    }

    /// Takes that back, unless something is listed; says whether it did.
    pub(crate) fn clear_told(&self) -> bool {
        // Release: whom to tell, for the push that finds it so.
        self.0.compare_exchange(TOLD, 0, Ordering::Release, Ordering::Relaxed).is_ok()
    }

    /// Refuses pushes from now on, and takes all.
    pub(crate) fn close(&self) -> u32 {
        // Acquire: as in `take`.
        (self.0.swap(CLOSED, edge("take", Ordering::Acquire)) & INDEX) as u32
    }

    /// Accepts pushes again.
    pub(crate) fn open(&self) {
        // Relaxed: an empty list publishes nothing. Not a store: what an open one holds stays.
        self.0.fetch_and(!CLOSED, Ordering::Relaxed);
    }

    /// The weight of all, at some moment during the call.
    pub(crate) fn weight(&self) -> u32 {
        ((self.0.load(Ordering::Relaxed) & WEIGHT) >> 32) as u32
    }
}

/// A list of objects of one arena.
#[derive(Debug)]
pub(crate) struct List<T: Recycle> {
    word: Word,
    objects: &'static Arena<T>,
    /// What its objects are said to be in.
    place: Place,
}

/// A slot that a list did not take, and why.
#[derive(Debug)]
pub(crate) struct Refused<T: Recycle> {
    pub(crate) slot: Slot<T>,
    pub(crate) closed: bool,
}

impl<T: Recycle> List<T> {
    pub(crate) fn new(objects: &'static Arena<T>, place: Place) -> Self {
        Self { word: Word::new(), objects, place }
    }

    /// Pushes an object of this list's arena, and says whether the owner is to be told.
    #[inline]
    pub(crate) fn push(
        &self,
        mut slot: Slot<T>,
        weight: u32,
        bound: Bound,
        from: Place,
    ) -> Result<bool, Refused<T>> {
        let Some(index) = self.objects.index(&slot) else {
            // An object of another arena has no index here; which only a fault of ours can bring.
            debug_assert!(false, "an object came to a list of another arena");
            return Err(Refused { slot, closed: true });
        };
        slot.step(from, self.place);
        slot.give_up();
        // SAFETY: `index` is that of `slot`, which was given up just above.
        let at = unsafe { self.objects.link(index) };
        // Relaxed: published by the release in the word.
        let link = |next| at.store(next, Ordering::Relaxed);
        let closed = match self.word.push(index, weight, bound, link) {
            Push::Landed { tell } => return Ok(tell),
            Push::Full => false,
            Push::Closed => true,
        };
        // SAFETY: `slot` was given up just above, and its index landed nowhere.
        let mut slot = unsafe { self.objects.claim(index) };
        slot.step(self.place, from);
        Err(Refused { slot, closed })
    }

    /// Takes all, newest first. For the one consumer.
    #[inline]
    pub(crate) fn take(&self) -> Chain<T> {
        Chain { next: self.word.take(), objects: self.objects, place: self.place }
    }

    /// Pushes all of a strand with one compare-and-swap; says whether the owner is to be told. For
    /// a list that has no bound and is never closed.
    #[inline]
    pub(crate) fn splice(&self, strand: Strand<T>, tell_at: u32) -> bool {
        let Strand { chain, oldest, count } = strand;
        if !std::ptr::eq(self.objects, chain.objects) {
            // Its indices mean other cells here.
            debug_assert!(false, "a strand came to a list of another arena");
            return false;
        }
        let Some(newest) = chain.next.checked_sub(1) else { return false };
        let bound = Bound { tell_at, ..Bound::NONE };
        // SAFETY: a strand that holds something has the index of its oldest from `Chain::push`, by
        // which that slot was given up to the same arena; and nothing takes it off again.
        let at = unsafe { self.objects.link(oldest) };
        // Relaxed: published by the release in the word.
        let link = |next| at.store(next, Ordering::Relaxed);
        match self.word.push(newest, count, bound, link) {
            Push::Landed { tell } => {
                // The list has them now.
                std::mem::forget(chain);
                tell
            }
            Push::Full | Push::Closed => {
                debug_assert!(false, "a strand came to a list that refuses");
                at.store(0, Ordering::Relaxed);
                false
            }
        }
    }

    /// Takes all, newest first, and goes on as if the owner was told; returns the weight as well.
    /// For the one consumer.
    #[inline]
    pub(crate) fn take_told(&self) -> (Chain<T>, u32) {
        let (next, weight) = self.word.take_told();
        (Chain { next, objects: self.objects, place: self.place }, weight)
    }

    /// As [`Word::set_told`].
    pub(crate) fn set_told(&self) {
        self.word.set_told();
    }

    /// As [`Word::clear_told`].
    pub(crate) fn clear_told(&self) -> bool {
        self.word.clear_told()
    }

    /// Refuses pushes from now on, and takes all.
    pub(crate) fn close(&self) -> Chain<T> {
        Chain { next: self.word.close(), objects: self.objects, place: self.place }
    }

    /// Accepts pushes again. For the one consumer, after [`close`](Self::close).
    pub(crate) fn open(&self) {
        self.word.open();
    }

    /// The weight of all, at some moment during the call.
    pub(crate) fn weight(&self) -> u32 {
        self.word.weight()
    }
}

/// The objects of a list that was taken: the taker's alone. They are in [`Place::InUse`] as they
/// come out.
#[derive(Debug)]
pub(crate) struct Chain<T: Recycle> {
    next: u32,
    objects: &'static Arena<T>,
    place: Place,
}

impl<T: Recycle> Chain<T> {
    /// A chain of nothing, for objects of this arena.
    pub(crate) fn new(objects: &'static Arena<T>, place: Place) -> Self {
        Self { next: 0, objects, place }
    }

    /// Puts an object of this arena in front.
    ///
    /// # Errors
    /// The object, where it is of another arena.
    #[inline]
    pub(crate) fn push(&mut self, mut slot: Slot<T>, from: Place) -> Result<u32, Slot<T>> {
        let Some(index) = self.objects.index(&slot) else { return Err(slot) };
        slot.step(from, self.place);
        slot.give_up();
        // SAFETY: `index` is that of `slot`, which was given up just above.
        let link = unsafe { self.objects.link(index) };
        // Relaxed: nobody else reads the link before the chain is published.
        link.store(self.next, Ordering::Relaxed);
        self.next = index + 1;
        Ok(index)
    }
}

/// Objects that one thread linked, to be pushed together.
#[derive(Debug)]
pub(crate) struct Strand<T: Recycle> {
    chain: Chain<T>,
    oldest: u32,
    count: u32,
}

impl<T: Recycle> Strand<T> {
    pub(crate) fn new(objects: &'static Arena<T>, place: Place) -> Self {
        Self { chain: Chain::new(objects, place), oldest: 0, count: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Puts an object of this arena in front.
    ///
    /// # Errors
    /// The object, where it is of another arena.
    #[inline]
    pub(crate) fn push(&mut self, slot: Slot<T>, from: Place) -> Result<(), Slot<T>> {
        let index = self.chain.push(slot, from)?;
        if self.count == 0 {
            self.oldest = index;
        }
        self.count += 1;
        Ok(())
    }
}

impl<T: Recycle> Iterator for Chain<T> {
    type Item = Slot<T>;

    #[inline]
    fn next(&mut self) -> Option<Slot<T>> {
        let index = self.next.checked_sub(1)?;
        // SAFETY: whoever pushed the index gave up its slot, of this arena, and it is claimed below.
        let link = unsafe { self.objects.link(index) };
        // Relaxed: made visible by the acquire that took the list.
        self.next = link.load(Ordering::Relaxed);
        // SAFETY: whoever pushed the index gave up its slot, and the word that named it, or the
        // link before it, was taken by this chain alone; it is claimed once, here.
        let mut slot = unsafe { self.objects.claim(index) };
        slot.step(self.place, Place::InUse);
        Some(slot)
    }
}

impl<T: Recycle> Drop for Chain<T> {
    /// What is left goes where a dropped slot goes.
    fn drop(&mut self) {
        self.for_each(drop);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::sync::AtomicU32;

    /// A word and the links of what it lists.
    struct Indices {
        word: Word,
        links: Vec<AtomicU32>,
    }

    impl Indices {
        fn new(count: u32) -> Self {
            let links = (0..count).map(|_| AtomicU32::new(u32::MAX)).collect();
            Self { word: Word::new(), links }
        }

        fn push(&self, index: u32, bound: Bound) -> Push {
            let link = &self.links[index as usize];
            self.word.push(index, 1, bound, |next| link.store(next, Ordering::Relaxed))
        }

        /// The indices behind what a take or a close returned.
        fn follow(&self, first: u32) -> Vec<u32> {
            let next =
                |index: &u32| self.links[*index as usize].load(Ordering::Relaxed).checked_sub(1);
            std::iter::successors(first.checked_sub(1), next).collect()
        }

        fn take(&self) -> Vec<u32> {
            self.follow(self.word.take())
        }
    }

    const LANDED: Push = Push::Landed { tell: false };

    #[test]
    fn newest_first_and_all_at_once() {
        let list = Indices::new(8);
        assert!(list.take().is_empty());
        for (pushed, index) in [3, 0, 7].into_iter().enumerate() {
            assert_eq!(list.word.weight(), pushed as u32);
            assert_eq!(list.push(index, Bound::NONE), LANDED);
        }
        let taken = list.word.take();
        assert_eq!(list.word.weight(), 0);
        assert_eq!(list.push(5, Bound::NONE), LANDED);
        assert_eq!(list.follow(taken), [7, 0, 3], "what comes later is not among them");
        assert_eq!(list.take(), [5]);
    }

    #[test]
    fn closed_until_opened() {
        let list = Indices::new(8);
        assert_eq!(list.push(1, Bound::NONE), LANDED);
        assert_eq!(list.follow(list.word.close()), [1]);
        assert_eq!(list.push(2, Bound::NONE), Push::Closed);
        assert_eq!((list.word.weight(), list.take()), (0, vec![]));
        assert_eq!(list.push(2, Bound::NONE), Push::Closed, "a take does not open it");
        assert_eq!(list.word.close(), 0);
        list.word.open();
        assert_eq!(list.push(2, Bound::NONE), LANDED);
        list.word.open();
        assert_eq!(list.take(), [2], "opening what is open loses nothing");
    }

    /// Every bound, and every threshold below, at and above it, against a count kept by hand.
    #[test]
    fn never_past_the_bound_and_told_once_per_take() {
        for most in 0..6 {
            for tell_at in 1..8 {
                let list = Indices::new(8);
                let bound = Bound { most, tell_at };
                for _ in 0..3 {
                    let pushes: Vec<_> = (0..8).map(|index| list.push(index, bound)).collect();
                    for (index, push) in (0..8).zip(pushes) {
                        let expected = match index < most {
                            true => Push::Landed { tell: index + 1 == tell_at },
                            false => Push::Full,
                        };
                        assert_eq!(push, expected, "push {index}, {bound:?}");
                    }
                    assert_eq!(list.take().len() as u32, most);
                }
            }
        }
    }

    /// A bound that is lowered below what waits refuses, and a threshold that is lowered below it
    /// tells with the next push that lands: equality would miss both.
    #[test]
    fn a_bound_changes_while_objects_wait() {
        let list = Indices::new(8);
        for index in 0..4 {
            assert_eq!(list.push(index, Bound { most: 6, tell_at: 6 }), LANDED);
        }
        assert_eq!(list.push(4, Bound { most: 3, tell_at: 2 }), Push::Full);
        let lower = Bound { most: 6, tell_at: 2 };
        assert_eq!(list.push(4, lower), Push::Landed { tell: true });
        assert_eq!(list.push(5, lower), LANDED, "told already");
        assert_eq!(list.take().len(), 6);
        assert_eq!(list.push(0, lower), LANDED, "begins anew");
        assert_eq!(list.push(1, lower), Push::Landed { tell: true });
    }

    /// Four threads push while one takes: each index arrives once, those of one thread newest first.
    #[test]
    fn many_push_while_one_takes() {
        const EACH: u32 = 20_000;
        let list = Indices::new(4 * EACH);
        let mut seen = vec![0u8; list.links.len()];
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let list = &list;
                let mine = thread * EACH..(thread + 1) * EACH;
                scope.spawn(move || {
                    mine.for_each(|index| assert_eq!(list.push(index, Bound::NONE), LANDED));
                });
            }
            let mut left = seen.len();
            while left > 0 {
                let mut newest = [u32::MAX; 4];
                for index in list.take() {
                    let thread = (index / EACH) as usize;
                    assert!(index < newest[thread]);
                    newest[thread] = index;
                    seen[index as usize] += 1;
                    left -= 1;
                }
            }
        });
        assert!(seen.iter().all(|times| *times == 1));
    }

    #[derive(Debug)]
    struct Object(u32);

    impl Recycle for Object {
        fn recycle(slot: Slot<Self>) {
            std::mem::forget(slot);
        }
    }

    /// What goes in comes out as the same object, and a refused one comes back to who pushed it.
    #[test]
    fn a_list_moves_slots() {
        let arena = Arena::<Object>::reserve(3, None).unwrap();
        let list = List::new(arena, Place::Inbox);
        let bound = Bound { most: 2, tell_at: 2 };
        let mut names = BTreeMap::new();
        for name in 0..3 {
            let slot = arena.carve(Object(name)).unwrap();
            names.insert(name, std::ptr::from_ref(&*slot));
            match list.push(slot, 1, bound, Place::InUse) {
                Ok(tell) => assert_eq!(tell, name == 1),
                Err(refused) => {
                    assert_eq!((name, refused.slot.0, refused.closed), (2, 2, false));
                    assert!(list.close().map(|slot| slot.0).eq([1, 0]));
                    let refused = list.push(refused.slot, 1, bound, Place::InUse).unwrap_err();
                    assert!(refused.closed && std::ptr::eq(&*refused.slot, names[&2]));
                }
            }
        }
    }

    /// An object that is posted twice ends the process, which says where it was and where it should
    /// have been. The process is this test, started again.
    #[cfg(feature = "audit")]
    #[test]
    fn an_object_posted_twice_aborts() {
        const PLANT: &str = "GRILSE_PLANT_DOUBLE_POST";
        if std::env::var_os(PLANT).is_some() {
            let arena = Arena::<Object>::reserve(1, None).unwrap();
            let list = List::new(arena, Place::Inbox);
            let slot = arena.carve(Object(0)).unwrap();
            // SAFETY: none: this is the fault. The process ends before anybody uses the twin.
            let twin = unsafe { arena.claim(0) };
            for slot in [slot, twin] {
                list.push(slot, 1, Bound::NONE, Place::InUse).unwrap();
            }
            return;
        }
        let name = "list::tests::an_object_posted_twice_aborts";
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env(PLANT, "1")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&child.stderr);
        assert!(!child.status.success(), "{said}");
        let both = "moves from in use to an inbox, but is in an inbox";
        assert!(said.contains(both), "{said}");
    }
}

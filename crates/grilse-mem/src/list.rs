//! A stack of indices that many push and one takes whole.
//!
//! One word holds the newest index, the length and whether the list is closed, so that the three
//! can never disagree: a push sees a bound, a close or a take in the same compare-and-swap that it
//! lands by. Nobody pops single items, hence no ABA: a push that lands against a word which came
//! back in between links to what is truly the newest.
//!
//! The links stand beside the objects, in a table that the objects' arena owns. Only the pusher
//! writes the link of an index, before the push; only the taker reads it, after the take.

use crate::sync::{AtomicU32, AtomicU64, Ordering, edge};

const INDEX: u64 = 0xffff_ffff; // newest index + 1; 0: empty
const ONE: u64 = 1 << 32; // length, 31 bits
const CLOSED: u64 = 1 << 63;

/// The shared word.
#[derive(Debug)]
pub(crate) struct TakeAll {
    word: AtomicU64,
}

/// Most objects that may share a table of links: the length must not run into the closed bit.
pub(crate) const MOST: u32 = u32::MAX >> 1;

/// The list is closed: its owner is gone.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Closed;

impl TakeAll {
    pub(crate) fn new() -> Self {
        Self { word: AtomicU64::new(0) }
    }

    /// Pushes `index`, whose link in `links` is the caller's to write.
    pub(crate) fn push(&self, links: &[AtomicU32], index: u32) -> Result<(), Closed> {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            if word & CLOSED != 0 {
                return Err(Closed);
            }
            // Relaxed: published by the release of the swap below.
            links[index as usize].store((word & INDEX) as u32, Ordering::Relaxed);
            let next = ((word & !INDEX) + ONE) | (u64::from(index) + 1);
            // Release: the object and its link; pairs with the acquire in `take`. The pushes below
            // it in the list are carried along, as a swap continues their release sequence.
            let release = edge("push", Ordering::Release);
            match self.word.compare_exchange_weak(word, next, release, Ordering::Relaxed) {
                Ok(_) => return Ok(()),
                Err(now) => word = now,
            }
        }
    }

    /// Takes all, newest first. For the one consumer.
    pub(crate) fn take<'a>(&self, links: &'a [AtomicU32]) -> Taken<'a> {
        // The common answer is "nothing", and a load leaves the line shared.
        if self.len() == 0 {
            return Taken { next: 0, links };
        }
        // Acquire: pairs with the release in `push`.
        let word = self.word.fetch_and(CLOSED, edge("take", Ordering::Acquire));
        Taken { next: (word & INDEX) as u32, links }
    }

    /// Refuses pushes from now on, and takes all.
    pub(crate) fn close<'a>(&self, links: &'a [AtomicU32]) -> Taken<'a> {
        // Acquire: as in `take`.
        let word = self.word.swap(CLOSED, edge("take", Ordering::Acquire));
        Taken { next: (word & INDEX) as u32, links }
    }

    /// How many are waiting, at some moment during the call.
    pub(crate) fn len(&self) -> u32 {
        ((self.word.load(Ordering::Relaxed) & !CLOSED) >> 32) as u32
    }
}

/// The indices of a list that was taken: the taker's alone.
#[derive(Debug)]
pub(crate) struct Taken<'a> {
    next: u32,
    links: &'a [AtomicU32],
}

impl Iterator for Taken<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let index = self.next.checked_sub(1)?;
        self.next = self.links[index as usize].load(Ordering::Relaxed);
        Some(index)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn links() -> [AtomicU32; 8] {
        std::array::from_fn(|_| AtomicU32::new(u32::MAX))
    }

    #[test]
    fn newest_first_and_all_at_once() {
        let (list, links) = (TakeAll::new(), links());
        assert_eq!(list.take(&links).next(), None);
        for (pushed, index) in [3, 0, 7].into_iter().enumerate() {
            assert_eq!(list.len(), pushed as u32);
            list.push(&links, index).unwrap();
        }
        let taken = list.take(&links);
        assert_eq!(list.len(), 0);
        list.push(&links, 5).unwrap();
        assert_eq!(taken.collect::<Vec<_>>(), [7, 0, 3], "what comes later is not among them");
        assert_eq!(list.take(&links).collect::<Vec<_>>(), [5]);
    }

    #[test]
    fn closed_for_good() {
        let (list, links) = (TakeAll::new(), links());
        list.push(&links, 1).unwrap();
        assert_eq!(list.close(&links).collect::<Vec<_>>(), [1]);
        assert_eq!(list.push(&links, 2), Err(Closed));
        assert_eq!((list.len(), list.take(&links).next()), (0, None));
        assert_eq!(list.push(&links, 2), Err(Closed), "a take does not open it");
        assert_eq!(list.close(&links).next(), None);
    }

    /// Four threads push while one takes: each index arrives once, those of one thread newest first.
    #[test]
    fn many_push_while_one_takes() {
        const EACH: u32 = 20_000;
        let list = TakeAll::new();
        let links: Vec<_> = (0..4 * EACH).map(|_| AtomicU32::new(0)).collect();
        let mut seen = vec![0u8; links.len()];
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (list, links) = (&list, &links);
                let mine = thread * EACH..(thread + 1) * EACH;
                scope.spawn(move || mine.for_each(|index| list.push(links, index).unwrap()));
            }
            let mut left = seen.len();
            while left > 0 {
                let mut newest = [u32::MAX; 4];
                for index in list.take(&links) {
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
}

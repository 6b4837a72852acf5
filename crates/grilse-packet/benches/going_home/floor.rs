//! Two floors, neither of them an allocator, across two cores.
//!
//! [`Floor`]: two threads that know each other, and a ring that carries each burst back whole. It asks
//! no object where it belongs; what it costs, nobody who moves objects both ways in bursts of this
//! size goes below. [`RingOnly`]: numbers instead of objects, and nothing comes back: what the ring
//! between the cores takes of everybody's time.

use std::hint::black_box;
use std::num::NonZeroUsize;
use std::sync::Mutex;

use rtrb::{Consumer, Producer, RingBuffer};

use crate::object::{Owned, Store, carve};
use crate::pool::{BURST, Burst, OBJECTS, Object, Pool, Seat, empty};

/// Bursts that exist, and that a ring holds: so none is ever full.
const BURSTS: usize = OBJECTS / BURST;

pub(crate) struct Floor {
    store: Store,
    ways: Mutex<[Option<Way>; 2]>,
}

/// One side's ends of the two rings.
struct Way {
    back: Producer<Burst<Owned>>,
    home: Consumer<Burst<Owned>>,
}

impl Floor {
    pub(crate) fn new() -> Self {
        let (to_first, first) = RingBuffer::new(BURSTS);
        let (to_second, second) = RingBuffer::new(BURSTS);
        let ways = [
            Some(Way { back: to_second, home: first }),
            Some(Way { back: to_first, home: second }),
        ];
        Self { store: Store::new(carve(OBJECTS)), ways: Mutex::new(ways) }
    }
}

pub(crate) struct FloorSeat {
    store: &'static Store,
    way: Way,
    bursts: Vec<Burst<Owned>>,
    /// Objects that are not in a burst; none while whole bursts go to and fro.
    loose: Vec<Owned>,
}

impl Pool for Floor {
    type Handle = Owned;
    type Seat = FloorSeat;

    fn seat(&'static self, side: usize) -> FloorSeat {
        let way = self.ways.lock().expect("no panic inside")[side].take();
        let way = way.expect("two threads, each its side");
        let mut objects = Vec::with_capacity(OBJECTS / 2);
        self.store.refill(&mut objects, OBJECTS / 2);
        let mut bursts = Vec::with_capacity(BURSTS);
        while objects.len() >= BURST {
            let mut burst = empty();
            burst.0.fill_with(|| objects.pop());
            bursts.push(burst);
        }
        FloorSeat { store: &self.store, way, bursts, loose: objects }
    }

    fn in_use(&'static self) -> Option<usize> {
        Some(OBJECTS - self.store.len())
    }
}

impl Seat<Owned> for FloorSeat {
    #[inline]
    fn take(&mut self) -> Option<Owned> {
        self.loose.pop()
    }

    #[inline]
    fn free(&mut self, object: Owned) {
        self.loose.push(object);
    }

    /// A whole burst or nothing.
    #[inline]
    fn take_burst(&mut self, burst: &mut Burst<Owned>, have: usize) -> usize {
        if have == 0
            && let Some(whole) = self.way.home.pop().ok().or_else(|| self.bursts.pop())
        {
            *burst = whole;
            return BURST;
        }
        have
    }

    /// To the other side.
    #[inline]
    fn free_burst(&mut self, burst: &mut Burst<Owned>) {
        let whole = std::mem::replace(burst, empty());
        self.way.back.push(whole).expect("the ring holds every burst there is");
    }
}

impl Drop for FloorSeat {
    fn drop(&mut self) {
        while let Ok(burst) = self.way.home.pop() {
            self.bursts.push(burst);
        }
        self.loose.extend(self.bursts.drain(..).flat_map(|burst| burst.0).flatten());
        self.store.spill(&mut self.loose, OBJECTS);
    }
}

/// Hands out numbers, and forgets them.
pub(crate) struct RingOnly;

impl Pool for RingOnly {
    type Handle = NonZeroUsize;
    type Seat = ();

    fn seat(&'static self, _side: usize) {}

    fn in_use(&'static self) -> Option<usize> {
        None
    }
}

impl Seat<NonZeroUsize> for () {
    #[inline]
    fn take(&mut self) -> Option<NonZeroUsize> {
        Some(NonZeroUsize::MAX)
    }

    #[inline]
    fn free(&mut self, number: NonZeroUsize) {
        black_box(number);
    }
}

impl Object for NonZeroUsize {
    fn write<const SHELL: usize, const HEAD: usize>(&mut self, _seq: u64) {
        debug_assert_eq!(SHELL + HEAD, 0, "numbers are handles");
    }

    fn read<const SHELL: usize, const HEAD: usize>(&self) -> u64 {
        debug_assert_eq!(SHELL + HEAD, 0, "numbers are handles");
        0
    }
}

//! Grilse, as it stands: bare slots where no byte is touched, skbs where some are.
//!
//! A policy is one line in [`contestants`].

use grilse_mem::{Cache, Depot, Home, Policy, Recycle, Role, Slot};
use grilse_packet::{Ctx, Memory, Skb};
use grilse_wire::Packet;

use crate::many;
use crate::pair::{Contestant, Pair};
use crate::pool::{Burst, INTERFACE, OBJECTS, Object, PROTOCOL, Pool, SEATS, Seat};
use crate::work::Work;

/// The contestants, the one that all others are compared with first.
pub(crate) fn contestants(cpus: [usize; 2]) -> Vec<Box<dyn Contestant>> {
    const HANDLES: &[Work] = &[Work::SameOne, Work::SameBurst, Work::Pipe, Work::Pairwise];
    let mut all = vec![Pair::boxed("grilse slots", HANDLES, cpus, Slots::new())];
    for (name, policy) in Policy::PROFILES.iter().rev() {
        all.push(Pair::boxed(format!("skbs {name}"), &Work::ALL, cpus, Skbs::new(*policy)));
    }
    all
}

/// What is lost when three threads give to one, and one to three.
pub(crate) fn lost_by_many(bursts: u64) -> Vec<(&'static str, usize)> {
    vec![("grilse skbs", many::lost(|| Skbs::new(Policy::GRILSE), bursts))]
}

/// The memory core alone, with the least object that can go home.
struct Slots {
    depot: &'static Depot<Cell>,
    homes: [&'static Home<Cell>; SEATS],
}

/// One line that knows its home, as an skb's shell does.
#[repr(align(64))]
struct Cell {
    home: Option<&'static Home<Cell>>,
}

impl Recycle for Cell {
    fn recycle(slot: Slot<Self>) {
        if let Some(home) = slot.home {
            home.post(slot);
        }
    }

    #[inline]
    fn stamp(&mut self, home: &'static Home<Self>) {
        self.home = Some(home);
    }
}

impl Slots {
    fn new() -> Self {
        let depot = Depot::new(OBJECTS as u32, None, |_| Cell { home: None });
        let depot = depot.expect("half a megabyte");
        Self { depot, homes: [0, 1, 2, 3].map(|id| Home::new(Role::Worker, id, depot)) }
    }
}

impl Pool for Slots {
    type Handle = Slot<Cell>;
    type Seat = SlotSeat;

    fn seat(&'static self, side: usize) -> SlotSeat {
        let cache = Cache::new(self.homes[side]).expect("two magazines");
        SlotSeat { cache, home: self.homes[side] }
    }

    fn in_use(&'static self) -> Option<usize> {
        Some((self.depot.made() - self.depot.stocked()) as usize)
    }
}

struct SlotSeat {
    cache: Cache<Cell>,
    home: &'static Home<Cell>,
}

impl Seat<Slot<Cell>> for SlotSeat {
    #[inline]
    fn begin(&mut self) {
        self.cache.resume(0);
    }

    #[inline]
    fn take(&mut self) -> Option<Slot<Cell>> {
        self.cache.take()
    }

    #[inline]
    fn free(&mut self, slot: Slot<Cell>) {
        match slot.home {
            Some(home) => self.cache.free(slot, home),
            None => self.cache.put(slot),
        }
    }

    #[inline]
    fn take_burst(&mut self, burst: &mut Burst<Slot<Cell>>, have: usize) -> usize {
        have + self.cache.take_bulk(&mut burst.0[have..], |slot| slot)
    }

    #[inline]
    fn free_burst(&mut self, burst: &mut Burst<Slot<Cell>>) {
        // A burst is of one home here, as the work has it.
        let home = burst.0[0].as_ref().and_then(|slot| slot.home).unwrap_or(self.home);
        let full = burst.0.partition_point(Option::is_some);
        self.cache.free_bulk(&mut burst.0[..full], home, |slot| slot);
    }

    #[inline]
    fn end(&mut self) {
        self.cache.end();
    }
}

impl Object for Slot<Cell> {
    fn write<const SHELL: usize, const HEAD: usize>(&mut self, _seq: u64) {
        debug_assert_eq!(SHELL + HEAD, 0, "slots are handles");
    }

    fn read<const SHELL: usize, const HEAD: usize>(&self) -> u64 {
        debug_assert_eq!(SHELL + HEAD, 0, "slots are handles");
        0
    }
}

/// The whole skb, through the door that workers use.
pub(crate) struct Skbs(&'static Memory);

impl Skbs {
    pub(crate) fn new(policy: Policy) -> Self {
        let memory = Memory::new(OBJECTS as u32, None).expect("twenty megabytes");
        memory.set_policy(policy).expect("a named profile");
        Self(memory)
    }
}

impl Pool for Skbs {
    type Handle = Skb;
    type Seat = Ctx;

    fn seat(&'static self, _side: usize) -> Ctx {
        Ctx::new(self.0.seat(Role::Worker)).expect("magazines for two")
    }

    fn in_use(&'static self) -> Option<usize> {
        Some(self.0.ledgers().shells.in_use as usize)
    }
}

impl Seat<Skb> for Ctx {
    #[inline]
    fn begin(&mut self) {
        Ctx::begin(self, 0);
    }

    #[inline]
    fn take(&mut self) -> Option<Skb> {
        Ctx::take(self)
    }

    #[inline]
    fn free(&mut self, skb: Skb) {
        self.consume(skb);
    }

    #[inline]
    fn take_burst(&mut self, burst: &mut Burst<Skb>, have: usize) -> usize {
        have + self.take_bulk(&mut burst.0[have..])
    }

    #[inline]
    fn free_burst(&mut self, burst: &mut Burst<Skb>) {
        self.consume_bulk(&mut burst.0);
    }

    #[inline]
    fn end(&mut self) {
        Ctx::end(self);
    }
}

/// Taking an skb zeroes its lines and writes its length, which is the first of the six words. Its
/// shell has no lines to spare: two more of the head stand for the third and the fourth.
impl Object for Skb {
    #[inline(always)]
    fn write<const SHELL: usize, const HEAD: usize>(&mut self, seq: u64) {
        let meta = self.meta_mut();
        meta.seq = seq;
        meta.time_ns = seq + 1;
        meta.hash = seq as u32;
        meta.interface = INTERFACE;
        meta.protocol = PROTOCOL;
        let lines = SHELL + HEAD - 2;
        if lines > 0 {
            let bytes = self.put(lines * 64).expect("a head of 2 KiB");
            for word in bytes.as_chunks_mut().0 {
                *word = seq.to_ne_bytes();
            }
        }
    }

    #[inline(always)]
    fn read<const SHELL: usize, const HEAD: usize>(&self) -> u64 {
        let meta = self.meta();
        let mut sum = (self.len() - (SHELL - 2) * 64) as u64;
        sum += meta.seq + meta.time_ns + u64::from(meta.hash);
        sum += u64::from(meta.interface) + u64::from(meta.protocol);
        if SHELL + HEAD > 2 {
            for word in self.front().as_chunks().0 {
                sum += u64::from_ne_bytes(*word);
            }
        }
        sum
    }
}

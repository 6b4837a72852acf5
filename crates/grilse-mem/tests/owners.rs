//! Cells, shared cells and frames: who owns them, and what they refuse.

use std::collections::BTreeSet;
use std::error::Error;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use grilse_mem::{
    Arena, Counted, Depot, FrameLedger, FramePool, Home, MapError, Node, Pages, PoolError, Recycle,
    Role, Share, Shared, Slot,
};

#[derive(Debug, PartialEq)]
#[repr(align(64))]
struct Object(u32);

impl Recycle for Object {
    fn recycle(slot: Slot<Self>) {
        std::mem::forget(slot);
    }
}

#[test]
fn cells_are_carved_up_to_the_capacity() {
    let arena = Arena::<Object>::reserve(3, None).unwrap();
    assert_eq!((arena.capacity(), arena.carved()), (3, 0));
    let slots = [7, 8, 9].map(|n| arena.carve(Object(n)).unwrap());
    assert_eq!(arena.carve(Object(10)).unwrap_err(), Object(10), "the arena is full");
    for (index, slot) in slots.iter().enumerate() {
        assert_eq!(**slot, Object(7 + index as u32));
        assert_eq!(std::ptr::from_ref(&**slot).addr() % 64, 0);
        assert_eq!(arena.index(slot), Some(index as u32));
    }
    let other = Arena::<Object>::reserve(4, None).unwrap();
    assert_eq!(other.index(&slots[0]), None, "of another arena");
    assert!(Arena::<Object>::reserve(0, None).unwrap().carve(Object(0)).is_err());
}

/// Threads carve at once: each cell goes to one of them.
#[test]
fn a_cell_is_carved_once() {
    let arena = Arena::<Object>::reserve(1000, None).unwrap();
    let carve = move || (0..).map_while(|n| arena.carve(Object(n)).ok()).collect::<Vec<_>>();
    let threads = [(); 4].map(|()| thread::spawn(carve));
    let slots: Vec<_> = threads.into_iter().flat_map(|t| t.join().unwrap()).collect();
    let indices: BTreeSet<_> = slots.iter().filter_map(|slot| arena.index(slot)).collect();
    assert_eq!((slots.len(), indices.len(), arena.carved()), (1000, 1000, 1000));
}

#[derive(Debug)]
struct Value {
    number: u32,
    freed: &'static AtomicU32,
    depot: &'static Depot<Counted<Value>>,
}

impl Share for Value {
    fn recycle(slot: Slot<Counted<Self>>) {
        slot.freed.fetch_add(1, Ordering::Relaxed);
        slot.depot.give_one(slot);
    }
}

#[test]
fn the_last_of_many_owners_frees() {
    static FREED: AtomicU32 = AtomicU32::new(0);
    let make = |depot| Counted::new(Value { number: 0, freed: &FREED, depot });
    let depot = Depot::new(1, None, make).unwrap();
    for round in 1..200 {
        let mut slot = depot.take_one().unwrap();
        slot.number = round;
        let shared = Shared::new(slot);
        let others: Vec<_> = (0..4)
            .map(|_| shared.clone())
            .map(|mine| {
                thread::spawn(move || {
                    let again = mine.clone();
                    assert_eq!((again.number, mine.number), (round, round));
                })
            })
            .collect();
        assert!((1..=9).contains(&shared.owners()));
        drop(shared);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(FREED.load(Ordering::Relaxed), round);
        assert_eq!(depot.stocked(), 1);
    }
    let shared = Shared::new(depot.take_one().unwrap());
    let other = shared.clone();
    let shared = shared.into_slot().unwrap_err();
    assert_eq!(shared.owners(), 2);
    drop(other);
    let slot = shared.into_slot().unwrap();
    // A slot that was shared can be shared again; swapping values swaps no owners.
    assert_eq!(Shared::new(slot).owners(), 1);
}

#[test]
fn frames_are_whole_at_first_and_cut_within_bounds() {
    for size in [64, 1500, 4096, 32_768] {
        let mut pool = FramePool::new(3, size, None).unwrap();
        let mut frames: Vec<_> = std::iter::from_fn(|| pool.take()).collect();
        assert_eq!(frames.len(), 3);
        for (number, frame) in frames.iter_mut().enumerate() {
            let size = size as usize;
            assert_eq!((frame.index(), frame.offset(), frame.len()), (number as u32, 0, size));
            assert!(frame.bytes().iter().all(|byte| *byte == 0));
            frame.bytes_mut().unwrap().fill(number as u8 + 1);
            frame.set_range(size..size);
            assert!(frame.is_empty());
            frame.set_range(size - 1..size);
            assert_eq!(frame.bytes(), [number as u8 + 1]);
            frame.set_range(0..size);
        }
        for (number, frame) in frames.iter().enumerate() {
            assert!(frame.bytes().iter().all(|byte| *byte == number as u8 + 1), "no overlap");
        }
        let mut frame = frames.pop().unwrap();
        let past = std::panic::AssertUnwindSafe(|| frame.set_range(0..size as usize + 1));
        assert!(std::panic::catch_unwind(past).is_err());
    }
}

#[test]
fn shared_frames_are_read_only() {
    let mut pool = FramePool::new(2, 256, None).unwrap();
    let mut frame = pool.take().unwrap();
    let mut part = frame.clone();
    part.set_range(10..20);
    assert!(!frame.is_sole() && frame.bytes_mut().is_none() && part.bytes_mut().is_none());
    drop(frame);
    assert_eq!(part.bytes_mut().unwrap().len(), 10);
    assert!(part.same_pool(&pool.take().unwrap()));
    let expected = FrameLedger { returned: 1, in_use: 1, ..FrameLedger::default() };
    assert_eq!(pool.ledger(), expected);
    drop(part);
    assert_eq!(pool.take().unwrap().len(), 256, "whole again");
}

#[test]
fn frames_come_back_from_any_thread() {
    let mut pool = FramePool::new(64, 64, None).unwrap();
    for round in 0..500u32 {
        let frames: Vec<_> = std::iter::from_fn(|| pool.take()).collect();
        assert_eq!(frames.len(), 64, "round {round}");
        let mut parts: [Vec<_>; 2] = Default::default();
        for (number, mut frame) in frames.into_iter().enumerate() {
            frame.bytes_mut().unwrap().fill(round as u8);
            parts[number % 2].push(frame.clone());
            parts[(number + number / 2) % 2].push(frame);
        }
        let threads = parts.map(|part| {
            thread::spawn(move || {
                for frame in part {
                    assert!(frame.bytes().iter().all(|byte| *byte == round as u8));
                }
            })
        });
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(pool.ledger().in_use, 0);
    }
}

#[test]
fn an_object_of_another_depot_is_not_taken_in() {
    let make = |_: &'static Depot<Object>| Object(0);
    let (one, other) = (Depot::new(1, None, make).unwrap(), Depot::new(1, None, make).unwrap());
    let home = Home::new(Role::Device, 3, one);
    assert_eq!((home.role(), home.id()), (Role::Device, 3));
    let stray = other.take_one().unwrap();
    let posted = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| home.post(stray)));
    assert_eq!(posted.is_err(), cfg!(debug_assertions));
    assert_eq!(home.waiting(), 0);
}

#[test]
fn large_arenas_stand_on_large_pages_where_there_are_any() {
    let small = FramePool::new(1, 4096, None).unwrap();
    assert_eq!(small.pages(), Pages::Ordinary);
    let mut large = FramePool::new(2048, 4096, None).unwrap();
    println!("8 MiB stand on {:?} pages", large.pages());
    assert!(large.take().unwrap().bytes().iter().all(|byte| *byte == 0));
    assert_eq!((large.count(), large.size()), (2048, 4096));
}

#[test]
fn refusals_say_what_was_asked_for() {
    let size = FramePool::new(1, 63, None).unwrap_err();
    assert_eq!(size.to_string(), "frame size 63 is not in 64..=32768");
    assert!(matches!(size, PoolError::Size { size: 63 }) && size.source().is_none());
    assert!(FramePool::new(1, 32_769, None).is_err());

    let many = Arena::<Object>::reserve(1 << 31, None).unwrap_err();
    assert_eq!(many.to_string(), "2147483648 packet buffers are too many for one pool");
    let many = FramePool::new(u32::MAX, 64, None).unwrap_err();
    assert_eq!(many.to_string(), "no memory for a page pool");
    assert!(matches!(many, PoolError::Map(MapError::TooLarge { objects: u32::MAX })));

    let node = FramePool::new(1, 64, Some(Node(1023))).unwrap_err();
    let bind = node.source().expect("the cause");
    assert_eq!(bind.to_string(), "bind packet buffers to node 1023");
    assert!(bind.source().is_some(), "what the system said");
    let beyond = Arena::<Object>::reserve(1, Some(Node(u16::MAX))).unwrap_err();
    assert!(matches!(beyond, MapError::Bind { node: Node(u16::MAX), .. }));
}

/// A type so large that its arena's length would not fit in a word. With what the arena adds, and
/// whole cache lines, a cell takes a power of two.
struct Vast {
    _bytes: [u8; (1 << 40) - 64],
}

impl Recycle for Vast {
    fn recycle(slot: Slot<Self>) {
        std::mem::forget(slot);
    }
}

#[test]
fn lengths_do_not_wrap() {
    let wraps = Arena::<Vast>::reserve(1 << 24, None).unwrap_err();
    assert!(matches!(wraps, MapError::TooLarge { objects: 0x100_0000 }));
    let refused = Arena::<Vast>::reserve(1 << 20, None).unwrap_err();
    assert!(matches!(refused, MapError::Map { len: 0x1000_0000_0000_0000, .. }));
    assert_eq!(refused.to_string(), "map 1152921504606846976 bytes for packet buffers");
}

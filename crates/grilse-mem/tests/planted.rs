//! Invariant I3, by faults that safe code cannot commit: each is planted in a process of its own (this
//! test, started again), which must end and say what it found and where. The same steps without the
//! fault must pass.

#![cfg(all(feature = "audit", not(any(loom, shuttle))))]

use std::process::Command;
use std::ptr;

use grilse_mem::{
    Cache, Counted, Depot, FramePool, Home, Recycle, Returns, Role, Share, Shared, Slot,
};

struct Object {
    depot: &'static Depot<Object>,
    bytes: [u8; 256],
}

impl Recycle for Object {
    fn recycle(slot: Slot<Self>) {
        slot.depot.give_one(slot);
    }

    fn spare_bytes(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

fn depot() -> &'static Depot<Object> {
    Depot::new(64, None, |depot| Object { depot, bytes: [0; 256] }).unwrap()
}

/// Runs `body` of the test called `name` with the fault and without, each in its own process.
fn finds(name: &str, said: &str, body: fn(planted: bool)) {
    const PLANT: &str = "GRILSE_PLANT";
    if let Some(planted) = std::env::var_os(PLANT) {
        return body(planted == "yes");
    }
    for (planted, finds) in [("no", false), ("yes", true)] {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env(PLANT, planted)
            .output()
            .unwrap();
        let log = String::from_utf8_lossy(&child.stderr);
        assert_eq!(child.status.success(), !finds, "planted: {planted}\n{log}");
        assert_eq!(log.contains(said), finds, "planted: {planted}\n{log}");
    }
}

/// A handle is kept beyond the free; by then somebody else has the object.
#[test]
fn i3_a_stale_handle() {
    let said = "audit: a handle of life 1 is used in life 2, place: in use";
    finds("i3_a_stale_handle", said, |planted| {
        let depot = depot();
        let slot = depot.take_one().unwrap();
        // SAFETY: none: this is the fault. The process ends before the twin is used.
        let twin = planted.then(|| unsafe { ptr::read(&slot) });
        drop(slot);
        let again = depot.take_one().unwrap();
        assert_eq!(again.bytes[0], 0x6b, "poisoned as it was freed");
        assert!(twin.is_none_or(|twin| twin.bytes[0] == 0));
    });
}

/// A handle is dropped twice: the second time while the object lies in a cache.
#[test]
fn i3_a_double_free() {
    let said = "audit: an object moves from in use to a cache, but is in a cache";
    finds("i3_a_double_free", said, |planted| {
        let home = Home::new(Role::Worker, 0, depot());
        let mut cache = Cache::new(home).unwrap();
        let slot = cache.take().unwrap();
        // SAFETY: none, as above.
        let twin = planted.then(|| unsafe { ptr::read(&slot) });
        cache.free(slot, home);
        twin.into_iter().for_each(|twin| cache.free(twin, home));
    });
}

/// Somebody writes to an object that waits for its home.
#[test]
fn i3_a_write_to_a_free_object() {
    let said = "audit: byte 17 of an object was written to while it was in an inbox";
    finds("i3_a_write_to_a_free_object", said, |planted| {
        let home = Home::new(Role::Worker, 0, depot());
        let mut cache = Cache::new(home).unwrap();
        let mut slot = cache.take().unwrap();
        let byte = ptr::from_mut(&mut slot.bytes[17]);
        home.post(slot);
        if planted {
            // SAFETY: none: this is the fault. The cell is mapped for good.
            unsafe { byte.write(1) };
        }
        assert_eq!(cache.drain(), 1);
    });
}

struct Value(&'static Depot<Counted<Value>>);

impl Share for Value {
    fn recycle(slot: Slot<Counted<Self>>) {
        slot.0.give_one(slot);
    }
}

/// One of several owners counts itself out twice, so that the object goes under the other.
#[test]
fn i3_an_owner_too_few() {
    let said = "audit: a handle of life 1 is used in life 2, place: the depot";
    finds("i3_an_owner_too_few", said, |planted| {
        let depot = Depot::new(1, None, |depot| Counted::new(Value(depot))).unwrap();
        let one = Shared::new(depot.take_one().unwrap());
        let other = one.clone();
        // SAFETY: none: this is the fault.
        let twin = planted.then(|| unsafe { ptr::read(&other) });
        drop((other, twin));
        assert_eq!(one.owners(), 1);
    });
}

/// A slice of a frame is used after its frame went back.
#[test]
fn i3_a_stale_slice() {
    let said = "audit: an object is used as if in use, but its place is an inbox";
    finds("i3_a_stale_slice", said, |planted| {
        let mut pool = FramePool::new(4, 256, None).unwrap();
        let frame = pool.take().unwrap();
        // SAFETY: none: this is the fault.
        let twin = planted.then(|| unsafe { ptr::read(&frame) });
        drop(frame);
        assert!(twin.is_none_or(|twin| twin.bytes().len() == 256));
    });
}

/// Somebody, a device that was not stopped, writes to a frame that a thread has gathered.
#[test]
fn i3_a_write_to_a_free_frame() {
    let said = "audit: byte 200 of an object was written to while it was in a cache";
    finds("i3_a_write_to_a_free_frame", said, |planted| {
        let mut pool = FramePool::new(1, 256, None).unwrap();
        let mut returns = Returns::new();
        let mut frame = pool.take_with(&mut returns).unwrap();
        assert!(frame.bytes().iter().all(|byte| *byte == 0), "nobody had it before");
        let byte = ptr::from_mut(&mut frame.bytes_mut().unwrap()[200]);
        returns.free(frame);
        if planted {
            // SAFETY: none: this is the fault. The frame is mapped for good.
            unsafe { byte.write(1) };
        }
        let again = pool.take_with(&mut returns).unwrap();
        assert!(again.bytes().iter().all(|byte| *byte == 0x6b));
    });
}

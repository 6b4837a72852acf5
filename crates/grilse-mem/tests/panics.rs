//! Closures of a caller that panic amid a bulk: each object is then with the caller or where it was,
//! and none is lost.

use std::panic::{AssertUnwindSafe, catch_unwind};

use grilse_mem::{Cache, Depot, Home, Ledger, Policy, Recycle, Role, Slot};

#[derive(Debug)]
struct Object {
    depot: &'static Depot<Object>,
}

impl Recycle for Object {
    fn recycle(slot: Slot<Self>) {
        slot.depot.give_one(slot);
    }
}

/// Passes objects on, and panics at the one after so many.
fn panics_after(mut left: usize) -> impl FnMut(Slot<Object>) -> Slot<Object> {
    move |slot| {
        left = left.checked_sub(1).expect("planted");
        slot
    }
}

/// Takes as many as there are places, of which the closure panics at one.
fn take_and_panic(cache: &mut Cache<Object>, home: &'static Home<Object>, after: usize) {
    let mut out = [const { None }; 90];
    let bulk = || cache.take_bulk(&mut out, panics_after(after));
    assert!(catch_unwind(AssertUnwindSafe(bulk)).is_err());
    out.into_iter().flatten().for_each(|slot| cache.free(slot, home));
}

/// Frees what `owner` took, of which the closure panics at one, then what is left.
fn free_and_panic(
    owner: &mut Cache<Object>,
    freer: Option<&mut Cache<Object>>,
    home: &'static Home<Object>,
    after: usize,
) {
    let mut objects = [const { None }; 90];
    assert_eq!(owner.take_bulk(&mut objects, |slot| slot), 90);
    let freer = freer.unwrap_or(owner);
    let bulk = || freer.free_bulk(&mut objects, home, panics_after(after));
    assert!(catch_unwind(AssertUnwindSafe(bulk)).is_err());
    objects.into_iter().flatten().for_each(|slot| freer.free(slot, home));
}

#[test]
fn no_object_is_lost_to_a_panic() {
    for (name, policy) in Policy::PROFILES {
        let depot = Depot::new(600, None, |depot| Object { depot }).unwrap();
        let homes = [0, 1].map(|id| Home::new(Role::Worker, id, depot));
        let [mut here, mut there] = homes.map(|home| Cache::new(home).unwrap());
        // From the first object of a magazine to beyond its last.
        for after in (0..90).step_by(7) {
            here.begin(0, policy);
            there.begin(0, policy);
            take_and_panic(&mut here, homes[0], after);
            free_and_panic(&mut here, None, homes[0], after);
            free_and_panic(&mut here, Some(&mut there), homes[0], after);
            here.end();
            there.end();
        }
        drop((here, there));
        let ledger = Ledger::count(depot, homes);
        assert_eq!((ledger.in_use, ledger.made), (0, ledger.depot), "{name}");
        let all: Vec<_> = std::iter::from_fn(|| depot.take_one()).collect();
        assert_eq!(all.len(), 600, "{name}");
    }
}

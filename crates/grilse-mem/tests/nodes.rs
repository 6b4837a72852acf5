//! Which node an object is of: by its address, for every size of memory and number of nodes.

#![cfg(not(any(loom, shuttle)))]

use grilse_mem::{Depot, Node, Numa, Recycle, Slot};
use proptest::prelude::*;

/// An object that knows the node that it was made for.
#[derive(Debug)]
struct Object(Node);

impl Recycle for Object {
    fn recycle(slot: Slot<Self>) {
        std::mem::forget(slot);
    }
}

proptest! {
    /// The depots of a memory make objects that stand in the order of the nodes, as many as there
    /// are to be; and whichever depot is given an object, it is the one that made it that has it.
    #[test]
    fn the_address_tells_the_node(
        capacity in 0u32..600,
        count in 1u16..=64,
        given in prop::collection::vec(any::<prop::sample::Index>(), 600),
        by_magazine: bool,
    ) {
        let nodes = Numa::Virtual { count, cost_ns: 0 }.nodes().unwrap();
        let depots = Depot::for_nodes(capacity, &nodes, |depot| Object(depot.node())).unwrap();
        prop_assert_eq!(depots.iter().map(Depot::capacity).sum::<u32>(), capacity);
        let mut objects = Vec::new();
        for depot in depots {
            objects.extend((0..depot.capacity()).map(|_| depot.take_one().unwrap()));
            prop_assert_eq!(depot.made(), depot.capacity());
        }
        prop_assert!(depots[0].take_one().is_none(), "nor has any other node");

        let mut by_address: Vec<_> =
            objects.iter().map(|slot| (std::ptr::from_ref(&**slot).addr(), slot.0)).collect();
        by_address.sort_unstable();
        let in_order: Vec<_> = by_address.iter().map(|(_, node)| *node).collect();
        prop_assert!(in_order.is_sorted());
        let of = |node| in_order.iter().filter(|of| **of == node).count() as u32;
        prop_assert!(depots.iter().all(|depot| depot.capacity() == of(depot.node())));

        for (slot, to) in objects.into_iter().zip(&given) {
            let depot = to.get(depots);
            if by_magazine {
                let mut magazine = depot.take_empty().unwrap();
                magazine.push(slot).unwrap();
                depot.give(magazine);
            } else {
                depot.give_one(slot);
            }
        }
        prop_assert!(depots.iter().all(|depot| depot.stocked() == depot.capacity()));
        for depot in depots {
            let own = (0..depot.capacity()).map(|_| depot.take_one().unwrap().0);
            prop_assert!(own.into_iter().all(|node| node == depot.node()));
        }
    }
}

//! Memory of several nodes, on virtual ones: where objects are taken from and where they go
//! (invariant I12), what it costs to reach over, and what is refused.

use std::error::Error;
use std::time::{Duration, Instant};

use grilse_mem::{Alien, BadPolicy, Locality, Node, Numa, Policy, Role, ShellCache};
use grilse_packet::{Ctx, Memory, MemoryError, NoNode, Skb};

fn memory(skbs: u32, count: u16, cost_ns: u32) -> &'static Memory {
    Memory::with_nodes(skbs, Numa::Virtual { count, cost_ns }).unwrap()
}

fn worker(memory: &'static Memory, node: u16) -> Ctx {
    Ctx::new(memory.seat_on(Role::Worker, Node(node)).unwrap()).unwrap()
}

fn take(ctx: &mut Ctx, count: usize) -> Vec<Skb> {
    (0..count).map(|_| ctx.take().unwrap()).collect()
}

/// A worker on each of two nodes takes packets, and the other frees them, for many rounds. Returns
/// what the two say.
fn cross(memory: &'static Memory, policy: Policy) -> [Locality; 2] {
    memory.set_policy(policy).unwrap();
    let mut ctxs = [worker(memory, 0), worker(memory, 1)];
    for round in 0..50u64 {
        ctxs.iter_mut().for_each(|ctx| ctx.begin(round));
        let held = [50, 100].map(|count| count + round as usize % 7);
        let [first, second] = [0, 1].map(|which| take(&mut ctxs[which], held[which]));
        first.into_iter().for_each(|skb| ctxs[1].consume(skb));
        // By the burst, too.
        ctxs[0].consume_bulk(&mut second.into_iter().map(Some).collect::<Vec<_>>());
        ctxs.iter_mut().for_each(Ctx::end);
    }
    let said = [0, 1].map(|which| ctxs[which].stats().locality);
    (0..2).for_each(|_| ctxs.iter_mut().for_each(Ctx::flush));
    drop(ctxs);
    for node in memory.node_ledgers() {
        assert_eq!(node.depot, node.made, "idle, so where it stands: {node:?}");
    }
    said
}

/// I12: under policies that send home, each takes what is of its own node; under those that adopt,
/// they drift, and the figures say so.
#[test]
fn i12_locality() {
    let adaptive_adopts = Policy { free_tx_alien: Alien::Adopt, ..Policy::GRILSE };
    let policies = [("grilse that adopts", adaptive_adopts)];
    for (name, policy) in Policy::PROFILES.iter().copied().chain(policies) {
        for policy in [true, false].map(|numa_adopt| Policy { numa_adopt, ..policy }) {
            let said = cross(memory(2000, 2, 0), policy);
            let shares = said.map(|locality| locality.share().unwrap());
            let adopted = said.iter().map(|locality| locality.adopted).sum::<u64>();
            println!("{name:22} numa.adopt {:5} {shares:.3?} {adopted}", policy.numa_adopt);
            let adopts = policy.free_tx_alien == Alien::Adopt && policy.numa_adopt;
            assert_eq!(adopted > 0, adopts, "{name}: {said:?}");
            // A cache that lives for one round gives all to the slab, which knows the nodes.
            let drifts = adopts && policy.shell_cache == ShellCache::Persistent;
            assert_eq!(shares.iter().any(|share| *share < 0.9), drifts, "{name}: {said:?}");
            if !drifts {
                assert_eq!(shares, [1.0, 1.0], "{name}: {said:?}");
            }
            assert!(said.iter().all(|locality| locality.borrowed == 0), "{said:?}");
        }
    }
}

/// The ledger of each node, while packets are out and when a node lends to another.
#[test]
fn a_node_that_has_none_left_borrows() {
    let memory = memory(64, 2, 0);
    let mut here = worker(memory, 0);
    let made = || memory.node_ledgers().map(|node| (node.capacity, node.made)).collect::<Vec<_>>();
    assert_eq!(made(), [(32, 0), (32, 0)]);
    let own = take(&mut here, 32);
    assert_eq!(made(), [(32, 32), (32, 0)]);
    let other = take(&mut here, 32);
    assert_eq!(made(), [(32, 32), (32, 32)]);
    assert!(here.take().is_none());
    let said = here.stats().locality;
    assert_eq!((said.own, said.other, said.borrowed), (32, 32, 32));

    // They go back to where they stand, and not to the cache of who borrowed them.
    other.into_iter().for_each(|skb| here.consume(skb));
    assert_eq!(memory.node_ledgers().map(|node| node.depot).collect::<Vec<_>>(), [0, 32]);
    own.into_iter().for_each(|skb| here.consume(skb));
    here.flush();
    assert_eq!(memory.node_ledgers().map(|node| node.depot).collect::<Vec<_>>(), [32, 32]);
    assert_eq!(memory.ledgers().shells.depot, 64);

    // From there as well, without a context and after all who could take them in are gone.
    let mut there = worker(memory, 1);
    let held = take(&mut there, 64);
    drop(there);
    held.into_iter().for_each(drop);
    assert_eq!(memory.node_ledgers().map(|node| node.depot).collect::<Vec<_>>(), [32, 32]);
}

fn time(work: impl FnOnce()) -> Duration {
    let began = Instant::now();
    work();
    began.elapsed()
}

/// The wait for another node's memory is observed, never shorter than stated, and only where it is
/// due.
#[test]
fn reaching_over_costs_what_is_stated() {
    const COST: Duration = Duration::from_micros(200);
    let memory = memory(256, 2, COST.as_nanos() as u32);
    let (mut here, mut there) = (worker(memory, 0), worker(memory, 1));
    let own: Vec<_> = (0..128)
        .map(|_| {
            let mut skb = None;
            (time(|| skb = here.take()), skb.unwrap())
        })
        .collect();
    assert!(own.iter().map(|(took, _)| *took).min().unwrap() < COST, "nothing is due");
    // The other depot is asked for the shell and for its data, and both are another node's.
    let mut far = None;
    assert!(time(|| far = here.take()) >= 2 * COST);
    assert_eq!(here.stats().locality.other, 1);

    // A magazine that was filled on another node, and one that was filled on this.
    own.into_iter().for_each(|(_, skb)| there.consume(skb));
    there.end();
    let due = there.stats().magazines_sent as u32;
    assert_eq!(due, 3);
    assert!(time(|| here.begin(1)) >= due * COST);
    let mut neighbour = worker(memory, 0);
    let quickest = (0..10).map(|round| {
        take(&mut here, 60).into_iter().for_each(|skb| neighbour.consume(skb));
        neighbour.end();
        time(|| here.begin(round))
    });
    assert!(quickest.min().unwrap() < COST, "nothing is due");
}

/// The list of 2025 has an end for each node, so its owner knows where objects come from.
#[test]
fn the_list_of_2025_is_one_for_each_node() {
    const COST: Duration = Duration::from_micros(50);
    let memory = memory(1000, 2, COST.as_nanos() as u32);
    memory.set_policy(Policy::KERNEL_2025_11_HOME).unwrap();
    let mut home = worker(memory, 0);
    let mut others = [worker(memory, 0), worker(memory, 1)];
    home.begin(0);
    others.iter_mut().for_each(|ctx| ctx.begin(0));
    for ctx in &mut others {
        // As many as one takes, less one: each node has a bound of its own.
        take(&mut home, 127).into_iter().for_each(|skb| ctx.consume(skb));
        assert_eq!((ctx.stats().sent_home, ctx.stats().overflows), (127, 0));
    }
    home.end();
    assert_eq!(memory.ledgers().shells.travelling, 254);
    assert!(time(|| home.begin(1)) >= 127 * COST);
    home.end();
    assert_eq!(memory.ledgers().shells.travelling, 0);
}

/// What is out of range is refused, says what is allowed, and maps nothing.
#[test]
fn nodes_out_of_range_are_refused() {
    for (count, cost_ns) in [(0, 0), (65, 0), (u16::MAX, 0), (2, 1_000_001), (2, u32::MAX)] {
        let numa = Numa::Virtual { count, cost_ns };
        // More packets than can be, so that it would be refused for that as well.
        let refused = Memory::with_nodes(u32::MAX, numa).unwrap_err();
        let MemoryError::Numa(BadPolicy::Value { knob, value, allowed }) = &refused else {
            panic!("{refused:?}");
        };
        assert_eq!((*knob, value.parse::<Numa>().is_err()), ("numa.mode", true));
        assert!(refused.to_string().ends_with(allowed.as_str()), "{refused}");
    }
    let many = Memory::with_nodes(u32::MAX, Numa::Off).unwrap_err();
    assert!(matches!(many, MemoryError::Map(_)) && many.source().is_some());
    let memory = memory(100, 2, 0);
    assert_eq!(memory.seat_on(Role::Worker, Node(2)).unwrap_err(), NoNode(Node(2)));
}

/// The knob's text is read as it is written.
#[test]
fn the_knob_in_text() {
    for text in ["off", "real", "virtual:1:0", "virtual:64:1000000", "virtual:2:57"] {
        assert_eq!(text.parse::<Numa>().unwrap().to_string(), text);
    }
    for text in ["", "on", "virtual", "virtual:2", "virtual:2:", "virtual:0:1", "virtual:2:57:1"] {
        assert!(text.parse::<Numa>().is_err(), "{text}");
    }
}

/// Seats are on the node of who asks, by name on any, and on virtual nodes in turn.
#[test]
fn seats_are_on_nodes() {
    let virtual_ones = memory(100, 3, 0);
    assert_eq!(virtual_ones.nodes(), [Node(0), Node(1), Node(2)]);
    let mut seats: Vec<_> = (0..6).map(|_| virtual_ones.seat(Role::Worker)).collect();
    assert!(seats.iter().map(|seat| seat.node().0).eq([0, 1, 2, 0, 1, 2]));
    drop(seats.remove(1));
    assert_eq!(virtual_ones.seat(Role::Foreign).node(), Node(1), "where fewest are");

    let real = Memory::with_nodes(1000, Numa::Real).unwrap();
    let node = real.seat(Role::Worker).node();
    assert!(real.nodes().contains(&node));
    let mut ctx = Ctx::new(real.seat_on(Role::Worker, node).unwrap()).unwrap();
    let held = take(&mut ctx, 10);
    let said = ctx.stats().locality;
    // Of one node there is nothing to count.
    assert_eq!(said.share(), (real.nodes().len() > 1).then_some(1.0));
    held.into_iter().for_each(|skb| ctx.consume(skb));
}

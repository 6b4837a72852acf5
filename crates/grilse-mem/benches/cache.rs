//! Handles alone: take and put through a cache, one by one, in bursts of 1 and of 32.

#![allow(missing_docs, reason = "criterion's macros make public functions")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use grilse_mem::{Cache, Depot, FramePool, Home, Recycle, Role, Slot};

struct Object {
    _bytes: [u8; 192],
    depot: &'static Depot<Object>,
}

impl Recycle for Object {
    fn recycle(slot: Slot<Self>) {
        slot.depot.give_one(slot);
    }
}

fn cache(criterion: &mut Criterion) {
    let make = |depot| Object { _bytes: [0; 192], depot };
    let depot = Depot::new(4096, None, make).expect("memory for 4096 objects");
    let mut cache = Cache::new(Home::new(Role::Worker, 0, depot)).expect("two magazines");
    let mut pool = FramePool::new(1024, 2112, None).expect("1024 frames");
    let mut group = criterion.benchmark_group("take+put");
    for burst in [1, 32] {
        group.throughput(Throughput::Elements(burst as u64));
        let mut held = Vec::with_capacity(burst);
        group.bench_function(format!("slots, {burst}"), |bench| {
            bench.iter(|| {
                held.extend((0..burst).map_while(|_| cache.take()));
                held.drain(..).for_each(|slot| cache.put(slot));
            });
        });
        let mut held = Vec::with_capacity(burst);
        group.bench_function(format!("frames, {burst}"), |bench| {
            bench.iter(|| {
                held.extend((0..burst).map_while(|_| pool.take()));
                held.clear();
            });
        });
    }
}

criterion_group!(benches, cache);
criterion_main!(benches);

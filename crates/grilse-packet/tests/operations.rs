//! Random operations on a few packets at a time, each followed by a comparison with the model.

mod model;

use std::cell::RefCell;

use model::{Tally, World, ops};
use proptest::test_runner::{Config, TestRunner};

/// Runs random operations in worlds of this size; every operation must have worked sometimes.
fn run(cases: u32, skbs: std::ops::Range<u32>, frames: std::ops::Range<u32>, frame_size: u32) {
    let total = RefCell::new(Tally::new());
    let mut runner = TestRunner::new(Config { cases, ..Config::default() });
    let outcome = runner.run(&(skbs, frames, ops(120)), |(skbs, frames, ops)| {
        let mut world = World::new(skbs, frames, frame_size);
        ops.iter().for_each(|op| world.step(op));
        for (name, [done, refused]) in world.finish() {
            let mut total = total.borrow_mut();
            let entry = total.entry(name).or_default();
            entry[0] += done;
            entry[1] += refused;
        }
        Ok(())
    });
    outcome.unwrap_or_else(|fault| panic!("{fault}"));
    let total = total.into_inner();
    assert_eq!(total.len(), 19, "all operations were drawn: {total:?}");
    assert!(total.values().all(|[done, _]| *done > 0), "each worked sometimes: {total:?}");
}

#[test]
fn packets_equal_their_model() {
    run(500, 64..65, 64..65, 1024);
}

#[test]
fn heads_larger_than_a_small_head() {
    run(200, 64..65, 64..65, 8192);
}

/// One to eight skbs, one to six frames: almost everything is refused at some time, and what is
/// refused changes nothing.
#[test]
fn scarce_memory_refuses_cleanly() {
    run(500, 1..9, 1..7, 1024);
}

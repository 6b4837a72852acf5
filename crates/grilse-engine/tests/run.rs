//! Workers on threads of their own: how they end, and that others can tell.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use grilse_dev::{Device, Fault, Opener, Spec, Wanted};
use grilse_engine::{Forward, Handler, Lost, Mode, Plan, PollCtx, Port, Running, Stop};
use grilse_mem::Role;
use grilse_offload::{Config, Gro, Why};
use grilse_packet::{Memory, Skb};

fn open(opener: &mut Opener, spec: &str) -> Box<dyn Device> {
    let spec: Spec = spec.parse().unwrap();
    let wanted = Wanted { rx: true, tx: false, queues: 1 };
    opener.open(&spec, wanted).unwrap().pop().unwrap()
}

/// A worker that receives from `rx` and sends by `tx`.
fn start<H: Handler + Send + 'static>(
    opener: &mut Opener,
    [rx, tx]: [&str; 2],
    handler: H,
    stop: &Arc<Stop>,
) -> Running<H> {
    let memory = Memory::new(1024, None).unwrap();
    let rx = Port::new(open(opener, rx), Gro::new(Config::default()));
    let ports = vec![rx, Port::sending(open(opener, tx))];
    let seat = memory.seat(Role::Worker);
    let plan = Plan { seat, cpu: None, ports, handler, busy: Duration::ZERO, limit: None };
    plan.start("worker", Instant::now(), stop.clone()).unwrap()
}

fn wait(ended: impl Fn() -> bool) {
    let begun = Instant::now();
    while !ended() {
        assert!(begun.elapsed() < Duration::from_secs(20), "it does not end");
        thread::sleep(Duration::from_millis(1));
    }
}

fn io() -> Forward {
    Forward::new(Mode::Io, &[1, 0])
}

#[test]
fn whoever_comes_to_an_end_has_not_failed() {
    let stop = Arc::new(Stop::new().unwrap());
    let mut opener = Opener::default();
    let running = start(&mut opener, ["gen:,count=1000", "null:"], io(), &stop);
    wait(|| running.has_ended());
    assert!(!running.has_failed());
    assert_eq!(running.account().tx_frames, 1000);
    assert!(running.join().unwrap().fault.is_none());
}

#[test]
fn a_fault_is_failing_and_others_go_on() {
    let stop = Arc::new(Stop::new().unwrap());
    let mut opener = Opener::default();
    let other = start(&mut opener, ["gen:,rate=1000", "null:"], io(), &stop);
    let failing = {
        // Nobody has the other end of the cable.
        let mut opener = Opener::default();
        start(&mut opener, ["gen:", "pair:cut"], io(), &stop)
    };
    wait(|| failing.has_failed());
    assert!(!other.has_ended() && !other.has_failed());
    assert!(matches!(failing.join().unwrap().fault, Some(Fault::Gone { .. })));
    stop.ask();
    let ended = other.join().unwrap();
    assert!(ended.fault.is_none() && ended.account.missing() == 0);
}

struct Panics;

impl Handler for Panics {
    fn deliver(&mut self, _: &mut PollCtx<'_>, _: Skb, _: Why) {
        panic!("planted");
    }
}

#[test]
fn so_is_a_panic() {
    let stop = Arc::new(Stop::new().unwrap());
    let mut opener = Opener::default();
    let running = start(&mut opener, ["gen:", "null:"], Panics, &stop);
    wait(|| running.has_failed());
    assert!(matches!(running.join(), Err(Lost::Panicked)));
}

//! Faults on the way: every frame stays accounted for, and all follows from the seed.

use grilse_dev::{Device, Fault, Opener, Wanted};
use grilse_engine::{Account, Forward, Mode, Port, Worker};
use grilse_mem::Role;
use grilse_offload::{Config, Gro};
use grilse_packet::{Batch, Ctx, DropReason, Memory};

const ALL: &str = "fault.drop=10000,fault.dup=10000,fault.reorder=10000,fault.corrupt=10000,\
                   fault.stall=10000,fault.delay=200";
/// From one round to the next.
const ROUND_NS: u64 = 50_000;

fn open(opener: &mut Opener, spec: &str, rx: bool, tx: bool) -> Box<dyn Device> {
    let spec = spec.parse().expect("a spec");
    opener.open(&spec, Wanted { rx, tx, queues: 1 }).expect("it opens").pop().expect("one queue")
}

/// Forwards from one device to the other until both are done. Every frame is accounted for after every
/// round.
fn forward(rx: &str, tx: &str) -> (Account, Result<(), Fault>) {
    let (account, finished, _) = forward_and_look(rx, tx, |_| {});
    (account, finished)
}

/// The same; `look` is shown the far end of the cable x after every round.
fn forward_and_look(
    rx: &str,
    tx: &str,
    mut look: impl FnMut(&mut (Box<dyn Device>, Ctx)),
) -> (Account, Result<(), Fault>, u64) {
    let mut opener = Opener::default();
    let memory = Memory::new(8192, None).expect("memory");
    let mut config = Config::default();
    config.gro = false;
    let rx = Port::new(open(&mut opener, rx, true, false), Gro::new(config));
    let tx = Port::sending(open(&mut opener, tx, false, true));
    let far_ctx = Ctx::new(memory.seat(Role::Worker)).expect("a seat");
    let mut far = (open(&mut opener, "pair:x", true, false), far_ctx);
    let ctx = Ctx::new(memory.seat(Role::Worker)).expect("a seat");
    let mut worker = Worker::new(ctx, vec![rx, tx], Forward::new(Mode::Io, &[1, 0]));
    let mut now_ns = 0;
    let ended = loop {
        assert!(now_ns < 10_000_000_000, "it comes to no end: {:?}", worker.account());
        now_ns += ROUND_NS;
        let round = worker.round(now_ns);
        look(&mut far);
        assert_eq!(worker.account().missing(), 0, "at {now_ns}");
        match round {
            Ok(round) if round.ended => break Ok(()),
            Ok(_) => {}
            Err(fault) => break Err(fault),
        }
    };
    let finished = ended.and(worker.finish(now_ns));
    look(&mut far);
    let account = worker.account();
    assert_eq!(account.missing(), 0);
    drop(worker.stop());
    drop(far);
    assert_eq!(memory.ledgers().shells.in_use, 0, "all is home");
    (account, finished, now_ns)
}

/// The numbers that the generator gave the packets, as they come out of the cable.
fn numbers(options: &str) -> Vec<u64> {
    let (mut numbers, mut out) = (Vec::new(), Batch::new());
    let rx = format!("gen:,count=5000,{options}");
    let (_, finished, _) = forward_and_look(&rx, "pair:x", |(far, ctx)| {
        while far.rx(ctx, &mut out, 64).expect("a cable").taken > 0 {
            while let Some(skb) = out.pop() {
                let number = skb.linear()[42..50].try_into().expect("eight bytes");
                numbers.push(u64::from_be_bytes(number));
                ctx.consume(skb);
            }
        }
    });
    assert!(finished.is_ok(), "{finished:?}");
    numbers
}

#[test]
fn every_frame_is_accounted_for() {
    for on in ["rx", "tx", "both"] {
        let faults = format!("{ALL},fault.on={on}");
        let rx = format!("gen:,count=20000,proto=tcp,size=200,{faults}");
        let (account, finished) = forward(&rx, &format!("null:,{faults}"));
        assert!(finished.is_ok(), "{on}: {finished:?}");
        let injected = account.drops.count(DropReason::Injected);
        assert_eq!((account.rx_frames, account.held), (20000, 0), "{on}");
        assert_eq!(account.drops.total(), injected, "{on}");
        assert_eq!(account.tx_frames + injected, 20000 + account.copied, "{on}");
        let expected = if on == "both" { 300..500 } else { 140..260 };
        assert!(expected.contains(&injected) && expected.contains(&account.copied), "{account:?}");
    }
}

#[test]
fn all_follows_from_the_seed() {
    let first = numbers(ALL);
    assert_eq!(first, numbers(ALL));
    assert_ne!(first, numbers(&format!("{ALL},fault.seed=2")));
}

#[test]
fn only_what_is_asked_for_happens() {
    let all: Vec<_> = (0..5000).collect();
    assert_eq!(numbers("fault.drop=0"), all);
    assert_eq!(numbers("fault.delay=1000"), all);
    assert_eq!(numbers("fault.stall=10000"), all);
    let left = numbers("fault.drop=100000");
    assert!((4300..4700).contains(&left.len()) && left.is_sorted(), "{} left", left.len());
    let mut twice = numbers("fault.dup=100000");
    assert!((5300..5700).contains(&twice.len()) && twice.is_sorted(), "{} came", twice.len());
    twice.dedup();
    assert_eq!(twice, all);
    let mut swapped = numbers("fault.reorder=100000");
    assert!(!swapped.is_sorted());
    swapped.sort_unstable();
    assert_eq!(swapped, all);
}

#[test]
fn a_delay_is_kept() {
    let (account, finished, took_ns) =
        forward_and_look("gen:,count=1,fault.delay=20000", "null:", |_| {});
    assert!(finished.is_ok() && account.tx_frames == 1);
    assert!((20_000_000..21_000_000).contains(&took_ns), "{took_ns} ns");
}

/// A ring that loses one completion in 50 fills up, and then a device is stuck, after a stated time.
#[test]
fn lost_completions_end_in_a_named_fault() {
    let (account, finished, took_ns) =
        forward_and_look("gen:,count=1000000", "null:,fault.lost=20000", |_| {});
    let Err(Fault::Stuck { device, frames: 256 }) = finished else { panic!("{finished:?}") };
    assert_eq!(device, "null:");
    assert!((10_000..16_000).contains(&account.tx_frames), "{account:?}");
    assert!((1_000_000_000..1_500_000_000).contains(&took_ns), "{took_ns} ns");
    // All of them: no more than the ring are sent.
    let (account, finished) = forward("gen:,count=1000", "null:,fault.lost=1000000");
    assert!(matches!(finished, Err(Fault::Stuck { frames: 256, .. })), "{finished:?}");
    assert_eq!(account.tx_frames, 256);
    // Few: told at the end.
    let (_, finished) = forward("gen:,count=10", "null:,fault.lost=1000000");
    assert!(matches!(finished, Err(Fault::Stuck { frames: 10, .. })), "{finished:?}");
}

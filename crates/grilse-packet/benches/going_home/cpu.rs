//! The machine: its two CPUs, who runs on them, and what a cache line costs between them.

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

/// The first two CPUs that this process may use; `None` where it has one.
pub(crate) fn two() -> Option<[usize; 2]> {
    let mut set = cpu_set();
    // SAFETY: the set is as long as said.
    let rc = unsafe { libc::sched_getaffinity(0, size_of_val(&set), &mut set) };
    // SAFETY: CPU_ISSET reads the set, and every number is below its size.
    let allowed = |cpu: &usize| unsafe { libc::CPU_ISSET(*cpu, &set) };
    let mut allowed = (0..libc::CPU_SETSIZE as usize).filter(allowed);
    if rc == 0 { Some([allowed.next()?, allowed.next()?]) } else { None }
}

/// Binds the calling thread, and all that it spawns from now on, to one CPU.
pub(crate) fn pin(cpu: usize) {
    let mut set = cpu_set();
    // SAFETY: the number came from a set of this size.
    unsafe { libc::CPU_SET(cpu, &mut set) };
    // SAFETY: the set is as long as said.
    let rc = unsafe { libc::sched_setaffinity(0, size_of_val(&set), &set) };
    assert_eq!(rc, 0, "CPU {cpu} was allowed a moment ago");
}

fn cpu_set() -> libc::cpu_set_t {
    // SAFETY: a set is an array of integers, for which zero is a value.
    unsafe { std::mem::zeroed() }
}

/// Whether the calling thread, and all that it spawns, now run before everybody else.
pub(crate) fn run_first() -> bool {
    schedule(libc::SCHED_FIFO, 10)
}

/// Back among the others: for threads that share a CPU, of which one must not spin before another.
pub(crate) fn run_fair() {
    schedule(libc::SCHED_OTHER, 0);
}

fn schedule(policy: i32, priority: i32) -> bool {
    let param = libc::sched_param { sched_priority: priority };
    // SAFETY: the parameter is read during the call.
    (unsafe { libc::sched_setscheduler(0, policy, &param) }) == 0
}

/// Nanoseconds that one cache line takes from one CPU to the other: half of a ping-pong, over
/// `rounds` of them. To be called on the first CPU.
pub(crate) fn line_ns(cpus: [usize; 2], rounds: u64) -> f64 {
    #[repr(align(128))]
    struct Line(AtomicU64);
    let line = Line(AtomicU64::new(0));
    let there = AtomicBool::new(false);
    // Odd numbers are the other side's turn.
    let play = |own: u64| {
        for round in 0..rounds {
            let turn = 2 * round + own;
            while line.0.load(Ordering::Acquire) != turn {}
            line.0.store(turn + 1, Ordering::Release);
        }
    };
    pin(cpus[1]);
    thread::scope(|scope| {
        scope.spawn(|| {
            there.store(true, Ordering::Release);
            play(1);
        });
        pin(cpus[0]);
        while !there.load(Ordering::Acquire) {
            std::hint::spin_loop();
        }
        let began = Instant::now();
        play(0);
        while line.0.load(Ordering::Acquire) != 2 * rounds {}
        began.elapsed().as_nanos() as f64 / (2 * rounds) as f64
    })
}

/// What the figures were taken on, in one line.
pub(crate) fn machine(cpus: [usize; 2], first: bool) -> String {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let info = read("/proc/cpuinfo");
    let field = |name: &str| {
        let line = info.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split(": ").nth(1)).unwrap_or("?").to_owned()
    };
    let release = read("/proc/sys/kernel/osrelease");
    let pages = read("/sys/kernel/mm/transparent_hugepage/enabled");
    format!(
        "{} (family {}, model {}), {} CPUs, Linux {}, THP {}, CPUs {} and {}, {}",
        field("model name"),
        field("cpu family"),
        field("model"),
        thread::available_parallelism().map_or(1, usize::from),
        release.trim(),
        pages.split(['[', ']']).nth(1).unwrap_or("?"),
        cpus[0],
        cpus[1],
        if first {
            "SCHED_FIFO 10"
        } else {
            "not allowed SCHED_FIFO: others take part in the figures"
        },
    )
}

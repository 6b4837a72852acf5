//! A worker on a thread of its own: rounds until it is asked to stop, sleep where there is nothing to
//! do, and an orderly end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{fmt, io};

use grilse_dev::Fault;
use grilse_packet::{Ctx, NoSeat, Seat};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::account::{Account, Published};
use crate::limit::Limit;
use crate::port::{Handler, Port};
use crate::stop::Stop;
use crate::worker::{Round, Worker};

/// How long a worker that stops waits for its devices to send what they were given.
const DRAIN: Duration = Duration::from_millis(500);

/// All that a worker is made of; it sits down on the thread that will be its own.
#[derive(Debug)]
pub struct Plan<H> {
    /// Its seat at the memory.
    pub seat: Seat,
    /// The CPU that its thread stays on, where it is not to be moved about and
    /// [`can_run_on`] says so.
    pub cpu: Option<usize>,
    /// What it polls.
    pub ports: Vec<Port>,
    /// Where packets go.
    pub handler: H,
    /// How long it polls on in vain before it sleeps.
    pub busy: Duration,
    /// After how many frames it ends.
    pub limit: Option<Arc<Limit>>,
}

/// Whether the system lets this thread, and those that it starts, run on that CPU.
pub fn can_run_on(cpu: usize) -> bool {
    let allowed = sched_getaffinity(None);
    cpu < CpuSet::MAX_CPU && allowed.map_or(true, |allowed| allowed.is_set(cpu))
}

/// A worker that runs.
#[derive(Debug)]
pub struct Running<H> {
    thread: JoinHandle<Result<Ended<H>, NoSeat>>,
    shared: Arc<Shared>,
}

/// What a worker that runs shows to others.
#[derive(Debug, Default)]
struct Shared {
    published: Published,
    /// It has come to its end without a fault.
    ended_well: AtomicBool,
}

/// What is left of a worker.
#[derive(Debug)]
pub struct Ended<H> {
    /// The handler.
    pub handler: H,
    /// What was counted, to the last frame.
    pub account: Account,
    /// What ended it before it was asked.
    pub fault: Option<Fault>,
}

/// Why nothing is left of a worker.
#[derive(Debug)]
pub enum Lost {
    /// It could not sit down.
    NoSeat(NoSeat),
    /// It panicked; what it held went home as it unwound.
    Panicked,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSeat(error) => error.fmt(f),
            Self::Panicked => f.write_str("a worker panicked"),
        }
    }
}

impl std::error::Error for Lost {}

impl<H: Handler + Send + 'static> Plan<H> {
    /// Starts the worker. It ends when `stop` is asked for, all its ports have ended, or a device
    /// faults; times count from `epoch`.
    ///
    /// # Errors
    /// Where the system starts no thread.
    pub fn start(self, name: &str, epoch: Instant, stop: Arc<Stop>) -> io::Result<Running<H>> {
        let shared = Arc::new(Shared::default());
        let ours = shared.clone();
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || {
            if let Some(cpu) = self.cpu.filter(|cpu| can_run_on(*cpu)) {
                let mut only = CpuSet::new();
                only.set(cpu);
                // A CPU that went away leaves the thread where the system puts it: slower, not wrong.
                _ = sched_setaffinity(None, &only);
            }
            let ctx = Ctx::new(self.seat)?;
            let mut worker = Worker::new(ctx, self.ports, self.handler);
            if let Some(limit) = self.limit {
                worker.limit(limit);
            }
            let mut post = Post { worker, epoch, stop: &stop, published: &ours.published };
            let fault = post.work(self.busy).err();
            let finished = post.drain();
            let fault = fault.or(finished.err());
            let account = post.worker.account();
            ours.published.write(&account);
            ours.ended_well.store(fault.is_none(), Ordering::Release);
            Ok(Ended { handler: post.worker.stop(), account, fault })
        })?;
        Ok(Running { thread, shared })
    }
}

impl<H> Running<H> {
    /// What it has counted, up to about now.
    pub fn account(&self) -> Account {
        self.shared.published.read()
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Whether it has ended otherwise than well: by a fault, by a panic, or before it began.
    pub fn has_failed(&self) -> bool {
        self.has_ended() && !self.shared.ended_well.load(Ordering::Acquire)
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// Where nothing is left of it.
    pub fn join(self) -> Result<Ended<H>, Lost> {
        match self.thread.join() {
            Ok(ended) => ended.map_err(Lost::NoSeat),
            Err(_) => Err(Lost::Panicked),
        }
    }
}

/// A worker at work.
struct Post<'a, H> {
    worker: Worker<H>,
    epoch: Instant,
    stop: &'a Stop,
    published: &'a Published,
}

impl<H: Handler> Post<'_, H> {
    fn now_ns(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }

    fn round(&mut self) -> Result<Round, Fault> {
        let round = self.worker.round(self.now_ns());
        self.published.write(&self.worker.account());
        round
    }

    fn work(&mut self, busy: Duration) -> Result<(), Fault> {
        let mut last_work = Instant::now();
        while !self.stop.is_asked() {
            let round = self.round()?;
            if round.ended {
                break;
            }
            if round.taken + round.sent > 0 {
                last_work = Instant::now();
            } else if last_work.elapsed() >= busy {
                let now_ns = self.now_ns();
                self.worker.sleep(now_ns, self.stop);
            }
        }
        Ok(())
    }

    /// Sends what waits, and takes back what was sent, without receiving more; completes the rest.
    fn drain(&mut self) -> Result<(), Fault> {
        let begun = Instant::now();
        while self.worker.is_sending() && begun.elapsed() < DRAIN {
            let now_ns = self.now_ns();
            // Each fault has been told, or is told of a device that is to be closed anyhow.
            match self.worker.send_on(now_ns) {
                Ok(0) | Err(_) => thread::yield_now(),
                Ok(_) => {}
            }
        }
        let now_ns = self.now_ns();
        self.worker.finish(now_ns)
    }
}

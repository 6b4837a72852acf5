//! A policy at work: a memory, a thread on either CPU, and the lanes between them.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use grilse_mem::Policy;
use grilse_packet::{Ctx, Memory};

use crate::cpu;
use crate::gate::{Gate, OPEN, READY, SHUT};
use crate::lane::Lane;
use crate::work::Work;

/// Skbs in a memory.
const SKBS: u32 = 8192;

/// What became of the skbs that were freed away from home, since the contestant was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mix {
    pub(crate) home: u64,
    pub(crate) adopted: u64,
    pub(crate) depot: u64,
    pub(crate) wakes: u64,
}

/// One policy at one workload.
pub(crate) struct Contestant {
    pub(crate) name: &'static str,
    work: Work,
    memory: &'static Memory,
    ctx: Ctx,
    lane: Lane,
    there: Option<There>,
    theirs: Mix,
}

/// The thread on the second CPU, which sleeps between rounds.
struct There {
    gate: Arc<Gate>,
    jobs: Sender<u64>,
    done: Receiver<(u64, Mix)>,
    thread: JoinHandle<()>,
}

impl Contestant {
    /// Sits down on as many CPUs as the work takes. To be called on the first; the memory lasts as
    /// long as the process.
    pub(crate) fn new(name: &'static str, policy: Policy, work: Work, cpus: [usize; 2]) -> Self {
        let memory = Memory::new(SKBS, None).expect("twenty megabytes");
        memory.set_policy(policy).expect("every knob in its range");
        let (here, role) = work.roles();
        let (lane, their_lane) = Lane::pair();
        // A thread starts where its parent may run: two that spin before everybody else must never
        // share a CPU, so the parent goes there first.
        cpu::pin(cpus[1]);
        let there = role.map(|role| There::new(move || sit(memory, role), their_lane, work));
        cpu::pin(cpus[0]);
        let ctx = sit(memory, here);
        Self { name, work, memory, ctx, lane, there, theirs: Mix::default() }
    }

    /// Does the work once, and returns nanoseconds per skb.
    pub(crate) fn round(&mut self, skbs: u64) -> f64 {
        if let Some(there) = &self.there {
            there.jobs.send(skbs).expect("the other side waits for work");
            there.gate.wait(READY);
            self.lane.complete(0);
        }
        let began = Instant::now();
        if let Some(there) = &self.there {
            there.gate.pass(OPEN);
        }
        let mut sum = self.work.first(&mut self.ctx, &mut self.lane, skbs);
        if let Some(there) = &self.there {
            there.gate.wait(SHUT);
        }
        let took = began.elapsed();
        if let Some(there) = &self.there {
            let (their_sum, mix) = there.done.recv().expect("the other side says what it read");
            (sum, self.theirs) = (sum + their_sum, mix);
        }
        assert_eq!(sum, self.work.checksum(skbs), "{} in {}", self.name, self.work.name());
        took.as_nanos() as f64 / skbs as f64
    }

    /// What both sides did with what was freed away from home.
    pub(crate) fn mix(&self) -> Mix {
        let (ours, theirs) = (Mix::of(&self.ctx), self.theirs);
        Mix {
            home: ours.home + theirs.home,
            adopted: ours.adopted + theirs.adopted,
            depot: ours.depot + theirs.depot,
            wakes: ours.wakes + theirs.wakes,
        }
    }

    /// Stops, and returns how many skbs were lost.
    pub(crate) fn close(self) -> u32 {
        let Self { memory, ctx, there, .. } = self;
        if let Some(There { jobs, thread, .. }) = there {
            drop(jobs);
            thread.join().expect("the other side ended well");
        }
        drop(ctx);
        memory.ledgers().shells.in_use
    }
}

impl There {
    fn new(sit: impl FnOnce() -> Ctx + Send + 'static, mut lane: Lane, work: Work) -> Self {
        let gate = Arc::new(Gate::new());
        let (jobs, todo) = channel();
        let (say, done) = channel();
        let side = {
            let gate = Arc::clone(&gate);
            move || {
                let mut ctx = sit();
                for skbs in todo {
                    gate.pass(READY);
                    gate.wait(OPEN);
                    let sum = work.second(&mut ctx, &mut lane, skbs);
                    gate.pass(SHUT);
                    let Ok(()) = say.send((sum, Mix::of(&ctx))) else { break };
                }
            }
        };
        Self { gate, jobs, done, thread: thread::spawn(side) }
    }
}

impl Mix {
    fn of(ctx: &Ctx) -> Self {
        let stats = ctx.stats();
        Self {
            home: stats.sent_home,
            adopted: stats.adopted,
            depot: stats.to_depot,
            wakes: stats.wakes,
        }
    }
}

fn sit(memory: &'static Memory, role: grilse_mem::Role) -> Ctx {
    Ctx::new(memory.seat(role)).expect("magazines for two")
}

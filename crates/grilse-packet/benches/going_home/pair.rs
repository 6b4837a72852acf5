//! A contestant of this process: a pool, a thread on either CPU, and a ring each way.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rtrb::RingBuffer;

use crate::cpu;
use crate::gate::{Gate, OPEN, READY, SHUT};
use crate::pool::{BURST, Pool, UNDER_WAY};
use crate::work::{Lane, Work};

/// One measured round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    pub(crate) took: Duration,
    /// As [`Work::checksum`].
    pub(crate) checksum: u64,
}

/// Somebody who does the work.
pub(crate) trait Contestant {
    fn name(&self) -> &str;

    /// Whether it has a part in this work.
    fn does(&self, work: Work) -> bool;

    /// Does the work once, from the first CPU.
    fn round(&mut self, work: Work, objects: u64) -> Round;

    /// Stops, and says how many objects were lost; `None` where nobody counts.
    fn close(self: Box<Self>) -> Option<usize>;
}

/// A pool with its two threads: the caller's, and one that sleeps between rounds.
pub(crate) struct Pair<P: Pool> {
    name: String,
    works: &'static [Work],
    pool: &'static P,
    seat: P::Seat,
    lane: Lane<P::Handle>,
    gate: Arc<Gate>,
    jobs: Sender<(Work, u64)>,
    sums: Receiver<u64>,
    peer: JoinHandle<()>,
}

impl<P: Pool> Pair<P> {
    /// Sits down on both CPUs. To be called on the first; the pool lasts as long as the process.
    pub(crate) fn boxed(
        name: impl Into<String>,
        works: &'static [Work],
        cpus: [usize; 2],
        pool: P,
    ) -> Box<dyn Contestant> {
        let pool: &'static P = Box::leak(Box::new(pool));
        let (out, there) = RingBuffer::new(UNDER_WAY / BURST);
        let (back, coming) = RingBuffer::new(UNDER_WAY / BURST);
        let gate = Arc::new(Gate::new());
        let (jobs, todo) = channel::<(Work, u64)>();
        let (done, sums) = channel();
        let side = {
            let gate = Arc::clone(&gate);
            let mut lane = Lane { out: back, coming: there };
            move || {
                let mut seat = pool.seat(1);
                for (work, objects) in todo {
                    gate.pass(READY);
                    gate.wait(OPEN);
                    let sum = work.second(&mut seat, &mut lane, objects);
                    gate.pass(SHUT);
                    let Ok(()) = done.send(sum) else { break };
                }
            }
        };
        // A thread starts where its parent may run: two that spin before everybody else must never
        // share a CPU, so the parent goes there first.
        cpu::pin(cpus[1]);
        let peer = thread::spawn(side);
        cpu::pin(cpus[0]);
        let (seat, lane) = (pool.seat(0), Lane { out, coming });
        Box::new(Self { name: name.into(), works, pool, seat, lane, gate, jobs, sums, peer })
    }
}

impl<P: Pool> Contestant for Pair<P> {
    fn name(&self) -> &str {
        &self.name
    }

    fn does(&self, work: Work) -> bool {
        self.works.contains(&work)
    }

    fn round(&mut self, work: Work, objects: u64) -> Round {
        if !work.crosses() {
            let began = Instant::now();
            let checksum = work.alone(&mut self.seat, objects);
            return Round { took: began.elapsed(), checksum };
        }
        self.jobs.send((work, objects)).expect("the peer waits for work");
        self.gate.wait(READY);
        let began = Instant::now();
        self.gate.pass(OPEN);
        let own = work.first(&mut self.seat, &mut self.lane, objects);
        self.gate.wait(SHUT);
        let took = began.elapsed();
        let theirs = self.sums.recv().expect("the peer says what it summed");
        // In pairwise work both free, and both must have seen all.
        assert!(work != Work::Pairwise || own == theirs);
        Round { took, checksum: theirs }
    }

    fn close(self: Box<Self>) -> Option<usize> {
        let Self { pool, seat, jobs, peer, .. } = *self;
        drop(jobs);
        peer.join().expect("the peer ended well");
        drop(seat);
        pool.in_use()
    }
}

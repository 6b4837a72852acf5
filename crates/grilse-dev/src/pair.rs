//! A cable within the process: what one end sends, the other receives, as over a veth.
//!
//! An end belongs to one worker, and its queue n is joined to queue n of the other end by a bounded
//! ring each way. Packets cross as they are: checksums stay partial, super-packets whole, and memory
//! goes home from where it ends up.
//!
//! A worker that sleeps says so in its [`Bell`] first, and looks again after that; whoever fills or
//! empties a ring looks at the bell after it. So one of the two sees the other, and a worker that is
//! awake costs no system call.

use std::collections::HashMap;
use std::fmt;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};

use grilse_packet::{Batch, Ctx, Skb};
use grilse_wire::GsoType;
use rtrb::{Consumer, Producer, RingBuffer};
use rustix::event::{EventfdFlags, eventfd};

use crate::device::{Armed, Caps, Counters, Device, Received, RxCsum};
use crate::fault::Fault;
use crate::open::{OpenError, Opener, Queues, Wanted};
use crate::spec::Spec;

pub(crate) const OPTIONS: &[(&str, &str, &str)] =
    &[("ring", "N", "packets under way in each direction of a queue (512)")];

/// Packets in a ring, where nobody says otherwise.
const RING: u64 = 512;

/// The ends that wait for somebody to open the other, by name.
#[derive(Debug, Default)]
pub(crate) struct Pairs(HashMap<String, Vec<End>>);

/// One queue of one end.
struct End {
    caps: Caps,
    from: Consumer<Skb>,
    to: Producer<Skb>,
    /// Rung by the other side when there is work for this one.
    bell: Arc<Bell>,
    others_bell: Arc<Bell>,
    seq: u64,
    counters: Counters,
}

/// How a sleeping worker is told of work.
struct Bell {
    wanted: AtomicBool,
    event: OwnedFd,
}

impl Bell {
    fn new() -> rustix::io::Result<Arc<Self>> {
        let event = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Arc::new(Self { wanted: AtomicBool::new(false), event }))
    }

    /// Rings where somebody sleeps.
    fn ring(&self) {
        // Pairs with the fence in `want`: our change of the ring before our look.
        fence(Ordering::SeqCst);
        if self.wanted.load(Ordering::Relaxed) && self.wanted.swap(false, Ordering::Relaxed) {
            // It fails only where the counter is full, and then the descriptor is readable.
            _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
        }
    }

    /// Asks to be rung. Whoever asks looks at the rings once more after it.
    fn want(&self) {
        // What rang before has been seen to.
        _ = rustix::io::read(&self.event, &mut [0; 8]);
        self.wanted.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }
}

pub(crate) fn open(opener: &mut Opener, spec: &Spec, wanted: Wanted) -> Result<Queues, OpenError> {
    let name = spec.need_target("a name")?;
    if let Some(ends) = opener.pairs.0.remove(name) {
        if ends.len() != wanted.queues {
            let what = format!("has {} queues at its other end, not {}", ends.len(), wanted.queues);
            opener.pairs.0.insert(name.to_owned(), ends);
            return Err(OpenError::Cannot { device: spec.to_string(), what });
        }
        return Ok(ends.into_iter().map(|end| Box::new(end) as Box<dyn Device>).collect());
    }
    let ring = spec.number("ring", 1..=1 << 20)?.unwrap_or(RING) as usize;
    let mut near = Queues::new();
    let mut far = Vec::new();
    for _ in 0..wanted.queues {
        let (a, b) = queue(&spec.to_string(), ring).map_err(|errno| OpenError::System {
            device: spec.to_string(),
            doing: "make an eventfd",
            source: errno.into(),
            mend: "raise the limit on open files (ulimit -n)".to_owned(),
        })?;
        near.push(Box::new(a));
        far.push(b);
    }
    opener.pairs.0.insert(name.to_owned(), far);
    Ok(near)
}

/// Both ends of one queue.
fn queue(name: &str, ring: usize) -> rustix::io::Result<(End, End)> {
    let ((to_b, from_a), (to_a, from_b)) = (RingBuffer::new(ring), RingBuffer::new(ring));
    let (bell_a, bell_b) = (Bell::new()?, Bell::new()?);
    let end = |from, to, bell: &Arc<Bell>, others: &Arc<Bell>| End {
        caps: Caps {
            name: name.to_owned(),
            rx: true,
            tx: true,
            rx_hash: false,
            rx_csum: RxCsum::Partial,
            vlan_offload: true,
            tx_gso: GsoType(u32::MAX),
            tx_csum: true,
            max_frame: usize::MAX,
        },
        from,
        to,
        bell: bell.clone(),
        others_bell: others.clone(),
        seq: 0,
        counters: Counters::default(),
    };
    Ok((end(from_b, to_b, &bell_a, &bell_b), end(from_a, to_a, &bell_b, &bell_a)))
}

impl Device for End {
    fn caps(&self) -> &Caps {
        &self.caps
    }

    fn rx(&mut self, ctx: &mut Ctx, out: &mut Batch, budget: usize) -> Result<Received, Fault> {
        let most = budget.min(out.room()).min(self.from.slots());
        // Before the look at what is left: who leaves has sent all that it will.
        let left = self.from.is_abandoned();
        let chunk = match self.from.read_chunk(most) {
            Ok(chunk) => chunk,
            Err(_) => return Ok(Received { taken: 0, ended: left }),
        };
        for mut skb in chunk {
            let meta = skb.meta_mut();
            (meta.seq, meta.time_ns) = (self.seq, ctx.now_ns);
            self.seq += 1;
            self.counters.rx_packets += 1;
            self.counters.rx_bytes += skb.len() as u64;
            let pushed = out.push(skb);
            debug_assert!(pushed.is_ok(), "there was room for all of them");
        }
        if most > 0 {
            self.others_bell.ring();
        }
        Ok(Received { taken: most, ended: left && self.from.is_empty() })
    }

    fn tx(&mut self, _ctx: &mut Ctx, batch: &mut Batch) -> Result<usize, Fault> {
        if self.to.is_abandoned() {
            return Err(Fault::Gone { device: self.caps.name.clone() });
        }
        let mut sent = 0;
        while let Some(skb) = batch.pop() {
            let len = skb.len() as u64;
            if let Err(rtrb::PushError::Full(skb)) = self.to.push(skb) {
                let back = batch.unpop(skb);
                debug_assert!(back.is_ok(), "its place is still free");
                self.counters.tx_full += 1;
                break;
            }
            self.counters.tx_bytes += len;
            sent += 1;
        }
        self.counters.tx_packets += sent as u64;
        if sent > 0 {
            self.others_bell.ring();
        }
        Ok(sent)
    }

    fn arm(&mut self, sending: bool) -> Armed<'_> {
        self.bell.want();
        let left = self.from.is_abandoned();
        if left || !self.from.is_empty() || (sending && self.to.slots() > 0) {
            return Armed::Ready;
        }
        Armed::Event(self.bell.event.as_fd())
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}

impl Drop for End {
    /// The other side learns that nothing will come any more. Rung before the ring is given up, it
    /// may look too early: it is asked to look again by a bell that stays rung.
    fn drop(&mut self) {
        self.others_bell.wanted.store(true, Ordering::Relaxed);
        self.others_bell.ring();
    }
}

impl fmt::Debug for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("End")
            .field("of", &self.caps.name)
            .field("waiting", &self.from.slots())
            .field("room", &self.to.slots())
            .finish_non_exhaustive()
    }
}

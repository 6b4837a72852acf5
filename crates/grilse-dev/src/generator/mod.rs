//! A device that makes up its packets: flows of TCP or UDP, in a chosen mix of sizes, at a chosen rate.
//!
//! Everything it does follows from its options and its seed: two runs make the same frames. Each
//! flow counts its own packets, in the IPv4 identification and in the first 8 bytes of a UDP payload,
//! or by TCP sequence numbers, so whoever receives can tell what is missing.

mod flow;
mod options;

use grilse_mem::FramePool;
use grilse_packet::{Batch, Ctx, HEAD_SIZE, HEADROOM, Skb};
use grilse_wire::eth::ethertype;
use grilse_wire::{Csum, GsoType, Meta, eth};

use crate::device::{Armed, Caps, Counters, Device, Received, RxCsum};
use crate::dice::Dice;
use crate::fault::Fault;
use crate::open::{OpenError, Opener, Queues, Wanted};
use crate::spec::Spec;
use flow::Flow;
pub(crate) use options::OPTIONS;
use options::Options;

/// Longest frame that fits the small head of a skb.
const SMALL: usize = HEAD_SIZE - HEADROOM - 64;
/// Frames of a pool for longer ones.
const FRAMES: u32 = 4096;
const FRAME_SIZE: u32 = 16 << 10;

/// One queue.
#[derive(Debug)]
struct Generator {
    caps: Caps,
    options: Options,
    flows: Vec<Flow>,
    /// For frames that no small head holds.
    pool: Option<FramePool>,
    dice: Dice,
    made: u64,
    /// A packet whose successor goes first.
    late: Option<Skb>,
    /// When the first packet was made.
    since_ns: Option<u64>,
    counters: Counters,
}

pub(crate) fn open(_opener: &mut Opener, spec: &Spec, wanted: Wanted) -> Result<Queues, OpenError> {
    let options = Options::of(spec)?;
    (0..wanted.queues)
        .map(|queue| {
            let generator = Generator::new(spec, options.share(queue, wanted.queues), queue)?;
            Ok(Box::new(generator) as Box<dyn Device>)
        })
        .collect()
}

impl Generator {
    fn new(spec: &Spec, options: Options, queue: usize) -> Result<Self, OpenError> {
        let pool = match options.sizes.longest() > SMALL {
            true => Some(FramePool::new(FRAMES, FRAME_SIZE, None).map_err(|error| {
                OpenError::Cannot { device: spec.to_string(), what: format!("has {error}") }
            })?),
            false => None,
        };
        let caps = Caps {
            name: spec.to_string(),
            rx: true,
            tx: false,
            rx_hash: true,
            rx_csum: if options.vouch { RxCsum::Valid } else { RxCsum::None },
            vlan_offload: false,
            tx_gso: GsoType::default(),
            tx_csum: false,
            max_frame: 0,
        };
        let first = options.first_flow;
        let flows = (first..first + options.flows).map(|n| Flow::new(&options, n)).collect();
        let dice = Dice::new(options.seed.wrapping_add(queue as u64));
        Ok(Self {
            caps,
            options,
            flows,
            pool,
            dice,
            made: 0,
            late: None,
            since_ns: None,
            counters: Counters::default(),
        })
    }

    /// How many packets are due: of a rate, in whole bursts.
    fn due(&mut self, now_ns: u64) -> u64 {
        let left = self.options.count.map_or(u64::MAX, |count| count - self.made);
        let Some(rate) = self.options.rate else { return left };
        let elapsed_ns = now_ns - *self.since_ns.get_or_insert(now_ns);
        let by_now = u128::from(elapsed_ns) * u128::from(rate) / 1_000_000_000;
        let burst = self.options.burst;
        // The first burst is due at once.
        let by_now = (by_now as u64 / burst + 1) * burst;
        left.min(by_now.saturating_sub(self.made))
    }

    /// When the next burst is due.
    fn next_ns(&self) -> Option<u64> {
        let (rate, since_ns) = (self.options.rate?, self.since_ns?);
        let bursts = self.made.div_ceil(self.options.burst);
        let packets = u128::from(bursts * self.options.burst);
        Some(since_ns + (packets * 1_000_000_000).div_ceil(u128::from(rate)) as u64)
    }

    /// Makes the next packet; `None` where memory is short.
    fn make(&mut self, ctx: &mut Ctx) -> Option<Skb> {
        let dice = if self.options.sizes.varies() { self.dice.draw(u64::MAX) } else { 0 };
        let len = self.options.sizes.pick(self.made, dice);
        let index = (self.made % self.flows.len() as u64) as usize;
        let mut skb = match &mut self.pool {
            Some(pool) if len > SMALL => {
                let frame = ctx.take_frame(pool)?;
                ctx.build(frame, HEADROOM, len).ok()?
            }
            _ => {
                let mut skb = ctx.take()?;
                skb.put(len).ok()?;
                skb
            }
        };
        let flow = &mut self.flows[index];
        flow.write(skb.linear_mut()?);
        *skb.meta_mut() = Meta {
            seq: self.made,
            time_ns: ctx.now_ns,
            hash: flow.hash,
            csum: if self.options.vouch { Csum::Unnecessary { level: 0 } } else { Csum::None },
            protocol: if self.options.v6 { ethertype::IPV6 } else { ethertype::IPV4 },
            network: eth::LEN as u16,
            ..Meta::default()
        };
        self.made += 1;
        Some(skb)
    }

    fn hand_on(&mut self, out: &mut Batch, skb: Skb) {
        self.counters.rx_packets += 1;
        self.counters.rx_bytes += skb.len() as u64;
        let pushed = out.push(skb);
        debug_assert!(pushed.is_ok(), "the caller has checked for room");
    }

    fn has_ended(&self) -> bool {
        self.options.count == Some(self.made) && self.late.is_none()
    }
}

impl Device for Generator {
    fn caps(&self) -> &Caps {
        &self.caps
    }

    /// What finds no memory is made later: a generator loses nothing.
    fn rx(&mut self, ctx: &mut Ctx, out: &mut Batch, budget: usize) -> Result<Received, Fault> {
        let room = budget.min(out.room());
        let due = self.due(ctx.now_ns).min(room as u64) as usize;
        let before = out.len();
        for _ in 0..due {
            if out.len() - before == room {
                break;
            }
            let Some(skb) = self.make(ctx) else { break };
            let swaps = self.dice.comes_up(self.options.reorder_ppm);
            match self.late.take() {
                None if swaps => self.late = Some(skb),
                // A late packet follows the one that overtook it; there may be no room for both.
                Some(late) if out.len() - before + 2 > room => {
                    self.late = Some(late);
                    self.hand_on(out, skb);
                }
                late => {
                    self.hand_on(out, skb);
                    late.into_iter().for_each(|late| self.hand_on(out, late));
                }
            }
        }
        let all_made = self.options.count == Some(self.made);
        if all_made
            && out.len() - before < room
            && let Some(late) = self.late.take()
        {
            self.hand_on(out, late);
        }
        Ok(Received { taken: out.len() - before, ended: self.has_ended() })
    }

    fn tx(&mut self, _ctx: &mut Ctx, _batch: &mut Batch) -> Result<usize, Fault> {
        Err(Fault::Direction { device: self.caps.name.clone(), asked: "send" })
    }

    fn arm(&mut self, _sending: bool) -> Armed<'_> {
        if self.options.rate.is_some() { Armed::Never } else { Armed::Ready }
    }

    fn due_ns(&self) -> Option<u64> {
        self.next_ns()
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}

//! A model of the skb that is too dull to be wrong: a packet is a vector of bytes, a clone is a
//! copy of it, and whatever an operation refuses leaves the vector as it was.

use std::collections::BTreeMap;

use grilse_mem::{FramePool, FrameSlice, Role};
use grilse_packet::{Ctx, DropReason, HEAD_SIZE, MAX_FRAGS, Memory, Skb};
use grilse_wire::{How, Packet, Refused};
use proptest::prelude::*;

/// One operation. Packets are named by number, modulo how many are alive; sizes are modulo what
/// makes sense, or a little more.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Take,
    Build { start: usize, len: usize },
    Put { on: usize, n: usize },
    Push { on: usize, n: usize },
    Pull { on: usize, n: usize },
    Trim { on: usize, n: usize },
    AddFrag { on: usize, start: usize, len: usize, shared: bool },
    Chain { on: usize, other: usize },
    Unchain { on: usize },
    PullToLinear { on: usize, n: usize },
    FrontMut { on: usize, n: usize },
    Pieces { on: usize, from: usize, to: usize },
    Clone { on: usize },
    Absorb { on: usize, other: usize, skip: usize, whole: bool },
    Consume { on: usize },
    DropWith { on: usize },
    Drop { on: usize },
    Round,
}

pub(crate) fn ops(count: usize) -> impl Strategy<Value = Vec<Op>> {
    let on = || 0..4usize;
    let small = || prop_oneof![4 => 0..64usize, 2 => 0..600usize, 1 => 0..3000usize];
    let op = prop_oneof![
        3 => Just(Op::Take),
        4 => (0..1100usize, 0..1100usize).prop_map(|(start, len)| Op::Build { start, len }),
        4 => (on(), small()).prop_map(|(on, n)| Op::Put { on, n }),
        2 => (on(), small()).prop_map(|(on, n)| Op::Push { on, n }),
        3 => (on(), small()).prop_map(|(on, n)| Op::Pull { on, n }),
        3 => (on(), small()).prop_map(|(on, n)| Op::Trim { on, n }),
        6 => (on(), 0..1025usize, 0..200usize, any::<bool>())
            .prop_map(|(on, start, len, shared)| Op::AddFrag { on, start, len, shared }),
        3 => (on(), on()).prop_map(|(on, other)| Op::Chain { on, other }),
        1 => on().prop_map(|on| Op::Unchain { on }),
        4 => (on(), small()).prop_map(|(on, n)| Op::PullToLinear { on, n }),
        4 => (on(), small()).prop_map(|(on, n)| Op::FrontMut { on, n }),
        2 => (on(), small(), small()).prop_map(|(on, from, to)| Op::Pieces { on, from, to }),
        4 => on().prop_map(|on| Op::Clone { on }),
        6 => (on(), on(), 0..80usize, prop::bool::weighted(0.3))
            .prop_map(|(on, other, skip, whole)| Op::Absorb { on, other, skip, whole }),
        1 => on().prop_map(|on| Op::Consume { on }),
        1 => on().prop_map(|on| Op::DropWith { on }),
        1 => on().prop_map(|on| Op::Drop { on }),
        1 => Just(Op::Round),
    ];
    prop::collection::vec(op, 1..count)
}

/// How often each operation did its work, and how often it was refused: a run in which one never
/// succeeded has shown nothing about it.
pub(crate) type Tally = BTreeMap<&'static str, [u64; 2]>;

/// Packets, each with the bytes that it should have.
pub(crate) struct World {
    memory: &'static Memory,
    ctx: Ctx,
    pool: FramePool,
    alive: Vec<(Skb, Vec<u8>)>,
    /// Frames that somebody else still holds a share of.
    held: Vec<FrameSlice>,
    unit: u32,
    stamp: u8,
    tally: Tally,
}

const ALIVE: usize = 4;

impl World {
    pub(crate) fn new(skbs: u32, frames: u32, frame_size: u32) -> Self {
        assert_ne!(frame_size as usize, HEAD_SIZE, "heads are told apart by size");
        let memory = Memory::new(skbs, None).unwrap();
        let mut ctx = Ctx::new(memory.seat(Role::Worker)).unwrap();
        let pool = FramePool::new(frames, frame_size, None).unwrap();
        let probe = ctx.take().unwrap();
        let unit = probe.truesize();
        ctx.consume(probe);
        let (alive, held) = (Vec::new(), Vec::new());
        Self { memory, ctx, pool, alive, held, unit, stamp: 0, tally: Tally::new() }
    }

    /// Applies one operation to packets and model, and compares all of them.
    pub(crate) fn step(&mut self, op: &Op) {
        let name = name(op);
        let did = self.apply(op);
        self.tally.entry(name).or_default()[usize::from(!did)] += 1;
        for (skb, bytes) in &self.alive {
            check(skb, bytes, self.unit);
        }
    }

    /// Lets go of everything, and checks that all memory is back and good for use.
    pub(crate) fn finish(mut self) -> Tally {
        while let Some((skb, _)) = self.alive.pop() {
            self.ctx.consume(skb);
        }
        self.held.clear();
        self.ctx.begin(0);
        self.ctx.end();
        assert_eq!(self.pool.ledger().in_use, 0, "all frames are back");
        let shells = self.memory.ledgers().shells;
        assert_eq!(shells.in_use, 0, "all shells are back: {shells:?}");
        assert_eq!(shells.made, shells.depot + shells.cached + shells.travelling);
        // Data has no ledger: that every skb can be had again shows that none is lost.
        let all: Vec<_> = (0..self.memory.capacity()).map_while(|_| self.ctx.take()).collect();
        assert_eq!(all.len() as u32, self.memory.capacity(), "every skb can be taken again");
        for skb in all {
            assert!(skb.is_empty() && skb.is_linear() && !skb.is_shared());
            assert_eq!(skb.truesize(), self.unit);
            self.ctx.consume(skb);
        }
        self.tally
    }

    fn apply(&mut self, op: &Op) -> bool {
        match *op {
            Op::Take => self.take(),
            Op::Build { start, len } => self.build(start, len),
            Op::Round => {
                self.ctx.begin(0);
                self.held.clear();
                true
            }
            Op::Chain { on, other } => self.join(on, other, |a, b| a.chain(b).map(|()| None), 0),
            Op::Absorb { on, other, skip, whole } => {
                let how = if whole { How::Whole } else { How::Bytes };
                let absorb = |a: &mut Skb, b| a.absorb(b, skip, how).map_err(|Refused(b)| b);
                self.join(on, other, absorb, skip)
            }
            Op::Unchain { on } => self.unchain(on),
            Op::Clone { on } => self.clone_one(on),
            Op::AddFrag { on, start, len, shared } => self.add_frag(on, start, len, shared),
            Op::Consume { on } => self.remove(on).map(|(skb, _)| self.ctx.consume(skb)).is_some(),
            Op::DropWith { on } => {
                let gone = self.remove(on);
                gone.map(|(skb, _)| self.ctx.drop_with(skb, DropReason::NoBuffers)).is_some()
            }
            Op::Drop { on } => self.remove(on).map(drop).is_some(),
            Op::Put { on, .. }
            | Op::Push { on, .. }
            | Op::Pull { on, .. }
            | Op::Trim { on, .. }
            | Op::PullToLinear { on, .. }
            | Op::FrontMut { on, .. }
            | Op::Pieces { on, .. } => {
                self.stamp = self.stamp.wrapping_add(1);
                let stamp = self.stamp;
                self.pick(on).is_some_and(|(skb, bytes)| edit(skb, bytes, op, stamp))
            }
        }
    }

    fn take(&mut self) -> bool {
        if self.alive.len() == ALIVE {
            return false;
        }
        let Some(skb) = self.ctx.take() else { return false };
        self.alive.push((skb, Vec::new()));
        true
    }

    fn build(&mut self, start: usize, len: usize) -> bool {
        let Some(frame) = self.fresh_frame() else { return false };
        let bytes = frame.bytes().to_vec();
        if self.alive.len() == ALIVE {
            return false;
        }
        match self.ctx.build(frame, start, len) {
            Ok(skb) => {
                self.alive.push((skb, bytes[start..start + len].to_vec()));
                true
            }
            Err(frame) => {
                assert_eq!(frame.bytes(), bytes, "the refused frame is untouched");
                false
            }
        }
    }

    fn add_frag(&mut self, on: usize, start: usize, len: usize, shared: bool) -> bool {
        let Some(mut frame) = self.fresh_frame() else { return false };
        let size = frame.frame_size();
        let start = start.min(size);
        frame.set_range(start..(start + len).min(size));
        let bytes = frame.bytes().to_vec();
        if shared {
            self.held.push(frame.clone());
        }
        let Some((skb, model)) = self.pick(on) else { return false };
        let room = skb.frags().count() < MAX_FRAGS && skb.frag_list().count() == 0;
        let must = room && !skb.is_shared();
        let added = skb.add_frag(frame).is_ok();
        assert!(added || !must, "a slot was free");
        if added {
            model.extend_from_slice(&bytes);
        }
        added
    }

    fn join(
        &mut self,
        on: usize,
        other: usize,
        join: impl FnOnce(&mut Skb, Skb) -> Result<Option<Skb>, Skb>,
        skip: usize,
    ) -> bool {
        if self.alive.len() < 2 || on % self.alive.len() == other % self.alive.len() {
            return false;
        }
        let other = other % self.alive.len();
        let (skb, bytes) = self.alive.remove(other);
        let on = on % self.alive.len();
        let (head, model) = &mut self.alive[on];
        match join(head, skb) {
            Ok(left) => {
                model.extend_from_slice(&bytes[skip..]);
                if let Some(empty) = left {
                    check(&empty, &[], self.unit);
                    self.ctx.consume(empty);
                }
                true
            }
            Err(skb) => {
                self.alive.push((skb, bytes));
                false
            }
        }
    }

    fn unchain(&mut self, on: usize) -> bool {
        if self.alive.is_empty() {
            return false;
        }
        let on = on % self.alive.len();
        let (skb, bytes) = &mut self.alive[on];
        let Some(first) = skb.unchain() else { return false };
        // The chained packets stand last; the first of them follows what is linear or fragment.
        let own: usize = skb.linear().len() + skb.frags().map(FrameSlice::len).sum::<usize>();
        let theirs = bytes.drain(own..own + first.len()).collect();
        self.alive.push((first, theirs));
        true
    }

    fn clone_one(&mut self, on: usize) -> bool {
        if self.alive.is_empty() || self.alive.len() == ALIVE {
            return false;
        }
        let on = on % self.alive.len();
        let (skb, bytes) = &mut self.alive[on];
        let Some(clone) = skb.try_clone(&mut self.ctx) else { return false };
        assert!(clone.is_shared() && clone.meta() == skb.meta());
        let bytes = bytes.clone();
        self.alive.push((clone, bytes));
        true
    }

    /// A frame with bytes that differ from any other's.
    fn fresh_frame(&mut self) -> Option<FrameSlice> {
        self.stamp = self.stamp.wrapping_add(1);
        let mut frame = self.pool.take()?;
        for (at, byte) in frame.bytes_mut().expect("nobody else has it").iter_mut().enumerate() {
            *byte = (at as u8).wrapping_mul(7) ^ self.stamp;
        }
        Some(frame)
    }

    fn pick(&mut self, on: usize) -> Option<&mut (Skb, Vec<u8>)> {
        let count = self.alive.len();
        self.alive.get_mut(on.checked_rem(count)?)
    }

    fn remove(&mut self, on: usize) -> Option<(Skb, Vec<u8>)> {
        let on = on.checked_rem(self.alive.len())?;
        Some(self.alive.remove(on))
    }
}

/// The operations on one packet.
fn edit(skb: &mut Skb, model: &mut Vec<u8>, op: &Op, stamp: u8) -> bool {
    let alone = !skb.is_shared();
    match *op {
        Op::Put { n, .. } => {
            let must = alone && skb.is_linear() && n <= skb.tailroom();
            let done = skb.put(n).map(|new| {
                assert_eq!(new.len(), n);
                new.fill(stamp);
            });
            assert!(done.is_ok() || !must, "there was room");
            if done.is_ok() {
                model.resize(model.len() + n, stamp);
            }
            done.is_ok()
        }
        Op::Push { n, .. } => {
            let must = alone && n <= skb.headroom();
            let done = skb.push(n).map(|front| front[..n].fill(stamp));
            assert!(done.is_ok() || !must, "there was room");
            if done.is_ok() {
                model.splice(0..0, vec![stamp; n]);
            }
            done.is_ok()
        }
        Op::Pull { n, .. } => {
            let must = n <= skb.linear().len() || n <= skb.len() && alone && skb.is_linear();
            let gone = skb.pull(n);
            assert!(gone <= n && (gone == n || !must));
            model.drain(..gone);
            gone == n
        }
        Op::Trim { n, .. } => {
            let done = skb.trim(n).is_ok();
            if done {
                model.truncate(n);
            }
            done
        }
        Op::PullToLinear { n, .. } => {
            let must = n <= skb.linear().len();
            let done = skb.pull_to_linear(n).map(|linear| {
                assert!(linear.len() >= n);
            });
            assert!(done.is_ok() || !must);
            assert!(done.is_err() || n <= model.len());
            done.is_ok()
        }
        Op::FrontMut { n, .. } => {
            let done = skb.front_mut(n).map(|front| {
                assert_eq!(front, &model[..n]);
                front.iter_mut().for_each(|byte| *byte ^= stamp);
            });
            if done.is_some() {
                model[..n].iter_mut().for_each(|byte| *byte ^= stamp);
            }
            done.is_some()
        }
        Op::Pieces { from, to, .. } => {
            let (from, to) = (from.min(model.len()), to.min(model.len()));
            let range = from.min(to)..from.max(to);
            let pieces: Vec<&[u8]> = skb.pieces(range.clone()).collect();
            assert!(pieces.iter().all(|piece| !piece.is_empty()));
            assert_eq!(pieces.concat(), model[range]);
            true
        }
        _ => unreachable!("not an operation on one packet"),
    }
}

/// Compares a packet with its bytes, and its parts with each other.
pub(crate) fn check(skb: &Skb, bytes: &[u8], unit: u32) {
    assert_eq!(skb.len(), bytes.len());
    assert_eq!(skb.is_empty(), bytes.is_empty());
    assert_eq!(skb.pieces(0..skb.len()).collect::<Vec<_>>().concat(), bytes);
    assert!(bytes.starts_with(skb.front()));
    assert!(!skb.front().is_empty() || bytes.is_empty());

    let mut parts = skb.linear().to_vec();
    skb.frags().for_each(|frag| parts.extend_from_slice(frag.bytes()));
    for chained in skb.frag_list() {
        assert_eq!(chained.frag_list().count(), 0, "a chained packet has no chain of its own");
        let theirs = chained.pieces(0..chained.len()).collect::<Vec<_>>().concat();
        check(chained, &theirs, unit);
        parts.extend_from_slice(&theirs);
    }
    assert_eq!(parts, bytes, "linear part, fragments and frag list together");

    let plain = skb.frags().next().is_none() && skb.frag_list().next().is_none();
    assert_eq!(skb.is_linear(), plain);
    assert_eq!(skb.is_chained(), skb.frag_list().next().is_some());
    assert!(skb.frags().count() <= MAX_FRAGS);
    assert_eq!(skb.truesize(), truesize(skb, unit), "{skb:?}");
}

/// What a packet holds, counted piece by piece.
fn truesize(skb: &Skb, unit: u32) -> u32 {
    let head = skb.headroom() + skb.linear().len() + skb.tailroom();
    let head = if head == HEAD_SIZE { 0 } else { head as u32 };
    let frags: u32 = skb.frags().map(|frag| frag.frame_size() as u32).sum();
    let chained: u32 = skb.frag_list().map(|skb| truesize(skb, unit)).sum();
    unit + head + frags + chained
}

fn name(op: &Op) -> &'static str {
    match op {
        Op::Take => "take",
        Op::Build { .. } => "build",
        Op::Put { .. } => "put",
        Op::Push { .. } => "push",
        Op::Pull { .. } => "pull",
        Op::Trim { .. } => "trim",
        Op::AddFrag { .. } => "add_frag",
        Op::Chain { .. } => "chain",
        Op::Unchain { .. } => "unchain",
        Op::PullToLinear { .. } => "pull_to_linear",
        Op::FrontMut { .. } => "front_mut",
        Op::Pieces { .. } => "pieces",
        Op::Clone { .. } => "clone",
        Op::Absorb { whole: false, .. } => "absorb bytes",
        Op::Absorb { whole: true, .. } => "absorb whole",
        Op::Consume { .. } => "consume",
        Op::DropWith { .. } => "drop_with",
        Op::Drop { .. } => "drop",
        Op::Round => "round",
    }
}

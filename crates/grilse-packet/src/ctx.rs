//! The context of a thread that works with packets: its caches, and the one door for frees.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{AddAssign, Sub};
use std::time::Duration;
use std::{mem, ptr};

use grilse_mem::{
    Cache, Counted, FramePool, FrameSlice, Home, Init, Policy, Returns, Slot, Snapshot, Stats,
};
use grilse_wire::Meta;

use crate::bare::Bare;
use crate::drop_reason::DropReason;
use crate::memory::{NoSeat, Seat};
use crate::shell::{Data, DataOwner, Shell};
use crate::skb::Skb;

/// What a worker, or any other thread, needs to take and give back packets. Bound to its thread;
/// everything that works with packets is handed `&mut Ctx`.
pub struct Ctx {
    shells: Cache<Shell>,
    data: Cache<Counted<Data>>,
    returns: Returns,
    home: &'static Home<Shell>,
    policy: Snapshot,
    /// The time of this round, in nanoseconds of the engine's clock.
    pub now_ns: u64,
    drops: Drops,
    lost_bytes: u64,
    copied: Load,
    on_drop: Option<DropHook>,
    /// Caches belong to the thread that made the context.
    _thread: PhantomData<*mut ()>,
    /// Given up last, when the homes are closed.
    seat: Seat,
}

/// Called for every packet that is dropped, before it goes: with its metadata, its length in bytes,
/// and the reason (the kernel's `kfree_skb` tracepoint).
pub type DropHook = Box<dyn FnMut(&Meta, usize, DropReason)>;

/// How many frames were dropped, by reason; a super-packet counts as the frames it stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drops([u64; DropReason::ALL.len()]);

impl Drops {
    /// So many for each reason.
    pub fn from_fn(count: impl Fn(DropReason) -> u64) -> Self {
        Self(DropReason::ALL.map(count))
    }

    /// Frames dropped for this reason.
    pub fn count(&self, reason: DropReason) -> u64 {
        self.0[reason as usize]
    }

    /// Frames dropped for any reason.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

/// An amount of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Frames; a super-packet counts as those that it stands for.
    pub frames: u64,
    /// Bytes as they lie in memory: a super-packet's headers count once.
    pub bytes: u64,
}

impl Load {
    /// That of one packet with this metadata and length.
    pub fn of(meta: &Meta, len: usize) -> Self {
        Self { frames: meta.gso.segs.max(1).into(), bytes: len as u64 }
    }
}

impl Sub for Load {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self { frames: self.frames - other.frames, bytes: self.bytes - other.bytes }
    }
}

impl AddAssign for Load {
    fn add_assign(&mut self, more: Self) {
        self.frames += more.frames;
        self.bytes += more.bytes;
    }
}

impl Ctx {
    /// Sits down, on the thread that will use the context.
    ///
    /// # Errors
    /// [`NoSeat`] where too many contexts exist.
    pub fn new(seat: Seat) -> Result<Self, NoSeat> {
        let homes = seat.homes()?;
        Ok(Self {
            shells: Cache::new(homes.shells).ok_or(NoSeat::Magazines)?,
            data: Cache::new(homes.data).ok_or(NoSeat::Magazines)?,
            returns: Returns::new(),
            home: homes.shells,
            policy: Snapshot::default(),
            now_ns: 0,
            drops: Drops::default(),
            lost_bytes: 0,
            copied: Load::default(),
            on_drop: None,
            _thread: PhantomData,
            seat,
        })
    }

    /// Begins a round at this time: takes over the policy in force, and what others sent home.
    pub fn begin(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
        let turned = self.seat.memory.switch.look(&mut self.policy);
        let Self { shells, data, returns, policy: Snapshot { policy, .. }, .. } = self;
        if turned {
            // The shells follow below, as what came home is theirs.
            data.begin(now_ns, policy);
            returns.begin(policy);
        } else {
            data.resume(now_ns);
        }
        match (turned, policy.head_cache) {
            (false, true) => shells.resume(now_ns),
            (true, true) => shells.begin(now_ns, policy),
            // What came home is freed here, head by head.
            (_, false) => shells.begin_with(now_ns, policy, |shell| give_up_head(shell, data)),
        }
    }

    /// Ends a round: posts what was freed for others, and tells the ledger what is left here.
    pub fn end(&mut self) {
        self.shells.end();
        self.data.end();
        self.returns.end();
    }

    /// The policy of this round.
    pub fn policy(&self) -> &Policy {
        &self.policy.policy
    }

    /// What was decided here about shells, and how long they were parked.
    pub fn stats(&self) -> &Stats {
        self.shells.stats()
    }

    /// Gives all that is cached to the memory, and posts what was freed for others: for a thread
    /// that will be idle for longer than objects may be parked.
    pub fn flush(&mut self) {
        self.shells.flush();
        self.data.flush();
        self.returns.flush();
    }

    /// How many objects lie here unused: cached, or gathered for others.
    pub fn held(&self) -> usize {
        let slabs = self.shells.in_slab() + self.data.in_slab();
        self.shells.len() + self.shells.outgoing() + self.data.len() + slabs
    }

    /// Sleeps until something comes home. With `starving`, whatever comes home wakes it at once, and
    /// so does what comes to the depot of a class, or to a page pool, that a take from here found
    /// empty; else, and by the kernel's lists always, only what the policy finds worth a wake-up.
    ///
    /// Who sleeps for longer than `idle.flush_us` says sleeps on with nothing cached.
    pub fn sleep(&mut self, starving: bool) {
        self.shells.settle();
        self.data.settle();
        self.returns.flush();
        let idle = self.policy.policy.idle_flush();
        if !self.doze(starving, idle) && idle.is_some() {
            self.flush();
            self.doze(starving, None);
        }
        self.shells.unwatch();
        self.data.unwatch();
        self.returns.unwatch();
    }

    /// Sleeps for no longer than `most`; says whether there is something, or it was woken.
    fn doze(&self, starving: bool, most: Option<Duration>) -> bool {
        self.home.sleep_until(starving, most, || {
            let came = self.shells.watch(starving) | self.data.watch(starving);
            came | (starving && self.returns.watch(self.home))
        })
    }

    /// An empty packet with a small head of [`HEAD_SIZE`](crate::HEAD_SIZE) bytes and at least
    /// [`HEADROOM`](crate::HEADROOM) in front; `None` when all are in use.
    #[inline]
    pub fn take(&mut self) -> Option<Skb> {
        let mut skb = Skb::from_shell(self.take_shell()?);
        skb.reset();
        Some(skb)
    }

    /// Fills the front of `out`, whose places are all empty, with packets as [`take`](Self::take)
    /// gives them, and returns how many those were: fewer than there are places when all are in use.
    #[inline]
    pub fn take_bulk(&mut self, out: &mut [Option<Skb>]) -> usize {
        let mut done = 0;
        if self.policy.policy.shell_init == Init::Take {
            for place in out {
                let Some(skb) = self.take() else { break };
                *place = Some(skb);
                done += 1;
            }
            return done;
        }
        let mut whole = true;
        let taken = self.shells.take_bulk(out, |shell| {
            whole &= shell.has_data();
            let mut skb = Skb::from_shell(shell);
            skb.reset();
            skb
        });
        if self.shells.has_peers() {
            self.note_all(&mut out[..taken]);
        }
        if whole { taken } else { self.complete(&mut out[..taken]) }
    }

    /// Gives data to those of the packets that have none; returns how many have some then, from the
    /// first on. The others are put back.
    #[cold]
    #[inline(never)]
    fn complete(&mut self, skbs: &mut [Option<Skb>]) -> usize {
        let mut done = 0;
        for place in skbs.iter_mut() {
            let Some(shell) = place.take().map(Skb::into_shell) else { break };
            let with_data = if shell.has_data() { Some(shell) } else { self.attach_data(shell) };
            let Some(shell) = with_data else { break };
            *place = Some(Skb::from_shell(shell));
            done += 1;
        }
        let others = skbs[done..].iter_mut().filter_map(Option::take);
        others.for_each(|skb| self.shells.put(skb.into_shell()));
        done
    }

    /// Gives back all packets of `from` that have done their work, as [`consume`](Self::consume)
    /// does one by one, and empties their places. Plain packets of one home go together.
    #[inline]
    pub fn consume_bulk(&mut self, from: &mut [Option<Skb>]) {
        let mut left = from;
        while !left.is_empty() {
            let run = if self.policy.policy.head_cache { plain_run(left) } else { None };
            let (here, rest) = left.split_at_mut(run.map_or(1, |(_, len)| len));
            match run {
                Some((home, _)) => self.shells.free_bulk(here, home, Skb::into_shell),
                None => here.iter_mut().filter_map(Option::take).for_each(|skb| self.consume(skb)),
            }
            left = rest;
        }
    }

    /// A frame of a pool that this thread owns; `None` while all are in use. Those that this thread
    /// frees wait here for the next call.
    #[inline]
    pub fn take_frame(&mut self, pool: &mut FramePool) -> Option<FrameSlice> {
        pool.take_with(&mut self.returns)
    }

    /// How many frames [`take_frame`](Self::take_frame) can have now, at least.
    pub fn available_frames(&self, pool: &FramePool) -> u32 {
        pool.available() + self.returns.held(pool)
    }

    /// A packet whose linear bytes are `len` bytes of `frame`, beginning at `start` (`build_skb`).
    ///
    /// # Errors
    /// The frame, when no shell is left, or where `start + len` leaves the frame.
    #[inline]
    pub fn build(
        &mut self,
        mut frame: FrameSlice,
        start: usize,
        len: usize,
    ) -> Result<Skb, FrameSlice> {
        let size = frame.frame_size();
        if start > size || len > size - start {
            return Err(frame);
        }
        let Some(mut skb) = self.take() else { return Err(frame) };
        frame.set_range(0..size);
        let shell = skb.shell_mut();
        let none = shell.head.replace(frame);
        debug_assert!(none.is_none(), "a fresh packet has no frame");
        mem::forget(none);
        shell.start = start as u16;
        shell.linear = len as u16;
        shell.len = len as u32;
        shell.truesize += size as u32;
        Ok(skb)
    }

    /// Gives back a packet that has done its work.
    #[inline]
    pub fn consume(&mut self, skb: Skb) {
        let mut shell = skb.into_shell();
        if shell.has_chain && !shell.has_destructor {
            self.consume_chain(&mut shell);
        }
        shell.release(|frame| self.returns.free(frame));
        self.free(Bare::of(shell));
    }

    /// Gives back a packet that is lost, and says why.
    pub fn drop_with(&mut self, skb: Skb, reason: DropReason) {
        self.drop_unborn(skb.meta(), skb.len(), reason);
        self.consume(skb);
    }

    /// Counts a packet that was lost before there was memory to hold it.
    pub fn drop_unborn(&mut self, meta: &Meta, len: usize, reason: DropReason) {
        let load = Load::of(meta, len);
        self.drops.0[reason as usize] += load.frames;
        self.lost_bytes += load.bytes;
        if let Some(hook) = &mut self.on_drop {
            hook(meta, len, reason);
        }
    }

    /// What was dropped here so far.
    pub fn drops(&self) -> Drops {
        self.drops
    }

    /// The same for all reasons, with its bytes.
    pub fn lost(&self) -> Load {
        Load { frames: self.drops.total(), bytes: self.lost_bytes }
    }

    /// Counts a packet that came from nowhere, as a copy of another.
    pub fn count_copy(&mut self, skb: &Skb) {
        self.copied += Load::of(skb.meta(), skb.len());
    }

    /// What came from nowhere so far.
    pub fn copied(&self) -> Load {
        self.copied
    }

    /// Calls `hook` for every drop from now on.
    pub fn on_drop(&mut self, hook: DropHook) {
        self.on_drop = Some(hook);
    }

    /// Counts taken packets by their nodes, where there are several.
    #[cold]
    #[inline(never)]
    fn note_all(&mut self, skbs: &mut [Option<Skb>]) {
        let mut note = |skb: Skb| Skb::from_shell(self.shells.note(skb.into_shell()));
        skbs.iter_mut().for_each(|place| *place = place.take().map(&mut note));
    }

    /// A shell with data.
    #[inline]
    pub(crate) fn take_shell(&mut self) -> Option<Slot<Shell>> {
        let shell = self.shells.take()?;
        let shell = if self.shells.has_peers() { self.shells.note(shell) } else { shell };
        if shell.has_data() { Some(shell) } else { self.attach_data(shell) }
    }

    /// A shell without data, for a clone: the data that it had waits in the cache.
    pub(crate) fn take_bare_shell(&mut self) -> Option<Slot<Shell>> {
        let shell = self.shells.take()?;
        let mut shell = if self.shells.has_peers() { self.shells.note(shell) } else { shell };
        if !self.policy.policy.head_cache {
            give_up_head(&mut shell, &mut self.data);
        } else if let DataOwner::Sole(data) = mem::replace(&mut shell.data, DataOwner::None) {
            self.data.put(data);
        }
        Some(shell)
    }

    /// Rare, but where no cache keeps heads.
    #[inline(never)]
    fn attach_data(&mut self, mut shell: Slot<Shell>) -> Option<Slot<Shell>> {
        let head_cache = self.policy.policy.head_cache;
        let data = if head_cache { self.data.take() } else { self.data.take_past_front() };
        let Some(data) = data else {
            self.shells.put(shell);
            return None;
        };
        let data = if self.data.has_peers() { self.data.note(data) } else { data };
        shell.data = DataOwner::Sole(data);
        Some(shell)
    }

    #[inline]
    pub(crate) fn free(&mut self, bare: Bare) {
        let mut shell = bare.into_shell();
        match shell.home {
            Some(home) => {
                if !self.policy.policy.head_cache && self.shells.keeps(home) {
                    give_up_head(&mut shell, &mut self.data);
                }
                self.shells.free(shell, home);
            }
            None => self.shells.put(shell),
        }
    }

    /// Chained packets go the fast way too, one by one; those of a packet with a destructor wait
    /// for it, and go home by themselves.
    #[cold]
    fn consume_chain(&mut self, shell: &mut Slot<Shell>) {
        let Some(data) = shell.data.sole() else { return };
        while let Some(skb) = data.chain.pop_newest() {
            self.consume(skb);
        }
    }
}

/// The home of the first packet, and how many from it on are plain and of that home; `None` where
/// the first one is not plain.
#[inline]
fn plain_run(skbs: &[Option<Skb>]) -> Option<(&'static Home<Shell>, usize)> {
    let home = skbs.first()?.as_ref()?.shell().home?;
    let alike = |skb: &Skb| {
        let shell = skb.shell();
        shell.is_plain() && shell.home.is_some_and(|its| ptr::eq(its, home))
    };
    let run = skbs.iter().take_while(|skb| skb.as_ref().is_some_and(alike)).count();
    (run > 0).then_some((home, run))
}

/// A head that no cache keeps goes to the slab without its shell (`skb_free_head`).
fn give_up_head(shell: &mut Shell, heads: &mut Cache<Counted<Data>>) {
    if let DataOwner::Sole(data) = mem::replace(&mut shell.data, DataOwner::None) {
        heads.put_past_front(data);
    }
}

impl fmt::Debug for Ctx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ctx")
            .field("home", &self.home.id())
            .field("role", &self.home.role())
            .field("cached", &self.shells.len())
            .field("drops", &self.drops)
            .finish_non_exhaustive()
    }
}

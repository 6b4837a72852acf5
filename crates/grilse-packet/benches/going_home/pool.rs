//! What every contestant can do, and the work that is done with it.
//!
//! A [`Pool`] is one way to hand out and take back objects; a [`Seat`] is one thread's part of it.
//! Contestants differ in nothing else: the loops, the ring between the cores and the bytes written
//! are the same code for all of them.

/// Objects that travel together, as in a DPDK burst or half a NAPI poll.
pub(crate) const BURST: usize = 32;

/// Most objects between the cores: what DPDK's examples give a ring.
pub(crate) const UNDER_WAY: usize = 1024;

/// Objects in a pool, of every contestant that has a bound.
pub(crate) const OBJECTS: usize = 8192;

/// Most threads that sit down at once.
pub(crate) const SEATS: usize = 4;

/// Up to [`BURST`] objects, packed to the front. Four cache lines, and no part of a fifth: bursts
/// travel between cores.
#[repr(align(64))]
pub(crate) struct Burst<H>(pub(crate) [Option<H>; BURST]);

/// A burst without objects.
pub(crate) const fn empty<H>() -> Burst<H> {
    Burst([const { None }; BURST])
}

/// One way to hand out and take back objects, shared by two threads or more.
pub(crate) trait Pool: Sync + Sized + 'static {
    /// An object in use: one pointer.
    type Handle: Object;
    /// What one thread works with. Made on the thread that uses it.
    type Seat: Seat<Self::Handle>;

    /// Sits down: `side` is 0 for the thread on the first CPU, 1 for that on the second,
    /// up to [`SEATS`] where more than two share them.
    fn seat(&'static self, side: usize) -> Self::Seat;

    /// Objects that are neither free nor counted elsewhere, once all seats are left; `None` where
    /// nobody counts.
    fn in_use(&'static self) -> Option<usize>;
}

/// One thread's part of a pool. Leaving it gives back what it holds.
pub(crate) trait Seat<H> {
    /// Begins a round: takes in what others sent.
    fn begin(&mut self) {}

    /// Takes one object; `None` when all are in use or under way.
    fn take(&mut self) -> Option<H>;

    /// Gives one object back, whoever took it.
    fn free(&mut self, object: H);

    /// Takes up to as many objects as fit behind the first `have`; returns how many there are then.
    fn take_burst(&mut self, burst: &mut Burst<H>, mut have: usize) -> usize {
        while have < BURST {
            let Some(object) = self.take() else { break };
            burst.0[have] = Some(object);
            have += 1;
        }
        have
    }

    /// Gives all objects of a burst back.
    fn free_burst(&mut self, burst: &mut Burst<H>) {
        for object in burst.0.iter_mut().filter_map(Option::take) {
            self.free(object);
        }
    }

    /// Ends a round: what is kept for others goes out.
    fn end(&mut self) {}
}

/// An object as the work sees it.
///
/// `SHELL` is how many of the metadata lines are written and read, 0, 2 or 4, and `HEAD` how many
/// lines of packet bytes. The first two metadata lines are zeroed and get six words (length, number,
/// time, hash, interface, protocol), which the reader reads; of all other lines every word is
/// written and read. What [`read`](Self::read) returns depends on the number alone: [`digest`].
pub(crate) trait Object: Send + 'static {
    /// Writes the lines of object number `seq`.
    fn write<const SHELL: usize, const HEAD: usize>(&mut self, seq: u64);

    /// Reads the lines, and returns the sum of their words.
    fn read<const SHELL: usize, const HEAD: usize>(&self) -> u64;
}

/// Interface and protocol that every object carries.
pub(crate) const INTERFACE: u32 = 7;
pub(crate) const PROTOCOL: u16 = 0x0800;

/// What reading object number `seq` must yield.
pub(crate) fn digest<const SHELL: usize, const HEAD: usize>(seq: u64) -> u64 {
    if SHELL == 0 {
        return 0;
    }
    let fixed = HEAD as u64 * 64 + u64::from(INTERFACE) + u64::from(PROTOCOL);
    let words = (SHELL as u64 - 2 + HEAD as u64) * 8;
    fixed + (seq + (seq + 1) + seq) + words * seq
}

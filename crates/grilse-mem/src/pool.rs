//! The page pool: the one who takes frames, per receive queue.
//!
//! Frames that are freed come back in one of two ways. Those that the owner's own thread frees wait
//! in its [`Returns`], and the owner takes them from there, warm and without a locked instruction
//! (the kernel's direct recycling). All others come through the return list, many at a time, and
//! the owner takes the whole list in one step, of which it unlinks a part at a time. As frames are
//! finite, neither way needs a bound.
//!
//! Invariant: `fresh + stacked + returned + kept + in_use` is the number of frames.

use std::fmt;
use std::ops::Range;

use crate::frame::{FrameSlice, Frames, Retired, Stack, Taken};
use crate::list;
use crate::node::Node;
use crate::place::{Place, Places};
use crate::policy::Policy;
use crate::region::{MapError, Pages};
use crate::returns::Returns;

/// The one who takes frames from a pool. What goes back may come from any thread.
#[derive(Debug)]
pub struct FramePool {
    frames: &'static Frames,
    stack: Stack,
    /// What came off the return list and is not on the stack yet.
    taken: Taken,
    /// `pp.refill`, as of the last refill.
    refill: u32,
}

/// Why a pool could not be made.
#[derive(Debug)]
pub enum PoolError {
    /// The frame size is out of range.
    Size {
        /// The size asked for, in bytes.
        size: u32,
    },
    /// No memory.
    Map(MapError),
}

impl fmt::Display for PoolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size { size } => write!(
                f,
                "frame size {size} is not in {}..={}",
                FramePool::SIZES.start,
                FramePool::SIZES.end - 1
            ),
            Self::Map(_) => f.write_str("no memory for a page pool"),
        }
    }
}

impl std::error::Error for PoolError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Size { .. } => None,
            Self::Map(source) => Some(source),
        }
    }
}

/// Where the frames of a pool are; the sum is the pool's size. Exact when all who free frames of it
/// have ended their rounds: until then, what they have gathered counts as in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameLedger {
    /// Never used.
    pub fresh: u32,
    /// Free, on the owner's stack.
    pub stacked: u32,
    /// Given back, and not yet on the stack.
    pub returned: u32,
    /// Freed by the owner's own thread, and kept there for it.
    pub kept: u32,
    /// Held by packets or a device.
    pub in_use: u32,
}

impl FramePool {
    /// The sizes a frame may have, in bytes.
    pub const SIZES: Range<u32> = 64..32_769;

    /// A pool of `count` frames of `size` bytes, on `node` where one is given.
    ///
    /// # Errors
    /// As [`PoolError`] tells.
    pub fn new(count: u32, size: u32, node: Option<Node>) -> Result<Self, PoolError> {
        if !Self::SIZES.contains(&size) {
            return Err(PoolError::Size { size });
        }
        if count > list::MOST {
            return Err(PoolError::Map(MapError::TooLarge { objects: count }));
        }
        let frames = Frames::map(count, size, node).map_err(PoolError::Map)?;
        Ok(Self {
            frames,
            stack: Stack::new(frames, Place::Cache),
            taken: Taken::new(frames),
            refill: Policy::GRILSE.pp_refill,
        })
    }

    /// Takes a frame, whole; `None` while all are in use.
    ///
    /// For an owner that has no [`Returns`] at hand. What one kept for this pool is not seen here;
    /// it comes at the end of that one's round.
    #[inline]
    pub fn take(&mut self) -> Option<FrameSlice> {
        match self.stack.pop() {
            Some(frame) => Some(frame),
            None => self.take_slow(None),
        }
    }

    /// Takes a frame, whole; `None` while all are in use. What this thread frees of the pool waits
    /// in `returns` from now on, for here.
    #[inline]
    pub fn take_with(&mut self, returns: &mut Returns) -> Option<FrameSlice> {
        match self.stack.pop() {
            Some(frame) => Some(frame),
            None => self.take_slow(Some(returns)),
        }
    }

    #[cold]
    #[inline(never)]
    fn take_slow(&mut self, mut returns: Option<&mut Returns>) -> Option<FrameSlice> {
        match &mut returns {
            Some(returns) => {
                self.refill = returns.refill();
                returns.give_to(&mut self.stack);
            }
            None => self.frames.set_keeper(0),
        }
        if self.stack.len() == 0 {
            self.taken.take();
            self.stack.refill(&mut self.taken, self.refill);
        }
        if self.stack.len() == 0 {
            self.stack.carve();
        }
        let frame = self.stack.pop();
        if let (None, Some(returns)) = (&frame, returns) {
            returns.found_none(self.frames);
        }
        frame
    }

    /// How many frames [`take`](Self::take) can have now, at least.
    pub fn available(&self) -> u32 {
        self.frames.fresh() + self.free()
    }

    /// Those that were used before.
    fn free(&self) -> u32 {
        self.stack.len() as u32 + self.taken.len() + self.frames.returned()
    }

    /// How many frames there are.
    pub fn count(&self) -> u32 {
        self.frames.count()
    }

    /// Bytes in a frame.
    pub fn size(&self) -> u32 {
        self.frames.size()
    }

    /// Which pages the frames stand on.
    pub fn pages(&self) -> Pages {
        self.frames.pages()
    }

    pub(crate) fn frames(&self) -> &'static Frames {
        self.frames
    }

    /// Where the frames are.
    pub fn ledger(&self) -> FrameLedger {
        let (fresh, kept) = (self.frames.fresh(), self.frames.kept());
        let (stacked, free) = (self.stack.len() as u32, self.free());
        let in_use = self.count() - fresh - free - kept;
        FrameLedger { fresh, stacked, returned: free - stacked, kept, in_use }
    }

    /// Where the frames are by the bytes that they carry, in builds with feature `audit`: an
    /// independent count of the same. A frame that was never used is said to be in the depot, one
    /// that a thread has gathered in an outbox, one in the return list in an inbox.
    pub fn places(&self) -> Places {
        self.frames.places()
    }

    /// Ends the pool. Nothing waits: frames that are still out stay good, and are counted as they
    /// come back.
    pub fn close(mut self) -> Closing {
        // The stack goes to the return list as it is dropped, and is counted there.
        Closing { retired: Retired::new(self.frames, &mut self.taken) }
    }
}

impl Drop for FramePool {
    /// What others gather for it waits for nobody any more.
    fn drop(&mut self) {
        self.frames.set_keeper(0);
    }
}

/// A pool that was closed, until its last frame is back.
#[derive(Debug)]
#[must_use = "it tells when the last frame is back"]
pub struct Closing {
    retired: Retired,
}

impl Closing {
    /// Frames that are still out: held by packets, gathered by a thread that has not ended its
    /// round, or lent.
    pub fn in_flight(&self) -> u32 {
        let frames = self.retired.frames();
        frames.count() - self.retired.count() - frames.returned()
    }

    /// Gives the pool's memory to the system.
    ///
    /// # Errors
    /// The pool, while frames are out.
    pub fn try_finish(mut self) -> Result<(), Self> {
        self.retired.collect();
        if self.retired.discard() { Ok(()) } else { Err(self) }
    }
}

//! Frames that a device has: lent to it by address, and claimed by the address it gives back.
//!
//! A UMEM is a page pool whose frames the kernel writes and reads. What stands in a ring is an
//! address, and a ring may hold anything: so the frames that are out stand in a table, and an address
//! yields a frame only if that frame was lent and not claimed since.
//!
//! Invariant: a frame in the table is owned by the table alone, so that no reference to bytes that a
//! device may write can come to be. Plain memory, no atomics: the table is its device's.

use std::fmt;
use std::mem;

use crate::frame::{FrameSlice, Frames};
use crate::pool::FramePool;

/// The frames of one pool that a device has.
///
/// A device that dies with frames out leaves them out: dropping the table claims nothing, as the
/// memory may still be written. Once it can not be any more (the rings are unmapped),
/// [`claim_all`](Self::claim_all) brings them back.
pub struct Loans {
    frames: &'static Frames,
    /// By index; `None`: not lent.
    table: Box<[Option<FrameSlice>]>,
    out: u32,
    refused: u64,
}

impl Loans {
    /// A table for the frames of `pool`.
    pub fn new(pool: &FramePool) -> Self {
        let table = (0..pool.count()).map(|_| None).collect();
        Self { frames: pool.frames(), table, out: 0, refused: 0 }
    }

    /// Lends a frame, for the device to read or write, and returns the address of the part: in
    /// bytes from the pool's first.
    ///
    /// # Errors
    /// The part, where it is of another pool, or others share its frame.
    pub fn lend(&mut self, slice: FrameSlice) -> Result<u64, FrameSlice> {
        if !std::ptr::eq(slice.frames(), self.frames) || !slice.is_sole() {
            return Err(slice);
        }
        // A sole owner is not in the table, so the place is empty.
        let Some(place) = self.table.get_mut(slice.index() as usize) else { return Err(slice) };
        let address = slice.address();
        *place = Some(slice);
        self.out += 1;
        Ok(address)
    }

    /// The frame that `address` lies in, as it was lent; `None`, and counted, where no frame is or
    /// that one was never lent, or claimed before.
    pub fn claim(&mut self, address: u64) -> Option<FrameSlice> {
        let index = usize::try_from(address / u64::from(self.frames.size())).ok();
        let claimed = index.and_then(|index| self.table.get_mut(index)?.take());
        match &claimed {
            Some(_) => self.out -= 1,
            None => self.refused += 1,
        }
        claimed
    }

    /// All frames that are out. The device can neither read nor write them any more: the caller
    /// vouches for it, and a device that does it nevertheless garbles packets.
    pub fn claim_all(&mut self) -> impl Iterator<Item = FrameSlice> {
        self.out = 0;
        self.table.iter_mut().filter_map(Option::take)
    }

    /// How many frames are out.
    pub fn out(&self) -> u32 {
        self.out
    }

    /// Addresses that were claimed in vain.
    pub fn refused(&self) -> u64 {
        self.refused
    }
}

impl Drop for Loans {
    fn drop(&mut self) {
        self.table.iter_mut().for_each(|place| mem::forget(place.take()));
    }
}

impl fmt::Debug for Loans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loans")
            .field("of", &self.table.len())
            .field("out", &self.out)
            .field("refused", &self.refused)
            .finish()
    }
}

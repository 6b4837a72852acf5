//! Frames: blocks of plain bytes of one size, for devices to write and packets to read.
//!
//! No Rust value lives in a frame: counts and links stand in tables beside it, so that a device
//! (an AF_XDP UMEM, a NIC) may write what it likes. A frame belongs to one pool for good and always
//! goes back to it.
//!
//! Invariant: a frame is either free (in its pool's stack, in the return list, or never used yet)
//! or held by as many [`FrameSlice`]s as its count of owners tells. Bytes are written only through
//! a slice that is the sole owner.

#![allow(unsafe_code)]

use std::fmt;
use std::ops::Range;
use std::ptr::NonNull;

use crate::list::{self, Bound, Push, Word};
use crate::owners::Owners;
use crate::region::{MapError, Node, Pages, Region};
use crate::sync::{AtomicU32, Ordering, Witnesses};

/// The frames of one pool, as everybody may know them.
pub struct Frames {
    base: NonNull<u8>,
    size: u32,
    owners: Box<[Owners]>,
    witnesses: Witnesses,
    links: Box<[AtomicU32]>,
    returned: Word,
    pages: Pages,
}

// SAFETY: the memory behind `base` is reached only through `FrameSlice`, whose rules (see there)
// keep a writer alone; the rest is atomics and constants.
unsafe impl Send for Frames {}
// SAFETY: as above.
unsafe impl Sync for Frames {}

/// The one who takes frames from a pool. What goes back may come from any thread.
#[derive(Debug)]
pub struct FramePool {
    frames: &'static Frames,
    /// Free frames, the warmest on top.
    stack: Vec<u32>,
    /// Frames from here on have never been used, and their memory never been touched.
    fresh: u32,
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

/// Where the frames of a pool are. `fresh + stacked + returned + in_use` is the pool's size; exact
/// while no frame is on its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameLedger {
    /// Never used.
    pub fresh: u32,
    /// Free, on the owner's stack.
    pub stacked: u32,
    /// Given back, and not yet taken up by the owner.
    pub returned: u32,
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
        let region = Region::map(count as usize * size as usize, node).map_err(PoolError::Map)?;
        let frames = Box::leak(Box::new(Frames {
            base: region.base,
            size,
            owners: (0..count).map(|_| Owners::new(0)).collect(),
            witnesses: Witnesses::new(count),
            links: (0..count).map(|_| AtomicU32::new(0)).collect(),
            returned: Word::new(),
            pages: region.pages,
        }));
        Ok(Self { frames, stack: Vec::with_capacity(count as usize), fresh: 0 })
    }

    /// Takes a frame, whole; `None` while all are in use.
    #[inline]
    pub fn take(&mut self) -> Option<FrameSlice> {
        let index = match self.stack.pop() {
            Some(index) => index,
            None => self.refill()?,
        };
        self.frames.owners[index as usize].reset();
        self.frames.witnesses.write(index);
        let len = self.frames.size as u16;
        Some(FrameSlice { frames: self.frames, index, offset: 0, len })
    }

    #[cold]
    #[inline(never)]
    fn refill(&mut self) -> Option<u32> {
        let mut next = self.frames.returned.take();
        while let Some(index) = next.checked_sub(1) {
            self.stack.push(index);
            // Relaxed: made visible by the acquire that took the list.
            next = self.frames.links[index as usize].load(Ordering::Relaxed);
        }
        if let Some(index) = self.stack.pop() {
            return Some(index);
        }
        let index = self.fresh;
        self.fresh += u32::from(index < self.count());
        (index < self.count()).then_some(index)
    }

    /// How many frames can be taken now, at least.
    pub fn available(&self) -> u32 {
        let fresh = self.count() - self.fresh;
        fresh + self.stack.len() as u32 + self.frames.returned.weight()
    }

    /// How many frames there are.
    pub fn count(&self) -> u32 {
        self.frames.owners.len() as u32
    }

    /// Bytes in a frame.
    pub fn size(&self) -> u32 {
        self.frames.size
    }

    /// Which pages the frames stand on.
    pub fn pages(&self) -> Pages {
        self.frames.pages
    }

    /// Where the frames are.
    pub fn ledger(&self) -> FrameLedger {
        let stacked = self.stack.len() as u32;
        let returned = self.frames.returned.weight();
        let fresh = self.count() - self.fresh;
        FrameLedger { fresh, stacked, returned, in_use: self.fresh - stacked - returned }
    }
}

impl fmt::Debug for Frames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frames")
            .field("count", &self.owners.len())
            .field("size", &self.size)
            .field("pages", &self.pages)
            .finish()
    }
}

/// A part of a frame, and a share in its ownership. 16 bytes.
pub struct FrameSlice {
    frames: &'static Frames,
    index: u32,
    offset: u16,
    len: u16,
}

const _: () = assert!(size_of::<Option<FrameSlice>>() == 16);

impl FrameSlice {
    /// The number of the frame in its pool.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Bytes in the part.
    pub fn len(&self) -> usize {
        self.len.into()
    }

    /// Whether the part is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes in the whole frame.
    pub fn frame_size(&self) -> usize {
        self.frames.size as usize
    }

    /// Where the part begins in its frame.
    pub fn offset(&self) -> usize {
        self.offset.into()
    }

    /// Whether both are of one pool.
    pub fn same_pool(&self, other: &Self) -> bool {
        std::ptr::eq(self.frames, other.frames)
    }

    /// Makes the part another one of the same frame.
    ///
    /// # Panics
    /// Where `range` leaves the frame.
    #[inline]
    pub fn set_range(&mut self, range: Range<usize>) {
        assert!(range.start <= range.end && range.end <= self.frame_size(), "within the frame");
        self.offset = range.start as u16;
        self.len = (range.end - range.start) as u16;
    }

    /// The bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.frames.witnesses.read(self.index);
        let at = self.start();
        // SAFETY: `offset + len` lies within the frame (`set_range`), the region is mapped for good
        // and zeroed at first, and no writer exists: one needs to be sole owner, with an exclusive
        // borrow of the one slice that there is, which would be this one.
        unsafe { std::slice::from_raw_parts(at.as_ptr(), self.len.into()) }
    }

    /// The bytes, for the sole owner; `None` where others share the frame.
    #[inline]
    pub fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        if !self.is_sole() {
            return None;
        }
        self.frames.witnesses.write(self.index);
        let at = self.start();
        // SAFETY: as in `bytes`; this slice is the only owner of the frame and is borrowed
        // exclusively, so no other slice can come to be (`Clone` borrows) while the bytes are lent.
        Some(unsafe { std::slice::from_raw_parts_mut(at.as_ptr(), self.len.into()) })
    }

    /// Whether nobody else holds a part of the frame.
    #[inline]
    pub fn is_sole(&self) -> bool {
        self.owners().is_sole()
    }

    #[inline]
    fn start(&self) -> NonNull<u8> {
        let offset = self.index as usize * self.frame_size() + usize::from(self.offset);
        // SAFETY: `index` is one of the pool's frames and `offset` lies within it, so the sum lies
        // within the region.
        unsafe { self.frames.base.add(offset) }
    }

    #[inline]
    fn owners(&self) -> &Owners {
        &self.frames.owners[self.index as usize]
    }
}

impl Clone for FrameSlice {
    /// Another owner of the same bytes.
    ///
    /// # Panics
    /// Beyond some two thousand million owners.
    fn clone(&self) -> Self {
        self.owners().join();
        Self { ..*self }
    }
}

impl Drop for FrameSlice {
    #[inline]
    fn drop(&mut self) {
        if !self.owners().leave() {
            return;
        }
        // Relaxed: published by the release in the word.
        let link = &self.frames.links[self.index as usize];
        let link = |next| link.store(next, Ordering::Relaxed);
        let pushed = self.frames.returned.push(self.index, 1, Bound::NONE, link);
        debug_assert!(matches!(pushed, Push::Landed { .. }), "the list is never closed");
    }
}

impl fmt::Debug for FrameSlice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FrameSlice({}[{}..+{}])", self.index, self.offset, self.len)
    }
}

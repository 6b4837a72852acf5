//! Memory from the system: anonymous, zeroed, on a stated node, in the largest pages there are.
//!
//! A region is never unmapped. Everything that is carved from it may therefore be `'static`, and
//! an index into it stays good whatever becomes of the thread that mapped it.

#![allow(unsafe_code)]

use std::io;
use std::ptr::NonNull;

use crate::node::{Node, Nodes};

/// Which pages a region stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pages {
    /// Reserved huge pages (`MAP_HUGETLB`).
    Huge,
    /// Ordinary pages that the kernel was asked to join (`MADV_HUGEPAGE`).
    Transparent,
    /// Ordinary pages.
    Ordinary,
}

/// Why a region could not be had.
#[derive(Debug)]
pub enum MapError {
    /// More objects than one arena or pool can count, or more bytes than there are addresses.
    TooLarge {
        /// Objects asked for.
        objects: u32,
    },
    /// The system has no memory to give, or a limit stands in the way (`ulimit -v`).
    Map {
        /// Bytes asked for.
        len: usize,
        /// What the system said.
        source: io::Error,
    },
    /// The memory could not be bound to the node.
    Bind {
        /// The node asked for.
        node: Node,
        /// What the system said.
        source: io::Error,
    },
}

impl std::fmt::Display for MapError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TooLarge { objects } => {
                write!(f, "{objects} packet buffers are too many for one pool")
            }
            Self::Map { len, .. } => write!(f, "map {len} bytes for packet buffers"),
            Self::Bind { node, .. } => write!(f, "bind packet buffers to node {}", node.0),
        }
    }
}

impl std::error::Error for MapError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::TooLarge { .. } => None,
            Self::Map { source, .. } | Self::Bind { source, .. } => Some(source),
        }
    }
}

/// A stretch of zeroed memory that lives as long as the process.
#[derive(Debug)]
pub(crate) struct Region {
    pub(crate) base: NonNull<u8>,
    pub(crate) pages: Pages,
}

#[cfg(not(any(loom, miri)))]
const HUGE: usize = 2 << 20;

/// The largest page that Linux is built with on any machine of ours: what is bound begins on one.
#[cfg(not(any(loom, miri)))]
const PAGE: usize = 64 << 10;

impl Region {
    /// Maps `len` bytes, aligned to a page, in parts of `part` bytes, one after the other for each
    /// of `nodes`. No page is touched: memory is taken from the system as it is used, on the node
    /// that its part is bound to and else by first touch. A page in which two parts meet is the
    /// latter's.
    #[cfg(not(any(loom, miri)))]
    pub(crate) fn map(len: usize, part: usize, nodes: &Nodes) -> Result<Self, MapError> {
        let len = len.max(1);
        // A length too large to round up is too large to map, which the system says then.
        let rounded = len.checked_next_multiple_of(HUGE).unwrap_or(len);
        let (base, pages) = match len < HUGE {
            true => (map_pages(len, 0), Pages::Ordinary),
            false => map_large(rounded, nodes.binding(0).is_none()),
        };
        let base = base.map_err(|source| MapError::Map { len, source })?;
        for position in 0..nodes.count() {
            let Some(node) = nodes.binding(position) else { continue };
            let from = position * part;
            let from = from - from % PAGE;
            // The last part has what is left; where shares are few cells, that may be nothing.
            let until = if position + 1 == nodes.count() { len } else { (position + 1) * part };
            if from < until.min(len) {
                bind(base, from..until.min(len), node)
                    .map_err(|source| MapError::Bind { node, source })?;
            }
        }
        Ok(Self { base, pages })
    }

    /// The model checker and Miri know no `mmap`: the heap stands in for it.
    #[cfg(any(loom, miri))]
    pub(crate) fn map(len: usize, _part: usize, _nodes: &Nodes) -> Result<Self, MapError> {
        let layout = std::alloc::Layout::from_size_align(len.max(1), 4096)
            .expect("a length below isize::MAX");
        // SAFETY: the layout has a size above zero.
        let base = unsafe { std::alloc::alloc_zeroed(layout) };
        let base = NonNull::new(base)
            .ok_or(MapError::Map { len, source: io::ErrorKind::OutOfMemory.into() })?;
        Ok(Self { base, pages: Pages::Ordinary })
    }
}

/// Gives the pages of a range to the system; its bytes read as zero from then on. The addresses stay
/// mapped. What the system refuses stays as it is: nothing depends on it.
///
/// # Safety
/// The range is of one region, begins on a page, and nobody has a reference into it.
#[cfg(not(any(loom, miri)))]
pub(crate) unsafe fn discard(base: NonNull<u8>, len: usize) {
    // SAFETY: the caller vouches for the range, and that nobody looks at its bytes.
    unsafe { libc::madvise(base.as_ptr().cast(), len, libc::MADV_DONTNEED) };
}

/// The heap keeps what it has.
///
/// # Safety
/// As above.
#[cfg(any(loom, miri))]
pub(crate) unsafe fn discard(_base: NonNull<u8>, _len: usize) {}

#[cfg(not(any(loom, miri)))]
fn map_large(len: usize, anywhere: bool) -> (io::Result<NonNull<u8>>, Pages) {
    // The mapping reserves its huge pages or fails: none can be missing at first touch. But they are
    // reserved of all nodes together: bound to one that has too few, a touch would end the process
    // (`SIGBUS`), where ordinary pages are only smaller.
    if anywhere {
        let huge = map_pages(len, libc::MAP_HUGETLB);
        if huge.is_ok() {
            return (huge, Pages::Huge);
        }
    }
    let base = match map_pages(len, libc::MAP_NORESERVE) {
        Ok(base) => base,
        failed => return (failed, Pages::Ordinary),
    };
    // SAFETY: the range was mapped just above; advice changes no contents.
    let told = unsafe { libc::madvise(base.as_ptr().cast(), len, libc::MADV_HUGEPAGE) };
    (Ok(base), if told == 0 { Pages::Transparent } else { Pages::Ordinary })
}

#[cfg(not(any(loom, miri)))]
fn map_pages(len: usize, flags: i32) -> io::Result<NonNull<u8>> {
    let flags = flags | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a fresh anonymous mapping at an address of the kernel's choice overlaps nothing.
    let base = unsafe {
        libc::mmap(std::ptr::null_mut(), len, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
    };
    if base == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(base.cast()).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
}

#[cfg(not(any(loom, miri)))]
fn bind(base: NonNull<u8>, bytes: std::ops::Range<usize>, node: Node) -> io::Result<()> {
    const BITS: usize = u64::BITS as usize;
    let mut mask = [0u64; 1024 / BITS];
    let word = mask.get_mut(usize::from(node.0) / BITS);
    *word.ok_or(io::ErrorKind::InvalidInput)? |= 1 << (usize::from(node.0) % BITS);
    // SAFETY: mbind reads the mask, whose length in bits is passed, and sets the policy of a range
    // that is mapped; no contents change.
    let rc = unsafe {
        libc::syscall(
            libc::SYS_mbind,
            base.as_ptr().wrapping_byte_add(bytes.start),
            bytes.len(),
            libc::MPOL_BIND,
            mask.as_ptr(),
            mask.len() * BITS,
            0,
        )
    };
    if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The node of the processor that this thread is on at the moment.
#[cfg(not(any(loom, miri)))]
pub(crate) fn node_of_this_cpu() -> Option<Node> {
    let mut node = 0u32;
    let nothing = std::ptr::null_mut::<u8>();
    // SAFETY: getcpu writes one number through each pointer that is not null, and uses no other.
    let rc = unsafe { libc::syscall(libc::SYS_getcpu, nothing, &raw mut node, nothing) };
    if rc == 0 { u16::try_from(node).ok().map(Node) } else { None }
}

#[cfg(any(loom, miri))]
pub(crate) fn node_of_this_cpu() -> Option<Node> {
    None
}

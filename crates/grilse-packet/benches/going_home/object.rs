//! The object that all contestants but the skb share: four metadata lines and a 2 KiB head beside
//! them, both in one arena on huge pages where the system gives them, as grilse's own.
//!
//! Invariant: an [`Owned`] is the only handle to its object. The arena lasts as long as the process.

#![allow(unsafe_code)]

use std::alloc::{Layout, alloc};
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::pool::{INTERFACE, Object, PROTOCOL};

const LINE: usize = 8;
const HUGE_PAGE: usize = 2 << 20;

/// A word of memory that may never have been written: general allocators give such.
type Word = MaybeUninit<u64>;

/// The words of the metadata lines that are the packet's.
#[repr(C)]
pub(crate) struct Words {
    first: [Word; 5],
    second: [Word; LINE],
    more: [[Word; LINE]; 2],
}

/// The packet's bytes.
#[repr(C)]
pub(crate) struct Head([Word; 2048 / 8]);

impl Words {
    /// As [`Object::write`].
    #[inline(always)]
    pub(crate) fn write<const SHELL: usize, const HEAD: usize>(&mut self, seq: u64) {
        if SHELL >= 2 {
            self.first = [Word::new(0); 5];
            self.second = [Word::new(0); LINE];
            self.first[0] = Word::new(HEAD as u64 * 64);
            let words = [seq, seq + 1, seq, u64::from(INTERFACE), u64::from(PROTOCOL)];
            self.second[..5].copy_from_slice(&words.map(Word::new));
        }
        if SHELL == 4 {
            self.more = [[Word::new(seq); LINE]; 2];
        }
    }

    /// As [`Object::read`].
    ///
    /// # Safety
    /// [`write`](Self::write) came before, with no smaller `SHELL`, or the memory was zeroed.
    #[inline(always)]
    pub(crate) unsafe fn read<const SHELL: usize>(&self) -> u64 {
        // SAFETY: as the caller says.
        let sum = |words: &[Word]| words.iter().map(|word| unsafe { word.assume_init() }).sum();
        let mut read = 0u64;
        if SHELL >= 2 {
            let six: [u64; 2] = [sum(&self.first[..1]), sum(&self.second[..5])];
            read += six[0] + six[1];
        }
        if SHELL == 4 {
            let more: u64 = sum(self.more.as_flattened());
            read += more;
        }
        read
    }
}

impl Head {
    /// As [`Object::write`], for `HEAD` lines.
    #[inline(always)]
    pub(crate) fn write<const HEAD: usize>(&mut self, seq: u64) {
        self.0[..HEAD * LINE].fill(Word::new(seq));
    }

    /// As [`Object::read`].
    ///
    /// # Safety
    /// [`write`](Self::write) came before, with no smaller `HEAD`, or the memory was zeroed.
    #[inline(always)]
    pub(crate) unsafe fn read<const HEAD: usize>(&self) -> u64 {
        // SAFETY: as the caller says.
        self.0[..HEAD * LINE].iter().map(|word| unsafe { word.assume_init() }).sum()
    }
}

/// A head and a spare line: 33, as with 32 all headers would share two sets of the first-level
/// cache.
#[repr(C, align(64))]
struct Place(Head, [Word; LINE]);

/// The metadata block: the first line holds what allocators keep, and all that they may touch.
#[repr(C, align(64))]
pub(crate) struct Shell {
    /// The next object of a list; the list's.
    pub(crate) link: AtomicPtr<Shell>,
    /// Number of the seat that took it last.
    pub(crate) home: usize,
    head: NonNull<Head>,
    words: Words,
}

const _: () = assert!(size_of::<Shell>() == 256);

/// The only owner of an object.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Owned(NonNull<Shell>);

// SAFETY: an owner alone reaches its object, so moving it moves the object.
unsafe impl Send for Owned {}

/// Makes `count` objects, which stay mapped.
pub(crate) fn carve(count: usize) -> Vec<Owned> {
    let shells: NonNull<Shell> = region(count * size_of::<Shell>()).cast();
    let heads: NonNull<Place> = region(count * size_of::<Place>()).cast();
    (0..count)
        .map(|i| {
            // SAFETY: the region holds `count` shells, and `i` is below.
            let at = unsafe { shells.add(i) };
            // SAFETY: as above.
            let head = unsafe { heads.add(i) }.cast();
            // SAFETY: the field lies in the region. Zeroed is a fine link and a fine home.
            let field = unsafe { &raw mut (*at.as_ptr()).head };
            // SAFETY: as above, and nobody's yet.
            unsafe { field.write(head) };
            Owned(at)
        })
        .collect()
}

/// Zeroed memory that is never given back.
fn region(bytes: usize) -> NonNull<u8> {
    let bytes = bytes.next_multiple_of(HUGE_PAGE);
    let layout = Layout::from_size_align(bytes, HUGE_PAGE).expect("a few megabytes");
    // SAFETY: the size is not zero.
    let base = NonNull::new(unsafe { alloc(layout) }).expect("a few megabytes");
    // Before the first touch: pages that are there stay small.
    // SAFETY: the range was just allocated; advice changes no contents.
    unsafe { libc::madvise(base.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) };
    // SAFETY: the range was just allocated.
    unsafe { base.write_bytes(0, bytes) };
    base
}

impl Owned {
    /// Gives up the owner for a pointer, which [`from_raw`](Self::from_raw) redeems.
    pub(crate) fn into_raw(self) -> *mut Shell {
        self.0.as_ptr()
    }

    /// The owner again.
    ///
    /// # Safety
    /// `raw` came from [`into_raw`](Self::into_raw), and is redeemed once.
    pub(crate) unsafe fn from_raw(raw: *mut Shell) -> Option<Self> {
        NonNull::new(raw).map(Self)
    }

    pub(crate) fn shell(&self) -> &Shell {
        // SAFETY: carved, and owned by this handle alone.
        unsafe { self.0.as_ref() }
    }

    pub(crate) fn shell_mut(&mut self) -> &mut Shell {
        // SAFETY: as above, and the borrow is exclusive.
        unsafe { self.0.as_mut() }
    }

    /// Says who takes it, without a write where that is known: then the line stays shared.
    #[inline(always)]
    pub(crate) fn stamp(&mut self, home: usize) {
        if self.shell().home != home {
            self.shell_mut().home = home;
        }
    }
}

impl Object for Owned {
    #[inline(always)]
    fn write<const SHELL: usize, const HEAD: usize>(&mut self, seq: u64) {
        let shell = self.shell_mut();
        shell.words.write::<SHELL, HEAD>(seq);
        if HEAD > 0 {
            // SAFETY: the head belongs to the shell, which this handle owns.
            unsafe { shell.head.as_mut() }.write::<HEAD>(seq);
        }
    }

    #[inline(always)]
    fn read<const SHELL: usize, const HEAD: usize>(&self) -> u64 {
        let shell = self.shell();
        // SAFETY: the arena was zeroed.
        let mut sum = unsafe { shell.words.read::<SHELL>() };
        if HEAD > 0 {
            // SAFETY: the head belongs to the shell, which this handle owns.
            let head = unsafe { shell.head.as_ref() };
            // SAFETY: the arena was zeroed.
            sum += unsafe { head.read::<HEAD>() };
        }
        sum
    }
}

/// Where objects wait that no seat holds.
pub(crate) struct Store(Mutex<Vec<Owned>>);

impl Store {
    pub(crate) fn new(objects: Vec<Owned>) -> Self {
        Self(Mutex::new(objects))
    }

    /// Moves up to `count` objects to `cache`.
    pub(crate) fn refill(&self, cache: &mut Vec<Owned>, count: usize) {
        let mut stock = self.0.lock().expect("no panic inside");
        let from = stock.len().saturating_sub(count);
        cache.extend(stock.drain(from..));
    }

    /// Takes the last `count` objects of `cache` in.
    pub(crate) fn spill(&self, cache: &mut Vec<Owned>, count: usize) {
        let from = cache.len().saturating_sub(count);
        self.0.lock().expect("no panic inside").extend(cache.drain(from..));
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().expect("no panic inside").len()
    }
}

/// A list that many push to and one takes whole (the kernel's `llist`): newest first.
#[derive(Default)]
pub(crate) struct Llist(AtomicPtr<Shell>);

impl Llist {
    /// Pushes an object, whose link is written (`llist_add`).
    #[inline(always)]
    pub(crate) fn push(&self, object: Owned) {
        let raw = object.into_raw();
        let mut newest = self.0.load(Ordering::Relaxed);
        loop {
            // SAFETY: the object is still ours: it is reachable only once the swap has landed.
            let link = unsafe { &(*raw).link };
            link.store(newest, Ordering::Relaxed);
            // Release: the object and its link; pairs with `take`.
            match self.0.compare_exchange_weak(newest, raw, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => newest = now,
            }
        }
    }

    /// Whether there is nothing to take.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.load(Ordering::Relaxed).is_null()
    }

    /// Takes all objects (`llist_del_all`).
    #[inline(always)]
    pub(crate) fn take(&self) -> impl Iterator<Item = Owned> {
        // Acquire: pairs with the releases in `push`.
        let mut next = self.0.swap(std::ptr::null_mut(), Ordering::Acquire);
        std::iter::from_fn(move || {
            // SAFETY: every object on the list was given up by `push`, and is redeemed here alone.
            let object = unsafe { Owned::from_raw(next) }?;
            next = object.shell().link.load(Ordering::Relaxed);
            Some(object)
        })
    }
}

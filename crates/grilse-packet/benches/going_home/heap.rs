//! General allocators: two blocks for each object, 256 and 2048 bytes, as a program without a pool
//! would ask for them. Called directly, not installed: the rest of the program stays as it is.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout};
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use crate::object::{Head, Words};
use crate::pool::{Object, Pool, Seat};

/// An allocator under its name.
pub(crate) struct Heap<A: 'static>(pub(crate) A);

/// The metadata block, whose first word points to the head.
#[repr(C)]
pub(crate) struct Block {
    head: NonNull<Head>,
    /// Where an arena object has link and home: so that all lines hold the same.
    _unused: MaybeUninit<[u64; 2]>,
    words: Words,
}

const SHELL: Layout = Layout::new::<Block>();
const HEAD: Layout = Layout::new::<Head>();
const _: () = assert!(SHELL.size() == 256 && HEAD.size() == 2048);

/// The only owner of both blocks.
#[repr(transparent)]
pub(crate) struct Blocks(NonNull<Block>);

// SAFETY: an owner alone reaches its blocks, so moving it moves them.
unsafe impl Send for Blocks {}

impl<A: GlobalAlloc + Sync> Pool for Heap<A> {
    type Handle = Blocks;
    type Seat = &'static A;

    fn seat(&'static self, _side: usize) -> &'static A {
        &self.0
    }

    fn in_use(&'static self) -> Option<usize> {
        None
    }
}

impl<A: GlobalAlloc> Seat<Blocks> for &'static A {
    #[inline]
    fn take(&mut self) -> Option<Blocks> {
        // SAFETY: the layout has a size.
        let shell = NonNull::new(unsafe { self.alloc(SHELL) })?.cast::<Block>();
        // SAFETY: as above.
        let Some(head) = NonNull::new(unsafe { self.alloc(HEAD) }) else {
            // SAFETY: had just above with this layout.
            unsafe { self.dealloc(shell.as_ptr().cast(), SHELL) };
            return None;
        };
        // SAFETY: the field lies in the block that was had above.
        let field = unsafe { &raw mut (*shell.as_ptr()).head };
        // SAFETY: as above; the block is nobody else's.
        unsafe { field.write(head.cast()) };
        Some(Blocks(shell))
    }

    #[inline]
    fn free(&mut self, object: Blocks) {
        let shell = object.0.as_ptr();
        // SAFETY: written by `take`, and the handle owns the block.
        let head = unsafe { (*shell).head };
        // SAFETY: had from this allocator with this layout, and given back once.
        unsafe { self.dealloc(head.as_ptr().cast(), HEAD) };
        // SAFETY: as above.
        unsafe { self.dealloc(shell.cast(), SHELL) };
    }
}

impl Object for Blocks {
    #[inline(always)]
    fn write<const SHELL: usize, const HEAD: usize>(&mut self, seq: u64) {
        // SAFETY: the blocks are this handle's alone.
        let block = unsafe { self.0.as_mut() };
        block.words.write::<SHELL, HEAD>(seq);
        if HEAD > 0 {
            // SAFETY: as above.
            unsafe { block.head.as_mut() }.write::<HEAD>(seq);
        }
    }

    #[inline(always)]
    fn read<const SHELL: usize, const HEAD: usize>(&self) -> u64 {
        // SAFETY: as in `write`.
        let block = unsafe { self.0.as_ref() };
        // SAFETY: the work writes each object before it reads as much of it.
        let mut sum = unsafe { block.words.read::<SHELL>() };
        if HEAD > 0 {
            // SAFETY: the block is this handle's alone.
            let head = unsafe { block.head.as_ref() };
            // SAFETY: the work writes each object before it reads as much of it.
            sum += unsafe { head.read::<HEAD>() };
        }
        sum
    }
}

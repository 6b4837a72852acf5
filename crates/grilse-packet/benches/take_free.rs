//! Take, initialise and free one skb, against two blocks from a general allocator.
//!
//! Both sides do the same work in bursts of 32: get the memory, write 54 bytes of headers and the
//! length, give all back. They take turns, a few thousand bursts each, so that whatever else the
//! machine does falls on both; what is printed is the median of the turns, and the quartiles.
//!
//! `cargo bench -p grilse-packet --bench take_free` prints nanoseconds per skb;
//! `valgrind --tool=callgrind --toggle-collect='*::skbs'` (or `'*::blocks'`) on the binary, with
//! `once` as argument, counts instructions for [`BURSTS`] bursts.

use std::alloc::{GlobalAlloc, Layout};
use std::hint::black_box;
use std::time::Instant;

use grilse_mem::{FramePool, Role};
use grilse_packet::{Batch, Ctx, Memory};
use mimalloc::MiMalloc;

const BURST: usize = 32;
const BURSTS: usize = 2_000;
const TURNS: usize = 301;
const HEADERS: [u8; 54] = [0x5a; 54];

#[inline(never)]
fn skbs(ctx: &mut Ctx, batch: &mut Batch) {
    for _ in 0..BURSTS {
        for _ in 0..BURST {
            let Some(mut skb) = ctx.take() else { panic!("skbs for one burst") };
            let Ok(headers) = skb.put(HEADERS.len()) else { panic!("room for headers") };
            headers.copy_from_slice(black_box(&HEADERS));
            let Ok(()) = batch.push(skb) else { panic!("room for one burst") };
        }
        black_box(&batch);
        while let Some(skb) = batch.pop() {
            ctx.consume(skb);
        }
    }
}

/// The same with a frame as head, as a device driver builds it.
#[inline(never)]
fn frames(ctx: &mut Ctx, pool: &mut FramePool, batch: &mut Batch) {
    for _ in 0..BURSTS {
        for _ in 0..BURST {
            let Some(frame) = ctx.take_frame(pool) else { panic!("frames for one burst") };
            let Ok(mut skb) = ctx.build(frame, 128, HEADERS.len()) else { panic!("an skb") };
            let Some(headers) = skb.linear_mut() else { panic!("nobody shares it") };
            headers.copy_from_slice(black_box(&HEADERS));
            let Ok(()) = batch.push(skb) else { panic!("room for one burst") };
        }
        black_box(&batch);
        while let Some(skb) = batch.pop() {
            ctx.consume(skb);
        }
    }
}

#[inline(never)]
#[allow(unsafe_code)]
fn blocks(held: &mut [(*mut u8, *mut u8); BURST]) {
    const META: Layout = Layout::new::<[u64; 32]>();
    const HEAD: Layout = Layout::new::<[u64; 256]>();
    for _ in 0..BURSTS {
        for (meta, head) in &mut *held {
            // SAFETY: the layout has a size.
            *meta = unsafe { MiMalloc.alloc(META) };
            // SAFETY: as above.
            *head = unsafe { MiMalloc.alloc(HEAD) };
            let headers = black_box(&HEADERS);
            // SAFETY: the block of 2048 bytes was had just above.
            unsafe { head.copy_from_nonoverlapping(headers.as_ptr(), headers.len()) };
            // SAFETY: the block of 256 bytes was had just above; an skb's metadata is as long.
            unsafe { meta.write_bytes(0, 128) };
        }
        black_box(&held);
        for (meta, head) in &*held {
            // SAFETY: had from this allocator with this layout, and given back once.
            unsafe { MiMalloc.dealloc(*meta, META) };
            // SAFETY: as above.
            unsafe { MiMalloc.dealloc(*head, HEAD) };
        }
    }
}

fn main() {
    let memory = Memory::new(4096, None).expect("memory for 4096 skbs");
    let mut ctx = Ctx::new(memory.seat(Role::Worker)).expect("a seat");
    let mut pool = FramePool::new(1024, 2112, None).expect("1024 frames");
    let mut batch = Batch::new();
    let mut held = [(std::ptr::null_mut(), std::ptr::null_mut()); BURST];
    let once = std::env::args().any(|arg| arg == "once");

    let mut ns = [const { Vec::new() }; 3];
    for _ in 0..if once { 1 } else { TURNS } {
        let mut turn = |side: usize, work: &mut dyn FnMut()| {
            let began = Instant::now();
            work();
            ns[side].push(began.elapsed().as_nanos() as f64 / (BURSTS * BURST) as f64);
        };
        turn(0, &mut || skbs(&mut ctx, &mut batch));
        turn(1, &mut || blocks(&mut held));
        turn(2, &mut || frames(&mut ctx, &mut pool, &mut batch));
    }
    if once {
        return;
    }
    for (name, ns) in
        ["skb, small head", "mimalloc, 256 + 2048", "skb, frame as head"].iter().zip(&mut ns)
    {
        ns.sort_by(f64::total_cmp);
        let at = |share: f64| ns[(share * (ns.len() - 1) as f64) as usize];
        println!("{name:22} {:6.2} ns  (quartiles {:.2}..{:.2})", at(0.5), at(0.25), at(0.75));
    }
}

//! See [`grilse_fuzz::gro`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| grilse_fuzz::gro(data));

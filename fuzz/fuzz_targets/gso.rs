//! See [`grilse_fuzz::gso`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| grilse_fuzz::gso(data));

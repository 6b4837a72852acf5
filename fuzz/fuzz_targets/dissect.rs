//! See [`grilse_fuzz::dissect`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| grilse_fuzz::dissect(data));

//! See [`grilse_fuzz::views`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| grilse_fuzz::views(data));

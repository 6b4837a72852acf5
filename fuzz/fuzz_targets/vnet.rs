//! See [`grilse_fuzz::vnet`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| grilse_fuzz::vnet(data));

//! See [`grilse_fuzz::pcap`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| grilse_fuzz::pcap(data));

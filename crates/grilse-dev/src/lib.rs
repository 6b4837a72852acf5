//! Where packets come from and where they go.
#![forbid(unsafe_code)]

pub mod pcap;

//! Workers: the thread-owned loop that moves packets from devices through GRO to a handler.
#![forbid(unsafe_code)]

mod worker;

pub use worker::{Handler, Poll, Port, Worker};

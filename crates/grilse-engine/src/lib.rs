//! Workers: the thread-owned loop that moves packets from devices through GRO to a handler.
#![forbid(unsafe_code)]

mod port;
mod tx;
mod worker;

pub use port::{Handler, Poll, PollCtx, Port};
pub use worker::{Round, Worker};

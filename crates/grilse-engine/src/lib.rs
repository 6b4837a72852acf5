//! Workers: the thread-owned loop that moves packets from devices through GRO to a handler.
#![forbid(unsafe_code)]

mod account;
mod forward;
mod limit;
mod port;
mod run;
mod stop;
mod tx;
mod worker;

pub use account::{Account, Published};
pub use forward::{Forward, Mode};
pub use limit::Limit;
pub use port::{Handler, Poll, PollCtx, Port};
pub use run::{Ended, Lost, Plan, Running, can_run_on};
pub use stop::Stop;
pub use worker::{Round, Worker};

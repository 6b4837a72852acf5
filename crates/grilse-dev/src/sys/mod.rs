//! System calls that no crate offers as safe functions: each file wraps those of one thing, and
//! gives out owned descriptors.

#![allow(unsafe_code)]

pub(crate) mod namespace;
pub(crate) mod tun;

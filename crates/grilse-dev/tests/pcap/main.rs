//! Capture files through the public API: what is read, what is written, and what damage does.

mod build;
mod comment;

mod damage;
mod read;
mod regression;
mod write;

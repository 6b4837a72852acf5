//! Standard output.

use std::io::{self, IsTerminal, Write};

use crate::failure::Failure;

/// The path that stands for it.
pub(crate) const PATH: &str = "-";
/// What messages call it.
pub(crate) const NAME: &str = "standard output";

/// Prints a report.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| Failure::output(NAME, &error))
}

/// Whether somebody watches it.
pub(crate) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

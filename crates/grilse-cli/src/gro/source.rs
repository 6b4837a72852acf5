//! Where a capture's bytes come from, with a progress bar where somebody watches.

use std::fs::File;
use std::io::{self, IsTerminal, Read};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::failure::Failure;

/// Opens `file`, or standard input for `-`.
pub(super) fn open(file: &str) -> Result<(Box<dyn Read>, ProgressBar), Failure> {
    if file == "-" {
        return Ok((Box::new(io::stdin().lock()), ProgressBar::hidden()));
    }
    let opened = File::open(file).and_then(|opened| Ok((opened.metadata()?, opened)));
    let (metadata, opened) = opened.map_err(|error| Failure::input(file, &error))?;
    if metadata.is_dir() {
        return Err(Failure::input(file, &io::ErrorKind::IsADirectory.into()));
    }
    if !io::stderr().is_terminal() {
        return Ok((Box::new(opened), ProgressBar::hidden()));
    }
    let target = ProgressDrawTarget::stderr_with_hz(4);
    let bar = ProgressBar::with_draw_target(Some(metadata.len()), target);
    let style = ProgressStyle::with_template("{msg} [{wide_bar}] {bytes}/{total_bytes} {eta}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
    bar.set_message(file.to_owned());
    Ok((Box::new(bar.wrap_read(opened)), bar))
}

//! Where a capture's bytes come from, with a progress bar where somebody watches.

use std::fs::{File, Metadata};
use std::io::{self, IsTerminal, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use grilse::pcap::Reader;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::failure::Failure;

/// A capture's bytes, as they come.
pub(crate) type Bytes = Box<dyn Read + Send>;

/// The name that stands for standard input.
const STDIN: &str = "-";

/// What messages call `file`.
pub(crate) fn name(file: &Path) -> String {
    if file == STDIN { "standard input".to_owned() } else { file.display().to_string() }
}

/// Opens the capture `file`, or standard input for `-`; the bar is shown on a terminal, unless
/// `hidden`.
pub(crate) fn open(file: &Path, hidden: bool) -> Result<(Reader<Bytes>, ProgressBar), Failure> {
    let (source, bar) = bytes(file, hidden)?;
    let reader = Reader::new(source).map_err(|error| Failure::capture(&name(file), &error))?;
    Ok((reader, bar))
}

fn bytes(file: &Path, hidden: bool) -> Result<(Bytes, ProgressBar), Failure> {
    let failed = |error| Failure::input(&name(file), &error);
    let (source, len): (Bytes, _) = if file == STDIN {
        (Box::new(io::stdin()), None)
    } else {
        let opened = File::open(file).map_err(failed)?;
        let metadata = opened.metadata().map_err(failed)?;
        if metadata.is_dir() {
            return Err(failed(io::ErrorKind::IsADirectory.into()));
        }
        (Box::new(opened), metadata.is_file().then_some(metadata.len()))
    };
    if hidden || !io::stderr().is_terminal() {
        return Ok((source, ProgressBar::hidden()));
    }
    let bar = bar(len).with_message(name(file));
    Ok((Box::new(bar.wrap_read(source)), bar))
}

/// A bar of `len` bytes; a pipe does not tell how many will come. It goes with its last handle,
/// whatever the command says next.
fn bar(len: Option<u64>) -> ProgressBar {
    let template = match len {
        Some(_) => "{msg} [{wide_bar}] {bytes}/{total_bytes} {eta}",
        None => "{msg} {bytes} {bytes_per_sec}",
    };
    let style = ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("=> ");
    ProgressBar::with_draw_target(len, ProgressDrawTarget::stderr_with_hz(4))
        .with_style(style)
        .with_finish(indicatif::ProgressFinish::AndClear)
}

/// Whether writing to `output` would destroy what is read from `input`. Devices and pipes have
/// nothing to destroy.
pub(crate) fn is_same_file(input: &Path, output: &Path) -> bool {
    let input = if input == STDIN { stdin_metadata() } else { input.metadata() };
    let id = |file: Metadata| file.is_file().then(|| (file.dev(), file.ino()));
    let (input, output) = (input.ok().and_then(id), output.metadata().ok().and_then(id));
    input.is_some() && input == output
}

fn stdin_metadata() -> io::Result<Metadata> {
    File::from(io::stdin().as_fd().try_clone_to_owned()?).metadata()
}

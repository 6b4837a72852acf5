//! `--json`: one object per line.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use grilse::wire::{Gso, GsoType};
use serde::Serialize;

use crate::failure::Failure;
use crate::stdout;

/// The lines of all files.
pub(crate) struct Lines {
    path: String,
    out: BufWriter<Box<dyn Write>>,
    file: Option<String>,
    broken: bool,
}

/// What a command says of a packet, and where that came from if there are several files.
#[derive(Serialize)]
struct Line<'a, T> {
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(flatten)]
    said: &'a T,
}

impl Lines {
    /// Lines into the file at `path`, or to standard output for `-`.
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        let (name, out): (_, Box<dyn Write>) = if path == stdout::PATH {
            (stdout::NAME.to_owned(), Box::new(io::stdout().lock()))
        } else {
            let name = path.display().to_string();
            let file = File::create(path).map_err(|error| Failure::output(&name, &error))?;
            (name, Box::new(file))
        };
        let out = BufWriter::with_capacity(1 << 16, out);
        Ok(Self { path: name, out, file: None, broken: false })
    }

    /// Another input begins; lines name it where there are several.
    pub(crate) fn begin(&mut self, file: Option<&str>) {
        self.file = file.map(str::to_owned);
    }

    /// Another line.
    pub(crate) fn put(&mut self, said: &impl Serialize) -> Result<(), Failure> {
        let line = Line { file: self.file.as_deref(), said };
        let written = serde_json::to_writer(&mut self.out, &line)
            .map_err(io::Error::from)
            .and_then(|()| self.out.write_all(b"\n"));
        self.check(written)
    }

    /// Whether nothing can be written any more.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken
    }

    /// Writes what is left.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        let flushed = self.out.flush();
        self.check(flushed)
    }

    fn check(&mut self, result: io::Result<()>) -> Result<(), Failure> {
        result.map_err(|error| {
            self.broken = true;
            Failure::output(&self.path, &error)
        })
    }
}

/// The types that the vnet header tells apart; fixed IDs, frag lists and the like show as these.
pub(crate) fn gso_type(gso: Gso) -> &'static str {
    if gso.size == 0 {
        "none"
    } else if gso.kind.contains(GsoType::TCPV4) {
        "tcpv4"
    } else if gso.kind.contains(GsoType::TCPV6) {
        "tcpv6"
    } else {
        "udp-l4"
    }
}

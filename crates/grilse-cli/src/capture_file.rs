//! `-o`: the capture that a command writes.

use std::path::Path;

use grilse::Recorder;
use grilse::pcap::{Format, Interface, Packet};

use crate::failure::Failure;

/// A capture that takes the packets of all inputs.
#[derive(Debug)]
pub(crate) struct CaptureFile {
    recorder: Recorder,
    format: Format,
    /// Number here of the input's first interface.
    base: u32,
    broken: bool,
}

impl CaptureFile {
    /// Creates the file; its suffix tells the format.
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        let name = path.display().to_string();
        let Some(format) = Format::of_path(path) else {
            let text = format!("{name}: the suffix tells no format: use .pcap or .pcapng");
            return Err(Failure::Usage(text));
        };
        let recorder = Recorder::create(&name, path, format)?;
        Ok(Self { recorder, format, base: 0, broken: false })
    }

    /// Another input begins.
    pub(crate) fn begin(&mut self) {
        self.base = self.recorder.interfaces() as u32;
    }

    /// The format.
    pub(crate) fn format(&self) -> Format {
        self.format
    }

    /// Number here of the input's interface.
    pub(crate) fn interface(&self, input: u32) -> u32 {
        self.base + input
    }

    /// Describes those of the input's interfaces that came up meanwhile.
    pub(crate) fn describe(&mut self, interfaces: &[Interface]) {
        let described = self.recorder.interfaces() - self.base as usize;
        for interface in &interfaces[described..] {
            self.recorder.describe(interface);
        }
    }

    /// Writes a packet, which came of frame `frame` of the input; its interface is a number here.
    pub(crate) fn write(&mut self, frame: u64, packet: &Packet<'_>) -> Result<(), Failure> {
        self.recorder.write(packet).map_err(|fault| {
            self.broken = true;
            // What stands there stays readable; where the system refused, it is so already.
            let _ = self.recorder.complete();
            Failure::unwritten(frame, fault)
        })
    }

    /// Whether nothing can be written any more.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken
    }

    /// Completes the file.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        if self.broken { Ok(()) } else { Ok(self.recorder.complete().map(drop)?) }
    }
}

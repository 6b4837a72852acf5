//! Where frames go.

use grilse::pcap::{self, Interface};

use super::json::Json;
use super::packet::{Frame, LONGEST, Packet};
use super::report::Report;
use crate::args::Paths;
use crate::capture_file::CaptureFile;
use crate::failure::Failure;
use crate::outlets;

/// The outlets, and the memory in which frames are written for them.
pub(super) struct Outlets {
    report: Report,
    lines: Option<Json>,
    capture: Option<CaptureFile>,
    buffer: Box<[u8]>,
}

impl Outlets {
    pub(super) fn create(paths: &Paths) -> Result<Self, Failure> {
        let outlets::Outlets { lines, capture } = outlets::Outlets::create(paths)?;
        let buffer = vec![0; LONGEST].into_boxed_slice();
        Ok(Self { report: Report::default(), lines: lines.map(Json::new), capture, buffer })
    }

    /// Another file begins.
    pub(super) fn begin(&mut self, file: &str, several: bool) {
        self.report.begin(file);
        if let Some(lines) = &mut self.lines {
            lines.begin(several.then_some(file));
        }
        if let Some(capture) = &mut self.capture {
            capture.begin();
        }
    }

    /// The file's interfaces so far.
    pub(super) fn describe(&mut self, interfaces: &[Interface]) {
        if let Some(capture) = &mut self.capture {
            capture.describe(interfaces);
        }
    }

    /// Shows the next frame of a packet, of which one is left.
    pub(super) fn show_next(&mut self, packet: &mut Packet) -> Result<(), Failure> {
        let Self { report, lines, capture, buffer } = self;
        let frame = packet.frame(buffer);
        report.count(&frame);
        if let Some(lines) = lines {
            lines.frame(&frame)?;
        }
        if let Some(capture) = capture {
            write(capture, &frame)?;
        }
        Ok(())
    }

    /// Whether an outlet takes nothing any more.
    pub(super) fn broken(&self) -> bool {
        let lines = self.lines.as_ref().is_some_and(Json::is_broken);
        lines || self.capture.as_ref().is_some_and(CaptureFile::is_broken)
    }

    /// Completes all outlets; where standard output is taken, the JSON says what the report would.
    pub(super) fn finish(self, to_stdout: bool) -> [Result<(), Failure>; 3] {
        [
            self.capture.map_or(Ok(()), CaptureFile::finish),
            self.lines.map_or(Ok(()), Json::finish),
            if to_stdout { self.report.print() } else { Ok(()) },
        ]
    }
}

fn write(capture: &mut CaptureFile, frame: &Frame<'_>) -> Result<(), Failure> {
    let comments: Vec<&[u8]> = frame.comments.iter().map(Vec::as_slice).collect();
    let packet = pcap::Packet {
        interface: capture.interface(frame.interface),
        ticks: frame.ticks,
        orig_len: frame.orig_len,
        data: &[frame.data],
        direction: None,
        comments: &comments,
    };
    capture.write(frame.packet.from(), &packet)
}

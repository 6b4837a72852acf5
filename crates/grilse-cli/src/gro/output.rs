//! `-o`: the delivered packets in a capture.

use std::path::Path;

use grilse::pcap::{Format, Grilse1, Member};
use grilse::wire::Csum;
use grilse::{Note, Notes, OnWire, Recorder};

use super::delivered::Delivered;
use crate::failure::Failure;

/// The output file.
pub(super) struct Output {
    recorder: Recorder,
    format: Format,
    notes: Notes,
    /// Number in the output of this input's first interface.
    base: u32,
    /// Frames in the inputs before this one.
    frames_before: u64,
    broken: bool,
}

impl Output {
    /// Creates the file; its suffix tells the format.
    pub(super) fn create(path: &Path) -> Result<Self, Failure> {
        let name = path.display().to_string();
        let Some(format) = Format::of_path(path) else {
            let text = format!("{name}: the suffix tells no format: use .pcap or .pcapng");
            return Err(Failure::Usage(text));
        };
        let recorder = Recorder::create(&name, path, format)?;
        let notes = Notes::default();
        Ok(Self { recorder, format, notes, base: 0, frames_before: 0, broken: false })
    }

    /// Another input begins.
    pub(super) fn begin(&mut self, notes: Notes, frames_before: u64) {
        self.frames_before = frames_before;
        self.notes = notes;
        self.base = self.recorder.interfaces() as u32;
    }

    /// A delivered packet: with the time of its first frame, the comments of all its frames, and,
    /// where the format has comments, one of ours that tells the frames apart again.
    pub(super) fn packet(&mut self, delivered: &Delivered<'_>) -> Result<(), Failure> {
        let notes = self.take_notes(delivered.members);
        let ours = match self.format {
            Format::Pcap => Vec::new(),
            Format::Pcapng => self.restoring(delivered, &notes).encode(),
        };
        let foreign = notes.iter().flat_map(|note| &note.comments).map(|comment| &comment[..]);
        let comments: Vec<&[u8]> = foreign.chain(ours.iter().map(String::as_bytes)).collect();
        let ticks = notes.first().map_or(0, |note| note.ticks);
        let interface = self.base + delivered.skb.meta().interface;
        let written = self.recorder.record(delivered.skb, interface, ticks, &comments);
        written.map_err(|fault| {
            self.broken = true;
            // What stands there stays readable; where the system refused, it is so already.
            let _ = self.recorder.finish();
            Failure::unwritten(delivered.members[0], fault)
        })
    }

    /// Whether nothing can be written any more.
    pub(super) fn is_broken(&self) -> bool {
        self.broken
    }

    /// Removes the notes of these frames, and describes the interfaces that came up meanwhile.
    fn take_notes(&mut self, members: &[u64]) -> Vec<Note> {
        let mut table = self.notes.lock();
        let described = self.recorder.interfaces() - self.base as usize;
        for interface in &table.interfaces[described..] {
            self.recorder.describe(interface);
        }
        members.iter().filter_map(|frame| table.records.remove(frame)).collect()
    }

    fn restoring(&self, delivered: &Delivered<'_>, notes: &[Note]) -> Grilse1 {
        let meta = delivered.skb.meta();
        let mut csum = meta.csum;
        if let Csum::Partial { start, .. } = &mut csum {
            *start += OnWire::new(delivered.skb).tag_len() as u16;
        }
        let member = |(&frame, note): (&u64, &Note)| Member {
            frame: self.frames_before + frame,
            interface: self.base + meta.interface,
            ticks: note.ticks,
            orig_len: note.orig_len,
            comments: note.comments.len() as u32,
        };
        Grilse1 {
            gso: meta.gso,
            csum,
            vlan_restored: meta.vlan.is_some(),
            members: delivered.members.iter().zip(notes).map(member).collect(),
        }
    }

    /// Completes the file.
    pub(super) fn finish(mut self) -> Result<(), Failure> {
        if self.broken { Ok(()) } else { Ok(self.recorder.finish().map(drop)?) }
    }
}

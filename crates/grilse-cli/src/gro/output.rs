//! `-o`: the delivered packets in a capture.

use grilse::pcap::{Format, Grilse1, Member, Packet};
use grilse::wire::Csum;
use grilse::{Note, Notes, OnWire};

use super::delivered::Delivered;
use crate::capture_file::CaptureFile;
use crate::failure::Failure;

/// The output file.
pub(super) struct Output {
    file: CaptureFile,
    notes: Notes,
    /// Frames in the inputs before this one.
    frames_before: u64,
}

impl Output {
    pub(super) fn new(file: CaptureFile) -> Self {
        Self { file, notes: Notes::default(), frames_before: 0 }
    }

    /// Another input begins.
    pub(super) fn begin(&mut self, notes: Notes, frames_before: u64) {
        self.frames_before = frames_before;
        self.notes = notes;
        self.file.begin();
    }

    /// A delivered packet: with the time of its first frame, the comments of all its frames, and,
    /// where the format has comments, one of ours that tells the frames apart again.
    pub(super) fn packet(&mut self, delivered: &Delivered<'_>) -> Result<(), Failure> {
        let notes = self.take_notes(delivered.members);
        let ours = match self.file.format() {
            Format::Pcap => Vec::new(),
            Format::Pcapng => self.restoring(delivered, &notes).encode(),
        };
        let foreign = notes.iter().flat_map(|note| &note.comments).map(|comment| &comment[..]);
        let comments: Vec<&[u8]> = foreign.chain(ours.iter().map(String::as_bytes)).collect();
        let ticks = notes.first().map_or(0, |note| note.ticks);
        let frame = OnWire::new(delivered.skb);
        let pieces: Vec<&[u8]> = frame.pieces().collect();
        // What was cut off behind the frames of a super-packet was padding: it is whole.
        let wire_len = match delivered.members {
            [_] => delivered.skb.meta().wire_len,
            _ => 0,
        };
        let packet = Packet {
            interface: self.file.interface(delivered.skb.meta().interface),
            ticks,
            orig_len: wire_len.max(frame.len() as u32),
            direction: None,
            data: &pieces,
            comments: &comments,
        };
        self.file.write(delivered.members[0], &packet)
    }

    /// Whether nothing can be written any more.
    pub(super) fn is_broken(&self) -> bool {
        self.file.is_broken()
    }

    /// Removes the notes of these frames, and describes the interfaces that came up meanwhile.
    fn take_notes(&mut self, members: &[u64]) -> Vec<Note> {
        let mut table = self.notes.lock();
        self.file.describe(&table.interfaces);
        members.iter().filter_map(|frame| table.records.remove(frame)).collect()
    }

    fn restoring(&self, delivered: &Delivered<'_>, notes: &[Note]) -> Grilse1 {
        let meta = delivered.skb.meta();
        let tag = OnWire::new(delivered.skb).tag_len() as u16;
        let mut csum = meta.csum;
        if let Csum::Partial { start, .. } = &mut csum {
            *start += tag;
        }
        let is_tunnel = meta.encapsulated && meta.gso.size != 0;
        let member = |(&frame, note): (&u64, &Note)| Member {
            frame: self.frames_before + frame,
            interface: self.file.interface(meta.interface),
            ticks: note.ticks,
            orig_len: note.orig_len,
            comments: note.comments.len() as u32,
        };
        Grilse1 {
            gso: meta.gso,
            csum,
            inner_network: if is_tunnel { meta.inner_network + tag } else { 0 },
            vlan_restored: meta.vlan.is_some(),
            members: delivered.members.iter().zip(notes).map(member).collect(),
        }
    }

    /// Completes the file.
    pub(super) fn finish(self) -> Result<(), Failure> {
        self.file.finish()
    }
}

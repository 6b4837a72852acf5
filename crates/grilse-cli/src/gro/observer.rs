//! The handler behind GRO: it shows each packet to every outlet, and consumes it.

use std::io::Read;
use std::num::NonZeroUsize;

use grilse::wire::Meta;
use grilse::{Drops, Handler, PollCtx, Replay, Skb, Why};

use super::delivered::Delivered;
use super::explain::Report;
use super::json::Json;
use super::members::Members;
use super::output::Output;
use super::refused::Refused;
use crate::failure::Failure;

/// Where results go.
pub(super) struct Outlets {
    pub(super) report: Report,
    pub(super) lines: Option<Json>,
    pub(super) output: Option<Output>,
}

impl Outlets {
    /// Another file begins.
    pub(super) fn begin(&mut self, file: &str, several: bool, device: &mut Replay<impl Read>) {
        self.report.begin(file);
        if let Some(lines) = &mut self.lines {
            lines.begin(several.then_some(file));
        }
        if let Some(output) = &mut self.output {
            output.begin(device.notes(), self.report.frames());
        }
    }

    /// Whether an outlet takes nothing any more.
    pub(super) fn broken(&self) -> bool {
        let lines = self.lines.as_ref().is_some_and(Json::is_broken);
        lines || self.output.as_ref().is_some_and(Output::is_broken)
    }

    /// Completes all outlets; the report goes to standard output, or to standard error where the
    /// other is taken.
    pub(super) fn finish(self, to_stdout: bool) -> [Result<(), Failure>; 3] {
        [
            self.output.map_or(Ok(()), Output::finish),
            self.lines.map_or(Ok(()), Json::finish),
            self.report.print(to_stdout),
        ]
    }

    fn show(&mut self, delivered: &Delivered<'_>) -> Result<(), Failure> {
        self.report.count(delivered);
        if let Some(lines) = &mut self.lines {
            lines.packet(delivered)?;
        }
        if let Some(output) = &mut self.output {
            output.packet(delivered)?;
        }
        Ok(())
    }
}

/// Refused frames are listed behind the packets, as the kernel oracle does it; where there are more
/// than this, they are listed as they come.
const LISTED_LAST: usize = 1 << 16;

/// The handler of one file's packets.
pub(super) struct Observer<'a> {
    outlets: &'a mut Outlets,
    refused: Refused,
    batch: u64,
    members: Members,
    arriving: Option<u64>,
    failed: Option<Failure>,
}

impl<'a> Observer<'a> {
    pub(super) fn new(outlets: &'a mut Outlets, refused: Refused, batch: NonZeroUsize) -> Self {
        Self {
            outlets,
            refused,
            batch: batch.get() as u64,
            members: Members::default(),
            arriving: None,
            failed: None,
        }
    }

    /// A poll is over: says whether an outlet has failed in it.
    pub(super) fn polled(&mut self) -> Result<(), Failure> {
        if let Some(failure) = self.failed.take() {
            return Err(failure);
        }
        if self.refused.len() > LISTED_LAST { self.list_refused() } else { Ok(()) }
    }

    /// The file is over.
    pub(super) fn end(mut self, drops: Drops) -> Result<(), Failure> {
        self.outlets.report.end(drops);
        let listed = self.list_refused();
        self.polled().and(listed)
    }

    fn list_refused(&mut self) -> Result<(), Failure> {
        let refused = self.refused.take();
        match &mut self.outlets.lines {
            Some(lines) => refused.iter().try_for_each(|&(seq, len)| lines.refused(seq, len)),
            None => Ok(()),
        }
    }
}

impl Handler for Observer<'_> {
    fn arriving(&mut self, meta: Option<&Meta>) {
        self.arriving = meta.map(|meta| meta.seq);
    }

    fn merged(&mut self, head: &Meta, packet: &Meta) {
        self.members.join(head.seq, packet.seq);
    }

    fn trimmed(&mut self, _packet: &Meta, bytes: usize) {
        self.outlets.report.trimmed(bytes);
    }

    fn deliver(&mut self, poll: &mut PollCtx<'_>, skb: Skb, why: Why) {
        let first = skb.meta().seq;
        let members = self.members.take(first);
        let delivered = Delivered {
            skb: &skb,
            why,
            batch: first / self.batch,
            members: &members,
            cause: self.arriving,
        };
        // After a failure packets are only consumed, up to the end of the poll.
        if self.failed.is_none()
            && let Err(failure) = self.outlets.show(&delivered)
        {
            self.failed = Some(failure);
        }
        self.members.give(members);
        poll.consume(skb);
    }
}

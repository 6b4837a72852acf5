//! Frames in the order of the capture that was coalesced.
//!
//! GRO delivers a packet when it stops growing, and others in between. All of a poll leaves before
//! the next one comes, and a poll takes no more than 64 frames; so as soon as as many wait here, the
//! first of them is the next one of all. Packets wait whole and are cut one frame at a time.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use grilse::{Batch, pcap};

use super::outlets::Outlets;
use super::packet::Packet;
use crate::failure::Failure;

/// Bytes that wait at most: twice the longest record, as many as the frames of one poll can have.
const BYTES: usize = 2 * pcap::MAX_BLOCK as usize;

/// Packets of one capture on their way.
#[derive(Default)]
pub(super) struct Queue {
    waiting: BinaryHeap<Reverse<Waiting>>,
    /// A packet that nothing is known of: it keeps its place behind those that wait.
    unnumbered: Option<Packet>,
    /// Frames and bytes that wait.
    frames: usize,
    bytes: usize,
    /// The number that follows the last frame.
    next: u64,
}

/// A packet with a number, ordered by that of its next frame.
struct Waiting {
    number: u64,
    packet: Box<Packet>,
}

impl Queue {
    /// Another packet; [`pass`](Self::pass) comes between two.
    pub(super) fn push(&mut self, packet: Packet) {
        match packet.next() {
            None => self.unnumbered = Some(packet),
            Some(number) => {
                self.frames += packet.left();
                self.bytes += packet.bytes();
                self.waiting.push(Reverse(Waiting { number, packet: Box::new(packet) }));
            }
        }
    }

    /// Passes on what nothing can come before any more.
    pub(super) fn pass(&mut self, outlets: &mut Outlets) -> Result<(), Failure> {
        if let Some(mut packet) = self.unnumbered.take() {
            self.drain(outlets)?;
            while packet.left() > 0 {
                outlets.show_next(&mut packet)?;
            }
            return Ok(());
        }
        while self.is_ready() {
            self.pass_one(outlets)?;
        }
        Ok(())
    }

    /// Passes on all that waits.
    pub(super) fn drain(&mut self, outlets: &mut Outlets) -> Result<(), Failure> {
        while !self.waiting.is_empty() {
            self.pass_one(outlets)?;
        }
        Ok(())
    }

    fn is_ready(&self) -> bool {
        let first = self.waiting.peek();
        let follows = |Reverse(first): &Reverse<Waiting>| first.number <= self.next;
        first.is_some_and(follows) || self.frames >= Batch::CAPACITY || self.bytes > BYTES
    }

    /// One frame of the first packet.
    fn pass_one(&mut self, outlets: &mut Outlets) -> Result<(), Failure> {
        let Some(Reverse(Waiting { number, mut packet })) = self.waiting.pop() else {
            return Ok(());
        };
        self.next = number.saturating_add(1);
        self.frames -= 1;
        outlets.show_next(&mut packet)?;
        match packet.next() {
            Some(number) => self.waiting.push(Reverse(Waiting { number, packet })),
            None => self.bytes -= packet.bytes(),
        }
        Ok(())
    }
}

impl Waiting {
    fn key(&self) -> (u64, u64) {
        (self.number, self.packet.from())
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Waiting {}

//! What is known of a packet's checksums while its headers are walked.
//!
//! The kernel's CB fields `csum_cnt`, `csum_valid` and `csum`. A packet whose sum is good is marked
//! in its [`Meta`](grilse_wire::Meta), also where it is delivered unmerged, which saves the stack
//! the work.

use grilse_wire::csum::{self, Summer};
use grilse_wire::{Csum, Packet};

use crate::{Reason, Why};

/// Highest level that [`Csum::Unnecessary`] counts to (`SKB_MAX_CSUM_LEVEL`).
const MAX_LEVEL: u8 = 3;

/// The state of the walk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sums {
    /// Layer-4 checksums that the device vouched for and the walk has not used up.
    credits: u8,
    /// Unfolded sum of everything from the cursor on, where the device gave it.
    complete: Option<u32>,
    /// Whether nobody is believed: the frame is to be restored as it came, wrong sums included.
    strict: bool,
}

impl Sums {
    pub(super) fn new(csum: Csum, strict: bool) -> Self {
        let (credits, complete) = match csum {
            Csum::Unnecessary { level } => (level.saturating_add(1), None),
            Csum::Complete { sum } => (0, Some(sum)),
            Csum::None | Csum::Partial { .. } => (0, None),
        };
        Self { credits, complete, strict }
    }

    /// Accounts for header bytes that the cursor passed. Not for IPv4 headers, which sum to zero.
    pub(super) fn pass(&mut self, header: &[u8]) {
        if let Some(sum) = &mut self.complete {
            *sum = csum::sub(*sum, csum::sum(header));
        }
    }

    /// Judges the layer-4 checksum whose header starts at `at` (`skb_gro_checksum_validate`): by
    /// the device's word, its sum, or by summing the bytes, in this order.
    ///
    /// `optional`: the checksum field is 0 and may be (UDP). Such a packet gains its mark unjudged.
    ///
    /// Returns why the packet may not merge, although it is good for all we are told: segmentation
    /// would finish its sum, or mend one that the device vouched for.
    ///
    /// # Errors
    /// The folded sum, which should have been 0xffff.
    pub(super) fn validate<P: Packet>(
        &mut self,
        packet: &mut P,
        at: usize,
        optional: bool,
        pseudo: impl FnOnce() -> u32,
    ) -> Result<Option<Why>, u16> {
        let unfinished =
            matches!(packet.meta().csum, Csum::Partial { start, .. } if usize::from(start) >= at);
        let mut unfit = None;
        if self.strict && (unfinished || self.credits > 0) && !optional {
            unfit = self.doubt(packet, at, unfinished, pseudo());
        } else if self.credits == 0 && !unfinished && !optional {
            self.verify(packet, at, pseudo())?;
        }
        if self.credits > 0 {
            self.credits -= 1;
        } else {
            vouch(&mut packet.meta_mut().csum);
        }
        Ok(unfit)
    }

    /// Draws the sum of what is left from a checksum that was found good, or vouched for, over it and
    /// a pseudo-header (`skb_gro_checksum_try_convert`): together they are zero. Not where the device
    /// vouches for the next checksum too.
    pub(super) fn convert(&mut self, pseudo: u32) {
        if self.credits == 0 {
            self.complete = Some(!pseudo);
        }
    }

    /// Whether the next checksum can be judged without summing the bytes.
    pub(super) fn are_known(&self) -> bool {
        self.credits > 0 || self.complete.is_some()
    }

    /// Why a packet that we are told is good may not merge all the same.
    #[cold]
    fn doubt<P: Packet>(
        &self,
        packet: &P,
        at: usize,
        unfinished: bool,
        pseudo: u32,
    ) -> Option<Why> {
        if unfinished {
            return Some(Reason::UnfinishedChecksum.into());
        }
        let wrong = |sum| Why::new(Reason::VouchedChecksum, 0xffff_u16, sum);
        self.verify(packet, at, pseudo).err().map(wrong)
    }

    fn verify<P: Packet>(&self, packet: &P, at: usize, pseudo: u32) -> Result<(), u16> {
        let complete = self.complete.filter(|_| !self.strict);
        if complete.is_some_and(|sum| csum::fold(csum::add(pseudo, sum)) == 0xffff) {
            return Ok(());
        }
        // The kernel does not trust a device's sum that disagrees, and neither do we.
        let mut summer = Summer::new(pseudo);
        for piece in packet.pieces(at..packet.len()) {
            summer.push(piece);
        }
        match summer.fold() {
            0xffff => Ok(()),
            wrong => Err(wrong),
        }
    }
}

/// Records one more verified checksum (`__skb_incr_checksum_unnecessary`).
pub(super) fn vouch(csum: &mut Csum) {
    match csum {
        Csum::None => *csum = Csum::Unnecessary { level: 0 },
        Csum::Unnecessary { level } if *level < MAX_LEVEL => *level += 1,
        Csum::Unnecessary { .. } | Csum::Complete { .. } | Csum::Partial { .. } => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_stop_at_three() {
        let mut csum = Csum::None;
        for level in [0, 1, 2, 3, 3] {
            vouch(&mut csum);
            assert_eq!(csum, Csum::Unnecessary { level });
        }
        let partial = Csum::Partial { start: 34, offset: 16 };
        let mut csum = partial;
        vouch(&mut csum);
        assert_eq!(csum, partial);
    }
}

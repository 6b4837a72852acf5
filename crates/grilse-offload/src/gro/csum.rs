//! What is known of a packet's checksums while its headers are walked.
//!
//! The kernel's CB fields `csum_cnt`, `csum_valid` and `csum`. A packet whose sum is good is marked
//! in its [`Meta`](grilse_wire::Meta), also where it is delivered unmerged, which saves the stack
//! the work.

use grilse_wire::csum::{self, Summer};
use grilse_wire::{Csum, Packet};

/// Highest level that [`Csum::Unnecessary`] counts to (`SKB_MAX_CSUM_LEVEL`).
const MAX_LEVEL: u8 = 3;

/// The state of the walk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sums {
    /// Layer-4 checksums that the device vouched for and the walk has not used up.
    credits: u8,
    /// Unfolded sum of everything from the cursor on, where the device gave it.
    complete: Option<u32>,
}

impl Sums {
    pub(super) fn new(csum: Csum) -> Self {
        match csum {
            Csum::Unnecessary { level } => {
                Self { credits: level.saturating_add(1), complete: None }
            }
            Csum::Complete { sum } => Self { credits: 0, complete: Some(sum) },
            Csum::None | Csum::Partial { .. } => Self { credits: 0, complete: None },
        }
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
    /// # Errors
    /// The folded sum, which should have been 0xffff.
    pub(super) fn validate<P: Packet>(
        &mut self,
        packet: &mut P,
        at: usize,
        optional: bool,
        pseudo: impl FnOnce() -> u32,
    ) -> Result<(), u16> {
        let unfinished =
            matches!(packet.meta().csum, Csum::Partial { start, .. } if usize::from(start) >= at);
        if self.credits == 0 && !unfinished && !optional {
            self.verify(packet, at, pseudo())?;
        }
        if self.credits > 0 {
            self.credits -= 1;
        } else {
            vouch(&mut packet.meta_mut().csum);
        }
        Ok(())
    }

    fn verify<P: Packet>(&mut self, packet: &P, at: usize, pseudo: u32) -> Result<(), u16> {
        if self.complete.is_some_and(|sum| csum::fold(csum::add(pseudo, sum)) == 0xffff) {
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

//! Where every frame went: what came in is what went out, what handlers were done with, what was
//! dropped by a reason, and what is still held.
//!
//! A packet counts as the frames that it stands for, which neither GRO nor GSO changes. A worker
//! alone writes its account, and publishes it once a round; others read that.

use std::sync::atomic::{AtomicU64, Ordering};

use grilse_packet::{DropReason, Drops, Skb};

/// Frames that a packet stands for.
pub(crate) fn frames(skb: &Skb) -> u64 {
    skb.meta().gso.segs.max(1).into()
}

/// What a worker has counted since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Account {
    /// Frames that came in, those dropped for want of memory included.
    pub rx_frames: u64,
    /// Their bytes, link headers included.
    pub rx_bytes: u64,
    /// Packets that GRO delivered.
    pub delivered: u64,
    /// Frames that handlers were done with.
    pub consumed: u64,
    /// Frames that devices took for sending.
    pub tx_frames: u64,
    /// Their bytes.
    pub tx_bytes: u64,
    /// Frames that GRO holds, or that wait to be sent.
    pub held: u64,
    /// Frames that were dropped, by reason.
    pub drops: Drops,
}

/// How many words an account is: its plain counters, and one for each reason.
const WORDS: usize = PLAIN + DropReason::ALL.len();
const PLAIN: usize = 7;

impl Account {
    /// Frames that are missing; below zero, that came from nowhere. 0 between rounds.
    pub fn missing(&self) -> i64 {
        let gone = self.consumed + self.tx_frames + self.drops.total() + self.held;
        self.rx_frames.wrapping_sub(gone) as i64
    }

    /// This and another worker's.
    pub fn plus(&self, other: &Self) -> Self {
        self.zip(other, |a, b| a + b)
    }

    /// What was counted since `earlier`; what is held, as it is now.
    pub fn since(&self, earlier: &Self) -> Self {
        Self { held: self.held, ..self.zip(earlier, u64::wrapping_sub) }
    }

    fn zip(&self, other: &Self, with: impl Fn(u64, u64) -> u64) -> Self {
        let (a, b) = (self.words(), other.words());
        Self::of(std::array::from_fn(|i| with(a[i], b[i])))
    }

    fn words(&self) -> [u64; WORDS] {
        let Self { rx_frames, rx_bytes, delivered, consumed, tx_frames, tx_bytes, held, drops } =
            *self;
        let plain: [u64; PLAIN] =
            [rx_frames, rx_bytes, delivered, consumed, tx_frames, tx_bytes, held];
        std::array::from_fn(|i| match plain.get(i) {
            Some(word) => *word,
            None => drops.count(DropReason::ALL[i - PLAIN]),
        })
    }

    fn of(words: [u64; WORDS]) -> Self {
        let [rx_frames, rx_bytes, delivered, consumed, tx_frames, tx_bytes, held, ..] = words;
        let drops = Drops::from_fn(|reason| words[PLAIN + reason as usize]);
        Self { rx_frames, rx_bytes, delivered, consumed, tx_frames, tx_bytes, held, drops }
    }
}

/// An account that other threads may read. Its counters are each right, and of about one moment.
#[derive(Debug)]
pub struct Published([AtomicU64; WORDS]);

impl Default for Published {
    fn default() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl Published {
    /// What the worker counted up to its last round.
    pub fn read(&self) -> Account {
        Account::of(std::array::from_fn(|i| self.0[i].load(Ordering::Relaxed)))
    }

    pub(crate) fn write(&self, account: &Account) {
        for (place, word) in self.0.iter().zip(account.words()) {
            place.store(word, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every counter has a place of its own on the way through words.
    #[test]
    fn accounts_survive_publication() {
        let account = Account::of(std::array::from_fn(|i| 1 << i));
        let published = Published::default();
        published.write(&account);
        assert_eq!(published.read(), account);
        assert_eq!(account.rx_frames, 1);
        assert_eq!(account.drops.count(DropReason::ALL[0]), 1 << PLAIN);
        let held = 2 * account.held;
        assert_eq!(account.plus(&account).since(&account), Account { held, ..account });
    }
}

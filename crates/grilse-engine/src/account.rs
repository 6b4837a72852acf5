//! Where every frame went: what came in is what went out, what handlers were done with, what was
//! dropped by a reason, and what is still held.
//!
//! A packet counts as the frames that it stands for, which neither GRO nor GSO changes. A worker
//! alone writes its account, and publishes it once a round; others read that.

use std::sync::atomic::{AtomicU64, Ordering};

use grilse_packet::{Ctx, DropReason, Drops, Load, Skb};

/// Frames that a packet stands for.
pub(crate) fn frames(skb: &Skb) -> u64 {
    Load::of(skb.meta(), skb.len()).frames
}

/// What devices did with packets besides taking them and handing them on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OnTheWay {
    lost: Load,
    copied: Load,
}

impl OnTheWay {
    /// All so far.
    pub(crate) fn until(ctx: &Ctx) -> Self {
        Self { lost: ctx.lost(), copied: ctx.copied() }
    }

    /// What was done since.
    fn since(&self, ctx: &Ctx) -> Self {
        Self { lost: ctx.lost() - self.lost, copied: ctx.copied() - self.copied }
    }
}

/// What a worker has counted since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Account {
    /// Frames that came in, those included that their device dropped.
    pub rx_frames: u64,
    /// Bytes of the packets that devices handed on, link headers included.
    pub rx_bytes: u64,
    /// Packets that GRO delivered.
    pub delivered: u64,
    /// Frames that handlers were done with.
    pub consumed: u64,
    /// Frames that devices took for sending and did not drop; copies that they sent besides count.
    pub tx_frames: u64,
    /// Their bytes.
    pub tx_bytes: u64,
    /// Frames that came from nowhere: copies that a fault layer made of those received and sent.
    pub copied: u64,
    /// Frames that GRO holds, or that wait to be sent.
    pub held: u64,
    /// Frames that were dropped, by reason.
    pub drops: Drops,
}

/// How many words an account is: its plain counters, and one for each reason.
const WORDS: usize = PLAIN + DropReason::ALL.len();
const PLAIN: usize = 8;

impl Account {
    /// Frames that are missing; below zero, that came from nowhere. 0 between rounds.
    pub fn missing(&self) -> i64 {
        let gone = self.consumed + self.tx_frames + self.drops.total() + self.held;
        (self.rx_frames + self.copied).wrapping_sub(gone) as i64
    }

    /// Books a receive call: what was lost in it came in, and copies did not.
    pub(crate) fn received(&mut self, before: &OnTheWay, ctx: &Ctx) {
        let OnTheWay { lost, copied } = before.since(ctx);
        self.rx_frames = (self.rx_frames + lost.frames).wrapping_sub(copied.frames);
    }

    /// Books a call in which a device took this for sending.
    pub(crate) fn sent(&mut self, taken: Load, before: &OnTheWay, ctx: &Ctx) {
        let OnTheWay { lost, copied } = before.since(ctx);
        let sent = |all: u64, taken: u64, copied: u64, lost: u64| {
            (all + taken + copied).saturating_sub(lost)
        };
        self.tx_frames = sent(self.tx_frames, taken.frames, copied.frames, lost.frames);
        self.tx_bytes = sent(self.tx_bytes, taken.bytes, copied.bytes, lost.bytes);
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
        let Self {
            rx_frames,
            rx_bytes,
            delivered,
            consumed,
            tx_frames,
            tx_bytes,
            copied,
            held,
            drops,
        } = *self;
        let plain: [u64; PLAIN] =
            [rx_frames, rx_bytes, delivered, consumed, tx_frames, tx_bytes, copied, held];
        std::array::from_fn(|i| match plain.get(i) {
            Some(word) => *word,
            None => drops.count(DropReason::ALL[i - PLAIN]),
        })
    }

    fn of(words: [u64; WORDS]) -> Self {
        let [rx_frames, rx_bytes, delivered, consumed, tx_frames, tx_bytes, copied, held, ..] =
            words;
        let drops = Drops::from_fn(|reason| words[PLAIN + reason as usize]);
        Self { rx_frames, rx_bytes, delivered, consumed, tx_frames, tx_bytes, copied, held, drops }
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

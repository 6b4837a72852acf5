//! What a cache did: its decisions, and how long objects were parked.

/// Counts of one cache since it was made.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stats {
    /// Magazines taken from the depot.
    pub refills: u64,
    /// Full magazines given to the depot because the cache was as large as it may be.
    pub spills: u64,
    /// Objects freed away from home that were sent there.
    pub sent_home: u64,
    /// Objects freed away from home that were kept.
    pub adopted: u64,
    /// Objects freed away from home that went to the depot.
    pub to_depot: u64,
    /// Magazines sent home.
    pub magazines_sent: u64,
    /// Times that a home took no more.
    pub overflows: u64,
    /// Takes that found nothing anywhere.
    pub exhausted: u64,
    /// Objects that a take from an array prefetched for the next one, as of the last round's end.
    pub prefetches: u64,
    /// Homes woken.
    pub wakes: u64,
    /// Which nodes objects were of.
    pub locality: Locality,
    /// Objects that came home, by how long they were parked.
    pub parked: Histogram,
}

/// Which nodes the objects of one cache were of, by their addresses. Counted where the memory has
/// more than one node, else all zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Locality {
    /// Objects taken that are of the taker's own node.
    pub own: u64,
    /// Objects taken that are of another.
    pub other: u64,
    /// Of those, objects that another node's depot gave, as its own had none left.
    pub borrowed: u64,
    /// Objects of another node that were freed away from home and kept.
    pub adopted: u64,
}

impl Locality {
    /// The share of objects taken that are of the taker's own node; `None` before the first.
    pub fn share(&self) -> Option<f64> {
        let all = self.own + self.other;
        (all > 0).then(|| self.own as f64 / all as f64)
    }
}

/// A histogram of times in powers of two of nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram([u64; 40]);

impl Default for Stats {
    fn default() -> Self {
        Self {
            refills: 0,
            spills: 0,
            sent_home: 0,
            adopted: 0,
            to_depot: 0,
            magazines_sent: 0,
            overflows: 0,
            exhausted: 0,
            prefetches: 0,
            wakes: 0,
            locality: Locality::default(),
            parked: Histogram([0; 40]),
        }
    }
}

impl Stats {
    pub(crate) fn parked(&mut self, ns: u64, objects: usize) {
        let bucket = (u64::BITS - ns.leading_zeros()).min(39);
        self.parked.0[bucket as usize] += objects as u64;
    }
}

impl Histogram {
    /// The buckets that hold something: the time in nanoseconds that all of theirs were below, and
    /// how many those are.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        self.0.iter().enumerate().filter(|(_, n)| **n > 0).map(|(bucket, n)| (1 << bucket, *n))
    }

    /// The bucket, by its upper bound in nanoseconds, that the share `per_mille` of all lies within
    /// or below; `None` of an empty histogram.
    pub fn quantile(&self, per_mille: u64) -> Option<u64> {
        let all: u64 = self.0.iter().sum();
        let mut left = (all * per_mille).div_ceil(1000);
        self.buckets()
            .find(|(_, n)| {
                let within = left <= *n;
                left = left.saturating_sub(*n);
                within
            })
            .map(|(below, _)| below)
    }
}

//! How long a differential test looks, and at which traffic: the same for every run of one commit, or,
//! where somebody hunts, for as long as he says and at other traffic each time.
//!
//! `GRILSE_DIFFERENTIAL_SECS` and `GRILSE_DIFFERENTIAL_SEED` ask for it; see `tests/differential.rs`.

use std::str::FromStr;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{env, fmt};

use super::Rng;

pub(crate) struct Hunt {
    pub(crate) seed: u64,
    /// Somebody said for how long.
    pub(crate) is_asked_for: bool,
    start: Instant,
    time: Duration,
}

impl Hunt {
    /// Looks for so many seconds where nobody says. Prints the seed.
    pub(crate) fn new(seconds: u64) -> Self {
        let asked: Option<u64> = setting("GRILSE_DIFFERENTIAL_SECS");
        let clock = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
        let seed =
            setting("GRILSE_DIFFERENTIAL_SEED").unwrap_or_else(|| asked.map_or(1, |_| clock()));
        println!("seed {seed}");
        Self {
            seed,
            is_asked_for: asked.is_some(),
            start: Instant::now(),
            time: Duration::from_secs(asked.unwrap_or(seconds)),
        }
    }

    pub(crate) fn rng(&self) -> Rng {
        Rng(self.seed)
    }

    pub(crate) fn has_time(&self) -> bool {
        self.start.elapsed() < self.time
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }
}

/// The number in an environment variable; one that is no number fails the test.
fn setting<T: FromStr<Err: fmt::Debug>>(name: &str) -> Option<T> {
    let text = env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|error| panic!("{name}={text}: {error:?}")))
}

//! The switch: where the policy in force is published.

use crate::policy::{BadPolicy, Policy};
use crate::sync::{AtomicU32, Mutex, Ordering, lock};

/// Holds the policy in force. Whoever works by it looks once a round, and copies it whole when it
/// has changed.
#[derive(Debug)]
pub struct Switch {
    version: AtomicU32,
    policy: Mutex<Policy>,
}

/// A copy of the policy in force, as of the last look.
#[derive(Clone, Copy, Debug, Default)]
pub struct Snapshot {
    version: u32,
    /// The policy.
    pub policy: Policy,
}

impl Switch {
    /// A switch with the `grilse` policy.
    pub fn new() -> Self {
        Self { version: AtomicU32::new(0), policy: Mutex::new(Policy::GRILSE) }
    }

    /// Puts a policy in force, for the rounds that begin from now on.
    ///
    /// # Errors
    /// Where a knob is out of range; then nothing changes.
    pub fn set(&self, policy: Policy) -> Result<(), BadPolicy> {
        policy.check()?;
        let mut current = lock(&self.policy);
        *current = policy;
        // Relaxed: the lock publishes the policy; a look that misses this number sees it next round.
        self.version.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Brings a snapshot up to date; says whether it was not.
    #[inline]
    pub fn look(&self, snapshot: &mut Snapshot) -> bool {
        if self.version.load(Ordering::Relaxed) == snapshot.version {
            return false;
        }
        let policy = lock(&self.policy);
        // Read under the lock, so that number and policy belong together.
        snapshot.version = self.version.load(Ordering::Relaxed);
        snapshot.policy = *policy;
        true
    }
}

impl Default for Switch {
    fn default() -> Self {
        Self::new()
    }
}

//! A packet of which nothing is left that means anything to anybody outside.

use grilse_mem::Slot;

use crate::ctx::Ctx;
use crate::shell::Shell;
use crate::skb::Skb;

/// A shell, with its data where that was not shared: no fragments, no chained packets, no clone's
/// bytes, no destructor left to call. Only this may lie in a cache, an outbox or an inbox, for as
/// long as it likes: nobody waits for anything that it holds.
#[derive(Debug)]
#[must_use = "give it to a context"]
pub struct Bare(Slot<Shell>);

impl Skb {
    /// Lets go of all that the packet holds, chained packets included, and calls its destructor.
    ///
    /// [`Ctx::consume`] does this. By itself it is for who frees where a packet must not be held up,
    /// and has a context only later.
    pub fn into_bare(self) -> Bare {
        let mut shell = self.into_shell();
        shell.release(drop);
        Bare(shell)
    }
}

impl Bare {
    pub(crate) fn of(shell: Slot<Shell>) -> Self {
        debug_assert!(shell.head.is_none() && shell.destructor.is_none());
        Self(shell)
    }

    pub(crate) fn into_shell(self) -> Slot<Shell> {
        self.0
    }
}

impl Ctx {
    /// Gives back what is left of a packet.
    #[inline]
    pub fn recycle(&mut self, bare: Bare) {
        self.free(bare);
    }
}

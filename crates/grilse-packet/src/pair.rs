//! A packet and the shell of its clone, taken together (`fclone`).
//!
//! TCP keeps what it has sent until it is acknowledged, and sends clones. A pair makes sure that a
//! clone can be had when it is needed, and tells whether the last one is still under way.

use grilse_mem::Slot;

use crate::ctx::Ctx;
use crate::shell::Shell;
use crate::skb::Skb;

/// A packet whose clone cannot fail. The two halves are an skb like any other and one shell in
/// reserve; neither lies in a cache while the pair lasts.
#[derive(Debug)]
pub struct Pair {
    skb: Skb,
    reserve: Option<Slot<Shell>>,
}

impl Pair {
    /// A pair around `skb`.
    ///
    /// # Errors
    /// The skb, when no shell is left for the reserve.
    pub fn new(ctx: &mut Ctx, skb: Skb) -> Result<Self, Skb> {
        match ctx.take_bare_shell() {
            Some(reserve) => Ok(Self { skb, reserve: Some(reserve) }),
            None => Err(skb),
        }
    }

    /// The original.
    pub fn skb(&self) -> &Skb {
        &self.skb
    }

    /// The original, writable where no clone is under way.
    pub fn skb_mut(&mut self) -> &mut Skb {
        &mut self.skb
    }

    /// Whether a clone is still under way: it shares the original's bytes.
    pub fn is_busy(&self) -> bool {
        self.skb.is_shared()
    }

    /// Takes the clone out of the reserve. `None` where it was taken before and not
    /// [refilled](Self::refill).
    pub fn take_clone(&mut self) -> Option<Skb> {
        let reserve = self.reserve.take()?;
        Some(self.skb.clone_into(reserve))
    }

    /// Takes another shell into the reserve, for a retransmission; says whether one is there now.
    pub fn refill(&mut self, ctx: &mut Ctx) -> bool {
        if self.reserve.is_none() {
            self.reserve = ctx.take_bare_shell();
        }
        self.reserve.is_some()
    }

    /// Ends the pair: the reserve goes back, the original stays.
    pub fn into_skb(self, ctx: &mut Ctx) -> Skb {
        if let Some(reserve) = self.reserve {
            ctx.recycle(crate::bare::Bare::of(reserve));
        }
        self.skb
    }
}

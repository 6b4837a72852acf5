//! Clones: shells that share data, and the copies that keep writers apart.

use grilse_mem::{Counted, FrameSlice, Shared, Slot};

use crate::copy::copy;
use crate::ctx::Ctx;
use crate::shell::{Data, DataOwner, Shell};
use crate::skb::{NoRoom, Skb};

impl Skb {
    /// Another skb of the same bytes, with metadata of its own (`skb_clone`). Both can read; who
    /// writes to headers copies them first ([`Packet::front_mut`](grilse_wire::Packet::front_mut)).
    /// `None` when no shell is left.
    pub fn try_clone(&mut self, ctx: &mut Ctx) -> Option<Skb> {
        let shell = ctx.take_shell()?;
        Some(self.clone_into(shell))
    }

    /// Whether a clone may share bytes with this skb.
    pub fn is_shared(&self) -> bool {
        let head = self.shell().head.as_ref().is_some_and(|frame| !frame.is_sole());
        head || matches!(&self.shell().data, DataOwner::Shared(data) if data.owners() > 1)
    }

    fn clone_into(&mut self, mut shell: Slot<Shell>) -> Skb {
        let data = self.share_data();
        let own = self.shell();
        shell.release();
        shell.data = data.map_or(DataOwner::None, DataOwner::Shared);
        shell.head = own.head.clone();
        shell.start = own.start;
        shell.linear = own.linear;
        shell.len = own.len;
        shell.has_frags = own.has_frags;
        shell.has_chain = own.has_chain;
        shell.meta.0 = own.meta.0;
        shell.truesize = own.truesize;
        Skb::from_shell(shell)
    }

    /// Opens the data to several owners, that of chained packets too, so that a clone can be cloned
    /// without writing to what it shares.
    fn share_data(&mut self) -> Option<Shared<Data>> {
        let shell = self.shell_mut();
        let shared = match std::mem::replace(&mut shell.data, DataOwner::None) {
            DataOwner::None => return None,
            DataOwner::Shared(data) => data,
            DataOwner::Sole(mut data) => {
                if shell.has_chain {
                    // Turned now, as who reads a shared list cannot turn it.
                    data.chain.settle();
                    data.chain.for_each_mut(|skb| drop(skb.share_data()));
                }
                Shared::new(data)
            }
        };
        shell.data = DataOwner::Shared(shared.clone());
        Some(shared)
    }

    /// Makes the data this skb's alone: by taking it back where the clones are gone, else by
    /// copying it. Fragments are not copied, only shared.
    pub(crate) fn unshare_data(&mut self) -> Result<(), NoRoom> {
        let shell = self.shell_mut();
        if shell.data.sole().is_none()
            && let DataOwner::Shared(shared) = &shell.data
        {
            let copy = copy_data(shell, shared).ok_or(NoRoom)?;
            shell.data = DataOwner::Sole(copy);
        }
        Ok(())
    }

    /// Makes the first `n` bytes linear, and their bytes this skb's alone to write.
    pub(crate) fn writable(&mut self, n: usize) -> Option<&mut [u8]> {
        if n > self.shell().linear as usize {
            self.pull_to_linear(n).ok()?;
        }
        if self.head_bytes_mut().is_none() {
            self.unshare_data().ok()?;
            if self.shell().head.is_some() {
                self.rebuild_head(n).ok()?;
            }
        }
        self.linear_mut()
    }
}

/// A copy of the data that `shell` shares: its own linear bytes, shares in the fragments, clones of
/// the chained packets.
fn copy_data(shell: &Shell, shared: &Shared<Data>) -> Option<Slot<Counted<Data>>> {
    let mut slot = shared.depot.take_one()?;
    if shell.head.is_none() {
        let range = shell.start as usize..(shell.start + shell.linear) as usize;
        copy(&mut slot.small[range.clone()], &shared.small[range]);
    }
    for frag in shared.frags.iter() {
        let pushed = slot.frags.push(FrameSlice::clone(frag));
        debug_assert!(pushed.is_ok(), "both hold as many");
    }
    for skb in shared.chain.iter() {
        slot.chain.push(reclone(skb, shell)?);
    }
    Some(slot)
}

/// A clone of a chained packet, whose data is shared already.
fn reclone(skb: &Skb, for_shell: &Shell) -> Option<Skb> {
    let home = for_shell.home?;
    let mut shell = home.depot().take_one()?;
    shell.home = Some(home);
    let own = skb.shell();
    if let DataOwner::Shared(data) = &own.data {
        shell.data = DataOwner::Shared(data.clone());
    }
    shell.head = own.head.clone();
    shell.start = own.start;
    shell.linear = own.linear;
    shell.len = own.len;
    shell.has_frags = own.has_frags;
    shell.meta.0 = own.meta.0;
    shell.truesize = own.truesize;
    Some(Skb::from_shell(shell))
}

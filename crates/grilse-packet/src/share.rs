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
        let shell = ctx.take_bare_shell()?;
        Some(self.clone_into(shell))
    }

    /// Whether a clone may share bytes with this skb.
    pub fn is_shared(&self) -> bool {
        let head = self.shell().head.as_ref().is_some_and(|frame| !frame.is_sole());
        head || matches!(&self.shell().data, DataOwner::Shared(data) if data.owners() > 1)
    }

    pub(crate) fn clone_into(&mut self, mut shell: Slot<Shell>) -> Skb {
        let data = self.share_data();
        shell.data = data.map_or(DataOwner::None, DataOwner::Shared);
        self.shell().show_in(shell)
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
        if n > usize::from(self.shell().linear) {
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
        copy(&mut slot.small[shell.range()], &shared.small[shell.range()]);
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
    if let DataOwner::Shared(data) = &skb.shell().data {
        shell.data = DataOwner::Shared(data.clone());
    }
    Some(skb.shell().show_in(shell))
}

impl Shell {
    /// An skb of the same bytes in another shell, which has a share in the data.
    fn show_in(&self, mut shell: Slot<Shell>) -> Skb {
        shell.head = self.head.clone();
        shell.start = self.start;
        shell.linear = self.linear;
        shell.len = self.len;
        shell.has_frags = self.has_frags;
        shell.has_chain = self.has_chain;
        shell.meta = self.meta;
        shell.truesize = self.truesize;
        Skb::from_shell(shell)
    }
}

#[cfg(test)]
mod tests {
    use grilse_mem::{FramePool, Role};
    use grilse_wire::Packet;

    use super::*;
    use crate::Memory;

    fn bytes(skb: &Skb) -> Vec<u8> {
        skb.pieces(0..skb.len()).collect::<Vec<_>>().concat()
    }

    /// A head of ten bytes with three chained packets, each ten linear bytes and ten in a fragment;
    /// and its clone.
    fn shared_pair(ctx: &mut Ctx, pool: &mut FramePool) -> (Skb, Skb) {
        let mut head = ctx.take().unwrap();
        head.put(10).unwrap().fill(b'h');
        for byte in b'0'..b'3' {
            let mut skb = ctx.take().unwrap();
            skb.put(10).unwrap().fill(byte);
            let mut frag = pool.take().unwrap();
            frag.bytes_mut().unwrap().fill(byte + 16);
            frag.set_range(0..10);
            skb.add_frag(frag).unwrap();
            head.chain(skb).unwrap();
        }
        let clone = head.try_clone(ctx).unwrap();
        (head, clone)
    }

    /// A cut within a chained packet's fragments needs data for the head and for that packet. With
    /// less, nothing may have changed; what was cut before the second was missed used to be lost.
    #[test]
    fn each_data_cell_of_a_cut_fails_in_turn() {
        type Cut = fn(&mut Skb) -> bool;
        let cuts: [Cut; 4] = [
            |skb| skb.trim(25) == Ok(()),
            |skb| skb.pull(45) == 45,
            |skb| skb.pull_to_linear(45).is_ok(),
            |skb| skb.front_mut(45).is_some(),
        ];
        for (number, cut) in cuts.into_iter().enumerate() {
            for left in 0..=2 {
                let memory = Memory::new(200, None).unwrap();
                let mut ctx = Ctx::new(memory.seat(Role::Worker)).unwrap();
                let mut pool = FramePool::new(4, 1024, None).unwrap();
                let (mut head, clone) = shared_pair(&mut ctx, &mut pool);
                let mut hoard: Vec<_> = std::iter::from_fn(|| memory.data[0].take_one()).collect();
                hoard.truncate(hoard.len() - left);
                let (before, charged) = (bytes(&head), head.truesize());

                assert_eq!(cut(&mut head), left == 2, "cut {number} with {left} cells");
                // Pull takes what it can have without memory: the linear part.
                let pulled = if number == 1 && left < 2 { 10 } else { 0 };
                if left < 2 {
                    assert_eq!(
                        (bytes(&head), head.truesize()),
                        (before[pulled..].to_vec(), charged)
                    );
                }
                assert_eq!(bytes(&clone), before, "the clone never changes");

                drop(hoard);
                if left < 2 && number != 1 {
                    assert!(cut(&mut head), "cut {number} works once memory is back");
                }
                ctx.consume(head);
                ctx.consume(clone);
                ctx.begin(0);
                ctx.end();
                assert_eq!((memory.ledgers().shells.in_use, pool.ledger().in_use), (0, 0));
            }
        }
    }
}

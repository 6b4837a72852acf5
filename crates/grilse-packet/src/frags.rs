//! Cutting at either end of what stands behind the linear part, and heads that change place.

use std::mem;
use std::ops::Range;

use grilse_mem::FrameSlice;

use crate::copy::{copy, copy_within};
use crate::shell::{HEAD_SIZE, SMALL_START};
use crate::skb::{NoRoom, Skb};

impl Skb {
    /// Removes up to `n` bytes from the front of the fragments and chained packets; the linear part
    /// is empty or stays. Returns how many went.
    pub(crate) fn pull_frags(&mut self, n: usize) -> usize {
        if self.part_front(n).is_err() {
            return 0;
        }
        let shell = self.shell_mut();
        let Some(data) = shell.data.sole() else { return 0 };
        let mut left = n;
        let mut spent = 0;
        for frag in data.frags.items.iter_mut().flatten() {
            if left < frag.len() {
                let range = frag.offset() + left..frag.offset() + frag.len();
                frag.set_range(range);
                left = 0;
                break;
            }
            left -= frag.len();
            spent += 1;
            shell.truesize -= frag.frame_size() as u32;
        }
        data.frags.remove_front(spent);
        while left > 0 {
            let Some(first) = data.chain.oldest() else { break };
            if left < first.len() {
                let before = first.truesize();
                left -= first.pull(left);
                shell.truesize -= before - first.truesize();
                debug_assert_eq!(left, 0, "its data was parted from its clones");
                break;
            } else if let Some(gone) = data.chain.pop_oldest() {
                left -= gone.len();
                shell.truesize -= gone.truesize();
            }
        }
        shell.has_frags = data.frags.n > 0;
        shell.has_chain = data.chain.count() > 0;
        shell.len -= (n - left) as u32;
        n - left
    }

    /// Parts what a cut behind the first `n` bytes of fragments and chained packets writes to from
    /// its clones: then the cut needs no memory.
    ///
    /// # Errors
    /// [`NoRoom`] where no memory is left; no byte has changed then.
    pub(crate) fn part_front(&mut self, n: usize) -> Result<(), NoRoom> {
        self.unshare_data()?;
        let Some(data) = self.shell_mut().data.sole() else { return Err(NoRoom) };
        let mut left = n.saturating_sub(data.frags.iter().map(FrameSlice::len).sum());
        let mut next = if left > 0 { data.chain.oldest() } else { None };
        while let Some(skb) = next {
            if left < skb.len() {
                return skb.unshare_data();
            }
            left -= skb.len();
            next = skb.shell_mut().next.as_mut();
        }
        Ok(())
    }

    /// The same for a cut of the last `n` bytes.
    fn part_back(&mut self, n: usize) -> Result<(), NoRoom> {
        self.unshare_data()?;
        let Some(data) = self.shell_mut().data.sole() else { return Err(NoRoom) };
        let mut left = n;
        let mut next = data.chain.newest();
        while let Some(skb) = next {
            if left < skb.len() {
                return skb.unshare_data();
            }
            left -= skb.len();
            next = skb.shell_mut().next.as_mut();
        }
        Ok(())
    }

    /// Removes `n` bytes from the back of the fragments and chained packets, which hold that many.
    pub(crate) fn trim_frags(&mut self, n: usize) -> Result<(), NoRoom> {
        self.part_back(n)?;
        let shell = self.shell_mut();
        let Some(data) = shell.data.sole() else { return Err(NoRoom) };
        let mut left = n;
        while left > 0 {
            let Some(newest) = data.chain.newest() else { break };
            if left < newest.len() {
                let (keep, before) = (newest.len() - left, newest.truesize());
                newest.trim(keep)?;
                shell.truesize -= before - newest.truesize();
                left = 0;
            } else if let Some(gone) = data.chain.pop_newest() {
                left -= gone.len();
                shell.truesize -= gone.truesize();
            }
        }
        while left > 0 {
            let Some(mut frag) = data.frags.pop() else { break };
            if left < frag.len() {
                frag.set_range(frag.offset()..frag.offset() + frag.len() - left);
                left = 0;
                let pushed = data.frags.push(frag);
                debug_assert!(pushed.is_ok(), "it was just popped");
            } else {
                left -= frag.len();
                shell.truesize -= frag.frame_size() as u32;
            }
        }
        shell.has_frags = data.frags.n > 0;
        shell.has_chain = data.chain.count() > 0;
        shell.len -= (n - left) as u32;
        Ok(())
    }

    /// Moves the linear bytes to a small head of this skb's own, with room for `need` linear bytes.
    /// Bytes of a frame that do not have to move stay behind as the first fragment.
    pub(crate) fn rebuild_head(&mut self, need: usize) -> Result<(), NoRoom> {
        let small_start = usize::from(SMALL_START);
        if need > HEAD_SIZE - small_start {
            return Err(NoRoom);
        }
        self.unshare_data()?;
        let shell = self.shell_mut();
        let Range { start, end } = shell.range();
        let Some(data) = shell.data.sole() else { return Err(NoRoom) };
        let Some(mut frame) = shell.head.take() else {
            // A small head of our own: what lacks is room at its back, so the bytes move up.
            copy_within(&mut data.small, start..end, small_start);
            shell.start = SMALL_START;
            return Ok(());
        };
        let moved = need.min(end - start);
        let rest = start + moved..end;
        if !rest.is_empty() && data.frags.is_full() {
            shell.head = Some(frame);
            return Err(NoRoom);
        }
        copy(&mut data.small[small_start..], &frame.bytes()[start..start + moved]);
        shell.start = SMALL_START;
        shell.linear = moved as u16;
        if rest.is_empty() {
            shell.truesize -= frame.frame_size() as u32;
        } else {
            frame.set_range(rest);
            data.frags.push_front(frame);
            shell.has_frags = true;
        }
        Ok(())
    }

    /// Takes the frame that the linear bytes stand in, cut to the bytes behind the first `skip`.
    pub(crate) fn steal_head(&mut self, skip: usize) -> Option<FrameSlice> {
        let shell = self.shell_mut();
        let mut frame = shell.head.take()?;
        let Range { start, end } = shell.range();
        frame.set_range(start + skip..end);
        shell.len -= u32::from(mem::take(&mut shell.linear));
        shell.truesize -= frame.frame_size() as u32;
        Some(frame)
    }
}

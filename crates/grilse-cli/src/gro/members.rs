//! Which input frames a packet stands for.

use std::collections::HashMap;

/// The members of each packet that GRO holds, by the number of its first.
#[derive(Debug, Default)]
pub(super) struct Members {
    heads: HashMap<u64, Vec<u64>>,
    /// Lists to use again.
    spare: Vec<Vec<u64>>,
}

impl Members {
    /// Frame `packet` has joined the packet that began with frame `head`.
    pub(super) fn join(&mut self, head: u64, packet: u64) {
        let members = self.heads.entry(head).or_insert_with(|| {
            let mut members = self.spare.pop().unwrap_or_default();
            members.push(head);
            members
        });
        members.push(packet);
    }

    /// The members of the packet that began with frame `head`, in order.
    pub(super) fn take(&mut self, head: u64) -> Vec<u64> {
        self.heads.remove(&head).unwrap_or_else(|| {
            let mut members = self.spare.pop().unwrap_or_default();
            members.push(head);
            members
        })
    }

    /// Takes back a list that is done with.
    pub(super) fn give(&mut self, mut members: Vec<u64>) {
        members.clear();
        self.spare.push(members);
    }
}

//! The frag list: packets chained behind a head.
//!
//! GRO appends to the list, and adds fragments to its newest packet, thousands of times if the
//! segments are small; so the list is kept newest first while it grows, and turned over, once, when
//! it is read. Either order yields the packets oldest first: turned over, by following the links;
//! before that, by counting from the newest, which is right but slow for long lists.

use crate::Skb;

/// Packets chained behind a head, each without a chain of its own.
#[derive(Debug, Default)]
pub(crate) struct Chain {
    first: Option<Skb>,
    count: u32,
    /// The first is the oldest.
    turned: bool,
}

impl Chain {
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Appends a packet.
    pub(crate) fn push(&mut self, mut skb: Skb) {
        if self.turned {
            self.turn();
        }
        skb.shell_mut().next = self.first.take();
        self.first = Some(skb);
        self.count += 1;
    }

    /// The packet appended last.
    pub(crate) fn newest(&mut self) -> Option<&mut Skb> {
        if self.turned {
            self.turn();
        }
        self.first.as_mut()
    }

    /// Removes the oldest packet.
    pub(crate) fn pop_oldest(&mut self) -> Option<Skb> {
        self.settle();
        let mut skb = self.first.take()?;
        self.first = skb.shell_mut().next.take();
        self.count -= 1;
        Some(skb)
    }

    /// Removes the newest packet.
    pub(crate) fn pop_newest(&mut self) -> Option<Skb> {
        if self.turned {
            self.turn();
        }
        let mut skb = self.first.take()?;
        self.first = skb.shell_mut().next.take();
        self.count -= 1;
        Some(skb)
    }

    /// The oldest packet.
    pub(crate) fn oldest(&mut self) -> Option<&mut Skb> {
        self.settle();
        self.first.as_mut()
    }

    /// Readies the list for reading from the oldest on.
    pub(crate) fn settle(&mut self) {
        if !self.turned && self.count > 1 {
            self.turn();
        }
    }

    /// The packets, oldest first.
    pub(crate) fn iter(&self) -> Packets<'_> {
        Packets { chain: self, at: 0, next: self.first.as_ref() }
    }

    /// Visits the packets, in either order.
    pub(crate) fn for_each_mut(&mut self, mut visit: impl FnMut(&mut Skb)) {
        let mut next = self.first.as_mut();
        while let Some(skb) = next {
            visit(skb);
            next = skb.shell_mut().next.as_mut();
        }
    }

    pub(crate) fn clear(&mut self) {
        // One by one: a long list must not become deep recursion.
        let mut next = self.first.take();
        while let Some(mut skb) = next {
            next = skb.shell_mut().next.take();
        }
        *self = Self::default();
    }

    fn turn(&mut self) {
        let mut turned = None;
        let mut next = self.first.take();
        while let Some(mut skb) = next {
            next = std::mem::replace(&mut skb.shell_mut().next, turned);
            turned = Some(skb);
        }
        self.first = turned;
        self.turned = !self.turned;
    }
}

/// The packets of a chain, oldest first.
#[derive(Clone, Debug)]
pub(crate) struct Packets<'a> {
    chain: &'a Chain,
    at: u32,
    next: Option<&'a Skb>,
}

impl<'a> Iterator for Packets<'a> {
    type Item = &'a Skb;

    fn next(&mut self) -> Option<&'a Skb> {
        if self.at == self.chain.count {
            return None;
        }
        let link = |skb: &'a Skb| skb.shell().next.as_ref();
        let here = if self.chain.turned {
            self.next
        } else {
            let from_newest = self.chain.count - 1 - self.at;
            (0..from_newest).fold(self.chain.first.as_ref(), |skb, _| skb.and_then(link))
        };
        self.next = here.and_then(link);
        self.at += 1;
        here
    }
}

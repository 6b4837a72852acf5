//! A burst of packets, in order.

use crate::Skb;

/// Up to [`CAPACITY`](Batch::CAPACITY) packets that travel together; holds them in place.
#[derive(Debug)]
pub struct Batch {
    /// Packets stand in `items[head..tail]`.
    head: usize,
    tail: usize,
    items: [Option<Skb>; Batch::CAPACITY],
}

impl Batch {
    /// The NAPI weight: most packets that one poll of a device yields.
    pub const CAPACITY: usize = 64;

    /// An empty batch.
    pub fn new() -> Self {
        Self { head: 0, tail: 0, items: [const { None }; Self::CAPACITY] }
    }

    /// How many packets it holds.
    pub fn len(&self) -> usize {
        self.tail - self.head
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    /// How many more it takes.
    pub fn room(&self) -> usize {
        Self::CAPACITY - self.len()
    }

    /// The packets, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Skb> {
        self.items[self.head..self.tail].iter().flatten()
    }

    /// The packets, in order, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Skb> {
        self.items[self.head..self.tail].iter_mut().flatten()
    }

    /// Appends a packet.
    ///
    /// # Errors
    /// The packet, where the batch is full.
    #[inline]
    pub fn push(&mut self, skb: Skb) -> Result<(), Skb> {
        if self.tail == Self::CAPACITY {
            self.move_up();
        }
        let Some(place) = self.items.get_mut(self.tail) else { return Err(skb) };
        *place = Some(skb);
        self.tail += 1;
        Ok(())
    }

    /// Makes the room at the front room at the back.
    #[cold]
    #[inline(never)]
    fn move_up(&mut self) {
        self.items.rotate_left(self.head);
        self.tail -= self.head;
        self.head = 0;
    }

    /// Takes the first packet.
    #[inline]
    pub fn pop(&mut self) -> Option<Skb> {
        if self.is_empty() {
            return None;
        }
        let skb = self.items[self.head].take();
        self.head += 1;
        if self.is_empty() {
            (self.head, self.tail) = (0, 0);
        }
        skb
    }

    /// Puts a packet that was popped back to the front.
    ///
    /// # Errors
    /// The packet, where the batch is full.
    pub fn unpop(&mut self, skb: Skb) -> Result<(), Skb> {
        if self.room() == 0 {
            return Err(skb);
        }
        if self.head == 0 {
            self.items[..=self.tail].rotate_right(1);
            self.tail += 1;
        } else {
            self.head -= 1;
        }
        self.items[self.head] = Some(skb);
        Ok(())
    }
}

impl Default for Batch {
    fn default() -> Self {
        Self::new()
    }
}

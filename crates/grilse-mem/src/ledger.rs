//! The ledger: how many objects of a class are where.

use crate::arena::Recycle;
use crate::depot::Depot;
use crate::home::Home;

/// Where the objects of one class are. `made` is the sum of the rest; exact when every owner has
/// published and nothing is under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Objects that exist.
    pub made: u32,
    /// In the depot, or in a slab that stands before it.
    pub depot: u32,
    /// In the caches of those who allocate.
    pub cached: u32,
    /// Gathered for others, or posted home and not yet collected.
    pub travelling: u32,
    /// All others: held by packets, rings, sockets.
    pub in_use: u32,
}

impl Ledger {
    /// Counts a class, on all nodes of the memory that the depot is of, whose objects may be at these
    /// homes.
    pub fn count<'a, T: Recycle>(
        depot: &Depot<T>,
        homes: impl IntoIterator<Item = &'a Home<T>>,
    ) -> Self {
        let (mut cached, mut travelling, mut in_slabs) = (0, 0, 0);
        for home in homes {
            cached += home.cached();
            travelling += home.outgoing() + home.waiting();
            in_slabs += home.in_slab();
        }
        let (mut made, mut stocked) = (0, in_slabs);
        for depot in depot.all() {
            made += depot.made();
            stocked += depot.stocked();
        }
        let elsewhere = stocked + cached + travelling;
        Self { made, depot: stocked, cached, travelling, in_use: made.saturating_sub(elsewhere) }
    }
}

//! The memory that skbs are made of, and the seats at which threads work with it.

use std::fmt;
use std::sync::{Mutex, MutexGuard};
use std::thread;

use grilse_mem::{
    BadPolicy, Counted, Depot, Home, Ledger, MapError, Node, Nodes, Numa, Places, Policy, Role,
    Switch,
};

use crate::shell::{Data, Shell};

/// Shells and data for a number of skbs, shared by all workers of an engine, and the policy that
/// they are handled by. Lasts as long as the process.
#[derive(Debug)]
pub struct Memory {
    nodes: Nodes,
    /// One for each node.
    shells: &'static [Depot<Shell>],
    pub(crate) data: &'static [Depot<Counted<Data>>],
    pub(crate) switch: Switch,
    rooms: Mutex<Rooms>,
}

/// All homes there are, and what became of those who lived there.
#[derive(Debug, Default)]
struct Rooms {
    homes: Vec<Homes>,
    unwound: u32,
}

/// Most seats at a time: homes are numbered by 16 bits.
const SEATS: usize = 1 << 16;

/// The homes of one seat.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Homes {
    pub(crate) shells: &'static Home<Shell>,
    pub(crate) data: &'static Home<Counted<Data>>,
    taken: bool,
}

/// The right to work with a memory from one thread: made anywhere, sat down at
/// ([`Ctx::new`](crate::Ctx::new)) on the thread that will use it.
#[derive(Debug)]
#[must_use]
pub struct Seat {
    pub(crate) memory: &'static Memory,
    node: Node,
    /// `None`: no number was left for them.
    homes: Option<Homes>,
}

impl Seat {
    /// The node that it is on.
    pub fn node(&self) -> Node {
        self.node
    }

    pub(crate) fn homes(&self) -> Result<Homes, NoSeat> {
        self.homes.ok_or(NoSeat::Homes)
    }
}

impl Drop for Seat {
    /// A seat that stands empty is given to the next who asks: homes are never freed.
    fn drop(&mut self) {
        let Some(homes) = self.homes else { return };
        let mut rooms = self.memory.rooms();
        rooms.homes[usize::from(homes.shells.id())].taken = false;
        rooms.unwound += u32::from(thread::panicking());
    }
}

/// Why a thread could not sit down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoSeat {
    /// All magazines are under way or with others.
    Magazines,
    /// The memory has as many seats as homes can be numbered.
    Homes,
}

impl fmt::Display for NoSeat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Magazines => f.write_str("no magazines left for another context: stop one first"),
            Self::Homes => write!(f, "all {SEATS} seats of this memory are taken: stop one first"),
        }
    }
}

impl std::error::Error for NoSeat {}

/// Where the objects of a [`Memory`] are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ledgers {
    /// The metadata blocks: one for each skb.
    pub shells: Ledger,
    /// Small heads and shared info, those apart from their shells: what clones left behind. The
    /// data of a shell that is not in use counts as in use here.
    pub data: Ledger,
    /// Shells that came home, so far, after the context that took them was gone: they went to the
    /// depot, and are no loss.
    pub orphans: u32,
    /// Contexts, so far, that ended because their thread panicked. What they cached is in the depot.
    pub unwound: u32,
}

/// Where the shells of one node's share are; the rest of those made is cached, travelling or in use,
/// on whichever node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeLedger {
    /// The node.
    pub node: Node,
    /// Shells that there can be.
    pub capacity: u32,
    /// Shells that exist.
    pub made: u32,
    /// Shells in the node's depot, or in slabs that all its threads can reach.
    pub depot: u32,
}

/// Why a memory could not be made.
#[derive(Debug)]
pub enum MemoryError {
    /// A number of `numa.mode` is out of range.
    Numa(BadPolicy),
    /// No memory.
    Map(MapError),
}

impl fmt::Display for MemoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Numa(source) => source.fmt(f),
            Self::Map(_) => f.write_str("no memory for packets"),
        }
    }
}

impl std::error::Error for MemoryError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Numa(_) => None,
            Self::Map(source) => Some(source),
        }
    }
}

/// The memory has no such node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoNode(pub Node);

impl fmt::Display for NoNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the memory has no node {}", self.0.0)
    }
}

impl std::error::Error for NoNode {}

impl Memory {
    /// Memory for `skbs` packets, on `node` where one is given. Pages are touched as they are first
    /// needed.
    ///
    /// # Errors
    /// As [`MapError`] tells.
    pub fn new(skbs: u32, node: Option<Node>) -> Result<&'static Self, MapError> {
        Self::lay_out(skbs, Nodes::one(node))
    }

    /// The same on the nodes that `numa` names, each with an equal share. A seat takes what its node
    /// has, and of other nodes only when that is nothing.
    ///
    /// # Errors
    /// As [`MemoryError`] tells; a number that is out of range is refused before anything is mapped.
    pub fn with_nodes(skbs: u32, numa: Numa) -> Result<&'static Self, MemoryError> {
        let nodes = numa.nodes().map_err(MemoryError::Numa)?;
        Self::lay_out(skbs, nodes).map_err(MemoryError::Map)
    }

    fn lay_out(skbs: u32, nodes: Nodes) -> Result<&'static Self, MapError> {
        // Clones leave shells without data, and data that waits in the caches of those who cloned:
        // up to two magazines each. Half as much again keeps all others from starving as long as
        // there are 240 skbs for each context; pages that are never needed are never touched.
        let data = skbs.saturating_add(skbs / 2).saturating_add(4 * 64);
        Ok(Box::leak(Box::new(Self {
            shells: Depot::for_nodes(skbs, &nodes, Shell::fresh)?,
            data: Depot::for_nodes(data, &nodes, Data::fresh)?,
            nodes,
            switch: Switch::new(),
            rooms: Mutex::default(),
        })))
    }

    /// A seat that nobody has. Its number counts from 0. It is on the node of the processor that
    /// this is called on, and where nodes are virtual on the one that fewest are on:
    /// [`seat_on`](Self::seat_on) names it. Where no number is left for one, [`Ctx::new`] says so.
    ///
    /// [`Ctx::new`]: crate::Ctx::new
    pub fn seat(&'static self, role: Role) -> Seat {
        let mut rooms = self.rooms();
        let homes = &mut rooms.homes;
        let seats_on = |position: &usize| {
            let depot = &self.shells[*position];
            let is_on = |seat: &&Homes| seat.taken && std::ptr::eq(seat.shells.depot(), depot);
            homes.iter().filter(is_on).count()
        };
        let fewest = || (0..self.shells.len()).min_by_key(seats_on).unwrap_or(0);
        let position = self.nodes.here().unwrap_or_else(fewest);
        self.seat_at(homes, role, position)
    }

    /// A seat on this node that nobody has.
    ///
    /// # Errors
    /// [`NoNode`] where the memory has no share on it.
    pub fn seat_on(&'static self, role: Role, node: Node) -> Result<Seat, NoNode> {
        let position = self.nodes.position(node).ok_or(NoNode(node))?;
        Ok(self.seat_at(&mut self.rooms().homes, role, position))
    }

    fn seat_at(&'static self, homes: &mut Vec<Homes>, role: Role, position: usize) -> Seat {
        let (shells, data) = (&self.shells[position], &self.data[position]);
        let is_free = |homes: &&mut Homes| {
            let home = homes.shells;
            !homes.taken && home.role() == role && std::ptr::eq(home.depot(), shells)
        };
        let node = shells.node();
        if let Some(free) = homes.iter_mut().find(is_free) {
            free.taken = true;
            return Seat { memory: self, node, homes: Some(*free) };
        }
        let new = u16::try_from(homes.len()).ok().map(|id| {
            let shells = Home::new(role, id, shells);
            Homes { shells, data: shells.beside(data), taken: true }
        });
        homes.extend(new);
        Seat { memory: self, node, homes: new }
    }

    /// The nodes that it has a share on.
    pub fn nodes(&self) -> &[Node] {
        self.nodes.all()
    }

    /// Puts a policy in force: for each context with the round that it begins next.
    ///
    /// # Errors
    /// Where a knob is out of range; then nothing changes.
    pub fn set_policy(&self, policy: Policy) -> Result<(), BadPolicy> {
        self.switch.set(policy)
    }

    /// Where the objects are; exact when all contexts have ended their rounds and nothing is under
    /// way.
    pub fn ledgers(&self) -> Ledgers {
        let rooms = self.rooms();
        let shells = || rooms.homes.iter().map(|homes| homes.shells);
        Ledgers {
            shells: Ledger::count(&self.shells[0], shells()),
            data: Ledger::count(&self.data[0], rooms.homes.iter().map(|homes| homes.data)),
            orphans: shells().map(Home::orphans).fold(0, u32::wrapping_add),
            unwound: rooms.unwound,
        }
    }

    /// The same for each node's share of the shells, by their addresses.
    pub fn node_ledgers(&self) -> impl Iterator<Item = NodeLedger> {
        self.shells.iter().map(|depot| NodeLedger {
            node: depot.node(),
            capacity: depot.capacity(),
            made: depot.made(),
            depot: depot.stocked(),
        })
    }

    /// Where the shells are by the bytes that they carry, in builds with feature `audit`: an
    /// independent count of the same.
    pub fn places(&self) -> Places {
        self.shells.iter().map(Depot::places).sum()
    }

    /// How many skbs there can be.
    pub fn capacity(&self) -> u32 {
        self.shells.iter().map(Depot::capacity).sum()
    }

    fn rooms(&self) -> MutexGuard<'_, Rooms> {
        // What the lock guards is whole at every step, also where somebody panicked with it.
        self.rooms.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ctx;

    /// One more than can be numbered is refused, and changes nothing; a home that stands empty makes
    /// room, whatever its number.
    #[test]
    fn more_seats_than_homes_can_be_numbered() {
        let memory = Memory::new(64, None).unwrap();
        let first = memory.seat(Role::Worker);
        let homes = first.homes().unwrap();
        // As if so many were taken: that they are one home is of no matter here.
        memory.rooms().homes.resize(SEATS, homes);
        let refused = Ctx::new(memory.seat(Role::Worker)).unwrap_err();
        assert_eq!(refused, NoSeat::Homes);
        let said = "all 65536 seats of this memory are taken: stop one first";
        assert_eq!(refused.to_string(), said);
        assert_eq!(memory.rooms().homes.len(), SEATS);
        drop(first);
        assert!(Ctx::new(memory.seat(Role::Foreign)).is_err(), "a worker's is no foreign thread's");
        assert!(Ctx::new(memory.seat(Role::Worker)).is_ok());
    }
}

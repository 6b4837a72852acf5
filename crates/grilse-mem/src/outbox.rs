//! The outbox: what a thread frees for others, gathered into one magazine for each home.

use crate::arena::{Recycle, Slot};
use crate::course::Course;
use crate::home::Home;
use crate::magazine::Magazine;

/// One open magazine for each home that something is going to.
#[derive(Debug)]
pub(crate) struct Outbox<T: Recycle> {
    /// By the home's number.
    lanes: Vec<Option<Lane<T>>>,
    /// Numbers of the lanes whose magazine holds something.
    open: Vec<u16>,
}

/// What goes to one home.
#[derive(Debug)]
pub(crate) struct Lane<T: Recycle> {
    pub(crate) home: &'static Home<T>,
    magazine: Option<Slot<Magazine<T>>>,
    pub(crate) course: Course,
}

impl<T: Recycle> Outbox<T> {
    pub(crate) fn new() -> Self {
        Self { lanes: Vec::new(), open: Vec::new() }
    }

    /// Puts an object for `home`, into a magazine that `empty` brings where none is open. Returns
    /// how many are gathered for that home, or gives the object back where there is no magazine.
    #[inline]
    pub(crate) fn push(
        &mut self,
        home: &'static Home<T>,
        slot: Slot<T>,
        empty: impl FnOnce() -> Option<Slot<Magazine<T>>>,
    ) -> Result<usize, Slot<T>> {
        let Some(magazine) = self.open(home, empty) else { return Err(slot) };
        magazine.push(slot)?;
        Ok(magazine.len())
    }

    /// Puts as many from the back of `from`, all of whose places are filled, as the magazine has
    /// room for. Returns how many those were, and how many are gathered for that home.
    #[inline]
    pub(crate) fn push_from<U>(
        &mut self,
        home: &'static Home<T>,
        from: &mut [Option<U>],
        each: impl FnMut(U) -> Slot<T>,
        empty: impl FnOnce() -> Option<Slot<Magazine<T>>>,
    ) -> (usize, usize) {
        let Some(magazine) = self.open(home, empty) else { return (0, 0) };
        let done = magazine.push_from(from, each);
        (done, magazine.len())
    }

    /// The open magazine for `home`.
    #[inline]
    fn open(
        &mut self,
        home: &'static Home<T>,
        empty: impl FnOnce() -> Option<Slot<Magazine<T>>>,
    ) -> Option<&mut Slot<Magazine<T>>> {
        let id = usize::from(home.id());
        if id >= self.lanes.len() {
            self.grow(id);
        }
        let lane = self.lanes[id].get_or_insert_with(|| Lane {
            home,
            magazine: None,
            course: Course::new(),
        });
        if lane.magazine.is_none() {
            lane.magazine = empty();
            if lane.magazine.is_some() {
                self.open.push(home.id());
            }
        }
        lane.magazine.as_mut()
    }

    /// The lane of a home, and its magazine, which is closed.
    pub(crate) fn close(&mut self, id: u16) -> Option<(&mut Lane<T>, Slot<Magazine<T>>)> {
        self.open.retain(|open| *open != id);
        let lane = self.lanes.get_mut(usize::from(id))?.as_mut()?;
        let magazine = lane.magazine.take()?;
        Some((lane, magazine))
    }

    /// A home that something is gathered for.
    pub(crate) fn any_open(&self) -> Option<u16> {
        self.open.last().copied()
    }

    /// How many objects are gathered.
    pub(crate) fn len(&self) -> usize {
        let lanes = self.open.iter().filter_map(|id| self.lanes[usize::from(*id)].as_ref());
        lanes.filter_map(|lane| lane.magazine.as_ref()).map(|magazine| magazine.len()).sum()
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, id: usize) {
        self.lanes.resize_with((id + 1).next_power_of_two(), || None);
    }
}

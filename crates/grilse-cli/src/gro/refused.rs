//! Frames that no device would take.

use std::cell::RefCell;
use std::rc::Rc;

use grilse::{DropHook, DropReason};

/// Frames that no device would take: number and length.
#[derive(Clone, Debug, Default)]
pub(super) struct Refused(Rc<RefCell<Vec<(u64, usize)>>>);

impl Refused {
    /// A drop hook that keeps them.
    pub(super) fn hook(&self) -> DropHook {
        let list = Rc::clone(&self.0);
        Box::new(move |meta, len, reason| {
            if reason == DropReason::LinkTruncated {
                list.borrow_mut().push((meta.seq, len));
            }
        })
    }

    /// How many are kept.
    pub(super) fn len(&self) -> usize {
        self.0.borrow().len()
    }

    /// Takes those that are kept.
    pub(super) fn take(&self) -> Vec<(u64, usize)> {
        self.0.take()
    }
}

//! Reasons that were found for classes, kept for as long as nothing changes.

use crate::batch::sched::place::Reasons;
use crate::model::idmap::IdMap;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Hosts in the reasons that are kept for the next job of the same class.
pub(super) const MAX_KEPT_HOSTS: usize = 4 << 20;

/// Reasons of classes, for as long as nothing changes.
#[derive(Debug, Default)]
pub(super) struct Explained {
    pub(super) kept: RefCell<Kept>,
    /// Looks at hosts so far.
    pub(super) looks: Cell<usize>,
}

impl Explained {
    /// Counts looks at hosts.
    pub(super) fn add(&self, looks: usize) {
        self.looks.set(self.looks.get().saturating_add(looks));
    }
}

#[derive(Debug, Default)]
pub(super) struct Kept {
    /// `Sched::changes` and the instant that they were found at.
    pub(super) at: (u64, u64),
    pub(super) of: IdMap<u32, Rc<Reasons>>,
    pub(super) hosts: usize,
}

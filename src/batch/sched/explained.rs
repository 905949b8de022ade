//! Reasons that were found for classes, kept for as long as nothing changes.

use crate::batch::sched::place::Reasons;
use crate::batch::state::names::HostId;
use crate::model::idmap::IdMap;
use crate::model::reason::PendReason;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Hosts in the reasons that are kept for the next job of the same class.
pub(super) const MAX_KEPT_HOSTS: usize = 4 << 20;
/// How long what was found is kept while nothing changes, microseconds: a reason that time alone
/// makes untrue is told so much longer.
pub(super) const KEPT_FOR: u64 = 100_000;

/// Reasons of classes, for as long as nothing changes.
#[derive(Debug, Default)]
pub(super) struct Explained {
    pub(super) kept: RefCell<Kept>,
    pub(super) closed: RefCell<ClosedHosts>,
    /// Looks at hosts so far.
    pub(super) looks: Cell<usize>,
}

impl Explained {
    /// Counts looks at hosts.
    pub(super) fn add(&self, looks: usize) {
        self.looks.set(self.looks.get().saturating_add(looks));
    }
}

/// The hosts whose status keeps every job away, by reason, and the others. The classes of a full
/// cluster have them in common.
#[derive(Debug, Default)]
pub(super) struct ClosedHosts {
    /// Counted as in [`Kept`].
    pub(super) at: (u64, u64),
    pub(super) closed: HostsByReason,
    pub(super) open: Vec<HostId>,
}

/// Hosts by the reason for which they do not do. Neighbours mostly have the same one: of 10,000
/// hosts nearly none costs a search.
#[derive(Clone, Debug, Default)]
pub(super) struct HostsByReason {
    all: Reasons,
    last: usize,
}

impl HostsByReason {
    /// The hosts of a reason.
    pub(super) fn of(&mut self, why: PendReason) -> &mut Vec<HostId> {
        if self.all.get(self.last).is_none_or(|last| last.0 != why) {
            let known = self.all.iter().position(|of| of.0 == why);
            self.last = known.unwrap_or(self.all.len());
            if known.is_none() {
                self.all.push((why, Vec::new()));
            }
        }
        &mut self.all[self.last].1
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// All of them, in the order of the reasons, and for each in that of the hosts.
    pub(super) fn into_reasons(mut self) -> Reasons {
        self.all.sort_unstable_by_key(|of| of.0);
        let unsorted = self.all.iter_mut().filter(|of| !of.1.is_sorted());
        unsorted.for_each(|of| of.1.sort_unstable());
        self.all
    }
}

#[derive(Debug, Default)]
pub(super) struct Kept {
    /// `Sched::changes` and the instant that they were found at, in units of [`KEPT_FOR`].
    pub(super) at: (u64, u64),
    pub(super) of: IdMap<u32, Rc<Reasons>>,
    pub(super) hosts: usize,
}

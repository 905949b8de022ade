//! The amounts that preempted elements hold of the resources that preemption makes free
//! (PREEMPTABLE_RESOURCES of lsb.params(5)), added up where they are held: in a row of the ledger.
//!
//! Invariant: an element takes away exactly what it has added. Amounts are in the parts of the
//! ledger.

use crate::batch::state::names::{HostId, QueueId, ResourceId};
use crate::model::JobRef;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

/// An amount of a resource that an element holds in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    pub row: usize,
    /// A host of the element that the row is about.
    pub host: HostId,
    pub resource: ResourceId,
    pub all: i128,
    /// The part that the measured value does not show.
    pub unseen: i128,
}

/// A preempted element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreemptedBy {
    /// The queue of the element.
    pub queue: QueueId,
    /// The host has told that the element is suspended.
    pub told: bool,
}

#[derive(Debug)]
struct Element {
    of: PreemptedBy,
    held: Vec<Held>,
}

/// The sums of one resource in one row.
#[derive(Debug, Default)]
struct Sums {
    elements: usize,
    /// Held by all preempted elements, without what the measured value shows.
    unseen: i128,
    /// Held by those that are suspended, by queue.
    told: BTreeMap<QueueId, i128>,
}

/// The amounts that preempted elements hold, and those that a plan supposes to be free besides.
#[derive(Debug, Default)]
pub struct Vacated {
    elements: BTreeMap<JobRef, Element>,
    sums: BTreeMap<(usize, ResourceId), Sums>,
    supposed: RefCell<BTreeMap<(usize, ResourceId), i128>>,
    all_supposed: Cell<bool>,
}

impl Vacated {
    /// Is nothing vacated, and nothing supposed?
    pub fn is_empty(&self) -> bool {
        self.elements.is_empty() && !self.all_supposed.get() && self.supposed.borrow().is_empty()
    }

    /// The preemption of an element.
    pub fn of(&self, at: JobRef) -> Option<PreemptedBy> {
        self.elements.get(&at).map(|element| element.of)
    }

    /// An element is preempted and holds this, or is not; gives the rows in which sums changed.
    pub fn set(&mut self, at: JobRef, of: Option<PreemptedBy>, held: Vec<Held>) -> Vec<usize> {
        let same = |old: &Element| Some(old.of) == of && old.held == held;
        if self.elements.get(&at).is_some_and(same)
            || of.is_none() && !self.elements.contains_key(&at)
        {
            return Vec::new();
        }
        let mut rows: Vec<usize> = Vec::new();
        if let Some(old) = self.elements.remove(&at) {
            rows.extend(old.held.iter().map(|held| held.row));
            old.held.iter().for_each(|held| self.add(old.of, held, false));
        }
        if let Some(of) = of {
            rows.extend(held.iter().map(|held| held.row));
            held.iter().for_each(|held| self.add(of, held, true));
            self.elements.insert(at, Element { of, held });
        }
        rows.sort_unstable();
        rows.dedup();
        rows
    }

    fn add(&mut self, of: PreemptedBy, held: &Held, adds: bool) {
        let sums = self.sums.entry((held.row, held.resource)).or_default();
        let sign = if adds { 1 } else { -1 };
        sums.unseen += sign * held.unseen;
        if of.told {
            let told = sums.told.entry(of.queue).or_default();
            *told += sign * held.all;
            if *told == 0 {
                sums.told.remove(&of.queue);
            }
        }
        sums.elements = if adds { sums.elements + 1 } else { sums.elements.saturating_sub(1) };
        if sums.elements == 0 {
            self.sums.remove(&(held.row, held.resource));
        }
    }

    /// Held by all preempted elements, suspended or about to be, without what the measured value
    /// shows.
    pub fn unseen(&self, row: usize, resource: ResourceId) -> i128 {
        self.sums.get(&(row, resource)).map_or(0, |sums| sums.unseen)
    }

    /// Held by suspended elements of these queues.
    pub fn told(&self, row: usize, resource: ResourceId, queues: &[QueueId]) -> i128 {
        let Some(sums) = self.sums.get(&(row, resource)) else { return 0 };
        let of = |(queue, amount): (&QueueId, &i128)| queues.contains(queue).then_some(*amount);
        sums.told.iter().filter_map(of).sum()
    }

    /// This amount more is supposed to be free; below 0: less.
    pub fn suppose(&self, row: usize, resource: ResourceId, amount: i128) {
        let mut all = self.supposed.borrow_mut();
        let sum = all.entry((row, resource)).or_default();
        *sum += amount;
        if *sum == 0 {
            all.remove(&(row, resource));
        }
    }

    /// Any amount is supposed to be free, or not any more.
    pub fn suppose_all(&self, all: bool) {
        self.all_supposed.set(all);
    }

    /// Nothing is supposed any more.
    pub fn suppose_nothing(&self) {
        self.supposed.borrow_mut().clear();
        self.all_supposed.set(false);
    }

    /// Is any amount supposed to be free?
    pub fn is_all_supposed(&self) -> bool {
        self.all_supposed.get()
    }

    /// The amount that is supposed to be free.
    pub fn supposed(&self, row: usize, resource: ResourceId) -> i128 {
        self.supposed.borrow().get(&(row, resource)).copied().unwrap_or(0)
    }
}

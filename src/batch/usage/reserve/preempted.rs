//! Resources that preempted elements give back to the queues that preempt them, and take again when
//! they go on (PREEMPTABLE_RESOURCES of lsb.params(5)).
//!
//! To all other queues they stay reserved. A reservation with a duration is not given back so.

use crate::batch::site::reservation_methods::ReservationMethod;
use crate::batch::state::names::{HostId, Id, QueueId, ResourceId};
use crate::batch::usage::reserve::holder::{Holder, PARTS, Term, amounts, used_mb};
use crate::batch::usage::reserve::ledger::Reserve;
use crate::batch::usage::reserve::vacated::{Held, PreemptedBy};
use crate::model::JobRef;

impl Reserve {
    /// The row of a resource on a host: that of the host, or of the instance that it shares.
    pub(crate) fn row(&self, host: HostId, resource: ResourceId) -> usize {
        self.instance(host, resource).unwrap_or(host.index())
    }

    /// The preemptable resources that a started element reserves while it runs.
    pub(crate) fn held(&self, at: JobRef) -> Vec<Held> {
        let Some(holder) = self.holder(at) else { return Vec::new() };
        let terms = holder.requirement.terms.iter().filter(|term| term.preemptable);
        terms.flat_map(|term| self.held_by(holder, term)).collect()
    }

    /// Does a started element reserve some of a preemptable resource?
    pub(crate) fn holds(&self, at: JobRef, resource: ResourceId) -> bool {
        self.holder(at).is_some_and(|holder| {
            let mut terms = holder.requirement.terms.iter();
            terms.any(|term| term.preemptable && term.resource == resource)
        })
    }

    fn held_by(&self, holder: &Holder, term: &Term) -> Vec<Held> {
        let hosts = holder.hosts_of(term);
        let places = self.places(hosts, (term.resource, term.method), used_mb(holder, term));
        let held = |(row, times, used): (usize, u64, f64)| {
            let (all, unseen) = amounts(term.rusage.amount() * times as f64, used);
            let on_row = |host: &&(HostId, u32)| self.row(host.0, term.resource) == row;
            let host = hosts.iter().find(on_row)?.0;
            (all > 0).then_some(Held { row, host, resource: term.resource, all, unseen })
        };
        places.into_iter().filter_map(held).collect()
    }

    /// The rows in which tasks on these hosts reserve a resource, and how many times each.
    pub(crate) fn rows_of(
        &self,
        hosts: &[(HostId, u32)],
        (resource, method): (ResourceId, ReservationMethod),
    ) -> Vec<(usize, u64)> {
        let places = self.places(hosts, (resource, method), 0.0);
        places.into_iter().map(|(row, times, _)| (row, times)).collect()
    }

    /// An element is preempted, or is not; gives the rows in which others have more or less.
    pub(crate) fn set_preempted(&mut self, at: JobRef, of: Option<PreemptedBy>) -> Vec<usize> {
        let held = if of.is_some() { self.held(at) } else { Vec::new() };
        self.vacated.set(at, of, held)
    }

    /// The amounts of an element have changed.
    pub(in crate::batch::usage) fn amounts_changed(&mut self, at: JobRef) {
        if let Some(of) = self.vacated.of(at) {
            self.set_preempted(at, Some(of));
        }
    }

    /// The amount of a resource on a host that preemption has vacated for the queues that preempt
    /// these, with what a plan supposes.
    pub(crate) fn vacated_for(&self, host: HostId, id: ResourceId, queues: &[QueueId]) -> f64 {
        if self.vacated.is_all_supposed() {
            return f64::INFINITY;
        }
        let row = self.row(host, id);
        let parts = self.vacated.told(row, id, queues) + self.vacated.supposed(row, id);
        parts as f64 / PARTS
    }

    /// The part of the reserved amount that preempted elements hold, without what the measured
    /// value shows.
    pub(crate) fn vacated_unseen(&self, host: HostId, id: ResourceId) -> f64 {
        self.vacated.unseen(self.row(host, id), id) as f64 / PARTS
    }

    /// The amount by which the sums count an element that is not preempted, parts of the unit.
    pub(crate) fn counted(&self, at: JobRef, held: &Held) -> i128 {
        let listed = self.vacated.of(at).is_some();
        let given = self.holder(at).is_none_or(|holder| {
            let mut terms = holder.requirement.terms.iter();
            let of = |term: &&Term| term.resource == held.resource && term.preemptable;
            terms.find(of).is_none_or(|term| holder.gives_back(term))
        });
        if listed || given { 0 } else { held.unseen }
    }

    /// Is nothing vacated, and nothing supposed?
    pub(crate) fn vacates_nothing(&self) -> bool {
        self.vacated.is_empty()
    }

    /// The hosts that a row is about.
    pub(crate) fn hosts_of_row(&self, row: usize) -> Vec<HostId> {
        match self.sharing_hosts(row) {
            [] => vec![HostId::from_index(row)],
            hosts => hosts.to_vec(),
        }
    }
}

/// Suppositions of a plan about what is free, until this ends.
#[derive(Debug)]
pub(crate) struct Supposing<'a>(&'a Reserve);

impl<'a> Supposing<'a> {
    /// Begins with nothing supposed.
    pub fn new(reserve: &'a Reserve) -> Supposing<'a> {
        reserve.vacated.suppose_nothing();
        Supposing(reserve)
    }
    /// An amount is supposed to be free, or is not after all.
    pub fn suppose(&self, held: &Held, vacated: bool) {
        let amount = if vacated { held.all } else { -held.all };
        self.0.vacated.suppose(held.row, held.resource, amount);
    }
    /// The answer of `ask` where any amount is free.
    pub fn with_all<T>(&self, ask: impl FnOnce() -> T) -> T {
        self.0.vacated.suppose_all(true);
        let answer = ask();
        self.0.vacated.suppose_all(false);
        answer
    }
    /// The amount that is supposed to be free in a row.
    pub fn supposed(&self, row: usize, resource: ResourceId) -> f64 {
        self.0.vacated.supposed(row, resource) as f64 / PARTS
    }
}

impl Drop for Supposing<'_> {
    fn drop(&mut self) {
        self.0.vacated.suppose_nothing();
    }
}

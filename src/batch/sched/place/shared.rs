//! Resources that hosts share and that a job reserves for each task or each host: what is left of
//! them while its slots are given out. One host alone has room for a job; several together may
//! not have.

use crate::batch::sched::place::host_match::HostMatch;
use crate::batch::site::reservation_methods::ReservationMethod;
use crate::batch::state::names::{HostId, ResourceId};
use crate::model::reason::PendReason;
use std::collections::BTreeMap;

/// A term of rusage[] about a resource that hosts share.
#[derive(Clone, Copy, Debug)]
struct SharedTerm {
    resource: ResourceId,
    /// Counted for each task, else for each host.
    per_task: bool,
    amount: f64,
}

/// The room that is left in instances of resources. Most jobs reserve nothing of the kind: their
/// room is empty and costs nothing.
#[derive(Clone)]
pub(in crate::batch::sched) struct SharedRoom<'a, 'b> {
    look: &'a HostMatch<'b>,
    terms: Vec<SharedTerm>,
    /// How many more tasks, or hosts, there is room for: by term and instance.
    left: BTreeMap<(usize, usize), u64>,
}

impl<'a, 'b> SharedRoom<'a, 'b> {
    pub fn new(look: &'a HostMatch<'b>) -> SharedRoom<'a, 'b> {
        let rusage = look.simple.and_then(|simple| simple.rusage.as_ref());
        let (site, reserve) = (look.view.site, look.view.reserve);
        let shared = |term: &crate::lang::resreq::RusageTerm| {
            let resource = site.names.reserved(term)?;
            let per_task = match site.reservation_method(term) {
                ReservationMethod::PerTask => true,
                ReservationMethod::PerHost => false,
                ReservationMethod::PerInstance | ReservationMethod::PerJob => return None,
            };
            let counts = term.amount() > 0.0 && !site.names.increasing(resource);
            let shared = counts && reserve.is_shared(resource);
            shared.then(|| SharedTerm { resource, per_task, amount: term.amount() })
        };
        let terms = rusage.map_or(&[][..], |rusage| rusage.terms()).iter();
        SharedRoom { look, terms: terms.filter_map(shared).collect(), left: BTreeMap::new() }
    }

    /// The room of a job that reserves nothing of the kind.
    pub fn unlimited(look: &'a HostMatch<'b>) -> SharedRoom<'a, 'b> {
        SharedRoom { look, terms: Vec::new(), left: BTreeMap::new() }
    }

    /// The pending reason where the room is too small; `None`: nothing is counted.
    pub fn reason(&self) -> Option<PendReason> {
        let resource = self.terms.first()?.resource;
        let own = || PendReason::ReserveExternal(resource.of_reason());
        Some(resource.load_index().map_or_else(own, |k| PendReason::Reserve(k as u8)))
    }

    /// Is there nothing to be counted?
    pub fn is_unlimited(&self) -> bool {
        self.terms.is_empty()
    }

    /// The room of a term in the instance of a host; `None`: the host shares none.
    fn left(&mut self, number: usize, host: HostId) -> Option<&mut u64> {
        let term = self.terms[number];
        let view = &self.look.view;
        let instance = view.reserve.instance(host, term.resource)?;
        let free = || {
            let free = self.look.left_on(host, term.resource);
            let free = free - self.look.drafted(host, term.resource);
            (free.max(0.0) / term.amount) as u64
        };
        Some(self.left.entry((number, instance)).or_insert_with(free))
    }

    /// Slots for tasks on a host that has none of the job's yet.
    pub fn slots(&mut self, host: HostId) -> u32 {
        let mut room = u64::MAX;
        for number in 0..self.terms.len() {
            let per_task = self.terms[number].per_task;
            match self.left(number, host) {
                Some(left) if per_task || *left == 0 => room = room.min(*left),
                _ => {}
            }
        }
        room.min(u64::from(u32::MAX)) as u32
    }

    /// Is there room for one more task on a host that has so many of the job's?
    pub fn further(&mut self, host: HostId, has: u32) -> bool {
        (0..self.terms.len()).all(|number| {
            let counts = self.terms[number].per_task || has == 0;
            !counts || self.left(number, host).is_none_or(|left| *left > 0)
        })
    }

    /// Tasks are placed on a host that had none of the job's.
    pub fn take(&mut self, host: HostId, tasks: u32) {
        for number in 0..self.terms.len() {
            let taken = if self.terms[number].per_task { u64::from(tasks) } else { 1 };
            if let Some(left) = self.left(number, host) {
                *left = left.saturating_sub(taken);
            }
        }
    }

    /// A task is placed on a host that had so many of the job's.
    pub fn take_one(&mut self, host: HostId, has: u32) {
        for number in 0..self.terms.len() {
            let counts = self.terms[number].per_task || has == 0;
            if let Some(left) = self.left(number, host).filter(|_| counts) {
                *left = left.saturating_sub(1);
            }
        }
    }
}

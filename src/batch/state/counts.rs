//! Slot and job counters by queue, user and host; kept by `apply` alone, so that a listing is a
//! look-up and never a walk over jobs. `usage::limits_ledger` counts what limits are about.

use crate::batch::state::change::Switched;
use crate::batch::state::element::{Elem, ElemState, Phase};
use crate::batch::state::id_vec::IdVec;
use crate::batch::state::job::{Body, Job};
use crate::batch::state::names::{HostId, QueueId, UserId};
use crate::batch::state::started_elements::{Share, Slots, StartedElements, bump, started};
use crate::model::JobRef;
use crate::model::idmap::IdMap;
use std::collections::BTreeSet;

/// A host's slots and the elements on it.
#[derive(Clone, Debug, Default)]
pub struct HostSlots {
    pub slots: Slots,
    pub jobs: BTreeSet<JobRef>,
    /// The elements of `jobs` that are suspended for load.
    pub suspended_by_load: BTreeSet<JobRef>,
}

impl HostSlots {
    /// Adds or subtracts the slots of an element on this host.
    fn note(&mut self, at: JobRef, phase: Phase, slots: u64, up: bool) {
        started(&mut self.slots, phase, slots, up);
        match up {
            true => self.jobs.insert(at),
            false => self.jobs.remove(&at),
        };
        if phase.suspended_by_load() {
            match up {
                true => self.suspended_by_load.insert(at),
                false => self.suspended_by_load.remove(&at),
            };
        }
    }
}

#[derive(Debug, Default)]
pub struct Counts {
    pub(super) queue: IdVec<QueueId, Slots>,
    pub(super) user: IdVec<UserId, Slots>,
    pub(super) host: IdVec<HostId, HostSlots>,
    /// The hosts on which elements are suspended for load.
    pub(super) hosts_with_suspended: BTreeSet<HostId>,
    /// The elements that are SSUSP, for whatever reason.
    pub(super) suspended: BTreeSet<JobRef>,
    /// Started slots.
    pub(super) queue_user: IdMap<(QueueId, UserId), u64>,
}

pub(super) fn bump_map<K: std::hash::Hash + Eq>(
    map: &mut IdMap<K, u64>,
    key: K,
    by: u64,
    up: bool,
) {
    bump(map.entry(key).or_default(), by, up);
}

impl Counts {
    /// The slots of a queue.
    pub fn queue(&self, queue: QueueId) -> Slots {
        self.queue.get(queue).copied().unwrap_or_default()
    }
    /// The slots of a user.
    pub fn user(&self, user: UserId) -> Slots {
        self.user.get(user).copied().unwrap_or_default()
    }
    /// The slots of a host and the elements on it, if it ever had any.
    pub fn host(&self, host: HostId) -> Option<&HostSlots> {
        self.host.get(host)
    }
    /// The queues that have or had jobs.
    pub fn queues(&self) -> impl Iterator<Item = (QueueId, &Slots)> {
        self.queue.iter()
    }
    /// The users who have or had jobs.
    pub fn users(&self) -> impl Iterator<Item = (UserId, &Slots)> + Clone {
        self.user.iter()
    }
    /// The hosts that have or had started elements.
    pub fn hosts(&self) -> impl Iterator<Item = (HostId, &HostSlots)> {
        self.host.iter()
    }
    /// The started slots of users in queues.
    pub fn queue_users(&self) -> impl Iterator<Item = ((QueueId, UserId), u64)> {
        self.queue_user.iter().map(|(of, slots)| (*of, *slots))
    }
    /// The started elements of a host.
    pub fn started_on(&self, host: HostId) -> impl Iterator<Item = JobRef> {
        self.started_from(host, JobRef::default())
    }
    /// The started elements of a host, from this one on.
    pub fn started_from(&self, host: HostId, first: JobRef) -> impl Iterator<Item = JobRef> {
        self.host.get(host).into_iter().flat_map(move |on| on.jobs.range(first..)).copied()
    }
    /// The started elements of all hosts: an element comes once for each of its hosts.
    pub fn started(&self) -> impl Iterator<Item = JobRef> {
        self.host.values().flat_map(|on| &on.jobs).copied()
    }
    /// The hosts that have started elements.
    pub fn hosts_in_use(&self) -> impl Iterator<Item = HostId> {
        self.host.iter().filter(|(_, on)| !on.jobs.is_empty()).map(|(host, _)| host)
    }
    /// The hosts that have started elements, from this one on.
    pub fn hosts_in_use_from(&self, first: HostId) -> impl Iterator<Item = HostId> {
        self.host.iter_from(first).filter(|(_, on)| !on.jobs.is_empty()).map(|(host, _)| host)
    }
    /// The hosts on which elements are suspended for load.
    pub fn hosts_with_suspended(&self) -> &BTreeSet<HostId> {
        &self.hosts_with_suspended
    }
    /// The elements that are SSUSP: for load, preempted, outside their run window.
    pub fn suspended(&self) -> &BTreeSet<JobRef> {
        &self.suspended
    }
    /// Adds or subtracts the slots of an element on this host.
    pub(super) fn fresh(&mut self, queue: QueueId, user: UserId, slots: u32, n: u32, up: bool) {
        for s in [self.queue.or_default(queue), self.user.or_default(user)] {
            bump(&mut s.pend_jobs, u64::from(n), up);
            bump(&mut s.pend, u64::from(n) * u64::from(slots), up);
        }
    }

    /// Adds or subtracts the slots of an element on this host.
    pub(super) fn job(&mut self, job: &Job, up: bool) {
        self.pending(job, up);
        for (idx, e) in started_of(job) {
            let (queue, user, slots) = owner(job, e.part);
            self.elem(queue, user, slots, JobRef { job: job.id, idx }, e, up);
        }
    }

    /// Adds or subtracts the slots of an element on this host.
    pub(super) fn pending(&mut self, job: &Job, up: bool) {
        for part in 0..=job.parts().len() as u32 {
            let (queue, user, slots) = owner(job, part);
            match job.pending(part) {
                0 => {}
                n => self.fresh(queue, user, slots, n, up),
            }
        }
    }

    /// The started elements of a job are of the queues that its parts have now; before they were
    /// of these.
    pub(super) fn started_moved(&mut self, job: &Job, before: &[QueueId]) -> Vec<Switched> {
        let mut switched = Vec::new();
        for (part, from) in (0..).zip(before.iter().copied()) {
            let to = job.queue_of(part);
            if to != from {
                job.with_started(part, |all| {
                    self.of_queue(from, job.user, all, false);
                    self.of_queue(to, job.user, all, true);
                    if all.jobs > 0 {
                        let share = Share { slots: all.slots.started(), jobs: all.jobs };
                        let hosts = all.hosts.clone();
                        switched.push(Switched { from, to, all: share, hosts });
                    }
                });
            }
        }
        switched
    }

    /// Adds started elements of a user to those of a queue, or takes them away.
    fn of_queue(&mut self, queue: QueueId, user: UserId, all: &StartedElements, up: bool) {
        let of = self.queue.or_default(queue);
        bump(&mut of.run, all.slots.run, up);
        bump(&mut of.ssusp, all.slots.ssusp, up);
        bump(&mut of.ususp, all.slots.ususp, up);
        bump_map(&mut self.queue_user, (queue, user), all.slots.started(), up);
    }

    /// Adds or subtracts the slots of an element on this host.
    pub(super) fn elem(
        &mut self,
        queue: QueueId,
        user: UserId,
        slots: u32,
        at: JobRef,
        e: &Elem,
        up: bool,
    ) {
        match &e.state {
            ElemState::Pend(_) => self.fresh(queue, user, slots, 1, up),
            ElemState::End(_) => {}
            ElemState::Run(run) => {
                let n = u64::from(run.slots());
                let phase = run.phase;
                for s in [self.queue.or_default(queue), self.user.or_default(user)] {
                    started(s, phase, n, up);
                }
                bump_map(&mut self.queue_user, (queue, user), n, up);
                if matches!(phase, Phase::Ssusp(_)) {
                    match up {
                        true => self.suspended.insert(at),
                        false => self.suspended.remove(&at),
                    };
                }
                for &(host, k) in &run.hosts {
                    let here = self.host.or_default(host);
                    here.note(at, phase, u64::from(k), up);
                    if phase.suspended_by_load() {
                        match here.suspended_by_load.is_empty() {
                            true => self.hosts_with_suspended.remove(&host),
                            false => self.hosts_with_suspended.insert(host),
                        };
                    }
                }
            }
        }
    }
}

impl Job {
    /// The slots of the pending and started elements of a part.
    pub fn slots_of(&self, part: u32) -> Slots {
        let pending = u64::from(self.pending(part));
        let of_each = u64::from(owner(self, part).2);
        let started = self.with_started(part, |all| all.slots);
        Slots { pend_jobs: pending, pend: pending * of_each, ..started }
    }

    /// The started elements of a part, together; of a job that is no array: itself, where it is
    /// started.
    fn with_started<T>(&self, part: u32, f: impl FnOnce(&StartedElements) -> T) -> T {
        match &self.body {
            Body::Array(a) => {
                let of_part = self.part(part).map(|part| &part.started_elements);
                f(of_part.unwrap_or(&a.started_elements))
            }
            Body::Single(e) => {
                let mut one = StartedElements::default();
                if let ElemState::Run(run) = &e.state {
                    one.note(run, true);
                }
                f(&one)
            }
        }
    }
}

/// The started elements of a job.
fn started_of(job: &Job) -> impl Iterator<Item = (u32, &Elem)> {
    let (one, some) = match &job.body {
        Body::Single(e) => (matches!(e.state, ElemState::Run(_)).then_some((0, e)), None),
        Body::Array(a) => (None, Some(a)),
    };
    let some = some.into_iter();
    one.into_iter()
        .chain(some.flat_map(|a| a.started.iter().filter_map(|i| Some((*i, a.own.get(i)?)))))
}

/// The queue and user whose counts a part of a job belongs to, and the least slots of an element.
pub fn owner(job: &Job, part: u32) -> (QueueId, UserId, u32) {
    (job.queue_of(part), job.user, job.spec_of(part).min_slots.max(1))
}

//! Slot and job counters by queue, user and host; kept by `apply` alone, so that a listing is a
//! look-up and never a walk over jobs. `usage::limits_ledger` counts what limits are about.

use crate::batch::state::change::Switched;
use crate::batch::state::names::{HostId, QueueId, UserId};
use crate::batch::state::{Body, Elem, ElemState, Job, Phase, Run, Tally};
use crate::lang::depend::PostState;
use crate::model::JobRef;
use crate::model::idmap::IdMap;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Slots of one consumer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slots {
    pub pend_jobs: u64,
    pub pend: u64,
    pub run: u64,
    pub ssusp: u64,
    pub ususp: u64,
}

impl Slots {
    /// Slots in use: suspended ones count.
    pub fn started(&self) -> u64 {
        self.run + self.ssusp + self.ususp
    }
    /// Adds those of another consumer.
    pub fn add(&mut self, of: &Slots) {
        self.pend_jobs += of.pend_jobs;
        self.pend += of.pend;
        self.run += of.run;
        self.ssusp += of.ssusp;
        self.ususp += of.ususp;
    }
    pub fn all(&self) -> u64 {
        self.pend + self.started()
    }
}

/// A host's slots and the elements on it.
#[derive(Clone, Debug, Default)]
pub struct HostSlots {
    pub slots: Slots,
    pub jobs: BTreeSet<JobRef>,
}

/// A part of what started elements hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    pub slots: u64,
    /// Jobs and elements of arrays.
    pub jobs: u64,
}

impl Share {
    pub fn add(&mut self, other: Share) {
        self.slots += other.slots;
        self.jobs += other.jobs;
    }
    fn take(&mut self, other: Share) {
        self.slots -= other.slots;
        self.jobs -= other.jobs;
    }
}

/// The started elements of a part of an array, all together: with these a change of all of them
/// takes no longer than the change of one. The slots are those of the started elements of the part;
/// each reserves by the requirement that was given last to all that were started by then, or where
/// none was given since it was started, by its own.
#[derive(Debug, Default)]
pub struct StartedElements {
    /// The slots they hold, in all.
    pub slots: Slots,
    /// How many they are.
    pub jobs: u64,
    /// The same by host, of hosts where that is any.
    pub hosts: IdMap<HostId, Share>,
    /// The effective resource requirement that a change gave to all of them.
    given: Option<Arc<str>>,
    /// How often one was given.
    times: u32,
}

impl StartedElements {
    /// Counts a started element in or out, as it stands.
    pub fn note(&mut self, run: &Run, add: bool) {
        started(&mut self.slots, run.phase, u64::from(run.slots()), add);
        self.jobs = if add { self.jobs + 1 } else { self.jobs - 1 };
        for &(host, n) in &run.hosts {
            let here = self.hosts.entry(host).or_default();
            let share = Share { slots: n.into(), jobs: 1 };
            if add {
                here.add(share)
            } else {
                here.take(share)
            }
            if *here == Share::default() {
                self.hosts.remove(&host);
            }
        }
    }

    /// All of them reserve by this effective requirement from now on.
    pub fn give(&mut self, requirement: Arc<str>) {
        self.given = Some(requirement);
        self.times += 1;
    }

    /// An element that is started from now on has its own requirement: what was given before was
    /// given to others.
    pub fn times_given(&self) -> u32 {
        self.times
    }

    pub(super) fn given_to(&self, run: &Run) -> Option<&Arc<str>> {
        self.given.as_ref().filter(|_| run.times_given < self.times)
    }
}

#[derive(Debug, Default)]
pub struct Counts {
    pub queue: IdMap<QueueId, Slots>,
    pub user: IdMap<UserId, Slots>,
    pub host: IdMap<HostId, HostSlots>,
    /// Started slots.
    pub queue_user: IdMap<(QueueId, UserId), u64>,
}

fn bump(n: &mut u64, by: u64, up: bool) {
    if up {
        *n += by;
    } else {
        *n = n.saturating_sub(by);
    }
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
    /// Pending jobs and elements of all queues.
    pub fn pending_jobs(&self) -> u64 {
        self.queue.values().map(|s| s.pend_jobs).sum()
    }

    /// Adds or takes away `n` untouched elements of a job.
    pub fn fresh(&mut self, queue: QueueId, user: UserId, slots: u32, n: u32, up: bool) {
        for s in [self.queue.entry(queue).or_default(), self.user.entry(user).or_default()] {
            bump(&mut s.pend_jobs, u64::from(n), up);
            bump(&mut s.pend, u64::from(n) * u64::from(slots), up);
        }
    }

    /// Adds or takes away a whole job as it stands.
    pub fn job(&mut self, job: &Job, up: bool) {
        self.pending(job, up);
        for (idx, e) in started_of(job) {
            let (queue, user, slots) = owner(job, e.part);
            self.elem(queue, user, slots, JobRef { job: job.id, idx }, e, up);
        }
    }

    /// Adds or takes away the pending elements of a job.
    pub fn pending(&mut self, job: &Job, up: bool) {
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
    pub fn started_moved(&mut self, job: &Job, before: &[QueueId]) -> Vec<Switched> {
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
        let of = self.queue.entry(queue).or_default();
        bump(&mut of.run, all.slots.run, up);
        bump(&mut of.ssusp, all.slots.ssusp, up);
        bump(&mut of.ususp, all.slots.ususp, up);
        bump_map(&mut self.queue_user, (queue, user), all.slots.started(), up);
    }

    /// Adds or takes away one element as it stands.
    pub fn elem(
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
                for s in [self.queue.entry(queue).or_default(), self.user.entry(user).or_default()]
                {
                    started(s, phase, n, up);
                }
                bump_map(&mut self.queue_user, (queue, user), n, up);
                for &(host, k) in &run.hosts {
                    let k = u64::from(k);
                    let h = self.host.entry(host).or_default();
                    started(&mut h.slots, phase, k, up);
                    if up {
                        h.jobs.insert(at);
                    } else {
                        h.jobs.remove(&at);
                    }
                }
            }
        }
    }
}

impl Job {
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

/// Adds or takes away the slots of a started element.
pub(super) fn started(s: &mut Slots, phase: Phase, n: u64, up: bool) {
    match phase {
        Phase::Starting | Phase::Running => bump(&mut s.run, n, up),
        Phase::Ssusp(_) => bump(&mut s.ssusp, n, up),
        Phase::Ususp(_) => bump(&mut s.ususp, n, up),
    }
}

/// Adds or takes away one element in its job's tally.
pub fn tally(t: &mut Tally, e: &Elem, up: bool) {
    if let ElemState::End(end) = &e.state {
        let post = match end.post_state() {
            PostState::Done => Some(&mut t.post_done),
            PostState::Err => Some(&mut t.post_err),
            PostState::None => None,
        };
        if let Some(n) = post {
            *n = if up { *n + 1 } else { *n - 1 };
        }
    }
    let n = match &e.state {
        ElemState::Pend(p) if p.held.is_some() => &mut t.psusp,
        ElemState::Pend(_) => &mut t.pend,
        ElemState::Run(r) => match r.phase {
            Phase::Starting | Phase::Running => &mut t.run,
            Phase::Ssusp(_) => &mut t.ssusp,
            Phase::Ususp(_) => &mut t.ususp,
        },
        ElemState::End(e) if e.done => &mut t.done,
        ElemState::End(e) => {
            if e.run.is_none() {
                if up {
                    t.exit_unstarted += 1;
                } else {
                    t.exit_unstarted -= 1;
                }
            }
            &mut t.exit
        }
    };
    if up {
        *n += 1;
    } else {
        *n -= 1;
    }
}

/// Who uses slots for a part of a job, and how many an element takes at least.
pub fn owner(job: &Job, part: u32) -> (QueueId, UserId, u32) {
    (job.queue_of(part), job.user, job.spec_of(part).min_slots.max(1))
}

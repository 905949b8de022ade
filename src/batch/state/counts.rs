//! Slot and job counters by queue, user and host; kept by `apply` alone, so that a limit is a
//! look-up and never a walk over jobs.

use crate::batch::state::names::{HostId, QueueId, UserId};
use crate::batch::state::{Body, Elem, ElemState, Job, Phase, Tally};
use crate::lang::depend::PostState;
use crate::model::JobRef;
use crate::model::idmap::IdMap;
use std::collections::{BTreeMap, BTreeSet};

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

#[derive(Debug, Default)]
pub struct Counts {
    pub queue: IdMap<QueueId, Slots>,
    pub user: IdMap<UserId, Slots>,
    pub host: IdMap<HostId, HostSlots>,
    /// Started slots of (queue, user), (host, user), (host, queue).
    pub queue_user: IdMap<(QueueId, UserId), u64>,
    pub host_user: IdMap<(HostId, UserId), u64>,
    pub host_queue: IdMap<(HostId, QueueId), u64>,
}

fn bump(n: &mut u64, by: u64, up: bool) {
    if up {
        *n += by;
    } else {
        *n = n.saturating_sub(by);
    }
}

fn bump_map<K: std::hash::Hash + Eq>(map: &mut IdMap<K, u64>, key: K, by: u64, up: bool) {
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
    pub fn started_moved(&mut self, job: &Job, before: &[QueueId]) {
        let queue = |part: u32| (before.get(part as usize).copied(), job.queue_of(part));
        let changed = |part: u32| matches!(queue(part), (Some(from), to) if from != to);
        if !(0..=job.parts().len() as u32).any(changed) {
            return;
        }
        // there may be very many of them on few hosts
        let mut moved: BTreeMap<(QueueId, QueueId), (Slots, IdMap<HostId, u64>)> = BTreeMap::new();
        for (_, e) in started_of(job).filter(|(_, e)| changed(e.part)) {
            let (ElemState::Run(run), (Some(from), to)) = (&e.state, queue(e.part)) else {
                continue;
            };
            let (slots, hosts) = moved.entry((from, to)).or_default();
            started(slots, run.phase, u64::from(run.slots()), true);
            for &(host, n) in &run.hosts {
                bump_map(hosts, host, u64::from(n), true);
            }
        }
        for ((from, to), (slots, hosts)) in &moved {
            for (queue, up) in [(*from, false), (*to, true)] {
                let of = self.queue.entry(queue).or_default();
                bump(&mut of.run, slots.run, up);
                bump(&mut of.ssusp, slots.ssusp, up);
                bump(&mut of.ususp, slots.ususp, up);
                bump_map(&mut self.queue_user, (queue, job.user), slots.started(), up);
                for (host, n) in hosts {
                    bump_map(&mut self.host_queue, (*host, queue), *n, up);
                }
            }
        }
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
                    bump_map(&mut self.host_user, (host, user), k, up);
                    bump_map(&mut self.host_queue, (host, queue), k, up);
                }
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

fn started(s: &mut Slots, phase: Phase, n: u64, up: bool) {
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

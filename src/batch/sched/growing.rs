//! The started jobs that want further slots, how many, and in what order a pass comes to them.

use crate::batch::sched::view::View;
use crate::batch::state::names::QueueId;
use crate::batch::state::{Job, Phase, Run};
use crate::conf::types::Resizable;
use crate::model::JobRef;
use crate::model::event::Forced;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// Slots that a job wants: no fewer than `least` at once, no more than `most`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WantedSlots {
    pub least: u32,
    pub most: u32,
}

/// A job that wants further slots.
#[derive(Clone, Copy, Debug)]
struct Grower {
    /// The job is to be held against all open hosts.
    unseen: bool,
    /// The job is given none before this instant, microseconds of the monotonic clock.
    rests: Option<u64>,
}

/// The jobs that want further slots.
#[derive(Debug, Default)]
pub(super) struct Growth {
    queues: BTreeMap<QueueId, BTreeMap<JobRef, Grower>>,
    queue_of: BTreeMap<JobRef, QueueId>,
    rests: BTreeSet<(u64, JobRef)>,
}

impl Growth {
    pub fn remove(&mut self, at: JobRef) {
        let Some(queue) = self.queue_of.remove(&at) else { return };
        let Some(all) = self.queues.get_mut(&queue) else { return };
        if let Some(Grower { rests: Some(until), .. }) = all.remove(&at) {
            self.rests.remove(&(until, at));
        }
        if all.is_empty() {
            self.queues.remove(&queue);
        }
    }

    pub fn insert(&mut self, queue: QueueId, at: JobRef, rests: Option<u64>) {
        self.remove(at);
        self.queue_of.insert(at, queue);
        self.queues.entry(queue).or_default().insert(at, Grower { unseen: true, rests });
        self.rests.extend(rests.map(|until| (until, at)));
    }

    /// Does no job want further slots?
    pub fn is_empty(&self) -> bool {
        self.queue_of.is_empty()
    }

    /// The next job of a queue behind this one that does not rest, and whether it is to be held
    /// against all open hosts.
    pub fn next(&self, queue: QueueId, last: Option<JobRef>) -> Option<(JobRef, bool)> {
        let after = last.map_or(Bound::Unbounded, Bound::Excluded);
        let behind = self.queues.get(&queue)?.range((after, Bound::Unbounded));
        let mut awake = behind.filter(|(_, grower)| grower.rests.is_none());
        awake.next().map(|(at, grower)| (*at, grower.unseen))
    }

    /// The jobs of a queue that want further slots now.
    pub fn of_queue(&self, queue: QueueId) -> impl Iterator<Item = JobRef> + '_ {
        let all = self.queues.get(&queue).into_iter().flatten();
        all.filter(|(_, grower)| grower.rests.is_none()).map(|(at, _)| *at)
    }

    pub fn set_unseen(&mut self, at: JobRef, unseen: bool) {
        let all = self.queue_of.get(&at).and_then(|queue| self.queues.get_mut(queue));
        if let Some(grower) = all.and_then(|all| all.get_mut(&at)) {
            grower.unseen = unseen;
        }
    }

    /// When the next job has rested.
    pub fn deadline(&self) -> Option<u64> {
        self.rests.first().map(|rest| rest.0)
    }

    /// Has a job rested?
    pub fn wake(&mut self, now: u64) -> bool {
        let mut woken = false;
        while let Some(&(until, at)) = self.rests.first().filter(|rest| rest.0 <= now) {
            self.rests.remove(&(until, at));
            let all = self.queue_of.get(&at).and_then(|queue| self.queues.get_mut(queue));
            if let Some(grower) = all.and_then(|all| all.get_mut(&at)) {
                (grower.unseen, grower.rests, woken) = (true, None, true);
            }
        }
        woken
    }
}

impl View<'_> {
    /// RESIZABLE_JOBS of an element, and its own -ar.
    pub(crate) fn resizable(&self, job: &Job, idx: u32) -> Resizable {
        let queue = self.site.queue(job.queue_at(idx));
        self.site.settings(job.spec_at(idx), queue).resizable()
    }

    /// The further slots that a started element wants.
    pub(crate) fn wanted_slots(&self, job: &Job, run: &Run) -> Option<WantedSlots> {
        let (idx, spec) = (run.key.idx, job.spec_at(run.key.idx));
        let resize = run.resize.as_deref();
        let open = run.killed.is_none() && !run.migrates && !job.damaged;
        let here = run.phase == Phase::Running && !run.unknown && run.forced == Forced::No;
        let busy = resize.is_some_and(|resize| resize.under_way.is_some());
        if !open || !here || busy || !spec.further.host_lines.is_empty() {
            return None;
        }
        let (total, least) = match resize.and_then(|resize| resize.asked.as_ref()) {
            Some(asked) => (asked.total, asked.least.max(1)),
            None if resize.is_some_and(|resize| resize.cancelled) => return None,
            None if self.resizable(job, idx) == Resizable::Auto => (spec.max_slots, 1),
            None => return None,
        };
        let most = total.saturating_sub(run.slots());
        (most > 0).then_some(WantedSlots { least: least.min(most), most })
    }
}

//! Jobs that have ended, in the order in which they are to leave memory (CLEAN_PERIOD,
//! CLEAN_PERIOD_DONE).

use crate::batch::state::element::{Elem, ElemState};
use crate::batch::state::job::{Body, Job};
use std::collections::{BTreeMap, VecDeque};

/// Seconds for which ended jobs stay in memory.
#[derive(Clone, Copy, Debug)]
pub struct KeepEnded {
    /// Jobs with status DONE (CLEAN_PERIOD_DONE).
    pub done: i64,
    /// The other ones (CLEAN_PERIOD).
    pub other: i64,
}

/// An ended job (an array: with its last element) that is to leave memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaving {
    /// The time of its end, seconds since the epoch.
    pub ended: i64,
    pub job: u32,
    /// Has it, and each element of it, status DONE?
    pub done: bool,
}

impl Leaving {
    /// When it leaves memory, seconds since the epoch.
    pub fn due(&self, keep: KeepEnded) -> i64 {
        self.ended.saturating_add(self.period(keep))
    }

    /// Seconds for which it stays in memory.
    pub fn period(&self, keep: KeepEnded) -> i64 {
        if self.done { keep.done } else { keep.other }
    }
}

/// Ended jobs, the first to leave memory in front.
#[derive(Debug, Default)]
pub struct EndedJobs {
    /// Jobs with status DONE, by the time of their end.
    done: VecDeque<Leaving>,
    /// The other ones, by the time of their end.
    other: VecDeque<Leaving>,
    /// When the last element of an array ended, of arrays that have an entry above.
    last_ends: BTreeMap<u32, i64>,
}

impl EndedJobs {
    /// The next to leave memory.
    pub fn next(&self, keep: KeepEnded) -> Option<Leaving> {
        let first = [self.done.front(), self.other.front()].into_iter().flatten();
        first.min_by_key(|leaving| leaving.due(keep)).copied()
    }

    /// When an ended job ended last, seconds since the epoch.
    pub fn last_end(&self, job: &Job) -> i64 {
        match &job.body {
            Body::Single(Elem { state: ElemState::End(e), .. }) => e.end_time,
            Body::Single(_) => 0,
            Body::Array(_) => self.last_ends.get(&job.id).copied().unwrap_or(0),
        }
    }

    /// An element has ended, its job perhaps with it.
    pub(super) fn note(&mut self, job: &Job, end_time: i64) {
        let mut last = end_time;
        if job.is_array() {
            // another element may have ended later and been told of before
            let known = self.last_ends.entry(job.id).or_default();
            *known = end_time.max(*known);
            last = *known;
        }
        if job.tally().unfinished() == 0 {
            let done = job.tally().exit == 0;
            self.put_back(Leaving { ended: last, job: job.id, done });
        }
    }

    /// The next to leave memory, if it is due.
    pub(super) fn take(&mut self, now: i64, keep: KeepEnded) -> Option<Leaving> {
        let next = self.next(keep).filter(|leaving| leaving.due(keep) <= now)?;
        self.order(next.done).pop_front()
    }

    /// Puts a job behind the others of its status.
    pub(super) fn put_back(&mut self, leaving: Leaving) {
        self.order(leaving.done).push_back(leaving);
    }

    fn order(&mut self, done: bool) -> &mut VecDeque<Leaving> {
        if done { &mut self.done } else { &mut self.other }
    }

    pub(super) fn forget(&mut self, job: u32) {
        self.last_ends.remove(&job);
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = u32> + '_ {
        self.done.iter().chain(&self.other).map(|leaving| leaving.job)
    }
}

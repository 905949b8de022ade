//! Jobs that have ended, in the order in which they are to leave memory (CLEAN_PERIOD).

use crate::batch::state::element::{Elem, ElemState};
use crate::batch::state::job::{Body, Job};
use std::collections::{BTreeMap, VecDeque};

/// Ended jobs, the first to leave memory in front.
#[derive(Debug, Default)]
pub struct EndedJobs {
    /// Jobs (arrays: with their last element) by the time of their end, seconds since the epoch.
    order: VecDeque<(i64, u32)>,
    /// When the last element of an array ended, of arrays that are in `order`.
    last_ends: BTreeMap<u32, i64>,
}

impl EndedJobs {
    /// The next to leave memory: the time of its end, and its ID.
    pub fn next(&self) -> Option<(i64, u32)> {
        self.order.front().copied()
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
        if job.tally.unfinished() == 0 {
            self.order.push_back((last, job.id));
        }
    }

    /// The first in the order leaves memory now, or is put behind the others.
    pub(super) fn take(&mut self) -> Option<(i64, u32)> {
        self.order.pop_front()
    }

    /// Puts a job behind the others, as though it had ended then.
    pub(super) fn put_back(&mut self, time: i64, job: u32) {
        self.order.push_back((time, job));
    }

    pub(super) fn forget(&mut self, job: u32) {
        self.last_ends.remove(&job);
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = u32> + '_ {
        self.order.iter().map(|(_, id)| *id)
    }
}

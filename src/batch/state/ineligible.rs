//! Intervals in which a job or element could not be dispatched whatever room there was
//! (TRACK_ELIGIBLE_PENDINFO=Y, LSF_ELIGIBLE in lsb.events).

use crate::model::JobRef;
use std::collections::BTreeMap;

/// How long a job or element could not be dispatched whatever room there was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waited {
    /// Seconds, in intervals that are over.
    secs: i64,
    /// When the present one began; 0: it is eligible, or waits no longer.
    since: i64,
}

impl Waited {
    /// The element is eligible from then on, or no longer.
    pub fn turn(&mut self, t: i64, on: bool) {
        if on {
            self.end(t);
        } else if self.since == 0 {
            self.since = t;
        }
    }
    /// The element waits no longer, or for room alone.
    pub fn end(&mut self, t: i64) {
        *self = Waited { secs: self.until(t), since: 0 };
    }
    /// Seconds until then.
    pub fn until(self, t: i64) -> i64 {
        self.secs + if self.since > 0 { (t - self.since).max(0) } else { 0 }
    }
}

/// The intervals of elements that have any, by element; idx 0 of an array: those of its elements
/// that are not here by themselves.
#[derive(Debug, Default)]
pub struct Ineligible(BTreeMap<JobRef, Waited>);

impl Ineligible {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The intervals of an element, or of the array that it belongs to.
    pub fn of(&self, at: JobRef) -> Waited {
        let own = self.0.get(&at).or_else(|| self.0.get(&JobRef { idx: 0, ..at }));
        own.copied().unwrap_or_default()
    }

    /// The intervals of a job and its elements.
    pub fn of_job(&self, job: u32) -> impl Iterator<Item = (JobRef, Waited)> + '_ {
        self.0.range(JobRef::all_of(job)).map(|(at, waited)| (*at, *waited))
    }

    /// Is the element eligible, as far as it has intervals of its own?
    pub fn own_is_eligible(&self, at: JobRef) -> Option<bool> {
        self.0.get(&at).map(|waited| waited.since == 0)
    }

    /// Does an element of an array have intervals of its own?
    pub fn has_elements(&self, job: u32) -> bool {
        let elements = JobRef { job, idx: 1 }..=JobRef { job, idx: u32::MAX };
        self.0.range(elements).next().is_some()
    }

    /// The element is eligible from then on, or no longer.
    pub(super) fn turn(&mut self, t: i64, at: JobRef, on: bool) {
        let mut waited = self.of(at);
        waited.turn(t, on);
        self.0.insert(at, waited);
    }

    /// A pending job or element waits no longer: what the array waits from now on is not its own.
    pub(super) fn end(&mut self, t: i64, at: JobRef) {
        let mut waited = self.of(at);
        if waited != Waited::default() {
            waited.end(t);
            self.0.insert(at, waited);
        }
    }

    /// The element leaves memory.
    pub(super) fn forget(&mut self, at: JobRef) {
        self.0.remove(&at);
    }

    /// The job leaves memory.
    pub(super) fn forget_job(&mut self, job: u32) {
        let gone: Vec<JobRef> = self.of_job(job).map(|(at, _)| at).collect();
        gone.into_iter().for_each(|at| self.forget(at));
    }
}

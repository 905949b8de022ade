//! Intervals in which a job or element could not be dispatched whatever room there was
//! (TRACK_ELIGIBLE_PENDINFO=Y, LSF_ELIGIBLE in lsb.events).

use crate::batch::state::change::Applied;
use crate::batch::state::{ElemState, State};
use crate::model::JobRef;

/// How long a job or element could not be dispatched whatever room there was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waited {
    /// Seconds, in intervals that are over.
    pub secs: i64,
    /// When the present one began; 0: it is eligible, or waits no longer.
    pub since: i64,
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

fn whole(at: JobRef) -> JobRef {
    JobRef { idx: 0, ..at }
}

impl State {
    /// The intervals of an element, or of the array that it belongs to.
    pub fn waited_of(&self, at: JobRef) -> Waited {
        let own = self.waited.get(&at).or_else(|| self.waited.get(&whole(at)));
        own.copied().unwrap_or_default()
    }

    pub(crate) fn waits(&mut self, t: i64, at: JobRef, on: bool) -> Applied {
        if !self.jobs.contains_key(&at.job) {
            return Applied::Rejected("no such job");
        }
        let mut w = self.waited_of(at);
        w.turn(t, on);
        self.waited.insert(at, w);
        Applied::Nothing
    }

    /// A job or element waits no longer: what the array waits from now on is not its own.
    pub(crate) fn waited_until(&mut self, t: i64, at: JobRef) {
        // all that is done where nothing is tracked
        if self.waited.is_empty() {
            return;
        }
        let pending = matches!(self.elem(at).map(|e| &e.state), None | Some(ElemState::Pend(_)));
        let mut w = self.waited_of(at);
        if pending && w != Waited::default() {
            w.end(t);
            self.waited.insert(at, w);
        }
    }

    pub(crate) fn forget_waited(&mut self, job: u32) {
        let all = JobRef { job, idx: 0 }..=JobRef { job, idx: u32::MAX };
        let gone: Vec<JobRef> = self.waited.range(all).map(|(at, _)| *at).collect();
        for at in gone {
            self.waited.remove(&at);
        }
    }
}

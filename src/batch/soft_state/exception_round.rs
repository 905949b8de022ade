//! How far a round has come that looks at all started jobs for exceptions, and the exceptions of
//! running jobs that have been told: soft state, which a restart begins anew. The looks themselves
//! are in `lifecycle::exceptions`.

use crate::batch::soft_state::started_walk::{StartedThere, StartedWalk};
use crate::batch::state::counts::Counts;
use crate::model::JobKey;
use crate::model::exception::JobException;
use std::collections::BTreeMap;

/// The round under way, if any.
#[derive(Debug, Default)]
pub struct ExceptionRound {
    /// How far it has come.
    walk: StartedWalk,
    /// The new exceptions that the round has found so far.
    found: Vec<JobException>,
    /// The exceptions that had been told before this round ([`crate::model::job::except`] bits), of
    /// jobs that it has not come to yet.
    told_before: BTreeMap<JobKey, u32>,
    /// Told exceptions of the jobs that it has looked at.
    told: BTreeMap<JobKey, u32>,
}

impl ExceptionRound {
    /// A round begins with these exceptions of jobs that have ended, unless one is under way.
    pub(crate) fn begin(&mut self, found: impl FnOnce() -> Vec<JobException>) {
        if self.walk.begin() {
            self.found = found();
            self.told_before = std::mem::take(&mut self.told);
        }
    }

    pub(crate) fn is_under_way(&self) -> bool {
        self.walk.is_under_way()
    }

    /// The jobs that this turn looks at.
    pub(crate) fn slice(&mut self, counts: &Counts) -> Vec<StartedThere> {
        self.walk.slice(counts)
    }

    /// Nothing is to be looked for any more.
    pub(crate) fn stop(&mut self) {
        self.walk.stop();
    }

    pub(crate) fn deadline(&self) -> Option<u64> {
        self.walk.deadline()
    }

    /// How many jobs each turn has looked at since this was asked last.
    #[cfg(test)]
    pub(crate) fn take_looks(&mut self) -> Vec<usize> {
        self.walk.take_looks()
    }

    /// The exceptions that have been found so far.
    pub(crate) fn found(&self) -> usize {
        self.found.len()
    }

    /// A new exception is to be told.
    pub(crate) fn find(&mut self, new: JobException) {
        self.found.push(new);
    }

    /// The exceptions of a running job that have been told, which the round has come to.
    pub(crate) fn take_told(&mut self, key: JobKey) -> u32 {
        let before = self.told_before.remove(&key).unwrap_or(0);
        before | self.told.get(&key).copied().unwrap_or(0)
    }

    /// The exceptions of a running job that last and have been told.
    pub(crate) fn set_told(&mut self, key: JobKey, bits: u32) {
        match bits {
            0 => drop(self.told.remove(&key)),
            bits => drop(self.told.insert(key, bits)),
        }
    }

    /// The round is over: what it has found. The exceptions of jobs that it has not met are over.
    pub(crate) fn end(&mut self) -> Vec<JobException> {
        self.told_before.clear();
        std::mem::take(&mut self.found)
    }
}

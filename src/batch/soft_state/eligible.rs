//! The jobs whose eligible pending time may have begun or ended.

use std::collections::BTreeSet;

/// Jobs to be looked at; soft state.
#[derive(Debug, Default)]
pub struct Eligible {
    todo: BTreeSet<u32>,
    /// All jobs from this one on are to be looked at as well.
    from: Option<u32>,
}

impl Eligible {
    /// Something about a job has changed.
    pub(crate) fn note_job(&mut self, job: u32) {
        self.todo.insert(job);
    }

    /// Something about queues has changed, and so about all jobs.
    pub(crate) fn note_all(&mut self) {
        self.from = Some(0);
    }

    /// The next job to be looked at; `job_from`: the first job from an ID on.
    pub(crate) fn next(&mut self, job_from: impl FnOnce(u32) -> Option<u32>) -> Option<u32> {
        if let Some(job) = self.todo.pop_first() {
            return Some(job);
        }
        let next = job_from(self.from?);
        self.from = next.and_then(|job| job.checked_add(1));
        next
    }

    /// Is something left to do?
    pub fn left(&self) -> bool {
        !self.todo.is_empty() || self.from.is_some()
    }
}

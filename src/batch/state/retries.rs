//! The effects of control requests, by the id that the client gave them: a retry whose first answer
//! was lost is told of the effect, not that there is nothing left to do. Part of the state: the ids
//! are in the records of what was done (JOB_SIGNAL, JOB_REQUEUE), so that a crash between two
//! slices of a request, or between its end and the answer, changes nothing.

use crate::batch::state::request_ids::RequestId;
use crate::model::JobRef;
use std::collections::{HashMap, VecDeque};

/// How long a request is remembered, seconds. Clients ask again within seconds; those that wait
/// for a failed host do so for minutes.
pub const WINDOW: i64 = 3600;
/// Stretches of jobs and elements that are remembered altogether; beyond it the oldest requests
/// are forgotten.
pub const MAX_STRETCHES: usize = 200_000;

/// Jobs or elements of one job that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stretch {
    first: JobRef,
    last: JobRef,
}

impl Stretch {
    /// Is it the next element, or the next job that is no array?
    fn goes_on(&self, at: JobRef) -> bool {
        let (first, last) = (self.first, self.last);
        match at.idx {
            0 => first.idx == 0 && last.job.checked_add(1) == Some(at.job),
            idx => first.job == at.job && first.idx != 0 && last.idx.checked_add(1) == Some(idx),
        }
    }

    fn has(&self, at: JobRef) -> bool {
        match self.first.idx {
            0 => at.idx == 0 && (self.first.job..=self.last.job).contains(&at.job),
            _ => at.job == self.first.job && (self.first.idx..=self.last.idx).contains(&at.idx),
        }
    }
}

/// Requests by their ids.
#[derive(Debug, Default)]
pub struct Retries {
    done: HashMap<RequestId, Vec<Stretch>>,
    ages: VecDeque<(i64, RequestId)>,
    stretches: usize,
}

impl Retries {
    /// A request has done its work on a job or element.
    pub(super) fn note(&mut self, time: i64, request: &str, at: JobRef) {
        if request.is_empty() {
            return;
        }
        self.forget_before(time - WINDOW);
        let id = RequestId::of(request);
        let done = self.done.entry(id).or_default();
        if done.is_empty() {
            self.ages.push_back((time, id));
        }
        match done.last_mut() {
            Some(last) if last.has(at) => {}
            Some(last) if last.goes_on(at) => last.last = at,
            _ => {
                done.push(Stretch { first: at, last: at });
                self.stretches += 1;
            }
        }
        while self.stretches > MAX_STRETCHES && self.ages.len() > 1 {
            self.forget_oldest();
        }
    }

    /// A request has done its work on these elements of an array, the first and the last of them.
    pub(super) fn note_elements(
        &mut self,
        time: i64,
        request: &str,
        job: u32,
        (first, last): (u32, u32),
    ) {
        self.note(time, request, JobRef { job, idx: first });
        let stretch = self.done.get_mut(&RequestId::of(request)).and_then(|done| done.last_mut());
        if let Some(stretch) = stretch.filter(|s| s.has(JobRef { job, idx: first })) {
            stretch.last.idx = stretch.last.idx.max(last);
        }
    }

    fn forget_before(&mut self, time: i64) {
        while self.ages.front().is_some_and(|(t, _)| *t < time) {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        let Some((_, id)) = self.ages.pop_front() else { return };
        self.stretches -= self.done.remove(&id).map_or(0, |done| done.len());
    }

    /// The jobs and elements that a request has acted on so far; `None`: none that are known.
    pub fn of(&self, request: &str) -> Option<Done> {
        if request.is_empty() || self.done.is_empty() {
            return None;
        }
        let mut all = self.done.get(&RequestId::of(request))?.clone();
        all.sort_unstable_by_key(|s| (s.first.job, s.first.idx));
        Some(Done(all))
    }
}

/// The jobs and elements that a request has acted on, in order.
#[derive(Clone, Debug)]
pub struct Done(Vec<Stretch>);

impl Done {
    pub fn has(&self, at: JobRef) -> bool {
        let next = self.0.partition_point(|s| (s.first.job, s.first.idx) <= (at.job, at.idx));
        // a stretch of single jobs may begin before one that is of an array
        self.0[..next].iter().rev().take(2).any(|s| s.has(at))
    }

    /// Has it done anything to the job?
    pub fn has_job(&self, job: u32) -> bool {
        let next = self.0.partition_point(|s| s.first.job <= job);
        self.0[..next].iter().rev().take(2).any(|s| (s.first.job..=s.last.job).contains(&job))
    }

    pub fn jobs(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().flat_map(|s| s.first.job..=s.last.job)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(job: u32, idx: u32) -> JobRef {
        JobRef { job, idx }
    }

    #[test]
    fn stretches_hold_what_was_done_and_nothing_else() {
        let mut r = Retries::default();
        for job in [1, 2, 3, 7] {
            r.note(100, "a", at(job, 0));
        }
        for idx in 1..=1000 {
            r.note(100, "a", at(5, idx));
        }
        r.note(100, "a", at(5, 1002));
        r.note(100, "b", at(4, 0));
        r.note(100, "", at(9, 0));
        assert_eq!(r.stretches, 5);
        let done = r.of("a").unwrap();
        for (job, idx) in [(1, 0), (2, 0), (3, 0), (7, 0), (5, 1), (5, 1000), (5, 1002)] {
            assert!(done.has(at(job, idx)) && done.has_job(job), "{job}[{idx}]");
        }
        for (job, idx) in [(4, 0), (6, 0), (5, 0), (5, 1001), (8, 0), (2, 1), (9, 0)] {
            assert!(!done.has(at(job, idx)), "{job}[{idx}]");
        }
        assert!(!done.has_job(4) && !done.has_job(9) && done.has_job(5));
        assert!(r.of("").is_none() && r.of("c").is_none());
    }

    #[test]
    fn requests_are_forgotten_after_the_window_and_beyond_the_cap() {
        let mut r = Retries::default();
        r.note(100, "a", at(1, 0));
        r.note(100 + WINDOW, "b", at(2, 0));
        assert!(r.of("a").is_some());
        r.note(101 + WINDOW, "c", at(3, 0));
        assert!(r.of("a").is_none() && r.of("b").is_some());
        for n in 0..=MAX_STRETCHES as u32 {
            r.note(101 + WINDOW, &format!("x{n}"), at(5, 0));
        }
        assert!(r.of("b").is_none() && r.of(&format!("x{MAX_STRETCHES}")).is_some());
        assert!(r.stretches <= MAX_STRETCHES);
    }
}

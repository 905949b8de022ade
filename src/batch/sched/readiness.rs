//! Readiness: whether an element could start, if there were room for it.
//!
//! [`Sched::readiness`] alone decides that, for the pass, for the account of pending time and for
//! the listing of reasons. The conditions of a queue are [`View::queue_closed`], because a queue
//! that opens must not touch each of its jobs; room is the matter of the policies.

use crate::batch::sched::Sched;
use crate::batch::sched::view::View;
use crate::batch::state::Job;
use crate::lang::depend::DepValue;
use crate::model::JobRef;
use crate::model::reason::PendReason;

/// The elements of a job that a question is about.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ReadinessQuery {
    /// Any element of a group; 0: of the elements in no group.
    Group(u32),
    /// The elements of an array that nothing has happened to.
    Untouched,
    /// The element with this index; 0 for a job that is no array.
    Element(u32),
}

/// The reason for which elements do not start, whatever room there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotReady {
    pub reason: PendReason,
    /// Does the time until then count as eligible pending time?
    pub eligible: bool,
}

impl NotReady {
    fn because(reason: PendReason) -> Result<(), NotReady> {
        Err(NotReady { reason, eligible: !reason.makes_ineligible() })
    }
}

impl Sched {
    /// Could elements of a job start, if there were room? The first reason against it; those that
    /// make a job ineligible come first.
    pub(crate) fn readiness(
        &self,
        view: &View,
        job: &Job,
        of: ReadinessQuery,
    ) -> Result<(), NotReady> {
        if job.damaged {
            return NotReady::because(PendReason::Damaged);
        }
        let (group, held) = match of {
            ReadinessQuery::Group(group) => (group, None),
            ReadinessQuery::Untouched => (0, job.untouched_held()),
            ReadinessQuery::Element(idx) => {
                (job.part_no(idx), job.view(idx).and_then(|v| v.held()))
            }
        };
        if let Some(reason) = held {
            return Err(NotReady { reason, eligible: false });
        }
        if self.starts_later(job.id, job.spec_of(group).begin_time) {
            return NotReady::because(PendReason::StartTime);
        }
        if self.is_delayed(view, job, group) {
            return NotReady::because(PendReason::Delayed);
        }
        match dependency(view, job.id, of) {
            DepValue::True => {}
            DepValue::False => return NotReady::because(PendReason::Dependency),
            DepValue::Never => return NotReady::because(PendReason::DependencyNever),
        }
        if let ReadinessQuery::Element(idx) = of
            && let Some(reason) = self.pause(view, job, idx)
        {
            return NotReady::because(reason);
        }
        if job.at_limit() {
            return NotReady::because(PendReason::ArrayLimit);
        }
        // the last one: whatever has no other reason is routed
        match view.site.is_pipe(job.queue_of(group)) {
            true => NotReady::because(PendReason::PipeQueue),
            false => Ok(()),
        }
    }

    /// The reason for which an element that went back to the queue waits: for the end of an attempt
    /// that it has left behind, for its turn in a chunk, or for the instant of its next start.
    fn pause(&self, view: &View, job: &Job, idx: u32) -> Option<PendReason> {
        let at = JobRef { job: job.id, idx };
        if view.state.job_chunks().waits(at) {
            return Some(PendReason::Chunk);
        }
        if view.unreached.bars(at) {
            return Some(PendReason::Zombie);
        }
        let waits = self.lone.get(at).is_some_and(|lone| lone.entry.is_none());
        waits.then(|| job.returned_for(idx))
    }
}

/// The dependency condition of elements. Of a group whose elements wait one by one: of the one that
/// comes first to its end.
fn dependency(view: &View, job: u32, of: ReadinessQuery) -> DepValue {
    let Some(ready) = view.depends.ready_elements(job) else { return view.depends.value(job) };
    match of {
        ReadinessQuery::Group(_) => view.depends.value(job),
        // none of them is known to be ready: each is asked about by itself
        ReadinessQuery::Untouched => DepValue::False,
        ReadinessQuery::Element(idx) if ready.contains(&idx) => DepValue::True,
        ReadinessQuery::Element(idx) if view.depends.never(JobRef { job, idx }) => DepValue::Never,
        ReadinessQuery::Element(_) => DepValue::False,
    }
}

//! Eligible and ineligible pending time (TRACK_ELIGIBLE_PENDINFO=Y): a job waits ineligible while
//! more room would not help it: it is held, before its start time, waits for others, or its queue
//! is inactive, outside its windows or gone, or a limit with INELIGIBLE=Y keeps it. All other
//! waiting is eligible.
//!
//! Intervals are kept, not samples: whether a job is eligible is looked at only after
//! something about it or its queue has changed, and only a change is logged (LSF_ELIGIBLE). A job
//! that was always eligible has no record and no entry, so that most cost nothing, and none does
//! while the parameter is off. The elements of an array share the entry of the array until one
//! differs.

use crate::batch::sched::ReadinessQuery;
use crate::batch::state::{Elem, ElemState, Job};
use crate::batch::step::RECORDS_PER_TURN;
use crate::batch::{Mbatchd, StepContext};
use crate::model::JobRef;
use crate::model::event::Event;

/// Jobs that one turn looks at.
const LOOKS_PER_TURN: usize = 4096;

impl Mbatchd {
    /// Logs who became eligible, and who no longer is.
    pub(crate) fn eligible_due(&mut self, context: &mut StepContext) {
        // not all start times that are over were taken off the timer, or not all jobs looked at
        if self.works.is_refilling() || self.sched.begins_due(context.now) {
            return;
        }
        let (sched, view) = self.sched_and_view();
        let by_limits = sched.take_made_ineligible(&view);
        by_limits.into_iter().for_each(|job| self.eligible_touched(job));
        let (mut budget, mut looks) = (RECORDS_PER_TURN, LOOKS_PER_TURN);
        while budget > 0 && looks > 0 {
            let from = |id| self.state.jobs_from(id).next().map(|job| job.id);
            let Some(id) = self.eligible.next(from) else { return };
            looks -= 1;
            for (at, on) in self.eligible_changes(id) {
                self.emit(context, Event::Eligible { at, on });
                budget = budget.saturating_sub(1);
            }
        }
    }

    /// The records to be logged of a job: of the whole first, as its elements follow it.
    fn eligible_changes(&self, id: u32) -> Vec<(JobRef, bool)> {
        let mut changes = Vec::new();
        let Some(job) = self.state.job(id) else { return changes };
        if job.tally().pend + job.tally().psusp == 0 {
            return changes;
        }
        let at = JobRef { job: id, idx: 0 };
        let one_by_one = self.deps.ready_elements(id);
        let all =
            if job.is_array() { ReadinessQuery::Untouched } else { ReadinessQuery::Element(0) };
        let on = self.is_eligible(job, 0, all);
        let known = self.state.waited().own_is_eligible(at).unwrap_or(true);
        if on != known {
            changes.push((at, on));
        }
        let Some(array) = job.array() else { return changes };
        let mut look = |idx: u32, elem: Option<&Elem>| {
            let at = JobRef { job: id, idx };
            if elem.is_some_and(|e| !matches!(e.state, ElemState::Pend(_))) {
                return;
            }
            let part = elem.map_or(0, |e| e.part);
            let may = self.is_eligible(job, part, ReadinessQuery::Element(idx));
            let known = self.state.waited().own_is_eligible(at).unwrap_or(on);
            if may != known {
                changes.push((at, may));
            }
        };
        let some_own = job.tally().psusp > 0 || !job.parts().is_empty();
        if some_own || self.state.waited().has_elements(id) {
            array.touched().for_each(|(idx, e)| look(idx, Some(e)));
        }
        for &idx in one_by_one.into_iter().flatten().filter(|idx| array.fresh_has(**idx)) {
            look(idx, None);
        }
        changes
    }

    /// Does the pending time of elements count as eligible?
    fn is_eligible(&self, job: &Job, group: u32, of: ReadinessQuery) -> bool {
        let view = self.view();
        let spec = job.spec_of(group);
        let consumer = self.site.rules.consumer((job.queue_of(group), job.user), spec);
        view.queue_closed(job.queue_of(group)).is_none()
            && !view.ineligible_by_limit(consumer, spec.min_slots.max(1))
            && self.sched.readiness(&view, job, of).err().is_none_or(|why| why.eligible)
    }
}

//! bkill, bstop and bresume of many pending elements of an array: one record for all of them
//! (LSF_ARRAY_SIGNAL) instead of JOB_SIGNAL and JOB_STATUS for each.
//!
//! Elements that were started before, or have an account of their waiting of their own, are dealt
//! with one by one, and so are few elements.

use crate::batch::lifecycle::control::ControlRequest;
use crate::batch::state::{ElemState, ElementView};
use crate::batch::{Mbatchd, StepContext};
use crate::model::JobRef;
use crate::model::action::JobAction;
use crate::model::event::{ArraySignal, Event};
use crate::model::job_state::JobState;
use crate::model::reason::PendReason;
use crate::model::signals::ENDING_SIGNALS;
use crate::proto::client::Verb;
use crate::proto::machine::Effect;
use std::collections::BTreeMap;

/// Elements that one record tells of, and that are changed in one unit of work.
pub(crate) const TOGETHER: usize = 4096;

impl Mbatchd {
    /// Can the request change this element together with others, for all of which its effect is the
    /// same?
    pub(crate) fn goes_together(&self, a: &ControlRequest, at: JobRef) -> bool {
        let Some(job) = self.state.job(at.job).filter(|job| job.is_array()) else { return false };
        let held = match job.view(at.idx) {
            Some(ElementView::Untouched(held)) => held,
            Some(ElementView::Own(e)) => match &e.state {
                ElemState::Pend(p) if e.attempts == 0 => p.held,
                _ => return false,
            },
            None => return false,
        };
        let does = match &a.c.verb {
            Verb::Kill | Verb::Remove => true,
            Verb::Signal { number, .. } => ENDING_SIGNALS.contains(number),
            Verb::Stop => a.holds(held).is_some(),
            Verb::Resume => held.is_some() && !self.is_locked(a, held),
            _ => false,
        };
        does && self.state.waited().own_is_eligible(at).is_none()
    }

    /// Does what the request asks for of pending elements.
    pub(crate) fn control_together(
        &mut self,
        context: &mut StepContext,
        a: &ControlRequest,
        id: u32,
        elems: Vec<u32>,
    ) {
        if elems.len() < self.works.few() {
            for idx in elems {
                self.control_one(context, a, JobRef { job: id, idx });
            }
            return;
        }
        let Some(job) = self.state.job(id) else { return };
        // those of one group are of one submission
        let mut groups: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for idx in elems {
            groups.entry(job.part_no(idx)).or_default().push(idx);
        }
        for elems in groups.into_values() {
            self.signal_elements(context, a, id, elems);
        }
    }

    fn signal_elements(
        &mut self,
        context: &mut StepContext,
        a: &ControlRequest,
        id: u32,
        elems: Vec<u32>,
    ) {
        let (action, state, reason) = match &a.c.verb {
            Verb::Stop => (JobAction::Stop, JobState::Psusp, a.stop_reason().number()),
            Verb::Resume => (JobAction::Resume, JobState::Pend, PendReason::Resumed.number()),
            _ => (JobAction::Kill, JobState::of_end(a.as_done()), 0),
        };
        let ends = state.is_finished();
        let (first, elems) =
            (elems.first().copied(), crate::batch::state::element_groups::ranges(elems));
        let signal = ArraySignal {
            elems: elems.clone(),
            signal: a.signal(JobRef { job: id, idx: 0 }, action, 0),
            status: state.into(),
            reason,
            end_time: if ends { context.now.secs() } else { 0 },
            exit_info: if ends { a.killed() } else { 0 },
        };
        self.emit(context, Event::ArraySignal(Box::new(signal)));
        if let Some(idx) = first.filter(|_| ends)
            && let Some(finish) = self.finish_record(JobRef { job: id, idx })
        {
            context.out.push(Effect::AccountElements(Box::new(finish), elems));
        }
    }
}

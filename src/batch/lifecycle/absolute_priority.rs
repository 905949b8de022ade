//! Requeued jobs of a queue with APS_PRIORITY count as newly submitted, and lose the priority of
//! bmod -aps. A job that migrates or is run again after its host was lost keeps it.

use crate::batch::{Mbatchd, StepContext};
use crate::model::JobRef;
use crate::model::event::JobModify;
use crate::model::specfield::SpecField;
use crate::proto::client::IdSel;

impl Mbatchd {
    /// Is an element that goes back to its queue to count as newly submitted there?
    pub(crate) fn counts_anew(&self, at: JobRef) -> bool {
        let job = self.state.job(at.job);
        job.is_some_and(|job| self.has_absolute_priority(job, job.part_no(at.idx)))
    }

    /// An element was requeued: what bmod -aps set is lost.
    pub(crate) fn forget_absolute_priority(&mut self, context: &mut StepContext, at: JobRef) {
        let Some(job) = self.state.job(at.job) else { return };
        if job.spec_at(at.idx).further.aps.is_none() {
            return;
        }
        let one = IdSel { job: at.job, elems: vec![(at.idx, at.idx, 1)] };
        if job.is_array() && self.room_for_parts(job, &one, 1).is_err() {
            return;
        }
        let Ok(owner) = self.owner(at.job) else { return };
        let mut spec = (**job.spec_at(at.idx)).clone();
        spec.further.aps = None;
        spec.further.trim();
        let fields = vec![SpecField::AbsolutePriority];
        let of = match job.is_array() {
            true => JobModify { elems: one.elems, job: job.id, ..JobModify::default() },
            false => job.change_of(0),
        };
        self.record_modified(context, &owner, JobModify { spec, fields, ..of });
    }
}

//! BSWITCH_MODIFY_RUSAGE of lsb.params(5): started jobs that are switched reserve what their
//! requirement says in the new queue.

use crate::batch::lifecycle::meant_elements::Meant;
use crate::batch::site::permissions::Caller;
use crate::batch::state::Job;
use crate::batch::state::element_groups::ranges;
use crate::batch::{Mbatchd, StepContext};
use crate::lang::resreq::ResReq;
use crate::model::event::JobModify;

impl Mbatchd {
    /// The elements meant are of their new queue now; further parts of a whole array follow one by
    /// one.
    pub(crate) fn switch_reserved(
        &mut self,
        context: &mut StepContext,
        who: &Caller,
        id: u32,
        meant: &[Meant],
    ) {
        let mut reserves = false;
        for m in meant.iter().filter(|m| m.part == 0 || !m.elems.is_empty()) {
            reserves |= self.switch_rusage(context, who, (id, m.part), &m.elems);
        }
        if reserves {
            self.tell_limits(context, id);
        }
    }

    /// The started ones among these elements, which are of their new queue now; none named: all of
    /// a part. Returns whether they reserve something else, of which `tell_limits` takes note.
    pub(crate) fn switch_rusage(
        &mut self,
        context: &mut StepContext,
        who: &Caller,
        (id, part): (u32, u32),
        elems: &[u32],
    ) -> bool {
        if !self.site.params().bswitch_modify_rusage() {
            return false;
        }
        let change = self.state.job(id).and_then(|job| self.with_new_rusage(job, part, elems));
        let Some(change) = change else { return false };
        self.record_modified(context, who, change);
        true
    }

    fn with_new_rusage(&self, job: &Job, part: u32, elems: &[u32]) -> Option<JobModify> {
        let started: Vec<u32> = match elems.is_empty() {
            true => job.started_of(part).into_iter().collect(),
            false => elems.iter().copied().filter(|idx| job.is_started(*idx)).collect(),
        };
        let first = *started.first()?;
        let spec = job.spec_at(first);
        let was = job.effective_requirement(job.elem(first)?)?;
        let read = |text: &str| self.site.names.parse(text).ok();
        let (ResReq::Simple(mut is), ResReq::Simple(new)) =
            (read(was)?, read(&self.effective(spec).ok()?)?)
        else {
            return None;
        };
        if is.rusage == new.rusage {
            return None;
        }
        is.rusage = new.rusage;
        let of = match elems.is_empty() {
            true => job.change_of(part),
            false => JobModify { job: job.id, elems: ranges(started), ..JobModify::default() },
        };
        let eff_res_req = ResReq::Simple(is).to_string();
        Some(JobModify { spec: (**spec).clone(), eff_res_req, ..of })
    }
}

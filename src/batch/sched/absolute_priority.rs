//! The absolute priorities of pending jobs as commands list them (APS_PRIORITY of lsb.queues(5)).

use crate::batch::sched::Sched;
use crate::batch::sched::aps_rank::{ApsClass, pending_since};
use crate::batch::sched::view::View;
use crate::batch::site::aps::ApsValue;
use crate::batch::state::Job;

impl Sched {
    /// The absolute priority of the pending elements of a group of a job; `None`: their queue has
    /// no APS_PRIORITY.
    pub(crate) fn absolute_priority(&self, view: &View, job: &Job, part: u32) -> Option<ApsValue> {
        let of = self.ranks_of(view, job, part)?;
        let since = pending_since(view.state.spot_of(job, part).base).unwrap_or(job.submit_time);
        Some(of.value(since, view.now.secs()))
    }

    /// The rank of the pending elements of a group of a job, where the larger goes first; `None`:
    /// their queue has no APS_PRIORITY.
    pub(crate) fn absolute_rank(&self, view: &View, job: &Job, part: u32) -> Option<u32> {
        let of = self.ranks_of(view, job, part)?;
        Some(of.rank_now(view.state.spot_of(job, part).base, view.now.secs()))
    }

    /// The ranks of a job's class as of now.
    fn ranks_of(&self, view: &View, job: &Job, part: u32) -> Option<ApsClass> {
        view.site.queue(job.queue_of(part))?.aps.as_ref()?;
        let class = self.entry(job.id, part).map(|entry| self.classes.get(entry.class));
        let mut of = match class.and_then(|class| class.aps.as_deref()) {
            Some(known) => known.clone(),
            None => Self::aps_inputs(view, job.queue_of(part), job, job.spec_of(part))?,
        };
        of.take_share(view);
        Some(of)
    }
}

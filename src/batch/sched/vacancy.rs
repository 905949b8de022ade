//! Resources that preempted jobs leave to a queue that preempts them, less the amounts that pending
//! jobs of higher queues claim (PREEMPTABLE_RESOURCES of lsb.params(5)).

use crate::batch::site::{Queue, Site};
use crate::batch::state::names::{HostId, ResourceId};
use crate::batch::usage::preemptions::Preemptions;
use crate::batch::usage::reserve::ledger::Reserve;

/// The resources of a host as a queue counts them, beside what is not reserved.
#[derive(Clone, Copy)]
pub struct Vacancy<'a> {
    pub(super) host: HostId,
    pub(super) queue: &'a Queue,
    pub(super) site: &'a Site,
    pub(super) reserve: &'a Reserve,
    pub(super) preemptions: &'a Preemptions,
}

impl Vacancy<'_> {
    /// How much more the queue has of a resource than is not reserved; less than 0: it has less.
    /// `None`: jobs are not preempted for it.
    pub fn more(&self, id: ResourceId) -> Option<f64> {
        if !self.site.names.preemptable(id) {
            return None;
        }
        let row = self.reserve.row(self.host, id);
        let kept = self.preemptions.resource_kept_from((row, id), self.queue, self.site);
        Some(self.reserve.vacated_for(self.host, id, &self.queue.preempts) - kept)
    }
}

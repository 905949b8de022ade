//! LSF_RESERVE applied: pending jobs keep slots, or give them back.

use crate::batch::state::change::Applied;
use crate::batch::state::names::{HostId, UserId};
use crate::batch::state::slot_reservations::{ReservedHost, SlotReservation, SlotReservations};
use crate::batch::state::{ElementView, State};
use crate::model::JobRef;
use crate::model::event::JobReserve;

impl State {
    /// The slots that pending jobs keep.
    pub fn slot_reservations(&self) -> &SlotReservations {
        &self.slot_reservations
    }

    pub(crate) fn take_released_slots(&mut self) -> Vec<(HostId, UserId)> {
        self.slot_reservations.take_released()
    }

    /// LSF_RESERVE.
    pub(super) fn reserved_slots(&mut self, r: &JobReserve) -> Applied {
        let Some(job) = self.jobs.get(&r.at.job) else {
            return Applied::Rejected("no such job");
        };
        if !self.is_pending(r.at) {
            return Applied::Rejected("the job is not pending");
        }
        if r.until == 0 {
            self.slot_reservations.remove(r.at);
            return Applied::Nothing;
        }
        let (queue, user) = (job.queue_at(r.at.idx), job.user);
        let mut hosts = Vec::new();
        for (at, (host, planned, kept)) in r.hosts.iter().enumerate() {
            let host = self.names.host_id(host);
            let (planned, kept) = (*planned, *kept.min(planned));
            let memory = r.memory.get(at).copied().unwrap_or(0);
            let has = r.kept_memory.get(at).copied().unwrap_or(memory).min(memory);
            let kept_memory = if kept > 0 { has } else { 0 };
            hosts.push(ReservedHost { host, planned, kept, memory, kept_memory });
        }
        let (at, since, until, start, end) = (r.at, r.since, r.until, r.start, r.end);
        let new = SlotReservation { at, queue, user, since, until, start, end, hosts };
        self.slot_reservations.put(new);
        Applied::Nothing
    }

    fn is_pending(&self, at: JobRef) -> bool {
        let view = self.jobs.get(&at.job).and_then(|job| job.view(at.idx));
        match view {
            Some(ElementView::Untouched(_)) => true,
            Some(ElementView::Own(e)) => e.stat().is_pending(),
            None => false,
        }
    }

    /// A job has changed: what is not pending any more keeps no slots.
    pub(super) fn drop_reservations_of_started(&mut self, job: u32) {
        if self.slot_reservations.is_empty() {
            return;
        }
        let mut gone = self.slot_reservations.of_job(job);
        gone.retain(|at| !self.is_pending(*at));
        for at in gone {
            self.slot_reservations.remove(at);
        }
    }
}

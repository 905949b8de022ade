//! A host that is not `ok` takes no job: it is unavailable, closed, locked, full or busy.

use crate::batch::cluster::hosts::HostStatus;
use crate::batch::sched::place::HostMatch;
use crate::batch::sched::policy::{HostNow, Policy, Question, Room};
use crate::batch::sched::view::View;
use crate::batch::state::names::HostId;
use crate::model::reason::PendReason;

#[derive(Debug)]
pub(super) struct HostStatusPolicy;

/// Why a host of this status takes no job, whatever the job wants.
pub(in crate::batch::sched) fn closed(
    view: &View,
    host: HostId,
    status: HostStatus,
) -> Option<PendReason> {
    Some(match status {
        HostStatus::Ok => return None,
        HostStatus::Unavail => PendReason::LoadUnavailable,
        HostStatus::Unreach => PendReason::SbatchdUnreachable,
        HostStatus::ClosedAdm => PendReason::HostClosed,
        HostStatus::ClosedLock => view.lock_reason(host),
        HostStatus::ClosedWind => PendReason::HostWindow,
        HostStatus::ClosedExcl => PendReason::ExclusiveJob,
        HostStatus::ClosedFull => PendReason::HostFull,
        HostStatus::ClosedBusy => view.busy_reason(host),
    })
}

impl Policy for HostStatusPolicy {
    fn answers(&self) -> &'static [Question] {
        &[Question::Host]
    }

    fn host(&self, class: &HostMatch, host: &HostNow) -> Room {
        closed(&class.view, host.id, host.status).map_or(Room::ANY, Room::none)
    }

    fn further(&self, class: &HostMatch, host: &HostNow) -> u64 {
        let (view, def) = (&class.view, &class.view.site.hosts[host.id]);
        if view.site.preempts || class.lowers_bounded(&def.bounds, &def.external) {
            return 0;
        }
        let max = view.host_max(host.id);
        max.map_or(u64::MAX, |max| max.saturating_sub(host.used.saturating_add(1)))
    }
}

//! A host that is not `ok` takes no job: it is unavailable, closed, locked, full or busy.

use crate::batch::cluster::hosts::HostStatus;
use crate::batch::sched::place::HostMatch;
use crate::batch::sched::policy::{HostNow, Policy, Question, Room};
use crate::model::reason::PendReason;

#[derive(Debug)]
pub(super) struct HostStatusPolicy;

impl Policy for HostStatusPolicy {
    fn answers(&self) -> &'static [Question] {
        &[Question::Host]
    }

    fn host(&self, class: &HostMatch, host: &HostNow) -> Room {
        Room::none(match host.status {
            HostStatus::Ok => return Room::ANY,
            HostStatus::Unavail => PendReason::LoadUnavailable,
            HostStatus::Unreach => PendReason::SbatchdUnreachable,
            HostStatus::ClosedAdm => PendReason::HostClosed,
            HostStatus::ClosedLock => class.view.lock_reason(host.id),
            HostStatus::ClosedWind => PendReason::HostWindow,
            HostStatus::ClosedExcl => PendReason::ExclusiveJob,
            HostStatus::ClosedFull => PendReason::HostFull,
            HostStatus::ClosedBusy => class.view.busy_reason(host.id),
        })
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

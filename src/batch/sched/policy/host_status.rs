//! A host that is not `ok` takes no job: it is unavailable, closed, locked, full or busy.

use crate::batch::cluster::hosts::HostStatus;
use crate::batch::sched::place::HostMatch;
use crate::batch::sched::policy::{HostNow, Policy, Room};
use crate::model::reason::pend;

#[derive(Debug)]
pub(super) struct HostStatusPolicy;

impl Policy for HostStatusPolicy {
    fn host(&self, class: &HostMatch, host: &HostNow) -> Room {
        Room::none(match host.status {
            HostStatus::Ok => return Room::ANY,
            HostStatus::Unavail => pend::LOAD_UNAVAIL,
            HostStatus::Unreach => pend::SBD_UNREACH,
            HostStatus::ClosedAdm => pend::HOST_CLOSED,
            HostStatus::ClosedLock => class.view.lock_reason(host.id),
            HostStatus::ClosedWind => pend::HOST_WINDOW,
            HostStatus::ClosedExcl => pend::EXCLUSIVE_JOB,
            HostStatus::ClosedFull => pend::HOST_FULL,
            HostStatus::ClosedBusy => class.view.busy_reason(host.id),
        })
    }
}

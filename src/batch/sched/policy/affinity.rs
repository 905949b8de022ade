//! affinity[]: a host takes as many tasks as it has processor units for, where AFFINITY of
//! lsb.hosts offers them. Units are given back at the end of a job; while it is suspended, only to
//! queues that preempt it, where PREEMPT_JOBTYPE has AFFINITY.

use crate::batch::sched::place::HostMatch;
use crate::batch::sched::policy::{HostNow, Policy, Question, Room};
use crate::model::reason::PendReason;

#[derive(Debug)]
pub(super) struct Affinity;

impl Policy for Affinity {
    fn answers(&self) -> &'static [Question] {
        &[Question::Host]
    }

    fn counts_draft(&self) -> bool {
        true
    }

    fn host(&self, class: &HostMatch, host: &HostNow) -> Room {
        match class.units_on(host.id, host.leaving.jobs) {
            None => Room::ANY,
            Some(Ok(slots)) => Room { slots, reason: PendReason::ProcessorUnits, rule: None },
            Some(Err(reason)) => Room::none(reason),
        }
    }

    fn further(&self, class: &HostMatch, host: &HostNow) -> u64 {
        class.units_on(host.id, host.leaving.jobs).map_or(u64::MAX, |_| 0)
    }
}

//! cu[]: a job that asks for compute units goes to hosts within units of the type; no job goes to
//! the units that a started job has for itself (cu[excl]).

use crate::batch::sched::place::HostMatch;
use crate::batch::sched::policy::{HostNow, Policy, Question, Room};
use crate::model::reason::PendReason;

#[derive(Debug)]
pub(super) struct ComputeUnits;

impl Policy for ComputeUnits {
    fn answers(&self) -> &'static [Question] {
        &[Question::Host]
    }

    fn host(&self, class: &HostMatch, host: &HostNow) -> Room {
        if class.view.exclusive_units.holds(host.id) {
            return Room::none(PendReason::UnitExclusive);
        }
        class.unit_reason(host.id).map_or(Room::ANY, Room::none)
    }

    fn further(&self, _class: &HostMatch, _host: &HostNow) -> u64 {
        u64::MAX
    }
}

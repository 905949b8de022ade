//! Keeps jobs pending whose number of tasks is not in JOB_SIZE_LIST of lsb.queues(5) or
//! lsb.applications(5): the list was changed after their submission.

use crate::batch::sched::place::HostMatch;
use crate::batch::sched::policy::{HostNow, Policy, Question, Room};
use crate::model::reason::PendReason;

#[derive(Debug)]
pub(super) struct JobSize;

impl Policy for JobSize {
    fn answers(&self) -> &'static [Question] {
        &[Question::Host]
    }

    fn host(&self, class: &HostMatch, _host: &HostNow) -> Room {
        if class.misfit { Room::none(PendReason::JobSize) } else { Room::ANY }
    }

    fn further(&self, _class: &HostMatch, _host: &HostNow) -> u64 {
        u64::MAX
    }
}

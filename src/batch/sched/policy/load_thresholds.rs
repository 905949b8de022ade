//! loadSched of the queue: a host whose load is beyond one takes none of its jobs. The thresholds
//! of lsb.hosts and lsf.cluster make a host busy for all jobs, see `host_status`.

use crate::batch::sched::place::HostMatch;
use crate::batch::sched::policy::{HostNow, Policy, Question, Room};

#[derive(Debug)]
pub(super) struct LoadThresholds;

impl Policy for LoadThresholds {
    fn answers(&self) -> &'static [Question] {
        &[Question::Host]
    }

    fn host(&self, class: &HostMatch, host: &HostNow) -> Room {
        let queue = class.queue;
        let reason = class.view.load_reason(host.id, &queue.bounds, &queue.external);
        reason.map_or(Room::ANY, Room::none)
    }

    fn further(&self, class: &HostMatch, _host: &HostNow) -> u64 {
        let queue = class.queue;
        if class.lowers_bounded(&queue.bounds, &queue.external) { 0 } else { u64::MAX }
    }
}

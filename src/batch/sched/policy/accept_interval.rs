//! JOB_ACCEPT_INTERVAL: a host that was just given a job takes no other for a while, but for the
//! next one of a chunk.

use crate::batch::sched::place::HostMatch;
use crate::batch::sched::policy::{HostNow, Policy, Question, Room};
use crate::batch::state::names::HostId;
use crate::model::reason::PendReason;
use crate::model::time::US;

#[derive(Debug)]
pub(super) struct AcceptInterval;

impl Policy for AcceptInterval {
    fn answers(&self) -> &'static [Question] {
        &[Question::Host]
    }

    fn host(&self, class: &HostMatch, host: &HostNow) -> Room {
        rests_until(class, host.id)
            .filter(|_| !class.follows)
            .map_or(Room::ANY, |_| Room::none(PendReason::JustStarted))
    }

    fn further(&self, class: &HostMatch, _host: &HostNow) -> u64 {
        match class.view.site.accept_interval(&class.queue.conf) {
            0 => u64::MAX,
            _ => 0,
        }
    }
}

/// When a host that was just given a job may take one of this queue again, microseconds of the
/// monotonic clock; `None`: now.
pub(crate) fn rests_until(class: &HostMatch, host: HostId) -> Option<u64> {
    let pause = class.view.site.accept_interval(&class.queue.conf) * US;
    class.view.hosts[host].rests_until(pause, class.view.now)
}

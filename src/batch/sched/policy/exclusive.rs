//! bsub -x: a job that wants its hosts for itself goes to hosts without a job. Hosts on which one
//! runs take no other, see `host_status`.

use crate::batch::sched::place::HostMatch;
use crate::batch::sched::policy::{HostNow, Policy, Question, Room};
use crate::model::reason::PendReason;

#[derive(Debug)]
pub(super) struct Exclusive;

impl Policy for Exclusive {
    fn answers(&self) -> &'static [Question] {
        &[Question::Host]
    }

    fn host(&self, class: &HostMatch, host: &HostNow) -> Room {
        if !class.kind.exclusive {
            return Room::ANY;
        }
        // preempted jobs share a host with an exclusive one where the site wants that
        let used = match class.view.site.params().preemption.exclusive {
            true => host.used,
            false => class.view.host_used(host.id),
        };
        let kept = || class.kept_by_others(host.id, host.backfills).any(|(_, kept)| kept > 0);
        match used > 0 || kept() {
            true => Room::none(PendReason::Exclusive),
            false => Room::ANY,
        }
    }

    fn further(&self, class: &HostMatch, _host: &HostNow) -> u64 {
        if class.kind.exclusive { 0 } else { u64::MAX }
    }
}

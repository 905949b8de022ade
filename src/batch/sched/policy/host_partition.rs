//! HostPartition of lsb.hosts(5): a user without a share does not get a slot of its hosts. A
//! partition that has all hosts of a queue orders the users of the queue as well, by
//! `sched::fair_order`.

use crate::batch::sched::place::HostMatch;
use crate::batch::sched::policy::{HostNow, Policy, Question, Room};
use crate::model::reason::PendReason;

#[derive(Debug)]
pub(super) struct HostPartition;

impl Policy for HostPartition {
    fn answers(&self) -> &'static [Question] {
        &[Question::Host]
    }

    fn host(&self, class: &HostMatch, host: &HostNow) -> Room {
        let Some(tree) = class.view.site.partition_of(host.id) else { return Room::ANY };
        match class.view.fairshare.has_share(tree, class.limits.consumer.user) {
            true => Room::ANY,
            false => Room::none(PendReason::NoShare),
        }
    }

    fn further(&self, _class: &HostMatch, _host: &HostNow) -> u64 {
        u64::MAX
    }
}

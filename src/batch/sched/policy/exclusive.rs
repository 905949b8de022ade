//! bsub -x: a job that wants its hosts for itself goes to hosts without a job. Hosts on which one
//! runs take no other, see `host_status`.

use crate::batch::sched::place::HostMatch;
use crate::batch::sched::policy::{HostNow, Policy, Room};
use crate::model::reason::PendReason;

#[derive(Debug)]
pub(super) struct Exclusive;

impl Policy for Exclusive {
    fn host(&self, class: &HostMatch, host: &HostNow) -> Room {
        match class.kind.exclusive && host.used > 0 {
            true => Room::none(PendReason::Exclusive),
            false => Room::ANY,
        }
    }
}

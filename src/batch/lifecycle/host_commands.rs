//! HOST_PRE_EXEC and HOST_POST_EXEC on the hosts of a job besides its first one: mbatchd passes the
//! request of the first host on, and the answers back, and keeps nothing of either.
//!
//! Invariants: the first host alone may ask; the order is made of what mbatchd knows of the job; a
//! host may answer for itself alone, and only of a job that has slots there.

use crate::batch::lifecycle::report_standing::Standing;
use crate::batch::state::names::HostId;
use crate::batch::{Mbatchd, StepContext};
use crate::model::JobKey;
use crate::proto::host_command::{HostCommandState, HostWork};
use crate::proto::sbd::SbdMsg;

impl Mbatchd {
    /// The first host of an attempt wants a command to run on the others.
    pub(crate) fn hosts_asked(
        &mut self,
        context: &mut StepContext,
        i: HostId,
        key: JobKey,
        work: HostWork,
    ) {
        let standing = self.standing(i, key);
        let after = matches!(work, HostWork::After { .. }) && standing == Standing::Ended;
        if standing != Standing::Running && !after {
            return self.refuse_report(context, i, "host commands", key.job_ref());
        }
        let Some(order) = self.start_order(key) else { return };
        for host in self.hosts_of_attempt(key).into_iter().skip(1) {
            let order = order.clone();
            self.order(context, host, SbdMsg::HostCommand { work, order });
        }
    }

    /// Another host of an attempt tells of a command; its first host hears of it.
    pub(crate) fn host_command_told(
        &mut self,
        context: &mut StepContext,
        i: HostId,
        key: JobKey,
        (work, state): (HostWork, HostCommandState),
    ) {
        let hosts = self.hosts_of_attempt(key);
        let further = |name: &str| {
            let id = self.state.names().find_host(name);
            hosts.iter().skip(1).any(|host| Some(*host) == id)
        };
        let host = self.links.hosts()[i].name.clone();
        if !further(&host) {
            return self.refuse_report(context, i, "a host command", key.job_ref());
        }
        if let Some(first) = hosts.first() {
            self.order(context, *first, SbdMsg::HostTold { key, host, work, state });
        }
    }
}

//! The host of a job of one slot, for the next job of its class: where every policy answers for
//! many of them at once ([`Policy::further`]), the pass does not ask about each. Most jobs come
//! in campaigns, and many hosts that become free at once take several of one.
//!
//! The answer holds from one decision to the next: any other decision ends it, and so does the end
//! of a turn.
//!
//! [`Policy::further`]: crate::batch::sched::policy::Policy::further

use crate::batch::sched::decision::Allocation;
use crate::batch::sched::open_hosts::OpenHosts;
use crate::batch::sched::place::Alternative;
use crate::batch::state::job_hosts::JobHosts;
use crate::batch::state::names::HostId;
use crate::batch::usage::fairshare::account::AccountId;
use crate::model::JobRef;
use std::rc::Rc;

/// A host that takes further jobs of a class.
#[derive(Clone, Debug)]
pub(super) struct SameHost {
    pub(super) class: u32,
    pub(super) host: HostId,
    /// How many it takes for sure.
    pub(super) left: u64,
    /// The requirement that it was found by.
    pub(super) req: Option<Rc<Alternative>>,
}

impl SameHost {
    /// Notes that the next job of a class has the host; none: the host may refuse that job.
    pub(super) fn for_next(self, class: u32, hosts: &OpenHosts) -> Option<SameHost> {
        let takes = self.class == class && hosts.is_open(self.host);
        let left = self.left.checked_sub(1)?;
        takes.then_some(SameHost { left, ..self })
    }

    /// The start of a job there; `account`: the share account that the pass came through.
    pub(super) fn allocation(&self, at: JobRef, account: Option<AccountId>) -> Allocation {
        Allocation::new(at, JobHosts::One((self.host, 1)), self.req.clone(), account)
    }
}

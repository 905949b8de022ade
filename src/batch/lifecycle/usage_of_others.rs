//! The usage of an attempt on the hosts besides its first one, for the report on the job, which the
//! first host writes (lsf-parallel(7)).
//!
//! The script has ended when the first host asks: the job leaves the others at once, and each says
//! what it has used there when it has. The answer names those that have not in [`TELL_MAX`].

use crate::batch::lifecycle::report_standing::Standing;
use crate::batch::state::names::HostId;
use crate::batch::{Mbatchd, StepContext};
use crate::model::JobKey;
use crate::model::time::US;
use crate::proto::sbd::SbdMsg;
use std::collections::HashSet;

/// Longest time that the first host waits for the usage of the others, microseconds. The
/// commands after the job wait for it, too.
const TELL_MAX: u64 = 2 * US;

impl Mbatchd {
    /// The first host of an attempt wants to know its usage on the others.
    pub(crate) fn usage_of_others_asked(
        &mut self,
        context: &mut StepContext,
        i: HostId,
        key: JobKey,
    ) {
        match self.standing(i, key) {
            Standing::Running => {}
            Standing::Foreign | Standing::NoJob => {
                return self.refuse_report(context, i, "a question for usage", key.job_ref());
            }
            // its report is written by now
            Standing::Ended | Standing::Left | Standing::Past => return,
        }
        let asked = self.fanout.ask_usage(key, context.now.mono_us + TELL_MAX);
        let Some(hosts) = asked else { return self.tell_used(context, key) };
        for host in hosts {
            self.fanout.leaves(context.now, key, host);
            self.order(context, host, SbdMsg::Leave { key });
        }
        self.tell_usage_of_others(context, key);
    }

    /// Tells it the first host, if that waits for it and all others have left.
    pub(crate) fn tell_usage_of_others(&mut self, context: &mut StepContext, key: JobKey) {
        if self.fanout.take_asked(key) {
            self.tell_used(context, key);
        }
    }

    /// Tells first hosts that have waited long enough what is known.
    pub(crate) fn usage_of_others_due(&mut self, context: &mut StepContext) {
        for key in self.fanout.take_late_asked(context.now) {
            self.tell_used(context, key);
        }
    }

    fn tell_used(&mut self, context: &mut StepContext, key: JobKey) {
        let mut hosts = self.hosts_of_attempt(key).into_iter();
        let Some(first) = hosts.next().filter(|_| self.state.running(key).is_some()) else {
            return;
        };
        let (usage, left) = self.fanout.used_by_others(key);
        let left: HashSet<HostId> = left.into_iter().collect();
        let missing = hosts.filter(|host| !left.contains(host));
        let without = missing.map(|host| self.state.names().host(host).to_string()).collect();
        let usage = Box::new(usage);
        self.order(context, first, SbdMsg::UsageTold { key, usage, without });
    }
}

//! Knowledge of started attempts that lasts as long as mbatchd: the resources that their hosts
//! report, and the orders of mbatchd that are not confirmed. No record tells it; after each connect
//! the host does.

use crate::batch::state::{ElemState, Run, State};
use crate::model::JobKey;
use crate::model::job::Usage;

impl State {
    fn running_mut(&mut self, key: JobKey) -> Option<&mut Run> {
        match &mut self.jobs.get_mut(&key.job)?.elem_mut(key.idx)?.state {
            ElemState::Run(r) if r.key == key => Some(r),
            _ => None,
        }
    }

    /// Records the usage that the host of an attempt reports at second `now`, by processes and
    /// their groups. Does the attempt run?
    pub(crate) fn report_usage(
        &mut self,
        key: JobKey,
        now: i64,
        usage: Usage,
        (pids, groups): (Vec<u32>, Vec<u32>),
    ) -> bool {
        let Some(run) = self.running_mut(key) else { return false };
        (run.soft.usage, run.soft.usage_time) = (usage, now);
        (run.soft.pids, run.soft.groups) = (pids, groups);
        true
    }

    /// The host is ordered to suspend an attempt, for this suspending reason.
    pub(crate) fn suspend_ordered(&mut self, key: JobKey, reason: u32) {
        self.ordered(key, Some(reason));
    }

    /// The host is ordered to resume an attempt.
    pub(crate) fn resume_ordered(&mut self, key: JobKey) {
        self.ordered(key, Some(0));
    }

    /// The attempt stands as was ordered, or an order was taken back: none is open.
    pub(crate) fn no_order_open(&mut self, key: JobKey) {
        self.ordered(key, None);
    }

    /// An order to suspend an attempt leaves for its host, or one to resume it.
    pub(crate) fn order_sent(&mut self, key: JobKey, resumes: bool) {
        if let Some(run) = self.running_mut(key) {
            run.soft.last_order_resumes = resumes;
        }
    }

    fn ordered(&mut self, key: JobKey, asked: Option<u32>) {
        if let Some(run) = self.running_mut(key) {
            run.soft.asked = asked;
        }
    }

    /// Sets the memory of an attempt behind the back of all that is derived from it.
    #[cfg(test)]
    pub(crate) fn set_memory(&mut self, key: JobKey, mem_kb: u64) {
        let run = self.running_mut(key).unwrap_or_else(|| panic!("{key} ended"));
        run.soft.usage.mem_kb = mem_kb;
    }
}

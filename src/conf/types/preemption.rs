//! Preemption as it is configured.

use super::RawParam;
use crate::conf::diag::Pos;

/// PREEMPTION of a queue.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueuePreemption {
    /// PREEMPTIVE: the queues whose jobs it preempts; none named: all of lower priority. `None`: it
    /// is not preemptive.
    pub preemptive: Option<Vec<PreemptedQueue>>,
    /// PREEMPTABLE: the queues that preempt its jobs; none named: all of higher priority.
    pub preemptable: Option<Vec<PreemptedQueue>>,
}

/// A queue that PREEMPTION names.
#[derive(Clone, Debug, PartialEq)]
pub struct PreemptedQueue {
    pub name: String,
    /// Jobs of the queue with the larger number are preempted first; 0: none is given.
    pub preference: u32,
    pub pos: Pos,
}

/// The parameters of lsb.params about preemption.
#[derive(Clone, Debug, PartialEq)]
pub struct PreemptionParams {
    /// PREEMPT_FOR: limits that count running jobs alone: JL/P of users, JL/U of hosts, and both
    /// of groups.
    pub user_jlp: bool,
    pub host_jlu: bool,
    pub group_jlp: bool,
    pub group_max: bool,
    /// PREEMPT_FOR: the job with the shortest run time is preempted, not the one started last.
    pub least_run_time: bool,
    /// PREEMPT_FOR=OPTIMAL_MINI_JOB: as few jobs as possible are preempted.
    pub fewest_jobs: bool,
    /// PREEMPT_JOBTYPE: exclusive jobs preempt and are preempted.
    pub exclusive: bool,
    /// PREEMPT_JOBTYPE: jobs of backfill queues are preempted.
    pub backfill: bool,
    /// PREEMPT_JOBTYPE: the processor units of preempted jobs are given away.
    pub affinity: bool,
    /// USE_SUSP_SLOTS: queues get the slots of suspended jobs of those that preempt them.
    pub gives_stopped: bool,
    /// MAX_JOB_PREEMPT_RESET: a job that is requeued has not been preempted yet.
    pub resets: bool,
    /// PREEMPTABLE_RESOURCES: jobs are preempted for these, too.
    pub resources: Vec<RawParam>,
    /// PREEMPTION_WAIT_TIME: how long these may be lacking before more jobs are preempted, seconds.
    pub wait_secs: u64,
}

impl Default for PreemptionParams {
    fn default() -> PreemptionParams {
        PreemptionParams {
            user_jlp: false,
            host_jlu: false,
            group_jlp: false,
            group_max: false,
            least_run_time: false,
            fewest_jobs: false,
            exclusive: false,
            backfill: false,
            affinity: false,
            gives_stopped: true,
            resets: true,
            resources: Vec::new(),
            wait_secs: 300,
        }
    }
}

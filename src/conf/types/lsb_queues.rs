//! lsb.queues: queues and the words of their lists. See lsb.queues(5).

use super::{
    ApsConf, ExtendableRunLimit, NqsSettings, Pos, QueueFactors, QueuePreemption, RawParams,
    ShareAssignment, Thresholds, UserTerm,
};
use crate::model::checkpoint::Checkpoint;
use crate::model::further::{WarnAction, WarnTime};
use crate::model::job_control::JobControls;

/// `[default] maximum` of a limit. A lone value is the maximum.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limit<T> {
    /// The limits of a job that requests none.
    pub default: Option<T>,
    /// The limits that no job may exceed.
    pub maximum: Option<T>,
}

/// A run or CPU limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimeLimit {
    /// Seconds.
    pub seconds: u64,
    /// `/host` or `/model`: on whose speed it is counted.
    pub spec: Option<String>,
}

/// `[minimum [default]] maximum` of tasks (PROCLIMIT, TASKLIMIT).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskLimit {
    /// Smallest -n.
    pub min: u32,
    /// -n of a job that gives none.
    pub default: u32,
    /// Largest -n.
    pub max: u32,
}

/// The tasks and the hosts that a job of a queue may have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskParams {
    /// PROCLIMIT or TASKLIMIT.
    pub limit: Option<TaskLimit>,
    /// JOB_SIZE_LIST: the numbers of tasks that a job may have, the default first; empty: any.
    pub sizes: Vec<u32>,
    /// HOSTLIMIT_PER_JOB: the most hosts of a job.
    pub hosts: Option<u32>,
}

/// INTERACTIVE of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Interactive {
    /// YES: both kinds.
    #[default]
    Yes,
    /// NO: batch jobs only.
    No,
    /// ONLY: interactive jobs only.
    Only,
}

/// RESIZABLE_JOBS of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Resizable {
    /// N: but for jobs with -ar.
    #[default]
    No,
    /// Y: by bresize.
    Yes,
    /// auto: jobs ask for further slots by themselves, too.
    Auto,
}

/// A word of HOSTS.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostTerm {
    /// Host, host group, pattern, `all`, `others`, `none`, `allremote`.
    pub name: String,
    /// `~name`.
    pub exclude: bool,
    /// `+n`.
    pub pref: u32,
    /// `name!`: candidate for the first host.
    pub first: bool,
    /// `name@cluster`.
    pub cluster: Option<String>,
    /// The position of the word.
    pub pos: Pos,
}

/// SLOT_RESERVE or RESOURCE_RESERVE: what a pending job keeps until it has enough to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserve {
    /// MAX_RESERVE_TIME, times MBD_SLEEP_TIME; from 1.
    pub turns: u64,
    /// RESOURCE_RESERVE: memory, too, and of sequential jobs.
    pub memory: bool,
}

/// Queue-based fairshare: the slot pool that a queue belongs to, and its share there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SlotPoolConf {
    /// SLOT_POOL.
    pub name: Option<String>,
    /// SLOT_SHARE, percent: 1 to 100.
    pub share: Option<u32>,
    /// MAX_SLOTS_IN_POOL, of the first queue of the pool: slots that its queues use at most.
    pub max: Option<u32>,
    /// USE_PRIORITY_IN_POOL, likewise: slots that no queue of the pool uses by its share are given
    /// to the jobs of all of them by job priority.
    pub by_priority: bool,
}

impl SlotPoolConf {
    /// The name of the pool and the share, where the queue is in a pool.
    pub fn share(&self) -> Option<(&str, u32)> {
        Some((self.name.as_deref()?, self.share?))
    }
}

/// The fairshare that a queue has with others.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FairshareQueues {
    /// FAIRSHARE_QUEUES: further queues that share by the FAIRSHARE of the queue.
    pub names: Vec<String>,
    /// DISPATCH_ORDER=QUEUE: PRIORITY comes before users in these queues.
    pub by_queue: bool,
    /// SLOT_POOL and what goes with it.
    pub slot_pool: SlotPoolConf,
}

/// A Queue section.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueConf {
    /// QUEUE_NAME.
    pub name: String,
    /// PRIORITY.
    pub priority: u32,
    /// NICE.
    pub nice: i32,
    /// DESCRIPTION.
    pub description: String,
    /// USERS; empty is all.
    pub users: Vec<UserTerm>,
    /// HOSTS; empty is all.
    pub hosts: Vec<HostTerm>,
    /// ADMINISTRATORS.
    pub admins: Vec<String>,
    /// RES_REQ, as written.
    pub res_req: Option<String>,
    /// RUNLIMIT.
    pub run_limit: Limit<TimeLimit>,
    /// EXTENDABLE_RUNLIMIT.
    pub extendable: Option<ExtendableRunLimit>,
    /// CPULIMIT.
    pub cpu_limit: Limit<TimeLimit>,
    /// MEMLIMIT, KB.
    pub mem_limit: Limit<u64>,
    /// SWAPLIMIT, KB.
    pub swap_limit: Limit<u64>,
    /// FILELIMIT, KB.
    pub file_limit: Option<u64>,
    /// DATALIMIT, KB.
    pub data_limit: Limit<u64>,
    /// STACKLIMIT, KB.
    pub stack_limit: Option<u64>,
    /// CORELIMIT, KB.
    pub core_limit: Option<u64>,
    /// PROCESSLIMIT.
    pub process_limit: Limit<u64>,
    /// THREADLIMIT.
    pub thread_limit: Limit<u64>,
    /// TASKLIMIT, JOB_SIZE_LIST and HOSTLIMIT_PER_JOB.
    pub tasks: TaskParams,
    /// QJOB_LIMIT, slots of the queue.
    pub qjob_limit: Option<u32>,
    /// UJOB_LIMIT, slots per user.
    pub ujob_limit: Option<u32>,
    /// PJOB_LIMIT, slots per processor.
    pub pjob_limit: Option<f64>,
    /// HJOB_LIMIT, slots per host.
    pub hjob_limit: Option<u32>,
    /// DISPATCH_WINDOW, as written; empty is always.
    pub dispatch_window: String,
    /// RUN_WINDOW, as written; empty is always.
    pub run_window: String,
    /// Load thresholds.
    pub thresholds: Thresholds,
    /// STOP_COND.
    pub stop_cond: Option<String>,
    /// RESUME_COND.
    pub resume_cond: Option<String>,
    /// RERUNNABLE.
    pub rerunnable: bool,
    /// INTERACTIVE.
    pub interactive: Interactive,
    /// EXCLUSIVE: -x is allowed.
    pub exclusive: bool,
    /// EXCLUSIVE=CU[..]: cu[excl] is allowed.
    pub exclusive_units: ExclusiveUnitType,
    /// RESRSV_LIMIT, as written.
    pub reservation_limit: Option<String>,
    pub ignores: IgnoredPolicies,
    /// PRE_EXEC.
    pub pre_exec: Option<String>,
    /// POST_EXEC.
    pub post_exec: Option<String>,
    /// HOST_PRE_EXEC.
    pub host_pre_exec: Option<String>,
    /// HOST_POST_EXEC.
    pub host_post_exec: Option<String>,
    /// JOB_STARTER.
    pub job_starter: Option<String>,
    /// REQUEUE_EXIT_VALUES, as written.
    pub requeue_exit_values: Option<String>,
    /// JOB_ACCEPT_INTERVAL, overriding lsb.params.
    pub job_accept_interval: Option<u64>,
    /// NEW_JOB_SCHED_DELAY, seconds.
    pub new_job_sched_delay: u64,
    /// DEFAULT_HOST_SPEC.
    pub default_host_spec: Option<String>,
    /// FAIRSHARE: the share assignments.
    pub fairshare: Option<Vec<ShareAssignment>>,
    /// FAIRSHARE_QUEUES and DISPATCH_ORDER.
    pub fairshare_queues: FairshareQueues,
    /// APS_PRIORITY.
    pub aps: Option<Box<ApsConf>>,
    /// QUEUE_GROUP: further queues whose jobs are ordered by its APS_PRIORITY.
    pub queue_group: Vec<String>,
    /// The factors of its dynamic priorities.
    pub factors: QueueFactors,
    /// PREEMPTION.
    pub preemption: QueuePreemption,
    /// BACKFILL.
    pub backfill: bool,
    /// INTERRUPTIBLE_BACKFILL: the shortest time that a job is started for, seconds.
    pub interruptible_backfill: Option<u64>,
    /// SLOT_RESERVE or RESOURCE_RESERVE.
    pub reserve: Option<Reserve>,
    /// CHKPNT.
    pub chkpnt: Option<Box<Checkpoint>>,
    /// MIG, minutes.
    pub mig: Option<u64>,
    /// JOB_CONTROLS.
    pub job_controls: JobControls,
    /// TERMINATE_WHEN, as written.
    pub terminate_when: Option<String>,
    /// CHUNK_JOB_SIZE; 1: no chunks.
    pub chunk_job_size: u32,
    /// ESTIMATED_RUNTIME, of jobs without -We.
    pub estimate: Option<String>,
    /// JOB_WARNING_ACTION and JOB_ACTION_WARNING_TIME.
    pub warning: QueueWarning,
    /// RESIZABLE_JOBS.
    pub resizable: Resizable,
    /// PEND_TIME_LIMIT and ELIGIBLE_PEND_TIME_LIMIT, seconds.
    pub pend_limits: [Option<u64>; 2],
    /// The settings of a queue of NQS.
    pub nqs: NqsSettings,
    /// Every parameter as written.
    pub raw: RawParams,
    /// The beginning of the queue's section in the file.
    pub pos: Pos,
}

impl Default for QueueConf {
    fn default() -> Self {
        QueueConf {
            name: String::new(),
            priority: 1,
            nice: 0,
            description: String::new(),
            users: Vec::new(),
            hosts: Vec::new(),
            admins: Vec::new(),
            res_req: None,
            run_limit: Limit::default(),
            extendable: None,
            cpu_limit: Limit::default(),
            mem_limit: Limit::default(),
            swap_limit: Limit::default(),
            file_limit: None,
            data_limit: Limit::default(),
            stack_limit: None,
            core_limit: None,
            process_limit: Limit::default(),
            thread_limit: Limit::default(),
            tasks: TaskParams::default(),
            qjob_limit: None,
            ujob_limit: None,
            pjob_limit: None,
            hjob_limit: None,
            dispatch_window: String::new(),
            run_window: String::new(),
            thresholds: Vec::new(),
            stop_cond: None,
            resume_cond: None,
            rerunnable: false,
            interactive: Interactive::Yes,
            exclusive: false,
            exclusive_units: ExclusiveUnitType::No,
            reservation_limit: None,
            ignores: IgnoredPolicies::default(),
            pre_exec: None,
            post_exec: None,
            host_pre_exec: None,
            host_post_exec: None,
            job_starter: None,
            requeue_exit_values: None,
            job_accept_interval: None,
            new_job_sched_delay: 0,
            default_host_spec: None,
            fairshare: None,
            fairshare_queues: FairshareQueues::default(),
            aps: None,
            queue_group: Vec::new(),
            factors: QueueFactors::default(),
            preemption: QueuePreemption::default(),
            backfill: false,
            interruptible_backfill: None,
            reserve: None,
            chkpnt: None,
            mig: None,
            job_controls: JobControls::default(),
            terminate_when: None,
            chunk_job_size: 1,
            estimate: None,
            warning: QueueWarning::default(),
            resizable: Resizable::No,
            pend_limits: [None; 2],
            nqs: NqsSettings::default(),
            raw: RawParams::new(),
            pos: Pos::default(),
        }
    }
}

/// The warning of jobs before their run limit or deadline ends them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueueWarning {
    /// JOB_WARNING_ACTION, of jobs without -wa.
    pub action: Option<WarnAction>,
    /// JOB_ACTION_WARNING_TIME, of jobs without -wt.
    pub time: Option<WarnTime>,
}

/// The policies that do not hold for the jobs of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct IgnoredPolicies {
    /// IGNORE_DEADLINE.
    pub deadline: bool,
    /// SLA_GUARANTEES_IGNORE.
    pub guarantees: bool,
}

/// The compute units that a job of a queue may have for itself (cu[excl]).
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ExclusiveUnitType {
    /// The queue has no such type.
    #[default]
    No,
    /// EXCLUSIVE=CU[]: those of the default type, and of finer ones.
    DefaultType,
    /// EXCLUSIVE=CU[type]: those of this type, and of finer ones.
    Type(String),
}

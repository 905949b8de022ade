//! lsb.params: the parameters of the whole batch system, with the documented defaults. Parameters
//! that a queue may set for itself are in lsb_queues.rs too. See lsb.params(5).

use super::{
    ExceptionParams, JobAccess, LogFileParams, PreemptionParams, RawParams, SchedulerParams,
};
use crate::conf::units::yes_no;
use crate::lang::exitcodes::ExitCodes;
use crate::lang::resreq::Distribute;

/// JOB_CWD_TTL of directories that are never removed.
pub const TTL_NEVER: u64 = 0x7fff_ffff;

/// JOB_DISTRIBUTE_ON_HOST: the words.
pub const DISTRIBUTES: [(&str, Distribute); 3] =
    [("any", Distribute::Any), ("balance", Distribute::Balance), ("pack", Distribute::Pack(None))];

/// BJOBS_RES_REQ_DISPLAY: the words.
pub const RES_REQ_DISPLAYS: [(&str, ResReqDisplay); 3] =
    [("none", ResReqDisplay::None), ("brief", ResReqDisplay::Brief), ("full", ResReqDisplay::Full)];

/// JOB_GROUP_CLEAN: the job groups that leave when they are empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GroupClean {
    #[default]
    No,
    /// Groups that submissions have made, without a limit.
    Implicit,
    All,
}

/// BJOBS_RES_REQ_DISPLAY: the resource requirements that `bjobs -l` shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResReqDisplay {
    None,
    /// The combined and the effective one.
    #[default]
    Brief,
    /// The requirements of job, application profile and queue, too.
    Full,
}

/// REMOVE_HUNG_JOBS_FOR: the jobs that hang and are removed, seconds after that; None: never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HungJobs {
    /// After the run limit of the job.
    pub runlimit: Option<u64>,
    /// After the loss of its first host.
    pub host_unavail: Option<u64>,
}

/// The jobs that end unasked, and the directories that are removed after jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobRemoval {
    /// Seconds after which an orphan ends; None: never.
    pub orphan_grace: Option<u64>,
    /// JOB_CWD_TTL, hours for which a directory made for a job is kept; [`TTL_NEVER`]: for ever.
    pub directory_hours: Option<u64>,
    pub hung: HungJobs,
}

impl BatchParams {
    /// CLEAN_PERIOD_DONE, seconds, less than CLEAN_PERIOD; `None`: DONE jobs stay as others do.
    pub fn clean_period_done(&self) -> Option<u64> {
        let done: Option<u64> = self.raw.get("CLEAN_PERIOD_DONE")?.text.parse().ok();
        done.filter(|done| *done < self.clean_period)
    }

    /// BJOBS_RES_REQ_DISPLAY.
    pub fn res_req_display(&self) -> ResReqDisplay {
        let word = self.raw.get("BJOBS_RES_REQ_DISPLAY").map_or("", |value| &value.text);
        let known = RES_REQ_DISPLAYS.iter().find(|(known, _)| known.eq_ignore_ascii_case(word));
        known.map_or(ResReqDisplay::Brief, |(_, display)| *display)
    }

    /// BSWITCH_MODIFY_RUSAGE: a started job that is switched reserves as in its new queue.
    pub fn bswitch_modify_rusage(&self) -> bool {
        self.raw.get("BSWITCH_MODIFY_RUSAGE").and_then(|value| yes_no(&value.text)) == Some(true)
    }

    /// JOB_DISTRIBUTE_ON_HOST: how processor units are chosen for jobs that do not say.
    pub fn job_distribute(&self) -> Distribute {
        let word = self.raw.get("JOB_DISTRIBUTE_ON_HOST").map_or("any", |value| &value.text);
        let known = DISTRIBUTES.iter().find(|(known, _)| known.eq_ignore_ascii_case(word));
        known.map_or(Distribute::Any, |(_, distribute)| *distribute)
    }
}

/// lsb.params, with the documented defaults.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchParams {
    /// ADVRSV_USER_LIMIT.
    pub advrsv_user_limit: u32,
    /// DEFAULT_QUEUE: tried in order when bsub has no -q. Empty: a queue named `default`.
    pub default_queue: Vec<String>,
    /// DEFAULT_PROJECT.
    pub default_project: String,
    /// DEFAULT_HOST_SPEC.
    pub default_host_spec: Option<String>,
    /// DEFAULT_APPLICATION.
    pub default_application: Option<String>,
    /// DEFAULT_JOBGROUP.
    pub default_jobgroup: Option<String>,
    /// DEFAULT_USER_GROUP.
    pub default_user_group: Option<String>,
    /// DEFAULT_JOB_CWD.
    pub default_job_cwd: Option<String>,
    /// DEFAULT_JOB_OUTDIR.
    pub default_job_outdir: Option<String>,
    /// DEFAULT_RESREQ_ORDER.
    pub default_resreq_order: String,
    /// MBD_SLEEP_TIME, seconds.
    pub mbd_sleep_time: u64,
    /// SBD_SLEEP_TIME, seconds.
    pub sbd_sleep_time: u64,
    /// RUSAGE_UPDATE_RATE: usage is reported at most once in so many SBD_SLEEP_TIME.
    pub rusage_update_rate: u64,
    /// RUSAGE_UPDATE_PERCENT: the change that is reported.
    pub rusage_update_percent: u32,
    /// JOB_ACCEPT_INTERVAL, in MBD_SLEEP_TIMEs.
    pub job_accept_interval: u64,
    /// NLB_RANK_AGE: age at which a list of the load balancer is asked for again, seconds.
    pub nlb_rank_age: u64,
    /// JOB_SCHEDULING_INTERVAL: shortest scheduling cycle, milliseconds.
    pub sched_interval_min_ms: u64,
    /// PREEXEC_EXCLUDE_HOST_EXIT_VALUES.
    pub preexec_exclude: Option<ExitCodes>,
    /// CLEAN_PERIOD, seconds.
    pub clean_period: u64,
    /// MAX_JOB_NUM, finished jobs in an lsb.events before it is switched.
    pub max_job_num: u64,
    /// EVENT_UPDATE_INTERVAL, seconds; None: the copy of the event log follows at once.
    pub event_update_interval: Option<u64>,
    /// MIN_SWITCH_PERIOD, ACCT_ARCHIVE_AGE, ENABLE_EVENT_STREAM and those beside them.
    pub log: LogFileParams,
    /// MAX_JOBID.
    pub max_jobid: u64,
    /// MAX_JOB_ARRAY_SIZE.
    pub max_job_array_size: u32,
    /// JOB_TERMINATE_INTERVAL, seconds.
    pub job_terminate_interval: u64,
    /// MAX_SBD_FAIL.
    pub max_sbd_fail: u32,
    /// MAX_USER_PRIORITY; None disables -sp.
    pub max_user_priority: Option<u32>,
    /// JOB_PRIORITY_OVER_TIME: increment and minutes.
    pub job_priority_over_time: Option<(u32, u64)>,
    /// JOB_POSITION_CONTROL_BY_ADMIN.
    pub job_position_control_by_admin: bool,
    /// MAX_USER_JOBS: jobs and arrays of one user; `None`: half of MAX_JOBID.
    pub max_user_jobs: Option<u64>,
    /// MAX_USER_SPACE: what the jobs of one user keep on the master, MB.
    pub max_user_space_mb: u64,
    /// MAX_PEND_JOBS.
    pub max_pend_jobs: Option<u64>,
    /// MAX_PEND_SLOTS.
    pub max_pend_slots: Option<u64>,
    /// SUB_TRY_INTERVAL, seconds.
    pub sub_try_interval: u64,
    /// EGROUP_UPDATE_INTERVAL, seconds.
    pub egroup_interval: Option<u64>,
    /// JOB_DEP_LAST_SUB: a name means the latest job of that name only.
    pub job_dep_last_sub: bool,
    /// JOB_SPOOL_DIR.
    pub job_spool_dir: Option<String>,
    /// PG_SUSP_IT, seconds.
    pub pg_susp_it: u64,
    /// CPU_TIME_FACTOR.
    pub cpu_time_factor: f64,
    /// RUN_TIME_FACTOR.
    pub run_time_factor: f64,
    /// RUN_JOB_FACTOR.
    pub run_job_factor: f64,
    /// COMMITTED_RUN_TIME_FACTOR.
    pub committed_run_time_factor: f64,
    /// HIST_HOURS: after so many hours a tenth is left of what was used.
    pub hist_hours: f64,
    /// RUN_TIME_DECAY: the run time of running jobs decays too.
    pub run_time_decay: bool,
    /// ENABLE_HIST_RUN_TIME: the run time of finished jobs counts.
    pub enable_hist_run_time: bool,
    /// ABS_RUNLIMIT and JOB_RUNLIMIT_RATIO.
    pub run_limits: RunLimitParams,
    /// CHUNK_JOB_DURATION, seconds.
    pub chunk_job_duration: Option<u64>,
    /// PARALLEL_SCHED_BY_SLOT and others of the scheduler.
    pub scheduler: SchedulerParams,
    /// DISABLE_UACCT_MAP.
    pub disable_uacct_map: bool,
    /// COMPUTE_UNIT_TYPES.
    pub compute_unit_types: ComputeUnitTypes,
    /// RESOURCE_RESERVE_PER_TASK.
    pub resource_reserve_per_task: bool,
    /// MAX_JOB_MSG_NUM: messages of a job.
    pub max_job_msg_num: u32,
    /// MAX_JOB_ATTA_SIZE: largest data file of a message, KB; None: no limit of the site.
    pub max_job_atta_kb: Option<u64>,
    /// JOB_GROUP_CLEAN.
    pub job_group_clean: GroupClean,
    /// JOB_INCLUDE_POSTPROC.
    pub job_include_postproc: bool,
    /// The time limits of commands before and after jobs.
    pub command_timeouts: CommandTimeouts,
    /// Access to the jobs of others, and to own ones that administrators have stopped.
    pub job_access: JobAccess,
    /// PRIVILEGED_USER_FORCE_BKILL.
    pub force_kill_by_admins: bool,
    /// TRACK_ELIGIBLE_PENDINFO.
    pub track_eligible: bool,
    /// SCHED_METRIC_ENABLE and SCHED_METRIC_SAMPLE_PERIOD.
    pub sched_metric: SchedMetric,
    /// PREEMPT_FOR, PREEMPT_JOBTYPE and the others about preemption.
    pub preemption: PreemptionParams,
    /// How dependency conditions are evaluated.
    pub evaluation: DependencyEvaluation,
    /// ORPHAN_JOB_TERM_GRACE_PERIOD and REMOVE_HUNG_JOBS_FOR.
    pub removal: JobRemoval,
    /// EXIT_RATE_TYPE, EADMIN_TRIGGER_DURATION and the others about exceptions.
    pub exceptions: ExceptionParams,
    /// Every parameter as written.
    pub raw: RawParams,
}

impl Default for BatchParams {
    fn default() -> Self {
        BatchParams {
            advrsv_user_limit: 100,
            default_queue: Vec::new(),
            default_project: "default".to_owned(),
            default_host_spec: None,
            default_application: None,
            default_jobgroup: None,
            default_user_group: None,
            default_job_cwd: None,
            default_job_outdir: None,
            default_resreq_order: "r15s:pg".to_owned(),
            mbd_sleep_time: 60,
            sbd_sleep_time: 30,
            rusage_update_rate: 1,
            rusage_update_percent: 10,
            job_accept_interval: 1,
            nlb_rank_age: 10,
            sched_interval_min_ms: 1_000,
            preexec_exclude: None,
            clean_period: 3_600,
            max_job_num: 1_000,
            event_update_interval: None,
            log: LogFileParams::default(),
            max_jobid: 999_999,
            max_job_array_size: 1_000,
            job_terminate_interval: 10,
            max_sbd_fail: 3,
            max_user_priority: None,
            job_priority_over_time: None,
            job_position_control_by_admin: false,
            max_user_jobs: None,
            max_user_space_mb: 2048,
            max_pend_jobs: None,
            max_pend_slots: None,
            sub_try_interval: 60,
            egroup_interval: None,
            job_dep_last_sub: false,
            job_spool_dir: None,
            pg_susp_it: 180,
            cpu_time_factor: 0.7,
            run_time_factor: 0.7,
            run_job_factor: 3.0,
            committed_run_time_factor: 0.0,
            hist_hours: 5.0,
            run_time_decay: false,
            enable_hist_run_time: false,
            run_limits: RunLimitParams::default(),
            chunk_job_duration: None,
            scheduler: SchedulerParams::default(),
            disable_uacct_map: false,
            compute_unit_types: ComputeUnitTypes::default(),
            resource_reserve_per_task: false,
            max_job_msg_num: 128,
            max_job_atta_kb: None,
            job_group_clean: GroupClean::No,
            job_include_postproc: false,
            command_timeouts: CommandTimeouts::default(),
            job_access: JobAccess::default(),
            force_kill_by_admins: false,
            track_eligible: false,
            sched_metric: SchedMetric { enabled: false, period: 60 },
            preemption: PreemptionParams::default(),
            evaluation: DependencyEvaluation::default(),
            removal: JobRemoval::default(),
            exceptions: ExceptionParams::default(),
            raw: RawParams::new(),
        }
    }
}

/// The metrics of badmin perfmon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedMetric {
    /// Sampling begins with mbatchd.
    pub enabled: bool,
    /// Seconds of a period.
    pub period: u64,
}

/// How dependency conditions are evaluated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DependencyEvaluation {
    /// EVALUATE_JOB_DEPENDENCY: conditions evaluated in one turn.
    pub most: Option<u32>,
    /// EVALUATE_JOB_DEPENDENCY: conditions evaluated in one turn.
    pub timeout_ms: Option<u64>,
}

/// How run limits count, and how long they may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunLimitParams {
    /// ABS_RUNLIMIT: a run limit is the same on all hosts.
    pub absolute: bool,
    /// JOB_RUNLIMIT_RATIO: the most run limit for each second of -We; 0: no such limit.
    pub ratio: u32,
}

/// Time limits of pre- and post-execution commands, seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommandTimeouts {
    /// JOB_PREPROC_TIMEOUT.
    pub pre: Option<u64>,
    /// JOB_POSTPROC_TIMEOUT.
    pub post: Option<u64>,
}

/// COMPUTE_UNIT_TYPES: the types of compute units, finest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ComputeUnitTypes {
    /// The names of the types.
    pub names: Vec<String>,
    /// The position of the one marked with `!`; else of the first.
    pub default: usize,
}

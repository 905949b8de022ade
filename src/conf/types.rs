//! The typed configuration of a cluster: what the readers produce and everyone else consumes.
//!
//! All plain data: `Clone`, `Debug`, `PartialEq`, no interior references, so a reconfiguration
//! is a swap and a difference is `!=`. Sizes are KB, times seconds, unless a field says
//! otherwise. Expressions and windows stay text here; `lang` gives them meaning.
//! Document implemented: config.md, sections 1 to 12.

use super::diag::Pos;
use super::hosts::HostTable;
use super::lsfconf::LsfConf;
use super::unix::UnixGroups;
use std::collections::BTreeMap;

/// The whole configuration: LSF base and LSF batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterConf {
    /// lsf.conf, lsf.shared, lsf.cluster.NAME and hosts.
    pub base: BaseConf,
    /// The lsb.* files.
    pub batch: BatchConf,
    /// Groups of the operating system that they speak of.
    pub unix: UnixGroups,
    /// When another branch of an `#if time(...)` may hold, seconds since the epoch.
    pub changes: Option<i64>,
}

/// What lim and the commands need: the lsf.* files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BaseConf {
    /// The cluster's name.
    pub name: String,
    /// lsf.conf.
    pub lsf: LsfConf,
    /// lsf.shared.
    pub shared: Shared,
    /// lsf.cluster.NAME.
    pub cluster: ClusterFile,
    /// Names and addresses of the cluster's hosts.
    pub hosts: HostTable,
    /// Hosts that joined by themselves; they are in `cluster` and `hosts` too.
    pub members: Vec<super::Member>,
}

/// What mbatchd needs besides: the lsb.* files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BatchConf {
    /// lsb.params.
    pub params: BatchParams,
    /// lsb.hosts.
    pub hosts: BatchHosts,
    /// lsb.queues, in the order of the file.
    pub queues: Vec<QueueConf>,
    /// lsb.users.
    pub users: BatchUsers,
    /// lsb.resources.
    pub resources: BatchResources,
}

/// A parameter as it was written, with its place.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RawParam {
    /// The value's text, trimmed.
    pub text: String,
    /// Where the value starts.
    pub pos: Pos,
    /// Where a value goes on that spans several lines: byte offset in `text`, position.
    pub breaks: Vec<(usize, Pos)>,
}

impl RawParam {
    /// The position of a piece of `self.text`.
    pub fn pos_of(&self, piece: &str) -> Pos {
        let offset = (piece.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
        self.pos_at(offset)
    }

    /// The position of the byte at `offset` of `self.text`.
    pub fn pos_at(&self, offset: usize) -> Pos {
        let found = self.breaks.partition_point(|(start, _)| *start <= offset);
        let (start, at) = match found.checked_sub(1).and_then(|i| self.breaks.get(i)) {
            Some((start, at)) => (*start, at),
            None => (0, &self.pos),
        };
        let within = self.text.get(start..offset).unwrap_or_default().chars().count();
        Pos { col: at.col.saturating_add(within as u32), ..at.clone() }
    }
}

/// Parameters by upper-case name.
pub type RawParams = BTreeMap<String, RawParam>;

// ---- lsf.shared ----

/// lsf.shared: the names every cluster shares.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shared {
    /// Section Cluster.
    pub clusters: Vec<ClusterName>,
    /// Section HostType.
    pub types: Vec<String>,
    /// Section HostModel.
    pub models: Vec<HostModel>,
    /// Section Resource (built-in resources are not listed here).
    pub resources: Vec<ResourceDef>,
}

/// A row of lsf.shared's Cluster section.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterName {
    /// ClusterName.
    pub name: String,
    /// Servers: candidate masters of a remote cluster.
    pub servers: Vec<String>,
}

/// A row of lsf.shared's HostModel section.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostModel {
    /// MODELNAME.
    pub name: String,
    /// CPUFACTOR, relative speed.
    pub cpu_factor: f64,
    /// ARCHITECTURE, as lim -t prints them.
    pub architectures: Vec<String>,
}

/// TYPE of a resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResourceKind {
    /// Present or not.
    #[default]
    Boolean,
    /// A number.
    Numeric,
    /// A word.
    String,
}

/// A row of lsf.shared's Resource section.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResourceDef {
    /// RESOURCENAME.
    pub name: String,
    /// TYPE.
    pub kind: ResourceKind,
    /// INTERVAL in seconds: a dynamic resource, fed by an elim. None: static.
    pub interval: Option<u64>,
    /// INCREASING: larger is more loaded. None for Boolean and String.
    pub increasing: Option<bool>,
    /// RELEASE: reserved amounts are released while the job is suspended.
    pub release: bool,
    /// CONSUMABLE: may appear in rusage.
    pub consumable: bool,
    /// DESCRIPTION.
    pub description: String,
}

// ---- lsf.cluster.NAME ----

/// lsf.cluster.NAME.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterFile {
    /// ClusterAdmins; the first is the primary LSF administrator.
    pub admins: Vec<String>,
    /// Section Host, in the order of the file (which is the order of master candidates
    /// where LSF_MASTER_LIST is not set).
    pub hosts: Vec<HostDef>,
    /// Section ResourceMap.
    pub resource_map: Vec<ResourceMapping>,
    /// Section Parameters.
    pub params: LimParams,
    /// Section RemoteClusters: names only.
    pub remote_clusters: Vec<String>,
}

/// A row of the Host section.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostDef {
    /// HOSTNAME: the canonical spelling.
    pub name: String,
    /// Host model; None is `!`, found by lim.
    pub model: Option<String>,
    /// Host type; None is `!`, found by lim.
    pub host_type: Option<String>,
    /// Server (runs jobs) or client only.
    pub server: bool,
    /// Busy thresholds by load index.
    pub thresholds: Vec<(String, f64)>,
    /// RESOURCES.
    pub resources: Vec<HostResource>,
    /// RUNWINDOW, as written; empty is always.
    pub run_window: String,
    /// REXPRI: nice of remote tasks, -20 to 20.
    pub rexpri: i32,
    /// ND: local disks, if given.
    pub ndisks: Option<u32>,
    /// It joined by itself.
    pub dynamic: bool,
    /// Where its row stands.
    pub pos: Pos,
}

/// A word of a host's RESOURCES.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostResource {
    /// Resource name.
    pub name: String,
    /// `name=value`, or None for a Boolean.
    pub value: Option<String>,
    /// `!name`: exclusive, only jobs that ask for it run here.
    pub exclusive: bool,
    /// `~name`: the host does not have it.
    pub absent: bool,
}

/// A row of the ResourceMap section.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResourceMapping {
    /// RESOURCENAME.
    pub resource: String,
    /// One instance per bracket.
    pub instances: Vec<ResourceInstance>,
    /// Where its row stands.
    pub pos: Pos,
}

/// One instance of a mapped resource.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResourceInstance {
    /// `value@`, for static resources.
    pub value: Option<String>,
    /// Words in the bracket: host names, `all`, `~host`, `others`; `default` alone means one
    /// instance on each host.
    pub hosts: Vec<String>,
}

/// Section Parameters of lsf.cluster.NAME.
#[derive(Clone, Debug, PartialEq)]
pub struct LimParams {
    /// EXINTERVAL, seconds between load exchanges.
    pub exinterval: u64,
    /// HOST_INACTIVITY_LIMIT, in EXINTERVALs.
    pub host_inactivity_limit: u64,
    /// MASTER_INACTIVITY_LIMIT, in EXINTERVALs.
    pub master_inactivity_limit: u64,
    /// PROBE_TIMEOUT, seconds.
    pub probe_timeout: u64,
    /// RETRY_LIMIT, in EXINTERVALs.
    pub retry_limit: u64,
    /// ADJUST_DURATION, in EXINTERVALs.
    pub adjust_duration: u64,
    /// ELIM_POLL_INTERVAL, seconds.
    pub elim_poll_interval: f64,
    /// LSF_HOST_ADDR_RANGE.
    pub addr_range: super::members::AddrRanges,
    /// ELIM_ABORT_VALUE.
    pub elim_abort_value: i64,
    /// ELIMARGS, as written.
    pub elim_args: String,
    /// Every parameter as written.
    pub raw: RawParams,
}

impl Default for LimParams {
    fn default() -> Self {
        LimParams {
            exinterval: 15,
            host_inactivity_limit: 5,
            master_inactivity_limit: 2,
            probe_timeout: 2,
            retry_limit: 2,
            adjust_duration: 3,
            elim_poll_interval: 5.0,
            addr_range: super::members::AddrRanges::default(),
            elim_abort_value: 97,
            elim_args: String::new(),
            raw: RawParams::new(),
        }
    }
}

// ---- lsb.params ----

/// lsb.params, with the documented defaults.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchParams {
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
    /// JOB_ACCEPT_INTERVAL, in MBD_SLEEP_TIMEs.
    pub job_accept_interval: u64,
    /// JOB_SCHEDULING_INTERVAL: shortest scheduling cycle, milliseconds.
    pub sched_interval_min_ms: u64,
    /// JOB_SCHEDULING_INTERVAL: longest scheduling cycle, seconds.
    pub sched_interval_max: u64,
    /// CLEAN_PERIOD, seconds.
    pub clean_period: u64,
    /// CLEAN_PERIOD_DONE, seconds; defaults to CLEAN_PERIOD.
    pub clean_period_done: u64,
    /// MAX_JOB_NUM, finished jobs in an lsb.events before it is switched.
    pub max_job_num: u64,
    /// MIN_SWITCH_PERIOD, seconds.
    pub min_switch_period: u64,
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
    /// MAX_PEND_JOBS.
    pub max_pend_jobs: Option<u64>,
    /// MAX_PEND_SLOTS.
    pub max_pend_slots: Option<u64>,
    /// SUB_TRY_INTERVAL, seconds.
    pub sub_try_interval: u64,
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
    /// HIST_HOURS.
    pub hist_hours: f64,
    /// USE_SUSP_SLOTS.
    pub use_susp_slots: bool,
    /// ABS_RUNLIMIT: run limits are wall-clock, not normalised.
    pub abs_runlimit: bool,
    /// RESOURCE_RESERVE_PER_TASK.
    pub resource_reserve_per_task: bool,
    /// MAX_JOB_MSG_NUM.
    pub max_job_msg_num: u32,
    /// JOB_INCLUDE_POSTPROC.
    pub job_include_postproc: bool,
    /// ENABLE_USER_RESUME.
    pub enable_user_resume: bool,
    /// PRIVILEGED_USER_FORCE_BKILL.
    pub force_kill_by_admins: bool,
    /// TRACK_ELIGIBLE_PENDINFO.
    pub track_eligible: bool,
    /// SCHED_METRIC_ENABLE.
    pub sched_metric: bool,
    /// SCHED_METRIC_SAMPLE_PERIOD, seconds.
    pub sched_metric_period: u64,
    /// EVALUATE_JOB_DEPENDENCY: conditions looked at in one turn.
    pub evaluate_job_dependency: Option<u32>,
    /// EVALUATE_JOB_DEPENDENCY_TIMEOUT: milliseconds of one turn for them.
    pub evaluate_timeout_ms: Option<u64>,
    /// ORPHAN_JOB_TERM_GRACE_PERIOD: seconds after which an orphan ends; None: never.
    pub orphan_grace: Option<u64>,
    /// MAX_CONCURRENT_QUERY; None is unlimited.
    pub max_concurrent_query: Option<u32>,
    /// Every parameter as written.
    pub raw: RawParams,
}

impl Default for BatchParams {
    fn default() -> Self {
        BatchParams {
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
            job_accept_interval: 1,
            sched_interval_min_ms: 1_000,
            sched_interval_max: 45,
            clean_period: 3_600,
            clean_period_done: 3_600,
            max_job_num: 1_000,
            min_switch_period: 0,
            max_jobid: 999_999,
            max_job_array_size: 1_000,
            job_terminate_interval: 10,
            max_sbd_fail: 3,
            max_user_priority: None,
            job_priority_over_time: None,
            job_position_control_by_admin: false,
            max_pend_jobs: None,
            max_pend_slots: None,
            sub_try_interval: 60,
            job_dep_last_sub: false,
            job_spool_dir: None,
            pg_susp_it: 180,
            cpu_time_factor: 0.7,
            run_time_factor: 0.7,
            run_job_factor: 3.0,
            hist_hours: 5.0,
            use_susp_slots: true,
            abs_runlimit: false,
            resource_reserve_per_task: false,
            max_job_msg_num: 128,
            job_include_postproc: false,
            enable_user_resume: false,
            force_kill_by_admins: false,
            track_eligible: false,
            sched_metric: false,
            sched_metric_period: 60,
            evaluate_job_dependency: None,
            evaluate_timeout_ms: None,
            orphan_grace: None,
            max_concurrent_query: None,
            raw: RawParams::new(),
        }
    }
}

// ---- lsb.hosts ----

/// lsb.hosts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BatchHosts {
    /// Section Host, in the order of the file.
    pub hosts: Vec<HostPolicy>,
    /// Section HostGroup.
    pub groups: Vec<HostGroup>,
    /// Section ComputeUnit.
    pub units: Vec<ComputeUnit>,
}

/// A compute unit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ComputeUnit {
    /// NAME.
    pub name: String,
    /// TYPE.
    pub kind: String,
    /// MEMBER, word by word as written (hosts, groups, units).
    pub members: Vec<String>,
}

/// MXJ of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mxj {
    /// `()`: no limit.
    #[default]
    Unlimited,
    /// `!`: as many as the host has CPUs.
    Cpus,
    /// A number of job slots.
    Slots(u32),
}

/// A row of lsb.hosts' Host section.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostPolicy {
    /// HOST_NAME: a host, host group, type, model or `default`.
    pub name: String,
    /// MXJ.
    pub mxj: Mxj,
    /// JL/U; None is unlimited.
    pub jl_u: Option<u32>,
    /// DISPATCH_WINDOW, as written; empty is always.
    pub dispatch_window: String,
    /// Load thresholds.
    pub thresholds: Thresholds,
    /// MIG, minutes.
    pub mig: Option<u64>,
    /// EXIT_RATE.
    pub exit_rate: Option<u32>,
    /// Where its row stands.
    pub pos: Pos,
}

/// A row of the HostGroup section.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostGroup {
    /// GROUP_NAME.
    pub name: String,
    /// GROUP_MEMBER, word by word as written (hosts, groups, `all`, `~x`, patterns, `!`).
    pub members: Vec<String>,
    /// CONDENSE.
    pub condense: bool,
    /// GROUP_ADMIN.
    pub admins: Vec<String>,
    /// Where its row stands.
    pub pos: Pos,
}

/// loadSched and loadStop of one index.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Threshold {
    /// Name of the load index.
    pub index: String,
    /// loadSched.
    pub sched: Option<f64>,
    /// loadStop.
    pub stop: Option<f64>,
}

/// Thresholds of a host or queue.
pub type Thresholds = Vec<Threshold>;

// ---- lsb.queues ----

/// `[default] maximum` of a limit. A lone value is the maximum.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limit<T> {
    /// What a job gets that asks for nothing.
    pub default: Option<T>,
    /// What no job may exceed.
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
    /// Where the word stands.
    pub pos: Pos,
}

/// A word of USERS or of a member list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UserTerm {
    /// User, group, `all` or `none`.
    pub name: String,
    /// `~name`.
    pub exclude: bool,
    /// `group@`: each member.
    pub members: bool,
    /// Where the word stands.
    pub pos: Pos,
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
    /// PROCLIMIT or TASKLIMIT.
    pub task_limit: Option<TaskLimit>,
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
    /// IGNORE_DEADLINE.
    pub ignore_deadline: bool,
    /// PRE_EXEC.
    pub pre_exec: Option<String>,
    /// POST_EXEC.
    pub post_exec: Option<String>,
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
    /// FAIRSHARE, as written.
    pub fairshare: Option<String>,
    /// PREEMPTION, as written.
    pub preemption: Option<String>,
    /// BACKFILL.
    pub backfill: bool,
    /// CHKPNT, as written.
    pub chkpnt: Option<String>,
    /// MIG, minutes.
    pub mig: Option<u64>,
    /// JOB_CONTROLS, as written.
    pub job_controls: Option<String>,
    /// TERMINATE_WHEN, as written.
    pub terminate_when: Option<String>,
    /// PEND_TIME_LIMIT and ELIGIBLE_PEND_TIME_LIMIT, seconds.
    pub pend_limit: Option<u64>,
    pub eligible_limit: Option<u64>,
    /// Every parameter as written.
    pub raw: RawParams,
    /// Where its section begins.
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
            cpu_limit: Limit::default(),
            mem_limit: Limit::default(),
            swap_limit: Limit::default(),
            file_limit: None,
            data_limit: Limit::default(),
            stack_limit: None,
            core_limit: None,
            process_limit: Limit::default(),
            thread_limit: Limit::default(),
            task_limit: None,
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
            ignore_deadline: false,
            pre_exec: None,
            post_exec: None,
            job_starter: None,
            requeue_exit_values: None,
            job_accept_interval: None,
            new_job_sched_delay: 0,
            default_host_spec: None,
            fairshare: None,
            preemption: None,
            backfill: false,
            chkpnt: None,
            mig: None,
            job_controls: None,
            terminate_when: None,
            pend_limit: None,
            eligible_limit: None,
            raw: RawParams::new(),
            pos: Pos::default(),
        }
    }
}

// ---- lsb.users ----

/// lsb.users.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BatchUsers {
    /// Section UserGroup.
    pub groups: Vec<UserGroup>,
    /// Section User.
    pub users: Vec<UserPolicy>,
}

/// A row of the UserGroup section.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UserGroup {
    /// GROUP_NAME.
    pub name: String,
    /// GROUP_MEMBER.
    pub members: Vec<UserTerm>,
    /// GROUP_MEMBER is `!`: members come from egroup.
    pub external: bool,
    /// GROUP_ADMIN.
    pub admins: Vec<String>,
    /// USER_SHARES, as written.
    pub shares: String,
    /// Where its row stands.
    pub pos: Pos,
}

/// A row of the User section.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UserPolicy {
    /// USER_NAME: a user, group or `default`.
    pub name: String,
    /// `group@`: the limit is each member's.
    pub each_member: bool,
    /// MAX_JOBS, slots.
    pub max_jobs: Option<u32>,
    /// JL/P, slots per processor.
    pub jl_p: Option<f64>,
    /// MAX_PEND_JOBS.
    pub max_pend_jobs: Option<u64>,
    /// MAX_PEND_SLOTS.
    pub max_pend_slots: Option<u64>,
    /// Where its row stands.
    pub pos: Pos,
}

// ---- lsb.resources ----

/// lsb.resources: its sections, read and kept; acting on them comes later.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BatchResources {
    /// The sections in the order of the file.
    pub sections: Vec<ResourceSection>,
}

/// One record of a section of lsb.resources.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResourceSection {
    /// Section name in its documented spelling.
    pub kind: String,
    /// Its parameters: of the section, or of one row of its table.
    pub params: RawParams,
    /// Where it begins.
    pub pos: Pos,
}

//! lsb.applications: application profiles. See lsb.applications(5).

use super::{Limit, Pos, RawParams, Resizable, TaskLimit, TimeLimit};
use crate::model::bind_job::BindPolicy;
use crate::model::checkpoint::Checkpoint;
use crate::model::job_control::JobControls;
use crate::model::limits::MemoryOf;

/// Longest DJOB_HB_INTERVAL and DJOB_RU_INTERVAL, seconds.
pub const TASK_SECS_MAX: u64 = 86_400;

/// An Application section. A parameter that is not set is left to the queue.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ApplicationConf {
    /// NAME.
    pub name: String,
    /// DESCRIPTION.
    pub description: String,
    /// RES_REQ, as written.
    pub res_req: Option<String>,
    /// RUNLIMIT.
    pub run_limit: Limit<TimeLimit>,
    /// CPULIMIT.
    pub cpu_limit: Limit<TimeLimit>,
    /// MEMLIMIT, KB.
    pub mem_limit: Limit<u64>,
    /// MEMLIMIT_TYPE.
    pub memory_of: Option<MemoryOf>,
    /// SWAPLIMIT, KB.
    pub swap_limit: Limit<u64>,
    /// FILELIMIT, KB.
    pub file_limit: Limit<u64>,
    /// DATALIMIT, KB.
    pub data_limit: Limit<u64>,
    /// STACKLIMIT, KB.
    pub stack_limit: Limit<u64>,
    /// CORELIMIT, KB.
    pub core_limit: Limit<u64>,
    /// PROCESSLIMIT.
    pub process_limit: Limit<u64>,
    /// THREADLIMIT.
    pub thread_limit: Limit<u64>,
    /// PROCLIMIT or TASKLIMIT.
    pub task_limit: Option<TaskLimit>,
    /// JOB_SIZE_LIST: the numbers of tasks that a job may have, the default first; empty: any.
    pub job_sizes: Vec<u32>,
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
    /// SUCCESS_EXIT_VALUES, as written.
    pub success_exit_values: Option<String>,
    /// RERUNNABLE.
    pub rerunnable: Option<bool>,
    /// CHKPNT_DIR, CHKPNT_INITPERIOD, CHKPNT_PERIOD and CHKPNT_METHOD.
    pub chkpnt: Option<Box<Checkpoint>>,
    /// PRIORITY, for the factor APP of APS_PRIORITY.
    pub priority: u32,
    /// MIG, minutes.
    pub mig: Option<u64>,
    /// NICE.
    pub nice: Option<i32>,
    /// SUSPEND_CONTROL, RESUME_CONTROL and TERMINATE_CONTROL.
    pub job_controls: JobControls,
    /// BIND_JOB.
    pub bind_job: Option<BindPolicy>,
    /// ABS_RUNLIMIT.
    pub abs_runlimit: Option<bool>,
    /// CHUNK_JOB_SIZE.
    pub chunk_job_size: Option<u32>,
    /// RESIZABLE_JOBS.
    pub resizable: Option<Resizable>,
    /// RESIZE_NOTIFY_CMD.
    pub resize_command: Option<String>,
    /// ESTIMATED_RUNTIME or RUNTIME, as written.
    pub estimate: Option<String>,
    /// JOB_CWD.
    pub job_cwd: Option<String>,
    /// JOB_CWD_TTL, hours; [`super::lsb_params::TTL_NEVER`]: the directory is kept.
    pub job_cwd_ttl: Option<u64>,
    /// ENV_VARS.
    pub env_vars: Vec<(String, String)>,
    /// JOB_INCLUDE_POSTPROC.
    pub include_postproc: Option<bool>,
    /// JOB_POSTPROC_TIMEOUT and JOB_PREPROC_TIMEOUT, seconds.
    pub postproc_timeout: Option<u64>,
    pub preproc_timeout: Option<u64>,
    /// PEND_TIME_LIMIT and ELIGIBLE_PEND_TIME_LIMIT, seconds.
    pub pend_limit: Option<u64>,
    pub eligible_limit: Option<u64>,
    /// Every parameter as written.
    pub raw: RawParams,
    /// The beginning of the section in the file.
    pub pos: Pos,
}

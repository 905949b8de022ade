//! How often jobs go back to their queue, compiled: MAX_JOB_REQUEUE, LOCAL_MAX_PREEXEC_RETRY and
//! LOCAL_MAX_PREEXEC_RETRY_ACTION of an application profile, else of a queue, else of lsb.params
//! (lsb.applications(5), lsb.queues(5), lsb.params(5));
//! PREEXEC_EXCLUDE_HOST_EXIT_VALUES of lsb.params.

use crate::conf::types::{BatchParams, RawParams};
use crate::lang::exitcodes::ExitCodes;

/// LOCAL_MAX_PREEXEC_RETRY where nobody set it.
const PREEXEC_RETRIES: u32 = i32::MAX as u32;

/// How often jobs go back to their queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryLimits {
    /// The number of returns by an exit value, before a job is held.
    pub requeues: u32,
    /// The number of failures of its pre-execution command that send a job back.
    pub pre_exec: u32,
    /// After the last of these a job ends; otherwise it is held.
    pub pre_exec_exits: bool,
    /// The exit values of a pre-execution command that exclude the host for the job.
    pub pre_exec_excludes: Option<ExitCodes>,
}

impl RetryLimits {
    /// The retries of an application profile and a queue; each `None`: jobs have none, or it is
    /// not configured any more.
    pub(super) fn compile(levels: [Option<&RawParams>; 2], params: &BatchParams) -> RetryLimits {
        let text = |name: &str| {
            let own = levels.into_iter().flatten().find_map(|raw| raw.get(name));
            own.or_else(|| params.raw.get(name)).map(|value| value.text.trim())
        };
        let number = |name: &str| text(name).and_then(|text| text.parse().ok());
        let action = text("LOCAL_MAX_PREEXEC_RETRY_ACTION");
        RetryLimits {
            requeues: number("MAX_JOB_REQUEUE").unwrap_or(u32::MAX),
            pre_exec: number("LOCAL_MAX_PREEXEC_RETRY").unwrap_or(PREEXEC_RETRIES),
            pre_exec_exits: action.is_some_and(|action| action.eq_ignore_ascii_case("exit")),
            pre_exec_excludes: params.preexec_exclude.clone(),
        }
    }
}

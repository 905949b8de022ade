//! lsb.applications: application profiles. See lsb.applications(5).

use super::{Limit, Pos, RawParams, TaskLimit, TimeLimit};

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
    /// Every parameter as written.
    pub raw: RawParams,
    /// The beginning of the section in the file.
    pub pos: Pos,
}

//! mbatchd and sbatchd. mbatchd connects to each sbatchd and keeps the connection; after every
//! connect sbatchd tells all it has, so that nothing needs to be remembered about the last one.

use super::host_command::{HostCommandState, HostWork};
use super::validation::{Validate, Verdict};
use crate::model::checkpoint::{CheckpointEnd, CheckpointOrder};
use crate::model::event::NamedHosts;
use crate::model::job::{End, JobSpec, SpoolRef, Usage};
use crate::model::job_control::JobControls;
use crate::model::resize::{ResizeOrder, ResizeTold};
use crate::model::{ByteStr, JobKey};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum SbdMsg {
    // mbatchd -> sbatchd
    /// First message of a connection. A lower epoch than one seen before is refused.
    Hello {
        epoch: u64,
        cluster: String,
        params: SbdParams,
        /// This mbatchd takes an inventory in pieces.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pieces: bool,
    },
    Start(Box<StartJob>),
    /// The bytes asked for by `NeedBlob`.
    Blob {
        at: SpoolRef,
        data: ByteStr,
    },
    /// Act on a started attempt. `order` grows, over restarts too; an old one is ignored.
    Act {
        key: JobKey,
        /// The order's number for an sbatchd that does not know `order`; begins again after 65,536.
        seq: u32,
        #[serde(default, skip_serializing_if = "is_zero")]
        order: u64,
        act: Act,
        /// The suspending reason of `Act::Suspend`; 0 none.
        #[serde(default, skip_serializing_if = "is_no_reason")]
        why: u32,
    },
    /// The end of this attempt is durable: forget it. Also sent for attempts mbatchd does not
    /// know or no longer wants to hear of.
    Forget {
        key: JobKey,
        /// The mail for the job's user about it; empty: none.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        mail: String,
    },
    /// To another host than the first one of a job: run the command of its queue for every host.
    /// Answered by `HostCommandTold` at once and at its end.
    HostCommand {
        work: HostWork,
        order: Box<StartJob>,
    },
    /// To the first host: the state of such a command on another one.
    HostTold {
        key: JobKey,
        host: String,
        work: HostWork,
        state: HostCommandState,
    },
    /// To another host than the first one of a job: the job has slots here. Answered by `Joined` or
    /// `JoinRefused`; one that was told before is answered again.
    Join(Box<StartJob>),
    /// Look whether files of a user have a line for the host of submission. Answered by
    /// `Validated`; only to an sbatchd whose inventory says that it can.
    Validate(Box<Validate>),
    /// The job is over on this host, which is not its first one: what is left of it ends. Answered
    /// by `Left`.
    Leave {
        key: JobKey,
    },
    /// To the first host of a job: what the job has used on the others, as `AskUsage` wants it.
    UsageTold {
        key: JobKey,
        usage: Box<Usage>,
        /// The hosts whose usage is not counted in it, as it could not be had in time.
        without: Vec<String>,
    },
    /// New parameters after a reconfiguration.
    Params(SbdParams),
    /// The new log level of sbatchd.
    Logging(super::logging::Logging),

    // sbatchd -> mbatchd
    /// All attempts known here, after `Hello`; in pieces where mbatchd takes them.
    Inventory {
        boot_id: String,
        tasks: Vec<TaskState>,
        /// Another piece follows.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        more: bool,
        /// In the last piece: the attempts of other first hosts that have joined this host, or have
        /// tasks here. `None`: this sbatchd knows of no such thing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        members: Option<Vec<JobKey>>,
        /// This sbatchd takes `Validate`.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        validates: bool,
        /// The members of which this sbatchd has found tasks and has no order, as it was started
        /// after they had joined. They join again.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        unjoined: Vec<JobKey>,
        /// The slots here of each of `members`, in their order; 0, or none at all: not known.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        member_slots: Vec<u32>,
    },
    /// The answer to the `Validate` of this number.
    Validated {
        number: u64,
        verdict: Verdict,
    },
    Joined {
        key: JobKey,
    },
    JoinRefused {
        key: JobKey,
        why: String,
    },
    Left {
        key: JobKey,
        /// The usage of the job on this host.
        #[serde(default)]
        usage: Box<Usage>,
    },
    /// From another host than the first one of a job: what its tasks use there.
    HostUsage {
        key: JobKey,
        usage: Box<Usage>,
        pids: Vec<u32>,
        /// The process group of each of `pids`.
        groups: Vec<u32>,
        /// A process or task is beyond the memory limit of the job (MEMLIMIT_TYPE).
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        over_memory: bool,
    },
    /// The end of a task of the attempt on this host is to end the job (RTASK_GONE_ACTION). Told
    /// once an attempt, and again after each greeting until the attempt has left.
    TaskGone {
        key: JobKey,
        /// The wait status of the task.
        status: i32,
    },
    /// The state of an attempt; also the answer to a repeated `Start`.
    State(Box<TaskState>),
    NeedBlob {
        at: SpoolRef,
    },
    /// From the first host of a job, whose script has ended: the job leaves the others, and the
    /// report on the job wants to know what it has used there. Answered by `UsageTold`.
    AskUsage {
        key: JobKey,
    },
    /// The first host of a job asks for the command of its queue for every host on the others.
    /// Answered by a `HostTold` of each.
    AskHosts {
        key: JobKey,
        work: HostWork,
    },
    HostCommandTold {
        key: JobKey,
        work: HostWork,
        state: HostCommandState,
    },
    Usage {
        key: JobKey,
        usage: Box<Usage>,
        pids: Vec<u32>,
        pgids: Vec<u32>,
        /// The process group of each of `pids`; empty where there is one.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        groups: Vec<u32>,
    },
}

/// The parameters of lsb.params and lsf.conf that sbatchd gets through mbatchd.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SbdParams {
    /// Seconds between two looks at the usage of a job.
    pub sbd_sleep_time: u64,
    /// Usage is reported at most once in so many of these; 0, of older peers: 1.
    #[serde(skip_serializing_if = "is_zero")]
    pub rusage_update_rate: u64,
    /// The change of usage that is reported, percent; 0, of older peers: 10.
    #[serde(skip_serializing_if = "is_zero")]
    pub rusage_update_percent: u32,
    /// Seconds between INT, TERM and KILL.
    pub job_terminate_interval: u64,
    /// Bench: tasks are not started, they end after the number of seconds in their command if it
    /// is `sleep N`, else at once. Refused outside a personal cluster.
    pub simulated: bool,
    /// This mbatchd takes `TaskGone`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub task_gone: bool,
    /// This mbatchd takes `AskUsage`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub usage_of_others: bool,
}

fn is_zero<T: Default + PartialEq>(number: &T) -> bool {
    *number == T::default()
}

impl SbdParams {
    /// Least seconds between two reports of a job's usage.
    pub fn report_pause(&self) -> u64 {
        self.sbd_sleep_time.saturating_mul(self.rusage_update_rate.max(1))
    }

    /// The share by which usage differs when it is reported.
    pub fn report_share(&self) -> f64 {
        let percent = if self.rusage_update_percent == 0 { 10 } else { self.rusage_update_percent };
        f64::from(percent) / 100.0
    }
}

/// One start order. Everything the host needs but the blobs, which it asks for by place.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StartJob {
    pub key: JobKey,
    /// Boot id of the host the order was made for; a host under another one refuses the order.
    pub boot: Arc<str>,
    pub uid: u32,
    pub gid: u32,
    pub user: Arc<str>,
    pub submit_time: i64,
    pub start_time: i64,
    /// Shared with the job's other attempts where it is sent.
    pub spec: Arc<JobSpec>,
    pub env: SpoolRef,
    pub script: SpoolRef,
    pub hosts: NamedHosts,
    /// The slots in the order of -hostfile, where that names a host again after others; none: as
    /// `hosts`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ranks: Vec<(String, u32)>,
    pub cluster: Arc<str>,
    /// Nice value of the queue.
    pub nice: i32,
    /// Job limits after queue defaults and maxima; run limit normalised to this host.
    pub limits: crate::model::job::Limits,
    pub eff_res_req: Arc<str>,
    /// Number of the last element and the step, for LSB_JOBINDEX_END and _STEP; 0 no array.
    pub index_end: u32,
    pub index_step: u32,
    /// The element's display name.
    pub name: String,
    /// The job ran before.
    pub rerun: bool,
    /// PRE_EXEC and POST_EXEC of the queue; empty none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pre_exec: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub post_exec: String,
    /// HOST_PRE_EXEC and HOST_POST_EXEC of the queue and the application profile; empty none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub host_pre_exec: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub host_post_exec: String,
    /// JOB_STARTER of the application profile or the queue; empty none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub starter: String,
    /// The account of ~/.lsfhosts in the place of the user's on the first host; empty none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub account: String,
    /// The directory that the job restarts from, in its checkpoint directory; empty: it begins
    /// anew.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub restart: String,
    /// The controls of the application profile and JOB_CONTROLS of the queue.
    #[serde(skip_serializing_if = "JobControls::is_none")]
    pub controls: JobControls,
    /// SUCCESS_EXIT_VALUES of the application profile; empty none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub success: String,
    /// JOB_INCLUDE_POSTPROC=Y: the job ends when what runs after it has ended.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub include_post: bool,
    /// JOB_POSTPROC_TIMEOUT, seconds; 0 none.
    #[serde(skip_serializing_if = "is_zero")]
    pub post_timeout: u64,
    /// JOB_CWD_TTL: how long the directory made for the job is kept, seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd_ttl: Option<u64>,
    /// JOB_PREPROC_TIMEOUT, seconds; 0 none.
    #[serde(skip_serializing_if = "is_zero")]
    pub pre_timeout: u64,
    /// ENV_VARS of the application profile: variables where the user's environment has none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env_vars: Vec<(String, String)>,
    /// An exit value that requeues the job leaves it held this time: so the mail about it is sent
    /// at the end of this run.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub last_requeue: bool,
    /// The slots of the job may change: its host file is its own.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub resizable: bool,
    /// The processor units of the job ([`crate::model::affinity::JobUnits`]); empty: it asks for
    /// none.
    #[serde(skip_serializing_if = "is_no_text")]
    pub affinity: Arc<str>,
    /// BIND_JOB of the application profile, or on the host the policy by which the job is bound;
    /// empty: that of the host.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub bind_job: String,
    /// The processors that the job is bound to by that, known to sbatchd alone; empty: none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub bound: String,
}

impl StartJob {
    /// The slots of the attempt on a host.
    pub fn slots_on(&self, host: &str) -> u32 {
        let here = self.hosts.iter().filter(|of| *of.0 == *host).map(|of| of.1);
        here.fold(0, u32::saturating_add)
    }
}

fn is_no_reason(n: &u32) -> bool {
    *n == 0
}

fn is_no_text(text: &str) -> bool {
    text.is_empty()
}

fn is_no_exit(exit: &u8) -> bool {
    *exit == 0
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Act {
    /// INT, TERM, KILL, JOB_TERMINATE_INTERVAL apart; the end carries `exit_info`.
    Terminate {
        exit_info: u32,
    },
    Signal {
        number: i32,
    },
    Suspend,
    Resume,
    /// A checkpoint, or the period of checkpoints.
    Checkpoint(CheckpointOrder),
    /// bmod of a running job: the limits it has from now on.
    Limits(Box<crate::model::job::Limits>),
    /// The slots of the job change.
    Resize(Box<ResizeOrder>),
}

/// The state of an attempt on its host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskState {
    pub key: JobKey,
    pub phase: AttemptPhase,
    /// Seconds since the epoch at which the phase was entered (for `Ended`: the end time).
    pub time: i64,
    pub pid: u32,
    pub pgid: u32,
    pub uid: u32,
    pub exec_user: String,
    pub exec_cwd: String,
    pub exec_home: String,
    /// Words to show: why the cwd is not the one asked for, why output went elsewhere ...
    pub note: String,
    /// The exit value of the pre-execution command that failed; 0: another failure, or none.
    #[serde(skip_serializing_if = "is_no_exit")]
    pub pre_exit: u8,
    /// The host where it failed; empty: this one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pre_host: String,
    /// After the end: the failures of its report, output or file transfers.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub after: String,
    pub usage: Usage,
    #[serde(skip_serializing_if = "Post::is_none")]
    pub post: Post,
    /// The last checkpoint of the attempt.
    #[serde(skip_serializing_if = "CheckpointEnd::is_none")]
    pub checkpoint: CheckpointEnd,
    /// The last change of its slots.
    #[serde(skip_serializing_if = "ResizeTold::is_none")]
    pub resize: ResizeTold,
}

/// The commands that run after a job: of its queue, and its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Post {
    /// There is none.
    #[default]
    None,
    /// The attempt is told of once more when they have ended; it is not to be forgotten before.
    Running,
    Done,
    Failed,
}

impl Post {
    pub fn is_none(&self) -> bool {
        *self == Post::None
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum AttemptPhase {
    /// Accepted, waiting for blobs or the launcher.
    #[default]
    Starting,
    Running,
    Suspended,
    /// The attempt did not run and never will; `reason` is the pending reason code.
    Failed {
        reason: u32,
    },
    /// `exit_info`: TERM_ number where this host ended it, else 0.
    Ended {
        end: End,
        exit_info: u32,
    },
}

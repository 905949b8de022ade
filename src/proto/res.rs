//! A command and res: remote tasks (lsrun(1)), and interactive jobs, which bsub joins (bsub(1)).
//! One connection runs one task at a time. Input and output are stream frames, [`Data`]; everything
//! else is JSON.
//!
//! Both directions are bounded by credit: who sends starts with [`WINDOW`] bytes and gets back
//! by `Credit` what the other side has handed on, so that nothing is fed faster than it is read
//! and a signal never waits behind input.
//!
//! The descriptors of a task outlive its res (`daemon::res_keeper`): a command that has heard
//! `Kept` asks the next res with `Resume`, and both sides know from `Resumed` which bytes crossed.

use super::member::TaskNote;
use super::task_id::TaskId;
use crate::model::job::Usage;
use crate::model::task_gone::TaskGoneAction;
use crate::model::{ByteStr, JobKey, JobRef};
use serde::{Deserialize, Serialize};

/// Bytes that may be under way in each direction of a task.
pub const WINDOW: usize = 512 << 10;
/// Least number of bytes for which credit is given back while there is work.
pub const CREDIT: usize = WINDOW / 8;
/// Most raw bytes in one stream frame.
pub const DATA_MAX: usize = 64 << 10;
/// Longest environment, arguments included, bytes.
pub const RUN_MAX: usize = 2 << 20;

/// Ports of a task.
pub const IN: u8 = 0;
pub const OUT: u8 = 1;
pub const ERR: u8 = 2;

/// Bytes of a port; none: it has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Data {
    pub port: u8,
    pub bytes: Vec<u8>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ResMsg {
    // command -> res
    /// Answered by `Ended`, or refused.
    Run(Box<RunTask>),
    /// Signal every process of the task. No answer.
    Signal {
        signal: i32,
    },
    /// The terminal has another size now. No answer.
    Resize {
        rows: u16,
        cols: u16,
    },
    /// Credit for more bytes. Either side sends this.
    Credit {
        bytes: u32,
    },
    /// The output of this port has no reader any more. Not answered.
    Close {
        port: u8,
    },
    /// Write lsf.acct for tasks that use at least this number of milliseconds of CPU time; `None`:
    /// write nothing. Answered by `Done`.
    Log {
        cpu_ms: Option<u64>,
    },

    /// The new log settings of RES. Answered by `Done`.
    Logging(super::logging::Logging),
    /// Join the caller's own interactive job, which runs on this host or is about to. Answered by
    /// `Joined` once the job has handed over its terminal or pipes, later by `Ended`, or refused.
    Join {
        job: u32,
        /// The caller's terminal, for a job on a pseudo-terminal.
        pty: Option<Pty>,
    },
    /// Go on with a task of the caller that a res before this one has left. Answered by `Resumed`,
    /// or refused.
    Resume {
        task: TaskId,
    },
    /// TaskStarter. Take this process of the caller, with all that it starts, into a job that has
    /// slots on this host. Answered by `Adopted`, or refused.
    Adopt(AdoptProcess),
    /// TaskStarter. A process that was taken into a job is about to end: measure it now. Answered
    /// by `Done`.
    Ending(AdoptProcess),

    // res -> command
    Done,
    /// The job's input and output follow.
    Joined,
    /// The task of a job is set up and has this process ID.
    Started {
        pid: u32,
    },
    /// The task outlives this res, and the next one knows it by this.
    Kept {
        task: TaskId,
    },
    /// The bytes that had crossed when the last res ended. Credit begins anew in both directions.
    Resumed(TaskProgress),
    /// The task on a terminal has stopped itself.
    Stopped,
    /// After all of its output. Raw wait status; `None`: unknown.
    Ended {
        status: Option<i32>,
    },
    /// The process is in the job. `within`: it was before, as a process of one of its tasks.
    /// `launcher`: the process whose signals all processes of the job have.
    Adopted {
        within: bool,
        launcher: u32,
    },
}

/// A process that RES has not started and that is to be in a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdoptProcess {
    pub job: JobRef,
    pub pid: u32,
    /// The start of the process, clock ticks since the host's.
    pub ticks: u64,
    /// Milliseconds that the time between two measurements is longer than the usual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pam_ms: Option<u32>,
}

/// A task as the caller wants it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunTask {
    pub argv: Vec<ByteStr>,
    pub cwd: ByteStr,
    /// The caller's home: a cwd below it is taken relative to the home there.
    pub home: ByteStr,
    /// NUL-separated `NAME=value`.
    pub env: ByteStr,
    pub umask: u32,
    pub rlimits: Vec<Rlim>,
    pub pty: Option<Pty>,
    /// The output of esub, for eexec.
    pub eexec: ByteStr,
    /// The command that asks.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub via: String,
    /// The task is of this job, which has slots on the host (blaunch(1)).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<JobRef>,
    /// The task has no input and output, and goes on when the connection ends.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub detached: bool,
    /// The first word is text for the user's login shell.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub login_shell: bool,
    /// The ends of the task that end its job (RTASK_GONE_ACTION); `None`: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gone: Option<TaskGoneAction>,
    /// Seconds between two measurements of the tasks of the job on a host (DJOB_RU_INTERVAL); 0:
    /// the usual ones.
    #[serde(skip_serializing_if = "is_zero")]
    pub usage_secs: u32,
    /// The task is one of pam's: milliseconds that the time between two measurements is longer than
    /// the usual one (LSF_PAM_RUSAGE_UPD_FACTOR).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pam_ms: Option<u32>,
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// The system's number of a resource, its soft and its hard limit; `None` no limit.
pub type Rlim = (u8, Option<u64>, Option<u64>);

/// The caller's terminal.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pty {
    /// Input, output, control and local modes and the control characters; all zero: the system's.
    pub modes: [u32; 4],
    pub chars: Vec<u8>,
    pub rows: u16,
    pub cols: u16,
    /// The task leads its session: what it does with ^C and ^Z is its own matter.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub shell: bool,
}

/// The bytes of a task that its res has moved since the task began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskProgress {
    /// Input that the task was given.
    pub written: u64,
    /// Output that was taken from the task, by port.
    pub read: [u64; 2],
    /// The res ended in the middle of writing, or of reading: there may be more of it.
    #[serde(default)]
    pub in_doubt: [bool; 2],
}

/// The facts of a task by which the next res takes it over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeptTask {
    pub id: TaskId,
    pub uid: u32,
    pub user: String,
    pub from_host: String,
    pub pty: bool,
    /// The task is one of a job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<TaskNote>,
    /// For lsf.acct, at most [`KEPT_TEXT`] bytes of each.
    pub cwd: ByteStr,
    pub command: ByteStr,
}

/// Bytes of the directory and of the command that are kept of a task for the next res.
pub const KEPT_TEXT: usize = 1 << 10;

/// An order of res about the descriptors of a task.
#[derive(Clone, Debug, PartialEq)]
pub enum TaskOp {
    /// A starter of this uid will bring them, and show this token.
    Expect {
        uid: u32,
        token: Vec<u8>,
    },
    /// A starter of this uid will bring the descriptors of the uid's interactive job with this
    /// number, or has brought them already; answered by `Joined`. The job's terminal becomes like
    /// this one before the job runs.
    ExpectJob {
        uid: u32,
        job: u32,
        pty: Option<Pty>,
    },
    /// Into the task's input; answered by `Wrote` as it goes.
    Write(Vec<u8>),
    /// End of input, behind what is still to be written.
    CloseIn,
    /// Allow so many more bytes to be read.
    Allow(usize),
    /// Close an output.
    Close(u8),
    Resize {
        rows: u16,
        cols: u16,
    },
    /// Let a stopped task on a terminal go on.
    Continue,
    /// The task has ended: read what is still there; answered by `Drained`.
    Drain,
    /// Have them kept for the next res; answered by `Kept`, where that can be.
    Keep(Box<KeptTask>),
    /// A command has come back to a task of an earlier res; answered by `Resumed`.
    Resume,
    /// Close everything.
    Forget,
    /// A line for lsf.acct.
    Account(Box<Account>),
}

/// Bytes of a token.
pub const TOKEN: usize = 32;
/// The beginning of the token of an interactive job.
const JOB_TOKEN: &[u8] = b"interactive job ";

/// The words by which the starter of an interactive job names the job to res. They are no secret:
/// the starter's uid is what counts.
pub fn job_token(key: JobKey) -> [u8; TOKEN] {
    let mut token = [0; TOKEN];
    let numbers = [key.job, key.idx, key.attempt].map(u32::to_be_bytes);
    token[..JOB_TOKEN.len()].copy_from_slice(JOB_TOKEN);
    token[JOB_TOKEN.len()..JOB_TOKEN.len() + 12].copy_from_slice(numbers.as_flattened());
    token
}

/// The job that a token names; `None`: it is the token of a task of res.
pub fn job_of_token(token: &[u8; TOKEN]) -> Option<JobKey> {
    let numbers = token.strip_prefix(JOB_TOKEN)?;
    let number = |at: usize| Some(u32::from_be_bytes(*numbers.get(at..)?.first_chunk()?));
    Some(JobKey { job: number(0)?, idx: number(4)?, attempt: number(8)? })
}

/// A task that has ended, for lsf.acct (res(8)).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Account {
    pub pid: u32,
    pub user: String,
    pub exit_status: i32,
    /// Seconds since the epoch.
    pub started: i64,
    pub ended: i64,
    pub from_host: String,
    pub exec_host: String,
    pub cwd: ByteStr,
    pub command: ByteStr,
    pub usage: Usage,
}

/// The result.
#[derive(Clone, Debug, PartialEq)]
pub enum TaskNews {
    /// The descriptors of this interactive job are here, and the job goes on.
    Joined(JobKey),
    Wrote(usize),
    /// Bytes of an output; none: it has ended.
    Read(u8, Vec<u8>),
    Stopped,
    Drained,
    /// The descriptors are here.
    Attached,
    Kept,
    Resumed(TaskProgress),
}

//! sbatchd and its launcher; the launcher machine and the operating system.
//!
//! The launcher serves a closed set of typed requests over a Unix socket. A task is named by
//! its attempt and a step: the job itself, and after its end the helper that appends the report
//! and removes the job file as the user. A start of a known task changes nothing and is answered
//! with its state. Ends wait in the launcher until `Forget`.
//!
//! A request of the launcher (and, for `Sample`, of sbatchd) to the operating system is an
//! [`OsEffect`]; the answer is an [`OsInput`]. Both are complete: a simulated host needs nothing
//! else. Each effect says what answers it; `Spawn` and `SpawnDaemon` are answered before any other
//! input. Start ticks are never 0.

pub use super::after_job::{Cleanup, Mail, Tidy};
use super::binding::Binding;
use super::daemon::Daemon;
pub use super::hook::{Hook, HookOf};
pub use super::job_directory::{JobDirectory, TemporaryDirectory};
use super::member::ProcessLook;
pub use super::setup_stage::{EXIT_PRE_ABORT, SetupStage};
pub use super::task_end::TaskEnd;
pub use super::task_group::TaskGroup;
pub use super::task_id::{TaskId, TaskStep};
use crate::model::job::{Limits, Usage};
use crate::model::limits::{GroupMemory, HostMemory};
use crate::model::{ByteStr, JobKey};
use serde::{Deserialize, Serialize};

/// Longest note the launcher keeps with a task, bytes.
pub const NOTE_MAX: usize = 1 << 20;
/// Notes up to this length need no room in [`NOTES_MAX`], bytes.
pub const NOTE_SMALL: usize = 4 << 10;
/// Notes of all tasks that a launcher keeps, before one that is not small is refused, bytes.
pub const NOTES_MAX: usize = 48 << 20;
/// Notes in one `Tasks` message, bytes (one task more may go over it).
pub const LIST_BYTES: usize = 1 << 20;
/// Most tasks one launcher keeps, ended but not forgotten ones included.
pub const TASKS_MAX: usize = 32_768;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum LaunchMsg {
    // sbatchd -> launcher
    /// First message of a connection; answered by `Tasks`, then every change of a task is told by
    /// `Task`: res hears of its own, sbatchd of all others and of those of jobs. The start and the
    /// end of a job may be told together.
    Hello,
    /// Answered by `Task` when the setup is through (or at once for a known task), or `Refused`.
    Start { id: TaskId, plan: Box<Plan>, note: String },
    /// Signal every process of the task. No answer.
    Signal { id: TaskId, signal: i32 },
    /// Replace the note of the job step. No answer.
    Note { key: JobKey, note: String },
    /// Forget every step of the attempt that has ended. No answer.
    Forget {
        key: JobKey,
        /// The attempt is over on this host: no task of it begins any more of whose job sbatchd
        /// has told res until then, monotonic microseconds. 0: tasks may begin.
        #[serde(default, skip_serializing_if = "is_zero")]
        over_at: u64,
    },
    /// Start or stop a daemon of this host, or mbatchd. No answer.
    Run { daemon: Daemon, on: bool },
    /// Answered by `DaemonList`; sbatchd and res are told before of each task of res that is
    /// being set up, whose job may be over.
    Daemons,
    /// Stop the daemons and leave; with `jobs` kill every task first.
    Down { jobs: bool },

    // launcher -> sbatchd
    /// The tasks known, in as many messages as it takes, each when the one before was read; the
    /// last has `more` false.
    Tasks { boot_id: String, tasks: Vec<TaskInfo>, more: bool },
    /// A task as it stands now; the note of a job is left out.
    Task(Box<TaskInfo>),
    /// The start was refused and left no trace; `again`: res is to ask sbatchd about the job again.
    Refused {
        id: TaskId,
        why: String,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        again: bool,
    },
    DaemonList {
        pids: Vec<(Daemon, u32)>,
        /// The daemons that hang whenever they run here.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        hung: Vec<Daemon>,
    },
}

/// The launcher's knowledge of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskInfo {
    pub id: TaskId,
    pub uid: u32,
    /// The process ID; it is the ID of the process group and the session, too.
    pub pid: u32,
    /// Seconds since the epoch.
    pub started: i64,
    /// The report of the starter; `None` until it comes.
    pub setup: Option<Setup>,
    pub ended: Option<TaskEnd>,
    /// The note of sbatchd ([`TaskStep::Job`]) or of res ([`super::member::TaskNote`]), or none.
    pub note: String,
    /// Start of the process in clock ticks since boot; 0 not told.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ticks: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<Box<TaskGroup>>,
    /// A daemon has sent it a signal that may end it. A launcher that begins anew forgets this.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub signalled: bool,
}

impl TaskInfo {
    /// A task of which nothing is known yet.
    pub fn new(id: TaskId) -> Self {
        let (setup, ended, note) = (None, None, String::new());
        let (ticks, group, signalled) = (0, None, false);
        TaskInfo { id, uid: 0, pid: 0, started: 0, setup, ended, note, ticks, group, signalled }
    }

    /// A daemon sends the task a signal: CHLD CONT STOP TSTP TTIN TTOU URG WINCH end nothing.
    pub fn signalled_by(&mut self, signal: i32) {
        self.signalled |= ![17, 18, 19, 20, 21, 22, 23, 28].contains(&signal);
    }

    /// The task in the journal; nothing of one that has no process yet.
    pub fn journal(&self) -> impl Iterator<Item = Journal> + use<> {
        let noted = self.pid != 0 || self.is_note();
        let TaskInfo { id, uid, pid, ticks, started, setup, ended, note, group, .. } = self.clone();
        let setup = setup.map(|setup| Journal::Setup { id, setup });
        let ended = ended.map(|ended| Journal::End { id, ended });
        let task = Journal::Task { id, uid, pid, ticks, started, note, group };
        [Some(task), setup, ended].into_iter().flatten().filter(move |_| noted)
    }

    /// The task is a note that belongs to no job, or could not be begun.
    pub fn is_note(&self) -> bool {
        self.pid == 0 && self.ended.is_some()
    }

    /// Takes the report of the starter: the task may run under another account.
    pub fn heard(&mut self, setup: Setup) {
        if let Setup::Ready(ready) = &setup
            && ready.uid != 0
        {
            self.uid = ready.uid;
        }
        self.setup = Some(setup);
    }

    /// Has it a process? Any may have its number now where the host was started again since.
    pub fn takes_signals(&self) -> bool {
        self.pid != 0 && !self.ended.is_some_and(|end| end.restarted)
    }

    /// A job whose terminal or pipes res has.
    pub fn interactive(&self) -> bool {
        matches!(&self.setup, Some(Setup::Ready(ready)) if ready.interactive)
    }
}

fn is_no_user(uid: &u32) -> bool {
    *uid == 0
}

fn is_no_exit(exit: &u8) -> bool {
    *exit == 0
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// The attributes by which the processes of a task are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskIdentity {
    pub id: TaskId,
    pub uid: u32,
    /// The first process: the leader of the task's session and process group.
    pub pid: u32,
    /// Start of that process in clock ticks since boot.
    pub ticks: u64,
    pub group: Option<Box<TaskGroup>>,
    /// The first process is a child of this process; the launcher alone has children of tasks.
    pub child: bool,
}

/// The first of these tasks, as many as one `Tasks` message holds, and whether there are more.
pub fn piece_of<'a>(all: impl Iterator<Item = &'a TaskInfo>) -> (Vec<TaskInfo>, bool) {
    let (mut tasks, mut size) = (Vec::new(), 0);
    for info in all {
        if size > LIST_BYTES {
            return (tasks, true);
        }
        size += info.note.len() + 1024;
        tasks.push(info.clone());
    }
    (tasks, false)
}

/// Why a task that had a note of so many bytes cannot have one of `len`, beside those of `all`
/// tasks.
pub fn note_fault(all: impl Iterator<Item = usize>, had: usize, len: usize) -> Option<String> {
    if len > NOTE_MAX {
        return Some(format!("note of {len} bytes, {NOTE_MAX} allowed"));
    }
    let grows = len > had.max(NOTE_SMALL);
    let full = grows && all.sum::<usize>() - had + len > NOTES_MAX;
    full.then(|| format!("notes of all tasks would take more than {NOTES_MAX} bytes"))
}

/// The report of the starter just before it becomes the job, or when it fails.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Setup {
    Ready(Box<Ready>),
    Failed {
        at: SetupStage,
        why: String,
        /// The exit value of the pre-execution command that failed; 0: another failure.
        #[serde(default, skip_serializing_if = "is_no_exit")]
        exit: u8,
        /// PRE_EXEC of the queue had succeeded: POST_EXEC follows, as this user.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        begun: Option<Box<Ready>>,
    },
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ready {
    pub user: String,
    pub cwd: String,
    pub home: String,
    /// Absolute path that takes the report; empty where there is none (a device, a FIFO).
    pub out: ByteStr,
    /// The job file to remove at the end; empty none.
    pub script: ByteStr,
    /// `out` is a file of our own, to be mailed at the end.
    pub kept: bool,
    /// Words to show: why the cwd or an output file is not the one asked for.
    pub note: String,
    /// The site's eexec was run; it is to hear of the end too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub eexec: bool,
    /// The output while the job runs, which goes to `out` at the end; empty: it is there at once.
    #[serde(skip_serializing_if = "ByteStr::is_empty")]
    pub buffer: ByteStr,
    /// The error output while the job runs; it goes to `err` at the end.
    #[serde(skip_serializing_if = "ByteStr::is_empty")]
    pub err_buffer: ByteStr,
    #[serde(skip_serializing_if = "ByteStr::is_empty")]
    pub err: ByteStr,
    /// The user ID, where the job runs under another account than its user's; 0 none.
    #[serde(skip_serializing_if = "is_no_user")]
    pub uid: u32,
    /// The directory that was made for the job, or that it shares.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<Box<JobDirectory>>,
    /// The directory that was made for its temporary files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temporary: Option<Box<JobDirectory>>,
    /// An interactive job: res hears of its end.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub interactive: bool,
    /// DJOB_ENV_SCRIPT, which the job has run with `setup`; empty none.
    #[serde(skip_serializing_if = "ByteStr::is_empty")]
    pub env_script: ByteStr,
}

/// Everything a starter needs; it reads it from a descriptor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    pub uid: u32,
    pub gid: u32,
    /// The name is authoritative: refused where it has another uid here.
    pub user: String,
    pub what: TaskPlan,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum TaskPlan {
    Job(Box<JobPlan>),
    Finish(Box<FinishPlan>),
    /// Nothing is started: this process of the user, which began at this tick and which the
    /// launcher has not made, is the first one of the task (TaskStarter(1)).
    Adopt {
        pid: u32,
        ticks: u64,
    },
}

/// How to become a job. Paths are expanded, but not yet mapped to this host's home.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobPlan {
    pub job: u32,
    pub idx: u32,
    pub submit_time: i64,
    /// The end of the names of its files below ~/.lsbatch.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tag: String,
    /// Shell text, run by `/bin/sh -c`, where `script` is empty.
    pub command: ByteStr,
    /// The words of a command that needs no shell to be told apart; tried before the shell.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<ByteStr>,
    pub script: ByteStr,
    /// JOB_STARTER of the queue: the program that is given the file of the job; empty none.
    #[serde(skip_serializing_if = "ByteStr::is_empty")]
    pub starter: ByteStr,
    /// NUL-separated `NAME=value`, whole but for what only the starter knows.
    pub env: ByteStr,
    pub cwd: ByteStr,
    /// The directory is made where it is missing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub make_cwd: bool,
    /// -outdir: made where it is missing, holds the output files; empty: they follow `cwd`.
    #[serde(skip_serializing_if = "ByteStr::is_empty")]
    pub out_dir: ByteStr,
    /// A directory for the temporary files of the job alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temporary: Option<Box<TemporaryDirectory>>,
    /// Home at submission: a cwd below it is taken relative to the home here.
    pub home: ByteStr,
    /// LSB_EXIT_IF_CWD_NOTEXIST=Y.
    pub need_cwd: bool,
    pub in_file: ByteStr,
    pub out_file: ByteStr,
    pub err_file: ByteStr,
    /// Overwrite instead of append.
    pub out_over: bool,
    pub err_over: bool,
    /// Output goes to its files at the end, behind the report (no LSB_STDOUT_DIRECT).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub buffered: bool,
    pub umask: u32,
    pub nice: i32,
    pub limits: Limits,
    /// Program that mails output without a file of its own; empty: such output is kept.
    pub mail_program: ByteStr,
    /// Run one after the other before the job.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pre: Vec<Hook>,
    /// Seconds for each of `pre`; 0 any.
    #[serde(skip_serializing_if = "is_zero")]
    pub pre_limit_secs: u64,
    /// Sets up the environment of the job; empty none.
    #[serde(skip_serializing_if = "ByteStr::is_empty")]
    pub login_shell: ByteStr,
    /// Hosts with their slots in the order of ranks, where that is not the one of the host file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ranks: Vec<(String, u32)>,
    /// The host file is the job's own, as its hosts may change.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub own_host_file: bool,
    /// Run when all else is ready.
    #[serde(skip_serializing_if = "Eexec::is_none")]
    pub eexec: Eexec,
    /// A task of res: its words, and its descriptors in the place of files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attach: Option<Box<Attach>>,
    /// The account under which the job runs, where that is not its user's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<Box<Account>>,
    /// An interactive job: its terminal, or pipes in the place of the files that it does not name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interactive: Option<Box<Attach>>,
    /// Limits of all processes together, by the control group of the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<GroupMemory>,
    /// The processors and the memory that the job is bound to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binding: Option<Box<Binding>>,
    /// DJOB_ENV_SCRIPT: run with `setup` before the command of the job; empty none.
    #[serde(skip_serializing_if = "ByteStr::is_empty")]
    pub env_script: ByteStr,
}

/// The account of ~/.lsfhosts under which a job runs, and the user and host that it must accept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    pub user: String,
    pub from: String,
    pub host: String,
}

/// The site's eexec: its file, which need not be there, and what esub printed for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Eexec {
    /// Empty: none is to be run.
    pub program: ByteStr,
    #[serde(skip_serializing_if = "ByteStr::is_empty")]
    pub data: ByteStr,
}

impl Eexec {
    pub fn is_none(&self) -> bool {
        self.program.is_empty()
    }
}

/// How a task of res, or an interactive job, meets res: the starter, once it is the user, makes the
/// terminal or the pipes and hands the other ends to res over res's socket. A job has its words,
/// limits and eexec elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Attach {
    pub socket: ByteStr,
    /// Proves to res which task this is.
    pub token: ByteStr,
    pub argv: Vec<ByteStr>,
    pub pty: Option<super::res::Pty>,
    /// Number, soft and hard value of each limit to be set, as far as the user may.
    pub rlimits: Vec<super::res::Rlim>,
    /// The program to run first, as the user, and its input; empty: none.
    pub eexec: ByteStr,
    pub eexec_data: ByteStr,
    /// No input and output, and nothing to be brought to res.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub detached: bool,
    /// `argv` is text for the user's login shell.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub login_shell: bool,
}

/// The work after a job's end. Empty paths: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FinishPlan {
    /// The account under which the job has run, where that is not its user's; empty none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub account: String,
    /// Takes `text`; where there is `mail` with the output, only if that cannot be sent.
    pub append_to: ByteStr,
    pub text: ByteStr,
    /// Follows `text` in `append_to`, and is removed then.
    #[serde(skip_serializing_if = "ByteStr::is_empty")]
    pub buffer: ByteStr,
    /// Stands below the output of `buffer`.
    #[serde(skip_serializing_if = "ByteStr::is_empty")]
    pub tail: ByteStr,
    /// `append_to` is emptied first.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub over: bool,
    /// The error output, which is appended to `err` and removed then.
    #[serde(skip_serializing_if = "ByteStr::is_empty")]
    pub err_buffer: ByteStr,
    #[serde(skip_serializing_if = "ByteStr::is_empty")]
    pub err: ByteStr,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub err_over: bool,
    /// The umask of the files that are made for the output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub umask: Option<u32>,
    /// Sent where `append_to` cannot take the report; `output`: with `buffer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unwritten: Option<Box<Mail>>,
    /// File transfers, part of the job: done before the rest of what is told.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub copies: Vec<Hook>,
    /// Job, index and time of submission, for the name of a report that is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept_as: Option<(u32, u32, i64)>,
    /// The tag, as in [`JobPlan`].
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tag: String,
    /// The task only removes files that jobs of this host have left in the user's directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tidy: Option<Tidy>,
    /// The task only removes the directory of a job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remove_directory: Option<Box<JobDirectory>>,
    /// The task only looks for a line of the user's for a host with these names
    /// ([`super::validation`]); empty: it does not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub validate: Vec<String>,
    pub remove: ByteStr,
    pub mail: Option<Box<Mail>>,
    /// Report, mail and output are the work of a task of their own, which follows.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub report_apart: bool,
    /// Run before them.
    #[serde(skip_serializing_if = "Eexec::is_none")]
    pub eexec: Eexec,
    /// The eexec is that of a checkpoint.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub checkpoint: bool,
    /// Run before all else, with the output of the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cleanup: Option<Box<Cleanup>>,
    /// Run one after the other, when all else is done and told.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub post: Vec<Hook>,
    /// The time after which a command of `post` is killed, seconds; 0 any.
    #[serde(skip_serializing_if = "is_zero")]
    pub limit_secs: u64,
    /// NUL-separated `NAME=value`, and the working directory, for them.
    #[serde(skip_serializing_if = "ByteStr::is_empty")]
    pub env: ByteStr,
    #[serde(skip_serializing_if = "ByteStr::is_empty")]
    pub cwd: ByteStr,
}

/// One line of the launcher's journal: enough for a successor to adopt what survives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Journal {
    /// First line: the boot in which the lines after it were written.
    Boot {
        boot_id: String,
    },
    /// A task's process exists (written before it may go on).
    Task {
        id: TaskId,
        uid: u32,
        pid: u32,
        ticks: u64,
        started: i64,
        note: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        group: Option<Box<TaskGroup>>,
    },
    Setup {
        id: TaskId,
        setup: Setup,
    },
    Note {
        key: JobKey,
        note: String,
    },
    End {
        id: TaskId,
        ended: TaskEnd,
    },
    Forget {
        key: JobKey,
    },
    /// A supervised daemon's process exists.
    Daemon {
        daemon: Daemon,
        pid: u32,
        ticks: u64,
    },
    /// sbatchd asked for it to run (or not).
    Want {
        daemon: Daemon,
        on: bool,
    },
}

/// Orders of a machine to the operating system.
#[derive(Clone, Debug, PartialEq)]
pub enum OsEffect {
    /// Launcher. Create the task's process: a starter that waits, having done nothing, until
    /// `Go`; it ends by itself if the launcher dies before. Answered by `Spawned` or
    /// `SpawnFailed`, later by `Setup` (once, unless it dies first) and `Exited`. A process that is
    /// to be adopted: answered by `Adopted` or `SpawnFailed`.
    /// `own_group`: its processes are to be in a control group of their own.
    Spawn { id: TaskId, plan: Box<Plan>, own_group: bool },
    /// Launcher. Let the waiting starter go on: its journal line is written.
    Go { id: TaskId },
    /// Launcher. Answered by `DaemonUp` or `DaemonFailed`, later by `Exited`.
    SpawnDaemon { daemon: Daemon },
    /// Launcher. Signal this process, unless `pid` is by now another one than the one started at
    /// `ticks`. No answer.
    Signal { pid: u32, ticks: u64, signal: i32 },
    /// Launcher. Signal every process of the task, which may have ended. No answer.
    SignalTask { task: Box<TaskIdentity>, signal: i32 },
    /// Launcher. The task of this control group is forgotten. No answer.
    Release { group: Box<TaskGroup> },
    /// Launcher. Answered by `Gone` for each that is no longer alive. These are not our
    /// children.
    Check { procs: Vec<(u32, u64)> },
    /// Launcher. Append to the journal before the effects that follow. No answer; where the
    /// journal cannot be written the runner says so and goes on.
    Journal(Box<Journal>),
    /// Launcher. Replace the journal by these lines. No answer.
    Rewrite(Vec<Journal>),
    /// sbatchd. Answered by one `Sampled`.
    Sample {
        tasks: Vec<TaskIdentity>,
        /// The further tasks that run: their processes are not looked for now.
        others: Vec<TaskIdentity>,
    },
    /// sbatchd. Find the task of a process, for this connection. Answered by `Looked`; `tasks`:
    /// all that run.
    Look { conn: u64, look: ProcessLook, tasks: Vec<TaskIdentity> },
}

/// Reports of the operating system.
#[derive(Clone, Debug, PartialEq)]
pub enum OsInput {
    Spawned {
        id: TaskId,
        pid: u32,
        /// Start time of the process in clock ticks since boot: with the pid, its identity.
        ticks: u64,
        group: Option<Box<TaskGroup>>,
    },
    SpawnFailed {
        id: TaskId,
        why: String,
    },
    Setup {
        id: TaskId,
        setup: Setup,
        /// The end of the task follows at once: one message tells both.
        ended: bool,
    },
    DaemonUp {
        daemon: Daemon,
        pid: u32,
        ticks: u64,
    },
    DaemonFailed {
        daemon: Daemon,
        why: String,
    },
    /// How the group of this child is at its end: whether the kernel has killed a process of it at
    /// its memory limit, and whether no process is left in it.
    GroupAtEnd {
        pid: u32,
        out_of_memory: bool,
        empty: bool,
    },
    /// A child has ended and was reaped: raw wait status, and the usage of the child and of its
    /// children.
    Exited {
        pid: u32,
        status: i32,
        usage: Usage,
    },
    Gone {
        pid: u32,
        ticks: u64,
    },
    /// SIGTERM (`jobs` false) or SIGINT (`jobs` true).
    Down {
        jobs: bool,
    },
    /// One entry for each task asked for that still has processes.
    Sampled(Vec<TaskProcesses>, HostMemory),
    /// The process, or why it cannot be in a job.
    Looked {
        conn: u64,
        look: ProcessLook,
        found: Result<ProcessFound, String>,
    },
    /// The process of a task that was not to be started is there, and its user's.
    Adopted {
        id: TaskId,
        pid: u32,
        ticks: u64,
    },
}

/// A process that may be in a job.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProcessFound {
    /// The task that it is of.
    pub owner: Option<TaskId>,
    /// The process ID of the launcher; 0: not known.
    pub launcher: u32,
    /// CPU time with that of the children that it has waited for, microseconds.
    pub utime_us: u64,
    pub stime_us: u64,
}

/// The processes of one task now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskProcesses {
    /// The task's first process.
    pub pid: u32,
    /// Sums; CPU time includes that of processes that have ended.
    pub usage: Usage,
    pub pids: Vec<u32>,
    pub pgids: Vec<u32>,
    /// The process group of each of `pids`.
    pub groups: Vec<u32>,
    /// The kernel has killed a process at the memory limit of the group.
    pub out_of_memory: bool,
    /// Resident memory of the process that has most, and of the task that has most, KB; the latter
    /// is 0 as long as nobody has counted the tasks.
    pub most_of_process: u64,
    pub most_of_task: u64,
}

impl TaskProcesses {
    /// Adds the processes of a task of the same job.
    pub fn add(&mut self, task: &TaskProcesses) {
        self.usage.add(&task.usage);
        self.pids.extend(&task.pids);
        self.pgids.extend(&task.pgids);
        self.groups.extend(&task.groups);
        self.most_of_process = self.most_of_process.max(task.most_of_process);
        self.most_of_task = self.most_of_task.max(task.most_of_task);
    }
}

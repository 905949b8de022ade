//! The state of res: its clients and their tasks, and how the launcher names the tasks. The files
//! beside it act on tasks: joined.rs on interactive jobs, kept.rs on those of an earlier res,
//! ends.rs on those that end, mod.rs on all others.

use super::foreign::ForeignProcesses;
use super::waiting::WaitingTasks;
use crate::model::JobKey;
use crate::model::time::US;
use crate::proto::frame::MacKey;
use crate::proto::launch::{LaunchMsg, TaskId, TaskInfo, TaskStep};
use crate::proto::machine::ConnId;
use crate::proto::member::TaskNote;
use crate::proto::res::{Account, RunTask, WINDOW};
use crate::proto::{Effect, Msg};
use std::collections::BTreeMap;

/// Most tasks at a time.
pub const TASKS_MAX: usize = 4096;
/// Our connection to the launcher.
pub(super) const LAUNCHER: ConnId = 1;
/// Our connection to the sbatchd of this host.
pub(super) const SBATCHD: ConnId = 2;
/// Pause before it is tried again, microseconds.
pub(super) const RETRY: u64 = US / 5;
/// How often the end of input is said again, microseconds.
pub(super) const EOF_AGAIN: u64 = US / 2;
/// Array indices from here up are no job's: tasks of res have them in their keys.
const INDEX: u32 = 1 << 31;
pub(super) const SIGHUP: i32 = 1;
pub(super) const SIGKILL: i32 = 9;
pub(super) const SIGCONT: i32 = 18;

/// The configuration of res at its start.
#[derive(Clone, Debug, Default)]
pub struct ResConf {
    pub host: String,
    pub admins: Vec<String>,
    /// A personal cluster: the one user is let in by the shell already.
    pub personal: bool,
    /// LSF_ROOT_REX: root of this host may run tasks; of every host.
    pub root: (bool, bool),
    /// Seconds that a task without its command has to end.
    pub timeout: u64,
    /// Variables put over the caller's.
    pub env: Vec<(String, String)>,
    /// LSF_RES_RLIMIT_UNLIM: hard limits that are not taken over from the caller.
    pub unlimited: Vec<u8>,
    /// LSF_DISABLE_LSRUN: lsrun and lsgrun are for administrators and root.
    pub only_admins: bool,
    /// The host's REXPRI.
    pub nice: i32,
    /// The path of our socket, for starters.
    pub socket: String,
    /// LSF_SERVERDIR/eexec.
    pub eexec: String,
    /// Seconds after which the hosts of the cluster are determined again.
    pub syncup: Option<u64>,
    /// LSF_RES_ACCT: milliseconds of CPU time from which a task is accounted.
    pub acct_ms: Option<u64>,
}

pub(super) struct Client {
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) user: String,
    pub(super) host: String,
    pub(super) task: Option<u64>,
}

pub(super) struct Task {
    pub(super) conn: Option<ConnId>,
    /// The user who asked for it, or owns the interactive job.
    pub(super) uid: u32,
    /// The launcher's name of its process; `None`: an interactive job that is not here yet.
    pub(super) id: Option<TaskId>,
    /// Input taken and not yet written; output that may still be sent.
    pub(super) taken: usize,
    pub(super) room: usize,
    /// Input that was written and not yet told.
    pub(super) owed: usize,
    /// The last report of the launcher, once the task has ended.
    pub(super) ended: Option<TaskInfo>,
    /// Hung up: killed at this instant.
    pub(super) kill_at: Option<u64>,
    /// The end of input on a terminal is said again then: a program that empties the terminal's
    /// queue, or changes its modes, has not seen it, and a later reader is at the end too.
    pub(super) eof_at: Option<u64>,
    pub(super) pty: bool,
    pub(super) account: Box<Account>,
    /// The number of the interactive job that a bsub has joined, or waits for.
    pub(super) job: Option<u32>,
    /// A task of this job.
    pub(super) of_job: Option<TaskNote>,
    /// The request for a task of a job, until that is set up: it may have to wait again.
    pub(super) wanted: Option<Box<RunTask>>,
    /// Nobody waits to be told that it was started.
    pub(super) told: bool,
    /// A task of an earlier res, whose command has until then to come back; 0: from the next tick.
    pub(super) resume_by: Option<u64>,
    /// The launcher knows of it.
    pub(super) listed: bool,
}

impl Task {
    pub(super) fn new(conn: Option<ConnId>, uid: u32, pty: bool) -> Task {
        Task {
            conn,
            uid,
            id: None,
            taken: 0,
            room: WINDOW,
            owed: 0,
            ended: None,
            kill_at: None,
            eof_at: None,
            pty,
            account: Box::default(),
            wanted: None,
            job: None,
            of_job: None,
            told: true,
            resume_by: None,
            listed: true,
        }
    }
}

/// The machine.
pub struct Res {
    pub(super) conf: ResConf,
    /// Makes tokens; and names this incarnation in keys.
    pub(super) seed: MacKey,
    pub(super) born: u32,
    pub(super) next: u64,
    pub(super) clients: BTreeMap<ConnId, Client>,
    pub(super) tasks: BTreeMap<u64, Task>,
    /// The numbers of tasks that an earlier res has left.
    pub(super) adopted: BTreeMap<TaskId, u64>,
    pub(super) linked: bool,
    pub(super) dial_at: Option<u64>,
    pub(super) sync_at: Option<u64>,
    /// When this res began, seconds since the epoch.
    pub(super) began: i64,
    /// Interactive jobs whose terminals a res before this one had, and when they are killed.
    pub(super) orphans: Vec<(TaskId, u64)>,
    /// Tasks of jobs that sbatchd has not yet spoken for.
    pub(super) waiting: WaitingTasks,
    /// Processes that TaskStarters have taken into jobs.
    pub(super) foreign: ForeignProcesses,
}

impl Res {
    /// `seed`: random bytes.
    pub fn new(conf: ResConf, seed: [u8; 32]) -> Res {
        let born = u32::from_be_bytes([seed[0], seed[1], seed[2], seed[3]]);
        Res {
            conf,
            seed: MacKey::new(&seed),
            born,
            next: 1,
            clients: BTreeMap::new(),
            tasks: BTreeMap::new(),
            adopted: BTreeMap::new(),
            linked: false,
            dial_at: None,
            sync_at: None,
            began: 0,
            orphans: Vec::new(),
            waiting: WaitingTasks::default(),
            foreign: ForeignProcesses::default(),
        }
    }

    pub(super) fn id(&self, n: u64) -> TaskId {
        let (job, idx, attempt) = (n as u32, INDEX | (n >> 32) as u32, self.born);
        TaskId { key: JobKey { job, idx, attempt }, step: TaskStep::Task }
    }

    /// The launcher's name of a task's process; `None`: an interactive job that is not here yet.
    pub(super) fn task_id(&self, n: u64) -> Option<TaskId> {
        self.tasks.get(&n)?.id
    }

    /// The number here of a task that the launcher names.
    pub(super) fn number(&self, id: TaskId) -> Option<u64> {
        if let Some(n) = self.adopted.get(&id) {
            return Some(*n);
        }
        let ours = id.step == TaskStep::Task && id.key.attempt == self.born;
        ours.then(|| u64::from(id.key.idx & !INDEX) << 32 | u64::from(id.key.job))
    }
}

pub(super) fn ask(out: &mut Vec<Effect>, msg: LaunchMsg) {
    out.push(Effect::Send { conn: LAUNCHER, msg: Msg::Launch(msg) });
}

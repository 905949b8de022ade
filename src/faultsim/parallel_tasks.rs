//! Tasks of parallel jobs: the script of a job calls the res of each of its hosts, as blaunch(1)
//! does, and what must hold of the processes that these start.
//!
//! - A job that leaves a host has no process there, and begins none, also where res had asked for
//!   one before.
//! - The jobs with processes on a host have no more slots there than it has. The first host of a
//!   job gives its slots back when the script ends, whatever tasks are left.
//! - A signal that a user has sent once comes to no process twice.
//!
//! Real are res, the sbatchd and the launcher of each host. A caller dies with the first process of
//! its job, and a res may stall before it has a task begun. Descriptors are not simulated, so that
//! no task outlives its res.
//!
//! Numbers come from a generator of their own, and one seed in ten has such tasks beside the deaths
//! of daemons at the messages of membership, another without these: any other seed goes as it did
//! before there were tasks.

use super::rng::Rng;
use crate::model::time::US;
use crate::model::{JobKey, JobRef};
use crate::proto::Msg;
use crate::proto::launch::{LaunchMsg, TaskId, TaskStep};
use crate::proto::res::RunTask;
use crate::proto::sbd::SbdMsg;
use std::collections::{BTreeMap, HashMap, HashSet};

/// The last digits of seeds with tasks.
const SEEDS: [u64; 2] = [3, 9];
/// Calls of a caller to one host before it gives up.
pub(super) const CALLS_MOST: u32 = 4;
/// Share of the tasks that go on without their caller.
const DETACHED: f64 = 0.25;
/// Share of the tasks that run for longer than their job, as long as nobody ends them.
const LONG: f64 = 0.3;
/// Share of the tasks that HUP, INT and TERM do not end, and their program.
const IGNORES: f64 = 0.3;
pub(super) const STUBBORN: &str = "stubborn";
/// Share of the started tasks at which somebody sends their job a signal.
pub(super) const SIGNALLED: f64 = 0.1;
/// Share of the messages about hosts of jobs that come twice.
const REPEATED: f64 = 0.1;
/// Share of the starts before which res stalls, and the longest time, microseconds.
const STALLS: f64 = 0.05;
const STALL_MOST: u64 = 10 * US;
/// Longest pauses between the start of a job, its calls, and the signals, microseconds.
const PAUSE_MOST: u64 = 2 * US;
/// A connection without a word through a cut network breaks after this time, microseconds.
pub(super) const SILENCE: u64 = 60 * US;
pub(super) const SIGUSR1: i32 = 10;

/// A call of res.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) key: JobKey,
    pub(super) uid: u32,
    /// The process of the job that calls: its host, the boot of that, the process ID.
    pub(super) host: usize,
    pub(super) boot: u64,
    pub(super) pid: u32,
    /// The host that is called.
    pub(super) to: usize,
    pub(super) calls: u32,
    pub(super) conn: Option<u64>,
}

/// The tasks of a run.
#[derive(Debug, Default)]
pub(super) struct ParallelTasks {
    /// The numbers; `None`: the seed has no tasks.
    rng: Option<Rng>,
    /// The hosts of each attempt, with its slots there.
    pub(super) hosts: HashMap<JobKey, Vec<(usize, u32)>>,
    pub(super) calls: Vec<Call>,
    /// The attempts that tasks belong to, by the host and the launcher's name of the task.
    pub(super) attempts: HashMap<(usize, TaskId), JobKey>,
    /// The attempts that have left a host.
    pub(super) left: HashSet<(usize, JobKey)>,
    /// How often each job was sent a signal.
    pub(super) signals: HashMap<JobRef, u32>,
    /// Tasks that were started, and signals that came to processes.
    pub(super) started: usize,
    pub(super) signalled: usize,
    /// Calls that res has refused, by the number of the reason.
    pub(super) refused: BTreeMap<i32, usize>,
}

impl ParallelTasks {
    pub(super) fn of_seed(seed: u64, balancer: bool) -> ParallelTasks {
        let has = SEEDS.contains(&(seed % 10)) && !balancer;
        ParallelTasks { rng: has.then(|| Rng::new(seed ^ 0x7a5c)), ..ParallelTasks::default() }
    }

    pub(super) fn on(&self) -> bool {
        self.rng.is_some()
    }

    /// Has a chance come? Never in a seed without tasks.
    pub(super) fn chance(&mut self, share: f64) -> bool {
        self.rng.as_mut().is_some_and(|rng| rng.chance(share))
    }

    /// The attempt that a task belongs to.
    pub(super) fn attempt_of(&self, host: usize, id: TaskId) -> Option<JobKey> {
        match id.step {
            TaskStep::Task => self.attempts.get(&(host, id)).copied(),
            _ => Some(id.key),
        }
    }

    /// The slots of an attempt on a host.
    pub(super) fn slots(&self, key: JobKey, host: usize) -> u32 {
        let hosts = self.hosts.get(&key).into_iter().flatten();
        hosts.filter(|of| of.0 == host).map(|of| of.1).sum()
    }

    /// A call has this connection.
    pub(super) fn called(&mut self, call: usize, conn: u64) {
        self.calls[call].conn = Some(conn);
    }

    /// The host of a caller.
    pub(super) fn host_of(&self, call: usize) -> usize {
        self.calls[call].host
    }

    pub(super) fn pause(&mut self) -> u64 {
        self.rng.as_mut().map_or(0, |rng| rng.below(PAUSE_MOST))
    }

    /// The task that a caller asks for.
    pub(super) fn new_task(&mut self, job: JobRef) -> RunTask {
        let ms = match self.chance(LONG) {
            true => 1 << 30,
            false => self.pause() / 1000,
        };
        let program = if self.chance(IGNORES) { STUBBORN } else { "task" };
        RunTask {
            argv: [program, &ms.to_string()].iter().map(|word| (*word).into()).collect(),
            via: "blaunch".into(),
            job: Some(job),
            detached: self.chance(DETACHED),
            ..RunTask::default()
        }
    }

    /// A message about a host of a job that comes twice, as it does from a sender that does not
    /// know whether it has come.
    pub(super) fn repeated(&mut self, msg: &Msg) -> Option<Msg> {
        let Msg::Sbd(of) = msg else { return None };
        use SbdMsg::{Act, Join, Joined, Leave, Left};
        let may = matches!(of, Join(_) | Joined { .. } | Act { .. } | Leave { .. } | Left { .. });
        (may && self.chance(REPEATED)).then(|| msg.clone())
    }

    /// How much longer the launcher has to wait for a message, microseconds: a res that sends it a
    /// start may have stalled since it heard of the job.
    pub(super) fn stall(&mut self, msg: &Msg) -> u64 {
        let starts = |id: &TaskId| id.step == TaskStep::Task;
        let of = matches!(msg, Msg::Launch(LaunchMsg::Start { id, .. }) if starts(id));
        let stalls = of && self.chance(STALLS);
        self.rng.as_mut().filter(|_| stalls).map_or(0, |rng| rng.below(STALL_MOST))
    }

    /// The bytes from which a res makes its tokens.
    pub(super) fn res_seed(&mut self) -> [u8; 32] {
        let mut seed = [0; 32];
        if let Some(rng) = &mut self.rng {
            seed.chunks_mut(8).for_each(|bytes| bytes.copy_from_slice(&rng.draw().to_be_bytes()));
        }
        seed
    }
}

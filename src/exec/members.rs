//! The jobs of other first hosts that have slots on this host, and the tasks that jobs have here
//! (blaunch(1)): what sbatchd knows of both.
//!
//! A membership begins with mbatchd's `Join` and ends with its `Leave`; it lives in memory alone,
//! as mbatchd settles it after each inventory. The tasks are the launcher's, by whose notes it is
//! known which job each belongs to, so that neither a restart of sbatchd nor one of res loses a
//! task.
//!
//! Invariants: an order seen before changes nothing but the slots of the job; of a job that has
//! left nothing stays: tasks that begin late are ended too; `Left` is told when no task of the job
//! is left here.

use crate::exec::attempt::Kill;
use crate::exec::host_limits::exceeds;
use crate::model::job::{End, Usage};
use crate::model::take::take_where;
use crate::model::{JobKey, JobRef, Now, time::US};
use crate::proto::launch::{
    JobDirectory, Setup, TaskId, TaskIdentity, TaskInfo, TaskProcesses, TaskStep,
};
use crate::proto::member::{ProcessLook, TaskNote};
use crate::proto::sbd::{Act, StartJob};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Most jobs of other first hosts known at once.
pub const MEMBERS_MAX: usize = 16_384;
/// Attempts that have left and whose late tasks are still ended.
const LEFT_MAX: usize = 4096;
/// Most tasks of a job that have ended and that the launcher is to keep in mind.
const ENDED_MAX: usize = 256;
/// First measurement of new tasks, microseconds after the first of them has started.
const FIRST_SAMPLE: u64 = US;
/// Least pause between two measurements of a job, for each of its hosts, microseconds.
const PER_HOST: u64 = 3 * US / 10;
/// Pause between two kills of what does not end, microseconds.
const KILL_AGAIN: u64 = US;
/// How long after its order a kill reaches the tasks, microseconds. The first host has the order at
/// the same time: a script whose tasks are killed before it could end as if all were well.
const FIRST_HOST_AHEAD: u64 = US / 2;
const SIGKILL: i32 = 9;
const SIGTERM: i32 = 15;
const SIGCONT: i32 = 18;
const SIGSTOP: i32 = 19;

/// A job of another first host.
#[derive(Debug)]
struct Member {
    order: Box<StartJob>,
    /// The last order acted on, by an older mbatchd's number and by its own.
    act: (u32, u64),
    kill: Option<Kill>,
    kill_at: Option<u64>,
    /// When SIGSTOP follows the signal that suspended it.
    stop_at: Option<u64>,
}

/// A job that is over here, and has tasks that are not.
#[derive(Debug)]
struct Leaving {
    /// The order of a member.
    order: Option<Box<StartJob>>,
    /// mbatchd wants to know.
    answer: bool,
    /// The next signals; KILL once they have had their time.
    at: u64,
    terminated: bool,
    /// The launcher has begun the last task of the job, and told of it, when it has answered so
    /// many questions; `None`: it is to be told that the job is over.
    answers: Option<u64>,
}

/// The memberships and tasks of one host.
#[derive(Debug, Default)]
pub struct Members {
    joined: BTreeMap<JobKey, Member>,
    tasks: BTreeMap<JobKey, BTreeMap<TaskId, TaskIdentity>>,
    /// Tasks that have ended, as the launcher still knows them, and whether it has seen that no
    /// process of a task was left; the others may have left some, which end when their job leaves.
    ended: BTreeMap<JobKey, VecDeque<(TaskId, bool)>>,
    leaving: BTreeMap<JobKey, Leaving>,
    /// Questions to the launcher on this connection, and its answers.
    asked: u64,
    answered: u64,
    /// The last signal that stops or continues each job, until the launcher has answered a question
    /// that was asked after it.
    unanswered: BTreeMap<JobKey, (u64, i32)>,
    /// The temporary directories that a task has made for its job here, which go with the job.
    made: BTreeMap<JobKey, (TaskId, JobDirectory)>,
    /// The directories of jobs that have left.
    unused: Vec<UnusedDirectory>,
    left: VecDeque<JobKey>,
    /// Attempts that the end of a task is to end, with its wait status.
    gone: BTreeMap<JobKey, i32>,
    /// The attempts in `gone` that were not told of yet.
    newly_gone: Vec<JobKey>,
    /// The usage of the tasks of each job that have ended.
    spent: BTreeMap<JobKey, Usage>,
    /// The slots that each job has here, by the notes of its tasks.
    noted_slots: BTreeMap<JobKey, u32>,
    /// The usage of each member and its processes, as they were measured last.
    measured: BTreeMap<JobKey, (Usage, Vec<u32>)>,
    samples: BTreeMap<JobKey, Sampling>,
    /// The CPU time, microseconds, of running tasks that were taken into their job here
    /// (TaskStarter(1)), as it was measured last: nobody waits for their ends.
    adopted: BTreeMap<TaskId, (JobKey, (u64, u64))>,
}

/// When the tasks of a job are measured.
#[derive(Debug)]
struct Sampling {
    at: u64,
    /// Seconds between two measurements; 0: the usual ones.
    secs: u32,
    /// The tasks are pam's (pam(1)): milliseconds to be added to the usual time.
    pam_ms: Option<u32>,
}

impl Sampling {
    /// The pause after a measurement of a job of so many hosts, microseconds.
    fn pause(&self, usual: u64, hosts: u64) -> u64 {
        match (self.secs, self.pam_ms) {
            (0, None) => usual.max(hosts * PER_HOST),
            (0, Some(ms)) => usual + u64::from(ms) * (US / 1000),
            (secs, _) => u64::from(secs) * US,
        }
    }
}

/// The temporary directory of a job that has left, with the order of its start; none: sbatchd was
/// restarted, and the job did not join again.
pub type UnusedDirectory = (JobDirectory, Option<Box<StartJob>>);

/// Signals for all tasks of a job.
pub type JobSignals = (JobKey, Vec<i32>);

impl Members {
    /// mbatchd says that a job has slots here.
    ///
    /// # Errors
    /// Why it cannot join.
    pub fn join(&mut self, order: Box<StartJob>) -> Result<(), String> {
        let key = order.key;
        if let Some(member) = self.joined.get_mut(&key) {
            // the job has grown here, or is smaller
            member.order.hosts = order.hosts;
            return Ok(());
        }
        if self.joined.len() >= MEMBERS_MAX {
            return Err(format!("{MEMBERS_MAX} jobs of other hosts are known here already"));
        }
        let (act, kill, kill_at, stop_at) = ((0, 0), None, None, None);
        self.joined.insert(key, Member { order, act, kill, kill_at, stop_at });
        self.left.retain(|left| *left != key);
        Ok(())
    }

    /// The last attempt of a job or element that has slots here.
    pub fn order_of(&self, at: JobRef) -> Option<&StartJob> {
        let (job, idx) = (at.job, at.idx);
        let of = |attempt| JobKey { job, idx, attempt };
        let mut all = self.joined.range(of(0)..=of(u32::MAX));
        all.next_back().map(|(_, member)| &*member.order)
    }

    /// The launcher tells of a task; of a job or not. `news`: something has happened to it, which
    /// is told once.
    ///
    /// The task that the launcher may forget, if there is one.
    pub fn told(&mut self, now: Now, info: &TaskInfo, news: bool) -> Option<TaskId> {
        let note = (info.id.step == TaskStep::Task).then(|| TaskNote::of(&info.note)).flatten();
        let note = note?;
        let key = note.key;
        if let Some(Setup::Ready(ready)) = &info.setup
            && let Some(made) = ready.temporary.as_ref().filter(|made| made.new)
        {
            self.made.entry(key).or_insert_with(|| (info.id, (**made).clone()));
        }
        if note.slots > 0 {
            let slots = self.noted_slots.entry(key).or_insert(0);
            *slots = note.slots.max(*slots);
        }
        if info.ended.is_none() && info.pid != 0 {
            let TaskInfo { id, uid, pid, ticks, ref group, .. } = *info;
            let group = group.clone();
            let identity = TaskIdentity { id, uid, pid, ticks, group, child: false };
            self.tasks.entry(key).or_default().insert(id, identity);
            if note.adopted {
                self.adopted.entry(id).or_insert((key, (0, 0)));
            }
            let first = Sampling { at: now.mono_us + FIRST_SAMPLE, secs: 0, pam_ms: None };
            let sampling = self.samples.entry(key).or_insert(first);
            (sampling.secs, sampling.pam_ms) = (note.usage_secs, note.pam_ms);
            if self.left.contains(&key) && !self.joined.contains_key(&key) {
                self.leave(now, key, false);
            }
            return None;
        }
        // where it has not begun, the launcher tells of it again
        let end = info.ended?;
        if matches!(info.setup, Some(Setup::Ready(_)))
            && note.gone.is_some_and(|action| action.ends_job(&end.end, info.signalled))
            && let End::Status(status) = end.end
            && self.gone.insert(key, status).is_none()
        {
            self.newly_gone.push(key);
        }
        let mut known = false;
        if let Some(tasks) = self.tasks.get_mut(&key) {
            known = tasks.remove(&info.id).is_some();
            if tasks.is_empty() {
                self.tasks.remove(&key);
            }
        }
        let seen = self.adopted.remove(&info.id).map_or((0, 0), |(_, seen)| seen);
        if news || known {
            let mut usage = Usage { mem_kb: 0, swap_kb: 0, ..end.usage };
            usage.utime_us = usage.utime_us.max(seen.0);
            usage.stime_us = usage.stime_us.max(seen.1);
            (usage.nprocs, usage.nthreads) = (0, 0);
            self.spent.entry(key).or_default().add(&usage);
        }
        let ended = self.ended.entry(key).or_default();
        if !ended.iter().any(|task| task.0 == info.id) {
            ended.push_back((info.id, info.group.as_ref().is_some_and(|group| group.empty)));
        }
        if self.left.contains(&key) && !self.joined.contains_key(&key) {
            self.leave(now, key, false);
        }
        let maker = self.made.get(&key).map(|(maker, _)| *maker);
        let ended = self.ended.entry(key).or_default();
        // by the task that has made the directory the next sbatchd knows of it
        let may_go = |task: &&(TaskId, bool)| Some(task.0) != maker;
        let oldest = |empty: bool| ended.iter().position(|of| may_go(&of) && (of.1 || !empty));
        let goes = oldest(true).or_else(|| oldest(false)).filter(|_| ended.len() > ENDED_MAX);
        goes.and_then(|at| ended.remove(at)).map(|task| task.0)
    }

    /// The attempts that the end of a task is to end, each with the task's wait status.
    pub fn gone(&self) -> impl Iterator<Item = (JobKey, i32)> {
        self.gone.iter().map(|(key, status)| (*key, *status))
    }

    /// Takes those of the attempts in [`Members::gone`] that were not taken before.
    pub fn take_newly_gone(&mut self) -> Vec<(JobKey, i32)> {
        let keys = std::mem::take(&mut self.newly_gone).into_iter();
        keys.filter_map(|key| Some((key, *self.gone.get(&key)?))).collect()
    }

    /// Takes the tasks of a job that have ended.
    pub fn take_ended(&mut self, key: JobKey) -> impl Iterator<Item = TaskId> {
        self.ended.remove(&key).unwrap_or_default().into_iter().map(|task| task.0)
    }

    /// The usage of a job by its tasks here that have ended.
    pub fn spent(&self, key: JobKey) -> Usage {
        self.spent.get(&key).copied().unwrap_or_default()
    }

    /// The usage of a job at its end: that of tasks that have ended, and of those whose ends tell
    /// nothing of it and may not be known yet.
    pub fn spent_at_end(&self, key: JobKey) -> Usage {
        let mut all = self.spent(key);
        for (_, (utime_us, stime_us)) in self.adopted.values().filter(|(of, _)| *of == key) {
            let (utime_us, stime_us) = (*utime_us, *stime_us);
            all.add(&Usage { utime_us, stime_us, ..Usage::default() });
        }
        all
    }

    /// Keeps the usage of tasks whose ends will tell nothing of it.
    pub fn keep_measured(&mut self, by_pid: &BTreeMap<u32, TaskProcesses>) {
        for (id, (key, seen)) in &mut self.adopted {
            let task = self.tasks.get(key).and_then(|tasks| tasks.get(id));
            if let Some(now) = task.and_then(|task| by_pid.get(&task.pid)) {
                *seen = (seen.0.max(now.usage.utime_us), seen.1.max(now.usage.stime_us));
            }
        }
    }

    /// Keeps the usage of such a task, whose process was looked at: user and system time,
    /// microseconds.
    pub fn keep_looked(&mut self, look: &ProcessLook, (utime, stime): (u64, u64)) {
        for (id, (key, seen)) in &mut self.adopted {
            let is =
                |t: &&TaskIdentity| (t.uid, t.pid, t.ticks) == (look.uid, look.pid, look.ticks);
            if self.tasks.get(key).and_then(|tasks| tasks.get(id)).filter(is).is_some() {
                *seen = (seen.0.max(utime), seen.1.max(stime));
            }
        }
    }

    /// The job of a task.
    pub fn job_of(&self, id: TaskId) -> Option<JobKey> {
        let has = |of: &(&JobKey, &BTreeMap<TaskId, TaskIdentity>)| of.1.contains_key(&id);
        match id.step {
            TaskStep::Task => self.tasks.iter().find(has).map(|(key, _)| *key),
            _ => Some(id.key),
        }
    }

    /// The usage of a job by its tasks, of which these run; the processes with their groups.
    pub fn usage_of(&self, key: JobKey, by_pid: &BTreeMap<u32, TaskProcesses>) -> TaskProcesses {
        let mut all = TaskProcesses { usage: self.spent(key), ..TaskProcesses::default() };
        let tasks = self.tasks_of(key);
        for task in tasks.filter_map(|task| by_pid.get(&task.pid)) {
            all.add(task);
        }
        sorted(all)
    }

    /// Is there anything to be done or kept about a job?
    pub fn knows(&self, key: JobKey) -> bool {
        self.tasks.contains_key(&key)
            || self.spent.contains_key(&key)
            || self.ended.contains_key(&key)
    }

    /// The processes of a job here: its own, and those of its tasks.
    pub fn with_tasks_of<'a>(
        &self,
        key: JobKey,
        own: &'a TaskProcesses,
        by_pid: &BTreeMap<u32, TaskProcesses>,
    ) -> Cow<'a, TaskProcesses> {
        if !self.knows(key) {
            return Cow::Borrowed(own);
        }
        let (mut all, tasks) = (own.clone(), self.usage_of(key, by_pid));
        all.add(&tasks);
        Cow::Owned(sorted(all))
    }

    pub fn all_tasks(&self) -> impl Iterator<Item = &TaskIdentity> {
        self.tasks.values().flat_map(BTreeMap::values)
    }

    /// The tasks of the members that are to be measured now. `usual`: the pause of a job that says
    /// nothing, microseconds; one of many hosts is measured less often.
    pub fn to_measure(&mut self, now: Now, usual: u64) -> Vec<TaskIdentity> {
        let mut all = Vec::new();
        let (joined, tasks) = (&self.joined, &self.tasks);
        self.samples.retain(|key, sampling| {
            // those of jobs of this host are measured with their job
            let member = joined.get(key).zip(tasks.get(key));
            if let Some((member, tasks)) = member.filter(|_| sampling.at <= now.mono_us) {
                all.extend(tasks.values().cloned());
                let hosts = member.order.hosts.len() as u64;
                sampling.at = now.mono_us + sampling.pause(usual, hosts);
            }
            member.is_some()
        });
        all
    }

    pub fn sample_at(&self) -> Option<u64> {
        self.samples.values().map(|sampling| sampling.at).min()
    }

    /// The members whose usage or processes have changed, by the processes of their tasks; true:
    /// one of these is beyond the memory limit.
    pub fn measured(
        &mut self,
        by_pid: &BTreeMap<u32, TaskProcesses>,
    ) -> Vec<(JobKey, TaskProcesses, bool)> {
        let keys = self
            .joined
            .keys()
            .filter(|key| self.tasks_of(**key).any(|task| by_pid.contains_key(&task.pid)));
        let mut changed = Vec::new();
        for key in keys.copied().collect::<Vec<_>>() {
            let mut used = self.usage_of(key, by_pid);
            let (before, pids) = self.measured.entry(key).or_default();
            used.usage.max_mem_kb = before.max_mem_kb.max(used.usage.mem_kb);
            used.usage.max_swap_kb = before.max_swap_kb.max(used.usage.swap_kb);
            used.usage.avg_mem_kb = used.usage.mem_kb;
            // a process may take the place of another that used as much
            let over = self.joined.get(&key).is_some_and(|own| exceeds(&own.order.limits, &used));
            if over || used.usage != *before || used.pids != *pids {
                (*before, *pids) = (used.usage, used.pids.clone());
                changed.push((key, used, over));
            }
        }
        changed
    }

    /// A connection to the launcher begins: questions of the one before are not answered any more,
    /// and are asked again. It lists its tasks before it answers the first of them.
    pub fn launcher_linked(&mut self) {
        (self.asked, self.answered) = (0, 0);
        self.leaving.values_mut().for_each(|leaving| leaving.answers = None);
    }

    /// The launcher has listed its tasks: others are over.
    pub fn listed(&mut self, known: &BTreeSet<TaskId>) {
        self.tasks.retain(|_, tasks| {
            tasks.retain(|id, _| known.contains(id));
            !tasks.is_empty()
        });
        self.adopted.retain(|id, _| known.contains(id));
        self.ended.retain(|_, tasks| {
            tasks.retain(|task| known.contains(&task.0));
            !tasks.is_empty()
        });
    }

    /// The tasks of a job, as the launcher names them.
    pub fn tasks_of(&self, key: JobKey) -> impl Iterator<Item = &TaskIdentity> {
        self.tasks.get(&key).into_iter().flat_map(BTreeMap::values)
    }

    /// The attempts that mbatchd is to settle: those that have joined, and those with tasks here
    /// that `own`, an attempt of this host, does not explain.
    pub fn to_settle(&self, own: impl Fn(JobKey) -> bool) -> Vec<JobKey> {
        let tasks = self.tasks.keys().chain(self.ended.keys()).filter(|key| !own(**key));
        let all: BTreeSet<JobKey> = self.joined.keys().chain(tasks).copied().collect();
        all.into_iter().collect()
    }

    /// The slots that a job has on this host; 0: not known.
    pub fn slots(&self, key: JobKey, host: &str) -> u32 {
        let member = self.joined.get(&key).map(|member| &member.order);
        let leaving = || self.leaving.get(&key)?.order.as_ref();
        match member.or_else(leaving) {
            Some(order) => order.slots_on(host),
            None => self.noted_slots.get(&key).copied().unwrap_or(0),
        }
    }

    /// A job is over here. `answer`: mbatchd waits for the end of its tasks.
    pub fn leave(&mut self, now: Now, key: JobKey, answer: bool) {
        let member = self.joined.remove(&key);
        // what is being killed gets no TERM
        let terminated = member.as_ref().is_some_and(|member| member.kill.is_some());
        let order = member.map(|member| member.order);
        self.over(key);
        let (at, answers) = (now.mono_us, None);
        let new = Leaving { order: None, answer, at, terminated, answers };
        let leaving = self.leaving.entry(key).or_insert(new);
        leaving.answer |= answer;
        leaving.order = order.or(leaving.order.take());
    }

    /// A job is over here: tasks of which the launcher tells from now on end.
    pub fn over(&mut self, key: JobKey) {
        if !self.left.contains(&key) {
            self.left.push_back(key);
            if self.left.len() > LEFT_MAX {
                self.left.pop_front();
            }
        }
    }

    /// Takes the jobs of which the launcher is to be told that they are over, and then asked
    /// something: its news of a task that it has begun may be on their way, and come before the
    /// answer.
    pub fn to_tell_launcher(&mut self) -> Vec<JobKey> {
        let new = self.leaving.iter_mut().filter(|(_, leaving)| leaving.answers.is_none());
        let answers = Some(self.asked + 1);
        let told = |(key, leaving): (&JobKey, &mut Leaving)| {
            leaving.answers = answers;
            *key
        };
        let over: Vec<JobKey> = new.map(told).collect();
        self.asked += u64::from(!over.is_empty());
        over
    }

    /// The launcher has answered.
    pub fn launcher_answers(&mut self) {
        self.answered += 1;
        self.unanswered.retain(|_, (question, _)| *question > self.answered);
    }

    /// The launcher is sent a signal that stops or continues a job, also one of this host's, and
    /// then asked something: it has the signal when it has answered, and not before.
    pub fn stop_signal_sent(&mut self, key: JobKey, signal: i32) {
        self.asked += 1;
        self.unanswered.insert(key, (self.asked, signal));
    }

    /// Takes the signals that a launcher which is gone may not have had: the next one knows nothing
    /// of them.
    pub fn take_unanswered(&mut self) -> impl Iterator<Item = (JobKey, i32)> + use<> {
        let all = std::mem::take(&mut self.unanswered);
        all.into_iter().map(|(key, (_, signal))| (key, signal))
    }

    /// The attempts that have left by now, each with its usage where mbatchd wants to know of it.
    pub fn take_left(&mut self) -> Vec<(JobKey, Option<Usage>)> {
        let (tasks, answered) = (&self.tasks, self.answered);
        let all = take_where(&mut self.leaving, |key, leaving| {
            !tasks.contains_key(key) && leaving.answers.is_some_and(|n| n <= answered)
        });
        let mut left = Vec::new();
        for (key, leaving) in all {
            self.gone.remove(&key);
            self.noted_slots.remove(&key);
            if let Some((_, directory)) = self.made.remove(&key) {
                self.unused.push((directory, leaving.order));
            }
            let mut usage = self.spent.remove(&key).unwrap_or_default();
            if let Some((before, _)) = self.measured.remove(&key) {
                usage.max_mem_kb = usage.max_mem_kb.max(before.max_mem_kb);
                usage.avg_mem_kb = before.avg_mem_kb;
                usage.max_swap_kb = before.max_swap_kb;
            }
            left.push((key, leaving.answer.then_some(usage)));
        }
        left
    }

    /// The temporary directories of jobs that have left since this was asked last.
    pub fn take_unused_directories(&mut self) -> Vec<UnusedDirectory> {
        std::mem::take(&mut self.unused)
    }

    /// An order of mbatchd about a member; the signals for its tasks. `interval`: seconds between
    /// two signals; `stop`: the signal that suspends.
    pub fn act(
        &mut self,
        now: Now,
        key: JobKey,
        number: (u32, u64),
        act: &Act,
        (interval, stop): (u64, i32),
    ) -> Vec<i32> {
        let Some(member) = self.joined.get_mut(&key) else { return Vec::new() };
        if is_old(number, member.act) {
            return Vec::new();
        }
        member.act = (member.act.0.max(number.0), member.act.1.max(number.1));
        match act {
            Act::Terminate { .. } | Act::Signal { number: SIGKILL } => {
                member.kill = Some(Kill { signals: vec![SIGKILL], pause: interval.max(1) });
                member.kill_at = Some(now.mono_us + FIRST_HOST_AHEAD);
                Vec::new()
            }
            Act::Signal { number } => vec![*number],
            Act::Suspend => {
                member.stop_at = (stop != SIGSTOP).then(|| now.after(interval.max(1)));
                vec![stop]
            }
            Act::Resume => {
                member.stop_at = None;
                vec![SIGCONT]
            }
            Act::Limits(limits) => {
                member.order.limits.clone_from(limits);
                Vec::new()
            }
            Act::Checkpoint(_) | Act::Resize(_) => Vec::new(),
        }
    }

    /// The order of the start of a member.
    pub fn order(&self, key: JobKey) -> Option<&StartJob> {
        self.joined.get(&key).map(|member| &*member.order)
    }

    /// The signals that time has brought. `interval`: seconds between TERM and KILL.
    pub fn due(&mut self, now: Now, interval: u64) -> Vec<JobSignals> {
        let mut all = Vec::new();
        for (key, member) in &mut self.joined {
            if member.stop_at.is_some_and(|at| at <= now.mono_us) {
                member.stop_at = None;
                all.push((*key, vec![SIGSTOP]));
            }
            if member.kill_at.is_some_and(|at| at <= now.mono_us)
                && let Some(kill) = &member.kill
            {
                member.kill_at = Some(now.after(kill.pause));
                all.push((*key, kill.signals.clone()));
            }
        }
        for (key, leaving) in self.leaving.iter_mut().filter(|(_, l)| l.at <= now.mono_us) {
            let signals = match std::mem::replace(&mut leaving.terminated, true) {
                false => {
                    leaving.at = now.after(interval.max(1));
                    vec![SIGTERM, SIGCONT]
                }
                true => {
                    leaving.at = now.mono_us + KILL_AGAIN;
                    vec![SIGKILL]
                }
            };
            all.push((*key, signals));
        }
        all.retain(|(key, _)| self.tasks.contains_key(key));
        all
    }

    /// When there is more to do.
    pub fn deadline(&self) -> Option<u64> {
        let joined = self.joined.values().flat_map(|m| [m.stop_at, m.kill_at]).flatten();
        joined.chain(self.leaving.values().map(|leaving| leaving.at)).min()
    }
}

/// The processes in the order of their numbers, each with its group.
fn sorted(mut all: TaskProcesses) -> TaskProcesses {
    if all.groups.len() == all.pids.len() {
        let mut pairs: Vec<(u32, u32)> = all.pids.into_iter().zip(all.groups).collect();
        pairs.sort_unstable();
        (all.pids, all.groups) = pairs.into_iter().unzip();
    }
    all.pids.sort_unstable();
    all.pgids.sort_unstable();
    all.pgids.dedup();
    all
}

/// Whether an order has been acted on, by its numbers (an older mbatchd has the first alone) and
/// those of the last one.
pub fn is_old(number: (u32, u64), last: (u32, u64)) -> bool {
    match number {
        (seq, 0) => seq <= last.0 && seq != 0,
        (_, order) => order <= last.1,
    }
}

#[cfg(test)]
#[path = "members_tests.rs"]
mod tests;

//! Jobs of other first hosts that have slots here, and tasks of jobs: what mbatchd orders about
//! them, what res is told of them, and how they end (`exec::members`).

use super::agent::*;
use super::directory_table::KeptDirectory;
use super::*;
use crate::exec::task_env::task_env;
use crate::model::JobRef;
use crate::model::job_control::{ControlAction, ControlVerb};
use crate::proto::launch::ProcessFound;
use crate::proto::member::{MemberMsg, Membership, ProcessLook};

/// How long mbatchd may take to tell this host of the jobs that it does not know, after it was told
/// what is known here, microseconds.
const ALL_HEARD: u64 = 10 * US;

impl Sbatchd {
    /// mbatchd says that a job has slots on this host.
    pub(super) fn join(&mut self, order: Box<StartJob>, out: &mut Vec<Effect>) {
        let key = order.key;
        let stale = !order.boot.is_empty() && *order.boot != *self.boot_id;
        let joined = match stale {
            true => Err("the host was restarted".to_owned()),
            false => self.members.join(order),
        };
        let msg = match joined {
            Ok(()) => SbdMsg::Joined { key },
            Err(why) => SbdMsg::JoinRefused { key, why },
        };
        self.tell(msg, out);
    }

    /// A job is over on this host, which is not its first one.
    pub(super) fn leave(&mut self, now: Now, key: JobKey, out: &mut Vec<Effect>) {
        self.members.leave(now, key, true);
        self.members_due(now, out);
    }

    /// A job of this host is over: what it has had started here by res ends.
    pub(super) fn end_tasks_of(&mut self, now: Now, key: JobKey, out: &mut Vec<Effect>) {
        if self.members.knows(key) {
            self.members.leave(now, key, false);
            self.members_due(now, out);
        }
    }

    /// Signals the tasks that a job has on this host.
    pub(super) fn signal_tasks_of(&self, key: JobKey, signals: &[i32], out: &mut Vec<Effect>) {
        for id in self.members.tasks_of(key).map(|task| task.id).filter(|_| self.linked) {
            for &signal in signals {
                ask(out, LaunchMsg::Signal { id, signal });
            }
        }
    }

    /// Has a signal that stops or continues a job repeated where the launcher ends before it has
    /// taken it: nothing else would, and the job would be shown as what it is not.
    pub(super) fn await_signal(&mut self, key: JobKey, signal: i32, out: &mut Vec<Effect>) {
        if self.linked {
            self.members.stop_signal_sent(key, signal);
            ask(out, LaunchMsg::Daemons);
        }
    }

    /// An order about a job of another first host.
    pub(super) fn member_act(
        &mut self,
        now: Now,
        key: JobKey,
        number: (u32, u64),
        act: &Act,
        out: &mut Vec<Effect>,
    ) {
        let Some(order) = self.members.order(key) else { return };
        if !self.linked {
            if self.deferred.len() < DEFERRED_MAX {
                self.deferred.push((key, number, act.clone()));
            }
            return;
        }
        // commands of JOB_CONTROLS run on the first host
        let action = match act {
            Act::Suspend => order.controls.action(ControlVerb::Suspend).cloned(),
            Act::Resume => order.controls.action(ControlVerb::Resume).cloned(),
            Act::Terminate { .. } => order.controls.action(ControlVerb::Terminate).cloned(),
            _ => None,
        };
        let act = match action {
            None => act.clone(),
            Some(ControlAction::Signal(number)) => Act::Signal { number },
            Some(_) => return,
        };
        let stop = self.conf.site.stop_signal.unwrap_or(SIGTSTP);
        let how = (self.params.job_terminate_interval, stop);
        let signals = self.members.act(now, key, number, &act, how);
        self.signal_tasks_of(key, &signals, out);
        if let Some(&last) = signals.last().filter(|_| matches!(act, Act::Suspend | Act::Resume)) {
            self.await_signal(key, last, out);
        }
    }

    /// Sends the signals that are due, and tells what has left.
    pub(super) fn members_due(&mut self, now: Now, out: &mut Vec<Effect>) {
        if !self.linked {
            return;
        }
        for (key, signals) in self.members.due(now, self.params.job_terminate_interval) {
            self.signal_tasks_of(key, &signals, out);
            if signals == [SIGSTOP] {
                self.await_signal(key, SIGSTOP, out);
            }
        }
        let over = self.members.to_tell_launcher();
        let answered = (!over.is_empty()).then_some(LaunchMsg::Daemons);
        let over_at = now.mono_us;
        // the launcher keeps a job of this host until mbatchd has its end
        for key in over.into_iter().filter(|key| !self.jobs.contains_key(key)) {
            ask(out, LaunchMsg::Forget { key, over_at });
        }
        answered.into_iter().for_each(|msg| ask(out, msg));
        for (key, usage) in self.members.take_left() {
            // nothing that its tasks have left behind stays
            for id in self.members.take_ended(key) {
                ask(out, LaunchMsg::Signal { id, signal: SIGKILL });
                ask(out, LaunchMsg::Forget { key: id.key, over_at: 0 });
            }
            if let Some(usage) = usage {
                self.tell(SbdMsg::Left { key, usage: usage.into() }, out);
            }
        }
        for (directory, order) in self.members.take_unused_directories() {
            let Some(o) = order else {
                let text = format!(
                    "temporary directory <{}> of a job is kept: it is not known whose it is",
                    directory.path.lossy()
                );
                say(out, log::Level::Warn, text);
                continue;
            };
            let (user, account) = (o.user.to_string(), String::new());
            let (uid, gid, due) = (o.uid, o.gid, now.secs());
            let kept = KeptDirectory { directory, uid, gid, user, account, due };
            self.remove_temporary(now, kept, out);
        }
    }

    /// The launcher tells of a task of a job.
    pub(super) fn job_task_told(
        &mut self,
        now: Now,
        info: &TaskInfo,
        news: bool,
        out: &mut Vec<Effect>,
    ) {
        if let Some(id) = self.members.told(now, info, news) {
            ask(out, LaunchMsg::Forget { key: id.key, over_at: 0 });
        }
        let newly = self.members.take_newly_gone();
        self.tell_gone(newly, out);
        self.members_due(now, out);
    }

    /// Tells which attempts the end of a task is to end, each with the task's wait status.
    fn tell_gone(&self, gone: impl IntoIterator<Item = (JobKey, i32)>, out: &mut Vec<Effect>) {
        for (key, status) in gone.into_iter().filter(|_| self.params.task_gone) {
            self.tell(SbdMsg::TaskGone { key, status }, out);
        }
    }

    /// Tells an mbatchd that has greeted of all of them.
    pub(super) fn tell_all_gone(&self, out: &mut Vec<Effect>) {
        self.tell_gone(self.members.gone(), out);
    }

    /// Tells what the tasks of jobs of other first hosts use.
    pub(super) fn members_measured(
        &mut self,
        by_pid: &BTreeMap<u32, TaskProcesses>,
        out: &mut Vec<Effect>,
    ) {
        for (key, used, over_memory) in self.members.measured(by_pid) {
            let some = |all: &[u32]| all[..all.len().min(caps::MAX_PIDS)].to_vec();
            let (usage, pids, groups) = (used.usage, some(&used.pids), some(&used.groups));
            self.tell(
                SbdMsg::HostUsage { key, usage: usage.into(), pids, groups, over_memory },
                out,
            );
        }
    }

    pub(super) fn members_deadline(&self) -> Option<u64> {
        self.members.deadline().filter(|_| self.linked)
    }

    /// res wants to know whose process it is.
    pub(super) fn res_looks(&self, conn: ConnId, look: ProcessLook, out: &mut Vec<Effect>) {
        let runs = |own: &&Attempt| own.pid != 0 && own.live() && own.sim_end.is_none();
        let own = self.jobs.values().filter(runs).map(Attempt::identity);
        let tasks = own.chain(self.members.all_tasks().cloned()).collect();
        out.push(Effect::Os(OsEffect::Look { conn, look, tasks }));
    }

    /// Tells res the job of the process.
    pub(super) fn process_looked(
        &mut self,
        conn: ConnId,
        look: &ProcessLook,
        found: Result<ProcessFound, String>,
        out: &mut Vec<Effect>,
    ) {
        if let Ok(ProcessFound { utime_us, stime_us, .. }) = &found {
            self.members.keep_looked(look, (*utime_us, *stime_us));
        }
        let (found, why) = match found {
            Ok(found) => (found, String::new()),
            Err(why) => (ProcessFound::default(), why),
        };
        let owner = found.owner.and_then(|id| self.members.job_of(id));
        if self.askers.contains(&conn) {
            let msg = MemberMsg::Looked { n: look.n, owner, launcher: found.launcher, why };
            out.push(Effect::Send { conn, msg: Msg::Member(msg) });
        }
    }

    /// res wants to know about a job.
    pub(super) fn res_asks(&self, now: Now, conn: ConnId, job: JobRef, out: &mut Vec<Effect>) {
        let of = |attempt| JobKey { job: job.job, idx: job.idx, attempt };
        let own = self.jobs.range(of(0)..=of(u32::MAX)).next_back().map(|(_, own)| own);
        let runs = |own: &&Attempt| {
            matches!(own.stage, AttemptStage::Launching | AttemptStage::Running)
                && own.sim_end.is_none()
        };
        let told = match own.filter(runs) {
            Some(own) => {
                let uid = if own.ready.uid == 0 { own.note.order.uid } else { own.ready.uid };
                Some((&own.note.order, uid))
            }
            None => self.members.order_of(job).map(|order| (order, order.uid)),
        };
        let msg = match told {
            None => {
                // every host has joined before the script of its job runs
                let heard = self.mbd.is_some_and(|(_, told)| told)
                    && now.mono_us >= self.inventory_at + ALL_HEARD;
                let over = |own: &Attempt| {
                    matches!(own.stage, AttemptStage::Finishing | AttemptStage::Over)
                };
                MemberMsg::Unknown { job, settled: heard || own.is_some_and(over) }
            }
            Some((order, uid)) => {
                let mut hosts: Vec<String> = Vec::new();
                for (host, _) in order.hosts.iter() {
                    if !hosts.iter().any(|known| *known == **host) {
                        hosts.push(host.to_string());
                    }
                }
                let env = task_env(&self.conf.site, order).into();
                let (key, nice) = (order.key, order.nice);
                let temporary = plan::temporary(&self.conf.site, order).filter(|temporary| {
                    // that of an earlier start goes first
                    self.members.order(key).is_some() && !self.directories.has(&temporary.path)
                });
                let told_at = now.mono_us;
                let slots = order.slots_on(&self.conf.site.host);
                let told = Membership { key, uid, hosts, env, nice, temporary, told_at, slots };
                MemberMsg::Told(Box::new(told))
            }
        };
        out.push(Effect::Send { conn, msg: Msg::Member(msg) });
    }
}

//! HOST_PRE_EXEC and HOST_POST_EXEC (lsb.queues(5)): the answers of other hosts to the first host
//! of a job (`ask_hosts` asks them), and the commands that another host runs: each once, for
//! however many orders.

use super::agent::*;
use super::*;
use crate::exec::host_commands::{HostTask, HostsAsked, state_of};
use crate::proto::host_command::{HostCommandState, HostWork};
use crate::proto::launch::{EXIT_PRE_ABORT, Hook, HookOf};

/// A host that says nothing for so long while mbatchd is reached is given up, microseconds.
pub(super) const HOSTS_SILENT: u64 = 60 * US;
/// How long the end of a command is remembered after the last request, microseconds.
pub(super) const HOST_TASK_KEEP: u64 = 600 * US;
/// Most commands that a host knows for jobs of other hosts.
pub(super) const HOST_TASKS_MAX: usize = 16_384;

fn step_of(work: HostWork) -> TaskStep {
    match work {
        HostWork::Before | HostWork::Stop => TaskStep::HostBefore,
        HostWork::After { .. } => TaskStep::HostAfter,
    }
}

// ---- the first host ----

impl Sbatchd {
    /// Gives up the hosts that are silent, and asks the others again.
    pub(super) fn hosts_due(&mut self, now: Now, key: JobKey, out: &mut Vec<Effect>) {
        let heard = self.heard();
        let Some(asked) = self.jobs.get_mut(&key).and_then(|job| job.hosts.as_mut()) else {
            return;
        };
        if heard {
            asked.give_up(now, HOSTS_SILENT);
        } else {
            asked.waits.values_mut().for_each(|last| *last = now.mono_us);
        }
        if !self.hosts_over(now, key, out) {
            self.ask_hosts(now, key, out);
        }
    }

    /// Another host tells of its command.
    pub(super) fn host_told(
        &mut self,
        now: Now,
        (key, host): (JobKey, String),
        (work, state): (HostWork, HostCommandState),
        out: &mut Vec<Effect>,
    ) {
        let Some(asked) = self.jobs.get_mut(&key).and_then(|job| job.hosts.as_mut()) else {
            return;
        };
        if step_of(asked.work) == step_of(work) {
            asked.told(now, &host, state);
            self.hosts_over(now, key, out);
        }
    }

    /// Goes on where nothing is to be waited for any more; whether it does.
    fn hosts_over(&mut self, now: Now, key: JobKey, out: &mut Vec<Effect>) -> bool {
        let Some(job) = self.jobs.get_mut(&key) else { return false };
        let before = |asked: &HostsAsked| asked.work == HostWork::Before && asked.failed.is_some();
        let done = |asked: &HostsAsked| asked.waits.is_empty() || before(asked);
        let Some(asked) = job.hosts.take_if(|asked| done(asked)) else { return false };
        match (asked.work, asked.failed) {
            (HostWork::Before, None) => {
                job.hosts_ready = true;
                self.prepare(now, key, out);
            }
            (HostWork::Before, Some(failed)) => {
                if !asked.waits.is_empty() {
                    self.tell(SbdMsg::AskHosts { key, work: HostWork::Stop }, out);
                }
                self.host_failed(now, key, failed, out);
            }
            (_, failed) => {
                if let Some(failed) = &failed {
                    let text = format!("{key}: HOST_POST_EXEC on {}: {}", failed.host, failed.why);
                    say(out, log::Level::Warn, text);
                }
                self.after_over(now, key, asked.well && failed.is_none(), out);
            }
        }
        true
    }

    /// HOST_PRE_EXEC failed on another host: the job does not start.
    fn host_failed(
        &mut self,
        now: Now,
        key: JobKey,
        failed: crate::exec::host_commands::HostFailure,
        out: &mut Vec<Effect>,
    ) {
        let Some(job) = self.jobs.get_mut(&key) else { return };
        job.ready.note = format!("{}: {}", failed.host, failed.why);
        (job.pre_exit, job.pre_host) = (failed.exit, failed.host);
        if i32::from(failed.exit) != EXIT_PRE_ABORT {
            return self.failed(now, key, PendReason::QueuePreExec, out);
        }
        let end = End::Status(EXIT_PRE_ABORT << 8);
        job.outcome = Some((AttemptPhase::Ended { end, exit_info: 0 }, now.secs()));
        self.finished(now, key, out);
    }

    /// All that runs after the job has ended on all hosts.
    fn after_over(&mut self, now: Now, key: JobKey, well: bool, out: &mut Vec<Effect>) {
        let Some(job) = self.jobs.get_mut(&key) else { return };
        job.post = if well { Post::Done } else { Post::Failed };
        match job.stage {
            AttemptStage::Finishing => self.rest_over(now, key, out),
            AttemptStage::Over => self.tell_state(key, out),
            _ => {}
        }
    }
}

// ---- another host ----

impl Sbatchd {
    /// mbatchd wants a command to run for a job whose first host is another one.
    pub(super) fn host_command(
        &mut self,
        now: Now,
        work: HostWork,
        order: Box<StartJob>,
        out: &mut Vec<Effect>,
    ) {
        let id = TaskId { key: order.key, step: step_of(work) };
        if work == HostWork::Stop {
            if self.host_tasks.get(&id).is_some_and(|t| t.launched) && self.linked {
                ask(out, LaunchMsg::Signal { id, signal: SIGKILL });
            }
            return;
        }
        if self.host_tasks.len() >= HOST_TASKS_MAX && !self.host_tasks.contains_key(&id) {
            let why = format!("{HOST_TASKS_MAX} commands of jobs are known on this host already");
            let state = HostCommandState::Failed { exit: 0, why };
            return self.tell(SbdMsg::HostCommandTold { key: id.key, work, state }, out);
        }
        let state = HostCommandState::Running;
        let (launched, touched) = (false, now.mono_us);
        let new = HostTask { work, order: None, launched, state, touched };
        let task = self.host_tasks.entry(id).or_insert(new);
        (task.touched, task.work) = (now.mono_us, work);
        task.order.get_or_insert(order);
        self.launch_host_command(id, out);
        self.tell_host_command(id, out);
    }

    fn tell_host_command(&self, id: TaskId, out: &mut Vec<Effect>) {
        if let Some(HostTask { work, state, .. }) = self.host_tasks.get(&id) {
            let (key, work, state) = (id.key, *work, state.clone());
            self.tell(SbdMsg::HostCommandTold { key, work, state }, out);
        }
    }

    /// Launches a command, as soon as the environment of its job is here. After the job mbatchd
    /// gives it no more: then the command has the variables of the batch system alone.
    pub(super) fn launch_host_command(&mut self, id: TaskId, out: &mut Vec<Effect>) {
        let Some(task) = self.host_tasks.get_mut(&id).filter(|t| !t.launched) else { return };
        let Some(o) = task.order.as_deref() else { return };
        let (text, status, limit_secs) = match task.work {
            HostWork::After { status } => (&o.host_post_exec, Some(status), o.post_timeout),
            _ => (&o.host_pre_exec, None, 0),
        };
        if text.is_empty() {
            task.state = HostCommandState::Done;
            return;
        }
        if !self.linked {
            return;
        }
        let env = match (self.blobs.get(o.env), status) {
            (Some(env), _) => env,
            (None, Some(_)) => Default::default(),
            (None, None) => {
                let at = o.env;
                return self.need(at, out);
            }
        };
        let env = plan::host_env(&self.conf.site, o, status, &env).into();
        let post = vec![Hook::new(HookOf::Host, text.as_str())];
        let what = FinishPlan { post, env, cwd: "/tmp".into(), limit_secs, ..<_>::default() };
        as_user(o, id.step, what, out);
        task.launched = true;
    }

    /// The environment of jobs has come.
    pub(super) fn launch_host_commands_of(&mut self, at: SpoolRef, out: &mut Vec<Effect>) {
        let waits = |t: &HostTask| !t.launched && t.order.as_ref().is_some_and(|o| o.env == at);
        let ids = self.host_tasks.iter().filter(|(_, t)| waits(t)).map(|(id, _)| *id);
        for id in ids.collect::<Vec<_>>() {
            self.launch_host_command(id, out);
        }
    }

    /// The launcher tells of a command for another host's job; whether the task is one.
    pub(super) fn host_task_told(
        &mut self,
        now: Now,
        info: &TaskInfo,
        out: &mut Vec<Effect>,
    ) -> bool {
        let work = match info.id.step {
            TaskStep::HostBefore => HostWork::Before,
            TaskStep::HostAfter => HostWork::After { status: 0 },
            _ => return false,
        };
        let (state, touched) = (state_of(info), now.mono_us);
        let new = HostTask { work, order: None, launched: true, state: state.clone(), touched };
        let task = self.host_tasks.entry(info.id).or_insert(new);
        (task.launched, task.touched) = (true, now.mono_us);
        task.state = state;
        if task.state != HostCommandState::Running {
            self.tell_host_command(info.id, out);
        }
        true
    }

    /// The launcher has not started a command.
    pub(super) fn host_task_refused(&mut self, id: TaskId, why: String, out: &mut Vec<Effect>) {
        if let Some(task) = self.host_tasks.get_mut(&id) {
            task.state = HostCommandState::Failed { exit: 0, why };
            self.tell_host_command(id, out);
        }
    }

    /// Commands that a launcher which was replaced does not know of are launched when they are
    /// ordered again.
    pub(super) fn host_tasks_missed(&mut self, known: &BTreeSet<TaskId>) {
        let running = |t: &HostTask| t.state == HostCommandState::Running;
        let lost = self.host_tasks.iter_mut().filter(|(id, t)| running(t) && !known.contains(id));
        lost.for_each(|(_, task)| task.launched = false);
    }

    /// When the next ended command is forgotten.
    pub(super) fn host_tasks_deadline(&self) -> Option<u64> {
        let first = self.host_tasks.values().map(|t| t.touched).min()?;
        Some(first.saturating_add(HOST_TASK_KEEP)).filter(|_| self.linked)
    }

    /// Forgets the commands of which nobody has asked for long.
    pub(super) fn forget_host_tasks(&mut self, now: Now, out: &mut Vec<Effect>) {
        if self.host_tasks_deadline().is_none_or(|at| at > now.mono_us) {
            return;
        }
        let late = |t: &HostTask| t.touched.saturating_add(HOST_TASK_KEEP) <= now.mono_us;
        let keys: BTreeSet<JobKey> =
            self.host_tasks.iter().filter(|(_, t)| late(t)).map(|(id, _)| id.key).collect();
        for key in keys {
            let ids = [TaskStep::HostBefore, TaskStep::HostAfter].map(|step| TaskId { key, step });
            let tasks = ids.iter().filter_map(|id| self.host_tasks.get(id));
            let busy =
                |t: &HostTask| !late(t) || t.launched && t.state == HostCommandState::Running;
            if tasks.clone().any(busy) {
                for id in ids {
                    if let Some(task) = self.host_tasks.get_mut(&id) {
                        task.touched = now.mono_us;
                    }
                }
                continue;
            }
            ids.iter().for_each(|id| _ = self.host_tasks.remove(id));
            ask(out, LaunchMsg::Forget { key, over_at: 0 });
        }
    }
}

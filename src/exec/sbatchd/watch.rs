//! Time: kills, limits, and looks at what is used.

use super::agent::*;
use super::usage_of_others::others_by;
use super::*;
use crate::exec::attempt::{Told, Warning};
use crate::exec::host_limits::{memory, waits_for_host};
use crate::model::limits::HostMemory;
use crate::proto::launch::{Hook, HookOf};
use std::cmp::Reverse;

/// Pause before the environment of a job is searched again, microseconds.
const ENV_WAIT: u64 = US;
/// Pause before post-execution commands that take too long are killed again, microseconds.
const POST_KILL: u64 = 10 * US;
/// Why a job beyond its memory limit ends.
const MEMORY: Cause = Cause::Limit(term::MEMLIMIT);

impl Sbatchd {
    pub(super) fn tick(&mut self, now: Now, out: &mut Vec<Effect>) {
        let due = |at: Option<u64>| at.is_some_and(|at| at <= now.mono_us);
        if due(self.retry_launcher) {
            self.retry_launcher = None;
            out.push(Effect::Connect { conn: LAUNCHER, to: Endpoint::Launcher });
        }
        if due(self.retry_lim) {
            self.retry_lim = None;
            let to = Endpoint::Tcp { host: self.conf.site.host.clone(), daemon: Daemon::Lim };
            out.push(Effect::Connect { conn: LIM, to });
        }
        let ripe = |j: &&Attempt| due(next_of(j));
        let keys: Vec<_> = self.jobs.values().filter(ripe).map(|j| j.note.order.key).collect();
        for key in keys {
            self.tick_job(now, key, out);
        }
        if due(self.sample_due()) {
            self.sample(now, out);
        }
        if due(self.members_deadline()) {
            self.members_due(now, out);
        }
        self.tidy_due(now, out);
        self.directories_due(now, out);
        self.validations_due(now, out);
        self.forget_host_tasks(now, out);
    }

    /// This host's clock was set: the limits of jobs go on counting the seconds that pass.
    pub(super) fn clock_stepped(&mut self, now: Now, out: &mut Vec<Effect>) {
        let keys: Vec<JobKey> = self.jobs.keys().copied().collect();
        for key in keys {
            let Some(job) = self.jobs.get_mut(&key) else { continue };
            if job.follow_clock(now) {
                if job.stage == AttemptStage::Running {
                    job.arm(now);
                }
                self.keep_note(key, out);
            }
        }
    }

    pub(super) fn tick_job(&mut self, now: Now, key: JobKey, out: &mut Vec<Effect>) {
        let Some(job) = self.jobs.get_mut(&key) else { return };
        let due = |at: Option<u64>| at.is_some_and(|at| at <= now.mono_us);
        if due(job.sim_end) && job.stage == AttemptStage::Running {
            return self.over(now, key, End::Status(0), out);
        }
        if due(job.finish_by) {
            return self.finish_late(now, key, out);
        }
        if due(others_by(job)) {
            return self.usage_known(now, key, out);
        }
        if due(job.hosts.as_ref().map(|asked| asked.again_at)) {
            return self.hosts_due(now, key, out);
        }
        if due(job.post_by) {
            return self.post_late(now, key, out);
        }
        let control = due(job.control_at) || due(job.control_by);
        if !self.linked && job.sim_end.is_none() {
            let later = |at: Option<u64>| at.map(|at| at.max(now.mono_us + LAUNCHER_RETRY));
            (job.run_at, job.kill_at) = (later(job.run_at), later(job.kill_at));
            job.warn_at = later(job.warn_at);
            (job.control_at, job.control_by) = (later(job.control_at), later(job.control_by));
            (job.checkpoint_at, job.stop_at) = (later(job.checkpoint_at), later(job.stop_at));
        } else if control {
            self.control_due(now, key, out);
        } else if due(job.warn_at) {
            self.warn(now, key, out);
        } else if due(job.run_at) {
            job.run_at = None;
            match job.overdue(now) {
                Some(cause) => self.start_termination(now, key, cause, out),
                None => job.arm(now),
            }
        } else if due(job.kill_at) {
            self.send_next_signal(now, key, out);
        } else if due(job.stop_at) {
            self.stop_due(now, key, out);
        } else if due(job.checkpoint_at) {
            self.checkpoint_due(now, key, out);
        }
    }

    /// The post-execution commands take too long: they are killed and count as failed.
    fn post_late(&mut self, now: Now, key: JobKey, out: &mut Vec<Effect>) {
        let Some(job) = self.jobs.get_mut(&key) else { return };
        job.post_by = Some(now.mono_us + POST_KILL);
        if self.linked {
            let minutes = job.note.order.post_timeout / 60;
            let text = format!("{key}: post-execution took longer than {minutes} min, killed");
            say(out, log::Level::Warn, text);
            let id = TaskId { key, step: TaskStep::Finish };
            ask(out, LaunchMsg::Signal { id, signal: SIGKILL });
        }
    }

    /// Does what -wa asks for, once.
    fn warn(&mut self, now: Now, key: JobKey, out: &mut Vec<Effect>) {
        let Some(job) = self.jobs.get_mut(&key) else { return };
        job.warn_at = None;
        let Some((action, _)) = job.warning() else { return };
        match action {
            Warning::Signal(signal) => {
                job.note.mark.warned = true;
                self.signal(now, key, signal, out);
            }
            Warning::Checkpoint => {
                job.note.mark.warned = true;
                job.note.mark.wanted.get_or_insert_default();
                self.begin_checkpoint(now, key, out);
            }
            Warning::Command(text) => {
                let o = &job.note.order;
                let Some(env) = self.blobs.get(o.env) else {
                    let at = o.env;
                    job.warn_at = Some(now.mono_us + ENV_WAIT);
                    return self.need(at, out);
                };
                let env = plan::control_env(
                    &self.conf.site,
                    &job.note.order,
                    &job.ready,
                    (job.pid, &job.pids, &job.pgids),
                    &env,
                );
                let hook = Hook::new(HookOf::Job, text);
                let cwd = job.ready.cwd.as_str().into();
                let what =
                    FinishPlan { post: vec![hook], env: env.into(), cwd, ..FinishPlan::default() };
                as_account(job, TaskStep::Warn, what, out);
                job.note.mark.warned = true;
            }
        }
        self.keep_note(key, out);
    }

    /// The instant of the next measurement of processes.
    pub(super) fn sample_due(&self) -> Option<u64> {
        let jobs = self.jobs.values().filter(|j| j.live()).filter_map(|j| j.sample_at).min();
        let next = jobs.into_iter().chain(self.members.sample_at()).min()?;
        Some(next.max(self.sampled_at + SAMPLE_GAP))
    }

    pub(super) fn sample(&mut self, now: Now, out: &mut Vec<Effect>) {
        self.sampled_at = now.mono_us;
        let due = |j: &Attempt| j.sample_at.is_none_or(|at| at <= now.mono_us);
        let running = |j: &&mut Attempt| j.stage == AttemptStage::Running;
        // the whole table of processes is read for one job without a control group or for all
        let mut all = self.jobs.values_mut().filter(running);
        let table = all.any(|j| j.group.is_none() && due(j));
        let (mut tasks, mut others) = (Vec::new(), Vec::new());
        for job in self.jobs.values_mut().filter(running) {
            let looked = due(job) || table && job.group.is_none();
            if job.sim_end.is_none() {
                if looked { &mut tasks } else { &mut others }.push(job.identity());
            }
            if !looked {
                continue;
            }
            let usual = self.params.sbd_sleep_time.max(self.conf.pim_interval);
            let pause = job.sample_pause(usual, self.conf.site.enforcement);
            job.sample_at = Some(now.mono_us + pause);
            tasks.extend(self.members.tasks_of(job.note.order.key).cloned());
        }
        let usual = self.params.sbd_sleep_time.max(self.conf.pim_interval).max(1);
        tasks.extend(self.members.to_measure(now, usual * US));
        // what is not looked at is no orphan of another task
        let looked: BTreeSet<TaskId> = tasks.iter().map(|task| task.id).collect();
        others.extend(self.members.all_tasks().filter(|task| !looked.contains(&task.id)).cloned());
        if !tasks.is_empty() {
            out.push(Effect::Os(OsEffect::Sample { tasks, others }));
        }
    }

    pub(super) fn sampled(
        &mut self,
        now: Now,
        (tasks, host): (Vec<TaskProcesses>, HostMemory),
        out: &mut Vec<Effect>,
    ) {
        let whole = |t: TaskProcesses| TaskProcesses { most_of_task: t.usage.mem_kb, ..t };
        let by_pid: BTreeMap<u32, TaskProcesses> =
            tasks.into_iter().map(|t| (t.pid, whole(t))).collect();
        self.members.keep_measured(&by_pid);
        let mut over = Vec::new();
        for job in self.jobs.values_mut().filter(|j| j.stage == AttemptStage::Running) {
            let Some(own) = by_pid.get(&job.pid) else { continue };
            let key = job.note.order.key;
            let processes = self.members.with_tasks_of(key, own, &by_pid);
            over.extend(
                job.sampled(now, &processes, self.conf.site.enforcement).map(|cause| (key, cause)),
            );
            if job.report_at <= now.mono_us && job.news(self.params.report_share()) {
                job.report_at = now.after(self.params.report_pause());
                job.told = Some(Told { usage: job.usage, pids: job.pids.clone() });
                if let Some((conn, true)) = self.mbd {
                    let some = |all: &[u32]| all[..all.len().min(caps::MAX_PIDS)].to_vec();
                    let (usage, pids, pgids) = (job.usage, some(&job.pids), some(&job.pgids));
                    // most have one, which is told already
                    let several = job.groups.iter().any(|g| Some(g) != job.groups.first());
                    let groups = if several { some(&job.groups) } else { Vec::new() };
                    let msg = SbdMsg::Usage { key, usage: usage.into(), pids, pgids, groups };
                    out.push(Effect::Send { conn, msg: Msg::Sbd(msg) });
                }
            }
        }
        over.extend(self.beyond_memory(now, &host).into_iter().map(|key| (key, MEMORY)));
        for (key, cause) in over {
            self.start_termination(now, key, cause, out);
        }
        self.members_measured(&by_pid, out);
    }
}

impl Sbatchd {
    /// The jobs beyond their memory limits that are ended now as LSB_MEMLIMIT_ENF_CONTROL says:
    /// none before its pause is over, or while the host has memory; the one that is beyond its
    /// limit by most, or all.
    fn beyond_memory(&mut self, now: Now, host: &HostMemory) -> Vec<JobKey> {
        let enforced = self.conf.site.enforcement;
        let Some(control) = enforced.memory_control else { return Vec::new() };
        if now.mono_us < self.memory_look_at {
            return Vec::new();
        }
        let running = self.jobs.values().filter(|job| job.stage == AttemptStage::Running);
        let mut beyond: Vec<(u64, JobKey)> = running
            .filter_map(|job| {
                let order = &job.note.order;
                let waits = waits_for_host(order, enforced) && job.note.mark.kill.is_none();
                let limit = memory(&order.limits, enforced).filter(|_| waits)?;
                let beyond = job.usage.mem_kb.checked_sub(limit).filter(|kb| *kb > 0)?;
                Some((beyond, order.key))
            })
            .collect();
        if beyond.is_empty() {
            return Vec::new();
        }
        self.memory_look_at = now.after(control.pause);
        if !control.is_reached(host) {
            return Vec::new();
        }
        beyond.sort_unstable_by_key(|(kb, key)| (Reverse(*kb), *key));
        let most = if control.all { beyond.len() } else { 1 };
        beyond.into_iter().take(most).map(|(_, key)| key).collect()
    }
}

/// The next instant of one attempt, its sampling apart.
pub(super) fn next_of(j: &Attempt) -> Option<u64> {
    let sim = j.sim_end.filter(|_| j.stage == AttemptStage::Running);
    let controls = [j.control_at, j.control_by, j.checkpoint_at, j.stop_at];
    let of_job = [j.kill_at, j.run_at, j.warn_at].into_iter().chain(controls);
    let live = of_job.filter(|_| j.live());
    let hosts = j.hosts.as_ref().map(|asked| asked.again_at);
    live.chain([sim, j.finish_by, j.post_by, hosts, others_by(j)]).flatten().min()
}

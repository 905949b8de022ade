//! Turns an order into a task of the launcher; orders on running attempts.

use super::agent::*;
use super::*;
use crate::exec::bind_job;
use crate::exec::members::is_old;
use crate::model::signals::ENDING_SIGNALS;

impl Sbatchd {
    pub(super) fn start(&mut self, now: Now, order: StartJob, out: &mut Vec<Effect>) {
        let key = order.key;
        if self.jobs.contains_key(&key) {
            return self.tell_state(key, out);
        }
        let full = self.jobs.len() >= ATTEMPTS_MAX;
        let stale = !order.boot.is_empty() && *order.boot != *self.boot_id;
        let mut job = Attempt::new(order, now);
        if stale {
            // made for this host before it was restarted: it may have run then
            let (end, exit_info) = (End::Unknown, term::HOST_RESTART);
            job.outcome = Some((AttemptPhase::Ended { end, exit_info }, now.secs()));
            job.stage = AttemptStage::Over;
            return self.tell_task(job.state(), out);
        }
        if full {
            job.ready.note = format!("{ATTEMPTS_MAX} attempts are known on this host already");
            let reason = PendReason::SbatchdRefused.number();
            job.outcome = Some((AttemptPhase::Failed { reason }, now.secs()));
            job.stage = AttemptStage::Over;
            return self.tell_task(job.state(), out);
        }
        self.jobs.insert(key, job);
        if self.params.simulated {
            self.simulate(now, key, out);
        } else {
            self.prepare(now, key, out);
        }
    }

    /// Launches an attempt if its environment and script are here; else asks for them.
    pub(super) fn prepare(&mut self, now: Now, key: JobKey, out: &mut Vec<Effect>) {
        let Some(job) = self.jobs.get(&key).filter(|j| j.stage == AttemptStage::Blobs) else {
            return;
        };
        if self.tidy.runs(job.note.order.uid) || self.waits_for_hosts(now, key, out) {
            return;
        }
        let Some(job) = self.jobs.get(&key) else { return };
        let (env_at, script_at) = (job.note.order.env, job.note.order.script);
        let (env, script) = (self.blobs.get(env_at), self.blobs.get(script_at));
        if let (Some(env), Some(script)) = (&env, &script) {
            let others = self.jobs.values().filter(|j| j.live());
            let taken = others.map(|j| j.note.order.bound.as_str());
            let (policy, cpus) = bind_job::bound(&self.conf.site, &job.note.order, env, taken);
            let Some(job) = self.jobs.get_mut(&key) else { return };
            if !cpus.is_empty() {
                job.note.order.bind_job = policy;
            }
            job.note.order.bound = cpus;
            if !script.is_empty() {
                job.note.shown = report::shown(script);
            }
            let plan = plan::plan(&self.conf.site, &job.note.order, env, script);
            job.note.mark.include_post = plan::includes_post(&job.note.order, env);
            (job.plan, job.stage) = (Some(Box::new(plan)), AttemptStage::Launching);
            job.accepted = now.secs();
            return self.launch_job(key, out);
        }
        for (at, have) in [(env_at, env), (script_at, script)] {
            if have.is_none() {
                self.need(at, out);
            }
        }
    }

    pub(super) fn blob(&mut self, now: Now, at: SpoolRef, data: Vec<u8>, out: &mut Vec<Effect>) {
        if !self.asked.remove(&at) || data.len() != at.len as usize {
            return say(out, log::Level::Warn, format!("{at}: bytes not asked for"));
        }
        self.blobs.put(at, data);
        let mine = |j: &&Attempt| {
            j.stage == AttemptStage::Blobs && (j.note.order.env == at || j.note.order.script == at)
        };
        let keys: Vec<_> = self.jobs.values().filter(mine).map(|j| j.note.order.key).collect();
        for key in keys {
            self.prepare(now, key, out);
        }
        let over = |j: &&Attempt| j.stage == AttemptStage::Finishing && j.note.order.env == at;
        let keys: Vec<_> = self.jobs.values().filter(over).map(|j| j.note.order.key).collect();
        for key in keys {
            self.finish(now, key, out);
        }
    }

    pub(super) fn launch_job(&self, key: JobKey, out: &mut Vec<Effect>) {
        let Some(job) = self.jobs.get(&key).filter(|_| self.linked) else { return };
        if let Some(plan) = &job.plan {
            let (plan, note) = (plan.clone(), note_text(&job.note));
            ask(out, LaunchMsg::Start { id: TaskId { key, step: TaskStep::Job }, plan, note });
        }
    }

    /// Simulates the job without processes: `sleep N` lasts N seconds, any other command ends at
    /// once.
    pub(super) fn simulate(&mut self, now: Now, key: JobKey, out: &mut Vec<Effect>) {
        let pid = self.sim_pid;
        self.sim_pid = self.sim_pid.wrapping_add(1).max(1);
        let Some(job) = self.jobs.get_mut(&key) else { return };
        let command = job.note.order.spec.command.lossy().into_owned();
        let secs = command.trim().strip_prefix("sleep ").and_then(|s| s.trim().parse::<f64>().ok());
        let us = secs.filter(|s| s.is_finite()).unwrap_or(0.0).clamp(0.0, 1e9) * US as f64;
        (job.stage, job.pid, job.started) = (AttemptStage::Running, pid, now.secs());
        job.ready.user = job.note.order.user.to_string();
        job.sim_end = Some(now.mono_us + us as u64);
        self.tell_state(key, out);
    }

    /// `number`: an older mbatchd has the first half of it alone.
    pub(super) fn act(
        &mut self,
        now: Now,
        key: JobKey,
        number: (u32, u64),
        act: Act,
        out: &mut Vec<Effect>,
    ) {
        let Some(job) = self.jobs.get_mut(&key) else {
            return self.member_act(now, key, number, &act, out);
        };
        let mark = &mut job.note.mark;
        if is_old(number, (mark.seq, mark.order)) {
            return;
        }
        if !self.linked && job.live() && job.sim_end.is_none() {
            if self.deferred.len() < DEFERRED_MAX {
                self.deferred.push((key, number, act));
            }
            return;
        }
        let mark = &mut job.note.mark;
        (mark.seq, mark.order) = (mark.seq.max(number.0), mark.order.max(number.1));
        match (job.stage, act) {
            (AttemptStage::Finishing, Act::Terminate { .. }) => {
                return self.cut_short(now, key, out);
            }
            (AttemptStage::Finishing | AttemptStage::Over, _) => return,
            (AttemptStage::Blobs, Act::Terminate { exit_info }) => {
                return self.ended_before(now, key, SIGINT, exit_info, out);
            }
            // the signals that end a pending job end one that nothing runs of
            (AttemptStage::Blobs, Act::Signal { number }) if ENDING_SIGNALS.contains(&number) => {
                return self.ended_before(now, key, number, 0, out);
            }
            (AttemptStage::Blobs, Act::Signal { .. }) => return,
            (_, Act::Limits(limits)) => {
                job.note.order.limits = *limits;
                if job.stage == AttemptStage::Running {
                    job.arm(now);
                }
            }
            (AttemptStage::Blobs | AttemptStage::Launching, act @ (Act::Suspend | Act::Resume)) => {
                job.suspend_asked = act == Act::Suspend
            }
            // mbatchd orders it again when the job runs
            (
                AttemptStage::Blobs | AttemptStage::Launching,
                Act::Checkpoint(_) | Act::Resize(_),
            ) => return,
            (_, Act::Resize(order)) => self.resize_ordered(now, key, *order, out),
            (_, Act::Checkpoint(order)) => self.checkpoint_ordered(now, key, order, out),
            (_, Act::Terminate { exit_info }) => {
                self.start_termination(now, key, Cause::Asked(exit_info), out);
            }
            (_, Act::Signal { number }) => {
                job.note_signal(number);
                self.signal(now, key, number, out);
            }
            (_, Act::Suspend) => {
                let why = job.suspend_why;
                self.suspend(now, key, why, out);
            }
            (_, Act::Resume) => self.resume(now, key, out),
        }
        self.keep_note(key, out);
    }

    /// A job of which nothing runs yet on this host is ended by a signal.
    fn ended_before(
        &mut self,
        now: Now,
        key: JobKey,
        signal: i32,
        exit_info: u32,
        out: &mut Vec<Effect>,
    ) {
        let Some(job) = self.jobs.get_mut(&key) else { return };
        job.note.mark.exit_info = exit_info;
        let end = End::Status(signal);
        job.outcome = Some((AttemptPhase::Ended { end, exit_info }, now.secs()));
        job.stage = AttemptStage::Over;
        self.stop_hosts(key, out);
        self.tell_state(key, out);
    }

    /// mbatchd is done with an attempt, or never wanted it.
    pub(super) fn forget(&mut self, now: Now, key: JobKey, out: &mut Vec<Effect>) {
        if self.jobs.get(&key).is_some_and(|j| j.live() && j.sim_end.is_none()) {
            self.start_termination(now, key, Cause::Forgotten, out);
        }
        let Some(gone) = self.jobs.remove(&key) else { return };
        self.end_tasks_of(now, key, out);
        if gone.sim_end.is_none() && self.linked {
            self.members.over(key);
            ask(out, LaunchMsg::Forget { key, over_at: now.mono_us });
        }
        let order = &gone.note.order;
        [order.env, order.script].into_iter().for_each(|at| self.need_again(at, out));
    }

    /// The attempt that asked for these bytes is forgotten: mbatchd may have refused them, since it
    /// had given the attempt up. The bytes are requested again where another attempt waits for
    /// them.
    fn need_again(&mut self, at: SpoolRef, out: &mut Vec<Effect>) {
        let waits = |j: &Attempt| {
            matches!(j.stage, AttemptStage::Blobs | AttemptStage::Finishing)
                && (j.note.order.env == at || j.note.order.script == at)
        };
        if self.asked.remove(&at) && self.jobs.values().any(waits) {
            self.need(at, out);
        }
    }
}

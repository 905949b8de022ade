//! JOB_CONTROLS of the queue (lsb.queues(5)): the actions that take the place of the signals by
//! which jobs are suspended, resumed and terminated.
//!
//! A command runs as the user in a task of its own, so that sbatchd waits for nothing, and a
//! request that comes meanwhile is carried out when it has ended. A command that fails, that cannot
//! be started or that takes longer than [`INTERVALS`] allow is followed by the usual signals.
//! Invariants: of one attempt one command runs at a time; a kill by force ends it and waits for
//! none.

use super::agent::*;
use super::*;
use crate::exec::attempt::{HeldEnd, RunningControl, WantedCheckpoint};
use crate::exec::resize;
use crate::model::checkpoint::CheckpointEnd;
use crate::model::job_control::{ControlAction, ControlVerb};
use crate::model::reason::susp;
use crate::model::resize::{NOTIFY_FAIL, NOTIFY_OK, ResizeTold};
use crate::proto::launch::{Hook, HookOf, Ready};
use std::borrow::Cow;

/// The time for a command, in multiples of JOB_TERMINATE_INTERVAL.
pub const INTERVALS: u64 = 6;
/// How long after that sbatchd waits for the starter, which ends its command, microseconds.
const OVERTIME: u64 = 2 * US;
/// The time for a checkpoint, seconds.
pub const CHECKPOINT_SECS: u64 = 3600;
/// The time for a notification command, seconds.
pub const RESIZE_SECS: u64 = 600;
/// Pause before the environment of a job is searched again, microseconds.
const ENV_WAIT: u64 = US;

/// The reply of the queue's actions to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Course {
    /// There is no action: the usual signals.
    Usual,
    /// The job was sent the signal of the action.
    Signalled,
    /// A command runs; the request is done, or followed by the usual signals, when it has ended.
    Waits,
}

impl Sbatchd {
    pub(super) fn start_termination(
        &mut self,
        now: Now,
        key: JobKey,
        cause: Cause,
        out: &mut Vec<Effect>,
    ) {
        let interval = self.params.job_terminate_interval;
        let Some(job) = self.jobs.get_mut(&key) else { return };
        if !job.start_termination(cause, interval, now) {
            return;
        }
        if cause.by_force() {
            self.drop_control(now, key, out);
            self.send_next_signal(now, key, out);
        } else {
            self.terminate(now, key, out);
            self.keep_note(key, out);
        }
    }

    /// `why`: the suspending reason.
    pub(super) fn suspend(&mut self, now: Now, key: JobKey, why: u32, out: &mut Vec<Effect>) {
        match self.by_action(now, key, (ControlVerb::Suspend, why), out) {
            Course::Usual => return self.stop(now, key, out),
            Course::Signalled => {}
            Course::Waits => return,
        }
        self.now_suspended(now, key, out);
    }

    /// Suspends a job by the usual signal. All but SIGSTOP can be caught or ignored, and SIGTSTP
    /// does nothing to most jobs, whose process group is orphaned: SIGSTOP follows, so that a job
    /// that is shown as suspended is stopped.
    fn stop(&mut self, now: Now, key: JobKey, out: &mut Vec<Effect>) {
        let Some(job) = self.jobs.get_mut(&key) else { return };
        let signal = job.stop_signal(self.conf.site.stop_signal);
        if signal == SIGKILL {
            return self.start_termination(now, key, Cause::Asked(term::UNKNOWN), out);
        }
        if signal != SIGSTOP && job.note.mark.stop_by == 0 {
            let interval = self.params.job_terminate_interval.max(1);
            job.note.mark.stop_by = now.secs().saturating_add_unsigned(interval);
        }
        self.send_stop_signal(now, key, signal, out);
        self.now_suspended(now, key, out);
        if let Some(job) = self.jobs.get_mut(&key) {
            job.arm_stop(now);
        }
    }

    pub(super) fn resume(&mut self, now: Now, key: JobKey, out: &mut Vec<Effect>) {
        match self.by_action(now, key, (ControlVerb::Resume, 0), out) {
            Course::Usual => self.send_stop_signal(now, key, SIGCONT, out),
            Course::Signalled => {}
            Course::Waits => return,
        }
        self.now_resumed(now, key, out);
    }

    /// Begins to carry out a request by the action of the queue, if there is one.
    pub(super) fn by_action(
        &mut self,
        now: Now,
        key: JobKey,
        (verb, why): (ControlVerb, u32),
        out: &mut Vec<Effect>,
    ) -> Course {
        let interval = self.params.job_terminate_interval.max(1);
        let Some(job) = self.jobs.get_mut(&key).filter(|j| j.sim_end.is_none()) else {
            return Course::Usual;
        };
        if let Some(runs) = &mut job.note.mark.control {
            return match (runs.verb, runs.next) {
                // what ends a job is not held up by a stop
                (ControlVerb::Terminate, _) | (_, Some((ControlVerb::Terminate, _))) => {
                    Course::Usual
                }
                (running, _) => {
                    runs.next = (verb != running).then_some((verb, why));
                    if verb == ControlVerb::Terminate {
                        let id = TaskId { key, step: TaskStep::Control };
                        job.control_by = Some(now.mono_us + OVERTIME);
                        ask(out, LaunchMsg::Signal { id, signal: SIGKILL });
                    }
                    Course::Waits
                }
            };
        }
        match job.note.order.controls.action(verb).cloned() {
            None => Course::Usual,
            Some(ControlAction::Signal(number)) => {
                match verb {
                    ControlVerb::Terminate => self.signal(now, key, number, out),
                    _ => self.send_stop_signal(now, key, number, out),
                }
                Course::Signalled
            }
            Some(ControlAction::Checkpoint) => {
                if job.note.order.spec.further.checkpoint.is_none() {
                    return Course::Usual;
                }
                let then = Some((verb, why));
                job.note.mark.wanted = Some(WantedCheckpoint { then, ..<_>::default() });
                self.begin_checkpoint(now, key, out);
                Course::Waits
            }
            Some(ControlAction::Command(_)) => {
                let since = now.secs();
                job.note.mark.control = Some(RunningControl { verb, since, why, next: None });
                job.control_by = Some(now.after(interval * INTERVALS) + OVERTIME);
                self.keep_note(key, out);
                self.start_command(now, key, out);
                Course::Waits
            }
        }
    }

    /// Has the launcher run the command, once the environment of the job is here.
    fn start_command(&mut self, now: Now, key: JobKey, out: &mut Vec<Effect>) {
        let interval = self.params.job_terminate_interval.max(1);
        let Some(job) = self.jobs.get_mut(&key) else { return };
        let Some(control) = job.note.mark.control else { return };
        let o = &job.note.order;
        let wanted = job.note.mark.wanted.unwrap_or_default();
        let text: Cow<'_, str> = match o.controls.action(control.verb) {
            _ if control.verb == ControlVerb::Checkpoint => {
                crate::exec::checkpoint::command(o, job.pid, wanted.order).into()
            }
            _ if control.verb == ControlVerb::Resize => match &job.note.mark.resize {
                Some(order) => resize::command(order, &host_file(o.resizable, &job.ready)).into(),
                None => return,
            },
            Some(ControlAction::Command(text)) => (&**text).into(),
            _ => return,
        };
        let Some(user_env) = self.blobs.get(o.env) else {
            let at = o.env;
            job.control_at = Some(now.mono_us + ENV_WAIT);
            return self.need(at, out);
        };
        job.control_at = None;
        let processes = (job.pid, &job.pids[..], &job.pgids[..]);
        let order = job.note.mark.resize.as_ref().filter(|_| control.verb == ControlVerb::Resize);
        let after;
        let seen = match order {
            // the variables of the job are those that it has with the change
            Some(order) => {
                after = StartJob { hosts: order.allocation.clone(), ..o.clone() };
                &after
            }
            None => o,
        };
        let mut env = plan::control_env(&self.conf.site, seen, &job.ready, processes, &user_env);
        let mut put = |name: &str, value: &str| {
            env.extend_from_slice(format!("{name}={value}\0").as_bytes());
        };
        if control.verb == ControlVerb::Checkpoint {
            crate::exec::checkpoint::variables(o, &mut put);
        } else if let Some(order) = order {
            resize::variables(order, &host_file(o.resizable, &job.ready), &mut put);
        } else {
            put("LS_EXEC_T", "JOB_CONTROLS");
        }
        if control.verb == ControlVerb::Suspend {
            let (reasons, subreasons) = susp::bits(control.why);
            put("LSB_SUSP_REASONS", &reasons.to_string());
            put("LSB_SUSP_SUBREASONS", &subreasons.to_string());
        }
        let post = vec![Hook::new(HookOf::Job, text.as_bytes().to_vec())];
        let cwd = job.ready.cwd.as_str().into();
        let limit_secs = time_for(control.verb, interval);
        let checkpoint = control.verb == ControlVerb::Checkpoint;
        let eexec = match checkpoint && job.ready.eexec {
            true => plan::eexec(&self.conf.site, &user_env),
            false => launch::Eexec::default(),
        };
        let env = env.into();
        let what =
            FinishPlan { eexec, checkpoint, post, env, cwd, limit_secs, ..FinishPlan::default() };
        as_account(job, TaskStep::Control, what, out);
    }

    /// A command is due: its environment is searched again, or its time is over.
    pub(super) fn control_due(&mut self, now: Now, key: JobKey, out: &mut Vec<Effect>) {
        let Some(job) = self.jobs.get_mut(&key) else { return };
        if job.control_by.is_some_and(|at| at <= now.mono_us) {
            let text = format!(
                "{key}: a checkpoint, a notification command or an action of JOB_CONTROLS did not \
                 end in time, killed"
            );
            say(out, log::Level::Warn, text);
            let id = TaskId { key, step: TaskStep::Control };
            ask(out, LaunchMsg::Signal { id, signal: SIGKILL });
            return self.control_over(now, key, false, out);
        }
        self.start_command(now, key, out);
    }

    /// The launcher tells of the task of a command.
    pub(super) fn control_told(&mut self, now: Now, info: &TaskInfo, out: &mut Vec<Effect>) {
        let key = info.id.key;
        let interval = self.params.job_terminate_interval.max(1);
        let Some(job) = self.jobs.get_mut(&key) else { return };
        let Some(control) = job.note.mark.control else { return };
        // of an earlier command where the one noted was not begun
        let earlier = info.started < control.since;
        match &info.ended {
            _ if earlier => self.control_over(now, key, false, out),
            Some(ended) => {
                let well = ended.end == End::Status(0);
                self.control_over(now, key, well, out);
            }
            None => {
                let by = now.after(time_for(control.verb, interval)) + OVERTIME;
                job.control_by.get_or_insert(by);
                if control.verb == ControlVerb::Resize {
                    self.resize_runs(key, info.pid, out);
                }
            }
        }
    }

    /// A command has ended: what it was to do is done, or is done by the usual signals.
    pub(super) fn control_over(
        &mut self,
        now: Now,
        key: JobKey,
        well: bool,
        out: &mut Vec<Effect>,
    ) {
        let Some(job) = self.jobs.get_mut(&key) else { return };
        let Some(control) = job.note.mark.control.take() else { return };
        (job.control_by, job.control_at) = (None, None);
        let wanted = job.note.mark.wanted.filter(|_| control.verb == ControlVerb::Checkpoint);
        let then = wanted.and_then(|wanted| wanted.then);
        if control.verb == ControlVerb::Checkpoint {
            self.checkpoint_over(now, key, well, out);
        } else if control.verb == ControlVerb::Resize {
            self.resize_over(key, well, out);
        }
        let Some(job) = self.jobs.get_mut(&key) else { return };
        if job.stage != AttemptStage::Running {
            return;
        }
        if matches!(control.verb, ControlVerb::Checkpoint | ControlVerb::Resize) {
            // told of
        } else if !well && control.next.is_none() {
            let text = format!(
                "{key}: the {:?} action of JOB_CONTROLS failed, the usual signals are sent",
                control.verb
            );
            say(out, log::Level::Warn, text);
        }
        match (control.verb, control.next) {
            (_, Some((ControlVerb::Terminate, _))) => {}
            (ControlVerb::Checkpoint, _) => self.after_checkpoint(now, key, then, out),
            (ControlVerb::Resize, _) => {}
            (ControlVerb::Suspend, _) => {
                if well {
                    self.now_suspended(now, key, out);
                } else {
                    self.stop(now, key, out);
                }
            }
            (ControlVerb::Resume, _) => {
                if !well {
                    self.send_stop_signal(now, key, SIGCONT, out);
                }
                self.now_resumed(now, key, out);
            }
            (ControlVerb::Terminate, _) if well => self.terminated_by_action(key),
            (ControlVerb::Terminate, _) => self.send_next_signal(now, key, out),
        }
        match control.next {
            Some((ControlVerb::Suspend, why)) => self.suspend(now, key, why, out),
            Some((ControlVerb::Resume, _)) => self.resume(now, key, out),
            Some((ControlVerb::Terminate, _)) => self.terminate(now, key, out),
            Some((ControlVerb::Checkpoint | ControlVerb::Resize, _)) | None => {}
        }
        self.begin_checkpoint(now, key, out);
        self.begin_resize(now, key, out);
        self.keep_note(key, out);
    }

    /// The checkpoint of JOB_CONTROLS has ended, well or not: the usual signals follow.
    fn after_checkpoint(
        &mut self,
        now: Now,
        key: JobKey,
        then: Option<(ControlVerb, u32)>,
        out: &mut Vec<Effect>,
    ) {
        match then {
            Some((ControlVerb::Suspend, why)) => {
                if let Some(job) = self.jobs.get_mut(&key) {
                    job.suspend_why = why;
                }
                self.send_stop_signal(now, key, SIGSTOP, out);
                self.now_suspended(now, key, out);
            }
            Some((ControlVerb::Terminate, _)) => self.send_next_signal(now, key, out),
            _ => {}
        }
    }

    /// Sends what ends a job: the action of its queue, else the next signal.
    pub(super) fn terminate(&mut self, now: Now, key: JobKey, out: &mut Vec<Effect>) {
        let Some(job) = self.jobs.get(&key) else { return };
        let acts = job.note.order.controls.terminate.is_some() && job.sim_end.is_none();
        // what is stopped cannot follow
        if acts && job.suspended() && job.note.mark.control.is_none() {
            self.send_stop_signal(now, key, SIGCONT, out);
            // mbatchd orders the end of what it hears to run once more
            self.count_suspension(now, key);
        }
        match self.by_action(now, key, (ControlVerb::Terminate, 0), out) {
            Course::Usual => self.send_next_signal(now, key, out),
            Course::Signalled => self.terminated_by_action(key),
            Course::Waits => {
                if let Some(job) = self.jobs.get_mut(&key) {
                    job.kill_at = None;
                }
            }
        }
    }

    /// A kill by force waits for no command, and ends the one that runs.
    pub(super) fn drop_control(&mut self, now: Now, key: JobKey, out: &mut Vec<Effect>) {
        let Some(job) = self.jobs.get_mut(&key) else { return };
        if job.note.mark.control.take().is_some() {
            (job.control_by, job.control_at) = (None, None);
            let id = TaskId { key, step: TaskStep::Control };
            ask(out, LaunchMsg::Signal { id, signal: SIGKILL });
            if let Some(HeldEnd { setup, ended }) = job.held_end.take() {
                self.ended(now, key, setup, *ended, out);
            }
        }
    }

    /// Begins the checkpoint that is wanted, if nothing else is being done to the job.
    pub(super) fn begin_checkpoint(&mut self, now: Now, key: JobKey, out: &mut Vec<Effect>) {
        let Some(job) = self.jobs.get_mut(&key) else { return };
        let open = job.stage == AttemptStage::Running && job.note.mark.control.is_none();
        let Some(wanted) = job.note.mark.wanted.as_mut().filter(|w| open && !w.running) else {
            return;
        };
        wanted.running = true;
        let (verb, since) = (ControlVerb::Checkpoint, now.secs());
        job.note.mark.control = Some(RunningControl { verb, since, why: 0, next: None });
        if job.sim_end.is_some() {
            return self.control_over(now, key, true, out);
        }
        job.control_by = Some(now.after(CHECKPOINT_SECS) + OVERTIME);
        let stands = job.suspended();
        self.keep_note(key, out);
        // a method may need the help of the job's processes
        if stands {
            self.send_stop_signal(now, key, SIGCONT, out);
        }
        self.start_command(now, key, out);
    }

    /// The checkpoint has ended: it is told of, and a job that was to end after it is ended.
    fn checkpoint_over(&mut self, now: Now, key: JobKey, succeeded: bool, out: &mut Vec<Effect>) {
        let Some(job) = self.jobs.get_mut(&key) else { return };
        let mark = &mut job.note.mark;
        let wanted = mark.wanted.take().unwrap_or_default();
        let (number, period) = (mark.checkpoint.number.saturating_add(1), mark.checkpoint.period);
        let kill = wanted.order.kill;
        mark.checkpoint = CheckpointEnd { number, succeeded, kill, asked: wanted.asked, period };
        let next = mark.next_wanted.take();
        mark.wanted = next.map(|order| WantedCheckpoint {
            order,
            asked: true,
            ..WantedCheckpoint::default()
        });
        job.arm_checkpoint(now);
        if !succeeded {
            say(out, log::Level::Warn, format!("{key}: its checkpoint failed"));
        }
        if let Some(HeldEnd { setup, ended }) = job.held_end.take() {
            if succeeded && job.note.mark.exit_info == 0 {
                job.note.mark.exit_info = term::CHKPNT;
            }
            return self.ended(now, key, setup, *ended, out);
        }
        if job.stage != AttemptStage::Running {
            return;
        }
        let stands = job.suspended() && job.note.mark.kill.is_none();
        self.tell_state(key, out);
        if succeeded && kill {
            self.start_termination(now, key, Cause::Asked(term::CHKPNT), out);
        } else if stands {
            self.send_stop_signal(now, key, SIGSTOP, out);
        }
    }

    /// Begins with the change that is ordered, if nothing else is being done to the job.
    pub(super) fn begin_resize(&mut self, now: Now, key: JobKey, out: &mut Vec<Effect>) {
        let Some(job) = self.jobs.get_mut(&key) else { return };
        let open = job.stage == AttemptStage::Running && job.note.mark.control.is_none();
        let Some(order) = job.note.mark.resize.as_ref().filter(|_| open) else { return };
        let (verb, since) = (ControlVerb::Resize, now.secs());
        let silent =
            order.command.is_empty() && host_file(job.note.order.resizable, &job.ready).is_empty();
        job.note.mark.control = Some(RunningControl { verb, since, why: 0, next: None });
        if job.sim_end.is_some() || silent {
            return self.control_over(now, key, true, out);
        }
        job.control_by = Some(now.after(RESIZE_SECS) + OVERTIME);
        self.keep_note(key, out);
        self.start_command(now, key, out);
    }

    /// The launcher has started the notification command.
    fn resize_runs(&mut self, key: JobKey, pid: u32, out: &mut Vec<Effect>) {
        let Some(job) = self.jobs.get_mut(&key) else { return };
        let Some(order) = &job.note.mark.resize else { return };
        let told = ResizeTold { number: order.number, pid, status: None };
        if pid != 0 && !order.command.is_empty() && job.resize_runs != told {
            job.resize_runs = told;
            self.tell_state(key, out);
        }
    }

    /// The command has ended: the job has the hosts of the order if it took the change.
    fn resize_over(&mut self, key: JobKey, well: bool, out: &mut Vec<Effect>) {
        let Some(job) = self.jobs.get_mut(&key) else { return };
        let Some(order) = job.note.mark.resize.take() else { return };
        let pid = job.resize_runs.pid;
        let status = Some(if well { NOTIFY_OK } else { NOTIFY_FAIL });
        job.note.mark.resized = ResizeTold { number: order.number, pid, status };
        job.resize_runs = ResizeTold::default();
        if well {
            job.note.order.hosts = order.allocation;
        }
        if job.stage == AttemptStage::Running {
            self.tell_state(key, out);
        }
    }

    /// The action did what ends the job: no signal follows.
    fn terminated_by_action(&mut self, key: JobKey) {
        if let Some(job) = self.jobs.get_mut(&key) {
            job.kill_at = None;
            if let Some(kill) = &mut job.note.mark.kill {
                kill.signals.clear();
            }
        }
    }
}

/// The time that a command may take, seconds.
fn time_for(verb: ControlVerb, interval: u64) -> u64 {
    match verb {
        ControlVerb::Checkpoint => CHECKPOINT_SECS,
        ControlVerb::Resize => RESIZE_SECS,
        _ => interval * INTERVALS,
    }
}

/// The host file of a job that has one of its own for its slots to change; empty: it has none.
fn host_file(resizable: bool, ready: &Ready) -> ByteStr {
    match resizable && !ready.script.is_empty() {
        true => ByteStr([&ready.script.0[..], b".hostfile"].concat()),
        false => ByteStr::default(),
    }
}

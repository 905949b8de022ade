//! Reports of hosts about jobs, and orders to hosts.
//!
//! After every connect a host tells all it has (`lifecycle::host_inventory`). An order whose
//! confirmation is missing is sent again under the same key, which the host answers with the state
//! it knows: so an order is never lost and never carried out twice. A started job that its host
//! does not know has an unknown end; it is never guessed and never run again by itself (a
//! rerunnable one is, when the host was restarted, whether the host still knows of it or not).
//! `lifecycle::report_standing` says which host may report of which job;
//! `lifecycle::unreached_hosts` says what becomes of jobs whose host says nothing.

use crate::batch::lifecycle::report_standing::Standing;
use crate::batch::soft_state::fanout::HeldEnd;
use crate::batch::state::names::HostId;
use crate::batch::state::{Phase as RunPhase, Run};
use crate::batch::{Mbatchd, StepContext};
use crate::model::JobKey;
use crate::model::event::{Event, JobStatus};
use crate::model::job::End;
use crate::model::job_state::{JobState, LoggedStatus};
use crate::model::reason::{susp, term};
use crate::proto::sbd::{Act, AttemptPhase, Post, SbdMsg, TaskState};

impl Mbatchd {
    /// An attempt that does not run as mbatchd knows it, as its host sees it: what is over is
    /// forgotten, anything else must not go on.
    fn not_running(&mut self, context: &mut StepContext, i: HostId, t: &TaskState, is: Standing) {
        let (at, name) = (t.key.job_ref(), &self.links.hosts()[i].name);
        let over = matches!(t.phase, AttemptPhase::Ended { .. } | AttemptPhase::Failed { .. });
        match (is, over) {
            (Standing::Foreign, _) => return self.refuse_report(context, i, "the state", at),
            (Standing::NoJob, false) => {
                let text = format!("{name} runs job <{at}>, which the log does not know");
                return self.say_bounded(context, i, log::Level::Error, text);
            }
            (Standing::Ended, true) => self.posted(context, t),
            (Standing::Ended | Standing::Left, false) => self.left_runs(i, t.key),
            _ => {}
        }
        if over {
            self.left_over(i, t.key);
            self.forget(context, i, t);
        } else {
            self.act(context, t.key, i, Act::Terminate { exit_info: term::FORCE_ADMIN });
        }
    }

    /// The host knows of an attempt that runs as mbatchd knows it, of its checkpoints and of the
    /// changes of its slots.
    fn attempt_known(&mut self, context: &mut StepContext, i: HostId, t: &TaskState) {
        self.checkpoint_told(context, i, t);
        self.resize_told(context, t);
        if !matches!(t.phase, AttemptPhase::Ended { .. } | AttemptPhase::Failed { .. }) {
            self.known_again(context, t.key);
        }
    }

    /// An attempt as its host sees it.
    pub(crate) fn task_state(&mut self, context: &mut StepContext, i: HostId, t: &TaskState) {
        let at = t.key.job_ref();
        let is = self.standing(i, t.key);
        if is != Standing::Running {
            return self.not_running(context, i, t, is);
        }
        self.attempt_known(context, i, t);
        let Some(run) = self.state.running(t.key) else { return };
        let (starting, phase, killed) = (run.phase == RunPhase::Starting, run.phase, run.killed);
        let asked = run.soft.asked;
        match &t.phase {
            // a stop may have reached it, and what took that back was lost
            AttemptPhase::Starting if asked == Some(0) => self.act(context, t.key, i, Act::Resume),
            AttemptPhase::Starting => {}
            AttemptPhase::Running => {
                let want = asked.unwrap_or(0);
                let shut = killed.is_none() && self.run_shut(at);
                if starting {
                    self.confirmed(context, t);
                }
                if starting && want == 0 {
                    // nothing else was asked for
                } else if (shut && phase == RunPhase::Ssusp(susp::WINDOW))
                    || (stays_suspended(phase) && asked.is_none() && killed.is_none())
                {
                    self.suspend_again(context, i, t.key, phase);
                } else if matches!(phase, RunPhase::Ssusp(_) | RunPhase::Ususp(_)) && want == 0 {
                    self.phase_event(context, at, t.key.attempt, JobState::Run, 0);
                } else if want != 0 {
                    self.act(context, t.key, i, Act::Suspend);
                }
                if want == 0 {
                    self.close_order(t.key);
                }
                if shut && want == 0 {
                    self.shut_job(context, t.key);
                }
            }
            AttemptPhase::Suspended => {
                if starting {
                    self.confirmed(context, t);
                }
                self.suspended(context, i, t.key, phase, asked);
                if asked != Some(0) {
                    self.close_order(t.key);
                }
                self.preemption_told(at);
            }
            AttemptPhase::Failed { reason } => {
                self.start_failed(context, i, t, *reason);
                self.left_over(i, t.key);
            }
            AttemptPhase::Ended { end, exit_info } => {
                if starting && t.pid != 0 {
                    self.confirmed(context, t);
                }
                if !self.holds_end(context, i, t) {
                    self.end_attempt(context, i, t, (*end, *exit_info));
                } else if let Some(held) = self.fanout.take_complete_end(t.key) {
                    self.end_held(context, held);
                }
            }
        }
        if matches!(t.phase, AttemptPhase::Running | AttemptPhase::Suspended)
            && let Some(info) = killed
        {
            self.act(context, t.key, i, Act::Terminate { exit_info: info });
        }
    }

    /// The end of an attempt counts: its other hosts have left.
    fn end_attempt(
        &mut self,
        context: &mut StepContext,
        i: HostId,
        t: &TaskState,
        (end, exit_info): (End, u32),
    ) {
        self.ended(context, t, end, exit_info);
        self.left_over(i, t.key);
        self.posted(context, t);
        self.forget(context, i, t);
    }

    /// The end of an attempt that has waited for its other hosts counts now.
    pub(crate) fn end_held(&mut self, context: &mut StepContext, held: HeldEnd) {
        let running = self.state.running(held.told.key).is_some();
        let known = self.links.hosts().contains(held.host);
        if let AttemptPhase::Ended { end, exit_info } = held.told.phase
            && running
            && known
        {
            self.end_attempt(context, held.host, &held.told, (end, exit_info));
        }
    }

    /// Ends that have waited too long for other hosts count now.
    pub(crate) fn held_ends_due(&mut self, context: &mut StepContext) {
        for held in self.fanout.take_late_ends(context.now) {
            self.end_held(context, held);
        }
    }

    /// An order to suspend was not obeyed, or was lost.
    fn suspend_again(
        &mut self,
        context: &mut StepContext,
        i: HostId,
        key: JobKey,
        phase: RunPhase,
    ) {
        let at = key.job_ref();
        if phase == RunPhase::Ssusp(susp::PREEMPTED) || self.preemptions.is_stopped(at) {
            self.preemptions.vacates(at);
            self.follow_vacated(at);
        }
        self.act(context, key, i, Act::Suspend);
    }

    /// The host has suspended it: for its queue's run windows, or for who asked.
    fn suspended(
        &mut self,
        context: &mut StepContext,
        i: HostId,
        key: JobKey,
        phase: RunPhase,
        asked: Option<u32>,
    ) {
        let windowed = phase == RunPhase::Ssusp(susp::WINDOW) && asked.unwrap_or(0) == 0;
        let needed = phase.suspended_by_need() && asked.is_none();
        // an order to suspend it was repeated, and came to the host behind the one to resume it
        let resumed = |run: &Run| run.soft.last_order_resumes && run.phase == RunPhase::Running;
        let overtaken = asked.is_none() && self.state.running(key).is_some_and(resumed);
        if needed || (windowed && self.run_shut(key.job_ref())) {
            // The job is suspended as it should be.
        } else if windowed && asked.is_none() {
            self.resume_job(context, key);
        } else if windowed || asked == Some(0) || overtaken {
            self.act(context, key, i, Act::Resume);
        } else if !matches!(phase, RunPhase::Ususp(_)) {
            let why = asked.unwrap_or(susp::USER);
            self.phase_event(context, key.job_ref(), key.attempt, JobState::Ususp, why);
        }
    }

    /// The host has started it: JOB_START_ACCEPT and JOB_EXECUTE.
    fn confirmed(&mut self, context: &mut StepContext, t: &TaskState) {
        let at = t.key.job_ref();
        let (pid, pgid) = (t.pid, t.pgid);
        self.emit(context, Event::JobStartAccept { at, attempt: t.key.attempt, pid, pgid });
        let (cwd, home) = (t.exec_cwd.clone(), t.exec_home.clone());
        let (user, note) = (t.exec_user.clone(), t.note.clone());
        self.emit(context, Event::JobExecute { at, uid: t.uid, pid, pgid, cwd, home, user, note });
    }

    /// A started job ends.
    pub(crate) fn ended(&mut self, context: &mut StepContext, t: &TaskState, end: End, info: u32) {
        let at = t.key.job_ref();
        let (killed, requeue, as_done) = self.killed(t.key);
        let host = self.state.running(t.key).and_then(|run| run.hosts.first().map(|h| h.0));
        // Only an attempt that is over for certain is requeued: a job must not run twice at the
        // same time.
        let restarted = end == End::Unknown && info == term::HOST_RESTART;
        if let Some(held) = requeue.filter(|_| restarted || end != End::Unknown) {
            self.note_exit(context, host, true, info);
            return self.back_to_queue(context, at, held);
        }
        if restarted && killed.is_none() && self.rerunnable(at) {
            context
                .say(log::Level::Warn, format!("job <{at}> is requeued: its host was restarted"));
            return self.requeue(context, at, None, true);
        }
        if killed.is_none() && info == 0 && self.requeued_by_exit(context, t, end) {
            if end != End::Status(0) {
                self.note_exit(context, host, false, info);
            }
            return;
        }
        let own_code = end.code().filter(|_| killed.is_none() && info == 0);
        let succeeds = |code| self.settings_at(at).is_some_and(|s| s.succeeds(code));
        let success = own_code.is_some_and(succeeds);
        let status = match end {
            End::Status(0) => JobState::Done,
            End::Status(_) if as_done || success => JobState::Done,
            _ => JobState::Exit,
        };
        let exit_info = match (status, info, killed) {
            (JobState::Done, _, _) if end == End::Status(0) => 0,
            (_, 0, Some(k)) => k,
            (_, info, _) => info,
        };
        let record = JobStatus {
            at,
            status: status.into(),
            end_time: t.time,
            cpu: t.usage.cpu_secs(),
            usage: Some(t.usage),
            hosts: self.hosts_used(t.key),
            exit_status: if let End::Status(s) = end { s } else { 0 },
            exit_info,
            attempt: t.key.attempt,
            unknown_end: end == End::Unknown,
            post: !t.post.is_none(),
            after: t.after.clone(),
            ..JobStatus::default()
        };
        self.emit(context, Event::JobStatus(Box::new(record)));
        self.account(context, at);
        if status == JobState::Exit {
            self.note_exit(context, host, killed.is_some(), exit_info);
        }
        self.note_early_end(context, at);
    }

    /// The report of a host on the commands after an attempt that has ended.
    pub(crate) fn posted(&mut self, context: &mut StepContext, t: &TaskState) {
        let at = t.key.job_ref();
        let succeeded = match t.post {
            Post::Done => true,
            Post::Failed => false,
            Post::None | Post::Running => return,
        };
        let Some(e) = self.state.elem(at).filter(|_| self.state.posts().contains(t.key)) else {
            return;
        };
        let (status, attempt) = (LoggedStatus::Post { ended: e.stat(), succeeded }, t.key.attempt);
        let status = JobStatus { at, status, attempt, ..JobStatus::default() };
        self.emit(context, Event::JobStatus(Box::new(status)));
    }

    /// The attempt is over; what still runs after it is waited for.
    fn forget(&mut self, context: &mut StepContext, i: HostId, t: &TaskState) {
        if t.post != Post::Running {
            self.order(context, i, SbdMsg::Forget { key: t.key, mail: String::new() });
        }
    }
}

/// Is a job that its host runs to be suspended? A job that was let go may have gone on by now.
fn stays_suspended(phase: RunPhase) -> bool {
    phase.suspended_by_need() && phase != RunPhase::Ssusp(susp::RESUMED)
}

//! bkill, bstop, bresume, and what they share with bswitch, btop, bbot and brequeue
//! (`lifecycle::switch_requeue`): which jobs are meant, who may, and what happens to each.

use crate::batch::site::permissions::{Action, Caller};
use crate::batch::state::{Elem, ElemState, ElementView, Phase};
use crate::batch::{Mbatchd, StepContext};
use crate::model::action::{JobAction, Requeued};
use crate::model::event::{Event, JobSignal, JobStatus};
use crate::model::job_state::JobState;
use crate::model::reason::{PendReason, err, susp, term};
use crate::model::signals::ENDING_SIGNALS;
use crate::model::{JobKey, JobRef};
use crate::proto::client::{Control, Requeue, Verb};
use crate::proto::sbd::Act;

/// A request to control a job, its sender, and whether the sender is not the owner.
pub(crate) struct ControlRequest<'a> {
    pub(super) who: &'a Caller,
    pub(super) c: &'a Control,
    pub(super) by_admin: bool,
}

impl ControlRequest<'_> {
    /// The TERM_ number of a job that bkill ends.
    pub(super) fn killed(&self) -> u32 {
        match (self.c.bulk && self.c.verb == Verb::Kill, self.by_admin) {
            _ if self.c.lost_host => term::OTHER,
            (true, _) => term::BUCKET_KILL,
            (false, true) => term::ADMIN,
            (false, false) => term::OWNER,
        }
    }

    /// The TERM_ number of bkill -r.
    fn killed_by_force(&self) -> u32 {
        if self.by_admin { term::FORCE_ADMIN } else { term::FORCE_OWNER }
    }

    /// Is it a request about a lost host, of an attempt that is over?
    fn is_of_another(&self, key: JobKey) -> bool {
        self.c.lost_host && self.c.attempt != 0 && self.c.attempt != key.attempt
    }

    pub(super) fn as_done(&self) -> bool {
        self.c.done && self.c.verb == Verb::Kill
    }

    /// The pending reason of what bstop holds.
    pub(super) fn stop_reason(&self) -> PendReason {
        if self.by_admin { PendReason::AdminStop } else { PendReason::UserStop }
    }

    /// The reason for which bstop holds a pending element; `None`: it stays as it is. After a stop
    /// by an administrator the owner cannot resume it, even if he had stopped it himself before.
    pub(super) fn holds(&self, held: Option<PendReason>) -> Option<PendReason> {
        let why = self.stop_reason();
        (held.is_none() || (self.by_admin && held != Some(why))).then_some(why)
    }

    /// The record of a signal.
    pub(super) fn signal(&self, at: JobRef, action: JobAction, run_count: u32) -> JobSignal {
        let kill = action == JobAction::Kill && self.c.verb == Verb::Kill;
        JobSignal {
            at,
            uid: self.who.uid,
            user: self.who.user.clone(),
            action,
            run_count,
            by_admin: self.by_admin,
            host: self.who.host.clone(),
            reason: self.c.reason.clone(),
            done: kill && self.as_done(),
            bulk: kill && self.c.bulk,
            request: self.c.request.clone(),
        }
    }
}

/// The key of what was not started.
fn never(at: JobRef) -> JobKey {
    JobKey { job: at.job, idx: at.idx, attempt: 0 }
}

impl Mbatchd {
    /// bkill -b: a job of which nothing was ever started leaves memory at once.
    pub(crate) fn clean_bulk(&mut self, context: &mut StepContext, c: &Control, id: u32) {
        let Some(t) =
            self.state.job(id).map(|j| j.tally()).filter(|_| c.bulk && c.verb == Verb::Kill)
        else {
            return;
        };
        let never_ran = t.exit_unstarted == t.total && t.cleaned == 0;
        if never_ran && !self.is_named(id) {
            self.emit(context, Event::JobClean { at: JobRef { job: id, idx: 0 } });
        }
    }

    /// An administrator lets a job go whose history is incomplete.
    pub(crate) fn release(&mut self, context: &mut StepContext, who: &Caller, at: JobRef) -> i32 {
        if self.site.check(who, Action::ReleaseDamaged, "", "").is_err() {
            return err::PERMISSION;
        }
        self.emit(context, Event::Release { at, uid: who.uid, user: who.user.clone() });
        0
    }

    /// A request is repeated that was carried out on this element: done, but for what a crash
    /// cut off between two records of one action.
    pub(crate) fn control_again(
        &mut self,
        context: &mut StepContext,
        a: &ControlRequest,
        at: JobRef,
    ) -> i32 {
        let elem = self.state.elem(at);
        let pending = elem.is_none_or(|e| matches!(e.state, ElemState::Pend(_)));
        let view = self.state.job(at.job).and_then(|j| j.view(at.idx));
        let held = view.is_some_and(|v| v.held().is_some());
        let removed =
            elem.and_then(Elem::run).is_some_and(|r| r.killed == Some(a.killed_by_force()));
        let open = match &a.c.verb {
            Verb::Kill | Verb::Signal { .. } => pending,
            Verb::Remove => pending || (removed && self.state.running_at(at)),
            Verb::Stop => pending && !held,
            Verb::Resume => held,
            Verb::Switch { .. } | Verb::Move { .. } => true,
            Verb::Requeue(_) | Verb::Force(_) | Verb::Migrate { .. } => false,
            Verb::Checkpoint(_) | Verb::Resize(_) => false,
        };
        if open { self.control_one(context, a, at) } else { 0 }
    }

    pub(crate) fn control_one(
        &mut self,
        context: &mut StepContext,
        a: &ControlRequest,
        at: JobRef,
    ) -> i32 {
        let verb = &a.c.verb;
        if let Verb::Requeue(which) = verb {
            return self.requeue_one(context, a, *which, at);
        }
        if let Verb::Force(force) = verb {
            return self.force_one(context, (a.who, &a.c.request), force, at);
        }
        let (state, key, held) = match self.state.job(at.job).and_then(|j| j.view(at.idx)) {
            None => return err::NO_JOB,
            Some(view @ crate::batch::state::ElementView::Untouched(held)) => {
                (view.stat(), None, held)
            }
            Some(crate::batch::state::ElementView::Own(e)) => match &e.state {
                ElemState::Pend(p) => (e.stat(), None, p.held),
                ElemState::Run(r) => (e.stat(), Some(r.key), None),
                ElemState::End(_) => return err::JOB_FINISH,
            },
        };
        match (verb, key) {
            (Verb::Kill, key) if a.c.lost_host => return self.lost_host(context, a, at, key),
            (Verb::Kill | Verb::Remove, None) => self.kill_pending(context, a, at),
            (Verb::Kill, Some(key)) => {
                self.signal_event(context, a, at, JobAction::Kill, key);
                self.act_on(context, key, Act::Terminate { exit_info: a.killed() });
            }
            (Verb::Remove, Some(key)) => self.remove(context, a, at, key),
            (Verb::Signal { number, .. }, None) => {
                if !ENDING_SIGNALS.contains(number) {
                    return err::NOT_STARTED;
                }
                self.kill_pending(context, a, at);
            }
            (Verb::Signal { number, .. }, Some(key)) => {
                self.signal_event(context, a, at, JobAction::of_signal(*number), key);
                self.act_on(context, key, Act::Signal { number: *number });
            }
            (Verb::Stop, None) => self.stop_pending(context, a, at, held),
            (Verb::Stop, Some(key)) => self.stop_running(context, a, at, key, state),
            (Verb::Resume, None) => {
                if self.is_locked(a, held) {
                    return err::PERMISSION;
                }
                if held.is_some() {
                    self.signal_event(context, a, at, JobAction::Resume, never(at));
                    self.pend_event(context, at, JobState::Pend, PendReason::Resumed);
                }
            }
            (Verb::Migrate { force }, _) => {
                let asked = (a.who, &*a.c.request, a.by_admin, *force);
                return self.migrate_one(context, asked, at);
            }
            (Verb::Checkpoint(order), _) => {
                return self.checkpoint_one(context, (a.who, &a.c.request), *order, at);
            }
            (Verb::Resize(asked), _) => {
                return self.resize_one(context, (a.who, &a.c.request), asked, at);
            }
            (Verb::Resume, Some(key)) => return self.resume_running(context, a, at, key),
            (Verb::Switch { .. } | Verb::Move { .. } | Verb::Requeue(_) | Verb::Force(_), _) => {}
        }
        0
    }

    /// Must the sender not resume what is held for this reason?
    pub(super) fn is_locked(&self, a: &ControlRequest, held: Option<PendReason>) -> bool {
        held == Some(PendReason::AdminStop)
            && !self.site.params().job_access.user_resume
            && !a.by_admin
            && !self.site.is_admin(&a.who.user)
    }

    fn kill_pending(&mut self, context: &mut StepContext, a: &ControlRequest, at: JobRef) {
        self.signal_event(context, a, at, JobAction::Kill, never(at));
        self.end_unstarted(context, at, a.killed(), a.as_done());
    }

    /// Holds a pending element.
    fn stop_pending(
        &mut self,
        context: &mut StepContext,
        a: &ControlRequest,
        at: JobRef,
        held: Option<PendReason>,
    ) {
        if let Some(why) = a.holds(held) {
            self.signal_event(context, a, at, JobAction::Stop, never(at));
            self.pend_event(context, at, JobState::Psusp, why);
        }
    }

    /// Ends a job of which a blaunch has lost a host, unless it is being ended already.
    fn lost_host(
        &mut self,
        context: &mut StepContext,
        a: &ControlRequest<'_>,
        at: JobRef,
        key: Option<JobKey>,
    ) -> i32 {
        let Some(key) = key else { return err::NOT_STARTED };
        if a.is_of_another(key) {
            return err::JOB_FINISH;
        }
        if self.state.running(key).is_some_and(|run| run.killed.is_none()) {
            self.signal_event(context, a, at, JobAction::EndByLostHost, key);
            self.act_on(context, key, Act::Terminate { exit_info: a.killed() });
        }
        0
    }

    /// -r: out of the system at once, whether its host answers or not.
    fn remove(&mut self, context: &mut StepContext, a: &ControlRequest, at: JobRef, key: JobKey) {
        self.signal_event(context, a, at, JobAction::Remove, key);
        let info = a.killed_by_force();
        self.act_on(context, key, Act::Terminate { exit_info: info });
        self.end_unasked(context, key, info, false);
    }

    fn stop_running(
        &mut self,
        context: &mut StepContext,
        a: &ControlRequest,
        at: JobRef,
        key: JobKey,
        state: JobState,
    ) {
        let why = if a.by_admin { susp::ADMIN } else { susp::USER };
        self.signal_event(context, a, at, JobAction::Stop, key);
        if state == JobState::Ususp {
            // its owner has stopped it: from now on it is not he who resumes it
            if a.by_admin {
                self.phase_event(context, at, key.attempt, JobState::Ususp, why);
            }
            return;
        }
        self.state.suspend_ordered(key, why);
        if self.state.running(key).is_some_and(|r| matches!(r.phase, Phase::Ssusp(_))) {
            self.follow_order(at);
        }
        self.act_on(context, key, Act::Suspend);
    }

    fn resume_running(
        &mut self,
        context: &mut StepContext,
        a: &ControlRequest,
        at: JobRef,
        key: JobKey,
    ) -> i32 {
        let phase = self.state.running(key).map(|r| r.phase);
        let admin = self.site.is_admin(&a.who.user) || a.by_admin;
        if phase == Some(Phase::Ususp(susp::ADMIN))
            && !admin
            && !self.site.params().job_access.user_resume
        {
            return err::PERMISSION;
        }
        // The job waits for its run windows if they are closed.
        let shut = self.run_shut(at);
        // a stop that is on its way is taken back
        let asked = self.state.running(key).and_then(|r| r.soft.asked);
        if !matches!(phase, Some(Phase::Ususp(_))) && asked.is_some_and(|why| why != 0) {
            self.signal_event(context, a, at, JobAction::Resume, key);
        }
        let preempted = phase == Some(Phase::Ssusp(susp::PREEMPTED));
        if !shut && (preempted || self.waits_for_preemptors(at)) {
            if let Some(Phase::Ususp(_)) = phase {
                self.signal_event(context, a, at, JobAction::Resume, key);
            }
            self.stay_preempted(context, key);
            return 0;
        }
        if let Some(Phase::Ususp(_)) = phase {
            self.signal_event(context, a, at, JobAction::Resume, key);
            let why = if shut { susp::WINDOW } else { susp::RESUMED };
            self.phase_event(context, at, key.attempt, JobState::Ssusp, why);
        }
        if shut {
            self.close_order(key);
            self.shut_job(context, key);
            return 0;
        }
        let stands = phase.is_some_and(|phase| !matches!(phase, Phase::Starting | Phase::Running));
        if stands && self.waits_for_load(at) {
            self.close_order(key);
            return 0;
        }
        self.order_resume(context, key);
        0
    }

    pub(crate) fn signal_event(
        &mut self,
        context: &mut StepContext,
        a: &ControlRequest,
        at: JobRef,
        action: JobAction,
        key: JobKey,
    ) {
        let s = a.signal(at, action, key.attempt);
        self.emit(context, Event::JobSignal(Box::new(s)));
    }

    fn pend_event(
        &mut self,
        context: &mut StepContext,
        at: JobRef,
        state: JobState,
        why: PendReason,
    ) {
        let s =
            JobStatus { at, status: state.into(), reason: why.number(), ..JobStatus::default() };
        self.emit(context, Event::JobStatus(Box::new(s)));
    }

    /// One job or element goes back to the queue: at once when it is over, else after its end.
    pub(crate) fn requeue_one(
        &mut self,
        context: &mut StepContext,
        a: &ControlRequest,
        which: Requeue,
        at: JobRef,
    ) -> i32 {
        let by_admin = a.by_admin;
        let Some(view) = self.state.job(at.job).and_then(|j| j.view(at.idx)) else {
            return err::NO_JOB;
        };
        let run = which.run || !(which.done || which.exit || which.pend);
        let stop = if by_admin { PendReason::AdminStop } else { PendReason::UserStop };
        let held = which.hold.then_some(stop);
        match view {
            ElementView::Untouched(_) => err::NOT_STARTED,
            ElementView::Own(e) => match &e.state {
                ElemState::Pend(p) if p.reason == Some(PendReason::Requeued) => err::REQUEUED,
                ElemState::Pend(_) => err::NOT_STARTED,
                ElemState::End(e) if (e.done && which.done) || (!e.done && which.exit) => {
                    self.requeue_asked(context, at, held, &a.c.request);
                    0
                }
                ElemState::End(_) => err::JOB_FINISH,
                ElemState::Run(r) if r.requeue.is_some() => err::REQUEUED,
                ElemState::Run(_) if !run => err::JOB_STARTED,
                ElemState::Run(r) => {
                    let key = r.key;
                    let to = match (which.hold, by_admin) {
                        (false, _) => Requeued::Pending,
                        (true, false) => Requeued::HeldByOwner,
                        (true, true) => Requeued::HeldByAdmin,
                    };
                    self.signal_event(context, a, at, JobAction::Requeue(to), key);
                    let info = if by_admin { term::REQUEUE_ADMIN } else { term::REQUEUE_OWNER };
                    self.act_on(context, key, Act::Terminate { exit_info: info });
                    0
                }
            },
        }
    }
}

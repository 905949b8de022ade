//! bresize, and the further slots of jobs that ask for some while they run (bresize(1)).
//!
//! A change is logged (JOB_RESIZE_NOTIFY_START) before the first execution host hears of it, and
//! ordered again whenever the host tells of the attempt, until the host has told of its end
//! (JOB_RESIZE_NOTIFY_DONE). So none is lost with mbatchd, the host's agent or their connection,
//! and the host carries none out twice. The end of the attempt ends the change that is under way.

use crate::batch::sched::Allocation;
use crate::batch::site::permissions::Caller;
use crate::batch::state::names::HostId;
use crate::batch::state::{ElemState, Phase, Run};
use crate::batch::{Mbatchd, StepContext};
use crate::conf::types::Resizable;
use crate::model::event::{Event, Forced, JobResize, NamedHosts, ResizeAccount, ResizeStep};
use crate::model::reason::err;
use crate::model::resize::{
    MAX_COMMAND, NOTIFY_OK, NotifyCommand, ReleasedHosts, ResizeOrder, ResizeRequest, without,
};
use crate::model::{JobKey, JobRef};
use crate::proto::machine::Effect;
use crate::proto::sbd::{Act, AttemptPhase, TaskState};

impl Mbatchd {
    /// Carries out a request of bresize on one started job or element; an lsberrno where it cannot
    /// be.
    pub(crate) fn resize_one(
        &mut self,
        context: &mut StepContext,
        (who, request): (&Caller, &str),
        asked: &ResizeRequest,
        at: JobRef,
    ) -> i32 {
        let Some(ElemState::Run(run)) = self.state.elem(at).map(|e| &e.state) else {
            return err::NOT_STARTED;
        };
        let (key, pending) = (run.key, self.wants_slots(run));
        if let Err(code) = self.may_be_resized(run, asked) {
            return code;
        }
        let record = |step: ResizeStep| {
            let (uid, user, request) = (who.uid, who.user.clone(), request.to_string());
            let attempt = key.attempt;
            Event::JobResize(Box::new(JobResize { at, step, attempt, uid, user, request }))
        };
        match asked {
            ResizeRequest::Cancel if !pending => return err::NO_RESIZE_REQUEST,
            ResizeRequest::Cancel => self.emit(context, record(ResizeStep::Cancelled)),
            ResizeRequest::Release { cancel: false, .. }
            | ResizeRequest::Grow { cancel: false, .. }
                if pending =>
            {
                return err::RESIZE_PENDING;
            }
            ResizeRequest::Release { hosts, cancel, notify } => {
                let fewer = match self.released(run, hosts) {
                    Ok(fewer) => self.named_hosts(&fewer),
                    Err(code) => return code,
                };
                let (number, command) = (next_number(run), self.notify_command(key, notify));
                let (cancels, hosts) = (*cancel, fewer.clone());
                let text = command.clone();
                let step = ResizeStep::Released { number, cancels, hosts, command: text };
                self.emit(context, record(step));
                self.begin_change(context, key, (false, fewer), command);
            }
            ResizeRequest::Grow { least, slots, notify, .. } => {
                let total = run.slots().saturating_add(*slots);
                let command = match notify {
                    NotifyCommand::OfJob => None,
                    _ => Some(self.notify_command(key, notify)),
                };
                self.emit(context, record(ResizeStep::Asked { total, least: *least, command }));
            }
        }
        0
    }

    /// Does the job have a pending request for further slots?
    fn wants_slots(&self, run: &Run) -> bool {
        let job = self.state.job(run.key.job);
        job.is_some_and(|job| self.view().wanted_slots(job, run).is_some())
    }

    /// Why a started job cannot be resized now.
    fn may_be_resized(&self, run: &Run, asked: &ResizeRequest) -> Result<(), i32> {
        let job = self.state.job(run.key.job).ok_or(err::NO_JOB)?;
        if self.view().resizable(job, run.key.idx) == Resizable::No {
            return Err(err::NOT_RESIZABLE);
        } else if run.forced != Forced::No {
            return Err(err::RESIZE_FORCED);
        } else if run.killed.is_some() || job.damaged {
            return Err(err::IN_PROGRESS);
        } else if run.migrates {
            return Err(err::MIGRATING);
        } else if run.resize.as_ref().is_some_and(|resize| resize.under_way.is_some()) {
            return Err(err::RESIZING);
        }
        match (run.phase, asked) {
            (Phase::Ssusp(_) | Phase::Ususp(_), _) => return Err(err::SUSPENDED),
            (Phase::Starting, _) => return Err(err::NOT_STARTED),
            _ => {}
        }
        match asked {
            ResizeRequest::Release { notify: NotifyCommand::Given(text), .. }
            | ResizeRequest::Grow { notify: NotifyCommand::Given(text), .. }
                if text.len() > MAX_COMMAND =>
            {
                Err(err::RESIZE_COMMAND_LEN)
            }
            ResizeRequest::Grow { least, slots, .. } if *least == 0 || least > slots => {
                Err(err::RESIZE_SLOTS)
            }
            _ => Ok(()),
        }
    }

    /// The slots that a release means: of each host what it names, but for one slot of the first.
    fn released(&self, run: &Run, asked: &ReleasedHosts) -> Result<Vec<(HostId, u32)>, i32> {
        let first = run.hosts.first().map(|host| host.0);
        let on = |id: HostId| run.hosts.iter().filter(|host| host.0 == id).map(|host| host.1).sum();
        let mut fewer: Vec<(HostId, u32)> = Vec::new();
        let mut kept = Vec::new();
        for host in &asked.hosts {
            let id = self.site.canonical(&host.name).and_then(|name| self.site.host_id(name));
            let id = id.ok_or(err::BAD_HOST)?;
            let has: u32 = on(id);
            if has == 0 {
                return Err(err::NOT_ALLOCATED);
            } else if host.slots > has {
                return Err(err::RESIZE_SLOTS);
            }
            match (host.kept, host.slots) {
                (true, _) => kept.push(id),
                (false, 0) => fewer.push((id, has)),
                (false, n) => fewer.push((id, n)),
            }
        }
        if asked.all {
            let mut all: Vec<HostId> = run.hosts.iter().map(|host| host.0).collect();
            all.dedup();
            let rest = all.into_iter().filter(|host| !kept.contains(host));
            fewer = rest.map(|host| (host, on(host))).collect();
        }
        let of_first = fewer.iter_mut().find(|host| Some(host.0) == first);
        if let Some(of_first) = of_first.filter(|of_first| of_first.1 == on(of_first.0)) {
            // who names them all means so many
            if !asked.all {
                return Err(err::RELEASE_FIRST_HOST);
            }
            of_first.1 -= 1;
        }
        fewer.retain(|host| host.1 > 0);
        match fewer.is_empty() || without(&run.hosts, &fewer)[..] == run.hosts[..] {
            true => Err(err::RELEASE_NOTHING),
            false => Ok(fewer),
        }
    }

    /// The notification command of a request.
    fn notify_command(&self, key: JobKey, notify: &NotifyCommand) -> String {
        match notify {
            NotifyCommand::None => String::new(),
            NotifyCommand::Given(text) => text.clone(),
            NotifyCommand::OfJob => {
                let settings = self.settings_at(key.job_ref());
                settings.map_or_else(String::new, |settings| settings.resize_command())
            }
        }
    }

    /// Gives a started job further slots.
    pub(crate) fn grow(&mut self, context: &mut StepContext, given: Allocation) {
        let Allocation { at, hosts, .. } = given;
        let Some(ElemState::Run(run)) = self.state.elem(at).map(|e| &e.state) else { return };
        let asked = run.resize.as_ref().and_then(|resize| resize.asked.as_ref());
        let given = asked.and_then(|asked| asked.command.clone());
        let key = run.key;
        let command = given.unwrap_or_else(|| self.notify_command(key, &NotifyCommand::OfJob));
        let named = self.named_hosts(&hosts);
        for (host, _) in &hosts {
            self.links.note_dispatch(*host, context.now.mono_us);
        }
        self.begin_change(context, key, (true, named), command);
        for &(host, _) in &hosts {
            let (sched, view) = self.sched_and_view();
            sched.host_filled(&view, host);
        }
    }

    /// Logs a change and tells the first execution host of it.
    fn begin_change(
        &mut self,
        context: &mut StepContext,
        key: JobKey,
        (grows, hosts): (bool, NamedHosts),
        command: String,
    ) {
        let Some(run) = self.state.running(key) else { return };
        let step = ResizeStep::Begun { number: next_number(run), grows, hosts, command };
        let (at, attempt) = (key.job_ref(), key.attempt);
        let record = JobResize { at, step, attempt, ..JobResize::default() };
        self.emit(context, Event::JobResize(Box::new(record)));
        self.order_resize(context, key);
    }

    /// Tells the first execution host of the change that is under way.
    fn order_resize(&mut self, context: &mut StepContext, key: JobKey) {
        let Some(run) = self.state.running(key) else { return };
        let Some(change) = run.resize.as_ref().and_then(|resize| resize.under_way.as_ref()) else {
            return;
        };
        let order = ResizeOrder {
            number: change.number,
            grows: change.grows,
            hosts: self.named_hosts(&change.hosts),
            allocation: self.named_hosts(&run.allocation_after().unwrap_or(run.hosts.clone())),
            command: change.command.clone(),
        };
        self.act_on(context, key, Act::Resize(Box::new(order)));
    }

    /// A host tells of an attempt that runs as mbatchd knows it, and of the last change of its
    /// slots.
    pub(crate) fn resize_told(&mut self, context: &mut StepContext, t: &TaskState) {
        let Some(run) = self.state.running(t.key) else { return };
        let Some(change) = run.resize.as_ref().and_then(|resize| resize.under_way.as_ref()) else {
            return;
        };
        let (number, accepted, killed) = (change.number, change.accepted, run.killed.is_some());
        let told = t.resize;
        if told.number == number {
            let step = |step: ResizeStep| {
                let (at, attempt) = (t.key.job_ref(), t.key.attempt);
                let record = JobResize { at, step, attempt, ..JobResize::default() };
                Event::JobResize(Box::new(record))
            };
            if !accepted {
                self.emit(context, step(ResizeStep::Accepted { number, pid: told.pid }));
            }
            if let Some(status) = told.status {
                let account = self.resize_account(context.now.secs(), t.key, status);
                self.emit(context, step(ResizeStep::Done { number, status }));
                context.out.extend(account.map(Effect::AccountResize));
            }
        } else if matches!(t.phase, AttemptPhase::Running | AttemptPhase::Suspended) && !killed {
            self.order_resize(context, t.key);
        }
    }
}

impl Mbatchd {
    /// JOB_RESIZE of the change that is under way, which ends so; `None`: the slots stay as they
    /// were.
    fn resize_account(&self, time: i64, key: JobKey, status: i32) -> Option<Box<ResizeAccount>> {
        let run = self.state.running(key).filter(|_| status == NOTIFY_OK)?;
        let resize = run.resize.as_ref()?;
        let change = resize.under_way.as_ref()?;
        let job = self.state.job(key.job)?;
        let before = match change.grows {
            true => without(&run.hosts, &change.hosts),
            false => run.hosts.to_vec(),
        };
        let last = Some(resize.changed_at).filter(|at| *at > 0);
        Some(Box::new(ResizeAccount {
            time,
            at: key.job_ref(),
            start_time: run.start_time,
            uid: job.uid,
            user: self.state.names().user(job.user).to_string(),
            grows: change.grows,
            last_time: last.unwrap_or(run.start_time),
            hosts: self.named_hosts(&before),
            changed: self.named_hosts(&change.hosts),
        }))
    }
}

fn next_number(run: &Run) -> u32 {
    run.resize.as_ref().map_or(0, |resize| resize.number).saturating_add(1)
}

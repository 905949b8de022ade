//! `apply(state, record)`: the only function that changes the state. Recovery is this function over
//! the log. `apply` never fails: a record that does not fit (a job that is gone, a start of what
//! runs already) is reported and changes nothing, so that a foreign or damaged log still yields all
//! it holds.

use crate::batch::state::change::{Applied, Change};
use crate::batch::state::last_actions::ControlAction;
use crate::batch::state::*;
use crate::model::JobRef;
use crate::model::action::{JobAction, Requeued};
use crate::model::checkpoint::CheckpointOrder;
use crate::model::event::{
    CheckpointStep, Event, JobAttachment, JobCheckpoint, JobForce, JobMessage, JobMigrate,
    JobSignal, JobStatus, Record,
};
use crate::model::job_state::{JobState, LoggedStatus};
use crate::model::reason::{PendReason, susp, term};
use crate::proto::sbd::Post;

/// An array that leaves memory with more elements of its own than this is taken apart bit by bit.
const REMAINS: usize = 1000;

impl State {
    pub fn apply(&mut self, rec: &Record) -> Applied {
        let applied = self.apply_event(rec);
        if let Applied::Job(change) = &applied {
            self.drop_reservations_of_started(change.at.job);
            self.follow_chunks(change);
        }
        applied
    }

    fn apply_event(&mut self, rec: &Record) -> Applied {
        let t = rec.time;
        match &rec.event {
            Event::JobNew(new) => self.job_new(new),
            Event::JobStart(s) => self.job_start(t, s),
            Event::JobStartAccept { at, attempt, pid, pgid } => {
                self.accepted(*at, *attempt, *pid, *pgid)
            }
            Event::JobExecute { at, uid, pid, pgid, cwd, home, user, note } => {
                let (user, cwd) = (user.clone(), cwd.clone());
                let exec = Exec { uid: *uid, user, cwd, home: home.clone(), note: note.clone() };
                self.executes(*at, *pid, *pgid, exec)
            }
            Event::JobStatus(s) => self.job_status(t, s),
            Event::JobSignal(s) => self.signalled(t, s),
            Event::ArraySignal(s) => self.array_signalled(t, s),
            Event::JobRequeue { at, held, uncounted, passed, until, request, .. } => {
                let did = self.requeue(t, *at, *held, *uncounted, passed, *until);
                self.note_request(t, request, *at, did)
            }
            Event::JobModify(m) => self.modify(m),
            Event::JobForce(force) => self.forced(t, force),
            Event::JobMigrate(m) => self.migrates(t, m),
            Event::JobCheckpoint(c) => self.checkpointed(t, c),
            Event::JobResize(r) => {
                let did = self.resize(t, r);
                self.note_request(t, &r.request, r.at, did)
            }
            Event::JobSwitch { at, queue, route, .. } => self.switch(*at, queue, route.as_deref()),
            Event::ArraySwitch { job, elems, queue, .. } => {
                self.switch_elements(*job, elems, queue, None)
            }
            Event::JobMove { at, place, top, .. } => self.moved(*at, *place, *top),
            Event::ArrayMove(m) => self.move_elements(m.job, &m.elems, m.place),
            Event::JobMessage(m) => self.post_message(m),
            Event::JobAttachment(a) => self.attach(a),
            Event::JobClean { at } => self.clean(*at),
            Event::Eligible { at, on } => self.eligible(t, *at, *on),
            Event::JobReserve(r) => self.reserved_slots(r),
            Event::JobChunk(chunk) => self.chunk(chunk),
            Event::RunLimit(r) => self.allow(r),
            Event::Hold { at, .. } => self.damage(*at, true),
            Event::Release { at, .. } => self.damage(*at, false),
            control => self.apply_control(t, control),
        }
    }

    /// Applies a record that is about no job.
    fn apply_control(&mut self, t: i64, event: &Event) -> Applied {
        match event {
            Event::QueueCtrl { op, queue, uid, user, message } => {
                let queue = self.names.queue_id(queue);
                self.queue_control.entry(queue).or_default().apply(*op, (*uid, user), message, t);
                Applied::Nothing
            }
            Event::HostCtrl { op, host, uid, user, message, lock } => {
                let host = self.names.host_id(host);
                self.host_control.entry(host).or_default().apply(
                    *op,
                    lock,
                    (*uid, user),
                    message,
                    t,
                );
                Applied::Nothing
            }
            Event::JobGroupAdd(r) | Event::JobGroupModify(r) => {
                self.job_groups.put(r);
                Applied::Nothing
            }
            Event::JobGroupDelete { path, .. } => {
                self.job_groups.remove(path);
                Applied::Nothing
            }
            Event::Submitted { job, submit_time, request } => {
                self.requests.note(*submit_time, request, *job);
                Applied::Nothing
            }
            Event::ShareUsed(used) => {
                self.names.user_id(&used.user);
                Applied::Nothing
            }
            Event::HostStarts { hosts } => self.started_on(t, hosts),
            Event::Reservation(r) => {
                self.reservations.put(r);
                Applied::Nothing
            }
            Event::ReservationEnd { id, .. } => {
                self.reservations.end(id);
                Applied::Nothing
            }
            Event::ReservationNext { owner, next } => {
                self.reservations.number_from(owner, *next);
                Applied::Nothing
            }
            Event::GroupHost { add, group, host, .. } => self.group_host(*add, group, host),
            Event::Carried { next_job, .. } => {
                (self.next_job, self.carried_at) = (self.next_job.max(*next_job), t);
                Applied::Nothing
            }
            Event::LogSwitch { last_job } => {
                self.next_job = self.next_job.max(last_job.saturating_add(1));
                self.finished = 0;
                self.space.switched();
                Applied::Nothing
            }
            Event::MbdStart { .. } => {
                self.started_at = t;
                self.tries.mbatchd_started(t);
                self.end_open_chunks();
                Applied::Nothing
            }
            // those of jobs are applied above
            _ => Applied::Nothing,
        }
    }

    /// A dynamic host is added to a group or compute unit, or taken out of it.
    fn group_host(&mut self, add: bool, group: &str, host: &str) -> Applied {
        let hosts = self.group_hosts.entry(group.to_string()).or_default();
        match add {
            true => drop(hosts.insert(host.to_string())),
            false => drop(hosts.remove(host)),
        }
        self.group_hosts.retain(|_, hosts| !hosts.is_empty());
        Applied::Nothing
    }

    /// A started job is to end and to go back to its queue.
    fn migrates(&mut self, t: i64, m: &JobMigrate) -> Applied {
        let why = if m.by_admin { term::REQUEUE_ADMIN } else { term::REQUEUE_OWNER };
        let did = self.with_run(m.at, |r| {
            if m.attempt != 0 && m.attempt != r.key.attempt {
                return;
            }
            r.checkpoint.migrates_for = m.checkpoint.map(|_| why);
            if m.checkpoint.is_some() {
                (r.migrates, r.checkpoint.asked) = (true, m.checkpoint);
            } else {
                (r.killed, r.requeue, r.as_done, r.migrates) = (Some(why), Some(None), false, true);
            }
        });
        self.note_request(t, &m.request, m.at, did)
    }

    /// A checkpoint was asked for, or has ended.
    fn checkpointed(&mut self, t: i64, c: &JobCheckpoint) -> Applied {
        let mut restartable = false;
        let did = self.with_run(c.at, |r| {
            if c.attempt != r.key.attempt {
                return;
            }
            match c.step {
                CheckpointStep::Asked(order) if order.period.is_some() => {
                    r.checkpoint.period = order.period;
                }
                CheckpointStep::Asked(order) => r.checkpoint.asked = Some(order),
                CheckpointStep::Ended(end) => {
                    r.checkpoint.number = end.number;
                    let other = |order: &CheckpointOrder| !end.asked || end.kill != order.kill;
                    r.checkpoint.asked = r.checkpoint.asked.filter(other);
                    restartable = end.succeeded;
                    let migrates = r.checkpoint.migrates_for.filter(|_| r.migrates && end.kill);
                    if migrates.is_some() && end.succeeded {
                        (r.killed, r.requeue, r.as_done) = (migrates, Some(None), false);
                    } else if migrates.is_some() {
                        r.migrates = false;
                    }
                }
            }
        });
        if restartable {
            self.tries.set_checkpointed(c.at, true);
        }
        self.note_request(t, &c.request, c.at, did)
    }

    /// brun was asked for; the start that follows tells of the rest.
    fn forced(&mut self, t: i64, force: &JobForce) -> Applied {
        let did = match self.jobs.contains_key(&force.at.job) {
            true => Applied::noted(force.at),
            false => Applied::Rejected("no such job"),
        };
        self.note_request(t, &force.request, force.at, did)
    }

    /// A request has done its work on a job or element. A record that does not fit is not written.
    pub(super) fn note_request(
        &mut self,
        t: i64,
        request: &str,
        at: JobRef,
        did: Applied,
    ) -> Applied {
        if !did.is_rejected() {
            self.retries.note(t, request, at);
        }
        did
    }

    fn accepted(&mut self, at: JobRef, attempt: u32, pid: u32, pgid: u32) -> Applied {
        let did = self.with_run(at, |r| {
            if attempt != 0 && attempt != r.key.attempt {
                return;
            }
            if r.phase == Phase::Starting {
                r.phase = Phase::Running;
            }
            r.pid = pid;
            r.pgid = pgid;
        });
        if did.is_rejected() {
            // damage took its JOB_START: the number is not given again
            self.set(at, |e| e.attempts = e.attempts.max(attempt));
            return did;
        }
        self.tries.begin_anew(at);
        did
    }

    fn executes(&mut self, at: JobRef, pid: u32, pgid: u32, exec: Exec) -> Applied {
        self.with_run(at, |r| {
            if r.phase == Phase::Starting {
                r.phase = Phase::Running;
            }
            r.pid = pid;
            r.pgid = pgid;
            r.exec = Some(Box::new(exec));
        })
    }

    fn signalled(&mut self, t: i64, s: &JobSignal) -> Applied {
        let did = self.signal(t, s);
        self.note_request(t, &s.request, s.at, did)
    }

    fn signal(&mut self, t: i64, s: &JobSignal) -> Applied {
        let (at, by_admin) = (s.at, s.by_admin);
        if matches!(s.action, JobAction::WindowSignal(_)) {
            return match self.elem(at) {
                Some(Elem { state: ElemState::Run(_), .. }) => {
                    self.with_run(at, |r| r.window_signal = t)
                }
                _ => Applied::noted(at),
            };
        }
        if !s.host.is_empty()
            && self.jobs.contains_key(&at.job)
            && let Some(action) = ControlAction::of(&s.action)
        {
            let host = self.names.host_id(&s.host);
            self.issued.note(at, action, host, &s.reason);
        }
        if let JobAction::Requeue(to) = s.action {
            let held = match to {
                Requeued::Pending => None,
                Requeued::HeldByOwner => Some(PendReason::UserStop),
                Requeued::HeldByAdmin => Some(PendReason::AdminStop),
            };
            let why = if by_admin { term::REQUEUE_ADMIN } else { term::REQUEUE_OWNER };
            return self.with_run(at, |r| {
                (r.killed, r.requeue, r.as_done, r.migrates) =
                    (Some(why), Some(held), false, false);
            });
        }
        // until the host has told that it is so
        let asked = match (&s.action, by_admin) {
            (JobAction::Stop, true) => Some(susp::ADMIN),
            (JobAction::Stop, false) => Some(susp::USER),
            (JobAction::Resume, _) => Some(0),
            _ => None,
        };
        if asked.is_some() {
            return match self.elem(at) {
                Some(Elem { state: ElemState::Run(_), .. }) => {
                    self.with_run(at, |r| r.soft.asked = asked)
                }
                _ => Applied::noted(at),
            };
        }
        let why = match (&s.action, by_admin) {
            (JobAction::Kill, _) if s.bulk => term::BUCKET_KILL,
            (JobAction::Kill, false) => term::OWNER,
            (JobAction::Kill, true) => term::ADMIN,
            (JobAction::Remove, false) => term::FORCE_OWNER,
            (JobAction::Remove, true) => term::FORCE_ADMIN,
            (JobAction::EndByLoad, _) => term::LOAD,
            (JobAction::EndByWindow, _) => term::WINDOW,
            (JobAction::EndByPreemption, _) => term::PREEMPT,
            (JobAction::EndByRunLimit, _) => term::RUNLIMIT,
            (JobAction::EndByReservation, _) => term::DEADLINE,
            (JobAction::EndByTask, _) => term::EXTERNAL_SIGNAL,
            (JobAction::EndByLostHost, _) => term::OTHER,
            _ => return Applied::noted(at),
        };
        match self.elem(at) {
            Some(Elem { state: ElemState::Run(_), .. }) => {
                let done = s.done;
                self.with_run(at, |r| {
                    (r.killed, r.requeue, r.as_done, r.migrates) = (Some(why), None, done, false);
                })
            }
            _ => Applied::noted(at),
        }
    }

    fn job_status(&mut self, t: i64, s: &JobStatus) -> Applied {
        let known = match self.jobs.get(&s.at.job).and_then(|j| j.view(s.at.idx)) {
            Some(v) => v.stat(),
            None => return Applied::Rejected("no such job"),
        };
        if known.is_finished() {
            return self.posted(s);
        }
        let LoggedStatus::State(state) = s.status else {
            return Applied::Rejected("a status this build does not know");
        };
        match state {
            JobState::Pend => {
                let host = s.retry.as_ref().map(|r| &r.host).filter(|host| !host.is_empty());
                let host = host.map(|host| self.names.host_id(host));
                let started = self.started_at;
                self.tries.note_pending((t, started), s, host);
                self.set(s.at, |e| {
                    e.attempts = e.attempts.max(s.attempt);
                    let since = match &e.state {
                        ElemState::Pend(p) => p.since,
                        _ => t,
                    };
                    let reason = (s.reason != 0).then(|| PendReason::of_number(s.reason));
                    e.state = ElemState::Pend(Pend { since, held: None, reason });
                })
            }
            JobState::Psusp => self.set(s.at, |e| {
                e.attempts = e.attempts.max(s.attempt);
                let held = Some(PendReason::of_number(s.reason));
                e.state = ElemState::Pend(Pend { since: t, held, reason: None });
            }),
            JobState::Run | JobState::Ssusp | JobState::Ususp => self.set(s.at, |e| {
                e.attempts = e.attempts.max(s.attempt);
                if let ElemState::Run(r) = &mut e.state {
                    run_phase(r, t, state, s);
                }
            }),
            JobState::Unkwn => self.with_run(s.at, |r| r.unknown = true),
            JobState::Done | JobState::Exit => self.finish(t, s),
            JobState::Wait | JobState::Zombi => {
                Applied::Rejected("a status this build does not know")
            }
        }
    }

    fn finish(&mut self, t: i64, s: &JobStatus) -> Applied {
        let end_time = if s.end_time > 0 { s.end_time } else { t };
        let mut key = None;
        self.waited_until(end_time, s.at);
        let forced = [term::FORCE_OWNER, term::FORCE_ADMIN, term::REMOVE_HUNG_JOB];
        let forced = forced.contains(&s.exit_info);
        if s.unknown_end && self.elem(s.at).is_some_and(|e| forced || e.stat() == JobState::Unkwn) {
            self.leave(s.at);
        }
        let did = self.set(s.at, |e| {
            e.attempts = e.attempts.max(s.attempt);
            let old = std::mem::replace(&mut e.state, ElemState::Pend(Pend::default()));
            let run = match old {
                // it was given to a host, and could not start there
                ElemState::Run(r) if s.attempt == 0 && r.phase == Phase::Starting => None,
                ElemState::Run(mut r) => {
                    if r.susp_since > 0 {
                        r.susp_total += (end_time - r.susp_since).max(0);
                        r.susp_since = 0;
                    }
                    r.add_note(&s.after);
                    Some(r)
                }
                _ => None,
            };
            let status = (run.is_some() && !s.unknown_end).then_some(s.exit_status);
            let post = if s.post { Post::Running } else { Post::None };
            key = run.as_ref().filter(|_| s.post).map(|r| r.key);
            e.state = ElemState::End(Box::new(ElementEnd {
                end_time,
                done: s.status.is_done(),
                status,
                exit_info: s.exit_info,
                unknown: s.unknown_end,
                cpu: s.cpu,
                usage: s.usage,
                hosts: s.hosts.clone(),
                run,
                post,
            }));
        });
        key.into_iter().for_each(|key| self.posts.insert(key));
        if let Applied::Job(Change { at, .. }) = did {
            self.tries.forget(at);
            self.finished += 1;
            if let Some(job) = self.jobs.get(&at.job) {
                self.ended.note(job, end_time);
            }
        }
        did
    }

    fn requeue(
        &mut self,
        t: i64,
        at: JobRef,
        held: Option<PendReason>,
        uncounted: bool,
        passed: &[String],
        until: i64,
    ) -> Applied {
        let over = |e: &Elem| matches!(&e.state, ElemState::Run(_) | ElemState::End(_));
        if !self.elem(at).is_some_and(over) {
            return Applied::Rejected("requeue of a job that is not started");
        }
        // brequeue and exit values have it begin anew, not bmig nor the loss of a host
        let anew = |e: &Elem| match &e.state {
            ElemState::Run(r) => !r.migrates && (r.requeue.is_some() || !uncounted),
            _ => true,
        };
        if self.elem(at).is_some_and(anew) {
            self.tries.set_checkpointed(at, false);
        }
        let unasked = |e: &Elem| matches!(&e.state, ElemState::Run(r) if r.requeue.is_none());
        if self.elem(at).is_some_and(unasked) && !uncounted {
            self.tries.count_requeue(at);
        }
        if self.elem(at).is_some_and(|e| e.stat() == JobState::Unkwn) {
            self.leave(at);
        }
        if let Some(Elem { state: ElemState::Run(run), .. }) = self.elem(at) {
            let preempted = run.preempted;
            self.tries.count_preempted(at, preempted);
        }
        let passed = if t < self.started_at { &[] } else { passed };
        let passed: Vec<_> = passed.iter().map(|host| self.names.host_id(host)).collect();
        self.tries.requeued(t, at, passed, until);
        // what still runs after it says nothing of its next run
        self.posts.forget(at);
        self.set(at, |e| {
            let migrates = matches!(&e.state, ElemState::Run(run) if run.migrates);
            let why = if migrates { PendReason::Migrating } else { PendReason::Requeued };
            e.state = ElemState::Pend(Pend { since: t, held, reason: Some(why) });
        })
    }

    /// The post-execution of a job that has ended is over.
    fn posted(&mut self, s: &JobStatus) -> Applied {
        let post = match s.status.post() {
            None => return Applied::Rejected("the job has finished already"),
            Some(true) => Post::Done,
            Some(false) => Post::Failed,
        };
        let mut key = None;
        let did = self.set(s.at, |e| {
            if let ElemState::End(end) = &mut e.state {
                end.post = post;
                key = end.run.as_ref().map(|r| r.key);
            }
        });
        if let Some(key) = key {
            self.posts.remove(key);
        }
        did
    }

    fn clean(&mut self, at: JobRef) -> Applied {
        let Some(job) = self.jobs.get_mut(&at.job) else {
            return Applied::Rejected("no such job");
        };
        if at.idx != 0
            && let Body::Array(a) = &mut job.body
        {
            if let Some(e) = a.own.remove(&at.idx) {
                self.issued.forget(at);
                self.messages.forget(at);
                self.left.forget(at);
                a.leave(at.idx, &e);
                a.tally.note(&e, false);
                a.tally.cleaned += 1;
            }
            self.waited.forget(at);
            return Applied::noted(at);
        }
        if job.tally().unfinished() > 0 {
            return Applied::Rejected("clean of a job that has not finished");
        }
        self.remove(at.job);
        Applied::noted(at)
    }

    fn post_message(&mut self, m: &JobMessage) -> Applied {
        let known = |job: &Job| m.at.idx == 0 || job.view(m.at.idx).is_some();
        if !self.jobs.get(&m.at.job).is_some_and(|job| known(job)) {
            return Applied::Rejected("no such job");
        }
        self.messages.post(m);
        Applied::noted(m.at)
    }

    /// The data of a message are bytes of its job.
    fn attach(&mut self, a: &JobAttachment) -> Applied {
        if !self.messages.attach(a) {
            return Applied::Rejected("no such message");
        }
        let id = a.at.job;
        let job = self.jobs.get(&id).map(Box::as_ref);
        let before = Space::before(job, &self.modifications);
        if a.data.len > 0 {
            self.modifications.note(id, std::iter::once(a.data));
        }
        self.note_space(id, before, &[a.data]);
        Applied::noted(a.at)
    }

    /// Takes a job out of memory, with all that is kept of it.
    fn remove(&mut self, id: u32) {
        let Some(job) = self.jobs.remove(&id) else { return };
        self.space.went(&job, &self.modifications);
        self.job_names.remove(job.user, &job.name.name, id);
        if matches!(&job.body, Body::Array(a) if a.own.len() > REMAINS) {
            self.remains.push(*job);
        }
        self.posts.forget_job(id);
        self.left.forget_job(id);
        self.issued.forget(JobRef { job: id, idx: 0 });
        self.messages.forget(JobRef { job: id, idx: 0 });
        self.moved.remove(&id);
        self.ended.forget(id);
        self.modifications.forget(id);
        self.waited.forget_job(id);
    }

    /// Applies a record like [`State::apply`], from a log that may have lost records.
    pub fn recover(&mut self, rec: &Record) -> Applied {
        let did = self.apply(rec);
        if let Event::JobClean { at: JobRef { job, idx: 0 } } = &rec.event {
            self.was_cleaned(*job);
        }
        did
    }

    /// A job that was cleaned had ended, even where the log lost the record of its end: nothing is
    /// counted of it any more.
    fn was_cleaned(&mut self, id: u32) {
        if let Some(job) = self.jobs.get(&id) {
            self.counts.job(job, false);
            self.tries.forget_job(id);
            self.alone.retain(|at| at.job != id);
            self.remove(id);
        }
    }

    /// TRACK_ELIGIBLE_PENDINFO: a job or element is eligible from now on, or no longer.
    fn eligible(&mut self, t: i64, at: JobRef, on: bool) -> Applied {
        if !self.jobs.contains_key(&at.job) {
            return Applied::Rejected("no such job");
        }
        self.waited.turn(t, at, on);
        Applied::Nothing
    }

    fn damage(&mut self, at: JobRef, on: bool) -> Applied {
        match self.jobs.get_mut(&at.job) {
            Some(job) => {
                job.damaged = on;
                // nobody knows whether its turn in a chunk has come
                for member in self.chunks.members_among(JobRef { job: at.job, idx: 0 }) {
                    self.chunks.leave(member);
                }
                Applied::noted(JobRef { job: at.job, idx: 0 })
            }
            None => Applied::Rejected("no such job"),
        }
    }
}

const PREEMPTED: Phase = Phase::Ssusp(susp::PREEMPTED);

fn run_phase(r: &mut Run, t: i64, state: JobState, s: &JobStatus) {
    let was = matches!(r.phase, Phase::Ssusp(_) | Phase::Ususp(_));
    let phase = match state {
        JobState::Run => Phase::Running,
        JobState::Ssusp => Phase::Ssusp(if s.reason == 0 { susp::RESUMED } else { s.reason }),
        _ => Phase::Ususp(if s.reason == 0 { susp::USER } else { s.reason }),
    };
    // heard of again, it is as it was: what was asked for meanwhile stays open
    let as_before = phase == r.phase || state == JobState::Run && r.phase == Phase::Starting;
    if std::mem::take(&mut r.unknown) && as_before {
        return;
    }
    match (r.phase, phase) {
        (Phase::Running, PREEMPTED) => r.preempted.times += 1,
        (PREEMPTED, after) if after != PREEMPTED => {
            r.preempted.secs += (t - r.susp_since).max(0);
        }
        _ => {}
    }
    r.phase = phase;
    if state != JobState::Ssusp || phase == PREEMPTED {
        r.soft.asked = None;
    }
    match (was, state == JobState::Run) {
        (false, false) => r.susp_since = t,
        (true, true) => {
            r.susp_total += (t - r.susp_since).max(0);
            r.susp_since = 0;
            r.resumed_at = t;
        }
        _ => {}
    }
}

//! `apply(state, record)`: the only function that changes the state. Recovery is this function over
//! the log. `apply` never fails: a record that does not fit (a job that is gone, a start of what
//! runs already) is reported and changes nothing, so that a foreign or damaged log still yields all
//! it holds.

use crate::batch::state::change::{Applied, Change, ChangeKind};
use crate::batch::state::counts::{owner, tally};
use crate::batch::state::last_actions::ControlAction;
use crate::batch::state::*;
use crate::lang::jobname::JobName;
use crate::model::event::{Ctrl, Event, JobNew, JobSignal, JobStart, JobStatus, Record};
use crate::model::job::stat;
use crate::model::reason::{PendReason, susp, term};
use crate::model::{JobKey, JobRef};
use crate::proto::sbd::Post;
use std::rc::Rc;

/// An array that leaves memory with more elements of its own than this is taken apart bit by bit.
const REMAINS: usize = 1000;
/// Names of user groups remembered that jobs were submitted with.
const MAX_GIVEN_GROUPS: usize = 100_000;

impl State {
    pub fn apply(&mut self, rec: &Record) -> Applied {
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
            Event::JobSignal(s) => {
                let did = self.signalled(t, s);
                self.note_request(t, &s.request, s.at, did)
            }
            Event::JobRequeue { at, held, uncounted, passed, until, request, .. } => {
                let did = self.requeue(t, *at, *held, *uncounted, passed, *until);
                self.note_request(t, request, *at, did)
            }
            Event::JobModify(m) => self.modify(m),
            Event::JobSwitch { at, queue, .. } => self.switch(*at, queue),
            Event::JobMove { at, place, top, .. } => self.moved(*at, *place, *top),
            Event::JobClean { at } => self.clean(*at),
            Event::QueueCtrl { op, queue, uid, user, message } => {
                let q = self.queue_ctl.entry(self.names.queues.id(queue)).or_default();
                match op {
                    Ctrl::Open => q.closed = false,
                    Ctrl::Close => q.closed = true,
                    Ctrl::Activate => q.inactive = false,
                    Ctrl::Inactivate => q.inactive = true,
                }
                q.comment = message.clone();
                q.by = (*uid, user.clone());
                q.time = t;
                Applied::Nothing
            }
            Event::HostCtrl { op, host, uid, user, message, lock } => {
                let h = self.host_ctl.entry(self.names.hosts.id(host)).or_default();
                match (lock.is_empty(), *op == Ctrl::Close) {
                    (true, close) => h.closed = close,
                    (false, true) => drop(h.locks.insert(lock.clone())),
                    (false, false) => drop(h.locks.remove(lock)),
                }
                h.comment = message.clone();
                h.by = (*uid, user.clone());
                h.time = t;
                Applied::Nothing
            }
            Event::Eligible { at, on } => self.waits(t, *at, *on),
            Event::GroupHost { add, group, host, .. } => {
                let hosts = self.group_hosts.entry(group.clone()).or_default();
                match add {
                    true => drop(hosts.insert(host.clone())),
                    false => drop(hosts.remove(host)),
                }
                self.group_hosts.retain(|_, hosts| !hosts.is_empty());
                Applied::Nothing
            }
            Event::Hold { at, .. } => self.damage(*at, true),
            Event::Release { at, .. } => self.damage(*at, false),
            Event::Carried { next_job, .. } => {
                self.next_job = self.next_job.max(*next_job);
                self.carried_at = t;
                Applied::Nothing
            }
            Event::LogSwitch { last_job } => {
                self.next_job = self.next_job.max(last_job.saturating_add(1));
                self.finished = 0;
                self.space.switched();
                Applied::Nothing
            }
            Event::MbdStart { .. } => {
                self.started(t);
                Applied::Nothing
            }
            Event::MbdDie { .. } | Event::LoadIndex { .. } | Event::Foreign { .. } => {
                Applied::Nothing
            }
        }
    }

    /// A request has done its work on a job or element. A record that does not fit is not written.
    fn note_request(&mut self, t: i64, request: &str, at: JobRef, did: Applied) -> Applied {
        if !did.is_rejected() {
            self.retries.note(t, request, at);
        }
        did
    }

    fn job_new(&mut self, new: &JobNew) -> Applied {
        if self.jobs.contains_key(&new.job) {
            return Applied::Rejected("a job of this ID is known already");
        }
        let name = match JobName::parse(&new.spec.name) {
            Ok(n) => n,
            // A name we would refuse today, from another LSF's log: kept as a plain name.
            Err(_) => JobName { name: new.spec.name.clone(), array: None },
        };
        let user = self.names.users.id(&new.user);
        let queue = self.names.queues.id(&new.spec.queue);
        let held = (new.spec.options2 & crate::model::job::opt2::HOLD != 0)
            .then_some(PendReason::UserStop);
        let depend =
            super::element_groups::resolved(&new.spec).map(|d| Rc::new(self.bind(user, d)));
        let mut job = Job {
            id: new.job,
            order: self.next_order,
            uid: new.uid,
            gid: new.gid,
            user,
            queue,
            submit_time: new.submit_time,
            spec: self.kind(&new.spec),
            name,
            env: new.env,
            script: new.script,
            exact: new.exact,
            depend,
            body: Body::Single(Elem {
                attempts: 0,
                part: 0,
                state: ElemState::Pend(Pend { since: new.submit_time, held, reason: None }),
            }),
            tally: Tally::default(),
            damaged: false,
        };
        self.next_order += 1;
        let slots = owner(&job, 0).2;
        match job.name.array.clone() {
            Some(spec) => self.new_array(&mut job, *spec, held),
            None => {
                job.tally.total = 1;
                *(if held.is_some() { &mut job.tally.psusp } else { &mut job.tally.pend }) = 1;
                self.counts.fresh(queue, user, slots, 1, true);
            }
        }
        let elements = job.tally.total;
        self.by_name.insert(user, &job.name.name, new.job);
        self.jobs.insert(new.job, Box::new(job));
        self.space_new(new.job);
        if !new.spec.user_group.is_empty() && self.given_groups.len() < MAX_GIVEN_GROUPS {
            self.given_groups.insert(new.spec.user_group.clone());
        }
        self.reserved.remove(&new.job);
        let next = new.job.saturating_add(1);
        // one that a switch of the log carried over had its ID before the last one was given
        let carried = new.submit_time <= self.carried_at;
        self.next_job = if carried { next.max(self.next_job) } else { next };
        if !new.request.is_empty() {
            let id = Request::of(&new.request);
            self.requests.insert(id, new.job);
            self.request_ages.push_back((new.submit_time, id));
        }
        while let Some((t, _)) = self.request_ages.front() {
            if *t + REQUEST_WINDOW > new.submit_time {
                break;
            }
            if let Some((_, id)) = self.request_ages.pop_front() {
                self.requests.remove(&id);
            }
        }
        let (at, kind) = (JobRef { job: new.job, idx: 0 }, ChangeKind::Submitted { elements });
        Applied::Job(Change { at, regrouped: false, kind })
    }

    fn new_array(
        &mut self,
        job: &mut Job,
        spec: crate::lang::jobname::ArraySpec,
        held: Option<PendReason>,
    ) {
        let n = spec.len() as u32;
        let (own, started, waiting, exits) = Default::default();
        let (fresh, parts, started_elements) = (Untouched::new(n), Vec::new(), Default::default());
        let a = Array { spec, fresh, held, own, started, started_elements, waiting, exits, parts };
        job.tally.total = n;
        *(if held.is_some() { &mut job.tally.psusp } else { &mut job.tally.pend }) = n;
        self.counts.fresh(job.queue, job.user, owner(job, 0).2, n, true);
        job.body = Body::Array(Box::new(a));
    }

    fn job_start(&mut self, t: i64, s: &JobStart) -> Applied {
        let hosts: Vec<_> = s.hosts.iter().map(|(h, n)| (self.names.hosts.id(h), *n)).collect();
        match self.jobs.get(&s.at.job).and_then(|j| j.view(s.at.idx)) {
            None => return Applied::Rejected("no such job"),
            Some(v) if v.stat() & (stat::PEND | stat::PSUSP) == 0 => {
                return Applied::Rejected("start of a job that is not pending");
            }
            Some(_) => {}
        }
        self.waited_until(t, s.at);
        let times_given =
            self.jobs.get(&s.at.job).map_or(0, |job| job.times_given(job.part_no(s.at.idx)));
        self.set(s.at, |e| {
            e.attempts = if s.attempt > 0 { s.attempt } else { e.attempts + 1 };
            let key = JobKey { job: s.at.job, idx: s.at.idx, attempt: e.attempts };
            e.state = ElemState::Run(Box::new(Run {
                key,
                start_time: t,
                hosts,
                host_factor: s.host_factor,
                own_requirement: s.eff_res_req.clone(),
                times_given,
                boot: s.boot.clone(),
                phase: Phase::Starting,
                unknown: false,
                pid: 0,
                pgid: 0,
                exec: None,
                killed: None,
                window_signal: 0,
                as_done: false,
                requeue: None,
                susp_since: 0,
                susp_total: 0,
                soft: Box::default(),
            }));
        })
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
        self.retries_over(at);
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
        let (at, by_admin) = (s.at, s.by_admin);
        if s.signal.starts_with(crate::model::event::SIGNAL_FOR_WINDOW) {
            return match self.elem(at) {
                Some(Elem { state: ElemState::Run(_), .. }) => {
                    self.with_run(at, |r| r.window_signal = t)
                }
                _ => Applied::noted(at),
            };
        }
        if !s.host.is_empty()
            && self.jobs.contains_key(&at.job)
            && let Some(action) = ControlAction::of(&s.signal)
        {
            let host = self.names.hosts.id(&s.host);
            self.issued.note(at, action, host, &s.reason);
        }
        let requeue = match s.signal.as_str() {
            "REQUEUE_PEND" => Some(None),
            "REQUEUE_PSUSP_USER" => Some(Some(PendReason::UserStop)),
            "REQUEUE_PSUSP_ADMIN" => Some(Some(PendReason::AdminStop)),
            _ => None,
        };
        if requeue.is_some() {
            let why = if by_admin { term::REQUEUE_ADMIN } else { term::REQUEUE_OWNER };
            return self.with_run(at, |r| {
                (r.killed, r.requeue, r.as_done) = (Some(why), requeue, false);
            });
        }
        // until the host has told that it is so
        let asked = match (s.signal.as_str(), by_admin) {
            ("STOP", true) => Some(susp::ADMIN),
            ("STOP", false) => Some(susp::USER),
            ("CONT", _) => Some(0),
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
        let why = match (s.signal.as_str(), by_admin) {
            ("KILL", _) if s.bulk => term::BUCKET_KILL,
            ("KILL", false) => term::OWNER,
            ("KILL", true) => term::ADMIN,
            ("DELETEJOB", false) => term::FORCE_OWNER,
            ("DELETEJOB", true) => term::FORCE_ADMIN,
            (crate::model::event::SIGNAL_BY_LOAD, _) => term::LOAD,
            (crate::model::event::SIGNAL_BY_WINDOW, _) => term::WINDOW,
            _ => return Applied::noted(at),
        };
        match self.elem(at) {
            Some(Elem { state: ElemState::Run(_), .. }) => {
                let done = s.done;
                self.with_run(at, |r| {
                    (r.killed, r.requeue, r.as_done) = (Some(why), None, done);
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
        if known & (stat::DONE | stat::EXIT) != 0 {
            return self.posted(s);
        }
        match s.status {
            stat::PEND => {
                self.note_pending(t, s);
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
            stat::PSUSP => self.set(s.at, |e| {
                e.attempts = e.attempts.max(s.attempt);
                let held = Some(PendReason::of_number(s.reason));
                e.state = ElemState::Pend(Pend { since: t, held, reason: None });
            }),
            stat::RUN | stat::SSUSP | stat::USUSP => self.set(s.at, |e| {
                e.attempts = e.attempts.max(s.attempt);
                if let ElemState::Run(r) = &mut e.state {
                    run_phase(r, t, s);
                }
            }),
            stat::UNKWN => self.with_run(s.at, |r| r.unknown = true),
            stat::DONE | stat::EXIT => self.finish(t, s),
            _ => Applied::Rejected("a status this build does not know"),
        }
    }

    fn finish(&mut self, t: i64, s: &JobStatus) -> Applied {
        let end_time = if s.end_time > 0 { s.end_time } else { t };
        let mut key = None;
        self.waited_until(end_time, s.at);
        let forced = matches!(s.exit_info, term::FORCE_OWNER | term::FORCE_ADMIN);
        if s.unknown_end && self.elem(s.at).is_some_and(|e| forced || e.stat() == stat::UNKWN) {
            self.leave(s.at);
        }
        let did = self.set(s.at, |e| {
            e.attempts = e.attempts.max(s.attempt);
            let old = std::mem::replace(&mut e.state, ElemState::Pend(Pend::default()));
            let run = match old {
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
            e.state = ElemState::End(Box::new(End {
                end_time,
                done: s.status == stat::DONE,
                status,
                exit_info: s.exit_info,
                unknown: s.unknown_end,
                cpu: s.cpu,
                usage: s.usage,
                run,
                post,
            }));
        });
        self.posts.extend(key);
        if let Applied::Job(Change { at, .. }) = did {
            self.tries.remove(&at);
            self.finished += 1;
            let Some(job) = self.jobs.get(&at.job) else { return did };
            let mut last = end_time;
            if job.is_array() {
                // another element may have ended later and been told of before
                let known = self.last_ends.entry(at.job).or_default();
                *known = end_time.max(*known);
                last = *known;
            }
            if job.tally.unfinished() == 0 {
                self.ended.push_back((last, at.job));
            }
        }
        did
    }

    /// The post-execution of a job that has ended is over.
    fn posted(&mut self, s: &JobStatus) -> Applied {
        let post = match s.status & (stat::PDONE | stat::PERR) {
            0 => return Applied::Rejected("the job has finished already"),
            stat::PDONE => Post::Done,
            _ => Post::Failed,
        };
        let mut key = None;
        let did = self.set(s.at, |e| {
            if let ElemState::End(end) = &mut e.state {
                end.post = post;
                key = end.run.as_ref().map(|r| r.key);
            }
        });
        if let Some(key) = key {
            self.posts.remove(&key);
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
                self.left.remove(&at);
                a.leave(at.idx, &e);
                tally(&mut job.tally, &e, false);
                job.tally.cleaned += 1;
            }
            self.waited.remove(&at);
            return Applied::noted(at);
        }
        if job.tally.unfinished() > 0 {
            return Applied::Rejected("clean of a job that has not finished");
        }
        self.remove(at.job);
        Applied::noted(at)
    }

    /// Takes a job out of memory, with all that is kept of it.
    fn remove(&mut self, id: u32) {
        self.space_gone(id);
        let job = self.jobs.remove(&id);
        if let Some(job) = &job {
            self.by_name.remove(job.user, &job.name.name, id);
        }
        let large = |job: &Job| matches!(&job.body, Body::Array(a) if a.own.len() > REMAINS);
        self.remains.extend(job.filter(|job| large(job)));
        self.forget_posts(JobRef { job: id, idx: 0 }, JobRef { job: id, idx: u32::MAX });
        self.forget_left(id);
        self.issued.forget(JobRef { job: id, idx: 0 });
        self.moved.remove(&id);
        self.last_ends.remove(&id);
        self.changed.remove(&id);
        self.first.remove(&id);
        self.forget_waited(id);
    }

    /// As [`State::apply`], of a log that may have lost records.
    pub fn recover(&mut self, rec: &Record) {
        self.apply(rec);
        if let Event::JobClean { at: JobRef { job, idx: 0 } } = &rec.event {
            self.was_cleaned(*job);
        }
    }

    /// A job that was cleaned had ended, even where the log lost the record of its end: nothing is
    /// counted of it any more.
    fn was_cleaned(&mut self, id: u32) {
        if let Some(job) = self.jobs.get(&id) {
            self.counts.job(job, false);
            self.tries.retain(|at, _| at.job != id);
            self.alone.retain(|at| at.job != id);
            self.remove(id);
        }
    }

    fn damage(&mut self, at: JobRef, on: bool) -> Applied {
        match self.jobs.get_mut(&at.job) {
            Some(job) => {
                job.damaged = on;
                Applied::noted(JobRef { job: at.job, idx: 0 })
            }
            None => Applied::Rejected("no such job"),
        }
    }
}

fn run_phase(r: &mut Run, t: i64, s: &JobStatus) {
    let was = matches!(r.phase, Phase::Ssusp(_) | Phase::Ususp(_));
    let phase = match s.status {
        stat::RUN => Phase::Running,
        stat::SSUSP => Phase::Ssusp(if s.reason == 0 { susp::RESUMED } else { s.reason }),
        _ => Phase::Ususp(if s.reason == 0 { susp::USER } else { s.reason }),
    };
    // heard of again, it is as it was: what was asked for meanwhile stays open
    let as_before = phase == r.phase || s.status == stat::RUN && r.phase == Phase::Starting;
    if std::mem::take(&mut r.unknown) && as_before {
        return;
    }
    r.phase = phase;
    if s.status != stat::SSUSP {
        r.soft.asked = None;
    }
    match (was, s.status == stat::RUN) {
        (false, false) => r.susp_since = t,
        (true, true) => {
            r.susp_total += (t - r.susp_since).max(0);
            r.susp_since = 0;
        }
        _ => {}
    }
}

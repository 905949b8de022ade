//! Reports of hosts about jobs, and orders to hosts.
//!
//! After every connect a host tells all it has (`lifecycle::host_inventory`). An order whose
//! confirmation is missing is sent again under the same key, which the host answers with the state
//! it knows: so an order is never lost and never carried out twice. A started job that its host
//! does not know has an unknown end; it is never guessed and never run again by itself (a
//! rerunnable one is, when the host was restarted, whether the host still knows of it or not).
//! `lifecycle::report_standing` says which host may report of which job;
//! `lifecycle::unreached_hosts` says what becomes of jobs whose host says nothing.

use crate::batch::cluster::hosts::Link;
use crate::batch::lifecycle::load_suspend::by_load;
use crate::batch::lifecycle::report_standing::Standing;
use crate::batch::state::names::HostId;
use crate::batch::state::{ElemState, Phase as RunPhase, Run};
use crate::batch::{Mbatchd, StepContext};
use crate::model::event::{Event, Finish, JobStatus};
use crate::model::job::{End, JobSpec, Limits, SpoolRef, extra, host_slots, opt, opt2, stat};
use crate::model::reason::{susp, term};
use crate::model::{JobKey, JobRef};
use crate::proto::Msg;
use crate::proto::machine::{ConnId, Effect};
use crate::proto::sbd::{Act, Phase, Post, SbdMsg, StartJob, TaskState};
use std::collections::HashSet;

impl Mbatchd {
    pub(crate) fn take_sbatchd_message(&mut self, cx: &mut StepContext, conn: ConnId, msg: SbdMsg) {
        let Some(i) = self.host_of(cx, conn) else { return self.refuse_caller(cx, conn) };
        if self.log_failed.is_some() {
            return;
        }
        match msg {
            SbdMsg::Inventory { boot_id, tasks, more } => {
                self.inventory_piece(cx, (i, conn), boot_id, &tasks, more);
            }
            SbdMsg::State(t) => self.task_state(cx, i, &t),
            SbdMsg::NeedBlob { at } => self.need_blob(cx, i, conn, at),
            SbdMsg::Usage { key, usage, pids, groups, .. } => {
                let now = cx.now.secs();
                if self.standing(i, key) == Standing::Foreign {
                    self.refuse_report(cx, i, "usage", key.job_ref());
                } else if let Some(run) = self.state.running_mut(key) {
                    run.soft.usage = usage;
                    run.soft.usage_time = now;
                    run.soft.pids = pids;
                    run.soft.groups = groups;
                    self.reserve.used(&self.state, key.job_ref());
                }
            }
            _ => self.refuse(cx, i, "an order, which hosts do not give"),
        }
    }

    pub(crate) fn back_to_queue(&mut self, cx: &mut StepContext, at: JobRef, held: u32) {
        self.requeue(cx, at, held, false);
    }

    /// Its condition is watched again where that had ended with its start. Hosts that it is not to
    /// go to (EXCLUDE()) stay so.
    pub(crate) fn requeue(&mut self, cx: &mut StepContext, at: JobRef, held: u32, uncounted: bool) {
        self.requeue_for(cx, at, (held, uncounted), String::new());
    }

    /// The same for a request of this id.
    pub(crate) fn requeue_asked(
        &mut self,
        cx: &mut StepContext,
        at: JobRef,
        held: u32,
        request: &str,
    ) {
        self.requeue_for(cx, at, (held, false), request.to_string());
    }

    fn requeue_for(
        &mut self,
        cx: &mut StepContext,
        at: JobRef,
        (held, uncounted): (u32, bool),
        request: String,
    ) {
        let passed = self.passed(at);
        let (until, exit) = (0, None);
        let event = Event::JobRequeue { at, held, uncounted, passed, until, exit, request };
        self.send_back(cx, event);
    }

    /// The hosts that an element is not to go to.
    pub(crate) fn passed(&self, at: JobRef) -> Vec<String> {
        let name = |host: &HostId| self.state.names.host(*host).to_string();
        self.state.tries.get(&at).map_or(Vec::new(), |t| t.passed.iter().map(name).collect())
    }

    pub(crate) fn send_back(&mut self, cx: &mut StepContext, event: Event) {
        let Event::JobRequeue { at, .. } = event else { return };
        self.emit(cx, event);
        let depends = self.state.job(at.job).is_some_and(|job| job.depend.is_some());
        if depends && !self.deps.watched(at.job) {
            self.watch_depend(at.job);
            self.refresh(at.job);
        }
    }

    /// An attempt that does not run as mbatchd knows it, as its host sees it: what is over is
    /// forgotten, anything else must not go on.
    fn not_running(&mut self, cx: &mut StepContext, i: HostId, t: &TaskState, is: Standing) {
        let (at, name) = (t.key.job_ref(), &self.links.hosts[i].name);
        let over = matches!(t.phase, Phase::Ended { .. } | Phase::Failed { .. });
        match (is, over) {
            (Standing::Foreign, _) => return self.refuse_report(cx, i, "the state", at),
            (Standing::NoJob, false) => {
                let text = format!("{name} runs job <{at}>, which the log does not know");
                return self.say_bounded(cx, i, log::Level::Error, text);
            }
            (Standing::Ended, true) => self.posted(cx, t),
            (Standing::Ended | Standing::Left, false) => self.left_runs(i, t.key),
            _ => {}
        }
        if over {
            self.left_over(i, t.key);
            self.forget(cx, i, t);
        } else {
            self.act(cx, t.key, i, Act::Terminate { exit_info: term::FORCE_ADMIN });
        }
    }

    /// An attempt as its host sees it.
    pub(crate) fn task_state(&mut self, cx: &mut StepContext, i: HostId, t: &TaskState) {
        let at = t.key.job_ref();
        let is = self.standing(i, t.key);
        if is != Standing::Running {
            return self.not_running(cx, i, t, is);
        }
        if !matches!(t.phase, Phase::Ended { .. } | Phase::Failed { .. }) {
            self.known_again(cx, t.key);
        }
        let Some(run) = self.state.running(t.key) else { return };
        let (starting, phase, killed) = (run.phase == RunPhase::Starting, run.phase, run.killed);
        let asked = run.soft.asked;
        match &t.phase {
            // a stop may have reached it, and what took that back was lost
            Phase::Starting if asked == Some(0) => self.act(cx, t.key, i, Act::Resume),
            Phase::Starting => {}
            Phase::Running => {
                let want = asked.unwrap_or(0);
                let shut = killed.is_none() && self.run_shut(at);
                if starting {
                    self.confirmed(cx, t);
                }
                if starting && want == 0 {
                    // nothing else was asked for
                } else if (shut && phase == RunPhase::Ssusp(susp::WINDOW))
                    || (by_load(phase) && asked.is_none() && killed.is_none())
                {
                    self.act(cx, t.key, i, Act::Suspend);
                } else if matches!(phase, RunPhase::Ssusp(_) | RunPhase::Ususp(_)) && want == 0 {
                    self.phase_event(cx, at, t.key.attempt, stat::RUN, 0);
                } else if want != 0 {
                    self.act(cx, t.key, i, Act::Suspend);
                }
                if want == 0 {
                    self.settled(t.key);
                }
                if shut && want == 0 {
                    self.shut_job(cx, t.key);
                }
            }
            Phase::Suspended => {
                if starting {
                    self.confirmed(cx, t);
                }
                self.suspended(cx, i, t.key, phase, asked);
                if asked != Some(0) {
                    self.settled(t.key);
                }
            }
            Phase::Failed { reason } => {
                self.start_failed(cx, i, t, *reason);
                self.left_over(i, t.key);
            }
            Phase::Ended { end, exit_info } => {
                if starting && t.pid != 0 {
                    self.confirmed(cx, t);
                }
                self.ended(cx, t, *end, *exit_info);
                self.left_over(i, t.key);
                self.posted(cx, t);
                self.forget(cx, i, t);
            }
        }
        if matches!(t.phase, Phase::Running | Phase::Suspended)
            && let Some(info) = killed
        {
            self.act(cx, t.key, i, Act::Terminate { exit_info: info });
        }
    }

    /// The host has suspended it: for its queue's run windows, or for who asked.
    fn suspended(
        &mut self,
        cx: &mut StepContext,
        i: HostId,
        key: JobKey,
        phase: RunPhase,
        asked: Option<u32>,
    ) {
        let windowed = phase == RunPhase::Ssusp(susp::WINDOW) && asked.unwrap_or(0) == 0;
        let loaded = by_load(phase) && asked.is_none();
        if loaded || (windowed && self.run_shut(key.job_ref())) {
            // As it should be.
        } else if windowed || asked == Some(0) {
            self.act(cx, key, i, Act::Resume);
        } else if !matches!(phase, RunPhase::Ususp(_)) {
            let why = asked.unwrap_or(susp::USER);
            self.phase_event(cx, key.job_ref(), key.attempt, stat::USUSP, why);
        }
    }

    /// The host has told that the attempt stands as was asked for: nothing is open.
    fn settled(&mut self, key: JobKey) {
        if let Some(run) = self.state.running_mut(key) {
            run.soft.asked = None;
        }
    }

    /// The host has started it: JOB_START_ACCEPT and JOB_EXECUTE.
    fn confirmed(&mut self, cx: &mut StepContext, t: &TaskState) {
        let at = t.key.job_ref();
        let (pid, pgid) = (t.pid, t.pgid);
        self.emit(cx, Event::JobStartAccept { at, attempt: t.key.attempt, pid, pgid });
        let (cwd, home) = (t.exec_cwd.clone(), t.exec_home.clone());
        let (user, note) = (t.exec_user.clone(), t.note.clone());
        self.emit(cx, Event::JobExecute { at, uid: t.uid, pid, pgid, cwd, home, user, note });
    }

    pub(crate) fn phase_event(
        &mut self,
        cx: &mut StepContext,
        at: JobRef,
        attempt: u32,
        st: u32,
        why: u32,
    ) {
        let unreached = self.state.elem(at).is_some_and(|e| e.stat() == stat::UNKWN);
        let status = JobStatus { at, status: st, reason: why, attempt, ..JobStatus::default() };
        self.emit(cx, Event::JobStatus(Box::new(status)));
        if unreached {
            self.unknown_event(cx, JobKey { job: at.job, idx: at.idx, attempt });
        }
    }

    /// The requests about a started attempt: see `state::Run`.
    pub(crate) fn killed(&self, key: JobKey) -> (Option<u32>, Option<u32>, bool) {
        self.state.running(key).map_or((None, None, false), |r| (r.killed, r.requeue, r.as_done))
    }

    /// A job that never ran ends.
    pub(crate) fn exit_unstarted(&mut self, cx: &mut StepContext, at: JobRef, info: u32) {
        self.end_unstarted(cx, at, info, false);
    }

    /// The same, with what it is from then on.
    pub(crate) fn end_unstarted(
        &mut self,
        cx: &mut StepContext,
        at: JobRef,
        info: u32,
        done: bool,
    ) {
        let now = cx.now.secs();
        let status = JobStatus {
            at,
            status: if done { stat::DONE } else { stat::EXIT },
            end_time: now,
            exit_info: info,
            ..JobStatus::default()
        };
        self.emit(cx, Event::JobStatus(Box::new(status)));
        self.account(cx, at);
    }

    /// A started job ends.
    pub(crate) fn ended(&mut self, cx: &mut StepContext, t: &TaskState, end: End, info: u32) {
        let at = t.key.job_ref();
        let (killed, requeue, as_done) = self.killed(t.key);
        // Only one that is over for certain: it must not run twice at the same time.
        let restarted = end == End::Unknown && info == term::HOST_RESTART;
        if let Some(held) = requeue.filter(|_| restarted || end != End::Unknown) {
            return self.back_to_queue(cx, at, held);
        }
        if restarted && killed.is_none() && self.rerunnable(at) {
            cx.say(log::Level::Warn, format!("job <{at}> is requeued: its host was restarted"));
            return self.requeue(cx, at, 0, true);
        }
        if killed.is_none() && info == 0 && self.requeued_by_exit(cx, t, end) {
            return;
        }
        let status = match end {
            End::Status(0) => stat::DONE,
            End::Status(_) if as_done => stat::DONE,
            _ => stat::EXIT,
        };
        let exit_info = match (status, info, killed) {
            (stat::DONE, _, _) if end == End::Status(0) => 0,
            (_, 0, Some(k)) => k,
            (_, info, _) => info,
        };
        let record = JobStatus {
            at,
            status,
            end_time: t.time,
            cpu: t.usage.cpu_secs(),
            usage: Some(t.usage),
            exit_status: if let End::Status(s) = end { s } else { 0 },
            exit_info,
            attempt: t.key.attempt,
            unknown_end: end == End::Unknown,
            post: !t.post.is_none(),
            after: t.after.clone(),
            ..JobStatus::default()
        };
        self.emit(cx, Event::JobStatus(Box::new(record)));
        self.account(cx, at);
    }

    /// The report of a host on the commands after an attempt that has ended.
    pub(crate) fn posted(&mut self, cx: &mut StepContext, t: &TaskState) {
        let at = t.key.job_ref();
        let bit = match t.post {
            Post::Done => stat::PDONE,
            Post::Failed => stat::PERR,
            Post::None | Post::Running => return,
        };
        let Some(e) = self.state.elem(at).filter(|_| self.state.posts.contains(&t.key)) else {
            return;
        };
        let (status, attempt) = (e.stat() | bit, t.key.attempt);
        let status = JobStatus { at, status, attempt, ..JobStatus::default() };
        self.emit(cx, Event::JobStatus(Box::new(status)));
    }

    /// The attempt is over; what still runs after it is waited for.
    fn forget(&mut self, cx: &mut StepContext, i: HostId, t: &TaskState) {
        if t.post != Post::Running {
            self.order(cx, i, SbdMsg::Forget { key: t.key, mail: String::new() });
        }
    }

    /// lsb.acct: what the state says of an element that has just ended.
    pub(crate) fn account(&mut self, cx: &mut StepContext, at: JobRef) {
        let Some(f) = self.finish_record(at) else { return };
        cx.out.push(Effect::Account(Box::new(f)));
    }

    fn finish_record(&self, at: JobRef) -> Option<Finish> {
        let job = self.state.job(at.job)?;
        let elem = job.elem(at.idx)?;
        let ElemState::End(e) = &elem.state else { return None };
        let run = e.run.as_deref();
        let name = |s: HostId| self.state.names.host(s).to_string();
        let requirement = job.effective_requirement(elem);
        Some(Finish {
            event_time: e.end_time,
            at,
            uid: job.uid,
            user: self.state.names.user(job.user).to_string(),
            submit_time: job.submit_time,
            start_time: run.map_or(0, |r| r.start_time),
            spec: (**job.spec_at(at.idx)).clone(),
            exec_hosts: run
                .map_or(Vec::new(), |r| r.hosts.iter().map(|h| (name(h.0), h.1)).collect()),
            status: if e.done { stat::DONE } else { stat::EXIT },
            host_factor: run.map_or(0.0, |r| r.host_factor),
            usage: e.usage,
            exit_status: e.status.unwrap_or(0),
            exit_info: e.exit_info,
            exceptions: self.exceptions(job, elem.part, elem, e.end_time),
            eff_res_req: requirement.map_or(String::new(), |text| text.to_string()),
            attempt: run.map_or(0, |r| r.key.attempt),
            unknown_end: e.unknown,
            ineligible_secs: self.ineligible_secs(at, e.end_time),
            ..Finish::default()
        })
    }

    /// An order to a host, after what it rests on is durable. A host without a link hears of it
    /// when it is back: the inventory settles everything.
    pub(crate) fn order(&mut self, cx: &mut StepContext, i: HostId, msg: SbdMsg) {
        if let Link::Up { conn } | Link::Greeted { conn } = self.links.hosts[i].link {
            cx.out.push(Effect::SendDurable { conn, msg: Msg::Sbd(msg) });
        }
    }

    pub(crate) fn act(&mut self, cx: &mut StepContext, key: JobKey, i: HostId, act: Act) {
        let (seq, order) = self.next_act();
        self.order(cx, i, SbdMsg::Act { key, seq, order, act });
    }

    /// The host that holds a started attempt, where the cluster still has it.
    pub(crate) fn first_host(&self, run: &Run) -> Option<HostId> {
        run.hosts.first().map(|h| h.0).filter(|host| self.links.hosts.contains(*host))
    }

    pub(crate) fn send_start(&mut self, cx: &mut StepContext, key: JobKey) {
        let Some(order) = self.start_order(key) else { return };
        let first = self.state.running(key).and_then(|run| self.first_host(run));
        if let Some(host) = first {
            self.order(cx, host, SbdMsg::Start(Box::new(order)));
        }
    }

    pub(crate) fn start_order(&self, key: JobKey) -> Option<StartJob> {
        let run = self.state.running(key)?;
        let job = self.state.job(key.job)?;
        let name = |s: HostId| self.state.names.host(s).clone();
        let spec = job.spec_at(key.idx);
        let requirement = job.effective_requirement(job.elem(key.idx)?)?;
        let queue = self.site.queue(job.queue_at(key.idx));
        // Elements may have been given a command in its place.
        let scripted = job.part_no(key.idx) == 0 || spec.options2 & opt2::SCRIPT != 0;
        let (end, step) = match &job.name.array {
            Some(a) => (a.list.max(), a.list.ranges.first().map_or(1, |r| r.step.max(1))),
            None => (0, 0),
        };
        Some(StartJob {
            key,
            boot: run.boot.clone(),
            uid: job.uid,
            gid: job.gid,
            user: self.state.names.user(job.user).clone(),
            submit_time: job.submit_time,
            start_time: run.start_time,
            spec: self.with_exit_codes(spec, queue),
            env: job.env,
            script: if scripted { job.script } else { SpoolRef::default() },
            hosts: run.hosts.iter().map(|h| (name(h.0), h.1)).collect(),
            ranks: self.ranks(spec),
            cluster: self.site.cluster.clone(),
            nice: queue.map_or(0, |q| q.conf.nice),
            limits: self.host_limits(job, run),
            eff_res_req: requirement.clone(),
            index_end: end,
            index_step: step,
            name: job.display_name(key.idx),
            pre_exec: queue.and_then(|q| q.conf.pre_exec.clone()).unwrap_or_default(),
            post_exec: queue.and_then(|q| q.conf.post_exec.clone()).unwrap_or_default(),
            rerun: key.attempt > 1 && spec.options & opt::RERUNNABLE != 0,
            include_post: self.site.params().job_include_postproc,
            post_timeout: self.site.params().job_postproc_timeout.unwrap_or(0),
            last_requeue: self.requeued_enough(key.job_ref(), queue),
        })
    }

    /// The hosts of -hostfile in the order of its lines, where they come back to one that was
    /// left; elsewhere that is the order of the hosts of the job.
    fn ranks(&self, spec: &JobSpec) -> Vec<(String, u32)> {
        let lines = host_slots(spec.given(extra::HOST_SLOTS)).unwrap_or_default();
        if lines.is_empty() {
            return Vec::new();
        }
        let mut all: Vec<(String, u32)> = Vec::new();
        for (host, slots) in lines {
            let name = self.site.canonical(host).unwrap_or(host);
            match all.last_mut() {
                Some(last) if last.0 == name => last.1 = last.1.saturating_add(slots),
                _ => all.push((name.to_string(), slots)),
            }
        }
        let hosts: HashSet<&str> = all.iter().map(|h| h.0.as_str()).collect();
        if hosts.len() == all.len() { Vec::new() } else { all }
    }

    /// The job's limits with run and CPU limit normalised to the speed of its first host.
    pub(crate) fn host_limits(&self, job: &crate::batch::state::Job, run: &Run) -> Limits {
        let part = job.part_no(run.key.idx);
        let mut l = job.spec_of(part).limits.clone();
        if l.run.is_none() && l.cpu.is_none() {
            return l;
        }
        let scale = self.limit_factor(job, part) / run.host_factor.max(f64::MIN_POSITIVE);
        let norm = |v: u64| ((v as f64 * scale).round() as u64).max(1);
        if !self.site.params().abs_runlimit {
            l.run = l.run.map(norm);
        }
        l.cpu = l.cpu.map(norm);
        l
    }

    /// CPU factor of what a time limit was given for: the host or model named, the default one,
    /// else the submission host.
    pub(crate) fn limit_factor(&self, job: &crate::batch::state::Job, part: u32) -> f64 {
        let own = job.spec_of(part);
        let queue = self.site.queue(job.queue_of(part));
        let by_queue = queue.and_then(|q| q.conf.default_host_spec.as_deref());
        let by_cluster = self.site.params().default_host_spec.as_deref();
        let spec = match own.limit_spec.as_str() {
            "" => by_queue.or(by_cluster).unwrap_or(&own.from_host),
            s => s,
        };
        let host = self.site.canonical(spec).and_then(|h| self.site.host_id(h));
        let model = || {
            let models = &self.site.conf.base.shared.models;
            models.iter().find(|m| m.name == spec).map(|m| m.cpu_factor)
        };
        host.map(|i| self.links.hosts[i].cpu_factor()).or_else(model).unwrap_or(1.0)
    }
}

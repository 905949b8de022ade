//! One row of a job listing: the columns asked for, written as JSON straight into the slice.
//! The types of the values are documented at `proto::client::Col`.

use crate::batch::Mbatchd;
use crate::batch::query::condensed_reasons::condense;
use crate::batch::query::job_info::is_summary;
use crate::batch::sched::{Need, NotReady, ReadinessQuery};
use crate::batch::state::last_actions::ControlAction;
use crate::batch::state::messages::Message;
use crate::batch::state::names::HostId;
use crate::batch::state::{Elem, ElemState, Job, Phase, Run};
use crate::conf::types::{CondensedReasons, ResReqDisplay};
use crate::lang::civil::clock_time;
use crate::model::JobRef;
use crate::model::aps::ApsSetting;
use crate::model::checkpoint::Checkpoint;
use crate::model::further;
use crate::model::job::except;
use crate::model::job_state::JobState;
use crate::model::reason::{LimitOf, PendReason, susp};
use crate::proto::client::Col;
use crate::proto::sbd::Post;
use std::collections::HashMap;

/// A job or element with all that a row may show.
struct Shown<'a> {
    mbd: &'a Mbatchd,
    job: &'a Job,
    elem: Option<&'a Elem>,
    /// The pending reason for which the element is held.
    held: Option<PendReason>,
    /// The element group that the element belongs to.
    part: u32,
    at: JobRef,
    form: &'a RowForm<'a>,
    now: i64,
}

/// The parts of a row.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RowForm<'a> {
    pub cols: &'a [Col],
    /// The caller may see the job whole, not only its summary.
    pub whole: bool,
    /// One row an array.
    pub arrays: bool,
    /// Pending reasons say how many hosts they are about, and do not name them.
    pub reason_counts: bool,
}

fn json<T: serde::Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    // Writing to a Vec does not fail; a value that cannot be written shows as null.
    if serde_json::to_writer(&mut *out, value).is_err() {
        out.extend_from_slice(b"null");
    }
}

fn int(out: &mut Vec<u8>, n: i64) {
    json(out, &n);
}

impl Mbatchd {
    /// Appends `[...]`, of a job that is not to be shown whole a summary; false if
    /// the job or element is no longer in memory.
    pub(crate) fn write_row(
        &self,
        out: &mut Vec<u8>,
        at: JobRef,
        form: &RowForm<'_>,
        now: i64,
    ) -> bool {
        let Some(job) = self.state.job(at.job) else { return false };
        let view = job.view(at.idx);
        if !form.arrays && view.is_none() {
            return false;
        }
        let held = view.and_then(|v| v.held());
        let elem = job.elem(at.idx);
        let part = elem.map_or(0, |e| e.part);
        let shown = Shown { mbd: self, job, elem, held, part, at, form, now };
        out.push(b'[');
        for (i, col) in form.cols.iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            match form.whole || is_summary(*col) {
                true => shown.col(out, *col),
                false => out.extend(b"null"),
            }
        }
        out.push(b']');
        true
    }
}

impl Shown<'_> {
    fn spec(&self) -> &crate::model::job::JobSpec {
        self.job.spec_of(self.part)
    }

    fn queue(&self) -> Option<&crate::batch::site::Queue> {
        self.mbd.site.queue(self.job.queue_of(self.part))
    }

    fn run(&self) -> Option<&Run> {
        self.elem.and_then(Elem::run)
    }

    fn end(&self) -> Option<&crate::batch::state::ElementEnd> {
        match &self.elem?.state {
            ElemState::End(e) => Some(e),
            _ => None,
        }
    }

    fn stat(&self) -> JobState {
        let untouched = if self.held.is_some() { JobState::Psusp } else { JobState::Pend };
        self.elem.map_or(untouched, Elem::stat)
    }

    /// The state; ZOMBI where an element is to be killed on a host that cannot be asked, and WAIT
    /// of one that waits in a chunk.
    fn shown_state(&self) -> JobState {
        if self.mbd.state.job_chunks().waits(self.at) {
            return JobState::Wait;
        }
        let killed = self.run().is_some_and(|r| r.unknown && r.killed.is_some());
        match self.stat() {
            JobState::Unkwn if killed => JobState::Zombi,
            state => state,
        }
    }

    /// The priority, escalated while the job pends.
    fn priority(&self) -> u32 {
        let pends = matches!(self.stat(), JobState::Pend | JobState::Psusp);
        match pends {
            true => self.mbd.view().escalated_priority(self.job, self.spec()),
            false => self.mbd.view().priority(self.spec()),
        }
    }

    fn charged(&self) -> String {
        self.run().map_or(String::new(), |run| self.mbd.charged(self.job, self.at.idx, run))
    }

    fn usage(&self) -> Option<crate::model::job::Usage> {
        self.elem?.usage()
    }

    /// Columns that identify and describe the submission; the rest in [`Shown::col_run`].
    fn col(&self, out: &mut Vec<u8>, col: Col) {
        let s = self.spec();
        let names = self.mbd.state.names();
        match col {
            Col::Job => int(out, i64::from(self.job.id)),
            Col::Idx => int(out, i64::from(self.at.idx)),
            Col::User => json(out, &**names.user(self.job.user)),
            Col::UserGroup => json(out, &s.user_group),
            Col::Queue => json(out, &**names.queue(self.job.queue_of(self.part))),
            Col::Name => json(out, &self.job.display_name(self.at.idx)),
            Col::GivenName => json(out, &s.name),
            Col::Project => json(out, &s.project),
            Col::Description => json(out, &s.description),
            Col::Command => json(out, &s.command),
            Col::FromHost => json(out, &s.from_host),
            Col::MinSlots => int(out, i64::from(s.min_slots)),
            Col::MaxSlots => int(out, i64::from(s.max_slots)),
            Col::SubmitTime => int(out, self.job.submit_time),
            Col::BeginTime => int(out, s.begin_time),
            Col::TermTime => int(out, s.term_time),
            Col::ResReq => json(out, &s.res_req),
            Col::CombinedResReq => self.combined(out),
            Col::ResReqLevels => self.levels(out),
            Col::AskedHosts => json(out, &s.hosts),
            Col::Depend => json(out, &s.depend),
            Col::InFile => json(out, &s.in_file),
            Col::OutFile => json(out, &s.out_file),
            Col::ErrFile => json(out, &s.err_file),
            Col::Cwd => json(out, &s.cwd),
            Col::Home => json(out, &s.home),
            Col::Limits => json(out, &s.limits),
            Col::LimitSpec => json(out, &s.limit_spec),
            Col::Options => int(out, i64::from(s.options)),
            Col::Options2 => int(out, i64::from(s.options2)),
            Col::MailUser => json(out, &s.mail_user),
            Col::LoginShell => json(out, &s.login_shell),
            Col::PreExec => json(out, &s.pre_exec),
            Col::PostExec => json(out, &s.post_exec),
            Col::Priority => int(out, i64::from(self.priority())),
            Col::UserPriority => int(out, i64::from(s.priority)),
            Col::Counters => {
                let t = &self.job.tally();
                let c = [t.total, t.pend, t.done, t.run, t.exit, t.ssusp, t.ususp, t.psusp];
                json(out, &c);
            }
            Col::ArrayLimit => {
                let limit = self.job.name.array.as_ref().and_then(|a| a.limit);
                int(out, i64::from(limit.unwrap_or(0)));
            }
            Col::Thresholds => self.thresholds(out),
            Col::ExternalThresholds => self.external_thresholds(out),
            Col::Extra => self.extra(out),
            Col::Messages => {
                let all = self.mbd.state.messages().of(self.at);
                let row = |(index, m): (u32, &Message)| {
                    (index, m.user.clone(), m.time, m.text.clone(), u8::from(m.data.is_some()))
                };
                json(out, &all.into_iter().map(row).collect::<Vec<_>>());
            }
            _ if self.form.arrays => out.extend_from_slice(b"null"),
            _ => self.col_run(out, col),
        }
    }

    /// Columns about where the element stands.
    fn col_run(&self, out: &mut Vec<u8>, col: Col) {
        let run = self.run();
        match col {
            Col::Stat => json(out, self.shown_state().name()),
            Col::ExecHosts => self.execution_hosts(out),
            Col::CondensedHosts => self.condensed_hosts(out),
            Col::StartTime => int(out, run.map_or(0, |r| r.start_time)),
            Col::EndTime => int(out, self.end().map_or(0, |e| e.end_time)),
            Col::ExitCode => {
                json(out, &self.end().and_then(|e| crate::model::job::exit_code(e.status)))
            }
            Col::WaitStatus => json(out, &self.end().and_then(|e| e.status)),
            Col::ExitInfo => int(out, self.end().map_or(0, |e| i64::from(e.exit_info))),
            Col::PendReasons => self.pend_reasons(out, false),
            Col::AllPendReasons => self.pend_reasons(out, true),
            Col::StartNeeds => self.start_needs(out),
            Col::NextTry => int(out, self.next_try().unwrap_or(0)),
            Col::ProcessorUnits => json(out, run.map_or("", |r| &r.affinity)),
            Col::SuspReason => int(out, i64::from(self.susp_reason())),
            Col::SuspIndex => json(out, self.suspending_index()),
            Col::Pid => int(out, run.map_or(0, |r| i64::from(r.pid))),
            Col::Pgid => int(out, run.map_or(0, |r| i64::from(r.pgid))),
            Col::Pids => json(out, run.map_or(&[][..], |r| &r.soft.pids)),
            Col::PidGroups => json(out, run.map_or(&[][..], |r| &r.soft.groups)),
            Col::HostUsage => self.host_usage(out),
            Col::RunTime => int(out, self.run_time()),
            Col::PendTime => {
                let until =
                    run.map_or(self.end().map_or(self.now, |e| e.end_time), |r| r.start_time);
                int(out, (until - self.job.submit_time).max(0));
            }
            Col::IneligibleTime => json(out, &self.mbd.ineligible_secs(self.at, self.now)),
            Col::PendLimits => {
                let settings = self.mbd.site.settings(self.spec(), self.queue());
                json(out, &settings.pend_limits());
            }
            Col::EffectiveResReq => {
                let requirement = self.elem.and_then(|e| self.job.effective_requirement(e));
                json(out, requirement.map_or("", |text| text));
            }
            Col::ExecCwd => json(out, self.exec(|e| &e.cwd)),
            Col::ExecHome => json(out, self.exec(|e| &e.home)),
            Col::ExecNote => json(out, self.exec(|e| &e.note)),
            Col::ExecUser => json(out, self.exec(|e| &e.user)),
            Col::Attempt => int(out, self.elem.map_or(0, |e| i64::from(e.attempts))),
            Col::UsageTime => int(out, run.map_or(0, |r| r.soft.usage_time)),
            Col::Post => json(
                out,
                match self.end().map(|e| e.post) {
                    Some(Post::Running) => "run",
                    Some(Post::Done) => "done",
                    Some(Post::Failed) => "err",
                    _ => "",
                },
            ),
            Col::HostFactor => json(out, &run.map_or(0.0, |r| r.host_factor)),
            Col::Exceptions => json(out, &self.exceptions()),
            Col::Issued => json(out, &self.issued()),
            Col::Held => json(out, &self.held.is_some()),
            Col::Charged => json(out, &self.charged()),
            Col::Reservation => self.reservation(out),
            Col::AbsolutePriority => self.absolute_priority(out),
            Col::NlbPlacement => {
                let placed = run.and_then(|run| run.placed.as_ref());
                json(out, &placed.map_or(String::new(), ToString::to_string));
            }
            _ => self.col_usage(out, col),
        }
    }

    fn col_usage(&self, out: &mut Vec<u8>, col: Col) {
        let u = self.usage();
        let cpu = match (self.end(), u) {
            (Some(e), None) => e.cpu,
            (_, Some(u)) => u.cpu_secs(),
            (None, None) => 0.0,
        };
        match col {
            Col::RunLimit => json(out, &self.mbd.run_limit_in_force(self.job, self.at, self.run())),
            Col::CpuUsed => json(out, &cpu),
            Col::Utime => json(out, &u.map_or(0.0, |u| u.utime_us as f64 / 1e6)),
            Col::Stime => json(out, &u.map_or(0.0, |u| u.stime_us as f64 / 1e6)),
            Col::MemKb => json(out, &u.map_or(0, |u| u.mem_kb)),
            Col::MaxMemKb => json(out, &u.map_or(0, |u| u.max_mem_kb)),
            Col::AvgMemKb => json(out, &u.map_or(0, |u| u.avg_mem_kb)),
            Col::SwapKb => json(out, &u.map_or(0, |u| u.swap_kb)),
            Col::NThreads => json(out, &u.map_or(0, |u| u.nthreads)),
            Col::CpuPeak => json(out, &u.map(|u| f64::from(u.cpu_peak) / 100.0)),
            Col::CpuPeakSecs => json(out, &u.map(|u| u.cpu_peak_secs)),
            _ => out.extend_from_slice(b"null"),
        }
    }

    /// The usage of a started job on each of its several hosts.
    fn host_usage(&self, out: &mut Vec<u8>) {
        let started = self.run().filter(|_| self.end().is_none());
        let first = started.and_then(|run| Some((run.key, run.hosts.first()?.0)));
        let all = first.map_or(Vec::new(), |(key, host)| self.mbd.usage_by_host(key, host));
        let shown = all.into_iter().map(|(host, (usage, pids, groups))| {
            let name = &**self.mbd.state.names().host(host);
            (name, usage.mem_kb, usage.swap_kb, usage.cpu_secs(), pids, groups)
        });
        json(out, &shown.collect::<Vec<_>>());
    }

    /// The absolute priority of a pending element.
    fn absolute_priority(&self, out: &mut Vec<u8>) {
        let pends = matches!(self.stat(), JobState::Pend | JobState::Psusp);
        let view = self.mbd.view();
        let value = || self.mbd.sched.absolute_priority(&view, self.job, self.part);
        let setting = self.spec().further.aps;
        let shown = pends.then(value).flatten().map(|value| {
            let (system, admin) = match setting {
                Some(ApsSetting::System(_)) => (true, 0.0),
                Some(ApsSetting::Admin(number)) => (false, number.get()),
                None => (false, 0.0),
            };
            (value.total, system, admin, value.of_factor)
        });
        json(out, &shown);
    }

    /// The slots, and the memory in MB, that it holds while it waits for more.
    fn reservation(&self, out: &mut Vec<u8>) {
        let (view, all) = (self.mbd.view(), self.mbd.state.slot_reservations());
        let Some(own) = all.get(self.at).filter(|own| !own.hosts.is_empty()) else {
            return out.extend_from_slice(b"null");
        };
        let name = |(host, amount)| (&**self.mbd.state.names().host(host), amount);
        let held = all.held(own, |host| view.free_slots(host)).filter(|on| on.1 > 0);
        let slots: Vec<(&str, u64)> = held.map(name).collect();
        let held =
            all.held_memory(own, |host| view.memory_beside_running(host)).filter(|on| on.1 > 0);
        let memory: Vec<(&str, u64)> = held.map(name).collect();
        match memory.is_empty() {
            true => json(out, &(own.since, own.start, slots)),
            false => json(out, &(own.since, own.start, slots, memory)),
        }
    }

    fn exec(&self, f: impl Fn(&crate::batch::state::Exec) -> &String) -> &str {
        self.run().and_then(|r| r.exec.as_deref()).map_or("", |e| f(e))
    }

    /// The further options of the submission, without mbatchd's own entries.
    fn extra(&self, out: &mut Vec<u8>) {
        let mut sep = b'{';
        for (option, text) in self.spec().further.texts() {
            if !further::UNLISTED.contains(&option) {
                out.push(sep);
                json(out, option);
                out.push(b':');
                match self.checkpoint(option) {
                    Some(in_force) => json(out, &in_force),
                    None => json(out, &text),
                }
                sep = b',';
            }
        }
        for (name, text) in
            self.run().map_or(Vec::new(), |run| self.mbd.started_options(self.job, self.at, run))
        {
            out.push(sep);
            json(out, name);
            out.push(b':');
            json(out, &text);
            sep = b',';
        }
        out.extend_from_slice(if sep == b'{' { b"{}" } else { b"}" });
    }

    /// The value of -k with the period of bchkpnt -p in place of that of the submission.
    fn checkpoint(&self, option: &str) -> Option<String> {
        if option != further::CHECKPOINT {
            return None;
        }
        let minutes = self.run()?.checkpoint.period?;
        let mut checkpoint = Checkpoint::clone(self.spec().further.checkpoint.as_deref()?);
        checkpoint.period = Some(minutes).filter(|minutes| *minutes > 0);
        Some(checkpoint.to_string())
    }

    /// Host and reason of the last kill, suspend and resume.
    fn issued(&self) -> [(&str, &str); 3] {
        let state = &self.mbd.state;
        ControlAction::ALL.map(|action| {
            let last = state.last_actions().last(self.at, action);
            last.map_or(("", ""), |(host, reason)| (&**state.names().host(host), reason))
        })
    }

    fn exceptions(&self) -> String {
        let bits = self.elem.map_or(0, |e| self.mbd.exceptions(self.job, self.part, e, self.now));
        except::words(bits)
    }

    fn combined(&self, out: &mut Vec<u8>) {
        if let Some(known) = self.mbd.sched.combined_requirement(self.job.id, self.part) {
            return json(out, &known);
        }
        let (spec, view) = (self.spec(), self.mbd.view());
        let asked = !spec.hosts.is_empty();
        let levels = (self.job.queue_of(self.part), &*spec.further.application);
        let req = view.combined_req(levels, &spec.res_req, asked).ok();
        json(out, &req.map_or(String::new(), |req| req.0.to_string()));
    }

    /// BJOBS_RES_REQ_DISPLAY.
    fn levels(&self, out: &mut Vec<u8>) {
        let site = &self.mbd.site;
        match site.params().res_req_display() {
            ResReqDisplay::Brief => json(out, &()),
            ResReqDisplay::None => json(out, &["none"]),
            ResReqDisplay::Full => {
                let application = site.applications.get(&self.spec().further.application);
                let own = application.and_then(|a| a.conf.res_req.as_deref());
                let of_queue = self.queue().and_then(|q| q.conf.res_req.as_deref());
                json(out, &["full", own.unwrap_or_default(), of_queue.unwrap_or_default()]);
            }
        }
    }

    fn run_time(&self) -> i64 {
        self.elem.map_or(0, |e| e.ran(self.now))
    }

    fn susp_reason(&self) -> u32 {
        match self.elem.map(|e| &e.state) {
            Some(ElemState::Run(r)) => match r.phase {
                Phase::Ssusp(why) | Phase::Ususp(why) => why,
                _ => 0,
            },
            _ => 0,
        }
    }

    /// The external index for which it is suspended; empty: none.
    fn suspending_index(&self) -> &str {
        let code = self.susp_reason();
        let shared = &self.mbd.site.conf.base.shared;
        let mut all = shared.external_indices().enumerate();
        let of_code = all.find(|(place, _)| susp::of_external(*place) == code);
        of_code.map_or("", |(_, index)| &index.name)
    }

    /// The tighter of the queue's and the host's thresholds.
    fn thresholds(&self, out: &mut Vec<u8>) {
        let queue = self.queue();
        let host = self.run().and_then(|r| self.mbd.first_host(r));
        let mut rows: Vec<(usize, Option<f64>, Option<f64>)> = Vec::new();
        for k in 0..11 {
            let q = queue.map_or((None, None), |q| q.bounds[k]);
            let h = host.map_or((None, None), |i| self.mbd.site.hosts[i].bounds[k]);
            let tight = |a: Option<f64>, b: Option<f64>| match (a, b) {
                (Some(a), Some(b)) if k >= 7 => Some(a.max(b)),
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
            rows.push((k, tight(q.0, h.0), tight(q.1, h.1)));
        }
        json(out, &rows);
    }

    /// The tighter thresholds of external indices.
    fn external_thresholds(&self, out: &mut Vec<u8>) {
        let host = self.run().and_then(|r| self.mbd.first_host(r));
        let of_host = host.map_or(&[][..], |i| &self.mbd.site.hosts[i].external);
        let mut rows = self.queue().map_or(Vec::new(), |q| q.external.clone());
        for h in of_host {
            let tight = |a: Option<f64>, b: Option<f64>| match (a, b) {
                // more of it is more loaded: the smaller value acts first
                (Some(a), Some(b)) if h.up => Some(a.min(b)),
                (Some(a), Some(b)) => Some(a.max(b)),
                (a, b) => a.or(b),
            };
            match rows.iter_mut().find(|row| row.name == h.name) {
                Some(row) => {
                    (row.sched, row.stop) = (tight(row.sched, h.sched), tight(row.stop, h.stop));
                }
                None => rows.push(h.clone()),
            }
        }
        json(out, &crate::batch::query::queues_hosts::bounds_shown(&rows));
    }

    /// Why it waits, most telling first; `[]` for what does not wait.
    /// The execution hosts; of an element that waits in a chunk, those of the one that runs.
    fn hosts_of_run(&self) -> &[(HostId, u32)] {
        let runner = self.mbd.state.job_chunks().runner(self.at);
        let run = self.run().or(runner.and_then(|at| self.mbd.state.elem(at)?.run()));
        run.map_or(&[][..], |run| &run.hosts)
    }

    fn execution_hosts(&self, out: &mut Vec<u8>) {
        let (names, hosts) = (self.mbd.state.names(), self.hosts_of_run().iter());
        json(out, &hosts.map(|h| (&**names.host(h.0), h.1)).collect::<Vec<(&str, u32)>>());
    }

    /// The execution hosts; in place of those of a condensed group the group, with their slots.
    fn condensed_hosts(&self, out: &mut Vec<u8>) {
        let (names, condensed) = (self.mbd.state.names(), &self.mbd.site.condensed);
        if condensed.is_empty() {
            return self.execution_hosts(out);
        }
        let mut shown: Vec<(&str, u32)> = Vec::new();
        let mut places: HashMap<&str, usize> = HashMap::new();
        for (host, slots) in self.hosts_of_run() {
            let group = condensed.of(*host).next();
            match group.and_then(|group| shown.get_mut(*places.get(group)?)) {
                Some(row) => row.1 = row.1.saturating_add(*slots),
                None => {
                    group.map(|group| places.insert(group, shown.len()));
                    shown.push((group.unwrap_or(&**names.host(*host)), *slots));
                }
            }
        }
        json(out, &shown);
    }

    /// `all`: whatever CONDENSE_PENDING_REASONS says.
    fn pend_reasons(&self, out: &mut Vec<u8>, all: bool) {
        if !self.stat().is_pending() || self.shown_state() == JobState::Wait {
            out.extend_from_slice(b"[]");
            return;
        }
        if let Some(NotReady { reason, eligible }) = self.not_ready() {
            // an element between two starts; one whose last start has failed, too
            let limits = [PendReason::StartLimit, PendReason::PreExecLimit];
            let told = limits.contains(&reason) || eligible && reason == self.last_reason();
            let tries = self.tries().filter(|_| told);
            let routed = (reason == PendReason::PipeQueue).then(|| self.routing_words());
            let note = tries.map_or("", |tries| &tries.note);
            let note = routed.as_deref().unwrap_or(note);
            let own = Reason::new(reason, 0, Vec::new(), note);
            let queue = self.mbd.view().queue_closed(self.job.queue_of(self.part));
            match queue.filter(|_| eligible) {
                Some(why) => json(out, &[Reason::new(why, 0, Vec::new(), ""), own]),
                None => json(out, &[own]),
            }
            return;
        }
        let found = self.mbd.sched.reasons(&self.mbd.view(), self.at, self.part);
        let how = self.mbd.site.params().scheduler.condensed_reasons;
        let how = if all { CondensedReasons::No } else { how };
        let found = condense(how, &found, |reason| self.is_about_shared(reason));
        let note = self.tries().map_or("", |tries| &tries.note);
        let mut rows = Vec::new();
        if found.is_empty() || !note.is_empty() {
            rows.push(Reason::new(self.last_reason(), 0, Vec::new(), note));
        }
        rows.extend(found.iter().map(|(reason, hosts)| {
            let named = if self.form.reason_counts { &[][..] } else { &hosts[..] };
            let names = named.iter().filter_map(|host| self.mbd.links.hosts().get(*host));
            let about = self.mbd.site.resource_told(*reason);
            let names = names.map(|h| h.name.as_str()).collect();
            match self.limit_told(*reason) {
                Some([name, value]) => {
                    Reason::Limit(reason.number(), hosts.len(), names, about, name, value)
                }
                None => Reason::new(*reason, hosts.len(), names, about),
            }
        }));
        json(out, &rows);
    }

    /// Is a reason about a resource that hosts share?
    fn is_about_shared(&self, reason: PendReason) -> bool {
        let name = self.mbd.site.resource_told(reason);
        let map = &self.mbd.site.conf.base.cluster.resource_map;
        !name.is_empty() && map.iter().any(|mapping| mapping.resource == name)
    }

    /// Why no destination has accepted the request so far, and when the next try is.
    fn routing_words(&self) -> String {
        let Some(waiting) = self.mbd.routing.get(self.at) else { return String::new() };
        match self.next_try() {
            Some(at) => {
                let at = clock_time(at, self.mbd.windows.zone());
                format!("{}; next try at {at}", waiting.why)
            }
            None => waiting.why.to_string(),
        }
    }

    /// When the request is routed again, once it has been tried.
    fn next_try(&self) -> Option<i64> {
        let waiting = self.mbd.routing.get(self.at).filter(|waiting| !waiting.why.is_empty())?;
        Some(self.mbd.sched.now().wall_of_mono(waiting.next?))
    }

    /// The smallest changes after which the element could start.
    fn start_needs(&self, out: &mut Vec<u8>) {
        if !self.stat().is_pending() {
            return out.extend_from_slice(b"[]");
        }
        let (site, names) = (&self.mbd.site, self.mbd.state.names());
        let view = self.mbd.view();
        let ways = match self.not_ready() {
            Some(NotReady { reason, .. }) => vec![vec![(None, vec![Need::Without(reason)])]],
            None => self.mbd.sched.ways_to_start(&view, self.at, self.part),
        };
        let need = |need: &Need| match need {
            Need::Slots(n) => (*n as f64, ""),
            Need::Resource(id, amount) => (*amount, site.names.name(*id)),
            Need::Without(why) => (-f64::from(why.number()), site.resource_told(*why)),
        };
        let shown =
            |(host, needs): &(Option<HostId>, Vec<Need>)| -> (Option<&str>, Vec<(f64, &str)>) {
                (host.map(|host| &**names.host(host)), needs.iter().map(need).collect())
            };
        let shown: Vec<Vec<_>> = ways.iter().map(|way| way.iter().map(shown).collect()).collect();
        json(out, &shown);
    }

    /// The name and the value of the limit that a reason is about.
    fn limit_told(&self, reason: PendReason) -> Option<[String; 2]> {
        let PendReason::Limit(about) = reason else { return None };
        let limits = &self.mbd.site.conf.batch.resources.limits;
        let limit = limits.get(about.limit? as usize)?;
        let keywords: &[&str] = match about.of {
            LimitOf::Slots => &["SLOTS", "SLOTS_PER_PROCESSOR"],
            LimitOf::Jobs => &["JOBS"],
            LimitOf::Index(8) => &["TMP", "RESOURCE"],
            LimitOf::Index(9) => &["SWP", "RESOURCE"],
            LimitOf::Index(_) => &["MEM", "RESOURCE"],
            LimitOf::Resource(_) => &["RESOURCE"],
        };
        let value = keywords.iter().find_map(|keyword| limit.raw.get(*keyword))?;
        let text = match about.of {
            LimitOf::Resource(_) => {
                let resource = self.mbd.site.resource_told(reason);
                let pair = value.text.split('[').find_map(|pair| {
                    let (name, n) = pair.split_once(',')?;
                    (name.trim() == resource).then(|| n.split(']').next().unwrap_or_default())
                });
                pair.unwrap_or_default().trim().to_owned()
            }
            _ => value.text.clone(),
        };
        Some([limit.name.clone(), text])
    }

    /// The record of starts that failed.
    fn tries(&self) -> Option<&crate::batch::state::Tries> {
        self.mbd.state.tries().of(self.at)
    }

    /// The reason that keeps the element wherever there may be room.
    fn not_ready(&self) -> Option<NotReady> {
        if let Some(reason) = self.mbd.dispatch_stopped() {
            return Some(NotReady { reason, eligible: true });
        }
        let (view, of) = (self.mbd.view(), ReadinessQuery::Element(self.at.idx));
        self.mbd.sched.readiness(&view, self.job, of).err()
    }

    fn last_reason(&self) -> PendReason {
        self.job.returned_for(self.at.idx)
    }
}

/// A pending reason on the wire: code, hosts that it holds for, their names, and what there is to
/// tell besides.
#[derive(serde::Serialize)]
#[serde(untagged)]
enum Reason<'a> {
    Plain(u32, usize, Vec<&'a str>),
    Told(u32, usize, Vec<&'a str>, &'a str),
    /// With the name of a limit, and its value.
    Limit(u32, usize, Vec<&'a str>, &'a str, String, String),
}

impl<'a> Reason<'a> {
    fn new(reason: PendReason, hosts: usize, names: Vec<&'a str>, detail: &'a str) -> Self {
        let code = reason.number();
        match detail {
            "" => Reason::Plain(code, hosts, names),
            _ => Reason::Told(code, hosts, names, detail),
        }
    }
}

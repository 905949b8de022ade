//! The history of each job and element, and the time it spent in each state: a fold over the
//! records of the event log.
//!
//! Invariant: pure; a record of a job that is not wanted, or that the log has not named, changes
//! nothing. A job whose JOB_NEW comes again (it was carried into a newer log with all its records)
//! begins anew.

use super::lines;
use lsf::batch::state::ineligible::Waited;
use lsf::cli::long_format::Efficiency;
use lsf::lang::interval::Interval;
use lsf::lang::jobname::{ArraySpec, JobName, name_fits};
use lsf::lang::resreq::requested_mb;
use lsf::model::JobRef;
use lsf::model::event::{
    ArraySignal, Event, HostUsage, JobChunk, JobModify, JobNew, JobStart, JobStatus, Record,
};
use lsf::model::further;
use lsf::model::job::{Usage, opt2};
use lsf::model::job_state::JobState;
use lsf::proto::client::IdSel;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Most elements of one array that are shown: a bound on what a damaged or hostile log can cost.
const MAX_ELEMENTS: usize = 1 << 20;

/// The states that have a column of seconds, in their order.
const COLUMNS: [JobState; 6] = [
    JobState::Pend,
    JobState::Psusp,
    JobState::Run,
    JobState::Ususp,
    JobState::Ssusp,
    JobState::Unkwn,
];

/// How many states have a column.
pub const COUNTED: usize = COLUMNS.len();

fn column(state: JobState) -> Option<usize> {
    COLUMNS.iter().position(|counted| *counted == state)
}

#[derive(Clone, Debug, Default)]
pub struct HistoryFilter {
    pub ids: Vec<IdSel>,
    /// Empty: everybody.
    pub user: String,
    pub queue: String,
    pub project: String,
    /// -J: `name`, `name*`, `name[list]`.
    pub name: String,
    /// -m: host names.
    pub hosts: Vec<String>,
    pub states: States,
    pub completed: Option<Interval>,
    pub dispatched: Option<Interval>,
    pub submitted: Option<Interval>,
    pub user_group: String,
    /// -Jd: `text`, `text*`.
    pub description: String,
    /// -app, -g, -Lp: the text of each under its key.
    pub further: Vec<(&'static str, String)>,
}

/// -a -d -e -p -r -s; none: what has not finished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct States {
    pub all: bool,
    pub done: bool,
    pub exit: bool,
    pub pend: bool,
    pub run: bool,
    pub susp: bool,
}

impl States {
    fn any(self) -> bool {
        self.all || self.done || self.exit || self.pend || self.run || self.susp
    }

    fn wants(self, s: JobState) -> bool {
        if !self.any() {
            return !s.is_finished();
        }
        self.all
            || (self.done && s.is_finished())
            || (self.exit && s == JobState::Exit)
            || (self.pend && s == JobState::Pend)
            || (self.run && s == JobState::Run)
            || (self.susp && matches!(s, JobState::Psusp | JobState::Ususp | JobState::Ssusp))
    }
}

/// A job group has those below it.
fn wants_further(new: &JobNew, key: &str, want: &str) -> bool {
    let Some(has) = new.spec.further.text(key) else { return false };
    match key {
        further::GROUP => {
            let below = has.strip_prefix(want.trim_end_matches('/'));
            below.is_some_and(|r| r.is_empty() || r.starts_with('/'))
        }
        _ => has == want,
    }
}

impl HistoryFilter {
    /// Are some jobs meant rather than whatever happened?
    pub fn narrow(&self) -> bool {
        let texts = [&self.project, &self.name, &self.user_group, &self.description];
        let timed =
            self.completed.is_some() || self.dispatched.is_some() || self.submitted.is_some();
        let given = timed || !self.further.is_empty() || texts.iter().any(|t| !t.is_empty());
        given || !self.ids.is_empty() || (self.states.any() && !self.states.all)
    }

    fn wants_job(&self, new: &JobNew) -> bool {
        let fits = |want: &str, has: &str| want.is_empty() || want == has;
        (self.ids.is_empty() || self.ids.iter().any(|i| i.job == new.job))
            && self.submitted.is_none_or(|i| i.holds(new.submit_time))
            && fits(&self.user, &new.user)
            && fits(&self.queue, &new.spec.queue)
            && fits(&self.project, &new.spec.project)
            && fits(&self.user_group, &new.spec.user_group)
            && (self.description.is_empty() || name_fits(&self.description, &new.spec.description))
            && self.further.iter().all(|(key, want)| wants_further(new, key, want))
            && self.wants_name(new)
    }

    fn wants_name(&self, new: &JobNew) -> bool {
        if self.name.is_empty() {
            return true;
        }
        let want = self.name.split('[').next().unwrap_or("").trim();
        let given = new.spec.name.split('[').next().unwrap_or("").trim();
        let command = new.spec.command.lossy();
        let has: &str = if given.is_empty() { &command } else { given };
        name_fits(want, has)
    }

    fn wants_element(&self, at: JobRef, e: &Elem) -> bool {
        let by_id = self.ids.is_empty() || self.ids.iter().any(|i| i.has(at));
        let by_name = match JobName::parse(&self.name) {
            Ok(JobName { array: Some(list), .. }) => list.contains(at.idx),
            _ => true,
        };
        let by_host = self.hosts.is_empty()
            || e.hosts.iter().any(|(h, _)| self.hosts.iter().any(|want| want == h));
        let by_time = self.completed.is_none_or(|i| e.end > 0 && i.holds(e.end))
            && self.dispatched.is_none_or(|i| e.starts.iter().any(|t| i.holds(*t)));
        // A selection by time includes finished jobs.
        let timed =
            self.completed.is_some() || self.dispatched.is_some() || self.submitted.is_some();
        let named = (!self.ids.is_empty() || timed) && !self.states.any();
        by_id && by_name && by_host && by_time && (named || self.states.wants(e.state))
    }
}

/// A job, or an element of an array.
#[derive(Clone, Debug)]
pub struct Elem {
    pub state: JobState,
    since: i64,
    spent: [i64; COUNTED],
    /// When it finished; 0 before.
    pub end: i64,
    /// When it was dispatched.
    pub starts: Vec<i64>,
    /// The hosts of the last dispatch, with the slots on each.
    pub hosts: Vec<(String, u32)>,
    host_factor: f64,
    /// A daemon of this product started the job and recorded more about its usage.
    pub ours: bool,
    usage: Usage,
    /// The usage of the last attempt on each of its hosts, where these were several.
    pub hosts_used: Box<[HostUsage]>,
    /// MB of memory that its last start reserved; 0 none.
    asked_mb: f64,
    /// The ineligible waiting of the element, and whether it has records of its own.
    waited: Waited,
    apart: bool,
    /// (time, sentence) of -l.
    pub lines: Vec<(i64, String)>,
}

impl Elem {
    fn new(new: &JobNew) -> Self {
        let held = new.spec.options2 & opt2::HOLD != 0;
        Elem {
            state: if held { JobState::Psusp } else { JobState::Pend },
            since: new.submit_time,
            spent: [0; COUNTED],
            end: 0,
            starts: Vec::new(),
            hosts: Vec::new(),
            host_factor: 0.0,
            ours: false,
            usage: Usage::default(),
            hosts_used: Box::default(),
            asked_mb: 0.0,
            waited: Waited::default(),
            apart: false,
            lines: Vec::new(),
        }
    }

    fn enter(&mut self, time: i64, state: JobState) {
        if let Some(spent) = column(self.state).map(|column| &mut self.spent[column]) {
            *spent += (time - self.since).max(0);
        }
        if self.state.is_pending() && !state.is_pending() {
            self.waited.end(time);
        }
        (self.state, self.since) = (state, time);
        self.end = if state.is_finished() { time } else { 0 };
    }

    /// Seconds in each state up to its end, or up to `now`.
    pub fn times(&self, now: i64) -> [i64; COUNTED] {
        let mut spent = self.spent;
        if let Some(s) = column(self.state).map(|column| &mut spent[column]) {
            *s += (now - self.since).max(0);
        }
        spent
    }

    /// Seconds that it waited for room alone, and for something else.
    pub fn waited(&self, now: i64) -> (i64, i64) {
        let not = self.waited.until(now);
        let pending: i64 = self.times(now)[..2].iter().sum();
        ((pending - not).max(0), not)
    }

    /// The share of its allocation that the job used.
    pub fn efficiency(&self, now: i64) -> Efficiency {
        let u = &self.usage;
        Efficiency {
            max_mem_kb: u.max_mem_kb,
            avg_mem_kb: u.avg_mem_kb,
            asked_mb: self.asked_mb,
            slots: self.hosts.iter().map(|h| i64::from(h.1)).sum(),
            ran: column(JobState::Run).map_or(0.0, |column| self.times(now)[column] as f64),
            cpu: u.cpu_secs(),
            peak: f64::from(u.cpu_peak) / 100.0,
            peak_secs: i64::from(u.cpu_peak_secs),
        }
    }

    fn note(&mut self, time: i64, line: Option<String>) {
        self.lines.extend(line.map(|l| (time, l)));
    }

    /// A record about it, with its sentence and one more.
    fn add(&mut self, rec: &Record, line: Option<String>, more: Option<String>) {
        let beside = lines::unreached(&rec.event).filter(|_| self.state == JobState::Unkwn);
        let beside = beside.filter(|_| line.is_some()).map(str::to_string);
        match &rec.event {
            Event::JobStart(s) => self.start(rec.time, s),
            Event::JobStatus(s) => self.status(rec.time, s),
            Event::JobRequeue { held: None, .. } => self.enter(rec.time, JobState::Pend),
            Event::JobRequeue { .. } => self.enter(rec.time, JobState::Psusp),
            _ => {}
        }
        let time = if self.end > 0 { self.end } else { rec.time };
        // a request is told of before its failure, the loss of a host before the end by it
        let (first, second) = match &rec.event {
            Event::JobSignal(_) => (line, beside),
            _ => (beside, line),
        };
        [first, second, more].into_iter().for_each(|line| self.note(time, line));
    }

    fn start(&mut self, time: i64, s: &JobStart) {
        self.hosts = s.hosts.iter().map(|(h, n)| (h.to_string(), *n)).collect();
        self.hosts_used = Box::default();
        self.host_factor = s.host_factor;
        self.ours = s.attempt > 0;
        // few requirements have one, and to read them takes long
        let asked = Some(&s.eff_res_req).filter(|req| req.contains("mem="));
        self.asked_mb = asked.and_then(|req| requested_mb(req)).unwrap_or(0.0);
        self.starts.push(time);
        self.enter(time, JobState::Run);
    }

    fn status(&mut self, time: i64, s: &JobStatus) {
        let Some(state) = s.status.state() else { return };
        let time = if state.is_finished() && s.end_time > 0 { s.end_time } else { time };
        self.enter(time, state);
        if let Some(u) = s.usage {
            self.usage = u;
        }
        if !s.hosts.is_empty() {
            self.hosts_used = s.hosts.clone();
        }
    }
}

/// A submission with what became of it.
#[derive(Clone, Debug)]
pub struct Job {
    pub new: Box<JobNew>,
    /// The elements; `None` outside an array.
    array: Option<Box<ArraySpec>>,
    /// The name without its list.
    name: String,
    /// The state of every element that no record named.
    fresh: Elem,
    own: BTreeMap<u32, Elem>,
}

impl Job {
    fn of(new: &JobNew) -> Self {
        let (name, array) = match JobName::parse(&new.spec.name) {
            Ok(n) => (n.name, n.array),
            Err(_) => (new.spec.name.clone(), None),
        };
        let fresh = Elem::new(new);
        Job { new: Box::new(new.clone()), array, name, fresh, own: BTreeMap::new() }
    }

    /// Listings show it as it is now; what `-l` says of the submission stays.
    fn modified(&mut self, m: &JobModify) {
        let spec = Arc::make_mut(&mut self.new.spec);
        spec.queue = m.spec.queue.clone();
        spec.project = m.spec.project.clone();
        if let Ok(n) = JobName::parse(&m.spec.name) {
            self.name = n.name;
        }
    }

    /// The end of an element with its CPU time as a machine of this factor would have taken.
    fn normal(&self, e: &Event, factor: f64) -> Option<Event> {
        let Event::JobStatus(s) = e else { return None };
        let own = self.own.get(&s.at.idx).map_or(0.0, |e| e.host_factor);
        let cpu = if own > 0.0 { s.cpu * own / factor } else { return None };
        Some(Event::JobStatus(Box::new(JobStatus { cpu, ..(**s).clone() })))
    }

    fn elem(&mut self, idx: u32) -> Option<&mut Elem> {
        let known = match &self.array {
            Some(list) => list.contains(idx),
            None => idx == 0,
        };
        known.then(|| self.own.entry(idx).or_insert_with(|| self.fresh.clone()))
    }

    /// The name as a listing shows it: `name[4]`; the command where none was given.
    pub fn display_name(&self, idx: u32) -> String {
        match (idx, self.name.is_empty()) {
            (0, true) => self.new.spec.command.lossy().into_owned(),
            (0, false) => self.name.clone(),
            _ => format!("{}[{idx}]", self.name),
        }
    }

    fn indices(&self) -> Vec<u32> {
        match &self.array {
            None => vec![0],
            Some(list) => {
                let mut all: Vec<u32> = list.iter().take(MAX_ELEMENTS).collect();
                all.sort_unstable();
                all
            }
        }
    }
}

/// All that the log tells of the jobs wanted.
pub struct History {
    pub filter: HistoryFilter,
    /// Keep the sentences of -l.
    long: bool,
    /// LSB_ENABLE_HPC_ALLOCATION=Y.
    tasks: bool,
    /// -N: CPU times are told as a machine of this factor would have taken.
    pub factor: Option<f64>,
    jobs: BTreeMap<u32, Job>,
    /// The log tells who was eligible (TRACK_ELIGIBLE_PENDINFO).
    pub tracked: bool,
}

impl History {
    pub fn new(filter: HistoryFilter, long: bool, tasks: bool) -> Self {
        History { filter, long, tasks, factor: None, jobs: BTreeMap::new(), tracked: false }
    }

    pub fn add(&mut self, rec: &Record) {
        if let Event::JobNew(new) = &rec.event {
            if self.filter.wants_job(new) {
                self.jobs.insert(new.job, Job::of(new));
            }
            return;
        }
        if let Event::Eligible { at, on } = &rec.event {
            self.tracked = true;
            return self.eligible(rec.time, *at, *on);
        }
        if let Event::ArraySignal(s) = &rec.event {
            return self.array_signal(rec.time, s);
        }
        if let Event::JobChunk(chunk) = &rec.event {
            return self.chunk(rec.time, chunk);
        }
        let Some(at) = lines::concerns(&rec.event) else { return };
        let Some(job) = self.jobs.get_mut(&at.job) else { return };
        match &rec.event {
            Event::JobSwitch { at, queue, route, .. } if at.idx == 0 => {
                Arc::make_mut(&mut job.new.spec).switch(queue, route.as_deref());
            }
            Event::JobModify(m) if m.elems.is_empty() => job.modified(m),
            _ => {}
        }
        let normal = self.factor.and_then(|f| job.normal(&rec.event, f));
        let event = normal.as_ref().unwrap_or(&rec.event);
        let line = self.long.then(|| lines::sentence(event, self.tasks)).flatten();
        let line = line.map(|line| lines::with_account(line, event, &job.new.user));
        let more = self.long.then(|| lines::completed(&rec.event)).flatten();
        let elems = match &rec.event {
            // a change of the whole array, which all its elements were told of
            Event::JobModify(m) if m.alike && !m.elems.is_empty() => return,
            Event::JobModify(m) => &m.elems[..],
            Event::ArraySwitch { elems, .. } => elems,
            Event::ArrayMove(m) => &m.elems,
            _ => &[],
        };
        if !elems.is_empty() {
            let named = IdSel { job: at.job, elems: elems.to_vec() };
            for idx in job.indices().into_iter().filter(|&idx| named.has(JobRef { idx, ..at })) {
                job.elem(idx).into_iter().for_each(|e| e.note(rec.time, line.clone()));
            }
            return;
        }
        if at.idx == 0 && job.array.is_some() {
            // About the whole array: told of every element.
            job.fresh.note(rec.time, line.clone());
            job.own.values_mut().for_each(|e| e.note(rec.time, line.clone()));
            return;
        }
        let Some(e) = job.elem(at.idx) else { return };
        if matches!(&rec.event, Event::JobStatus(s) if s.status.post().is_some()) {
            return e.note(rec.time, line);
        }
        if e.state.is_finished() && !matches!(rec.event, Event::JobRequeue { .. }) {
            return;
        }
        e.add(rec, line, more);
    }

    /// Jobs wait for the slots of another one.
    fn chunk(&mut self, time: i64, chunk: &JobChunk) {
        let Some((runner, members)) = chunk.members.split_first() else { return };
        for at in members {
            let Some(job) = self.jobs.get_mut(&at.job) else { continue };
            let line = self.long.then(|| format!("Waiting in a chunk for job <{runner}>;"));
            job.elem(at.idx).into_iter().for_each(|e| e.note(time, line.clone()));
        }
    }

    /// Each element has the story that records of its own would tell.
    fn array_signal(&mut self, time: i64, s: &ArraySignal) {
        let Some(list) = self.jobs.get(&s.signal.at.job).and_then(|job| job.array.clone()) else {
            return;
        };
        for idx in s.indices().filter(|idx| list.contains(*idx)).take(MAX_ELEMENTS) {
            let signal = Event::JobSignal(Box::new(s.signal_of(idx)));
            let status = Event::JobStatus(Box::new(s.status_of(idx)));
            for event in [signal, status] {
                self.add(&Record { time, event });
            }
        }
    }

    /// An array tells of those of its elements that are not told of by themselves.
    fn eligible(&mut self, time: i64, at: JobRef, on: bool) {
        let Some(job) = self.jobs.get_mut(&at.job) else { return };
        if at.idx != 0 || job.array.is_none() {
            if let Some(e) = job.elem(at.idx) {
                e.apart = true;
                e.waited.turn(time, on);
            }
            return;
        }
        let waits = |e: &&mut Elem| !e.apart && e.state.is_pending();
        job.own.values_mut().filter(waits).for_each(|e| e.waited.turn(time, on));
        job.fresh.waited.turn(time, on);
    }

    /// A job that the log named.
    pub fn job(&self, id: u32) -> Option<&Job> {
        self.jobs.get(&id)
    }

    /// The jobs and elements to show, by ID and index.
    pub fn wanted(&self) -> impl Iterator<Item = (JobRef, &Job, &Elem)> {
        self.jobs.iter().flat_map(move |(&id, job)| {
            job.indices().into_iter().filter_map(move |idx| {
                let at = JobRef { job: id, idx };
                let e = job.own.get(&idx).unwrap_or(&job.fresh);
                self.filter.wants_element(at, e).then_some((at, job, e))
            })
        })
    }
}

//! The properties of every run: nothing acknowledged is lost, nothing runs twice, no host runs
//! more than its slots, everything finishes once faults cease, and what is known of an end is
//! true.

use super::checkpoints::Checkpoints;
use super::limits;
use super::preempted::Preempted;
use crate::batch::Mbatchd;
use crate::batch::state::{ElemState, ElementView};
use crate::log::codec::read_finish;
use crate::model::event::Finish;
use crate::model::reason::term;
use crate::model::specfield::SpecField;
use crate::model::{JobKey, JobRef};
use crate::proto::Msg;
use crate::proto::client::{ClientMsg, Modify, Verb};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;

/// Why a run failed; prints with the seed that replays it.
#[derive(Clone, Debug)]
pub struct Failure {
    pub seed: u64,
    pub at_secs: f64,
    pub what: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {} at {:.3} s: {}", self.seed, self.at_secs, self.what)
    }
}

impl std::error::Error for Failure {}

/// Observations from outside the machines.
#[derive(Debug, Default)]
pub struct Check {
    /// Request id -> acknowledged job.
    pub acked: BTreeMap<String, u32>,
    /// Elements each acknowledged job has.
    pub sizes: HashMap<u32, u32>,
    /// How often a process of each element was let go.
    starts: HashMap<JobRef, Vec<JobKey>>,
    /// Wait status of each attempt whose process ended.
    ends: HashMap<JobKey, i32>,
    running: HashMap<usize, BTreeSet<JobKey>>,
    /// Attempts that were started by force: they need no free slots.
    pub forced: HashSet<JobKey>,
    /// Slots of each attempt on its first host.
    slots: HashMap<JobKey, u32>,
    /// Attempts that a job of a higher queue has preempted: their slots are free for that queue.
    preempted: Preempted,
    /// Suspended attempts of queues that others preempt: their slots are free for these.
    idle: HashSet<JobKey>,
    /// Finished jobs are taken out of memory; lsb.acct alone knows of them then.
    pub cleans: bool,
    /// The log was damaged: of a job that had ended, records may be lost.
    pub damaged: bool,
    /// Jobs that are held because the log was damaged; what becomes of them is not asked.
    pub hurt: BTreeSet<u32>,
    /// Jobs that had ended when damage took one of their records: they are held once requeued.
    pub hurt_ended: BTreeSet<u32>,
    /// Jobs that wait at the end for slots that a held job keeps; they are not asked for either.
    behind_held: BTreeSet<u32>,
    /// The jobs whose ends a job may wait for.
    pub waits_for: HashMap<u32, Vec<u32>>,
    /// Requests that no destination has accepted in time.
    pub given_up: BTreeSet<JobRef>,
    /// Jobs that a client asked to end.
    killed: BTreeSet<u32>,
    /// Jobs that may run again: by a request, or by their exit values.
    pub requeued: BTreeSet<u32>,
    /// Jobs that run again when their host is lost.
    pub rerunnable: BTreeSet<u32>,
    /// Jobs that run again when their host is lost, with those that bmod may have made so.
    pub may_rerun: BTreeSet<u32>,
    /// Attempts that were given up: they may still run.
    pub forsaken: BTreeSet<JobKey>,
    /// The projects that a changed job or element may have.
    projects: HashMap<JobRef, Vec<String>>,
    pub(super) checkpoints: Checkpoints,
    /// The wall clock of a host was set: amounts that decayed meanwhile stay as they are.
    pub(super) clock_was_set: bool,
    /// The first thing that was wrong.
    pub wrong: Option<String>,
}

impl Check {
    pub(super) fn fail(&mut self, what: String) {
        self.wrong.get_or_insert(what);
    }

    pub fn acknowledged(&mut self, request: &str, job: u32, size: u32) {
        match self.acked.get(request) {
            Some(&old) if old != job => {
                self.fail(format!("request {request} was answered with job {old}, then {job}"))
            }
            _ => {}
        }
        let other = self.acked.iter().find(|(r, j)| **j == job && r.as_str() != request);
        if let Some((r, _)) = other {
            self.fail(format!("job {job} was given to requests {r} and {request}"));
        }
        self.acked.insert(request.to_string(), job);
        self.sizes.insert(job, size);
    }

    /// A task with this command is made for an attempt.
    pub(super) fn begins_with(&mut self, key: JobKey, command: &str) {
        if command.contains("exec erestart") && !self.checkpoints.can_restart(key.job_ref()) {
            self.fail(format!("{key} begins from a checkpoint, and none of the job succeeded"));
        }
    }

    /// Something is asked for that may happen or not.
    pub fn asked(&mut self, msg: &Msg, project: Option<&(JobRef, String)>) {
        if let Msg::Client(ClientMsg::Control(c)) = msg
            && matches!(c.verb, Verb::Requeue(_) | Verb::Force(_) | Verb::Migrate { .. })
        {
            self.requeued.extend(c.select.ids.iter().map(|id| id.job));
        }
        if let Msg::Client(ClientMsg::Control(c)) = msg
            && c.verb == Verb::Kill
        {
            self.killed.extend(c.select.ids.iter().map(|id| id.job));
        }
        if let Msg::Client(ClientMsg::Modify(m)) = msg {
            self.asked_to_modify(m);
        }
        let Some((at, project)) = project else { return };
        let size = self.sizes.get(&at.job).copied().unwrap_or(1);
        let all = if size == 1 { 0..=0 } else { 1..=size };
        for idx in all.filter(|idx| at.idx == 0 || at.idx == *idx) {
            let may = self.projects.entry(JobRef { job: at.job, idx });
            may.or_insert_with(|| vec!["default".into()]).push(project.clone());
        }
    }

    fn asked_to_modify(&mut self, m: &Modify) {
        let job = m.id.job;
        if m.fields.contains(&SpecField::Rerun) {
            self.rerunnable.remove(&job);
            self.may_rerun.insert(job);
        }
        let named = m.spec.depend.strip_prefix("ended(").and_then(|d| d.strip_suffix(')'));
        if let Some(before) = named.and_then(|id| id.parse().ok()) {
            self.waits_for.entry(job).or_default().push(before);
        }
    }

    /// The project was changed. Of an array some elements may have ended before.
    pub fn granted(&mut self, at: JobRef, project: &str) {
        let whole_array = at.idx == 0 && self.sizes.get(&at.job).is_some_and(|n| *n > 1);
        // a requeued job may have ended with another project before
        let again = self.requeued.contains(&at.job);
        if let Some(may) = self.projects.get_mut(&at).filter(|_| !whole_array && !again) {
            *may = vec![project.to_string()];
        }
    }

    /// Checks that the counters are zero once all jobs are over.
    fn counted(&mut self, mbd: &Mbatchd) {
        if self.damaged || !self.hurt.is_empty() {
            return;
        }
        let c = mbd.state().counts();
        let slots = c.queues().map(|of| of.1).chain(c.users().map(|of| of.1));
        let left = slots.chain(c.hosts().map(|of| &of.1.slots)).any(|s| s.all() != 0);
        if left || c.queue_users().any(|of| of.1 != 0) {
            self.fail(format!("slots are counted for nothing: {c:?}"));
        }
        if !mbd.state().tries().is_empty() {
            self.fail(format!("something is kept of what has ended: {:?}", mbd.state().tries()));
        }
    }

    /// The counters of mbatchd are those of its jobs, and so is what it counts under each limit.
    pub fn recounted(&mut self, mbd: &Mbatchd) {
        if let Err(why) = limits::recount(mbd) {
            self.fail(why);
        }
        if let Err(why) = mbd.limits_audit() {
            self.fail(format!("under a limit: {why}"));
        }
        if let Err(why) = mbd.preemptions_audit() {
            self.fail(why);
        }
        if let Err(why) = mbd.reservations_audit() {
            self.fail(why);
        }
        if let Err(why) = mbd.applications_audit() {
            self.fail(why);
        }
        if let Err(why) = mbd.service_classes_audit() {
            self.fail(why);
        }
        if let Err(why) = mbd.slot_reservations_audit() {
            self.fail(format!("the slots that pending jobs keep: {why}"));
        }
        if let Err(why) = mbd.fairshare_audit()
            && !self.clock_was_set
        {
            self.fail(why);
        }
        if let Err(why) = mbd.job_groups_audit() {
            self.fail(why);
        }
    }

    /// The reservations of mbatchd are those of the started jobs.
    pub fn reserved(&mut self, mbd: &Mbatchd) {
        if let Err(why) = mbd.reserve_audit() {
            self.fail(format!("the reservations are not those of the jobs: {why}"));
        }
    }

    /// The jobs that the scheduler takes for ready are those that are.
    pub fn ready(&mut self, mbd: &Mbatchd) {
        if let Err(why) = mbd.readiness_audit() {
            self.fail(format!("the readiness of a job: {why}"));
        }
    }

    /// mbatchd gives an attempt so many slots on its first host.
    pub fn given(&mut self, key: JobKey, slots: u32) {
        self.slots.insert(key, slots);
    }

    /// mbatchd has recorded that an attempt is preempted, or that it is in another state. An
    /// attempt that is preempted and `ends` goes on only to end: its preemptor has the slots then.
    pub fn recorded(&mut self, key: JobKey, preempted: bool, ends: bool, secs: f64) {
        if preempted || !ends {
            let wrong = self.preempted.recorded(key, preempted, secs).err();
            wrong.into_iter().for_each(|why| self.fail(why));
        }
    }

    /// mbatchd has recorded that an attempt leaves its slots while it is suspended, or has them.
    pub fn recorded_idle(&mut self, key: JobKey, leaves: bool) {
        match leaves {
            true => self.idle.insert(key),
            false => self.idle.remove(&key),
        };
    }

    /// These attempts are preempted, and these leave their slots while they are suspended; of those
    /// that end, the ones that were heard of before stay so.
    pub(super) fn suspended_anew(
        &mut self,
        preempted: HashSet<JobKey>,
        idle: HashSet<JobKey>,
        ends: &HashSet<JobKey>,
    ) {
        self.preempted.begin_anew(preempted, ends);
        self.idle.retain(|key| ends.contains(key));
        self.idle.extend(idle);
    }

    /// mbatchd has started a job.
    pub fn decided_start(&mut self) {
        self.preempted.job_started();
    }

    pub fn started(&mut self, host: usize, key: JobKey, slots: u32) {
        let list = self.starts.entry(key.job_ref()).or_default();
        list.push(key);
        // once more where somebody asked for it or the host was lost, and only after the end of
        // what ran before, or where that was given up
        let before = &list[..list.len() - 1];
        let runs = |k: &JobKey| self.running.values().any(|on| on.contains(k));
        let rerun = self.may_rerun.contains(&key.job);
        let over = |k: &JobKey| !runs(k) || rerun && self.forsaken.contains(k);
        let again = (rerun || self.requeued.contains(&key.job)) && before.iter().all(over);
        if !before.is_empty() && !again {
            let list = list.clone();
            self.fail(format!("job <{}> ran more than once: {list:?}", key.job_ref()));
        }
        self.running.entry(host).or_default().insert(key);
        let known = self.running[&host].iter().filter(|k| self.has_its_slots(k));
        let used: u32 = known.map(|k| self.slots.get(k).copied().unwrap_or(1)).sum();
        if used > slots {
            self.fail(format!("the jobs on host {host} have {used} slots, it has {slots}"));
        }
    }

    /// Has an attempt the slots that it was given, as far as mbatchd may know? Where a held one
    /// runs, nobody may know.
    pub(super) fn has_its_slots(&self, key: &JobKey) -> bool {
        let held = self.hurt.contains(&key.job) || self.hurt_ended.contains(&key.job);
        let given = self.preempted.contains(key) || self.idle.contains(key);
        !held && !given && !self.forced.contains(key)
    }

    pub fn ended(&mut self, host: usize, key: JobKey, status: Option<i32>) {
        self.running.entry(host).or_default().remove(&key);
        if let Some(s) = status {
            self.ends.insert(key, s);
        }
    }

    /// Does a process of the attempt run?
    pub fn runs(&self, key: JobKey) -> bool {
        self.running.values().any(|on| on.contains(&key))
    }

    /// An attempt of an element that runs and was not given up.
    pub fn believed_alive(&self, at: JobRef) -> Option<JobKey> {
        let alive = |k: &&JobKey| self.runs(**k) && !self.forsaken.contains(k);
        self.starts.get(&at)?.iter().find(alive).copied()
    }

    /// No process runs for a job that is over, was given up or removed.
    pub fn nothing_left(&self) -> bool {
        let left = |k: &JobKey| !self.excused(k.job);
        self.damaged || !self.running.values().flatten().any(left)
    }

    /// Was it to be killed, and no process of the attempt was ever let go?
    fn killed_before(&self, key: JobKey) -> bool {
        let started = self.starts.get(&key.job_ref()).is_some_and(|list| list.contains(&key));
        self.killed.contains(&key.job) && !started
    }

    /// Is this job held, does it wait for one that is, or for slots that suspended elements of such
    /// a job keep?
    fn excused_at_end(&self, mbd: &Mbatchd, job: u32) -> bool {
        let tally = |id: u32| mbd.state().job(id).map(|j| j.tally());
        let keeps = |id: &u32| tally(*id).is_some_and(|t| t.run + t.ssusp + t.ususp > 0);
        let waits = tally(job).is_some_and(|t| t.pend > 0 && t.unfinished() == t.pend);
        self.excused(job) || (waits && self.hurt.iter().chain(&self.hurt_ended).any(keeps))
    }

    /// Did damage take a record of this job?
    pub fn known_as_damaged(&self, job: u32) -> bool {
        self.hurt.contains(&job) || self.hurt_ended.contains(&job)
    }

    /// Is this job held, or may it wait for one that is?
    pub(super) fn excused(&self, job: u32) -> bool {
        let mut jobs = vec![job];
        let mut seen = BTreeSet::new();
        while let Some(job) = jobs.pop() {
            let requeued = self.hurt_ended.contains(&job) && self.requeued.contains(&job);
            if self.hurt.contains(&job) || requeued || self.behind_held.contains(&job) {
                return true;
            }
            if seen.insert(job) {
                jobs.extend(self.waits_for.get(&job).into_iter().flatten());
            }
        }
        false
    }

    /// Are all acknowledged jobs over, as mbatchd sees it?
    pub fn all_over(&self, mbd: &Mbatchd) -> bool {
        self.acked.values().all(|id| match mbd.state().job(*id) {
            _ if self.excused_at_end(mbd, *id) => true,
            Some(j) => j.tally().unfinished() == 0 && j.tally().total > 0,
            None => self.cleans || self.damaged,
        })
    }

    /// The final look; returns how many ends are unknown.
    pub fn finish(&mut self, mbd: &Mbatchd) -> usize {
        let mut unknown = 0;
        self.counted(mbd);
        self.reserved(mbd);
        let jobs = self.acked.values().copied();
        self.behind_held = jobs.filter(|id| self.excused_at_end(mbd, *id)).collect();
        for (request, id) in self.acked.clone() {
            if self.excused(id) {
                continue;
            }
            let Some(job) = mbd.state().job(id) else {
                if !self.cleans && !self.damaged {
                    self.fail(format!("acknowledged job <{id}> ({request}) is lost"));
                }
                continue;
            };
            if job.tally().total != self.sizes.get(&id).copied().unwrap_or(1) {
                self.fail(format!("job <{id}> has {} elements", job.tally().total));
            }
            for idx in job.indices() {
                let at = JobRef { job: id, idx };
                let Some(ElementView::Own(e)) = job.view(idx) else {
                    self.fail(format!("job <{at}> never finished"));
                    continue;
                };
                let ElemState::End(end) = &e.state else {
                    self.fail(format!("job <{at}> never finished: {:?}", e.state));
                    continue;
                };
                let Some(run) = &end.run else {
                    if self.damaged || self.killed.contains(&id) || self.given_up.contains(&at) {
                        continue;
                    }
                    self.fail(format!("job <{at}> ended without running"));
                    continue;
                };
                let after = end.exit_info == term::CHKPNT;
                if after && !self.checkpoints.of_attempt(run.key) {
                    self.fail(format!("{} ended for a checkpoint, and none succeeded", run.key));
                }
                let lost = end.unknown && end.exit_info == term::HOST_RESTART;
                if lost && self.rerunnable.contains(&id) && !self.killed.contains(&id) {
                    self.fail(format!("job <{at}> is rerunnable and ended with its host"));
                }
                match (end.status, self.ends.get(&run.key)) {
                    (None, _) => unknown += 1,
                    (Some(s), Some(real)) if s == *real => {}
                    (Some(_), None) if self.killed_before(run.key) => {}
                    (Some(s), real) => self.fail(format!(
                        "{} is said to have ended with {s}, it ended with {real:?}",
                        run.key
                    )),
                }
            }
        }
        unknown
    }

    /// lsb.acct has the end of each element of each acknowledged job once, as it was.
    pub fn accounted(&mut self, acct: &[u8]) {
        let mut seen: HashMap<JobRef, Vec<Finish>> = HashMap::new();
        for line in acct.split_inclusive(|b| *b == b'\n') {
            match read_finish(line) {
                Ok(f) => {
                    let (at, attempt) = (f.at, f.attempt);
                    let before = seen.entry(at).or_default();
                    // one more for each time that it was requeued after its end
                    let again = self.requeued.contains(&at.job)
                        && before.iter().all(|b| b.attempt != attempt || attempt == 0);
                    let twice = !before.is_empty() && !again;
                    before.push(f);
                    if twice && !self.excused(at.job) {
                        let ends = before.iter().map(|f| (f.attempt, f.event_time, f.start_time));
                        let ends: Vec<_> = ends.collect();
                        self.fail(format!("job <{at}> is in lsb.acct twice: {ends:?}"));
                    }
                }
                // another kind of record, or what a loss of power tore
                Err(_) if line.contains(&0) || is_other_record(line) => {}
                Err(e) => self.fail(format!("lsb.acct has a line that cannot be read: {e}")),
            }
        }
        for (job, size) in self.sizes.clone() {
            let elements = if size == 1 { 0..=0 } else { 1..=size };
            for idx in elements {
                let at = JobRef { job, idx };
                let ends = seen.remove(&at).unwrap_or_default();
                if self.excused(job) {
                    continue;
                }
                if ends.is_empty() {
                    self.fail(format!("job <{at}> is not in lsb.acct"));
                }
                ends.iter().for_each(|f| self.accounted_end(at, f));
            }
        }
        if let Some(at) = seen.keys().next() {
            self.fail(format!("lsb.acct has job <{at}>, which nobody was told of"));
        }
    }

    /// mbatchd writes a record to lsb.acct. An end without an attempt is that of an element that
    /// was killed while it was pending, though it may have run and been requeued before.
    pub fn accounts(&mut self, f: &Finish) {
        if f.attempt == 0
            && !self.damaged
            && let Some(key) = self.believed_alive(f.at)
        {
            self.fail(format!("job <{}> ends without an attempt while {key} runs", f.at));
        }
    }

    /// Checks an end in lsb.acct against the end that was seen.
    fn accounted_end(&mut self, at: JobRef, f: &Finish) {
        let given_up = self.given_up.contains(&at);
        if f.attempt == 0 && !self.damaged && !self.killed.contains(&at.job) && !given_up {
            self.fail(format!("job <{at}> ended without an attempt, and nobody killed it"));
        }
        let key = JobKey { job: at.job, idx: at.idx, attempt: f.attempt };
        let may = self.projects.get(&at);
        if !self.damaged && may.is_some_and(|may| !may.contains(&f.spec.project)) {
            self.fail(format!("job <{at}> is of project {}: {may:?}", f.spec.project));
        }
        if self.killed_before(key) || given_up && f.attempt == 0 {
            return;
        }
        if !f.unknown_end && self.ends.get(&key) != Some(&f.exit_status) {
            self.fail(format!("job <{at}> is not in lsb.acct as it ended"));
        }
    }

    /// The jobs that have not finished, for the words of a failure.
    pub fn unfinished(&self, mbd: &Mbatchd) -> String {
        let mut text = String::new();
        for id in self.acked.values() {
            let Some(job) = mbd.state().job(*id) else {
                if !self.cleans {
                    text.push_str(&format!(" <{id}> lost;"));
                }
                continue;
            };
            if job.tally().unfinished() > 0 {
                let states: Vec<String> = job
                    .indices()
                    .iter()
                    .filter_map(|i| job.elem(*i))
                    .filter(|e| !matches!(e.state, ElemState::End(_)))
                    .map(|e| format!("{:?}", e.state))
                    .take(2)
                    .collect();
                let held = if job.damaged { " held after damage" } else { "" };
                text.push_str(&format!(" <{id}>{held} {:?} {states:?};", job.tally()));
                if text.len() > 4000 {
                    text.push_str(" ...");
                    break;
                }
            }
        }
        text
    }
}

/// Is a line of lsb.acct another record than the end of a job?
fn is_other_record(line: &[u8]) -> bool {
    [&b"\"JOB_RESIZE\" "[..], b"\"EVENT_ADRSV_FINISH\" "].iter().any(|of| line.starts_with(of))
}

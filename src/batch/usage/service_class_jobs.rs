//! The jobs of each service class: how many there are in which state, and, where the class has
//! goals that are numbers of jobs, how long they are expected to run. Counted job by job as these
//! change, so that neither a listing nor a goal walks through the jobs.
//!
//! Elements of one array that were put into classes of their own count with the class of the array;
//! their slots count with their own class.
//!
//! Invariant: the counters of a class are the sums over its jobs, and `running` holds its started
//! elements.

use crate::batch::site::Site;
use crate::batch::site::limits::expected_run_time;
use crate::batch::site::service_classes::ServiceClassId;
use crate::batch::state::started_elements::Slots;
use crate::batch::state::{Elem, ElemState, Job, State};
use crate::model::JobRef;
use crate::model::idmap::IdMap;
use std::collections::{BTreeMap, BTreeSet};

/// Minutes over which the jobs that finish are counted.
const FINISHED_MINUTES: i64 = 60;
/// Run times that are averaged: from here on the older ones weigh half.
const MOST_OBSERVED: u64 = 1_000;

/// The jobs of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassTally {
    /// All, pending, running, suspended by the system, suspended by users, finished.
    pub jobs: [u64; 6],
    pub slots: Slots,
    /// The pending jobs whose run time is expected, and the sum of these times, seconds.
    pub expected: u64,
    pub expected_secs: u64,
}

impl ClassTally {
    fn of(job: &Job, part: u32) -> ClassTally {
        let pending = u64::from(job.pending(part));
        let secs = expected_run_time(job.spec_of(part)).filter(|_| pending > 0);
        let mut jobs = [0; 6];
        if part == 0 {
            let t = &job.tally();
            let all = [t.total - t.cleaned, t.pend + t.psusp, t.run, t.ssusp, t.ususp];
            jobs[..5].copy_from_slice(&all.map(u64::from));
            jobs[5] = u64::from(t.done + t.exit);
        }
        ClassTally {
            jobs,
            slots: job.slots_of(part),
            expected: secs.map_or(0, |_| pending),
            expected_secs: secs.unwrap_or(0).saturating_mul(pending),
        }
    }

    pub fn pending(&self) -> u64 {
        self.jobs[1]
    }

    fn change(&mut self, by: &ClassTally, add: bool) {
        let step = |n: &mut u64, by: u64| {
            *n = if add { n.saturating_add(by) } else { n.saturating_sub(by) };
        };
        self.jobs.iter_mut().zip(by.jobs).for_each(|(n, by)| step(n, by));
        self.slots = match add {
            true => Slots::sum([&self.slots, &by.slots]),
            false => self.slots.less(&by.slots),
        };
        step(&mut self.expected, by.expected);
        step(&mut self.expected_secs, by.expected_secs);
    }
}

/// A started element of a class with goals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Started {
    class: ServiceClassId,
    /// When it began, seconds since the epoch; later by the time that it was suspended for.
    began: i64,
    /// When it is expected to end; `None`: nobody knows.
    ends: Option<i64>,
}

/// The started elements of a class, and the run times of those that have ended.
#[derive(Debug, Default)]
struct RunTimes {
    /// Elements that are expected to end, soonest first, without those that should have ended.
    ends: BTreeSet<(i64, JobRef)>,
    /// The sum of these times.
    end_sum: i128,
    /// Elements of which nobody knows when they end, oldest first.
    open: BTreeSet<(i64, JobRef)>,
    /// The jobs that have ended and the seconds that they ran, older ones with less weight.
    ended: u64,
    ended_secs: u64,
    /// Jobs that ended in each minute of the last hour, by the minute since the epoch.
    finished: BTreeMap<i64, u64>,
}

impl RunTimes {
    fn put(&mut self, at: JobRef, of: &Started) {
        match of.ends {
            None => drop(self.open.insert((of.began, at))),
            Some(end) => {
                if self.ends.insert((end, at)) {
                    self.end_sum += i128::from(end);
                }
            }
        }
    }

    fn take(&mut self, at: JobRef, of: &Started) {
        match of.ends {
            None => drop(self.open.remove(&(of.began, at))),
            // not there where it should have ended before
            Some(end) => {
                if self.ends.remove(&(end, at)) {
                    self.end_sum -= i128::from(end);
                }
            }
        }
    }

    fn ended(&mut self, at: i64, secs: u64) {
        if self.ended >= MOST_OBSERVED {
            (self.ended, self.ended_secs) = (self.ended / 2, self.ended_secs / 2);
        }
        self.ended += 1;
        self.ended_secs = self.ended_secs.saturating_add(secs);
        let minute = at.div_euclid(60);
        *self.finished.entry(minute).or_default() += 1;
        self.forget_before(minute);
    }

    /// Forgets the minutes that are more than an hour before this one.
    fn forget_before(&mut self, minute: i64) {
        while let Some(first) = self.finished.first_entry()
            && *first.key() <= minute - FINISHED_MINUTES
        {
            first.remove();
        }
    }
}

/// The work of a class with goals, as of an instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassWork {
    /// Seconds that its pending jobs and the rest of its started ones are expected to run.
    pub secs: u64,
    /// Seconds that a job runs, on average; 0: nothing is known of it.
    pub mean: u64,
    /// Jobs that finished in the last hour.
    pub finished: u64,
}

/// The parts of a job that are in a class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct JobParts {
    /// The class of the job as a whole, where that has goals.
    with_goals: Option<ServiceClassId>,
    parts: Vec<(ServiceClassId, ClassTally)>,
}

/// The jobs of all service classes.
#[derive(Debug, Default)]
pub struct ServiceClassJobs {
    classes: Vec<(ClassTally, RunTimes)>,
    /// The jobs with a part in a class.
    jobs: IdMap<u32, JobParts>,
    /// The started elements of classes with goals.
    started: BTreeMap<JobRef, Started>,
}

impl ServiceClassJobs {
    /// Counts all jobs. The run times of those that have ended, and are kept, are taken into
    /// account.
    pub(crate) fn of_all(state: &State, site: &Site) -> ServiceClassJobs {
        let mut all = ServiceClassJobs::default();
        all.classes.resize_with(site.service_classes.len(), Default::default);
        if site.service_classes.is_empty() {
            return all;
        }
        for job in state.each_job() {
            all.follow(state, site, JobRef { job: job.id, idx: 0 });
            let Some(class) = all.jobs.get(&job.id).and_then(|of| of.with_goals) else { continue };
            match job.array() {
                Some(array) => array.touched().for_each(|(_, elem)| all.note_ended(class, elem)),
                None => job.elem(0).into_iter().for_each(|elem| all.note_ended(class, elem)),
            }
        }
        all
    }

    /// The jobs of a class.
    pub fn tally(&self, class: ServiceClassId) -> ClassTally {
        self.classes.get(class.position()).map_or_else(ClassTally::default, |of| of.0)
    }

    /// The class in which a job is counted as a whole, where that has goals.
    pub fn class_with_goals(&self, job: u32) -> Option<ServiceClassId> {
        self.jobs.get(&job)?.with_goals
    }

    /// A job or element has changed; idx 0 of an array: all of its started ones. Is it, or was it,
    /// in a class with goals?
    pub(crate) fn follow(&mut self, state: &State, site: &Site, at: JobRef) -> bool {
        let job = state.job(at.job);
        let now = job.map(|job| of_job(job, site)).unwrap_or_default();
        if now.parts.is_empty() && !self.jobs.contains_key(&at.job) {
            return false;
        }
        let after = now.with_goals;
        let before = match now.parts.is_empty() {
            true => self.jobs.remove(&at.job),
            false => self.jobs.insert(at.job, now.clone()),
        };
        let before = before.unwrap_or_default();
        let was = before.with_goals;
        for (of_job, add) in [(before, false), (now, true)] {
            for (class, tally) in &of_job.parts {
                if let Some(of) = self.classes.get_mut(class.position()) {
                    of.0.change(tally, add);
                }
            }
        }
        let concerns = was.is_some() || after.is_some();
        if concerns {
            self.follow_started(job, at, after);
        }
        concerns
    }

    /// Keeps which elements of a job are started, and learns how long those ran that have ended.
    fn follow_started(&mut self, job: Option<&Job>, at: JobRef, class: Option<ServiceClassId>) {
        let whole = at.idx == 0 || job.is_none();
        let known = self.started.range(JobRef::all_of(at.job)).map(|(known, _)| *known);
        let mut touched: Vec<JobRef> =
            if whole { known.collect() } else { [at].into_iter().collect() };
        if let Some(array) = job.and_then(|job| job.array()).filter(|_| whole) {
            touched.extend(array.started().map(|idx| JobRef { job: at.job, idx }));
        } else if whole {
            touched.push(at);
        }
        touched.sort_unstable();
        touched.dedup();
        for at in touched {
            let elem = job.and_then(|job| job.elem(at.idx));
            let now = class
                .zip(job.zip(elem))
                .and_then(|(class, (job, elem))| started_of(class, job, at.idx, elem));
            let before = match now {
                Some(now) => self.started.insert(at, now),
                None => self.started.remove(&at),
            };
            if before == now {
                continue;
            }
            if let Some(before) = before
                && let Some(of) = self.classes.get_mut(before.class.position())
            {
                of.1.take(at, &before);
                if let Some(elem) = elem.filter(|_| now.is_none()) {
                    self.note_ended(before.class, elem);
                }
            }
            if let Some(now) = now
                && let Some(of) = self.classes.get_mut(now.class.position())
            {
                of.1.put(at, &now);
            }
        }
    }

    /// Takes the run time of an element that has ended into account.
    fn note_ended(&mut self, class: ServiceClassId, elem: &Elem) {
        let ElemState::End(end) = &elem.state else { return };
        let Some(of) = self.classes.get_mut(class.position()).filter(|_| end.run.is_some()) else {
            return;
        };
        of.1.ended(end.end_time, u64::try_from(elem.ran(end.end_time)).unwrap_or(0));
    }

    /// The work of a class with goals.
    pub fn work(&mut self, class: ServiceClassId, now: i64) -> ClassWork {
        let Some((tally, run)) = self.classes.get_mut(class.position()) else {
            return ClassWork::default();
        };
        while let Some(&(end, at)) = run.ends.first().filter(|first| first.0 <= now) {
            run.ends.remove(&(end, at));
            run.end_sum -= i128::from(end);
        }
        run.forget_before(now.div_euclid(60));
        let left = run.end_sum - i128::from(now) * run.ends.len() as i128;
        let left = u64::try_from(left).unwrap_or(0);
        // of jobs without an estimate: what others took, or the oldest one has taken so far
        let oldest = run.open.first().map_or(0, |of| u64::try_from(now - of.0).unwrap_or(0));
        let guess = run.ended_secs.checked_div(run.ended).unwrap_or(oldest);
        let unknown = tally.pending().saturating_sub(tally.expected);
        // half of it is still ahead of those that run
        let open = guess.saturating_mul(run.open.len() as u64).div_ceil(2);
        let pending = tally.expected_secs.saturating_add(unknown.saturating_mul(guess));
        let mean = match tally.pending() {
            0 => guess,
            n => pending.div_ceil(n),
        };
        ClassWork {
            secs: pending.saturating_add(left).saturating_add(open),
            mean,
            finished: run.finished.values().sum(),
        }
    }

    /// Is each counter what the jobs are? Looks at every job.
    pub fn audit(&self, state: &State, site: &Site) -> Result<(), String> {
        let counted = ServiceClassJobs::of_all(state, site);
        if counted.started != self.started {
            return Err(format!(
                "service classes: {:?} is not {:?}",
                self.started, counted.started
            ));
        }
        for (id, class) in site.service_classes.iter() {
            let (kept, is) = (self.tally(id), counted.tally(id));
            if kept != is {
                let name = &class.name;
                return Err(format!("service class {name}: counted {kept:?}, its jobs are {is:?}"));
            }
        }
        Ok(())
    }
}

fn of_job(job: &Job, site: &Site) -> JobParts {
    let classes = &site.service_classes;
    let mut all = JobParts::default();
    if classes.is_empty() {
        return all;
    }
    for part in 0..=job.parts().len() as u32 {
        let Some(class) = classes.id(&job.spec_of(part).further.service_class) else { continue };
        if part == 0 && !classes.goals(class).is_empty() {
            all.with_goals = Some(class);
        }
        all.parts.push((class, ClassTally::of(job, part)));
    }
    all
}

fn started_of(class: ServiceClassId, job: &Job, idx: u32, elem: &Elem) -> Option<Started> {
    let ElemState::Run(run) = &elem.state else { return None };
    let began = run.start_time.saturating_add(run.susp_total);
    let secs = expected_run_time(job.spec_at(idx)).and_then(|secs| i64::try_from(secs).ok());
    Some(Started { class, began, ends: secs.map(|secs| began.saturating_add(secs)) })
}

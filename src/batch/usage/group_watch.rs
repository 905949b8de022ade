//! The facts that conditions are about, and conditions on all jobs of a name: what is asked of a
//! group is counted once for all conditions that share it, job by job as these change, so that
//! neither the number of the jobs nor that of the conditions is gone through for a change. Soft
//! state.

use crate::batch::state::{Elem, ElemState, ElementView, State};
use crate::batch::usage::job_group_counts::JobGroupCounts;
use crate::batch::usage::job_group_watch::counts_of;
use crate::lang::depend::{
    DepCounts, DepFacts, DepState, Func, Group, JobLookup, PostState, Resolved, Truth, of_job,
};
use crate::model::JobRef;
use crate::model::job_state::JobState;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Jobs of a name that are counted, or given up, in one unit.
const UNIT: usize = 1024;

#[derive(Debug, Default)]
pub struct GroupWatch {
    groups: BTreeMap<u32, Watched>,
    /// The groups that a job is in (job, group), and its place there.
    of_job: BTreeMap<(u32, u32), u32>,
    /// Groups whose jobs are not all counted yet.
    begun: BTreeSet<u32>,
    /// Groups that no condition names any more, and the number of their jobs that are still in
    /// `of_job`.
    leaving: BTreeMap<u32, (Rc<Group>, usize)>,
}

#[derive(Debug)]
struct Watched {
    group: Rc<Group>,
    /// The number of jobs in `of_job`, whose changes are noticed.
    noticed: usize,
    asked: Vec<WatchedFunction>,
    /// Jobs whose condition is about it.
    waiters: BTreeSet<u32>,
}

/// One function over the jobs of a group.
#[derive(Debug)]
struct WatchedFunction {
    func: Func,
    /// The truth for each job that was counted; none of them is beyond the noticed ones.
    truths: Vec<Truth>,
    /// Jobs that are not as it says.
    not: u32,
    /// Jobs of `not` for which the condition can never hold.
    never: u32,
    /// Jobs of which it may still change.
    open: u32,
}

impl WatchedFunction {
    fn new(func: &Func) -> WatchedFunction {
        WatchedFunction { func: func.clone(), truths: Vec::new(), not: 0, never: 0, open: 0 }
    }

    fn count(&mut self, t: Truth, add: bool) {
        let step = |n: &mut u32, on: bool| {
            if on {
                *n = if add { *n + 1 } else { *n - 1 };
            }
        };
        step(&mut self.not, !t.holds);
        step(&mut self.never, !t.holds && t.fixed);
        step(&mut self.open, !t.fixed);
    }

    /// The truth for a group all of whose jobs were counted.
    fn truth(&self) -> Truth {
        match (self.truths.is_empty(), self.never > 0, self.not > 0) {
            (true, ..) | (_, true, _) => Truth { holds: false, fixed: true },
            (_, _, true) => Truth { holds: false, fixed: false },
            _ => Truth { holds: true, fixed: self.open == 0 },
        }
    }
}

impl Watched {
    fn known(&self) -> bool {
        let all = self.group.members.len();
        self.noticed == all && self.asked.iter().all(|asked| asked.truths.len() == all)
    }
}

impl GroupWatch {
    /// Does no job wait for a group?
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty() && self.leaving.is_empty()
    }

    /// Is a job in a group that an unfinished job waits for?
    pub fn is_named(&self, job: u32) -> bool {
        let member = |number| {
            let group = self.groups.get(number).map(|watched| &watched.group);
            group.is_some_and(|group| group.members.binary_search(&job).is_ok())
        };
        self.of_job.range((job, 0)..=(job, u32::MAX)).next().is_some()
            || self.begun.iter().any(member)
    }

    /// The jobs that wait for a group in which this job is.
    pub(crate) fn waiters_of(&self, job: u32) -> impl Iterator<Item = u32> + '_ {
        let of = self.of_job.range((job, 0)..=(job, u32::MAX)).map(|(of, _)| of.1);
        of.filter_map(|number| self.groups.get(&number)).flat_map(|w| w.waiters.iter().copied())
    }

    fn truth(&self, group: &Group, func: &Func) -> Option<Truth> {
        let watched = self.groups.get(&group.number)?;
        let asked = watched.asked.iter().find(|a| a.func == *func)?;
        (asked.truths.len() == watched.group.members.len()).then(|| asked.truth())
    }

    /// Is there something left to look at?
    pub fn left(&self) -> bool {
        !self.begun.is_empty() || !self.leaving.is_empty()
    }

    /// All jobs that the names in a condition stand for were counted.
    pub fn known(&self, condition: &Resolved) -> bool {
        let open = |group: &Group, func: &Func| {
            self.begun.contains(&group.number) && self.truth(group, func).is_none()
        };
        self.begun.is_empty() || !condition.groups().iter().any(|(func, group)| open(group, func))
    }

    /// Forgets some more jobs of a group that no condition names any more.
    fn leave_on(&mut self, number: u32) {
        let Some((group, left)) = self.leaving.get_mut(&number) else { return };
        let from = left.saturating_sub(UNIT);
        for job in &group.members[from..*left] {
            self.of_job.remove(&(*job, number));
        }
        *left = from;
        if from == 0 {
            self.leaving.remove(&number);
        }
    }
}

fn dep_state(state: JobState, exit: Option<i32>) -> DepState {
    match state {
        JobState::Pend => DepState::Pend,
        JobState::Psusp => DepState::Held,
        // where its host cannot be asked, it has not ended
        JobState::Run | JobState::Wait | JobState::Unkwn | JobState::Zombi => DepState::Run,
        JobState::Ssusp | JobState::Ususp => DepState::Susp,
        JobState::Done => DepState::Done,
        JobState::Exit => DepState::Exit(exit),
    }
}

fn facts_of(e: &Elem) -> DepFacts {
    let (exit, started, post) = match &e.state {
        ElemState::End(end) => {
            let code = crate::model::job::exit_code(end.status);
            (code, end.run.is_some(), end.post_state())
        }
        ElemState::Run(_) => (None, true, PostState::None),
        ElemState::Pend(_) => (None, false, PostState::None),
    };
    DepFacts { state: dep_state(e.stat(), exit), started, post }
}

/// The facts that conditions are about: the jobs, and the counts of jobs that share a name.
#[derive(Clone, Copy)]
pub struct JobFacts<'a> {
    pub state: &'a State,
    pub groups: &'a GroupWatch,
    /// The counters of job groups; `None`: the condition is of no job group.
    pub counts: Option<&'a JobGroupCounts>,
}

impl JobLookup for JobFacts<'_> {
    fn facts(&self, id: u64, index: Option<u32>) -> DepFacts {
        let Some(job) = self.state.job(id as u32) else { return DepFacts::GONE };
        match job.view(index.unwrap_or(0)) {
            None => DepFacts::GONE,
            Some(ElementView::Own(e)) => facts_of(e),
            Some(view @ ElementView::Untouched(_)) => {
                let state = dep_state(view.stat(), None);
                DepFacts { state, started: false, post: PostState::None }
            }
        }
    }

    fn counts(&self, id: u64) -> DepCounts {
        let Some(job) = self.state.job(id as u32) else { return DepCounts::one(&DepFacts::GONE) };
        let t = &job.tally();
        DepCounts {
            total: t.total,
            pend: t.pend,
            held: t.psusp,
            run: t.run,
            susp: t.ssusp + t.ususp,
            done: t.done,
            exit: t.exit,
            exit_unstarted: t.exit_unstarted,
            gone: t.cleaned,
            post_done: t.post_done,
            post_err: t.post_err,
        }
    }

    fn exit_codes(&self, id: u64, f: &mut dyn FnMut(Option<i32>, u32)) {
        let Some(job) = self.state.job(id as u32) else { return };
        if let Some(array) = job.array() {
            array.exits().for_each(|(code, n)| f(code, n));
        } else if let Some(DepState::Exit(code)) = job.elem(0).map(|e| facts_of(e).state) {
            f(code, 1);
        }
    }

    fn external(&self, id: u64, index: Option<u32>) -> Option<String> {
        let job = self.state.job(id as u32)?;
        let messages = self.state.messages();
        match index.filter(|idx| *idx > 0) {
            Some(idx) => {
                messages.get(JobRef { job: job.id, idx }, 0).map(|message| message.text.clone())
            }
            None => messages.of_all(job.id, 0, job.tally().total).map(str::to_string),
        }
    }

    fn group(&self, group: &Group, func: &Func) -> Truth {
        self.groups.truth_of(self.state, group, func)
    }

    fn job_group(&self, path: &str) -> Option<DepCounts> {
        counts_of(self.state, self.counts?, path)
    }

    fn jobs_of_group(&self, path: &str, each: &mut dyn FnMut(u64) -> bool) -> bool {
        let all = self.counts.map_or(Vec::new(), |counts| counts.jobs_within(path));
        all.into_iter().all(|id| each(u64::from(id)))
    }
}

impl GroupWatch {
    /// The state of a job of a group; a job that has left memory has none.
    fn member_truth(&self, state: &State, func: &Func, job: u32) -> Truth {
        match state.has_job(job) {
            true => of_job(func, u64::from(job), &JobFacts { state, groups: self, counts: None }),
            false => Truth { holds: true, fixed: true },
        }
    }

    pub(crate) fn truth_of(&self, state: &State, group: &Group, func: &Func) -> Truth {
        self.truth(group, func).unwrap_or_else(|| {
            let mut asked = WatchedFunction::new(func);
            for job in &*group.members {
                asked.truths.push(self.member_truth(state, func, *job));
                asked.count(asked.truths[asked.truths.len() - 1], true);
            }
            asked.truth()
        })
    }

    /// Begins to watch the groups of a condition: small ones at once, others unit by unit.
    pub(crate) fn watch(&mut self, state: &State, id: u32, condition: &Resolved) {
        for (func, group) in condition.groups() {
            let number = group.number;
            let watch = &mut *self;
            // those of its jobs that are still there stay
            watch.leaving.remove(&number);
            let (noticed, asked, waiters) = Default::default();
            let new = Watched { group, noticed, asked, waiters };
            let watched = watch.groups.entry(number).or_insert(new);
            watched.waiters.insert(id);
            if watched.asked.iter().any(|asked| asked.func == func) {
                continue;
            }
            watched.asked.push(WatchedFunction::new(&func));
            watch.begun.insert(number);
            self.look_on(state, number);
        }
    }

    /// Counts some more jobs of groups; returns the jobs whose conditions can be evaluated now.
    fn look_on(&mut self, state: &State, number: u32) -> bool {
        let watch = &mut *self;
        let Some(mut watched) = watch.groups.remove(&number) else {
            return watch.begun.remove(&number);
        };
        let all = &watched.group.members;
        let to = (watched.noticed + UNIT).min(all.len());
        for place in watched.noticed..to {
            watch.of_job.insert((all[place], number), place as u32);
        }
        watched.noticed = to;
        let mut left = UNIT;
        for asked in &mut watched.asked {
            let from = asked.truths.len();
            for job in &all[from..(from + left).min(to)] {
                let truth = self.member_truth(state, &asked.func, *job);
                asked.truths.push(truth);
                asked.count(truth, true);
                left -= 1;
            }
        }
        let known = watched.known();
        self.groups.insert(number, watched);
        known && self.begun.remove(&number)
    }

    /// Counts some more jobs of groups; returns the jobs whose conditions can be evaluated now.
    pub(crate) fn go_on(&mut self, state: &State) -> Vec<u32> {
        if let Some(number) = self.begun.first().copied()
            && self.look_on(state, number)
        {
            let watched = self.groups.get(&number);
            return watched.map_or(Vec::new(), |w| w.waiters.iter().copied().collect());
        }
        let leaving = self.leaving.first_key_value().map(|first| *first.0);
        leaving.into_iter().for_each(|number| self.leave_on(number));
        Vec::new()
    }

    pub(crate) fn unwatch(&mut self, id: u32, condition: &Resolved) {
        let watch = &mut *self;
        for (_, group) in condition.groups() {
            let number = group.number;
            let Some(watched) = watch.groups.get_mut(&number) else { continue };
            watched.waiters.remove(&id);
            if watched.waiters.is_empty() {
                watch.groups.remove(&number);
                watch.begun.remove(&number);
                let all = group.members.len();
                watch.leaving.insert(number, (group, all));
                watch.leave_on(number);
            }
        }
    }

    /// A job has changed: the jobs whose conditions are about a group of which that changes what
    /// holds.
    pub(crate) fn job_changed(&mut self, state: &State, job: u32) -> BTreeSet<u32> {
        let places = self.of_job.range((job, 0)..=(job, u32::MAX));
        let places: Vec<(u32, u32)> = places.map(|(of, place)| (of.1, *place)).collect();
        let mut look = BTreeSet::new();
        for (number, place) in places {
            let Some(mut watched) = self.groups.remove(&number) else { continue };
            let mut other = false;
            for asked in &mut watched.asked {
                // one that is yet to be looked at
                if place as usize >= asked.truths.len() {
                    continue;
                }
                let (before, now) = (asked.truth(), self.member_truth(state, &asked.func, job));
                let was = std::mem::replace(&mut asked.truths[place as usize], now);
                asked.count(was, false);
                asked.count(now, true);
                other |= asked.truth() != before;
            }
            if other {
                look.extend(&watched.waiters);
            }
            self.groups.insert(number, watched);
        }
        look
    }

    /// Conditions and jobs that are watched by name.
    #[cfg(test)]
    pub fn watched_by_name(&self) -> (usize, usize) {
        let asked = self.groups.values().map(|w| w.asked.len());
        let jobs: BTreeSet<u32> = self.of_job.keys().map(|of| of.0).collect();
        (asked.sum(), jobs.len())
    }
}

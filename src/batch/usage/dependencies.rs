//! Dependency conditions of pending jobs: who waits for whom, and what a condition says now.
//! Conditions were bound to job IDs at submission; here they are only evaluated, and only when a
//! job they name has changed; where elements wait for elements of their own index, only for the
//! elements that changed.

use crate::batch::state::{Job, State};
use crate::batch::usage::group_watch::{GroupWatch, JobFacts};
use crate::batch::usage::job_group_counts::JobGroupCounts;
use crate::batch::usage::job_group_watch::JobGroupWatch;
use crate::lang::depend::{DepValue, Resolved};
use crate::model::JobRef;
use crate::model::idmap::IdMap;
use crate::model::job_state::JobState;
use std::collections::{BTreeMap, BTreeSet};

/// Soft state about conditions.
#[derive(Debug, Default)]
pub struct Deps {
    /// Named job -> jobs whose condition names it.
    waiters: IdMap<u32, BTreeSet<u32>>,
    /// The conditions on all jobs of a name, by the group of these jobs.
    groups: GroupWatch,
    /// The conditions on job groups.
    job_groups: JobGroupWatch,
    /// Value of each pending job's condition; a job without one is absent and counts as true.
    values: IdMap<u32, DepValue>,
    /// The elements, for conditions with `[*]`.
    elements: IdMap<u32, Each>,
    /// Jobs and elements that changed since the conditions were last looked at; idx 0 of an
    /// array: all of it.
    dirty: BTreeSet<JobRef>,
    /// Jobs whose condition is to be looked at, with the elements that changed of those it names.
    todo: BTreeMap<u32, BTreeSet<u32>>,
    /// The change of jobs that very many wait for, and the next job to look at it.
    spread: BTreeMap<u32, Spread>,
    /// Arrays whose elements are looked at unit by unit, with the next place in their lists.
    sweeps: BTreeMap<u32, u32>,
    orphans: Orphans,
    pace: Pace,
    /// Elements whose condition was evaluated.
    #[cfg(test)]
    looked: usize,
    /// Conditions of whole jobs that were evaluated.
    #[cfg(test)]
    pub(crate) evaluated: usize,
}

/// Conditions looked at at once where no parameter says how many.
pub(crate) const SETTLED_AT_ONCE: u32 = 64;

/// More that wait for one job than this look at its change unit by unit.
const MANY_WAITERS: usize = 1000;

/// A change of a job that very many wait for.
#[derive(Debug, Default)]
struct Spread {
    /// The changes of a job that conditions may be about.
    elements: BTreeSet<u32>,
    /// The first of those that have not looked at it; 0: nobody has.
    next: u32,
    /// Jobs that changed since, for another round.
    again: BTreeSet<u32>,
}

/// Elements of an array that are looked at at once; the others unit by unit.
const SWEPT_AT_ONCE: u32 = 1024;

/// Since when elements wait for what can never be, microseconds of the monotonic clock; where
/// ORPHAN_JOB_TERM_GRACE_PERIOD asks for that. idx 0 of an array: all of it.
#[derive(Debug, Default)]
struct Orphans {
    since: BTreeMap<JobRef, u64>,
    by_time: BTreeSet<(u64, JobRef)>,
}

impl Orphans {
    /// An element that is known already goes on waiting.
    fn insert(&mut self, at: JobRef, now: u64) {
        let since = *self.since.entry(at).or_insert(now);
        self.by_time.insert((since, at));
    }

    fn remove(&mut self, at: JobRef) {
        if let Some(since) = self.since.remove(&at) {
            self.by_time.remove(&(since, at));
        }
    }
}

/// Conditions looked at in the first turn for which there is a time.
const FIRST_SHARE: u32 = 1000;

/// How many conditions a turn looks at where it has a time for them. The machine does not see time
/// pass within a turn; it sees how long one took when the next begins.
#[derive(Debug)]
struct Pace {
    /// In one turn.
    share: u32,
    /// When the turn began, and how many it has looked at.
    began: u64,
    looked: u32,
    /// The turn used up its share, and conditions were left.
    full: bool,
}

impl Default for Pace {
    fn default() -> Self {
        Pace { share: FIRST_SHARE, began: 0, looked: 0, full: false }
    }
}

impl Pace {
    /// How many are looked at now, with `most` microseconds for all of a turn.
    fn left(&mut self, now: u64, most: u64) -> u32 {
        if now != self.began {
            let took = now.saturating_sub(self.began);
            match self.full {
                true if took > most => self.share = (self.share / 2).max(1),
                true if took <= most / 2 => self.share = self.share.saturating_mul(2),
                _ => {}
            }
            (self.began, self.looked, self.full) = (now, 0, false);
        }
        self.share.saturating_sub(self.looked)
    }
}

/// An array whose elements wait for elements of their own index.
#[derive(Debug, Default)]
struct Each {
    /// Pending elements whose condition holds.
    ready: BTreeSet<u32>,
    /// Pending elements whose condition can never hold.
    never: BTreeSet<u32>,
    /// Jobs that have come to these or have left them, and are to be looked at as orphans.
    turned: BTreeSet<u32>,
    /// [`Resolved::shared`] when they were last looked at.
    shared: Vec<u8>,
}

impl Deps {
    /// Is the condition of the job looked at when what it names changes?
    pub fn watched(&self, job: u32) -> bool {
        self.values.contains_key(&job)
    }
    pub fn value(&self, job: u32) -> DepValue {
        self.values.get(&job).copied().unwrap_or(DepValue::True)
    }
    /// The elements whose condition can never hold, where each element has a value of its own.
    pub fn never_elements(&self, job: u32) -> Option<&BTreeSet<u32>> {
        self.elements.get(&job).map(|each| &each.never)
    }
    pub fn ready_elements(&self, job: u32) -> Option<&BTreeSet<u32>> {
        self.elements.get(&job).map(|each| &each.ready)
    }
    /// Keeps the values of an array with `pend` pending elements, `_looked` of them evaluated.
    fn keep(&mut self, job: u32, pend: u32, each: Each, _looked: usize) {
        let value = match (each.ready.is_empty(), each.never.len() < pend as usize) {
            (false, _) => DepValue::True,
            (true, true) => DepValue::False,
            (true, false) => DepValue::Never,
        };
        self.values.insert(job, value);
        self.elements.insert(job, each);
        #[cfg(test)]
        {
            self.looked += _looked;
        }
    }
    /// The elements that are to be looked at as orphans: whether each of them waits by itself
    /// for what can never be. `None`: elements of this job do not wait by themselves.
    pub fn turned(&mut self, job: u32) -> Option<Vec<(u32, bool)>> {
        let each = self.elements.get_mut(&job)?;
        let mut some = Vec::new();
        while some.len() < SWEPT_AT_ONCE as usize
            && let Some(idx) = each.turned.pop_first()
        {
            some.push((idx, each.never.contains(&idx)));
        }
        if !each.turned.is_empty() {
            self.sweeps.entry(job).or_insert(u32::MAX);
        }
        Some(some)
    }
    /// Stops following which elements of a job are orphans.
    pub fn no_orphans(&mut self, job: u32) {
        if let Some(each) = self.elements.get_mut(&job) {
            each.turned.clear();
        }
    }
    /// Whether an element (idx 0 of an array: all of it) is an orphan with some time left.
    pub fn set_orphan(&mut self, at: JobRef, now: u64, on: bool) {
        if on { self.orphans.insert(at, now) } else { self.orphans.remove(at) }
    }
    /// The orphans since that instant or before, at most `most`.
    pub fn orphans_by(&self, since: u64, most: usize) -> Vec<JobRef> {
        let old = self.orphans.by_time.iter().take_while(|(t, _)| *t <= since);
        old.take(most).map(|(_, at)| *at).collect()
    }
    pub fn first_orphan(&self) -> Option<u64> {
        self.orphans.by_time.first().map(|(t, _)| *t)
    }
    /// Can the condition of an element never hold?
    pub fn never(&self, at: JobRef) -> bool {
        match self.elements.get(&at.job) {
            Some(each) => each.never.contains(&at.idx),
            None => self.value(at.job) == DepValue::Never,
        }
    }
    /// Forgets everything but the orphans, which go on waiting.
    pub fn anew(self) -> Deps {
        Deps { orphans: self.orphans, ..Deps::default() }
    }
    /// Are there arrays left whose elements were not all looked at?
    pub fn sweeps_left(&self) -> bool {
        !self.sweeps.is_empty()
    }
    /// Are there conditions left that were not looked at?
    pub fn left(&self) -> bool {
        !self.todo.is_empty() || !self.spread.is_empty()
    }
    /// Has some more of those that wait for a job look at its change.
    fn spread_on(&mut self) {
        let Some(mut entry) = self.spread.first_entry() else { return };
        let (changed, spread) = (*entry.key(), entry.get_mut());
        let waiters = self.waiters.get(&changed).into_iter().flat_map(|w| w.range(spread.next..));
        let some: Vec<u32> = waiters.copied().take(SETTLED_AT_ONCE as usize).collect();
        for &id in &some {
            self.todo.entry(id).or_default().extend(&spread.elements);
        }
        match some.last().and_then(|id| id.checked_add(1)) {
            Some(next) => spread.next = next,
            None if spread.again.is_empty() => drop(entry.remove()),
            None => {
                let elements = std::mem::take(&mut spread.again);
                *spread = Spread { elements, ..Spread::default() };
            }
        }
    }
    /// Does an unfinished job still name this one?
    pub fn is_named(&self, job: u32) -> bool {
        self.waiters.get(&job).is_some_and(|w| !w.is_empty()) || self.groups.is_named(job)
    }
    /// The jobs whose conditions name this one, ascending.
    pub(crate) fn waiters_of(&self, job: u32) -> BTreeSet<u32> {
        let mut all = self.waiters.get(&job).cloned().unwrap_or_default();
        all.extend(self.groups.waiters_of(job));
        all
    }
    fn forget(&mut self, job: u32, named: &[u64]) {
        for id in named {
            if let Some(set) = self.waiters.get_mut(&(*id as u32)) {
                set.remove(&job);
                if set.is_empty() {
                    self.waiters.remove(&(*id as u32));
                }
            }
        }
        self.values.remove(&job);
        self.elements.remove(&job);
        self.sweeps.remove(&job);
    }
}

fn look_at_element(facts: &JobFacts, job: &Job, dep: &Resolved, idx: u32, each: &mut Each) {
    each.ready.remove(&idx);
    if each.never.remove(&idx) {
        each.turned.insert(idx);
    }
    if job.view(idx).is_some_and(|v| v.stat() == JobState::Pend) {
        match dep.eval(facts, Some(idx)) {
            DepValue::True => each.ready.insert(idx),
            DepValue::Never => each.turned.insert(idx) | each.never.insert(idx),
            DepValue::False => false,
        };
    }
}

/// The state, and the counters of the job groups in it.
#[derive(Clone, Copy, Debug)]
pub struct Counted<'a> {
    pub state: &'a State,
    pub counts: &'a JobGroupCounts,
}

impl Deps {
    /// The facts that conditions are about, as of now.
    pub(crate) fn facts<'a>(&'a self, all: Counted<'a>) -> JobFacts<'a> {
        JobFacts { state: all.state, groups: &self.groups, counts: Some(all.counts) }
    }

    /// Begins to watch the condition of a new (or recovered) job.
    pub(crate) fn watch(&mut self, all: Counted<'_>, id: u32) {
        let Some(dep) = all.state.job(id).and_then(|j| j.depend.clone()) else { return };
        if all.state.job(id).is_some_and(|j| j.tally().pend + j.tally().psusp == 0) {
            return;
        }
        for named in dep.job_ids() {
            self.waiters.entry(named as u32).or_default().insert(id);
        }
        self.groups.watch(all.state, id, &dep);
        self.job_groups.watch(all.state, all.counts, id, &dep);
        self.evaluate(all, id);
    }

    /// Forgets the condition of a job that is about to get another one.
    pub(crate) fn unwatch(&mut self, state: &State, id: u32) {
        let dep = state.job(id).and_then(|j| j.depend.clone());
        self.forget_condition(id, dep.as_deref());
    }

    fn forget_condition(&mut self, id: u32, dep: Option<&Resolved>) {
        self.forget(id, &dep.map_or(Vec::new(), Resolved::job_ids));
        if let Some(dep) = dep {
            self.groups.unwatch(id, dep);
            self.job_groups.unwatch(id, dep);
        }
    }

    fn evaluate(&mut self, all: Counted<'_>, id: u32) {
        #[cfg(test)]
        {
            self.evaluated += 1;
        }
        let Some(job) = all.state.job(id) else { return };
        let Some(dep) = job.depend.clone() else { return };
        // it waits until all is known
        if !self.groups.known(&dep) {
            self.elements.remove(&id);
            self.values.insert(id, DepValue::False);
            return;
        }
        if !dep.per_element() {
            let value = dep.eval(&self.facts(all), None);
            self.values.insert(id, value);
            return;
        }
        let turned = self.elements.remove(&id).map_or(BTreeSet::new(), |mut each| {
            each.turned.append(&mut each.never);
            each.turned
        });
        let each = Each { shared: dep.shared(&self.facts(all)), turned, ..Each::default() };
        self.sweep(all, id, each, 0);
    }

    /// Looks at elements of an array from this place in its list on.
    fn sweep(&mut self, all: Counted<'_>, id: u32, mut each: Each, from: u32) {
        let Some(job) = all.state.job(id) else { return };
        let Some(dep) = &job.depend else { return };
        let total = job.tally().total;
        let from = from.min(total);
        let to = from.saturating_add(SWEPT_AT_ONCE).min(total);
        for place in from..to {
            let idx = job.array().map_or(0, |array| array.index(place));
            look_at_element(&self.facts(all), job, dep, idx, &mut each);
        }
        let pend = job.tally().pend;
        match to < total {
            true => drop(self.sweeps.insert(id, to)),
            false => drop(self.sweeps.remove(&id)),
        }
        self.keep(id, pend, each, (to - from) as usize);
    }

    /// One element of an array whose elements wait one by one: it changed, or what it waits for.
    fn evaluate_element(&mut self, all: Counted<'_>, id: u32, idx: u32) {
        let Some(mut each) = self.elements.remove(&id) else { return };
        let Some(job) = all.state.job(id) else { return };
        let Some(dep) = &job.depend else { return };
        look_at_element(&self.facts(all), job, dep, idx, &mut each);
        let pend = job.tally().pend;
        self.keep(id, pend, each, 1);
    }

    /// A job changed: at once where its own elements wait one by one, so that what has started
    /// is no longer among the ready; what waits for it is looked at by `Mbatchd::settle`.
    pub(crate) fn touched(&mut self, all: Counted<'_>, at: JobRef) {
        if self.elements.contains_key(&at.job) {
            match at.idx {
                0 => self.evaluate(all, at.job),
                idx => self.evaluate_element(all, at.job, idx),
            }
        }
    }

    /// A job changed that somebody waits for or watches: `Mbatchd::settle` has them look at it.
    pub(crate) fn note_changed(&mut self, at: JobRef) {
        self.dirty.insert(at);
    }

    /// Is a condition to be looked at when a job changes: its own, or one that names it?
    pub(crate) fn concern(&self, job: u32) -> bool {
        self.values.contains_key(&job)
            || self.waiters.contains_key(&job)
            || !self.groups.is_empty()
            || !self.orphans.since.is_empty()
    }

    /// Some elements (0: all) of a job that the condition of `id` names have changed.
    pub(crate) fn named_changed(&mut self, all: Counted<'_>, id: u32, elements: &BTreeSet<u32>) {
        let dep = all.state.job(id).and_then(|j| j.depend.clone());
        let one_by_one = match (&dep, self.elements.get(&id)) {
            (Some(dep), Some(each)) => {
                !elements.contains(&0) && dep.shared(&self.facts(all)) == each.shared
            }
            _ => false,
        };
        if one_by_one {
            elements.iter().for_each(|&idx| self.evaluate_element(all, id, idx));
        } else {
            self.evaluate(all, id);
        }
    }

    /// A job has changed, in these elements (0: all of it): those that wait for it look at it in
    /// their turn.
    pub(crate) fn job_changed(&mut self, state: &State, changed: u32, elements: &[u32]) {
        for id in self.groups.job_changed(state, changed) {
            self.todo.entry(id).or_default().insert(0);
        }
        let Some(waiters) = self.waiters.get(&changed) else { return };
        if waiters.len() > MANY_WAITERS {
            let spread = self.spread.entry(changed).or_default();
            let to = if spread.next == 0 { &mut spread.elements } else { &mut spread.again };
            return to.extend(elements);
        }
        for &id in waiters {
            self.todo.entry(id).or_default().extend(elements);
        }
    }

    /// A job of this group has changed, or come, or gone; or the group was made.
    pub(crate) fn note_job_group(&mut self, path: &str) {
        self.job_groups.note(path);
    }

    /// A job group was deleted, with all below it.
    pub(crate) fn note_deleted_group(&mut self, path: &str) {
        self.job_groups.note_deleted(path);
    }

    /// The next job group that has changed since the conditions were last looked at.
    pub(crate) fn next_changed_group(&mut self) -> Option<Box<str>> {
        self.job_groups.take_changed()
    }

    /// A job group has changed: the conditions to which that makes a difference are looked at.
    pub(crate) fn job_group_changed(&mut self, all: Counted<'_>, path: &str) {
        for id in self.job_groups.look(all.state, all.counts, path) {
            self.todo.entry(id).or_default().insert(0);
        }
    }

    /// Does a condition ask something of this job group?
    pub(crate) fn names_job_group(&self, path: &str) -> bool {
        self.job_groups.concerns(path)
    }

    /// The jobs whose conditions are about this job group, or one above it.
    pub(crate) fn waiters_of_group(&self, path: &str) -> impl Iterator<Item = u32> + '_ {
        self.job_groups.waiters_of(path)
    }

    /// Forgets the condition of a job that waits no longer.
    pub(crate) fn forget_ended(&mut self, state: &State, id: u32) {
        if !self.values.contains_key(&id) {
            return;
        }
        if state.job(id).is_none_or(|j| j.tally().pend + j.tally().psusp == 0) {
            let dep = state.job(id).and_then(|j| j.depend.clone());
            self.forget_condition(id, dep.as_deref());
        }
    }

    /// The next job that changed since the conditions were last looked at, and its elements.
    pub(crate) fn next_changed(&mut self) -> Option<(u32, Vec<u32>)> {
        let first = self.dirty.pop_first()?;
        let mut elements = vec![first.idx];
        while self.dirty.first().is_some_and(|at| at.job == first.job) {
            elements.extend(self.dirty.pop_first().map(|at| at.idx));
        }
        Some((first.job, elements))
    }

    /// The next job whose condition is to be looked at, with what changed of those it names.
    pub(crate) fn next_to_look_at(&mut self) -> Option<(u32, BTreeSet<u32>)> {
        if self.todo.is_empty() {
            self.spread_on();
        }
        let next = self.todo.pop_first()?;
        self.pace.looked = self.pace.looked.saturating_add(1);
        Some(next)
    }

    /// How many conditions are looked at now, with `most` microseconds for all of a turn.
    pub(crate) fn share(&mut self, now: u64, most: u64) -> u32 {
        self.pace.left(now, most)
    }

    /// A turn has looked at its share.
    pub(crate) fn turn_over(&mut self) {
        self.pace.full = self.left();
    }

    /// One unit of looking at the jobs that a name stands for.
    /// Have names to be looked up still?
    pub(crate) fn groups_left(&self) -> bool {
        self.groups.left()
    }

    /// How many elements were looked at.
    #[cfg(test)]
    pub(crate) fn looked(&self) -> usize {
        self.looked
    }

    /// How many names are watched, and by how many jobs.
    #[cfg(test)]
    pub(crate) fn watched_by_name(&self) -> (usize, usize) {
        self.groups.watched_by_name()
    }

    pub(crate) fn groups_unit(&mut self, state: &State) {
        for id in self.groups.go_on(state) {
            self.todo.entry(id).or_default().insert(0);
        }
    }

    /// One unit of looking at the elements of arrays; the job that was looked at.
    pub(crate) fn sweep_unit(&mut self, all: Counted<'_>) -> Option<u32> {
        let (&id, &from) = self.sweeps.first_key_value()?;
        let Some(each) = self.elements.remove(&id) else {
            self.sweeps.remove(&id);
            return None;
        };
        self.sweep(all, id, each, from);
        Some(id)
    }
}

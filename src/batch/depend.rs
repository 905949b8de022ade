//! Dependency conditions of pending jobs: who waits for whom, and what a condition says now.
//! Conditions were bound to job IDs at submission; here they are only evaluated, and only when a
//! job they name has changed.

use super::Mbd;
use super::state::{Body, Elem, ElemState, Job, View};
use crate::lang::depend::{
    DepCounts, DepFacts, DepState, DepValue, JobLookup, NamedJob, PostState, Resolver,
};
use crate::model::job::stat;
use std::collections::{BTreeSet, HashMap};

/// Soft state about conditions.
#[derive(Debug, Default)]
pub struct Deps {
    /// Named job -> jobs whose condition names it.
    waiters: HashMap<u32, BTreeSet<u32>>,
    /// Value of each pending job's condition; a job without one is absent and counts as true.
    values: HashMap<u32, DepValue>,
    /// Elements whose own condition holds, for conditions with `[*]`.
    elements: HashMap<u32, BTreeSet<u32>>,
    /// Jobs that changed since the conditions were last looked at.
    pub dirty: BTreeSet<u32>,
}

impl Deps {
    pub fn value(&self, job: u32) -> DepValue {
        self.values.get(&job).copied().unwrap_or(DepValue::True)
    }
    pub fn ready_elements(&self, job: u32) -> Option<&BTreeSet<u32>> {
        self.elements.get(&job)
    }
    /// Does an unfinished job still name this one?
    pub fn is_named(&self, job: u32) -> bool {
        self.waiters.get(&job).is_some_and(|w| !w.is_empty())
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
    }
}

fn dep_state(stat_bits: u32, exit: Option<i32>) -> DepState {
    match stat_bits {
        stat::PEND => DepState::Pend,
        stat::PSUSP => DepState::Held,
        stat::RUN => DepState::Run,
        stat::SSUSP | stat::USUSP => DepState::Susp,
        stat::DONE => DepState::Done,
        _ => DepState::Exit(exit),
    }
}

fn facts_of(e: &Elem) -> DepFacts {
    let (exit, started) = match &e.state {
        ElemState::End(end) => (super::inventory::exit_code(end.status), end.run.is_some()),
        ElemState::Run(_) => (None, true),
        ElemState::Pend(_) => (None, false),
    };
    DepFacts { state: dep_state(e.stat(), exit), started, post: PostState::None }
}

impl JobLookup for Mbd {
    fn facts(&self, id: u64, index: Option<u32>) -> DepFacts {
        let Some(job) = self.st.job(id as u32) else { return DepFacts::GONE };
        match job.view(index.unwrap_or(0)) {
            None => DepFacts::GONE,
            Some(View::Own(e)) => facts_of(e),
            Some(View::Fresh) => {
                DepFacts { state: DepState::Pend, started: false, post: PostState::None }
            }
        }
    }

    fn counts(&self, id: u64) -> DepCounts {
        let Some(job) = self.st.job(id as u32) else { return DepCounts::one(&DepFacts::GONE) };
        let t = &job.tally;
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
            ..DepCounts::default()
        }
    }

    fn exit_codes(&self, id: u64, f: &mut dyn FnMut(Option<i32>)) {
        let mut each = |e: &Elem| {
            if let DepState::Exit(code) = facts_of(e).state {
                f(code);
            }
        };
        match self.st.job(id as u32).map(|j| &j.body) {
            Some(Body::Single(e)) => each(e),
            Some(Body::Array(a)) => a.own.values().for_each(each),
            None => {}
        }
    }

    fn external(&self, _id: u64, _index: Option<u32>) -> Option<String> {
        None
    }
}

/// Finds the jobs that a submission names.
pub struct Finder<'a> {
    pub mbd: &'a Mbd,
    pub user: &'a str,
}

fn named(job: &Job) -> NamedJob<'_> {
    NamedJob { id: u64::from(job.id), array: job.name.array.as_ref() }
}

impl Resolver for Finder<'_> {
    fn by_id(&self, id: u64) -> Option<NamedJob<'_>> {
        self.mbd.st.job(u32::try_from(id).ok()?).map(named)
    }

    fn by_name(&self, name: &str, prefix: bool) -> Vec<NamedJob<'_>> {
        let Some(user) = self.mbd.st.names.find(self.user) else { return Vec::new() };
        let fits = |j: &&Job| {
            j.user == user
                && match prefix {
                    true => j.name.name.starts_with(name),
                    false => j.name.name == name,
                }
        };
        let mut found: Vec<&Job> = self.mbd.st.jobs.values().filter(fits).collect();
        found.sort_by_key(|j| j.order);
        if self.mbd.pol.params().job_dep_last_sub {
            found = found.pop().into_iter().collect();
        }
        found.into_iter().map(named).collect()
    }
}

impl Mbd {
    /// Begins to watch the condition of a new (or recovered) job.
    pub(crate) fn watch_depend(&mut self, id: u32) {
        let Some(dep) = self.st.job(id).and_then(|j| j.depend.clone()) else { return };
        if self.st.job(id).is_some_and(|j| j.tally.pend + j.tally.psusp == 0) {
            return;
        }
        for named in dep.job_ids() {
            self.deps.waiters.entry(named as u32).or_default().insert(id);
        }
        self.evaluate(id);
    }

    fn evaluate(&mut self, id: u32) {
        let Some(job) = self.st.job(id) else { return };
        let Some(dep) = job.depend.clone() else { return };
        if !dep.per_element() {
            let value = dep.eval(self, None);
            self.deps.values.insert(id, value);
            return;
        }
        let mut ready = BTreeSet::new();
        let mut worst = DepValue::Never;
        for idx in job.indices() {
            let waits = match job.view(idx) {
                Some(View::Fresh) => true,
                Some(View::Own(e)) => e.stat() == stat::PEND,
                None => false,
            };
            if !waits {
                continue;
            }
            match dep.eval(self, Some(idx)) {
                DepValue::True => {
                    ready.insert(idx);
                }
                DepValue::False => worst = DepValue::False,
                DepValue::Never => {}
            }
        }
        let value = if ready.is_empty() { worst } else { DepValue::True };
        self.deps.values.insert(id, value);
        self.deps.elements.insert(id, ready);
    }

    /// Looks at the conditions that name what has changed; at waits too.
    pub(crate) fn settle(&mut self, cx: &mut super::Cx) {
        while let Some(changed) = self.deps.dirty.pop_first() {
            self.wait_changed(cx, changed);
            let over = self.st.job(changed).is_none_or(|j| j.tally.pend + j.tally.psusp == 0);
            if self.deps.values.contains_key(&changed) {
                if over {
                    let dep = self.st.job(changed).and_then(|j| j.depend.clone());
                    let ids = dep.map_or(Vec::new(), |d| d.job_ids());
                    self.deps.forget(changed, &ids);
                } else if self.deps.elements.contains_key(&changed) {
                    // One of its own elements started: it is no longer among the ready ones.
                    self.evaluate(changed);
                    self.refresh(changed);
                }
            }
            let Some(waiters) = self.deps.waiters.get(&changed) else { continue };
            for id in waiters.clone() {
                self.evaluate(id);
                self.refresh(id);
                self.sched.needed = true;
            }
        }
    }
}

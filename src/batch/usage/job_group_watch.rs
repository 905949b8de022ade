//! Conditions on job groups (`numdone(/risk, >= 10)`): what they ask of each group, and the answers
//! at the last look. A change of a job marks the groups on its path; once a turn each question to a
//! marked group is answered again from the group's counters, and only where the answer is another
//! one are the conditions looked at that ask it. Soft state.

use crate::batch::state::State;
use crate::batch::usage::job_group_counts::JobGroupCounts;
use crate::lang::depend::{DepCounts, Func, Resolved, Truth, of_job_group};
use crate::model::job_group::{is_within, lineage};
use std::collections::{BTreeMap, BTreeSet};

/// One question to a group.
#[derive(Debug)]
struct Asked {
    func: Func,
    truth: Truth,
    /// Jobs whose condition asks it.
    waiters: BTreeSet<u32>,
}

#[derive(Debug, Default)]
pub struct JobGroupWatch {
    /// The questions, by the path of the group.
    groups: BTreeMap<Box<str>, Vec<Asked>>,
    /// Groups that have changed since the last look.
    changed: BTreeSet<Box<str>>,
}

/// The counters of a group; `None`: it does not exist. One with jobs whose record is lost is about
/// to be made again.
pub(crate) fn counts_of(state: &State, counts: &JobGroupCounts, path: &str) -> Option<DepCounts> {
    let tally = counts.tally(path);
    let exists = tally.jobs > 0 || state.job_groups().get(path).is_some();
    exists.then(|| tally.of_conditions())
}

impl JobGroupWatch {
    pub(super) fn watch(
        &mut self,
        state: &State,
        counts: &JobGroupCounts,
        id: u32,
        condition: &Resolved,
    ) {
        for (func, path) in condition.job_groups() {
            let truth = of_job_group(&func, counts_of(state, counts, &path).as_ref());
            let all = self.groups.entry(path.into()).or_default();
            match all.iter_mut().find(|asked| asked.func == func) {
                Some(asked) => drop(asked.waiters.insert(id)),
                None => all.push(Asked { func, truth, waiters: BTreeSet::from([id]) }),
            }
        }
    }

    pub(super) fn unwatch(&mut self, id: u32, condition: &Resolved) {
        for (_, path) in condition.job_groups() {
            let Some(all) = self.groups.get_mut(&*path) else { continue };
            all.retain_mut(|asked| {
                asked.waiters.remove(&id);
                !asked.waiters.is_empty()
            });
            if all.is_empty() {
                self.groups.remove(&*path);
            }
        }
    }

    /// Does a condition ask something of this group?
    pub(super) fn concerns(&self, path: &str) -> bool {
        self.groups.contains_key(path)
    }

    /// The jobs that wait for this group, or for one above it.
    pub(super) fn waiters_of(&self, path: &str) -> impl Iterator<Item = u32> + '_ {
        let asked: Vec<&Asked> =
            lineage(path).filter_map(|path| self.groups.get(path)).flatten().collect();
        asked.into_iter().flat_map(|asked| asked.waiters.iter().copied())
    }

    /// A job of this group has changed, or come, or gone.
    pub(super) fn note(&mut self, path: &str) {
        self.changed.extend(lineage(path).map(Box::from));
    }

    /// A group is gone, with all below it.
    pub(super) fn note_deleted(&mut self, path: &str) {
        let gone = self.groups.keys().filter(|at| is_within(at, path));
        self.changed.extend(gone.cloned());
        self.note(path);
    }

    pub(super) fn take_changed(&mut self) -> Option<Box<str>> {
        self.changed.pop_first()
    }

    /// The jobs whose conditions have another answer now.
    pub(super) fn look(
        &mut self,
        state: &State,
        counts: &JobGroupCounts,
        path: &str,
    ) -> BTreeSet<u32> {
        let mut all = BTreeSet::new();
        let Some(asked) = self.groups.get_mut(path) else { return all };
        let counts = counts_of(state, counts, path);
        for asked in asked {
            let now = of_job_group(&asked.func, counts.as_ref());
            if now != asked.truth {
                asked.truth = now;
                all.extend(&asked.waiters);
            }
        }
        all
    }
}

//! Conditions on all jobs of a name: what is asked of a group is counted once for all conditions
//! that share it, job by job as these change, so that neither the number of the jobs nor that of
//! the conditions is gone through for a change. Soft state.

use super::Mbd;
use crate::lang::depend::{Func, Group, Resolved, Truth, of_job};
use crate::model::idmap::IdMap;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
pub struct GroupWatch {
    groups: BTreeMap<u32, Watched>,
    /// The groups that a job is in, and its place there.
    of_job: IdMap<u32, Vec<(u32, u32)>>,
}

#[derive(Debug)]
struct Watched {
    asked: Vec<Asked>,
    /// Jobs whose condition is about it.
    waiters: BTreeSet<u32>,
}

/// One function over the jobs of a group.
#[derive(Debug)]
struct Asked {
    func: Func,
    /// Of each job.
    truths: Vec<Truth>,
    /// Jobs that are not as it says.
    not: u32,
    /// Of those the ones that never will be.
    never: u32,
    /// Jobs of which it may still change.
    open: u32,
}

impl Asked {
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

    fn truth(&self) -> Truth {
        match (self.truths.is_empty(), self.never > 0, self.not > 0) {
            (true, ..) | (_, true, _) => Truth { holds: false, fixed: true },
            (_, _, true) => Truth { holds: false, fixed: false },
            _ => Truth { holds: true, fixed: self.open == 0 },
        }
    }
}

impl GroupWatch {
    /// Is a job in a group that an unfinished job waits for?
    pub fn is_named(&self, job: u32) -> bool {
        self.of_job.contains_key(&job)
    }

    fn truth(&self, group: &Group, func: &Func) -> Option<Truth> {
        let asked = &self.groups.get(&group.number)?.asked;
        asked.iter().find(|a| a.func == *func).map(Asked::truth)
    }
}

impl Mbd {
    /// The state of a job of a group; a job that has left memory has none.
    fn member_truth(&self, func: &Func, job: u32) -> Truth {
        match self.st.jobs.contains_key(&job) {
            true => of_job(func, u64::from(job), self),
            false => Truth { holds: true, fixed: true },
        }
    }

    fn ask(&self, group: &Group, func: &Func) -> Asked {
        let truths: Vec<Truth> =
            group.members.iter().map(|job| self.member_truth(func, *job)).collect();
        let mut asked = Asked { func: func.clone(), truths, not: 0, never: 0, open: 0 };
        for n in 0..asked.truths.len() {
            asked.count(asked.truths[n], true);
        }
        asked
    }

    pub(super) fn group_truth(&self, group: &Group, func: &Func) -> Truth {
        let known = self.deps.groups.truth(group, func);
        known.unwrap_or_else(|| self.ask(group, func).truth())
    }

    pub(super) fn watch_groups(&mut self, id: u32, condition: &Resolved) {
        for (func, group) in condition.groups() {
            let number = group.number;
            let known = self.deps.groups.truth(&group, &func).is_some();
            let asked = (!known).then(|| self.ask(&group, &func));
            let watch = &mut self.deps.groups;
            if !watch.groups.contains_key(&number) {
                for (place, job) in group.members.iter().enumerate() {
                    watch.of_job.entry(*job).or_default().push((number, place as u32));
                }
                let (asked, waiters) = (Vec::new(), BTreeSet::new());
                watch.groups.insert(number, Watched { asked, waiters });
            }
            if let Some(watched) = watch.groups.get_mut(&number) {
                watched.asked.extend(asked);
                watched.waiters.insert(id);
            }
        }
    }

    pub(super) fn unwatch_groups(&mut self, id: u32, condition: &Resolved) {
        let watch = &mut self.deps.groups;
        for (_, group) in condition.groups() {
            let Some(watched) = watch.groups.get_mut(&group.number) else { continue };
            watched.waiters.remove(&id);
            if !watched.waiters.is_empty() {
                continue;
            }
            watch.groups.remove(&group.number);
            for job in &group.members {
                if let Some(of) = watch.of_job.get_mut(job) {
                    of.retain(|(number, _)| *number != group.number);
                    if of.is_empty() {
                        watch.of_job.remove(job);
                    }
                }
            }
        }
    }

    /// A job has changed: the jobs whose conditions are about a group of which that changes what
    /// holds.
    pub(super) fn group_changed(&mut self, job: u32) -> BTreeSet<u32> {
        let places = self.deps.groups.of_job.get(&job).cloned().unwrap_or_default();
        let mut look = BTreeSet::new();
        for (number, place) in places {
            let Some(mut watched) = self.deps.groups.groups.remove(&number) else { continue };
            let mut other = false;
            for asked in &mut watched.asked {
                let (before, now) = (asked.truth(), self.member_truth(&asked.func, job));
                let was = std::mem::replace(&mut asked.truths[place as usize], now);
                asked.count(was, false);
                asked.count(now, true);
                other |= asked.truth() != before;
            }
            if other {
                look.extend(&watched.waiters);
            }
            self.deps.groups.groups.insert(number, watched);
        }
        look
    }

    /// Conditions and jobs that are watched by name.
    #[cfg(test)]
    pub fn watched_by_name(&self) -> (usize, usize) {
        let asked = self.deps.groups.groups.values().map(|w| w.asked.len());
        (asked.sum(), self.deps.groups.of_job.len())
    }
}

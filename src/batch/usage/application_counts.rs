//! Slots of the jobs of each application profile, counted job by job as these change, so that a
//! listing does not walk through the jobs.
//!
//! Invariant: the counters of a profile are the sums over the parts of jobs that are submitted to
//! it. A profile that the configuration does not have any more keeps its counters.

use crate::batch::state::started_elements::Slots;
use crate::batch::state::{Job, State};
use crate::model::idmap::IdMap;
use std::collections::HashMap;

/// The slots of a job in each of its profiles: parts of an array may be in different ones.
type OfJob = Vec<(Box<str>, Slots)>;

#[derive(Debug, Default)]
pub struct ApplicationCounts {
    profiles: HashMap<Box<str>, Slots>,
    /// The jobs with a profile.
    jobs: IdMap<u32, OfJob>,
}

fn of_job(job: &Job) -> OfJob {
    let mut all = OfJob::new();
    for part in 0..=job.parts().len() as u32 {
        let name = &job.spec_of(part).further.application;
        if name.is_empty() {
            continue;
        }
        let slots = job.slots_of(part);
        if slots == Slots::default() {
            continue;
        }
        match all.iter_mut().find(|of| of.0 == *name) {
            Some(of) => of.1 = Slots::sum([&of.1, &slots]),
            None => all.push((name.clone(), slots)),
        }
    }
    all
}

impl ApplicationCounts {
    /// The slots of the jobs of a profile.
    pub fn slots(&self, name: &str) -> Slots {
        self.profiles.get(name).copied().unwrap_or_default()
    }

    /// Counts all jobs.
    pub(crate) fn recount(state: &State) -> ApplicationCounts {
        let mut all = ApplicationCounts::default();
        for job in state.each_job() {
            all.follow(state, job.id);
        }
        all
    }

    /// A job has changed.
    pub(crate) fn follow(&mut self, state: &State, id: u32) {
        let now = state.job(id).map(of_job).unwrap_or_default();
        let before = match now.is_empty() {
            // nearly every job where there are no profiles
            true if self.jobs.is_empty() => return,
            true => self.jobs.remove(&id),
            false => self.jobs.insert(id, now.clone()),
        };
        for (name, slots) in before.into_iter().flatten() {
            if let Some(sum) = self.profiles.get_mut(&name) {
                *sum = sum.less(&slots);
                if *sum == Slots::default() {
                    self.profiles.remove(&name);
                }
            }
        }
        for (name, slots) in now {
            let sum = self.profiles.entry(name).or_default();
            *sum = Slots::sum([&*sum, &slots]);
        }
    }

    /// Is each counter what the jobs are? Looks at every job.
    pub fn audit(&self, state: &State) -> Result<(), String> {
        let counted = ApplicationCounts::recount(state);
        for name in counted.profiles.keys().chain(self.profiles.keys()) {
            let (kept, is) = (self.slots(name), counted.slots(name));
            if kept != is {
                return Err(format!("application {name}: counted {kept:?}, its jobs are {is:?}"));
            }
        }
        Ok(())
    }
}

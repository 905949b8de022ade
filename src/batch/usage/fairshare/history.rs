//! The use of ended jobs, by queue, user and group: what outlives mbatchd and the log.
//!
//! The records of a job in memory are in the log: reading it counts the use of the job again. As a
//! job leaves memory, its use goes over to the sum of its kind, and a new log begins with a record
//! LSF_SHARE_USED of each sum. The sums are of decayed amounts, so that two logs that tell the same
//! history may differ in the last digits.

use crate::batch::state::State;
use crate::batch::state::names::UserId;
use crate::batch::usage::fairshare::decayed::Decayed;
use crate::model::event::{Event, Record, ShareUsed};
use crate::model::idmap::IdMap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Seconds of use below which nothing is told of it in a new log.
const FORGOTTEN: f64 = 0.001;

/// The tree, user and group that use belongs to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChargeKey {
    /// The queue, or the host partition as `ShareTree::key` has it.
    pub tree: Arc<str>,
    pub user: UserId,
    /// The group of bsub -G; empty none.
    pub group: Arc<str>,
}

/// CPU and run seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct UsedTime {
    pub cpu: Decayed,
    pub run: Decayed,
}

impl UsedTime {
    fn add(&mut self, rate: f64, by: &UsedTime) {
        self.cpu.add(rate, by.cpu.value(), by.cpu.time());
        self.run.add(rate, by.run.value(), by.run.time());
    }
}

/// All of it.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// The use of jobs that have left memory.
    gone: BTreeMap<ChargeKey, UsedTime>,
    /// The use of attempts that are over, of each job in memory, with the rate by which it decays.
    jobs: IdMap<u32, Vec<(ChargeKey, UsedTime, f64)>>,
}

impl History {
    /// An attempt of a job is over.
    pub(super) fn add(&mut self, job: u32, key: &ChargeKey, used: &UsedTime, rate: f64) {
        let of_job = self.jobs.entry(job).or_default();
        match of_job.iter_mut().find(|of| of.0 == *key) {
            Some(of) => of.1.add(rate, used),
            None => of_job.push((key.clone(), *used, rate)),
        }
    }

    /// A job leaves memory.
    pub(super) fn forget_job(&mut self, job: u32) {
        for (key, used, rate) in self.jobs.remove(&job).into_iter().flatten() {
            self.gone.entry(key).or_default().add(rate, &used);
        }
    }

    /// The log begins with this use of jobs that it does not tell of.
    pub(super) fn put(
        &mut self,
        state: &State,
        used: &ShareUsed,
        time: i64,
    ) -> (ChargeKey, UsedTime) {
        // applying the record has given the user an id
        let user = state.names().find_user(&used.user).unwrap_or_default();
        let (tree, group) = (used.queue.as_str().into(), used.group.as_str().into());
        let key = ChargeKey { tree, user, group };
        let amount = |secs: f64| Decayed::new(if secs.is_finite() { secs } else { 0.0 }, time);
        let used = UsedTime { cpu: amount(used.cpu), run: amount(used.run) };
        self.gone.insert(key.clone(), used);
        (key, used)
    }

    /// Each amount, those of jobs in memory too.
    pub(super) fn all(&self) -> Vec<(ChargeKey, UsedTime)> {
        let mut jobs: Vec<_> = self.jobs.iter().collect();
        jobs.sort_by_key(|of| *of.0);
        let kept = jobs.into_iter().flat_map(|of| of.1.iter().map(|of| (of.0.clone(), of.1)));
        self.gone.iter().map(|(key, used)| (key.clone(), *used)).chain(kept).collect()
    }

    /// A record of each sum, with the rate at which it decays.
    pub(super) fn records(
        &self,
        state: &State,
        rate: impl Fn(&ChargeKey) -> f64,
        now: i64,
    ) -> Vec<Record> {
        let lasting = |of: &(&ChargeKey, &UsedTime)| {
            let (rate, used) = (rate(of.0), of.1);
            used.cpu.at(rate, now) >= FORGOTTEN || used.run.at(rate, now) >= FORGOTTEN
        };
        let record = |(key, used): (&ChargeKey, &UsedTime)| {
            let time = used.cpu.time().max(used.run.time());
            let rate = rate(key);
            let used = ShareUsed {
                queue: key.tree.to_string(),
                user: state.names().user(key.user).to_string(),
                group: key.group.to_string(),
                cpu: used.cpu.at(rate, time),
                run: used.run.at(rate, time),
            };
            Record { time, event: Event::ShareUsed(Box::new(used)) }
        };
        self.gone.iter().filter(lasting).map(record).collect()
    }
}

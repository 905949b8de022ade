//! A share account: what the jobs of a user or a group have used and hold, and the dynamic priority
//! that follows (`fairshare` in lsb.queues(5)).

use crate::batch::site::shares::{Factors, TreeId};
use crate::batch::usage::fairshare::decayed::Decayed;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Seconds of an hour: the formula counts hours.
const HOUR: f64 = 3600.0;
/// The least that the shares of an account are divided by.
const LEAST: f64 = 0.01;

/// The position of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountId(pub u32);

/// A share account, and all below it.
#[derive(Debug)]
pub struct Account {
    pub(super) tree: TreeId,
    /// The account above; `None`: it stands at the root of its tree.
    pub(super) parent: Option<AccountId>,
    pub(super) name: Arc<str>,
    pub(super) shares: u32,
    pub(super) below: BTreeMap<Arc<str>, AccountId>,
    pub(super) used: Used,
}

/// A part of what started jobs hold: the run time of those whose clock goes and of those that are
/// suspended, each as often as it counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Running {
    /// Jobs or slots.
    pub(super) count: i64,
    /// Their starts in all, without the time for which they were suspended; seconds.
    pub(super) starts: i64,
    /// The run time of the suspended ones, seconds.
    pub(super) stopped: i64,
}

impl Running {
    /// Seconds at an instant.
    pub(super) fn secs(&self, now: i64) -> i64 {
        (self.count.saturating_mul(now) - self.starts + self.stopped).max(0)
    }

    pub(super) fn change(&mut self, by: &Running, sign: i64) {
        self.count += sign * by.count;
        self.starts += sign * by.starts;
        self.stopped += sign * by.stopped;
    }
}

/// The use of an account.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Used {
    /// Started jobs or slots.
    pub(super) started: i64,
    /// Started elements, to know when sums of theirs are nothing.
    pub(super) elements: u32,
    pub(super) running: Running,
    /// The run time of jobs with a run limit alone, and these limits in all, seconds.
    pub(super) limited: Running,
    pub(super) committed: i64,
    /// CPU seconds of started jobs.
    pub(super) cpu: Decayed,
    /// 1 for each running job or slot at its start: what is left of it tells its decayed run time.
    pub(super) starts: Decayed,
    /// CPU and run seconds of ended jobs.
    pub(super) past_cpu: Decayed,
    pub(super) past_run: Decayed,
}

/// An account as commands show it, at an instant.
#[derive(Clone, Debug, PartialEq)]
pub struct ShareNow {
    pub name: Arc<str>,
    pub shares: u32,
    pub priority: f64,
    pub started: u64,
    pub reserved: u64,
    /// Seconds, decayed.
    pub cpu_secs: f64,
    /// Seconds: of running jobs, and of ended ones where these count.
    pub run_secs: f64,
}

impl Used {
    /// CPU seconds, decayed.
    pub(super) fn cpu_secs(&self, f: &Factors, now: i64) -> f64 {
        (self.past_cpu.at(f.rate, now) + self.cpu.at(f.rate, now)).max(0.0)
    }

    /// Run time of started jobs, seconds.
    fn running_secs(&self, f: &Factors, now: i64) -> f64 {
        let whole = self.running.secs(now) as f64;
        if !f.run_time_decay || f.rate == 0.0 {
            return whole;
        }
        let going = self.running.count as f64 - self.starts.at(f.rate, now);
        (going / f.rate).clamp(0.0, whole) + self.running.stopped as f64
    }

    pub(super) fn run_secs(&self, f: &Factors, now: i64) -> f64 {
        let past = if f.hist_run_time { self.past_run.at(f.rate, now).max(0.0) } else { 0.0 };
        self.running_secs(f, now) + past
    }

    /// The sum that shares are divided by.
    pub(super) fn weight(&self, f: &Factors, now: i64) -> f64 {
        let ahead = (self.committed - self.limited.secs(now)).max(0) as f64;
        let sum = self.cpu_secs(f, now) / HOUR * f.cpu_time
            + self.run_secs(f, now) / HOUR * f.run_time
            + ahead / HOUR * f.committed
            + (1 + self.started) as f64 * f.run_job;
        sum.max(LEAST)
    }
}

impl Account {
    pub(super) fn priority(&self, f: &Factors, now: i64) -> f64 {
        f64::from(self.shares) / self.used.weight(f, now)
    }

    pub(super) fn now(&self, f: &Factors, now: i64) -> ShareNow {
        ShareNow {
            name: self.name.clone(),
            shares: self.shares,
            priority: self.priority(f, now),
            started: self.used.started.max(0) as u64,
            reserved: 0,
            cpu_secs: self.used.cpu_secs(f, now),
            run_secs: self.used.run_secs(f, now),
        }
    }
}

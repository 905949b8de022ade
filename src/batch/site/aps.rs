//! The absolute priority of pending jobs (APS_PRIORITY in lsb.queues(5)): what factors count, and
//! how its value changes while a job pends.
//!
//! A weighted value lies between minus and plus its limit. A subfactor is weighted, then bounded;
//! a factor is its weight times the sum of its subfactors, bounded likewise. A factor or subfactor
//! counts once the job has been pending for its grace period.

use crate::batch::site::shares::{ShareTrees, TreeId};
use crate::conf::ClusterConf;
use crate::conf::types::{APS_FACTORS, ApsConf, ApsFactor, QueueConf};
use crate::model::aps::ApsSetting;
use std::ops::RangeInclusive;

/// Bits of the smallest and the largest magnitude that ranks tell apart: 2^-63 and just below 2^64.
const MAGNITUDES: RangeInclusive<u32> = 0x2000_0000..=0x5f7f_ffff;
/// The rank of a calculated priority of 0.
const MIDDLE: u32 = 0x4000_0000;
/// Ranks from here on are those of priorities that were set as a whole.
const SYSTEM: u32 = 0x8000_0000;
/// The rank of jobs that come before all others: those that migrate.
pub const FIRST_RANK: u32 = u32::MAX;

/// The values of a job that its factors are made of.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ApsInputs {
    /// The dynamic priority of the user.
    pub fairshare: f64,
    /// Tasks.
    pub tasks: u32,
    /// Memory and swap space asked for, MB or LSF_UNIT_FOR_LIMITS.
    pub memory: f64,
    pub swap: f64,
    /// The priority of bsub -sp.
    pub priority: u32,
    /// The priority of the queue.
    pub queue: u32,
    /// The priorities of the application profile, the user and the group of bsub -G.
    pub application: u32,
    pub user: u32,
    pub user_group: u32,
    pub setting: Option<ApsSetting>,
}

/// How the priority of bsub -sp rises with time: by so much at each end of such an interval,
/// seconds, of all pending jobs at the same instants.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Escalation {
    increment: u32,
    interval: i64,
}

/// APS_PRIORITY of a queue, and of those in its QUEUE_GROUP.
#[derive(Debug)]
pub struct ApsFormula {
    /// The queue that has the parameter.
    pub queue: String,
    conf: ApsConf,
    /// The weights that act, by factor.
    weights: [f64; APS_FACTORS],
    escalation: Option<Escalation>,
    favours_age: bool,
    /// The share tree of FAIRSHARE, where FS counts.
    pub tree: Option<TreeId>,
}

/// The absolute priority of a job at an instant.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ApsValue {
    /// Each factor and subfactor, weighted and bounded.
    pub of_factor: [f64; APS_FACTORS],
    /// The sum of the factors and `admin` of bmod -aps, or `system` in their place.
    pub total: f64,
}

impl ApsFormula {
    /// The formula of a queue; `None`: it is in no queue's group and has no formula itself.
    pub fn of(conf: &ClusterConf, trees: &ShareTrees, name: &str) -> Option<ApsFormula> {
        let queues = &conf.batch.queues;
        let own = |q: &&QueueConf| q.aps.is_some() && q.name == name;
        let group = |q: &&QueueConf| q.aps.is_some() && q.queue_group.iter().any(|n| n == name);
        let first = queues.iter().find(own).or_else(|| queues.iter().find(group))?;
        let params = &conf.batch.params;
        let conf = **first.aps.as_ref()?;
        let weights = ApsFactor::ALL.map(|factor| conf.weight(factor));
        let over_time =
            params.job_priority_over_time.filter(|_| params.max_user_priority.is_some());
        let counts = weight(&weights, ApsFactor::JobPriority) * weight(&weights, ApsFactor::Work);
        let escalation = over_time.filter(|_| counts != 0.0).map(|(increment, minutes)| {
            let interval = i64::try_from(minutes).unwrap_or(i64::MAX).saturating_mul(60).max(1);
            Escalation { increment, interval }
        });
        let shares = weight(&weights, ApsFactor::Fairshare) != 0.0 && first.fairshare.is_some();
        let tree = trees.of_queue(&first.name).filter(|_| shares);
        let (queue, favours_age) = (first.name.clone(), true);
        let all = ApsFormula { queue, conf, weights, escalation, favours_age, tree };
        Some(ApsFormula { favours_age: !all.falls(), ..all })
    }

    /// Do the amounts of memory or swap space count?
    pub fn weighs_amounts(&self) -> bool {
        self.counts(ApsFactor::Memory) || self.counts(ApsFactor::Swap)
    }

    /// Does the priority of user groups count?
    pub fn weighs_groups(&self) -> bool {
        self.counts(ApsFactor::UserGroup)
    }

    /// Does the factor count at any time?
    fn counts(&self, factor: ApsFactor) -> bool {
        let own = weight(&self.weights, factor) != 0.0;
        own && factor.parent().is_none_or(|parent| weight(&self.weights, parent) != 0.0)
    }

    fn grace(&self, factor: ApsFactor) -> i64 {
        self.conf.term(factor).grace.map_or(0, |secs| i64::try_from(secs).unwrap_or(i64::MAX))
    }

    /// The weighted, bounded value of a factor of a job pending for so many seconds.
    fn part(&self, factor: ApsFactor, value: f64, pending: i64) -> f64 {
        if pending < self.grace(factor) {
            return 0.0;
        }
        let limit = self.conf.term(factor).limit.unwrap_or(f64::INFINITY);
        (weight(&self.weights, factor) * value).clamp(-limit, limit)
    }

    /// The priority of a job that is pending since one instant, at another; seconds since the
    /// epoch.
    pub fn value(&self, inputs: &ApsInputs, since: i64, now: i64) -> ApsValue {
        let pending = now.saturating_sub(since).max(0);
        let mut of_factor = [0.0; APS_FACTORS];
        for factor in ApsFactor::ALL.into_iter().filter(|factor| factor.parent().is_some()) {
            let value = self.raw(factor, inputs, since, now);
            of_factor[factor.index()] = self.part(factor, value, pending);
        }
        let mut total = 0.0;
        for factor in ApsFactor::ALL.into_iter().filter(|factor| factor.parent().is_none()) {
            let parts = ApsFactor::ALL.into_iter().filter(|sub| sub.parent() == Some(factor));
            let sum: f64 = match factor {
                ApsFactor::Fairshare => self.raw(factor, inputs, since, now),
                _ => parts.map(|sub| of_factor[sub.index()]).sum(),
            };
            of_factor[factor.index()] = self.part(factor, sum, pending);
            total += of_factor[factor.index()];
        }
        match inputs.setting {
            Some(ApsSetting::System(number)) => total = number.get().into(),
            Some(ApsSetting::Admin(number)) => total += f64::from(number.get()),
            None => {}
        }
        ApsValue { of_factor, total }
    }

    /// The value of a subfactor, or of FS, before it is weighted.
    fn raw(&self, factor: ApsFactor, inputs: &ApsInputs, since: i64, now: i64) -> f64 {
        match factor {
            ApsFactor::Fairshare if self.tree.is_some() => inputs.fairshare,
            ApsFactor::Processors => inputs.tasks.into(),
            ApsFactor::Memory => inputs.memory,
            ApsFactor::Swap => inputs.swap,
            ApsFactor::JobPriority => f64::from(inputs.priority) + self.escalated(since, now),
            ApsFactor::QueuePriority => inputs.queue.into(),
            ApsFactor::Application => inputs.application.into(),
            ApsFactor::User => inputs.user.into(),
            ApsFactor::UserGroup => inputs.user_group.into(),
            ApsFactor::Fairshare | ApsFactor::Resource | ApsFactor::Work => 0.0,
        }
    }

    /// The amount by which the priority of bsub -sp has risen.
    fn escalated(&self, since: i64, now: i64) -> f64 {
        let Some(Escalation { increment, interval }) = self.escalation else { return 0.0 };
        let steps = now.div_euclid(interval) - since.div_euclid(interval);
        f64::from(increment) * steps.max(0) as f64
    }
}

fn weight(weights: &[f64; APS_FACTORS], factor: ApsFactor) -> f64 {
    weights[factor.index()]
}

/// How ranks follow the time.
impl ApsFormula {
    /// Do escalated jobs all rise by the same amount at the same instants? Then their ranks are
    /// made without that, so that they stay.
    fn rises_alike(&self) -> bool {
        let bounded = |factor| self.conf.term(factor).limit.is_some();
        self.escalation.is_some() && !bounded(ApsFactor::JobPriority) && !bounded(ApsFactor::Work)
    }

    /// The rise of all escalated jobs since an instant that is the same for all, where they rise
    /// alike.
    fn rise(&self, origin: i64, now: i64) -> f64 {
        let Some(Escalation { increment, interval }) = self.escalation else { return 0.0 };
        if !self.rises_alike() {
            return 0.0;
        }
        let steps = now.div_euclid(interval) - origin.div_euclid(interval);
        let weights = [ApsFactor::Work, ApsFactor::JobPriority].map(|f| weight(&self.weights, f));
        weights.iter().product::<f64>() * f64::from(increment) * steps as f64
    }

    /// The place of a job among those of the same formula and origin: the larger goes first.
    pub fn rank(&self, inputs: &ApsInputs, since: i64, (origin, now): (i64, i64)) -> u32 {
        match inputs.setting {
            Some(ApsSetting::System(number)) => SYSTEM + magnitude(number.get()),
            _ => {
                let risen = self.rise(origin, now);
                rank((self.value(inputs, since, now).total - risen) as f32)
            }
        }
    }

    /// When the rank of a job is another one by time alone at the earliest; `None`: never.
    pub fn next_change(&self, inputs: &ApsInputs, since: i64, now: i64) -> Option<i64> {
        if matches!(inputs.setting, Some(ApsSetting::System(_))) {
            return None;
        }
        let graces = ApsFactor::ALL.into_iter().filter(|factor| self.counts(*factor));
        let graces = graces.map(|factor| since.saturating_add(self.grace(factor)));
        let grace = graces.filter(|end| *end > now).min();
        let step = self.escalation.and_then(|Escalation { interval, .. }| {
            let pending = now.saturating_sub(since);
            let graces = [ApsFactor::Work, ApsFactor::JobPriority].map(|f| self.grace(f));
            let rises = graces.iter().all(|grace| pending >= *grace);
            let next = now.div_euclid(interval).saturating_add(1).saturating_mul(interval);
            match rises {
                // all others rise, this one does not yet; or this one does by itself
                false if self.rises_alike() => Some(next),
                true if !self.rises_alike() => {
                    let at = |t| self.value(inputs, since, t).total;
                    // one that has reached its limit stays there
                    (at(now) != at(next)).then_some(next)
                }
                _ => None,
            }
        });
        grace.into_iter().chain(step).min()
    }

    /// Is a job that has been pending for longer never behind one of the same kind that has not?
    pub fn favours_age(&self) -> bool {
        self.favours_age
    }

    /// May the priority of a job become smaller as it pends?
    fn falls(&self) -> bool {
        let sign = |factor: ApsFactor| weight(&self.weights, factor);
        let product = |sub: ApsFactor| sign(sub) * sub.parent().map_or(1.0, sign);
        let subs = || ApsFactor::ALL.into_iter().filter(|factor| factor.parent().is_some());
        let graced = |factor: &ApsFactor| self.grace(*factor) > 0 && self.counts(*factor);
        let falls = |factor: ApsFactor| match factor {
            ApsFactor::Fairshare => sign(factor) < 0.0,
            ApsFactor::Resource | ApsFactor::Work => {
                subs().any(|sub| sub.parent() == Some(factor) && product(sub) < 0.0)
            }
            sub => product(sub) < 0.0,
        };
        let escalated = self.escalation.is_some() && product(ApsFactor::JobPriority) < 0.0;
        escalated || ApsFactor::ALL.into_iter().filter(graced).any(falls)
    }

    /// The instants within which jobs of one kind have the same priority at any time, where they
    /// may not be kept in the order of their submission.
    pub fn bucket(&self, since: i64) -> Option<i64> {
        let graced = ApsFactor::ALL.into_iter().any(|f| self.grace(f) > 0 && self.counts(f));
        (!self.favours_age).then(|| match self.escalation {
            Some(Escalation { interval, .. }) if !graced => since.div_euclid(interval),
            _ => since,
        })
    }
}

/// The rank of a calculated priority.
fn rank(value: f32) -> u32 {
    match value < 0.0 {
        true => MIDDLE - magnitude(value),
        false => MIDDLE + magnitude(value),
    }
}

/// Larger for what lies further from 0; less than [`MIDDLE`].
fn magnitude(value: f32) -> u32 {
    let bits = value.abs().to_bits();
    match bits < *MAGNITUDES.start() {
        true => 0,
        false => bits.min(*MAGNITUDES.end()) - MAGNITUDES.start(),
    }
}

#[cfg(test)]
mod tests;

//! Everything by which a started element reserves resources ([`Holder`]), and the exact amounts of
//! that. Where the amounts are added up is in [`super::ledger`].

use crate::batch::site::reservation_methods::ReservationMethod;
use crate::batch::state::job_hosts::JobHosts;
use crate::batch::state::names::{HostId, ResourceId};
use crate::lang::resreq::RusageTerm;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// Parts of a resource's unit that are counted.
pub(in crate::batch::usage::reserve) const PARTS: f64 = 1e9;
/// Largest amount of one element, in these parts: sums of all elements stay within an i128.
const MAX_AMOUNT: f64 = 1e30;
/// Amounts below it, in these parts, have room for a half beside every digit.
const SMALL: f64 = (1u64 << 51) as f64;
/// After how many seconds something of a reservation that decays counts as given back.
const DECAY_SECS: i64 = 15;
/// KB in a MB.
const MB: f64 = 1024.0;

/// A term of a requirement, resolved.
#[derive(Debug)]
pub struct Term {
    pub resource: ResourceId,
    /// The part of a compound requirement that it belongs to; 0 of a simple one.
    pub part: usize,
    pub rusage: RusageTerm,
    pub method: ReservationMethod,
    /// A suspended job gives it back.
    pub released: bool,
    /// The measured value shows already how much of it the job uses.
    pub measured: bool,
    /// A preempted job gives it back to the queues that preempt it, and to no other.
    pub preemptable: bool,
    /// The amount in parts, where it does not depend on the time.
    pub steady_parts: Option<i128>,
}

impl Term {
    /// The amount of a term in parts, where it does not depend on the time.
    pub fn steady_parts_of(rusage: &RusageTerm) -> Option<i128> {
        let steady = rusage.phases.iter().all(|phase| phase.duration.is_none());
        steady.then(|| parts(rusage.amount()))
    }

    /// The amount so many times, of which `used` is in use; `None`: it depends on the time.
    pub(in crate::batch::usage::reserve) fn steady(&self, times: u64, used: f64) -> Option<Sum> {
        let all = self.steady_parts?;
        Some(match times == 1 && used == 0.0 {
            true => Sum { all, unseen: all },
            false => Sum::of(self.rusage.amount() * times as f64, used),
        })
    }

    /// The first second after `now` at which the amount may be another, for a job that was started
    /// at `start`.
    pub(in crate::batch::usage::reserve) fn next_change(
        &self,
        start: i64,
        now: i64,
    ) -> Option<i64> {
        let mut end = start;
        for phase in &self.rusage.phases {
            end = end.saturating_add(i64::try_from(phase.duration?).unwrap_or(i64::MAX));
            if now < end {
                let soon = now.max(start).saturating_add(DECAY_SECS);
                return Some(if phase.decay { end.min(soon) } else { end });
            }
        }
        None
    }
}

/// The reservations by the requirement of a started element.
#[derive(Debug)]
pub struct Requirement {
    pub text: Arc<str>,
    pub terms: Vec<Term>,
    /// The tasks of each part of a compound requirement; `None`: the rest. Empty: a simple one.
    pub parts: Vec<Option<u32>>,
}

/// Slots by host, each host once and known, the first one first.
pub fn slots_by_host(all: &JobHosts, known: impl Fn(HostId) -> bool) -> JobHosts {
    if let JobHosts::One(one) = all
        && known(one.0)
    {
        return JobHosts::One(*one);
    }
    let hosts = || all.iter().filter(|h| known(h.0));
    let mut slots: BTreeMap<HostId, u32> = BTreeMap::new();
    for (host, n) in hosts() {
        let sum = slots.entry(*host).or_default();
        *sum = sum.saturating_add(*n);
    }
    // in the order in which they come first
    hosts().filter_map(|(host, _)| slots.remove_entry(host)).collect()
}

impl Requirement {
    /// The hosts of each part, of hosts in the order of the tasks; empty for a simple requirement.
    pub fn hosts_of_parts(&self, all: &[(HostId, u32)]) -> Vec<Vec<(HostId, u32)>> {
        if self.parts.is_empty() {
            return Vec::new();
        }
        let total: u32 = all.iter().map(|host| host.1).fold(0, u32::saturating_add);
        let given = self.parts.iter().flatten().fold(0, |sum: u32, n| sum.saturating_add(*n));
        let mut hosts = all.iter().copied();
        let mut next = hosts.next();
        let mut of_part = |tasks: Option<u32>| {
            let mut left = tasks.unwrap_or_else(|| total.saturating_sub(given));
            let mut out: Vec<(HostId, u32)> = Vec::new();
            while let Some((host, slots)) = next.filter(|_| left > 0) {
                let take = slots.min(left);
                out.push((host, take));
                left -= take;
                next = if slots > take { Some((host, slots - take)) } else { hosts.next() };
            }
            out
        };
        self.parts.iter().map(|tasks| of_part(*tasks)).collect()
    }
}

/// Everything by which an element reserves something.
#[derive(Clone, Debug)]
pub struct Holder {
    pub requirement: Rc<Requirement>,
    pub hosts: JobHosts,
    /// The hosts of each part of a compound requirement; else empty.
    pub part_hosts: Vec<JobHosts>,
    /// Seconds since the epoch.
    pub start_time: i64,
    /// The element is suspended, and gives something back.
    pub stopped: bool,
    /// The element is suspended because others preempt it.
    pub preempted: bool,
    /// Memory in use, KB, where it reserves memory.
    pub used_kb: u64,
}

impl Holder {
    /// The hosts of a term, with the slots there.
    pub fn hosts_of(&self, term: &Term) -> &[(HostId, u32)] {
        self.part_hosts.get(term.part).unwrap_or(&self.hosts)
    }

    /// Is a term reserved no more, as the element is suspended?
    pub fn gives_back(&self, term: &Term) -> bool {
        self.stopped && term.released && !(self.preempted && term.preemptable)
    }
}

/// The memory in use that counts for a term, MB.
pub(in crate::batch::usage::reserve) fn used_mb(holder: &Holder, term: &Term) -> f64 {
    match term.measured && term.part == 0 {
        true => holder.used_kb as f64 / MB,
        false => 0.0,
    }
}

/// An amount, of which so much is in use, in parts: all, and what the measured value does not show.
pub(in crate::batch::usage::reserve) fn amounts(amount: f64, used: f64) -> (i128, i128) {
    let sum = Sum::of(amount, used);
    (sum.all, sum.unseen)
}

impl PartialEq for Holder {
    fn eq(&self, other: &Holder) -> bool {
        let (a, b) = (&self.requirement, &other.requirement);
        (Rc::ptr_eq(a, b) || a.text == b.text)
            && (&self.hosts, &self.part_hosts) == (&other.hosts, &other.part_hosts)
            && (self.start_time, self.stopped, self.preempted, self.used_kb)
                == (other.start_time, other.stopped, other.preempted, other.used_kb)
    }
}

/// Reserved by all elements, and of that what the measured value does not show yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::batch::usage::reserve) struct Sum {
    all: i128,
    unseen: i128,
}

impl Sum {
    pub fn of(amount: f64, used: f64) -> Sum {
        let all = parts(amount);
        Sum { all, unseen: all - parts(used).min(all) }
    }
    /// Everything, in parts.
    pub fn all(self) -> i128 {
        self.all
    }

    /// The part that the measured value does not show.
    pub fn unseen(self) -> i128 {
        self.unseen
    }

    pub fn add(&mut self, of: Sum) {
        self.all += of.all;
        self.unseen += of.unseen;
    }
    pub fn take(&mut self, of: Sum) {
        self.all -= of.all;
        self.unseen -= of.unseen;
        debug_assert!(self.all >= self.unseen && self.unseen >= 0, "below nothing: {self:?}");
    }
}

/// Parts in the unit of their resource.
pub fn in_units(parts: i128) -> f64 {
    parts as f64 / PARTS
}

fn parts(amount: f64) -> i128 {
    let scaled = amount * PARTS;
    // nearly every amount; a number of two words is made many times slower
    if (0.0..SMALL).contains(&scaled) {
        return i128::from((scaled + 0.5) as u64);
    }
    scaled.round().clamp(0.0, MAX_AMOUNT) as i128
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amount_is_counted_in_whole_parts_of_its_unit() {
        let all = [0.0, 1e-10, 0.4e-9, 0.5e-9, 1.0, 0.1, 2.25e6, 2_251_799.5, 1e13, 1e25, -3.0];
        let counted = all.map(parts);
        let rounded = all.map(|amount| (amount * PARTS).round().clamp(0.0, MAX_AMOUNT) as i128);
        assert_eq!(counted, rounded);
    }
}

//! When started elements give their slots back: by their run limits. Kept only where a queue
//! reserves slots or takes reserved ones.
//!
//! Invariants: a started element with a known end stands in both maps, with one end; elements
//! without a run limit, suspended ones and those on unreached hosts stand in none. A change of one
//! element touches that element alone.

use crate::batch::state::job_hosts::JobHosts;
use crate::batch::state::names::HostId;
use crate::model::JobRef;
use std::collections::BTreeMap;

/// The ends of started elements, earliest first.
#[derive(Debug, Default)]
pub struct Timeline {
    ends: BTreeMap<(i64, JobRef), JobHosts>,
    end_of: BTreeMap<JobRef, i64>,
    /// How often the facts of hosts had changed when all ends were worked out.
    facts: u64,
}

impl Timeline {
    /// A timeline without elements, by the facts of hosts after so many changes.
    pub fn by_facts(facts: u64) -> Timeline {
        Timeline { facts, ..Timeline::default() }
    }

    /// How often the facts of hosts had changed when all ends were worked out: CPU factors may
    /// be others since.
    pub fn facts(&self) -> u64 {
        self.facts
    }

    /// The slots of an element are given back at this time, seconds since the epoch; `None`: nobody
    /// knows when.
    pub fn put(&mut self, at: JobRef, end: Option<(i64, &JobHosts)>) {
        if let Some(before) = self.end_of.remove(&at) {
            self.ends.remove(&(before, at));
        }
        if let Some((end, hosts)) = end {
            self.end_of.insert(at, end);
            self.ends.insert((end, at), hosts.clone());
        }
    }

    /// The elements of a job with a known end.
    pub fn of_job(&self, job: u32) -> impl Iterator<Item = JobRef> + '_ {
        self.end_of.range(JobRef::all_of(job)).map(|(at, _)| *at)
    }

    /// The slots that are given back, in the order of time: (seconds since the epoch, the element,
    /// host, slots).
    pub fn ends(&self) -> impl Iterator<Item = (i64, JobRef, HostId, u32)> + '_ {
        let of = |((end, at), hosts): (&(i64, JobRef), &'_ JobHosts)| {
            let hosts: Vec<(HostId, u32)> = hosts.to_vec();
            let (end, at) = (*end, *at);
            hosts.into_iter().map(move |(host, slots)| (end, at, host, slots))
        };
        self.ends.iter().flat_map(of)
    }

    /// When an element ends, as far as that is known.
    #[cfg(test)]
    pub fn end_of(&self, at: JobRef) -> Option<i64> {
        self.end_of.get(&at).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::state::names::Id;

    fn at(job: u32) -> JobRef {
        JobRef { job, idx: 0 }
    }

    fn hosts(all: &[(usize, u32)]) -> JobHosts {
        all.iter().map(|(host, n)| (HostId::from_index(*host), *n)).collect()
    }

    fn told(timeline: &Timeline) -> Vec<(i64, usize, u32)> {
        timeline.ends().map(|(end, _, host, n)| (end, host.index(), n)).collect()
    }

    #[test]
    fn slots_are_given_back_in_the_order_of_time() {
        let mut t = Timeline::default();
        t.put(at(1), Some((50, &hosts(&[(0, 2)]))));
        t.put(at(2), Some((20, &hosts(&[(1, 1), (0, 1)]))));
        t.put(at(3), Some((20, &hosts(&[(2, 4)]))));
        assert_eq!(told(&t), [(20, 1, 1), (20, 0, 1), (20, 2, 4), (50, 0, 2)]);
    }

    #[test]
    fn element_with_another_end_stands_once_in_the_timeline() {
        let mut t = Timeline::default();
        t.put(at(1), Some((50, &hosts(&[(0, 2)]))));
        t.put(at(1), Some((80, &hosts(&[(0, 1)]))));
        assert_eq!(told(&t), [(80, 0, 1)]);
        assert_eq!(t.end_of(at(1)), Some(80));
        t.put(at(1), None);
        assert_eq!((told(&t), t.of_job(1).count()), (vec![], 0));
    }
}

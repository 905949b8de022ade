//! The processor units that started jobs have on each host (affinity[]): the CPUs, and the memory
//! of NUMA nodes. Suspended jobs keep theirs here; a queue that preempts them may count without
//! them (PREEMPT_JOBTYPE=AFFINITY of lsb.params(5)), so that two jobs may have the same. Soft
//! state: derived from the jobs, element by element as they change; without such jobs it costs a
//! look at each.

use crate::batch::site::Site;
use crate::batch::state::names::HostId;
use crate::batch::state::{ElemState, State};
use crate::model::JobRef;
use crate::model::affinity::JobUnits;
use crate::model::idmap::IdMap;
use crate::model::topology::CpuSet;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The units that jobs have on a host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnitsInUse {
    /// The CPUs that no other job gets.
    cpus: CpuSet,
    /// MB by NUMA node.
    memory: BTreeMap<u32, u64>,
}

impl UnitsInUse {
    /// The CPUs that no other job gets.
    pub(crate) fn cpus(&self) -> &CpuSet {
        &self.cpus
    }

    /// The memory of a NUMA node that jobs asked for, MB.
    pub(crate) fn memory_on(&self, node: u32) -> u64 {
        self.memory.get(&node).copied().unwrap_or(0)
    }

    /// The memory by NUMA node, MB.
    pub(crate) fn memory(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.memory.iter().map(|(node, mb)| (*node, *mb))
    }

    fn add(&mut self, other: &UnitsInUse) {
        self.cpus.add(&other.cpus);
        for (node, mb) in &other.memory {
            let all = self.memory.entry(*node).or_default();
            *all = all.saturating_add(*mb);
        }
    }
}

/// The units in use on each host.
#[derive(Debug, Default, PartialEq)]
pub struct ProcessorUnits {
    /// The units of each job, as its start has them, and its hosts.
    jobs: BTreeMap<JobRef, (Arc<str>, BTreeSet<HostId>)>,
    /// The units of each job on a host.
    shares: BTreeMap<(HostId, JobRef), UnitsInUse>,
    in_use: IdMap<HostId, UnitsInUse>,
}

impl ProcessorUnits {
    /// The units that jobs have on a host; `None`: there are none.
    pub(crate) fn on(&self, host: HostId) -> Option<&UnitsInUse> {
        match self.jobs.is_empty() {
            true => None,
            false => self.in_use.get(&host),
        }
    }

    /// The units that jobs have on a host, without those of some jobs; the memory of these counts
    /// where `memory` is true.
    pub(crate) fn on_without(
        &self,
        host: HostId,
        gone: impl Fn(JobRef) -> bool,
        memory: bool,
    ) -> UnitsInUse {
        let mut all = UnitsInUse::default();
        for (at, share) in self.shares_on(host) {
            match gone(at) {
                false => all.add(share),
                true if memory => {
                    all.add(&UnitsInUse { cpus: CpuSet::default(), memory: share.memory.clone() });
                }
                true => {}
            }
        }
        all
    }

    /// The units of a job on a host; `None`: it has none there.
    pub(crate) fn of_job(&self, host: HostId, at: JobRef) -> Option<&UnitsInUse> {
        match self.jobs.is_empty() {
            true => None,
            false => self.shares.get(&(host, at)),
        }
    }

    fn shares_on(&self, host: HostId) -> impl Iterator<Item = (JobRef, &UnitsInUse)> {
        let end = |n| (host, JobRef { job: n, idx: n });
        self.shares.range(end(0)..=end(u32::MAX)).map(|(place, share)| (place.1, share))
    }

    /// An element has changed; the hosts of which it has given units back.
    pub(crate) fn refresh(&mut self, state: &State, site: &Site, at: JobRef) -> Vec<HostId> {
        let now = units_of(state, at);
        let before = if self.jobs.is_empty() { None } else { self.jobs.get(&at) };
        if now.as_ref() == before.map(|before| &before.0) {
            return Vec::new();
        }
        let freed = self.release(at);
        let Some(text) = now else { return freed };
        let of_host = |host: &str| site.host_id(host);
        let mut shares: BTreeMap<HostId, UnitsInUse> = BTreeMap::new();
        for (_, task) in JobUnits::parse(&text).unwrap_or_default().tasks() {
            let Some(host) = of_host(&task.host) else { continue };
            let memory = task.memory.iter().copied().collect();
            let cpus = task.taken.clone();
            shares.entry(host).or_default().add(&UnitsInUse { cpus, memory });
        }
        let hosts = shares.keys().copied().collect();
        for (host, share) in shares {
            self.in_use.entry(host).or_default().add(&share);
            self.shares.insert((host, at), share);
        }
        self.jobs.insert(at, (text, hosts));
        freed
    }

    /// An element has its units no more; the hosts where it had some.
    fn release(&mut self, at: JobRef) -> Vec<HostId> {
        let Some((_, hosts)) = self.jobs.remove(&at) else { return Vec::new() };
        for host in &hosts {
            self.shares.remove(&(*host, at));
            let mut left = UnitsInUse::default();
            self.shares_on(*host).for_each(|(_, share)| left.add(share));
            match left == UnitsInUse::default() {
                true => drop(self.in_use.remove(host)),
                false => drop(self.in_use.insert(*host, left)),
            }
        }
        hosts.into_iter().collect()
    }

    /// The units of all started elements, with a new configuration or a new state.
    pub(crate) fn of_all(state: &State, site: &Site) -> ProcessorUnits {
        let mut all = ProcessorUnits::default();
        for at in state.counts().started() {
            all.refresh(state, site, at);
        }
        all
    }
}

/// The units that a started element has; `None`: it asked for none.
fn units_of(state: &State, at: JobRef) -> Option<Arc<str>> {
    let elem = state.elem(at)?;
    let ElemState::Run(run) = &elem.state else { return None };
    (!run.affinity.is_empty()).then(|| run.affinity.clone())
}

//! Compute units that a started job has for itself (cu[excl]): no other job is started on their
//! hosts. Soft state: derived from the jobs, element by element as they change.

use crate::batch::site::Site;
use crate::batch::state::names::HostId;
use crate::batch::state::{ElemState, State};
use crate::model::JobRef;
use crate::model::idmap::IdMap;
use std::collections::{BTreeMap, BTreeSet};

/// The hosts that are kept for one job each.
#[derive(Debug, Default)]
pub struct ExclusiveUnits {
    jobs: BTreeMap<JobRef, BTreeSet<HostId>>,
    /// The number of jobs by which each host is kept.
    held: IdMap<HostId, u32>,
}

impl ExclusiveUnits {
    /// Is a host kept for a started job?
    pub fn holds(&self, host: HostId) -> bool {
        !self.jobs.is_empty() && self.held.contains_key(&host)
    }

    /// An element has changed; the hosts that are kept no more.
    pub(crate) fn refresh(&mut self, state: &State, site: &Site, at: JobRef) -> Vec<HostId> {
        if self.jobs.is_empty() && site.units.kinds().next().is_none() {
            return Vec::new();
        }
        let now = kept_by(state, site, at).unwrap_or_default();
        let before = match now.is_empty() {
            true => self.jobs.remove(&at),
            false => self.jobs.insert(at, now.clone()),
        };
        let before = before.unwrap_or_default();
        for host in now.difference(&before) {
            *self.held.entry(*host).or_default() += 1;
        }
        let mut freed = Vec::new();
        for host in before.difference(&now) {
            match self.held.get_mut(host) {
                Some(count) if *count > 1 => *count -= 1,
                _ => {
                    self.held.remove(host);
                    freed.push(*host);
                }
            }
        }
        freed
    }

    /// The units of all started elements, with a new configuration or a new state.
    pub(crate) fn of_all(state: &State, site: &Site) -> ExclusiveUnits {
        let mut all = ExclusiveUnits::default();
        for at in state.counts().started() {
            all.refresh(state, site, at);
        }
        all
    }
}

/// The hosts of the units that a started element has for itself.
fn kept_by(state: &State, site: &Site, at: JobRef) -> Option<BTreeSet<HostId>> {
    let job = state.job(at.job)?;
    let elem = job.elem(at.idx)?;
    let ElemState::Run(run) = &elem.state else { return None };
    let text = job.effective_requirement(elem)?;
    if !text.contains("cu[") {
        return None;
    }
    let req = site.names.parse_shared(text).ok()?;
    let cu = req.first()?.cu.as_ref().filter(|cu| cu.excl)?;
    let kind = site.units.kind(cu.kind.as_deref())?;
    let units: BTreeSet<usize> = run.hosts.iter().filter_map(|h| kind.unit_of(h.0)).collect();
    Some(units.into_iter().flat_map(|unit| kind.hosts(unit)).copied().collect())
}

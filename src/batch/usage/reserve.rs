//! Resources of hosts that running jobs reserve (rusage), and what is left of them.
//!
//! The scheduler sees a load index as measured less what is reserved (more, where more is more
//! loaded), a static number less what is reserved. A resource that hosts share is reserved once for
//! a job on all of them. Memory that a job has come to use is in the measured value already and is
//! not taken away twice. A suspended job gives back what RELEASE says; memory it keeps. A
//! preempted job gives preemptable resources back to the queues that preempt it alone. Soft state:
//! derived from the jobs, element by element as they change, and kept in [`ledger`].

mod audit;
pub mod holder;
pub mod ledger;
mod preempted;
mod requirements;
mod vacated;

use crate::batch::site::Site;
use crate::batch::state::names::{HostId, ResourceId};
use crate::batch::state::{Elem, ElemState, Phase, State};
use crate::conf::types::{BaseConf, ResourceKind};
use crate::lim::facts;
use crate::model::JobRef;
use crate::model::reason::susp;
use crate::proto::lim::{HostLoad, INDEX_NAMES, increasing};
use std::sync::Arc;

pub(crate) use preempted::Supposing;
pub(crate) use vacated::PreemptedBy;

use holder::{Holder, Term, slots_by_host};
use ledger::{Reserve, left};

/// The instances of resources that more than one host shares: the resource and its hosts.
pub(in crate::batch) fn instances(base: &BaseConf) -> impl Iterator<Item = (String, Vec<String>)> {
    let fixed = facts::shared_rows(base).into_iter().map(|r| (r.name, r.hosts));
    let moving = facts::dynamic_instances(base).into_iter();
    let moving = moving.filter(|i| i.reporter != facts::Reporter::Each);
    let all = fixed.chain(moving.map(|i| (i.resource, i.hosts)));
    all.filter(|(_, hosts)| hosts.len() > 1)
}

impl Reserve {
    /// Notes what an element that changed reserves.
    pub(crate) fn refresh(&mut self, state: &State, site: &Site, at: JobRef) {
        let holder = self.holder_of(state, site, at);
        if holder.is_some() || !self.is_empty() {
            self.set(at, holder);
            self.amounts_changed(at);
        }
    }

    /// An element uses another amount of memory. The next load of its host shows the new amount;
    /// until then the difference stays subtracted.
    pub(crate) fn used(&mut self, state: &State, at: JobRef) {
        let used = |e: &Elem| e.run().map(|run| run.soft.usage.mem_kb);
        if let Some(used) = state.elem(at).and_then(used) {
            self.note_used(at, used);
        }
    }

    /// The load of a host was heard of.
    pub(crate) fn measured(&mut self, state: &State, site: &Site, host: HostId) {
        for at in self.take_used(host) {
            self.refresh(state, site, at);
        }
    }

    /// Resolves a requirement of jobs that are to start, so that it is not done while a slot waits
    /// for one.
    pub(crate) fn resolve_ahead(&self, site: &Site, text: &Arc<str>) {
        self.requirement(site, text);
    }

    /// The properties by which a started element reserves resources.
    fn holder_of(&mut self, state: &State, site: &Site, at: JobRef) -> Option<Holder> {
        let job = state.job(at.job)?;
        let elem = job.elem(at.idx)?;
        let ElemState::Run(run) = &elem.state else { return None };
        let text = job.effective_requirement(elem)?;
        let requirement = self.requirement(site, text);
        let terms = &requirement.terms;
        if terms.is_empty() {
            return None;
        }
        let stopped = matches!(run.phase, Phase::Ssusp(_) | Phase::Ususp(_));
        let preempted = run.phase == Phase::Ssusp(susp::PREEMPTED);
        let measured = terms.iter().any(|term| term.measured);
        let known = |i| site.hosts.contains(i);
        let in_order = run.task_order.as_deref().unwrap_or(&run.hosts);
        let of_parts = requirement.hosts_of_parts(in_order).into_iter();
        Some(Holder {
            hosts: slots_by_host(&run.hosts, known),
            part_hosts: of_parts.map(|part| slots_by_host(&part.into(), known)).collect(),
            start_time: run.start_time,
            stopped: stopped && terms.iter().any(|term| term.released),
            preempted,
            used_kb: match measured {
                true => self.unmeasured(at).unwrap_or(run.soft.usage.mem_kb),
                false => 0,
            },
            requirement,
        })
    }

    /// The reservations of all started elements, with a new configuration or a new state, at the
    /// second `now`.
    pub(crate) fn of_all(state: &State, site: &Site, now: i64) -> Reserve {
        let names = &site.names;
        let instance = |(resource, hosts): (String, Vec<String>)| {
            let hosts = hosts.iter().filter_map(|host| site.host_id(host)).collect();
            Some((names.id(&resource)?, hosts))
        };
        let instances = instances(&site.conf.base).filter_map(instance).collect();
        let mut all = Reserve::new(state.names().host_count(), instances, now);
        state.counts().started().for_each(|at| all.refresh(state, site, at));
        all
    }

    /// A host's load as the scheduler sees it: with what is reserved.
    pub(crate) fn as_scheduled(&self, site: &Site, i: HostId, mut load: HostLoad) -> HostLoad {
        let (reserved, names) = (self.on(i), &site.names);
        for k in 0..INDEX_NAMES.len() {
            let value = f64::from(load.index[k]);
            load.index[k] =
                left(reserved, ResourceId::of_load_index(k), value, increasing(k)) as f32;
        }
        let shared = load.facts.as_mut().map_or(&mut [][..], |f| &mut f.shared);
        for (name, value) in load.external.iter_mut().chain(shared) {
            if let Some(id) = names.id(name).filter(|id| reserved.all(*id).is_some())
                && let Ok(v) = value.parse::<f64>()
            {
                *value = left(reserved, id, v, names.increasing(id)).to_string();
            }
        }
        load
    }

    /// The amount of a resource that a started element reserves on a host.
    pub(crate) fn amount_on(&self, at: JobRef, host: HostId, resource: ResourceId) -> f64 {
        let Some(holder) = self.holder(at) else { return 0.0 };
        let row = self.row(host, resource);
        let terms = holder.requirement.terms.iter().filter(|term| term.resource == resource);
        let amount = |term: &Term| {
            let rows = self.rows_of(holder.hosts_of(term), (resource, term.method)).into_iter();
            let times: u64 = rows.filter(|of| of.0 == row).map(|of| of.1).sum();
            term.rusage.amount() * times as f64
        };
        terms.map(amount).sum()
    }

    /// The amount of a resource that a started element reserves on all its hosts.
    pub(crate) fn amount_of(&self, at: JobRef, resource: ResourceId) -> f64 {
        let Some(holder) = self.holder(at) else { return 0.0 };
        let terms = holder.requirement.terms.iter().filter(|term| term.resource == resource);
        let amount = |term: &Term| {
            let rows = self.rows_of(holder.hosts_of(term), (resource, term.method)).into_iter();
            term.rusage.amount() * rows.map(|of| of.1).sum::<u64>() as f64
        };
        terms.map(amount).sum()
    }

    /// Reservations of a host that bhosts shows: built-in indices in their order, others by name.
    pub(crate) fn shown(&self, site: &Site, i: HostId) -> (Vec<f64>, Vec<(String, String)>) {
        let reserved = self.on(i);
        let built_in = |k| reserved.all(ResourceId::of_load_index(k)).unwrap_or(0.0);
        let own = site.conf.base.shared.resources.iter().enumerate();
        let own = own.filter(|(_, r)| r.kind == ResourceKind::Numeric).filter_map(|(k, r)| {
            let amount = reserved.all(ResourceId::of_site(k))?;
            Some((r.name.clone(), format!("{amount:.1}")))
        });
        ((0..INDEX_NAMES.len()).map(built_in).collect(), own.collect())
    }
}

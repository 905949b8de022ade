//! A host as a requirement sees it (`lang::resreq`): its load and resources, less what is reserved.

use crate::batch::cluster::hosts::HostRuntime;
use crate::batch::sched::vacancy::Vacancy;
use crate::batch::site::requirements::Names;
use crate::batch::state::names::{Id, ResourceId};
use crate::batch::usage::reserve::ledger::{Reserved, left};
use crate::conf::types::HostDef;
use crate::lang::resreq::HostView;

/// A host as a requirement sees it.
pub struct HostSnapshot<'a> {
    pub(super) def: &'a HostDef,
    pub(super) rt: &'a HostRuntime,
    /// Free slots now, and all.
    pub(super) slots: f64,
    pub(super) max_slots: f64,
    /// PARALLEL_SCHED_BY_SLOT: its slots are its processors; never where their number is unlimited.
    pub(super) by_slot: bool,
    pub(super) status: &'a str,
    /// The reservations here, and the names of resources.
    pub(super) taken: Reserved<'a>,
    /// The resources that preemption leaves to a queue; `None`: nothing, or no queue asks.
    pub(super) vacancy: Option<Vacancy<'a>>,
    pub(super) names: &'a Names,
}

impl HostSnapshot<'_> {
    /// The host as it would be without reservations.
    pub(crate) fn without_reservations(self) -> Self {
        HostSnapshot { taken: Reserved::default(), vacancy: None, ..self }
    }

    fn resource(&self, name: &str) -> Option<&Option<String>> {
        let own = self.def.resources.iter().find(|r| r.name == name && !r.absent).map(|r| &r.value);
        own.or_else(|| {
            let facts = self.rt.load.as_ref()?.facts.as_ref()?;
            facts.resources.iter().find(|r| r.0 == name).map(|r| &r.1)
        })
    }
    /// The value of a static resource that the host has, or shares with others.
    fn fixed(&self, name: &str) -> Option<&str> {
        let facts = || self.rt.load.as_ref()?.facts.as_ref();
        let shared = || facts()?.shared.iter().find(|r| r.0 == name).map(|r| r.1.as_str());
        self.resource(name).and_then(|v| v.as_deref()).or_else(shared)
    }
    pub fn host_type(&self) -> &str {
        let facts = self.rt.load.as_ref().and_then(|l| l.facts.as_ref());
        self.def.host_type.as_deref().or(facts.map(|f| f.host_type.as_str())).unwrap_or("")
    }
    pub fn model(&self) -> &str {
        let facts = self.rt.load.as_ref().and_then(|l| l.facts.as_ref());
        self.def.model.as_deref().or(facts.map(|f| f.model.as_str())).unwrap_or("")
    }
}

impl HostView for HostSnapshot<'_> {
    fn num(&self, name: &str) -> Option<f64> {
        match self.names.id(name) {
            Some(id) => self.available(id, name),
            None => self.measured(name),
        }
    }

    fn numbered(&self, number: u32, name: &str) -> Option<f64> {
        self.available(ResourceId::from_index(number as usize), name)
    }

    fn text(&self, name: &str) -> Option<&str> {
        match name {
            "type" => Some(self.host_type()),
            "model" => Some(self.model()),
            "hname" => Some(&self.def.name),
            "status" => Some(self.status),
            _ => {
                let load = self.rt.load.as_ref();
                let external = load.and_then(|l| l.external.iter().find(|e| e.0 == name));
                external.map(|e| e.1.as_str()).or_else(|| self.fixed(name))
            }
        }
    }

    fn boolean(&self, name: &str) -> Option<bool> {
        let load = self.rt.load.as_ref();
        let external = load.and_then(|l| l.external.iter().find(|e| e.0 == name));
        match (name, external) {
            ("server", _) => Some(self.def.server),
            (_, Some((_, value))) => Some(value.parse() != Ok(0.0)),
            _ => Some(self.resource(name).is_some()),
        }
    }
}

impl HostSnapshot<'_> {
    /// The value of a number of this id and name, less what is reserved.
    pub fn available(&self, id: ResourceId, name: &str) -> Option<f64> {
        let value = match id.load_index() {
            Some(k) => self.rt.load.as_ref().map(|l| f64::from(l.index[k])),
            None => self.measured(name),
        };
        let more = self.vacancy.and_then(|vacancy| vacancy.more(id));
        match more.filter(|more| *more != 0.0) {
            None => Some(left(self.taken, id, value?, self.names.increasing(id))),
            Some(more) => Some((value? - self.taken.unseen(id) + more).max(0.0)),
        }
    }

    /// The value of a number before reservations; load indices apart.
    fn measured(&self, name: &str) -> Option<f64> {
        let load = self.rt.load.as_ref();
        let facts = load.and_then(|l| l.facts.as_ref());
        match name {
            "slots" => return Some(self.slots),
            "maxslots" => return Some(self.max_slots),
            "rexpri" => return Some(f64::from(self.def.rexpri)),
            "cpuf" => return facts.map(|f| f.cpu_factor),
            "ncpus" if self.by_slot => return Some(self.max_slots),
            "ncpus" => return facts.map(|f| f64::from(f.ncpus)),
            "nprocs" => return facts.map(|f| f64::from(f.nprocs)),
            "ncores" => return facts.map(|f| f64::from(f.ncores)),
            "nthreads" => return facts.map(|f| f64::from(f.nthreads)),
            "ndisks" => return facts.map(|f| f64::from(f.ndisks)),
            "maxmem" => return facts.map(|f| f.max_mem as f64),
            "maxswp" => return facts.map(|f| f.max_swp as f64),
            "maxtmp" => return facts.map(|f| f.max_tmp as f64),
            _ => {}
        }
        let external = load.and_then(|l| l.external.iter().find(|e| e.0 == name));
        if let Some((_, v)) = external {
            return v.parse().ok();
        }
        self.fixed(name)?.parse().ok()
    }
}

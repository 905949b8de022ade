//! The demand of a job for a limited resource: an amount for the job, for each host, and for each
//! slot.

use crate::batch::site::Site;
use crate::batch::site::reservation_methods::ReservationMethod;
use crate::batch::site::rules::{LimitedQuantity, parts};
use crate::batch::state::names::{HostId, ResourceId};
use crate::batch::usage::reserve::instances;
use crate::lang::resreq::{RusageTerm, Simple};
use crate::model::idmap::IdMap;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

/// Requirements that are kept resolved beside those that elements hold; beyond it they are kept
/// anew.
const MAX_REQUIREMENTS: usize = 4096;

/// The amounts of one resource, in parts of its unit (or slots, or jobs).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    pub per_job: u64,
    /// For each host, or each instance that hosts share.
    pub per_host: u64,
    pub per_slot: u64,
}

impl Demand {
    /// The demand of a term of rusage[]. How long it is reserved does not matter: a limit counts it
    /// as long as the job is started.
    fn of_term(site: &Site, term: &RusageTerm) -> Demand {
        let amount = parts(term.amount());
        match site.reservation_method(term) {
            ReservationMethod::PerJob => Demand { per_job: amount, ..Demand::default() },
            ReservationMethod::PerTask => Demand { per_slot: amount, ..Demand::default() },
            _ => Demand { per_host: amount, ..Demand::default() },
        }
    }

    fn and(self, other: Demand) -> Demand {
        Demand {
            per_job: self.per_job.saturating_add(other.per_job),
            per_host: self.per_host.saturating_add(other.per_host),
            per_slot: self.per_slot.saturating_add(other.per_slot),
        }
    }

    /// The demand of a requirement for a resource.
    pub fn of_requirement(site: &Site, simple: Option<&Simple>, id: ResourceId) -> Demand {
        let rusage = simple.and_then(|simple| simple.rusage.as_ref());
        let terms = rusage.map_or(&[][..], |rusage| rusage.terms()).iter();
        let own = terms.filter(|term| site.names.reserved(term) == Some(id));
        own.fold(Demand::default(), |all, term| all.and(Demand::of_term(site, term)))
    }

    /// Is nothing asked for?
    pub fn is_nothing(&self) -> bool {
        *self == Demand::default()
    }
}

/// The limited resources that a started element asked for.
#[derive(Debug)]
pub(super) struct ElementDemand {
    text: Arc<str>,
    all: Vec<(ResourceId, Demand)>,
}

impl PartialEq for ElementDemand {
    fn eq(&self, other: &ElementDemand) -> bool {
        self.text == other.text
    }
}

impl ElementDemand {
    pub(super) fn of(&self, id: ResourceId) -> Demand {
        let own = self.all.iter().find(|(resource, _)| *resource == id);
        own.map_or(Demand::default(), |(_, demand)| *demand)
    }
}

/// The hosts of each instance that hosts share, by its number.
#[derive(Debug, Default)]
pub struct Instances(IdMap<HostId, u32>);

impl Instances {
    /// The hosts of each instance, in the order of their numbers.
    pub fn of_rows(rows: &[Vec<HostId>]) -> Instances {
        let mut all = Instances::default();
        for (number, hosts) in (0..).zip(rows) {
            // of several instances of a host the first one counts
            for host in hosts {
                all.0.entry(*host).or_insert(number);
            }
        }
        all
    }

    pub fn of(&self, host: HostId) -> Option<u32> {
        self.0.get(&host).copied()
    }
}

/// Requirements of started elements, resolved, and the instances of limited resources.
#[derive(Debug, Default)]
pub(super) struct Demands {
    known: HashMap<Arc<str>, Option<Rc<ElementDemand>>>,
    instances: Vec<(ResourceId, Instances)>,
}

impl Demands {
    pub(super) fn new(site: &Site) -> Demands {
        let mut demands = Demands::default();
        if !site.rules.look_closely() {
            return demands;
        }
        for (number, (name, hosts)) in (0..).zip(instances(&site.conf.base)) {
            let id = site.names.id(&name);
            let Some(id) = id.filter(|id| site.rules.counts_resource(*id)) else { continue };
            let all = &mut demands.instances;
            let position = all.iter().position(|(known, _)| *known == id).unwrap_or_else(|| {
                all.push((id, Instances::default()));
                all.len() - 1
            });
            for host in hosts.iter().filter_map(|host| site.host_id(host)) {
                // of several instances of a host the first one counts
                all[position].1.0.entry(host).or_insert(number);
            }
        }
        demands
    }

    pub(super) fn instances(&self, what: LimitedQuantity) -> Option<&Instances> {
        let LimitedQuantity::Resource(id) = what else { return None };
        self.instances.iter().find(|(known, _)| *known == id).map(|(_, of)| of)
    }

    /// The demand of a requirement for limited resources; `None`: nothing.
    pub(super) fn of(&mut self, site: &Site, text: &Arc<str>) -> Option<Rc<ElementDemand>> {
        if !text.contains("rusage[") {
            return None;
        }
        if let Some(known) = self.known.get(text) {
            return known.clone();
        }
        let req = site.names.parse_shared(text).ok();
        let rusage = req.as_ref().and_then(|req| req.first()?.rusage.as_ref());
        let mut all: Vec<(ResourceId, Demand)> = Vec::new();
        for term in rusage.map_or(&[][..], |rusage| rusage.terms()) {
            let id = site.names.reserved(term);
            let Some(id) = id.filter(|id| site.rules.counts_resource(*id)) else { continue };
            let demand = Demand::of_term(site, term);
            match all.iter_mut().find(|(known, _)| *known == id) {
                Some((_, sum)) => *sum = sum.and(demand),
                None => all.push((id, demand)),
            }
        }
        let demand = ElementDemand { text: text.clone(), all };
        let found = (!demand.all.is_empty()).then(|| Rc::new(demand));
        if self.known.len() >= MAX_REQUIREMENTS {
            self.known.clear();
        }
        self.known.insert(text.clone(), found.clone());
        found
    }
}

/// A job that draws a resource host by host.
#[derive(Clone, Debug)]
pub struct Draw<'a> {
    demand: Demand,
    instances: Option<&'a Instances>,
    began: bool,
    /// Instances that it has drawn from.
    seen: Vec<u32>,
}

impl<'a> Draw<'a> {
    pub fn new(demand: Demand, instances: Option<&'a Instances>) -> Draw<'a> {
        Draw { demand, instances, began: false, seen: Vec::new() }
    }

    /// The amount for the job was drawn.
    pub fn began(&mut self) {
        self.began = true;
    }

    /// The amount that it draws on a host besides that for its slots.
    pub fn fixed(&self, host: HostId) -> u64 {
        let own = if self.began { 0 } else { self.demand.per_job };
        let instance = self.instances.and_then(|of| of.of(host));
        let known = instance.is_some_and(|instance| self.seen.contains(&instance));
        own.saturating_add(if known { 0 } else { self.demand.per_host })
    }

    pub fn per_slot(&self) -> u64 {
        self.demand.per_slot
    }

    /// The amount that it draws on a host of which it gets so many slots.
    pub fn take(&mut self, host: HostId, slots: u64) -> u64 {
        let n = self.fixed(host).saturating_add(self.demand.per_slot.saturating_mul(slots));
        self.began = true;
        let instance = self.instances.and_then(|of| of.of(host));
        self.seen.extend(instance.filter(|instance| !self.seen.contains(instance)));
        n
    }
}

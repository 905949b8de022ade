//! Requirements: the resource names of this cluster, and the joined requirement of a job and its
//! queue.

use crate::batch::state::names::{Id, ResourceId};
use crate::conf::types::{BaseConf, ResourceDef, ResourceKind};
use crate::lang::resreq::{Builtins, HOST_NUMBERS, ResKind, ResNames, ResReq};
use crate::lang::resreq::{ResReqError, Rusage, RusageTerm, Syntax};
use crate::proto::lim::{INDEX_NAMES, increasing};
use std::collections::HashMap;

/// The built-in indices of which a suspended job keeps what it reserved.
const KEPT: [&str; 3] = ["tmp", "swp", "mem"];

/// A resource that has an id.
#[derive(Debug)]
struct Resource {
    name: String,
    /// More of it means more load.
    increasing: bool,
    /// A suspended job gives back what it reserved of it.
    release: bool,
}

/// Every resource name with its kind. A resource is resolved here once, to its id.
#[derive(Debug)]
pub struct Names {
    own: HashMap<String, ResKind>,
    ids: HashMap<String, ResourceId>,
    resources: Vec<Resource>,
    size_unit_mb: f64,
}

impl Names {
    pub fn new(base: &BaseConf) -> Names {
        let kind = |k: ResourceKind, inc: Option<bool>| match k {
            ResourceKind::Boolean => ResKind::Boolean,
            ResourceKind::String => ResKind::String,
            ResourceKind::Numeric => ResKind::Numeric { increasing: inc.unwrap_or(false) },
        };
        let site = &base.shared.resources;
        let own = site.iter().map(|r| (r.name.clone(), kind(r.kind, r.increasing)));
        let resources = resources(site);
        let mut ids = HashMap::new();
        for (position, resource) in resources.iter().enumerate() {
            ids.entry(resource.name.clone()).or_insert_with(|| ResourceId::from_index(position));
        }
        let (own, size_unit_mb) = (own.collect(), base.lsf.requirement_unit_mb());
        Names { own, ids, resources, size_unit_mb }
    }

    /// The id of a resource.
    pub fn id(&self, name: &str) -> Option<ResourceId> {
        self.ids.get(name).copied()
    }

    /// The name of a resource.
    pub fn name(&self, id: ResourceId) -> &str {
        self.resources.get(id.index()).map_or("", |resource| &resource.name)
    }

    /// Every resource that has an id.
    pub fn all(&self) -> impl Iterator<Item = (ResourceId, &str)> {
        let all = self.resources.iter().enumerate();
        all.map(|(position, r)| (ResourceId::from_index(position), r.name.as_str()))
    }

    /// The id of what a term reserves.
    pub fn reserved(&self, term: &RusageTerm) -> Option<ResourceId> {
        term.number.map(|n| ResourceId::from_index(n as usize)).or_else(|| self.id(&term.res))
    }

    /// Does more of this resource mean more load?
    pub fn increasing(&self, id: ResourceId) -> bool {
        self.resources.get(id.index()).is_some_and(|r| r.increasing)
    }

    /// Does a suspended job give back what it reserved of this?
    pub fn released(&self, id: ResourceId) -> bool {
        self.resources.get(id.index()).is_some_and(|r| r.release)
    }

    fn syntax(&self) -> Syntax<'_> {
        // the default of the type, in tests, has no unit
        let size_unit_mb = if self.size_unit_mb > 0.0 { self.size_unit_mb } else { 1.0 };
        Syntax { names: self, size_unit_mb }
    }

    pub fn parse(&self, text: &str) -> Result<ResReq, ResReqError> {
        ResReq::parse(text, &self.syntax())
    }
}

/// Values by id, in the order of the ids.
fn resources(site: &[ResourceDef]) -> Vec<Resource> {
    let release = |name: &str| {
        let own = site.iter().find(|r| r.name == name);
        own.map_or(!KEPT.contains(&name), |r| r.release)
    };
    let built_in = |name: &str, increasing: bool| Resource {
        name: name.to_owned(),
        increasing,
        release: release(name),
    };
    let indices = INDEX_NAMES.iter().enumerate().map(|(k, name)| built_in(name, increasing(k)));
    let numbers = HOST_NUMBERS.iter().map(|name| built_in(name, false));
    let own = site.iter().map(|r| Resource {
        name: r.name.clone(),
        increasing: r.increasing.unwrap_or(false),
        release: r.release,
    });
    indices.chain(numbers).chain(own).collect()
}

impl ResNames for Names {
    fn kind(&self, name: &str) -> Option<ResKind> {
        Builtins.kind(name).or_else(|| self.own.get(name).copied())
    }
    fn number(&self, name: &str) -> Option<u32> {
        self.id(name).map(|id| id.index() as u32)
    }
}

/// A compiled requirement.
#[derive(Debug, Clone, PartialEq)]
pub struct Req(pub ResReq);

impl Req {
    pub fn parse(text: &str, names: &Names) -> Result<Req, ResReqError> {
        names.parse(text).map(Req)
    }

    /// The requirement once for each alternative of its rusage, with that one alone; none where
    /// there is only one.
    pub fn alternatives(&self) -> Option<Vec<Req>> {
        let rusage = match &self.0 {
            ResReq::Simple(s) => s.rusage.as_ref(),
            _ => None,
        };
        let all = rusage.map(|r| &r.alternatives).filter(|a| a.len() > 1)?;
        let one = |terms: &Vec<RusageTerm>| {
            let mut req = self.clone();
            if let ResReq::Simple(s) = &mut req.0 {
                s.rusage = Some(Rusage { alternatives: vec![terms.clone()] });
            }
            req
        };
        Some(all.iter().map(one).collect())
    }

    /// Job over application profile over queue, with the defaults: what acts.
    pub fn combined(
        job: &str,
        levels: [Option<&Req>; 2],
        hosts_asked: bool,
        names: &Names,
    ) -> Result<Req, ResReqError> {
        let job = if job.is_empty() { ResReq::default() } else { names.parse(job)? };
        let joined = levels.into_iter().flatten().fold(job, |job, level| job.over(&level.0));
        Ok(Req(joined.with_defaults(hosts_asked)))
    }
}

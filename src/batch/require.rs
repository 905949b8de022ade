//! Requirements against hosts: the resource names of this cluster, a host as `lang::resreq` sees
//! it, and the joined requirement of a job and its queue.

use super::hosts::HostRt;
use super::reserve::{Taken, left};
use crate::conf::types::{BaseConf, HostDef, ResourceKind};
use crate::lang::resreq::{Builtins, HostView, ResKind, ResNames, ResReq, ResReqError};
use crate::lang::resreq::{Rusage, RusageTerm, Syntax};
use crate::proto::lim::INDEX_NAMES;
use std::collections::HashMap;

/// Every resource name with its kind.
#[derive(Debug, Default)]
pub struct Names {
    own: HashMap<String, ResKind>,
    size_unit_mb: f64,
}

impl Names {
    pub fn new(base: &BaseConf) -> Names {
        let kind = |k: ResourceKind, inc: Option<bool>| match k {
            ResourceKind::Boolean => ResKind::Boolean,
            ResourceKind::String => ResKind::String,
            ResourceKind::Numeric => ResKind::Numeric { increasing: inc.unwrap_or(false) },
        };
        let own =
            base.shared.resources.iter().map(|r| (r.name.clone(), kind(r.kind, r.increasing)));
        Names { own: own.collect(), size_unit_mb: base.lsf.requirement_unit_mb() }
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

impl ResNames for Names {
    fn kind(&self, name: &str) -> Option<ResKind> {
        Builtins.kind(name).or_else(|| self.own.get(name).copied())
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

    /// Job over queue, with the defaults: what acts.
    pub fn combined(
        job: &str,
        queue: Option<&Req>,
        hosts_asked: bool,
        names: &Names,
    ) -> Result<Req, ResReqError> {
        let job = if job.is_empty() { ResReq::default() } else { names.parse(job)? };
        let joined = match queue {
            Some(q) => job.over(&q.0),
            None => job,
        };
        Ok(Req(joined.with_defaults(hosts_asked)))
    }
}

/// A host as a requirement sees it.
pub struct Sight<'a> {
    pub def: &'a HostDef,
    pub rt: &'a HostRt,
    /// Free slots now, and all.
    pub slots: f64,
    pub max_slots: f64,
    pub status: &'a str,
    /// The reservations here, and the names of resources.
    pub taken: &'a [Taken],
    pub names: &'a Names,
}

impl Sight<'_> {
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

impl HostView for Sight<'_> {
    fn num(&self, name: &str) -> Option<f64> {
        let value = self.measured(name)?;
        if self.taken.is_empty() {
            return Some(value);
        }
        let up = self.names.kind(name) == Some(ResKind::Numeric { increasing: true });
        Some(left(self.taken, name, value, up))
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

impl Sight<'_> {
    /// The value of a number before reservations.
    fn measured(&self, name: &str) -> Option<f64> {
        let load = self.rt.load.as_ref();
        if let Some(i) = INDEX_NAMES.iter().position(|n| *n == name) {
            return load.map(|l| f64::from(l.index[i]));
        }
        let facts = load.and_then(|l| l.facts.as_ref());
        match name {
            "slots" => return Some(self.slots),
            "maxslots" => return Some(self.max_slots),
            "rexpri" => return Some(f64::from(self.def.rexpri)),
            "cpuf" => return facts.map(|f| f.cpu_factor),
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

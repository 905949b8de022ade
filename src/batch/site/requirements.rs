//! Requirements: the resource names of this cluster, and the joined requirement of a job and its
//! queue.

use crate::batch::state::names::{Id, ResourceId};
use crate::conf::types::{BaseConf, BatchParams, RawParam, ResourceDef, ResourceKind};
use crate::lang::resreq::{
    Builtins, CompoundTerm, HOST_NUMBERS, HostOrder, MAX_RUSAGE_ALTERNATIVES,
};
use crate::lang::resreq::{ResKind, ResNames, ResReq, ResReqError};
use crate::lang::resreq::{Rusage, RusageRange, RusageTerm, Simple, Syntax};
use crate::proto::lim::{INDEX_NAMES, increasing};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// The built-in indices of which a suspended job keeps what it reserved.
const KEPT: [&str; 3] = ["tmp", "swp", "mem"];

/// Bytes of the texts of requirements that are kept parsed.
const PARSED_BYTES: usize = 1 << 20;
/// Longest text that is kept parsed, bytes.
pub const LONGEST_PARSED: usize = 4 << 10;

/// Requirements by their text: very many submissions share one.
#[derive(Debug, Default)]
struct Parsed {
    all: HashMap<Box<str>, Rc<ResReq>>,
    bytes: usize,
}

/// A resource that has an id.
#[derive(Debug)]
struct Resource {
    name: String,
    /// More of it means more load.
    increasing: bool,
    /// A suspended job gives back what it reserved of it.
    release: bool,
    /// PREEMPTABLE_RESOURCES names it.
    preemptable: bool,
    /// The value is measured again and again, and shows later what a job takes or gives up.
    measured: bool,
}

/// Every resource name with its kind. A resource is resolved here once, to its id.
#[derive(Debug)]
pub struct Names {
    own: HashMap<String, ResKind>,
    ids: HashMap<String, ResourceId>,
    resources: Vec<Resource>,
    size_unit_mb: f64,
    /// Some resource is preemptable.
    preempts: bool,
    /// DEFAULT_RESREQ_ORDER, where it is given.
    default_order: Option<HostOrder>,
    parsed: RefCell<Parsed>,
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
        let (default_order, parsed) = (None, RefCell::default());
        Names { own, ids, resources, size_unit_mb, preempts: false, default_order, parsed }
    }

    /// The parameters about resources: the order of hosts for requirements without one, of which a
    /// text that cannot be read changes nothing, and the preemptable resources.
    pub fn set_params(&mut self, params: &BatchParams) {
        self.default_order = HostOrder::read(&params.default_resreq_order, &self.syntax()).ok();
        self.set_preemptable(&params.preemption.resources);
    }

    /// Jobs may be preempted for these resources; one that grows with the load, or that a suspended
    /// job does not give back, memory apart, is none of them.
    fn set_preemptable(&mut self, words: &[RawParam]) {
        for word in words.iter().map(|word| word.text.as_str()) {
            let Some(id) = self.id(word) else { continue };
            let Some(resource) = self.resources.get_mut(id.index()) else { continue };
            resource.preemptable = !resource.increasing && (resource.release || word == "mem");
            self.preempts |= resource.preemptable;
        }
    }

    /// May jobs be preempted for this resource?
    pub fn preemptable(&self, id: ResourceId) -> bool {
        self.preempts && self.resources.get(id.index()).is_some_and(|r| r.preemptable)
    }

    /// May jobs be preempted for any resource besides slots?
    pub fn preempts_resources(&self) -> bool {
        self.preempts
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

    /// Is its value measured again and again?
    pub fn measured(&self, id: ResourceId) -> bool {
        self.resources.get(id.index()).is_some_and(|r| r.measured)
    }

    fn syntax(&self) -> Syntax<'_> {
        // the default of the type, in tests, has no unit
        let size_unit_mb = if self.size_unit_mb > 0.0 { self.size_unit_mb } else { 1.0 };
        Syntax { names: self, size_unit_mb }
    }

    /// The ranges of RESRSV_LIMIT.
    pub fn ranges(&self, text: &str) -> Result<Vec<RusageRange>, ResReqError> {
        RusageRange::parse_all(text, &self.syntax())
    }

    pub fn parse(&self, text: &str) -> Result<ResReq, ResReqError> {
        ResReq::parse(text, &self.syntax())
    }

    /// A requirement of many jobs, which is parsed where it was not seen lately.
    pub fn parse_shared(&self, text: &str) -> Result<Rc<ResReq>, ResReqError> {
        if let Some(known) = self.parsed.borrow().all.get(text) {
            return Ok(known.clone());
        }
        let req = Rc::new(self.parse(text)?);
        if text.len() <= LONGEST_PARSED {
            let mut parsed = self.parsed.borrow_mut();
            if parsed.bytes + text.len() > PARSED_BYTES {
                *parsed = Parsed::default();
            }
            parsed.bytes += text.len();
            parsed.all.insert(text.into(), req.clone());
        }
        Ok(req)
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
        preemptable: false,
        measured: true,
    };
    let indices = INDEX_NAMES.iter().enumerate().map(|(k, name)| built_in(name, increasing(k)));
    let numbers = HOST_NUMBERS.iter().map(|name| built_in(name, false));
    let own = site.iter().map(|r| Resource {
        name: r.name.clone(),
        increasing: r.increasing.unwrap_or(false),
        release: r.release,
        preemptable: false,
        measured: r.interval.is_some(),
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

    /// A queue's requirement without what it reserves beyond RESRSV_LIMIT.
    pub fn within(mut self, ranges: &[RusageRange]) -> Req {
        for simple in self.0.simples_mut() {
            simple.rusage.take_if(|rusage| RusageRange::refused(ranges, rusage).is_some());
        }
        self
    }

    /// The requirements of which a job is started by the first that finds hosts: one entry per
    /// alternative, and within one per alternative of its rusage; never empty.
    pub fn alternatives(&self) -> Vec<Variant> {
        let all = match &self.0 {
            ResReq::Alternatives(all) => all.iter().map(|a| (&a.req, a.delay)).collect(),
            req => vec![(req, 0)],
        };
        let of_one = |(req, delay): (&ResReq, u32)| {
            by_rusage(req).into_iter().map(move |req| Variant { req, delay })
        };
        let mut all: Vec<Variant> = all.into_iter().flat_map(of_one).collect();
        all.truncate(MAX_RUSAGE_ALTERNATIVES);
        all
    }

    /// Job over application profile over queue, with the defaults: what acts.
    pub fn combined(
        job: &str,
        levels: [Option<&Req>; 2],
        hosts_asked: bool,
        names: &Names,
    ) -> Result<Req, ResReqError> {
        let job = match job.is_empty() {
            true => ResReq::default(),
            false => ResReq::clone(&*names.parse_shared(job)?),
        };
        let joined = levels.into_iter().flatten().fold(job, |job, level| job.over(&level.0));
        let joined = match &names.default_order {
            Some(order) => joined.ordered_by(order),
            None => joined,
        };
        Ok(Req(joined.with_defaults(hosts_asked)))
    }
}

/// One of the alternatives of a requirement.
#[derive(Debug, Clone, PartialEq)]
pub struct Variant {
    /// A simple or compound requirement, each part of it with one alternative of its rusage.
    pub req: ResReq,
    /// Seconds that a job must have been pending before it may be started by it.
    pub delay: u32,
}

/// A requirement once for each alternative of its rusage; of several parts, each with each.
fn by_rusage(req: &ResReq) -> Vec<ResReq> {
    match req {
        ResReq::Simple(simple) => {
            each_rusage(simple).into_iter().map(|s| ResReq::Simple(Box::new(s))).collect()
        }
        ResReq::Compound(terms) => {
            let mut all: Vec<Vec<CompoundTerm>> = vec![Vec::new()];
            for CompoundTerm { tasks, req } in terms {
                let more = each_rusage(req);
                let longer = |before: &Vec<CompoundTerm>| {
                    let with = |req: &Simple| {
                        let term = CompoundTerm { tasks: *tasks, req: req.clone() };
                        before.iter().cloned().chain([term]).collect()
                    };
                    more.iter().map(with).collect::<Vec<_>>()
                };
                all = all.iter().flat_map(longer).take(MAX_RUSAGE_ALTERNATIVES).collect();
            }
            all.into_iter().map(ResReq::Compound).collect()
        }
        // they do not nest
        ResReq::Alternatives(_) => Vec::new(),
    }
}

fn each_rusage(simple: &Simple) -> Vec<Simple> {
    let all = simple.rusage.as_ref().map_or(&[][..], |rusage| &rusage.alternatives);
    if all.len() < 2 {
        return vec![simple.clone()];
    }
    let one = |terms: &Vec<RusageTerm>| Simple {
        rusage: Some(Rusage { alternatives: vec![terms.clone()] }),
        ..simple.clone()
    };
    all.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirement_that_is_shared_is_what_its_text_says_however_many_came_before() {
        let names = Names::new(&BaseConf::default());
        for n in 0..50_000 {
            let text = format!("select[mem>{}] rusage[mem={}]", n % 50_000, n % 7);
            assert_eq!(*names.parse_shared(&text).unwrap(), names.parse(&text).unwrap());
            let parsed = names.parsed.borrow();
            assert!(parsed.bytes <= PARSED_BYTES, "{} bytes", parsed.bytes);
            assert_eq!(parsed.bytes, parsed.all.keys().map(|text| text.len()).sum::<usize>());
        }
        assert!(Rc::ptr_eq(
            &names.parse_shared("select[mem>1]").unwrap(),
            &names.parse_shared("select[mem>1]").unwrap()
        ));
        let before = names.parsed.borrow().bytes;
        assert!(names.parse_shared("select[mem>").is_err());
        assert!(names.parse_shared(&format!("select[mem>1{}]", " ".repeat(5000))).is_ok());
        assert_eq!(names.parsed.borrow().bytes, before);
    }
}

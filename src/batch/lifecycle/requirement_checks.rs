//! Checks of a resource requirement at submission, and when it is changed: what it reserves against
//! RESRSV_LIMIT, compute units, tasks of compound requirements.

use crate::batch::Mbatchd;
use crate::batch::site::Queue;
use crate::batch::site::requirements::Req;
use crate::batch::step::Checked;
use crate::conf::types::ExclusiveUnitType;
use crate::lang::resreq::{Cu, ResReq, ResReqError, RusageRange, Simple, Tile};
use crate::model::job::JobSpec;
use crate::model::reason::err;
use crate::proto::Refusal;
use std::collections::BTreeSet;
use std::rc::Rc;

impl Mbatchd {
    /// The slots of a submission without -n are the tasks of its compound requirement.
    pub(crate) fn tasks_of_requirement(&self, spec: &mut JobSpec) {
        if spec.min_slots > 0 || !spec.res_req.contains('{') {
            return;
        }
        let Ok(req) = self.site.names.parse_shared(&spec.res_req) else { return };
        if let Some(tasks) = tasks_of(&req) {
            (spec.min_slots, spec.max_slots) = (tasks, tasks);
        }
    }

    /// Checks the requirement of a submission to a queue, whose slots are known.
    pub(crate) fn check_requirement(&self, spec: &JobSpec, queue: &Queue) -> Checked<()> {
        let own = match spec.res_req.is_empty() {
            true => Rc::default(),
            false => self
                .site
                .names
                .parse_shared(&spec.res_req)
                .map_err(|e| bad_requirement(&spec.res_req, &e))?,
        };
        let over = |req: Rc<ResReq>, level: &Req| Rc::new(Rc::unwrap_or_clone(req).over(&level.0));
        let application = self.site.applications.get(&spec.further.application);
        let asked = match application.and_then(|a| a.req.as_deref()) {
            Some(application) => over(own, application),
            None => own,
        };
        check_reserved(&asked, queue)?;
        let whole = match queue.req.as_deref() {
            Some(of_queue) => over(asked, of_queue),
            None => asked,
        };
        self.check_units(&whole, queue)?;
        check_tasks(&whole, spec)?;
        check_host_count(&whole, spec, queue)
    }

    fn check_units(&self, req: &ResReq, queue: &Queue) -> Checked<()> {
        let compound = !matches!(req, ResReq::Simple(_));
        for cu in req.simples().into_iter().filter_map(|simple| simple.cu.as_ref()) {
            let about = |text: String| Err(Refusal::about(err::BAD_RESREQ, text));
            let units = &self.site.units;
            let Some(level) = units.level(cu.kind.as_deref()) else {
                let known: Vec<&str> = units.kinds().collect();
                let known = match known.is_empty() {
                    true => "COMPUTE_UNIT_TYPES defines none".to_owned(),
                    false => format!("the types are {}", known.join(", ")),
                };
                let name = cu.kind.as_deref().unwrap_or("(default)");
                return about(format!("{name}: unknown type of compute units; {known}"));
            };
            if compound && (cu.excl || cu.balance) {
                let word = if cu.excl { "excl" } else { "balance" };
                let text = "of cu[] is not supported in compound and alternative requirements";
                return about(format!("{word} {text}"));
            }
            if cu.excl && !self.takes_units(queue, level) {
                return Err(Refusal::about(err::EXCLUSIVE, &queue.conf.name));
            }
            check_preference(cu).map_or(Ok(()), about)?;
        }
        Ok(())
    }

    /// May jobs of a queue have units of a type for themselves? EXCLUSIVE=CU[type] names the
    /// coarsest type.
    fn takes_units(&self, queue: &Queue, level: usize) -> bool {
        let coarsest = match &queue.conf.exclusive_units {
            ExclusiveUnitType::No => None,
            ExclusiveUnitType::DefaultType => self.site.units.level(None),
            ExclusiveUnitType::Type(name) => self.site.units.level(Some(name)),
        };
        coarsest.is_some_and(|coarsest| level <= coarsest)
    }
}

/// Preferences that do not go together.
fn check_preference(cu: &Cu) -> Option<String> {
    let bestfit = cu.pref.as_deref() == Some("bestfit");
    (bestfit && cu.balance).then(|| "pref=bestfit and balance of cu[] exclude each other".into())
}

/// Checks that the reservations of job and application profile are within RESRSV_LIMIT.
fn check_reserved(asked: &ResReq, queue: &Queue) -> Checked<()> {
    let simples = asked.simples();
    let mut reserved = simples.iter().filter_map(|simple| simple.rusage.as_ref());
    match reserved.find_map(|rusage| RusageRange::refused(&queue.ranges, rusage)) {
        Some(resource) => Err(Refusal::about(err::QUEUE_RESERVATION, resource)),
        None => Ok(()),
    }
}

/// The tasks of all parts of a compound requirement; `None`: it has none, or they are open.
fn tasks_of(req: &ResReq) -> Option<u32> {
    match req {
        ResReq::Simple(_) => None,
        ResReq::Compound(terms) => {
            terms.iter().try_fold(0, |sum: u32, term| sum.checked_add(term.tasks?))
        }
        ResReq::Alternatives(all) => {
            let first = tasks_of(&all.first()?.req);
            first.filter(|_| all.iter().all(|alternative| tasks_of(&alternative.req) == first))
        }
    }
}

/// The tasks of a compound requirement are those of the job.
fn check_tasks(req: &ResReq, spec: &JobSpec) -> Checked<()> {
    let terms = match req {
        ResReq::Simple(_) => return Ok(()),
        ResReq::Alternatives(all) => {
            return all.iter().try_for_each(|alternative| check_tasks(&alternative.req, spec));
        }
        ResReq::Compound(terms) => terms,
    };
    let given = terms.iter().filter_map(|term| term.tasks);
    let given: u64 = given.map(u64::from).sum();
    let open = terms.iter().any(|term| term.tasks.is_none());
    let (min, max) = (u64::from(spec.min_slots), u64::from(spec.max_slots));
    let fits = if open { given <= max } else { min <= given && given <= max };
    match fits {
        true => Ok(()),
        false => {
            let of_job = if min == max { min.to_string() } else { format!("{min} to {max}") };
            let text = format!("{given} tasks in the parts, {of_job} by -n");
            Err(Refusal::about(err::BAD_RESREQ, text))
        }
    }
}

/// HOSTLIMIT_PER_JOB, as far as the submission says how many hosts the job needs.
fn check_host_count(req: &ResReq, spec: &JobSpec, queue: &Queue) -> Checked<()> {
    let Some(limit) = queue.conf.tasks.hosts else { return Ok(()) };
    let named: BTreeSet<&str> = spec.further.host_lines.iter().map(|(host, _)| &**host).collect();
    let needed = match named.is_empty() {
        true => least_hosts(req, spec.min_slots.max(1)),
        false => named.len() as u64,
    };
    if needed <= u64::from(limit) {
        return Ok(());
    }
    let name = &queue.conf.name;
    let text = format!(
        "Too many hosts requested: {needed}; HOSTLIMIT_PER_JOB of queue <{name}> is {limit}"
    );
    Err(Refusal::text(err::HOST_LIMIT, text))
}

/// The hosts that a job of so many tasks needs at least, whatever these are. A part of a compound
/// requirement counts one where its span[] says nothing, of alternatives the fewest count.
fn least_hosts(req: &ResReq, tasks: u32) -> u64 {
    match req {
        ResReq::Simple(simple) => hosts_of_span(simple, tasks),
        ResReq::Compound(terms) => {
            let given = terms.iter().filter_map(|term| term.tasks).fold(0, u32::saturating_add);
            let rest = tasks.saturating_sub(given);
            let hosts = terms.iter().map(|term| match term.tasks.unwrap_or(rest) {
                0 => 0,
                tasks => hosts_of_span(&term.req, tasks),
            });
            hosts.fold(0, u64::saturating_add)
        }
        ResReq::Alternatives(all) => {
            let hosts = all.iter().map(|alternative| least_hosts(&alternative.req, tasks));
            hosts.min().unwrap_or(1)
        }
    }
}

fn hosts_of_span(simple: &Simple, tasks: u32) -> u64 {
    let most = simple.span.as_ref().and_then(|span| match (span.ptile, span.stripe) {
        (Some(Tile::Tasks(tile)), _) => {
            span.ptile_by.iter().map(|(_, tile)| *tile).chain([tile]).max()
        }
        (None, Some(limit)) => limit,
        _ => None,
    });
    most.map_or(1, |most| u64::from(tasks.div_ceil(most.max(1)).max(1)))
}

/// A resource requirement that cannot be read: which name or sign, and where.
pub(crate) fn bad_requirement(text: &str, e: &ResReqError) -> Refusal {
    Refusal::about(err::BAD_RESREQ, e.place(text))
}

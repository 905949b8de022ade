//! Counts the reservations anew from the started elements, in the plainest way, and compares.

use crate::batch::site::Site;
use crate::batch::site::reservation_methods::ReservationMethod;
use crate::batch::state::names::{HostId, QueueId};
use crate::batch::state::{ElemState, Phase, Run, State};
use crate::batch::usage::preemptions::Preemptions;
use crate::batch::usage::reserve::ledger::Reserve;
use crate::lang::resreq::{ResReq, RusageTerm, Simple};
use crate::model::JobRef;
use crate::model::reason::susp;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Sums of a host's resources differ by no more than this part of them.
const TOLERANCE: f64 = 1e-6;
/// KB in a MB.
const MB: f64 = 1024.0;

/// The amounts by host and resource: reserved by all, and the part that the measured value does not
/// show.
type Sums = BTreeMap<(HostId, String), (f64, f64)>;

/// The tasks and the reservations of one part of a requirement.
type AuditedPart = (Option<u32>, Vec<RusageTerm>);

/// The values that the recount reads.
struct Audit<'a> {
    reserve: &'a Reserve,
    state: &'a State,
    site: &'a Site,
    preemptions: &'a Preemptions,
}

impl Reserve {
    /// Are the reservations of all hosts what the started elements reserve? Else where they are
    /// not. Looks at every started element.
    pub fn audit(
        &self,
        state: &State,
        site: &Site,
        preemptions: &Preemptions,
    ) -> Result<(), String> {
        let audit = Audit { reserve: self, state, site, preemptions };
        audit.recount()?;
        audit.recount_vacated()
    }
}

impl Audit<'_> {
    fn recount(&self) -> Result<(), String> {
        let mut sums = Sums::new();
        let shared: Vec<_> =
            crate::batch::usage::reserve::instances(&self.site.conf.base).collect();
        let started: BTreeSet<JobRef> = self.state.counts().started().collect();
        let mut parts: HashMap<&str, Vec<AuditedPart>> = HashMap::new();
        for at in started {
            let job = self.state.job(at.job);
            let elem = job.and_then(|job| job.elem(at.idx));
            let text = job.zip(elem).and_then(|(job, e)| job.effective_requirement(e));
            match elem.map(|e| &e.state) {
                Some(ElemState::Run(run)) => {
                    let text: &str = text.map_or("", |text| text);
                    let parts = parts.entry(text).or_insert_with(|| self.audit_parts(text));
                    let mut next = 0;
                    for (number, (tasks, terms)) in parts.iter().enumerate() {
                        let of_part = self.audit_slots(run, &mut next, *tasks);
                        let of_run = (&**run, of_part, number == 0);
                        self.audit_run(of_run, terms, &shared, &mut sums);
                    }
                }
                _ => return Err(format!("job <{at}> is counted on a host and does not run")),
            }
        }
        let names = &self.site.names;
        for i in self.site.hosts.ids() {
            for (id, name) in names.all() {
                let (all, unseen) = sums.remove(&(i, name.to_owned())).unwrap_or_default();
                let reserved = self.reserve.on(i);
                let kept = (reserved.all(id).unwrap_or(0.0), reserved.unseen(id));
                let same = |a: f64, b: f64| (a - b).abs() <= TOLERANCE * a.abs().max(1.0);
                if !same(all, kept.0) || !same(unseen, kept.1) {
                    let host = self.state.names().host(i);
                    return Err(format!(
                        "{name} of {host}: reserved {kept:?} (all, not measured), by the jobs \
                         {all:?} and {unseen:?}"
                    ));
                }
            }
        }
        match sums.first_key_value() {
            Some(((_, name), _)) => Err(format!("{name} is reserved and has no id")),
            None => Ok(()),
        }
    }

    /// Is a reservation of a resource that PREEMPTABLE_RESOURCES names, without a duration?
    fn is_preemptable(&self, term: &RusageTerm) -> bool {
        let mut named = self.site.params().preemption.resources.iter();
        term.phases.iter().all(|phase| phase.duration.is_none())
            && named.any(|word| word.text == term.res)
    }

    /// Is what preempted elements hold of preemptable resources what they reserve?
    fn recount_vacated(&self) -> Result<(), String> {
        let shared: Vec<_> =
            crate::batch::usage::reserve::instances(&self.site.conf.base).collect();
        let (mut all, mut told) = (Sums::new(), BTreeMap::new());
        let started: BTreeSet<JobRef> = self.state.counts().started().collect();
        for at in started {
            let Some(of) = self.preemptions.preempted_by(at) else { continue };
            let Some(job) = self.state.job(at.job) else { continue };
            let Some(elem) = job.elem(at.idx) else { continue };
            let ElemState::Run(run) = &elem.state else { continue };
            let text = job.effective_requirement(elem).map_or("", |text| text);
            let mut next = 0;
            for (number, (tasks, terms)) in self.audit_parts(text).into_iter().enumerate() {
                let of_part = self.audit_slots(run, &mut next, tasks);
                let terms: Vec<_> = terms.into_iter().filter(|t| self.is_preemptable(t)).collect();
                let mut own = Sums::new();
                self.audit_run((run, of_part, number == 0), &terms, &shared, &mut own);
                for ((host, name), (amount, unseen)) in own {
                    all.entry((host, name.clone())).or_default().1 += unseen;
                    if of.told {
                        *told.entry((host, name, of.queue)).or_insert(0.0) += amount;
                    }
                }
            }
        }
        self.compare_vacated(&all, &told)
    }

    fn compare_vacated(
        &self,
        all: &Sums,
        told: &BTreeMap<(HostId, String, QueueId), f64>,
    ) -> Result<(), String> {
        let same = |a: f64, b: f64| (a - b).abs() <= TOLERANCE * a.abs().max(1.0);
        for word in &self.site.params().preemption.resources {
            let Some(id) = self.site.names.id(&word.text) else { continue };
            for host in self.site.hosts.ids() {
                let unseen = all.get(&(host, word.text.clone())).map_or(0.0, |sum| sum.1);
                let kept = self.reserve.vacated_unseen(host, id);
                let wrong = self.site.queues.iter().find(|queue| {
                    let own = told.get(&(host, word.text.clone(), queue.id));
                    let kept = self.reserve.vacated_for(host, id, &[queue.id]);
                    !same(own.copied().unwrap_or(0.0), kept)
                });
                if !same(unseen, kept) || wrong.is_some() {
                    let (host, name) = (self.state.names().host(host), &word.text);
                    let of = wrong.map(|queue| queue.conf.name.as_str());
                    return Err(format!(
                        "{name} of {host}: preempted jobs hold {unseen}, not {kept}, or in queue \
                         {of:?} what {told:?} says"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Adds what a started element reserves.
    fn audit_run(
        &self,
        (run, slots, first): (&Run, Vec<HostId>, bool),
        terms: &[RusageTerm],
        shared: &[(String, Vec<String>)],
        sums: &mut Sums,
    ) {
        let stopped = matches!(run.phase, Phase::Ssusp(_) | Phase::Ususp(_));
        let preempted = run.phase == Phase::Ssusp(susp::PREEMPTED);
        let mut hosts: Vec<(HostId, u32)> = Vec::new();
        for slot in slots.into_iter().filter(|host| self.site.hosts.contains(*host)) {
            match hosts.iter_mut().find(|host| host.0 == slot) {
                Some(host) => host.1 += 1,
                None => hosts.push((slot, 1)),
            }
        }
        let elapsed = u64::try_from(self.reserve.now() - run.start_time).unwrap_or(0);
        let own = &self.site.conf.base.shared.resources;
        for term in terms {
            let def = own.iter().find(|r| r.name == term.res);
            let kept = matches!(term.res.as_str(), "tmp" | "swp" | "mem");
            let stays = preempted && self.is_preemptable(term);
            if stopped && !stays && def.map_or(!kept, |r| r.release) {
                continue;
            }
            let mut done: Vec<HostId> = Vec::new();
            for (n, &(i, slots)) in hosts.iter().enumerate() {
                let method = self.site.reservation_method(term);
                let each = method == ReservationMethod::PerTask;
                let amount = term.amount_at(elapsed) * if each { f64::from(slots) } else { 1.0 };
                let once = method == ReservationMethod::PerInstance && done.contains(&i);
                if amount <= 0.0 || (method == ReservationMethod::PerJob && n > 0) || once {
                    continue;
                }
                let used = self.reserve.unmeasured(run.key.job_ref());
                let used = used.unwrap_or(run.soft.usage.mem_kb) as f64 / MB;
                let seen =
                    if term.res == "mem" && n == 0 && first { used.min(amount) } else { 0.0 };
                let host = self.state.names().host(i);
                let mut instances = shared.iter().filter(|s| s.0 == term.res);
                let instance = instances.find(|s| s.1.iter().any(|h| **h == **host));
                let all = instance.map_or(vec![i], |s| {
                    s.1.iter().filter_map(|host| self.site.host_id(host)).collect()
                });
                for k in all {
                    let sum = sums.entry((k, term.res.clone())).or_default();
                    sum.0 += amount;
                    sum.1 += amount - seen;
                    done.push(k);
                }
            }
        }
    }

    /// The next slots of a run: one entry a slot.
    fn audit_slots(&self, run: &Run, next: &mut usize, tasks: Option<u32>) -> Vec<HostId> {
        let order = run.task_order.as_deref().unwrap_or(&run.hosts);
        let each = |(host, slots): &(HostId, u32)| std::iter::repeat_n(*host, *slots as usize);
        let all = order.iter().flat_map(each).skip(*next);
        let taken: Vec<HostId> = all.take(tasks.map_or(usize::MAX, |n| n as usize)).collect();
        *next += taken.len();
        taken
    }

    fn audit_parts(&self, requirement: &str) -> Vec<AuditedPart> {
        let terms = |simple: &Simple| {
            simple.rusage.as_ref().map_or(Vec::new(), |rusage| rusage.terms().to_vec())
        };
        match self.site.names.parse(requirement).ok() {
            Some(ResReq::Compound(all)) => {
                all.iter().map(|term| (term.tasks, terms(&term.req))).collect()
            }
            req => {
                let simple = req.as_ref().and_then(|req| req.first());
                simple.map(|simple| (None, terms(simple))).into_iter().collect()
            }
        }
    }
}

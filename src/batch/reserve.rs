//! Resources of hosts that running jobs reserve (rusage), and what is left of them.
//!
//! The scheduler sees a load index as measured less what is reserved (more, where more is more
//! loaded), a static number less what is reserved. A resource that hosts share is reserved once for
//! a job on all of them. Memory that a job has come to use is in the measured value already and is
//! not taken away twice. A suspended job gives back what RELEASE says; memory it keeps. Soft state:
//! derived from the jobs.

use super::names::HostId;
use super::state::{ElemState, Phase, Run};
use super::{Cx, Mbd};
use crate::conf::types::{BaseConf, ResourceKind};
use crate::lang::resreq::{Per, RusageTerm, Simple};
use crate::lim::facts;
use crate::model::JobRef;
use crate::model::idmap::IdMap;
use crate::proto::lim::{HostLoad, INDEX_NAMES, increasing};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// The built-in indices of which a suspended job keeps what it reserved.
const KEPT: [&str; 3] = ["tmp", "swp", "mem"];
/// Bits of a reason below the number of the resource that it is about.
const RESOURCE_SHIFT: u32 = 16;
/// KB in a MB.
const MB: f64 = 1024.0;

/// The reservation of one resource on one host.
#[derive(Clone, Debug, PartialEq)]
pub struct Taken {
    pub res: String,
    /// By all jobs.
    pub all: f64,
    /// Of that, what the measured value does not show yet.
    pub unseen: f64,
}

/// The requirement of a started element, and what it reserves by it.
#[derive(Clone, Debug)]
struct Held {
    req: Arc<str>,
    terms: Rc<[RusageTerm]>,
}

/// Hosts that share an instance of a resource.
#[derive(Debug)]
struct Shared {
    res: String,
    hosts: Vec<HostId>,
}

#[derive(Debug, Default)]
pub struct Reserve {
    /// Elements that reserve something while they run.
    held: BTreeMap<JobRef, Held>,
    /// The entry made last: jobs of a class mostly follow each other.
    last: Option<Held>,
    shared: Vec<Shared>,
    /// By host; none where nothing is reserved.
    hosts: IdMap<HostId, Vec<Taken>>,
}

impl Reserve {
    /// Knows which of these hosts share what.
    pub fn new(base: &BaseConf, host_id: impl Fn(&str) -> Option<HostId>) -> Reserve {
        let fixed = facts::shared_rows(base).into_iter().map(|r| (r.name, r.hosts));
        let moving = facts::dynamic_instances(base).into_iter();
        let moving = moving.filter(|i| i.reporter != facts::Reporter::Each);
        let all = fixed.chain(moving.map(|i| (i.resource, i.hosts)));
        let shared = all.filter(|(_, hosts)| hosts.len() > 1).map(|(res, hosts)| Shared {
            res,
            hosts: hosts.iter().filter_map(|h| host_id(h)).collect(),
        });
        Reserve { shared: shared.collect(), ..Reserve::default() }
    }

    /// Is there a resource that hosts share?
    pub fn shares_any(&self) -> bool {
        !self.shared.is_empty()
    }

    /// The reservations on a host.
    pub fn on(&self, i: HostId) -> &[Taken] {
        self.hosts.get(&i).map_or(&[], Vec::as_slice)
    }

    /// The hosts on which a resource of host `i` is the same.
    fn shares(&self, res: &str, i: HostId) -> Option<&[HostId]> {
        let same = |s: &&Shared| s.res == res && s.hosts.contains(&i);
        self.shared.iter().find(same).map(|s| s.hosts.as_slice())
    }

    fn add(&mut self, i: HostId, res: &str, all: f64, unseen: f64) {
        let row = self.hosts.entry(i).or_default();
        match row.iter_mut().find(|t| t.res == res) {
            Some(t) => {
                t.all += all;
                t.unseen += unseen;
            }
            None => row.push(Taken { res: res.to_owned(), all, unseen }),
        }
    }
}

/// A value as reservations leave it.
pub fn left(taken: &[Taken], res: &str, value: f64, up: bool) -> f64 {
    let unseen = taken.iter().find(|t| t.res == res).map_or(0.0, |t| t.unseen);
    if up { value + unseen } else { (value - unseen).max(0.0) }
}

impl Mbd {
    /// Does more of this resource mean more load?
    pub(crate) fn more_is_loaded(&self, res: &str) -> bool {
        match INDEX_NAMES.iter().position(|n| *n == res) {
            Some(k) => increasing(k),
            None => {
                let own = self.pol.conf.base.shared.resources.iter().find(|r| r.name == res);
                own.and_then(|r| r.increasing).unwrap_or(false)
            }
        }
    }

    /// Does a suspended job give back what it reserved of this?
    fn released(&self, res: &str) -> bool {
        let own = self.pol.conf.base.shared.resources.iter().find(|r| r.name == res);
        own.map_or(!KEPT.contains(&res), |r| r.release)
    }

    /// Notes whether an element that changed reserves anything.
    pub(crate) fn reserve_touched(&mut self, at: JobRef) {
        let run = self.st.elem(at).and_then(|e| match &e.state {
            ElemState::Run(run) => Some(run),
            _ => None,
        });
        if let Some(run) = run.filter(|r| r.eff_res_req.contains("rusage[")) {
            let req = run.eff_res_req.clone();
            let same = |held: &&Held| Arc::ptr_eq(&held.req, &req) || held.req == req;
            if self.reserve.held.get(&at).filter(same).is_some() {
                return;
            }
            let held = match self.reserve.last.as_ref().filter(same) {
                Some(held) => held.clone(),
                None => Held { terms: self.terms(&req).into(), req },
            };
            self.reserve.last = Some(held.clone());
            self.reserve.held.insert(at, held);
        } else if !self.reserve.held.is_empty() {
            self.reserve.held.remove(&at);
        }
    }

    /// Finds the holders anew, with a new policy or a new state.
    pub(crate) fn reserve_rebuilt(&mut self) {
        self.reserve = Reserve::new(&self.pol.conf.base, |name| self.pol.host_id(name));
        let hosts = self.st.counts.host.values();
        let all: Vec<JobRef> = hosts.flat_map(|h| h.jobs.iter().copied()).collect();
        all.into_iter().for_each(|at| self.reserve_touched(at));
    }

    /// Adds up what is reserved now.
    pub(crate) fn reserve_sum(&mut self, cx: &Cx) {
        self.reserve.hosts.clear();
        let held = std::mem::take(&mut self.reserve.held);
        for (at, held) in &held {
            self.reserve_add(cx, *at, &held.terms);
        }
        self.reserve.held = held;
    }

    /// Adds what a job that was just dispatched reserves.
    pub(crate) fn reserve_started(&mut self, cx: &Cx, at: JobRef, simple: Option<&Simple>) {
        if let Some(rusage) = simple.and_then(|s| s.rusage.as_ref()) {
            self.reserve_add(cx, at, rusage.terms());
        }
    }

    fn terms(&self, text: &str) -> Vec<RusageTerm> {
        let req = self.pol.names.parse(text).ok();
        let simple = req.as_ref().and_then(|r| r.first());
        simple.and_then(|s| s.rusage.as_ref()).map_or(Vec::new(), |r| r.terms().to_vec())
    }

    fn reserve_add(&mut self, cx: &Cx, at: JobRef, terms: &[RusageTerm]) {
        let Some(ElemState::Run(run)) = self.st.elem(at).map(|e| &e.state) else { return };
        let stopped = matches!(run.phase, Phase::Ssusp(_) | Phase::Ususp(_));
        let hosts = self.hosts_of(run);
        let used = run.soft.usage.mem_kb as f64 / MB;
        let elapsed = u64::try_from(cx.now.secs() - run.start_time).unwrap_or(0);
        for term in terms {
            if stopped && self.released(&term.res) {
                continue;
            }
            let amount = term.amount_at(elapsed);
            let mut done: Vec<HostId> = Vec::new();
            for (n, &(i, slots)) in hosts.iter().enumerate() {
                let each = self.per_task(term);
                let amount = if each { amount * f64::from(slots) } else { amount };
                let shares = self.reserve.shares(&term.res, i).map(<[HostId]>::to_vec);
                // once for the job: on its first host, or of the instance that its hosts share
                let job = term.per == Per::Job && n > 0;
                if amount <= 0.0 || job || (!each && done.contains(&i)) {
                    continue;
                }
                let seen = if term.res == "mem" && n == 0 { used.min(amount) } else { 0.0 };
                for k in shares.unwrap_or_else(|| vec![i]) {
                    self.reserve.add(k, &term.res, amount, amount - seen);
                    done.push(k);
                }
            }
        }
    }

    fn hosts_of(&self, run: &Run) -> Vec<(HostId, u32)> {
        run.hosts.iter().copied().filter(|h| self.net.hosts.contains(h.0)).collect()
    }

    fn per_task(&self, term: &RusageTerm) -> bool {
        match term.per {
            Per::Task => true,
            Per::Unsaid => self.pol.params().resource_reserve_per_task,
            Per::Host | Per::Job => false,
        }
    }

    /// A reason of the scheduler as it is told: its code, and the resource that it is about.
    pub(crate) fn reason_told(&self, reason: u32) -> (u32, &str) {
        let (code, n) = (reason & ((1 << RESOURCE_SHIFT) - 1), reason >> RESOURCE_SHIFT);
        let resource = (n as usize).checked_sub(1);
        let all = &self.pol.conf.base.shared.resources;
        (code, resource.and_then(|n| all.get(n)).map_or("", |r| &r.name))
    }

    /// A host's load as the scheduler sees it: with what is reserved.
    pub(crate) fn as_scheduled(&self, i: HostId, mut load: HostLoad) -> HostLoad {
        let taken = self.reserve.on(i);
        for (k, name) in INDEX_NAMES.iter().enumerate() {
            load.index[k] = left(taken, name, f64::from(load.index[k]), increasing(k)) as f32;
        }
        let shared = load.facts.as_mut().map_or(&mut [][..], |f| &mut f.shared);
        for (name, value) in load.external.iter_mut().chain(shared) {
            if let Ok(v) = value.parse::<f64>()
                && taken.iter().any(|t| t.res == *name)
            {
                *value = left(taken, name, v, self.more_is_loaded(name)).to_string();
            }
        }
        load
    }

    /// Reservations of a host that bhosts shows: built-in indices in their order, others by name.
    pub(crate) fn reserved_shown(&self, i: HostId) -> (Vec<f64>, Vec<(String, String)>) {
        let taken = self.reserve.on(i);
        let of = |name: &str| taken.iter().find(|t| t.res == name).map(|t| t.all);
        let built = INDEX_NAMES.iter().map(|n| of(n).unwrap_or(0.0)).collect();
        let own = self.pol.conf.base.shared.resources.iter();
        let own = own.filter(|r| r.kind == ResourceKind::Numeric);
        let row = |name: &String| Some((name.clone(), format!("{:.1}", of(name)?)));
        (built, own.filter_map(|r| row(&r.name)).collect())
    }
}

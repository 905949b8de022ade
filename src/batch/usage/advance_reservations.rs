//! Advance reservations as of now: which are active, the slots that each keeps on its hosts, those
//! that its jobs use, and those of other jobs that are suspended for it. The reservations
//! themselves are in the state; here they are compiled, and looked at when one begins or ends.
//!
//! With no reservation, and no job of one, nothing here costs anything.

use crate::batch::site::Site;
use crate::batch::state::change::{Change, ChangeKind};
use crate::batch::state::names::HostId;
use crate::batch::state::{Elem, ElemState, Phase, State};
use crate::lang::occurrences::{Occurrences, Period};
use crate::model::idmap::IdMap;
use crate::model::reason::{PendReason, susp};
use crate::model::reservation::{Reservation, ReservationKind, ReservationTime};
use crate::model::{JobRef, Now};
use jiff::tz::TimeZone;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Longest time between two looks, seconds: clocks may be set, and zones changed.
const LOOK_SECS: u64 = 600;

/// A reservation on one of its hosts.
#[derive(Debug)]
struct OnHost {
    id: Arc<str>,
    slots: u64,
    /// No job may be started there while it is active.
    system: bool,
    active: bool,
    /// The begin of its next period, seconds since the epoch.
    begins: Option<i64>,
    /// Queues whose jobs may run into it.
    queues: Arc<Reservation>,
}

/// A reservation that is known to the configuration and the state.
#[derive(Debug)]
struct Compiled {
    def: Arc<Reservation>,
    hosts: Vec<(HostId, u64)>,
    /// The period that holds now.
    period: Option<Period>,
    next: Option<Period>,
}

/// A started element of a reservation, or one that is suspended for one.
#[derive(Debug, PartialEq, Eq)]
struct Holding {
    /// Empty: of none.
    id: Box<str>,
    hosts: Vec<(HostId, u64)>,
    suspended: bool,
}

/// Does a reservation come again?
fn is_weekly(def: &Reservation) -> bool {
    matches!(def.time, ReservationTime::Weekly(_))
}

/// The outcome of a look.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ReservationLook {
    /// A reservation has begun or ended, or reservations are new.
    pub changed: bool,
    /// The IDs of reservations that are over for good.
    pub over: Vec<String>,
    /// The IDs of those that come again, with a period that is over.
    pub passed: Vec<(String, Period)>,
}

#[derive(Debug, Default)]
pub struct AdvanceReservations {
    all: BTreeMap<Box<str>, Compiled>,
    hosts: IdMap<HostId, Vec<OnHost>>,
    elements: BTreeMap<JobRef, Holding>,
    /// The reservation of each job of one, and the jobs of each.
    of_job: IdMap<u32, Box<str>>,
    jobs: BTreeMap<Box<str>, BTreeSet<u32>>,
    /// Slots that the jobs of a reservation use on a host.
    used: BTreeMap<Box<str>, BTreeMap<HostId, u64>>,
    /// Elements on each host that are suspended for reservations, with their slots there.
    suspended: BTreeMap<HostId, BTreeMap<JobRef, u64>>,
    /// Hosts with suspended elements on which slots may have become free.
    freed: BTreeSet<HostId>,
    /// Reservations whose jobs may lack slots that other jobs use.
    short: BTreeSet<Box<str>>,
    stale: bool,
    /// The last look, seconds since the epoch.
    looked: i64,
    next: Option<i64>,
    timer: Option<u64>,
}

impl AdvanceReservations {
    /// Is there neither a reservation nor a job of one?
    pub fn is_empty(&self) -> bool {
        self.all.is_empty() && self.elements.is_empty() && self.of_job.is_empty()
    }

    /// The jobs of a reservation that are in memory, by ID.
    pub fn jobs_of(&self, id: &str) -> impl Iterator<Item = u32> {
        self.jobs.get(id).into_iter().flatten().copied()
    }

    /// Notes the reservation of a job that is new or changed, or that it has gone.
    pub(crate) fn note_job(&mut self, state: &State, job: u32) {
        let now = state.job(job).map_or("", |job| &*job.spec.further.reservation);
        let was = self.of_job.get(&job).map_or("", |id| &**id);
        if now == was {
            return;
        }
        if let Some(id) = self.of_job.remove(&job)
            && let Some(all) = self.jobs.get_mut(&id)
        {
            all.remove(&job);
            if all.is_empty() {
                self.jobs.remove(&id);
            }
        }
        if !now.is_empty() {
            self.of_job.insert(job, now.into());
            self.jobs.entry(now.into()).or_default().insert(job);
        }
    }

    pub fn deadline(&self) -> Option<u64> {
        match self.stale || !self.freed.is_empty() || !self.short.is_empty() {
            true => Some(0),
            false => self.timer,
        }
    }

    /// Is there something to be done now?
    pub(crate) fn is_due(&self, now: Now) -> bool {
        self.look_due(now) || !self.freed.is_empty() || !self.short.is_empty()
    }

    /// May a reservation have begun or ended?
    fn look_due(&self, now: Now) -> bool {
        let secs = now.secs();
        let set_back = self.timer.is_some() && secs < self.looked;
        let passed = self.next.is_some_and(|t| t <= secs) || set_back;
        self.stale || passed || self.timer.is_some_and(|t| t <= now.mono_us)
    }

    /// Look again at the next turn.
    pub fn renew(&mut self) {
        self.stale = true;
    }

    /// Everything anew, with another state or another configuration.
    pub(crate) fn of_all(state: &State) -> AdvanceReservations {
        let stale = !state.reservations().is_empty();
        let mut all = AdvanceReservations { stale, ..AdvanceReservations::default() };
        state.counts().started().for_each(|at| all.refresh(state, at));
        state.each_job().for_each(|job| all.note_job(state, job.id));
        all
    }

    /// Looks at the reservations, if one may have begun or ended.
    pub(crate) fn look(
        &mut self,
        now: Now,
        (state, site, zone): (&State, &Site, &TimeZone),
    ) -> Option<ReservationLook> {
        if !self.look_due(now) {
            return None;
        }
        let secs = now.secs();
        let before = std::mem::take(&mut self.all);
        let mut look = ReservationLook { changed: self.stale, ..ReservationLook::default() };
        self.hosts.clear();
        self.next = None;
        for def in state.reservations().each() {
            let Some(occurrences) = Occurrences::of(def) else { continue };
            let (period, next) = (occurrences.at(secs, zone), occurrences.next(secs, zone));
            if let Occurrences::Once(once) = occurrences
                && once.end <= secs
            {
                look.over.push(def.id.clone());
            }
            let was = before.get(def.id.as_str()).and_then(|c| c.period);
            let passed = was.filter(|was| was.end <= secs && is_weekly(def));
            look.passed.extend(passed.map(|was| (def.id.clone(), was)));
            look.changed |= was.is_some() != period.is_some();
            let edges = [period.map(|p| p.end), next.map(|p| p.begin)];
            self.next = edges.into_iter().flatten().chain(self.next).min();
            let hosts: Vec<(HostId, u64)> = def
                .hosts
                .iter()
                .filter_map(|(host, slots)| Some((site.host_id(host)?, u64::from(*slots))))
                .collect();
            let id: Arc<str> = def.id.as_str().into();
            for (host, slots) in &hosts {
                self.hosts.entry(*host).or_default().push(OnHost {
                    id: id.clone(),
                    slots: *slots,
                    system: def.kind == ReservationKind::System,
                    active: period.is_some(),
                    begins: next.map(|p| p.begin),
                    queues: def.clone(),
                });
            }
            let compiled = Compiled { def: def.clone(), hosts, period, next };
            self.all.insert(def.id.as_str().into(), compiled);
        }
        self.looked = secs;
        self.stale = false;
        let instant = |t| now.mono_of_wall(t).clamp(now.mono_us + 1, now.after(LOOK_SECS));
        self.timer = self.next.map(instant);
        if look.changed {
            self.freed.extend(self.suspended.keys());
            self.short.extend(self.all.keys().cloned());
        }
        Some(look)
    }

    /// Why the jobs of a reservation do not start, whatever room there is.
    pub fn closed(&self, id: &str) -> Option<PendReason> {
        match self.all.get(id) {
            _ if id.is_empty() => None,
            None => Some(PendReason::NoReservation),
            Some(c) if c.period.is_none() => Some(PendReason::ReservationInactive),
            Some(_) => None,
        }
    }

    /// The period of a reservation that holds now, and the next one.
    pub fn periods(&self, id: &str) -> [Option<Period>; 2] {
        self.all.get(id).map_or([None; 2], |c| [c.period, c.next])
    }

    /// The hosts of an active reservation for whose jobs others are suspended.
    pub fn hosts_to_free(&self, id: &str) -> Vec<HostId> {
        let frees = |c: &&Compiled| c.period.is_some() && !c.def.no_suspension;
        let c = self.all.get(id).filter(frees);
        c.map_or(Vec::new(), |c| c.hosts.iter().map(|of| of.0).collect())
    }

    /// Slots that the jobs of a reservation use on a host.
    pub fn used(&self, id: &str, host: HostId) -> u64 {
        self.used.get(id).and_then(|all| all.get(&host)).copied().unwrap_or(0)
    }

    /// Slots of a host that a reservation has left for its jobs; `None`: it has none there at all.
    pub fn left(&self, id: &str, host: HostId) -> Option<u64> {
        let here = self.hosts.get(&host)?.iter().find(|of| &*of.id == id)?;
        Some(here.slots.saturating_sub(self.used(id, host)))
    }

    /// Slots of a host that active reservations keep for their jobs, without one of them; all
    /// where no job may be started.
    pub fn kept_now(&self, host: HostId, without: &str) -> u64 {
        let here = self.hosts.get(&host).map_or(&[][..], Vec::as_slice);
        let active = here.iter().filter(|of| of.active && &*of.id != without);
        active.fold(0, |sum, of| match of.system {
            true => u64::MAX,
            false => sum.saturating_add(of.slots.saturating_sub(self.used(&of.id, host))),
        })
    }

    /// Slots of a host of which reservations that begin before an instant keep jobs of a queue.
    pub fn kept_until(&self, host: HostId, until: i64, queue: &str) -> u64 {
        let here = self.hosts.get(&host).map_or(&[][..], Vec::as_slice);
        let coming = here.iter().filter(|of| !of.active && of.begins.is_some_and(|t| t < until));
        let barred = coming.filter(|of| !of.queues.queues.iter().any(|name| name == queue));
        barred.fold(0, |sum, of| if of.system { u64::MAX } else { sum.saturating_add(of.slots) })
    }

    /// When reservations begin that are not active, seconds since the epoch.
    pub fn begins(&self) -> impl Iterator<Item = i64> {
        let coming = self.all.values().filter(|of| of.period.is_none());
        coming.filter_map(|of| of.next.map(|period| period.begin))
    }

    /// Has any reservation slots of this host?
    pub fn on_host(&self, host: HostId) -> bool {
        !self.hosts.is_empty() && self.hosts.contains_key(&host)
    }

    /// Slots on a host of jobs that are suspended for reservations: others may have them.
    pub fn given(&self, host: HostId) -> u64 {
        match self.suspended.is_empty() {
            true => 0,
            false => self.suspended.get(&host).map_or(0, |all| all.values().sum()),
        }
    }

    /// The elements on a host that are suspended for reservations.
    pub fn suspended_on(&self, host: HostId) -> Vec<JobRef> {
        self.suspended.get(&host).map_or(Vec::new(), |all| all.keys().copied().collect())
    }

    /// The started elements of reservations.
    pub fn elements(&self) -> impl Iterator<Item = (JobRef, &str)> {
        let of_one = self.elements.iter().filter(|(_, holding)| !holding.id.is_empty());
        of_one.map(|(at, holding)| (*at, &*holding.id))
    }

    /// The reservation of a started element; empty: of none.
    pub fn of_element(&self, at: JobRef) -> &str {
        self.elements.get(&at).map_or("", |holding| &holding.id)
    }

    /// The hosts on which suspended elements may go on, since this was asked last.
    pub(crate) fn take_freed(&mut self) -> BTreeSet<HostId> {
        std::mem::take(&mut self.freed)
    }

    /// The reservations whose jobs may lack slots, since this was asked last.
    pub(crate) fn take_short(&mut self) -> BTreeSet<Box<str>> {
        std::mem::take(&mut self.short)
    }

    /// A job of a reservation waits, or has changed.
    pub(crate) fn note_waiting(&mut self, id: &str) {
        if !self.short.contains(id) && self.all.contains_key(id) {
            self.short.insert(id.into());
        }
    }

    /// Slots of a host were taken or given back.
    pub(crate) fn note_host(&mut self, host: HostId) {
        if self.suspended.contains_key(&host) {
            self.freed.insert(host);
        }
        for of in self.hosts.get(&host).into_iter().flatten().filter(|of| of.active) {
            if !self.short.contains(&*of.id) {
                self.short.insert((*of.id).into());
            }
        }
    }

    /// Follows a change of a job.
    pub(crate) fn follow(&mut self, state: &State, change: &Change) {
        let at = change.at;
        let id = state.job(at.job).map_or("", |job| &*job.spec_at(at.idx).further.reservation);
        if id.is_empty() && self.is_empty() {
            return;
        }
        self.note_job(state, at.job);
        let Some(job) = state.job(at.job) else { return };
        self.note_waiting(id);
        let all: Vec<JobRef> = match (&change.kind, job.array()) {
            (ChangeKind::Modified { .. }, Some(array)) if !self.is_empty() => {
                array.started().map(|idx| JobRef { job: at.job, idx }).collect()
            }
            _ => vec![at],
        };
        all.into_iter().for_each(|at| self.refresh(state, at));
        if let ChangeKind::Element { held, .. } = &change.kind
            && !self.is_empty()
        {
            let now = state.elem(at).and_then(Elem::run).map(|run| &run.hosts);
            let hosts = held.iter().map(|held| &held.hosts).chain(now);
            hosts.flat_map(|of| of.iter()).for_each(|of| self.note_host(of.0));
        }
    }

    /// Notes what an element that changed holds of reservations.
    pub(crate) fn refresh(&mut self, state: &State, at: JobRef) {
        let holding = holding_of(state, at);
        if self.elements.get(&at) == holding.as_ref() {
            return;
        }
        if let Some(old) = self.elements.remove(&at) {
            self.count(at, &old, false);
        }
        if let Some(new) = holding {
            self.count(at, &new, true);
            self.elements.insert(at, new);
        }
    }

    fn count(&mut self, at: JobRef, holding: &Holding, up: bool) {
        for (host, slots) in &holding.hosts {
            if holding.suspended {
                let here = self.suspended.entry(*host).or_default();
                match up {
                    true => drop(here.insert(at, *slots)),
                    false => drop(here.remove(&at)),
                }
                if here.is_empty() {
                    self.suspended.remove(host);
                }
            }
            if !holding.id.is_empty() {
                let of = self.used.entry(holding.id.clone()).or_default();
                let used = of.entry(*host).or_default();
                *used = if up { *used + slots } else { used.saturating_sub(*slots) };
                if *used == 0 {
                    of.remove(host);
                }
                if of.is_empty() {
                    self.used.remove(&holding.id);
                }
            }
        }
    }

    /// Is what is counted what the started elements hold? Else where it is not. For tests and the
    /// simulator: it looks at every started element.
    pub fn audit(&self, state: &State) -> Result<(), String> {
        let anew = AdvanceReservations::of_all(state);
        match () {
            () if self.elements != anew.elements => {
                Err(format!("reservations hold {:?}, not {:?}", self.elements, anew.elements))
            }
            () if self.jobs != anew.jobs => {
                Err(format!("jobs of reservations are {:?}, not {:?}", self.jobs, anew.jobs))
            }
            () if self.used != anew.used || self.suspended != anew.suspended => {
                Err("slots of reservations are counted wrongly".to_string())
            }
            () => Ok(()),
        }
    }
}

/// The slots of reservations that a started element holds, or has given to one.
fn holding_of(state: &State, at: JobRef) -> Option<Holding> {
    let job = state.job(at.job)?;
    let ElemState::Run(run) = &job.elem(at.idx)?.state else { return None };
    let id = &job.spec_at(at.idx).further.reservation;
    // one that is to go on has its slots back
    let suspended = run.phase == Phase::Ssusp(susp::RESERVED) && run.soft.asked != Some(0);
    if id.is_empty() && !suspended {
        return None;
    }
    let mut hosts: BTreeMap<HostId, u64> = BTreeMap::new();
    run.hosts.iter().for_each(|(host, n)| *hosts.entry(*host).or_default() += u64::from(*n));
    Some(Holding { id: id.clone(), hosts: hosts.into_iter().collect(), suspended })
}

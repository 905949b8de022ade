//! The reservations of started elements, added up where they are held: on a host, or in an
//! instance of a resource that hosts share.
//!
//! Invariants: the sums are current whenever they are read, and they are what the holders reserve
//! at that second, to the billionth. The amounts of an element are worked out from its [`Holder`]
//! alone, so that exactly these are taken away when it changes or ends. An element touches the rows
//! of its hosts only. Amounts are integers: a sum depends neither on its order nor on its history.

use crate::batch::site::Site;
use crate::batch::site::reservation_methods::ReservationMethod;
use crate::batch::state::element_table::ElementTable;
use crate::batch::state::names::{HostId, Id, ResourceId};
use crate::batch::usage::reserve::holder::{Holder, PARTS, Requirement, Sum, Term, used_mb};
use crate::batch::usage::reserve::requirements::ResolvedRequirements;
use crate::batch::usage::reserve::vacated::Vacated;
use crate::model::JobRef;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

/// A reservation whose amount depends on the time.
#[derive(Debug)]
struct Varying {
    requirement: Rc<Requirement>,
    /// The position of its term.
    term: usize,
    factor: f64,
    start_time: i64,
    /// In use, in the unit of the resource.
    used: f64,
}

impl Varying {
    fn term(&self) -> &Term {
        &self.requirement.terms[self.term]
    }
    fn at(&self, now: i64) -> Sum {
        let elapsed = u64::try_from(now - self.start_time).unwrap_or(0);
        Sum::of(self.term().rusage.amount_at(elapsed) * self.factor, self.used)
    }
}

/// The reservations of one resource in one row.
#[derive(Debug)]
struct ResourceReservations {
    resource: ResourceId,
    /// The sum of the reservations that do not depend on the time; `holders`: their number.
    steady: Sum,
    holders: u32,
    /// The amounts by element and position of the term in its requirement.
    varying: BTreeMap<(JobRef, usize), Varying>,
    /// The sum of all at a second, where some depend on the time.
    known: Cell<Option<(i64, Sum)>>,
}

impl ResourceReservations {
    fn new(resource: ResourceId) -> ResourceReservations {
        let (steady, varying) = (Sum::default(), BTreeMap::new());
        ResourceReservations { resource, steady, holders: 0, varying, known: Cell::new(None) }
    }

    fn sum(&self, now: i64) -> Sum {
        if self.varying.is_empty() {
            return self.steady;
        }
        if let Some((_, sum)) = self.known.get().filter(|known| known.0 == now) {
            return sum;
        }
        let mut sum = self.steady;
        self.varying.values().for_each(|v| sum.add(v.at(now)));
        self.known.set(Some((now, sum)));
        sum
    }
}

impl ResourceReservations {
    /// Keeps the sum of this second; one of another second is worked out anew.
    fn change_known(&mut self, now: i64, by: Sum, adds: bool) {
        let known = self.known.get_mut();
        match known {
            Some((at, sum)) if *at == now && adds => sum.add(by),
            Some((at, sum)) if *at == now => sum.take(by),
            _ => *known = None,
        }
    }
}

/// A host, or an instance of a resource that hosts share.
#[derive(Debug, Default)]
struct ReservationRow {
    entries: Vec<ResourceReservations>,
    /// The rows of the instances that a host shares, by resource; empty for an instance.
    shared: Vec<(ResourceId, usize)>,
    /// The hosts that share an instance; empty for a host.
    hosts: Vec<HostId>,
    /// Stands in [`Reserve::freed`].
    noted: bool,
    /// When it stands in [`Reserve::due`].
    due: Option<i64>,
}

impl ReservationRow {
    /// The row of the instance of a resource that a host shares with others.
    fn instance(&self, resource: ResourceId) -> Option<usize> {
        self.shared.iter().find(|shared| shared.0 == resource).map(|shared| shared.1)
    }
}

/// How many times tasks in so many slots of a host reserve the amount of a term there.
fn times_on(method: ReservationMethod, slots: u32) -> u64 {
    match method {
        ReservationMethod::PerTask => u64::from(slots),
        _ => 1,
    }
}

#[derive(Debug, Default)]
pub struct Reserve {
    /// Started elements that reserve something.
    holders: ElementTable<Holder>,
    /// Elements whose memory in use has changed since the load of their first host was heard of.
    used: BTreeSet<(HostId, JobRef)>,
    requirements: RefCell<ResolvedRequirements>,
    /// The rows of the hosts by id, and behind them those of instances that hosts share.
    rows: Vec<ReservationRow>,
    /// The resources that hosts share instances of.
    shared: BTreeSet<ResourceId>,
    /// The preemptable resources that preempted elements hold.
    pub(in crate::batch::usage::reserve) vacated: Vacated,
    /// Rows of which something may be given back, not taken yet.
    freed: Vec<usize>,
    /// When the sums of rows change by themselves.
    due: BTreeSet<(i64, usize)>,
    /// Seconds since the epoch.
    now: i64,
    /// Entries that were changed or added up.
    #[cfg(test)]
    touches: Cell<usize>,
    /// Hosts that were told to have something given back.
    #[cfg(test)]
    told: BTreeSet<HostId>,
}

/// The reservations on a host.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reserved<'a> {
    of: Option<(&'a Reserve, &'a ReservationRow)>,
}

impl Reserved<'_> {
    /// Is nothing reserved there?
    pub fn is_empty(&self) -> bool {
        self.of.is_none_or(|(_, row)| row.entries.is_empty() && row.shared.is_empty())
    }

    fn sum(&self, id: ResourceId) -> Sum {
        let Some((reserve, row)) = self.of else { return Sum::default() };
        let own = |row: &ReservationRow| {
            let entry = row.entries.iter().find(|e| e.resource == id)?;
            #[cfg(test)]
            if !entry.varying.is_empty() && entry.known.get().is_none_or(|k| k.0 != reserve.now) {
                reserve.touches.set(reserve.touches.get() + 1);
            }
            Some(entry.sum(reserve.now))
        };
        let shared = || {
            let at = row.shared.iter().find(|s| s.0 == id)?.1;
            own(&reserve.rows[at])
        };
        own(row).or_else(shared).unwrap_or_default()
    }

    /// The amount that all jobs reserve of a resource; `None`: nothing.
    pub fn all(&self, id: ResourceId) -> Option<f64> {
        Some(self.sum(id).all()).filter(|n| *n > 0).map(|n| n as f64 / PARTS)
    }

    /// The part of the reserved amount that the measured value does not show yet.
    pub fn unseen(&self, id: ResourceId) -> f64 {
        self.sum(id).unseen() as f64 / PARTS
    }
}

/// A value as reservations leave it. `up`: more of it means more load.
pub fn left(reserved: Reserved, id: ResourceId, value: f64, up: bool) -> f64 {
    match reserved.unseen(id) {
        0.0 => value,
        unseen if up => value + unseen,
        unseen => (value - unseen).max(0.0),
    }
}

impl Reserve {
    /// How many sums were changed or worked out since this was asked last, and the hosts on which
    /// something was given back.
    #[cfg(test)]
    pub(crate) fn take_touched(&mut self) -> (usize, BTreeSet<HostId>) {
        (self.touches.take(), std::mem::take(&mut self.told))
    }

    /// An empty ledger for a number of hosts, of which these share instances of resources. If a
    /// host has several instances of a resource, the first one counts.
    pub fn new(hosts: usize, instances: Vec<(ResourceId, Vec<HostId>)>, now: i64) -> Reserve {
        let mut rows: Vec<ReservationRow> = Vec::new();
        rows.resize_with(hosts, ReservationRow::default);
        let shared = instances.iter().map(|instance| instance.0).collect();
        for (resource, hosts) in instances {
            let at = rows.len();
            for host in &hosts {
                let Some(row) = rows.get_mut(host.index()) else { continue };
                if row.shared.iter().all(|s| s.0 != resource) {
                    row.shared.push((resource, at));
                }
            }
            rows.push(ReservationRow { hosts, ..ReservationRow::default() });
        }
        Reserve { rows, shared, now, ..Reserve::default() }
    }

    /// The second for which sums are read.
    pub fn set_now(&mut self, now: i64) {
        self.now = now;
    }

    pub fn now(&self) -> i64 {
        self.now
    }

    /// The reservations on a host.
    pub fn on(&self, i: HostId) -> Reserved<'_> {
        Reserved { of: self.rows.get(i.index()).map(|row| (self, row)) }
    }

    /// Do hosts share instances of a resource?
    pub fn is_shared(&self, resource: ResourceId) -> bool {
        self.shared.contains(&resource)
    }

    /// The instance of a resource that a host shares with others.
    pub fn instance(&self, host: HostId, resource: ResourceId) -> Option<usize> {
        self.rows.get(host.index())?.instance(resource)
    }

    pub fn holder(&self, at: JobRef) -> Option<&Holder> {
        self.holders.get(at)
    }

    pub fn is_empty(&self) -> bool {
        self.holders.is_empty()
    }

    /// An element uses this much memory from now on, KB.
    pub fn note_used(&mut self, at: JobRef, kb: u64) {
        let Some(holder) = self.holders.get(at) else { return };
        let measured = holder.requirement.terms.iter().any(|term| term.measured);
        if let Some((first, _)) = holder.hosts.first().filter(|_| measured) {
            match holder.used_kb == kb {
                true => self.used.remove(&(*first, at)),
                false => self.used.insert((*first, at)),
            };
        }
    }

    /// The memory, KB, that an element used when the load of its host was heard of, where it uses
    /// another amount now.
    pub fn unmeasured(&self, at: JobRef) -> Option<u64> {
        if self.used.is_empty() {
            return None;
        }
        let holder = self.holders.get(at)?;
        let first = holder.hosts.first()?.0;
        self.used.contains(&(first, at)).then_some(holder.used_kb)
    }

    /// The elements of a host that use another amount of memory than when this was asked last.
    pub fn take_used(&mut self, host: HostId) -> Vec<JobRef> {
        let last = JobRef { job: u32::MAX, idx: u32::MAX };
        let all = (host, JobRef { job: 0, idx: 0 })..=(host, last);
        let found: Vec<JobRef> = self.used.range(all).map(|used| used.1).collect();
        for at in &found {
            self.used.remove(&(host, *at));
        }
        found
    }

    /// A requirement by its text.
    pub(in crate::batch::usage::reserve) fn requirement(
        &self,
        site: &Site,
        text: &Arc<str>,
    ) -> Rc<Requirement> {
        self.requirements.borrow_mut().get(site, text)
    }

    /// How many requirements are kept resolved.
    #[cfg(test)]
    pub fn resolved(&self) -> usize {
        self.requirements.borrow().len()
    }

    /// An element reserves this from now on; `None`: nothing.
    pub fn set(&mut self, at: JobRef, holder: Option<Holder>) {
        let before = self.holders.get(at);
        if before == holder.as_ref() {
            return;
        }
        // nearly every change is the start of a job, which reserved nothing before
        if before.is_some()
            && let Some(before) = self.holders.remove(at)
        {
            self.spread_all(at, &before, false);
        }
        if let Some(holder) = holder.map(Box::new) {
            self.spread_all(at, &holder, true);
            self.holders.insert(at, holder);
        }
    }

    fn spread_all(&mut self, at: JobRef, holder: &Holder, adds: bool) {
        for (number, term) in holder.requirement.terms.iter().enumerate() {
            if !holder.gives_back(term) {
                self.spread(at, holder, (number, term), adds);
            }
        }
    }

    /// Adds what a term of an element reserves to the rows it is held in, or takes it away.
    fn spread(&mut self, at: JobRef, holder: &Holder, (number, term): (usize, &Term), adds: bool) {
        let (hosts, used) = (holder.hosts_of(term), used_mb(holder, term));
        if let &[(host, slots)] = hosts {
            let Some(row) = self.rows.get(host.index()) else { return };
            let row = row.instance(term.resource).unwrap_or(host.index());
            return self.enter(row, at, holder, (number, times_on(term.method, slots), used), adds);
        }
        for (row, times, used) in self.places(hosts, (term.resource, term.method), used) {
            self.enter(row, at, holder, (number, times, used), adds);
        }
    }

    /// The rows in which tasks on these hosts reserve a resource: how many times each, and what is
    /// in use of it, all of it on the first host.
    pub(in crate::batch::usage::reserve) fn places(
        &self,
        hosts: &[(HostId, u32)],
        (resource, method): (ResourceId, ReservationMethod),
        used: f64,
    ) -> Vec<(usize, u64, f64)> {
        let first_only = method == ReservationMethod::PerJob;
        let hosts = &hosts[..if first_only { hosts.len().min(1) } else { hosts.len() }];
        let mut places: Vec<(usize, u64, f64)> = Vec::with_capacity(hosts.len());
        for (n, &(host, slots)) in hosts.iter().enumerate() {
            let Some(row) = self.rows.get(host.index()) else { continue };
            let instance = row.instance(resource);
            let used = if n == 0 { used } else { 0.0 };
            let times = times_on(method, slots);
            let known = instance.and_then(|row| places.iter_mut().find(|place| place.0 == row));
            match known {
                Some(_) if method == ReservationMethod::PerInstance => {}
                Some(known) => known.1 += times,
                None => places.push((instance.unwrap_or(host.index()), times, used)),
            }
        }
        places
    }

    /// The hosts that share the instance of a row; none: it is the row of a host.
    pub(in crate::batch::usage::reserve) fn sharing_hosts(&self, row: usize) -> &[HostId] {
        self.rows.get(row).map_or(&[], |row| &row.hosts)
    }

    /// Adds the amount of a term so many times in one row, or takes it away; of it `used` is in
    /// use.
    fn enter(
        &mut self,
        row: usize,
        at: JobRef,
        holder: &Holder,
        (number, times, used): (usize, u64, f64),
        adds: bool,
    ) {
        let term = &holder.requirement.terms[number];
        let steady = term.steady(times, used);
        if steady.is_some_and(|sum| sum.all() == 0) {
            return;
        }
        #[cfg(test)]
        self.touches.set(self.touches.get() + 1);
        let now = self.now;
        let entries = &mut self.rows[row].entries;
        let place = match entries.iter().position(|e| e.resource == term.resource) {
            Some(place) => place,
            None => {
                entries.push(ResourceReservations::new(term.resource));
                entries.len() - 1
            }
        };
        let entry = &mut entries[place];
        match (steady, adds) {
            (Some(sum), true) => {
                entry.steady.add(sum);
                entry.change_known(now, sum, true);
                entry.holders += 1;
            }
            (Some(sum), false) => {
                entry.steady.take(sum);
                entry.change_known(now, sum, false);
                entry.holders -= 1;
            }
            (None, true) => {
                let (requirement, term) = (holder.requirement.clone(), number);
                let start_time = holder.start_time;
                let factor = times as f64;
                let varying = Varying { requirement, term, factor, start_time, used };
                entry.change_known(now, varying.at(now), true);
                entry.varying.insert((at, number), varying);
            }
            (None, false) => {
                if let Some(varying) = entry.varying.remove(&(at, number)) {
                    entry.change_known(now, varying.at(now), false);
                }
            }
        }
        if entry.holders == 0 && entry.varying.is_empty() {
            entries.swap_remove(place);
        }
        if !adds {
            self.note(row);
        }
        if steady.is_none() && adds {
            self.expect(row, term.next_change(holder.start_time, self.now));
        }
    }

    fn note(&mut self, row: usize) {
        if !std::mem::replace(&mut self.rows[row].noted, true) {
            self.freed.push(row);
        }
    }

    /// The sums of a row change by themselves at this second, or before.
    fn expect(&mut self, row: usize, at: Option<i64>) {
        let due = &mut self.rows[row].due;
        let Some(at) = at.filter(|at| due.is_none_or(|due| *at < due)) else { return };
        if let Some(later) = due.replace(at) {
            self.due.remove(&(later, row));
        }
        self.due.insert((at, row));
    }

    /// The hosts on which something may be given back since this was asked last, by id. Of a
    /// reservation that decays that is told now and then only.
    pub fn take_freed(&mut self) -> Vec<HostId> {
        while let Some((_, row)) = self.due.first().copied().filter(|due| due.0 <= self.now) {
            self.due.pop_first();
            self.rows[row].due = None;
            self.note(row);
            let now = self.now;
            let varying = self.rows[row].entries.iter().flat_map(|e| e.varying.values());
            let next = varying.filter_map(|v| v.term().next_change(v.start_time, now)).min();
            self.expect(row, next);
        }
        let mut hosts: Vec<HostId> = Vec::new();
        for at in std::mem::take(&mut self.freed) {
            let row = &mut self.rows[at];
            row.noted = false;
            match row.hosts.is_empty() {
                true => hosts.push(HostId::from_index(at)),
                false => hosts.extend(&row.hosts),
            }
        }
        hosts.sort_unstable();
        hosts.dedup();
        #[cfg(test)]
        self.told.extend(&hosts);
        hosts
    }
}

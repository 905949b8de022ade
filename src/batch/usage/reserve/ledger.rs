//! The reservations of started elements, added up where they are held: on a host, or in an
//! instance of a resource that hosts share.
//!
//! Invariants: the sums are current whenever they are read, and they are what the holders reserve
//! at that second, to the billionth. The amounts of an element are worked out from its [`Holder`]
//! alone, so that exactly these are taken away when it changes or ends. An element touches the rows
//! of its hosts only. Amounts are integers: a sum depends neither on its order nor on its history.

use crate::batch::site::reservation_methods::ReservationMethod;
use crate::batch::state::element_table::ElementTable;
use crate::batch::state::job_hosts::JobHosts;
use crate::batch::state::names::{HostId, Id, ResourceId};
use crate::batch::usage::reserve::vacated::Vacated;
use crate::lang::resreq::RusageTerm;
use crate::model::JobRef;
use crate::model::idmap::IdMap;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;

/// Parts of a resource's unit that are counted.
pub(in crate::batch::usage::reserve) const PARTS: f64 = 1e9;
/// Largest amount of one element, in these parts: sums of all elements stay within an i128.
const MAX_AMOUNT: f64 = 1e30;
/// Amounts below it, in these parts, have room for a half beside every digit.
const SMALL: f64 = (1u64 << 51) as f64;
/// Resolved requirements kept beside those that are held; beyond it they are kept anew.
const MAX_REQUIREMENTS: usize = 4096;
/// After how many seconds something of a reservation that decays counts as given back.
const DECAY_SECS: i64 = 15;
/// KB in a MB.
const MB: f64 = 1024.0;

/// A term of a requirement, resolved.
#[derive(Debug)]
pub struct Term {
    pub resource: ResourceId,
    /// The part of a compound requirement that it belongs to; 0 of a simple one.
    pub part: usize,
    pub rusage: RusageTerm,
    pub method: ReservationMethod,
    /// A suspended job gives it back.
    pub released: bool,
    /// The measured value shows already how much of it the job uses.
    pub measured: bool,
    /// A preempted job gives it back to the queues that preempt it, and to no other.
    pub preemptable: bool,
}

impl Term {
    fn varies(&self) -> bool {
        self.rusage.phases.iter().any(|phase| phase.duration.is_some())
    }

    /// The first second after `now` at which the amount may be another, for a job that was started
    /// at `start`.
    fn next_change(&self, start: i64, now: i64) -> Option<i64> {
        let mut end = start;
        for phase in &self.rusage.phases {
            end = end.saturating_add(i64::try_from(phase.duration?).unwrap_or(i64::MAX));
            if now < end {
                let soon = now.max(start).saturating_add(DECAY_SECS);
                return Some(if phase.decay { end.min(soon) } else { end });
            }
        }
        None
    }
}

/// The reservations by the requirement of a started element.
#[derive(Debug)]
pub struct Requirement {
    pub text: Arc<str>,
    pub terms: Vec<Term>,
    /// The tasks of each part of a compound requirement; `None`: the rest. Empty: a simple one.
    pub parts: Vec<Option<u32>>,
}

/// Slots by host, each host once and known, the first one first.
pub fn slots_by_host(all: &JobHosts, known: impl Fn(HostId) -> bool) -> JobHosts {
    if let JobHosts::One(one) = all
        && known(one.0)
    {
        return JobHosts::One(*one);
    }
    let hosts = || all.iter().filter(|h| known(h.0));
    let mut slots: BTreeMap<HostId, u32> = BTreeMap::new();
    for (host, n) in hosts() {
        let sum = slots.entry(*host).or_default();
        *sum = sum.saturating_add(*n);
    }
    // in the order in which they come first
    hosts().filter_map(|(host, _)| slots.remove_entry(host)).collect()
}

impl Requirement {
    /// The hosts of each part, of hosts in the order of the tasks; empty for a simple requirement.
    pub fn hosts_of_parts(&self, all: &[(HostId, u32)]) -> Vec<Vec<(HostId, u32)>> {
        if self.parts.is_empty() {
            return Vec::new();
        }
        let total: u32 = all.iter().map(|host| host.1).fold(0, u32::saturating_add);
        let given = self.parts.iter().flatten().fold(0, |sum: u32, n| sum.saturating_add(*n));
        let mut hosts = all.iter().copied();
        let mut next = hosts.next();
        let mut of_part = |tasks: Option<u32>| {
            let mut left = tasks.unwrap_or_else(|| total.saturating_sub(given));
            let mut out: Vec<(HostId, u32)> = Vec::new();
            while let Some((host, slots)) = next.filter(|_| left > 0) {
                let take = slots.min(left);
                out.push((host, take));
                left -= take;
                next = if slots > take { Some((host, slots - take)) } else { hosts.next() };
            }
            out
        };
        self.parts.iter().map(|tasks| of_part(*tasks)).collect()
    }
}

/// Everything by which an element reserves something.
#[derive(Clone, Debug)]
pub struct Holder {
    pub requirement: Rc<Requirement>,
    pub hosts: JobHosts,
    /// The hosts of each part of a compound requirement; else empty.
    pub part_hosts: Vec<JobHosts>,
    /// Seconds since the epoch.
    pub start_time: i64,
    /// The element is suspended, and gives something back.
    pub stopped: bool,
    /// The element is suspended because others preempt it.
    pub preempted: bool,
    /// Memory in use, KB, where it reserves memory.
    pub used_kb: u64,
}

impl Holder {
    /// The hosts of a term, with the slots there.
    pub fn hosts_of(&self, term: &Term) -> &[(HostId, u32)] {
        self.part_hosts.get(term.part).unwrap_or(&self.hosts)
    }

    /// Is a term reserved no more, as the element is suspended?
    pub fn gives_back(&self, term: &Term) -> bool {
        self.stopped && term.released && !(self.preempted && term.preemptable)
    }
}

/// The memory in use that counts for a term, MB.
pub(in crate::batch::usage::reserve) fn used_mb(holder: &Holder, term: &Term) -> f64 {
    match term.measured && term.part == 0 {
        true => holder.used_kb as f64 / MB,
        false => 0.0,
    }
}

/// An amount, of which so much is in use, in parts: all, and what the measured value does not show.
pub(in crate::batch::usage::reserve) fn amounts(amount: f64, used: f64) -> (i128, i128) {
    let sum = Sum::of(amount, used);
    (sum.all, sum.unseen)
}

impl PartialEq for Holder {
    fn eq(&self, other: &Holder) -> bool {
        let (a, b) = (&self.requirement, &other.requirement);
        (Rc::ptr_eq(a, b) || a.text == b.text)
            && (&self.hosts, &self.part_hosts) == (&other.hosts, &other.part_hosts)
            && (self.start_time, self.stopped, self.preempted, self.used_kb)
                == (other.start_time, other.stopped, other.preempted, other.used_kb)
    }
}

/// Reserved by all elements, and of that what the measured value does not show yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    all: i128,
    unseen: i128,
}

impl Sum {
    fn of(amount: f64, used: f64) -> Sum {
        let all = parts(amount);
        Sum { all, unseen: all - parts(used).min(all) }
    }
    fn add(&mut self, of: Sum) {
        self.all += of.all;
        self.unseen += of.unseen;
    }
    fn take(&mut self, of: Sum) {
        self.all -= of.all;
        self.unseen -= of.unseen;
        debug_assert!(self.all >= self.unseen && self.unseen >= 0, "below nothing: {self:?}");
    }
}

/// Parts in the unit of their resource.
pub fn in_units(parts: i128) -> f64 {
    parts as f64 / PARTS
}

fn parts(amount: f64) -> i128 {
    let scaled = amount * PARTS;
    // nearly every amount; a number of two words is made many times slower
    if (0.0..SMALL).contains(&scaled) {
        return i128::from((scaled + 0.5) as u64);
    }
    scaled.round().clamp(0.0, MAX_AMOUNT) as i128
}

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

#[derive(Debug, Default)]
pub struct Reserve {
    /// Started elements that reserve something.
    holders: ElementTable<Holder>,
    /// Elements whose memory in use has changed since the load of their first host was heard of.
    used: BTreeSet<(HostId, JobRef)>,
    /// Requirements by their text.
    requirements: HashMap<Arc<str>, Rc<Requirement>>,
    /// Requirements by the address of their text, for the elements that share one. An entry holds
    /// its text, so that no other text comes to that address as long as the entry is there.
    by_address: IdMap<usize, (Arc<str>, Rc<Requirement>)>,
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
        Some(self.sum(id).all).filter(|n| *n > 0).map(|n| n as f64 / PARTS)
    }

    /// The part of the reserved amount that the measured value does not show yet.
    pub fn unseen(&self, id: ResourceId) -> f64 {
        self.sum(id).unseen as f64 / PARTS
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
        let row = self.rows.get(host.index())?;
        row.shared.iter().find(|shared| shared.0 == resource).map(|shared| shared.1)
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

    /// A requirement by its text, which is resolved where it was not seen lately.
    pub fn requirement(
        &mut self,
        text: &Arc<str>,
        resolve: impl FnOnce(&str) -> (Vec<Term>, Vec<Option<u32>>),
    ) -> Rc<Requirement> {
        let address = text.as_ptr().addr();
        if let Some((_, known)) = self.by_address.get(&address) {
            return known.clone();
        }
        let known = self.requirement_by_text(text, resolve);
        if self.by_address.len() >= MAX_REQUIREMENTS {
            self.by_address.clear();
        }
        self.by_address.insert(address, (text.clone(), known.clone()));
        known
    }

    fn requirement_by_text(
        &mut self,
        text: &Arc<str>,
        resolve: impl FnOnce(&str) -> (Vec<Term>, Vec<Option<u32>>),
    ) -> Rc<Requirement> {
        if let Some(known) = self.requirements.get(text) {
            return known.clone();
        }
        if self.requirements.len() >= MAX_REQUIREMENTS {
            self.requirements.clear();
        }
        let (terms, parts) = resolve(text);
        let new = Rc::new(Requirement { text: text.clone(), terms, parts });
        self.requirements.insert(text.clone(), new.clone());
        new
    }

    /// An element reserves this from now on; `None`: nothing.
    pub fn set(&mut self, at: JobRef, holder: Option<Holder>) {
        if self.holders.get(at) == holder.as_ref() {
            return;
        }
        if let Some(before) = self.holders.remove(at) {
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
        let hosts = holder.hosts_of(term);
        let places = self.places(hosts, (term.resource, term.method), used_mb(holder, term));
        for (row, times, used) in places {
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
            let instance = row.shared.iter().find(|s| s.0 == resource).map(|s| s.1);
            let used = if n == 0 { used } else { 0.0 };
            let times = match method {
                ReservationMethod::PerTask => u64::from(slots),
                _ => 1,
            };
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
        let factor = times as f64;
        let steady = (!term.varies()).then(|| Sum::of(term.rusage.amount() * factor, used));
        if steady.is_some_and(|sum| sum.all == 0) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amount_is_counted_in_whole_parts_of_its_unit() {
        let all = [0.0, 1e-10, 0.4e-9, 0.5e-9, 1.0, 0.1, 2.25e6, 2_251_799.5, 1e13, 1e25, -3.0];
        let counted = all.map(parts);
        let rounded = all.map(|amount| (amount * PARTS).round().clamp(0.0, MAX_AMOUNT) as i128);
        assert_eq!(counted, rounded);
    }

    #[test]
    fn requirement_whose_text_comes_to_the_address_of_another_is_its_own() {
        let mut reserve = Reserve::default();
        for n in 0..3 * MAX_REQUIREMENTS {
            // the table by text keeps the first of equal texts; the others are free to be reused
            let text: Arc<str> = format!("rusage[mem={}]", n % 7).into();
            assert_eq!(reserve.requirement(&text, |_| Default::default()).text, text);
        }
        assert!(reserve.by_address.len() <= MAX_REQUIREMENTS);
    }
}

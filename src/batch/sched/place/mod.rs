//! A class as it is held against hosts, and the slots that a job gets on hosts that take it.
//! `policy` says whether a host takes a job of a class.
//!
//! | file | its part |
//! |---|---|
//! | host_match | the class: what its jobs ask for, and which hosts they name |
//! | requirement | requirements, compiled; alternatives, and the parts of compound ones |
//! | asked, host_file | the hosts that a class asks for by name; the slots of -hostfile |
//! | at_once | the hosts that plainly do not do |
//! | memory | the memory that a job asks for on its hosts |
//! | backfill | slots and memory that other jobs keep, and whether a job gives them back in time |
//! | spread | tasks over hosts: which of the forms below |
//! | host_limit | no more hosts than HOSTLIMIT_PER_JOB |
//! | fill, one_host, tile, stripe | the forms of span[] |
//! | same, units | hosts that are alike; hosts in compute units |
//! | affinity, unit_search | processor units of hosts, and which of them tasks get |
//! | shared | what is left of resources that hosts share |
//! | compound | the parts of a compound requirement |

mod affinity;
mod asked;
pub(in crate::batch::sched) mod at_once;
mod backfill;
mod compound;
mod fill;
mod host_file;
mod host_limit;
mod host_match;
mod memory;
mod one_host;
mod requirement;
pub(in crate::batch::sched) mod same;
mod shared;
mod spread;
mod stripe;
mod tile;
mod unit_search;
mod units;

pub(in crate::batch::sched) use affinity::has_units_again;
pub(crate) use affinity::units_of_job;
pub(crate) use asked::{RequestedHosts, split_host_word};
pub(in crate::batch::sched) use host_match::FEW_HOSTS;
pub(crate) use host_match::HostMatch;
pub(in crate::batch::sched) use memory::MemoryNeed;
pub(crate) use requirement::{Alternative, Requirement, Requirements};

use crate::batch::sched::class_key::ClassKey;
use crate::batch::sched::view::View;
use crate::batch::state::names::HostId;
use crate::lang::resreq::{Span, SpanHosts};
use crate::model::JobRef;
use crate::model::reason::PendReason;
use affinity::UnitsFor;
use host_match::{Free, Placed, Tasks};
pub(in crate::batch::sched) use shared::SharedRoom;
use std::rc::Rc;

/// Why a class found no place: reasons, each with the hosts that it holds for; no host: all.
pub(crate) type Reasons = Vec<(PendReason, Vec<HostId>)>;

/// The requirement and the hosts that a class asks for, compiled.
#[derive(Clone, Debug)]
pub(super) struct Compiled {
    pub(super) requirement: Rc<Requirement>,
    pub(super) asked: Rc<RequestedHosts>,
}

impl Compiled {
    pub fn new(view: &View, kind: &ClassKey, requirement: Rc<Requirement>) -> Compiled {
        Compiled { requirement, asked: Rc::new(RequestedHosts::new(view, kind)) }
    }
}

impl HostMatch<'_> {
    /// The tasks that a host has processor units for; the reason where there is none. `None`: the
    /// class asks for no units. `leaving`: the jobs that are to be preempted there; `None`: all.
    pub fn units_on(
        &self,
        host: HostId,
        leaving: Option<&[JobRef]>,
    ) -> Option<Result<u64, PendReason>> {
        let simple = self.simple.filter(|simple| simple.affinity.is_some())?;
        let none = affinity::Drafted::new();
        let drafted = self.draft.map_or(&none, |draft| &draft.units);
        let most = self.max().max(1);
        let by = UnitsFor { queue: self.queue, leaving };
        let look = (&self.view, by);
        affinity::room_for_tasks(look, simple, (host, drafted), most, &self.unit_steps)
    }

    /// The work on processor units since this was asked last, in looks at hosts.
    pub fn take_unit_looks(&self) -> usize {
        /// Looks at CPUs that take as long as one at a host.
        const STEPS_OF_LOOK: usize = 128;
        self.unit_steps.take() / STEPS_OF_LOOK
    }

    /// The slots of a host that a job would take for which so many count already, of those there.
    pub fn would_take(&self, host: HostId, slots: u64, counted: u64) -> u64 {
        if let Some(line) = self.asked.fixed.iter().find(|line| line.0 == host) {
            return slots.min(line.1.into());
        }
        if self.is_placed_by_groups() {
            return slots;
        }
        match self.simple.and_then(|s| s.span.as_ref()) {
            Some(span) if span.one_host() => slots,
            Some(span) if span.ptile.is_some() => {
                let free = slots.min(u64::from(u32::MAX)) as u32;
                slots.min(self.tile(span, host, free).into())
            }
            _ => slots.min(u64::from(self.max()).saturating_sub(counted)),
        }
    }

    /// The slots of one job among hosts that have some, best host first.
    pub fn allocate(&self, free: &[(HostId, u32)]) -> Option<Vec<(HostId, u32)>> {
        self.lay_out(free).filter(|hosts| self.lasts(hosts))
    }

    /// Hosts for tasks as same[], cu[] and span[] ask for them, or why there are none.
    fn placed(&self, free: Free, tasks: Tasks, room: &SharedRoom) -> Result<Placed, PendReason> {
        let same = self.simple.map_or(&[][..], |simple| &simple.same);
        if same.is_empty() || tasks.max == 1 {
            return self.in_units(free, tasks, room);
        }
        let mut best: Option<(u32, Placed)> = None;
        let mut refused = None;
        for group in same::groups(self, same, free) {
            if !group.iter().any(|host| self.begins(host.0)) {
                continue;
            }
            let placed = match self.in_units(&group, tasks, room) {
                Ok(placed) => placed,
                Err(reason) => {
                    refused.get_or_insert(reason);
                    continue;
                }
            };
            let slots = placed.iter().map(|host| host.1).sum();
            if slots == tasks.max {
                return Ok(placed);
            }
            if best.as_ref().is_none_or(|best| slots > best.0) {
                best = Some((slots, placed));
            }
        }
        let refused = || refused.unwrap_or(PendReason::NotEnoughSlots);
        best.map(|best| best.1).ok_or_else(refused)
    }

    /// The slots of one job among hosts that have some at any time.
    pub fn lay_out(&self, free: &[(HostId, u32)]) -> Option<Vec<(HostId, u32)>> {
        let hosts = match self.asked.fixed.is_empty() {
            true if !free.iter().any(|f| self.begins(f.0)) => None,
            true => {
                let tasks = Tasks { min: self.tasks.min, max: self.max() };
                self.placed(free, tasks, &SharedRoom::new(self)).ok()
            }
            false => host_file::exactly(free, &self.asked.fixed)
                .filter(|hosts| self.host_limit().is_none_or(|most| hosts.len() <= most)),
        };
        hosts.filter(|h| h.first().is_some_and(|h| self.begins(h.0)))
    }

    /// Can further hosts change what a job gets, whatever slots it has found?
    pub fn needs_all_hosts(&self) -> bool {
        !self.asked.fixed.is_empty()
            || !self.asked.first.is_empty()
            || self.is_placed_by_groups()
            || self.host_limit().is_some()
            || !SharedRoom::new(self).is_unlimited()
    }

    /// Why hosts that have slots do not do: the part of the requirement without which they would.
    pub fn too_few(&self, free: &[(HostId, u32)]) -> PendReason {
        if !free.iter().any(|f| self.begins(f.0)) {
            return PendReason::FirstHost;
        }
        let tasks = Tasks { min: self.tasks.min, max: self.max() };
        let room = SharedRoom::new(self);
        let units = self.simple.is_some_and(|simple| simple.cu.is_some());
        if units
            && let Err(reason) = self.placed(free, tasks, &room)
            && !matches!(reason, PendReason::NotEnoughSlots | PendReason::Span)
        {
            return reason;
        }
        let alike = self.simple.is_some_and(|simple| !simple.same.is_empty());
        if alike && self.spread(free, tasks, &mut room.clone()).is_some() {
            return PendReason::Same;
        }
        if self.host_limit().is_some() && self.spread_over(free, tasks, &mut room.clone()).is_some()
        {
            return PendReason::HostLimit;
        }
        if let Some(reason) = room.reason()
            && self.spread(free, tasks, &mut SharedRoom::unlimited(self)).is_some()
        {
            return reason;
        }
        let constrains = |span: &&Span| span.hosts != Some(SpanHosts::Any);
        match self.simple.and_then(|s| s.span.as_ref()).filter(constrains) {
            Some(_) if self.span_of_queue => PendReason::QueueSpan,
            Some(_) => PendReason::Span,
            None => PendReason::NotEnoughSlots,
        }
    }
}

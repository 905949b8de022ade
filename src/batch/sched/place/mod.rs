//! A class as it is held against hosts, and the slots that a job gets on hosts that take it.
//! `policy` says whether a host takes a job of a class.
//!
//! | file | its part |
//! |---|---|
//! | requirement | requirements, compiled; alternatives, and the parts of compound ones |
//! | asked, host_file | the hosts that a class asks for by name; the slots of -hostfile |
//! | backfill | slots that other jobs keep, and whether a job gives them back in time |
//! | spread | tasks over hosts: which of the forms below, and within which hosts |
//! | fill, one_host, tile, stripe | the forms of span[] |
//! | same, units | hosts that are alike; hosts in compute units |
//! | affinity, unit_search | processor units of hosts, and which of them tasks get |
//! | shared | what is left of resources that hosts share |
//! | compound | the parts of a compound requirement |

mod affinity;
mod asked;
mod backfill;
mod compound;
mod fill;
mod host_file;
mod one_host;
mod requirement;
pub(in crate::batch::sched) mod same;
mod shared;
mod spread;
mod stripe;
mod tile;
mod unit_search;
mod units;

pub(crate) use affinity::units_of_job;
pub(crate) use asked::{RequestedHosts, split_host_word};
pub(crate) use requirement::{Alternative, Requirement, Requirements};

use crate::batch::sched::class_key::ClassKey;
use crate::batch::sched::fixed_match::FixedMatch;
use crate::batch::sched::host_snapshot::HostSnapshot;
use crate::batch::sched::run_limit::RunLimit;
use crate::batch::sched::view::View;
use crate::batch::site::Queue;
use crate::batch::state::names::HostId;
use crate::batch::usage::limits_ledger::ConsumerLimits;
use crate::lang::resreq::{SelectContext, Simple, Span, SpanHosts};
use crate::lim::facts::DEFAULT_NAME;
use crate::model::JobRef;
use crate::model::reason::PendReason;
use compound::Draft;
pub(in crate::batch::sched) use shared::SharedRoom;
use spread::Tasks;
use std::cell::OnceCell;
use std::collections::BTreeMap;
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

/// One look for hosts for a job of a class.
pub(crate) struct HostMatch<'a> {
    pub(super) view: View<'a>,
    pub(super) queue: &'a Queue,
    pub(super) kind: &'a ClassKey,
    /// The limits of its jobs.
    pub(super) limits: &'a ConsumerLimits,
    pub(super) asked: &'a RequestedHosts,
    /// The requirement with one alternative of its rusage.
    pub(super) simple: Option<&'a Simple>,
    fixed: Option<&'a FixedMatch>,
    /// span[] is the queue's.
    span_of_queue: bool,
    /// The tasks of a job, or of one part of it.
    tasks: Tasks,
    /// These tasks are the first of the job.
    first: bool,
    /// The slots and resources of the parts of the job that were placed before.
    draft: Option<&'a Draft>,
    /// Slots that queue and user have left, which are enough.
    pub(super) room: u64,
    /// How long a job of the class may run; `None`: any time, or nothing depends on it.
    pub(super) run: Option<RunLimit>,
    /// The job whose own reservation does not stand in its way.
    pub(super) own: Option<JobRef>,
    /// Type and model of the submission host, once they were asked for.
    local: OnceCell<(&'a str, &'a str)>,
}

impl<'a> HostMatch<'a> {
    pub fn new(
        (view, queue, room): (&View<'a>, &'a Queue, u64),
        (kind, limits): (&'a ClassKey, &'a ConsumerLimits),
        asked: &'a RequestedHosts,
        alternative: Option<&'a Alternative>,
    ) -> HostMatch<'a> {
        let (local, tasks) = (OnceCell::new(), Tasks { min: kind.min, max: kind.max });
        let part = alternative.and_then(|alternative| alternative.parts.first());
        let (simple, fixed) = (part.map(|p| &p.simple), part.and_then(|p| p.fixed.as_ref()));
        let span_of_queue = alternative.is_some_and(|alternative| alternative.span_of_queue);
        HostMatch {
            view: *view,
            queue,
            kind,
            limits,
            asked,
            simple,
            fixed,
            span_of_queue,
            tasks,
            first: true,
            draft: None,
            room,
            run: view.run_limit(queue, kind),
            own: None,
            local,
        }
    }

    /// Does a host match select[]?
    pub fn selects(&self, host: HostId, snapshot: &HostSnapshot) -> bool {
        let Some(fixed) = self.fixed else { return true };
        let context = self.select_context();
        let selects = fixed.selects((host, snapshot), &context, self.view.facts_changes);
        debug_assert_eq!(selects, self.simple.is_none_or(|s| s.selects(snapshot, &context)));
        selects
    }

    /// The tasks that a host has processor units for; the reason where there is none. `None`: the
    /// class asks for no units.
    pub fn units_on(&self, host: HostId) -> Option<Result<u64, PendReason>> {
        let simple = self.simple.filter(|simple| simple.affinity.is_some())?;
        let none = affinity::Drafted::new();
        let drafted = self.draft.map_or(&none, |draft| &draft.units);
        affinity::room_for_tasks(&self.view, simple, (host, drafted), self.max().max(1))
    }

    /// The most slots that a job may get.
    pub fn max(&self) -> u32 {
        u64::from(self.tasks.max).min(self.room) as u32
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

    /// Do the hosts of a job have to suit each other, or units of hosts to suit the job?
    pub fn is_placed_by_groups(&self) -> bool {
        let alike = |simple: &Simple| !simple.same.is_empty() && self.tasks.max > 1;
        self.simple.is_some_and(|simple| alike(simple) || simple.cu.is_some())
    }

    /// Slots of a host beyond which it makes no difference how many there are: compute units are
    /// ordered by all that they have.
    pub fn most_counted(&self) -> u64 {
        match self.simple.is_some_and(|simple| simple.cu.is_some()) {
            true => u64::from(u32::MAX),
            false => u64::from(self.max()),
        }
    }

    /// The fewest slots that a job may get.
    pub fn min_slots(&self) -> u32 {
        self.tasks.min
    }

    /// Does one free slot do, on whatever host takes the job?
    pub fn any_slot(&self) -> bool {
        self.max() == 1
            && self.asked.fixed.is_empty()
            && self.simple.is_none_or(|simple| simple.cu.is_none())
    }

    /// Does a job need all its slots on one host, whichever that is?
    pub fn one_host(&self) -> bool {
        let span = self.simple.and_then(|s| s.span.as_ref());
        span.is_some_and(Span::one_host)
            && self.asked.fixed.is_empty()
            && self.asked.first.is_empty()
            && self.simple.is_none_or(|simple| simple.cu.is_none())
    }

    /// The preference of a host: the larger goes first. None: queue or job do not name the host.
    pub fn preference(&self, host: HostId) -> Result<u32, PendReason> {
        let of_queue = match &self.queue.hosts {
            None => Some(0),
            Some(set) => set.get(&host).copied(),
        };
        let of_job = match &self.asked.preferred {
            None => Some(0),
            Some(set) => set.get(&host).copied(),
        };
        match (of_queue, of_job) {
            (None, _) => Err(PendReason::NotQueueHost),
            (_, None) => Err(PendReason::NotAskedHost),
            (Some(queue), Some(job)) => Ok(queue + job),
        }
    }

    /// The hosts that are preferred to others; None: all hosts are alike.
    pub fn named_hosts(&self) -> Option<Vec<HostId>> {
        let differs = |set: &&BTreeMap<HostId, u32>| set.values().any(|pref| *pref > 0);
        let queue = self.queue.hosts.as_ref();
        match &self.asked.preferred {
            Some(set) => Some(set.keys().copied().collect()),
            None => queue.filter(differs).map(|set| set.keys().copied().collect()),
        }
    }

    /// Must a job begin on one of some hosts, and is this one?
    pub fn begins(&self, host: HostId) -> bool {
        !self.first || self.asked.first.is_empty() || self.asked.first.contains(&host)
    }

    /// The submission host, for `type` and `model` that are to be like its own.
    pub fn select_context(&self) -> SelectContext<'a> {
        let (local_type, local_model) = *self.local.get_or_init(|| self.local());
        SelectContext { local_type, local_model }
    }

    /// Type and model of the submission host; nothing where they were to be found out and LIM
    /// has not heard of the host (it was down when the master changed).
    fn local(&self) -> (&'a str, &'a str) {
        let Some(host) = self.asked.submitted_on else { return ("", "") };
        let (def, rt) = (&self.view.site.hosts[host].def, &self.view.hosts[host]);
        let facts = rt.load.as_ref().and_then(|l| l.facts.as_ref());
        let heard = facts.is_some_and(|f| f.max_mem > 0);
        let sure = |of: Option<&'a str>| {
            of.filter(|text| heard || *text != DEFAULT_NAME).unwrap_or_default()
        };
        let host_type = def.host_type.as_deref().or(facts.map(|f| f.host_type.as_str()));
        let model = def.model.as_deref().or(facts.map(|f| f.model.as_str()));
        (sure(host_type), sure(model))
    }

    /// The slots of one job among hosts that have some, best host first.
    pub fn allocate(&self, free: &[(HostId, u32)]) -> Option<Vec<(HostId, u32)>> {
        self.lay_out(free).filter(|hosts| self.lasts(hosts))
    }

    /// The slots of one job among hosts that have some at any time.
    pub fn lay_out(&self, free: &[(HostId, u32)]) -> Option<Vec<(HostId, u32)>> {
        let hosts = match self.asked.fixed.is_empty() {
            true if !free.iter().any(|f| self.begins(f.0)) => None,
            true => {
                let tasks = Tasks { min: self.tasks.min, max: self.max() };
                self.placed(free, tasks, &SharedRoom::new(self)).ok()
            }
            false => host_file::exactly(free, &self.asked.fixed),
        };
        hosts.filter(|h| h.first().is_some_and(|h| self.begins(h.0)))
    }

    /// Can further hosts change what a job gets, whatever slots it has found?
    pub fn needs_all_hosts(&self) -> bool {
        !self.asked.fixed.is_empty()
            || !self.asked.first.is_empty()
            || self.is_placed_by_groups()
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

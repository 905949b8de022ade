//! A class of jobs as it is held against hosts: what its jobs ask for, and which hosts they name.
//! How their tasks are spread over hosts lies in the files above this one.

use crate::batch::cluster::hosts::HostStatus;
use crate::batch::cluster::nlb_lists::{NlbList, Standing};
use crate::batch::sched::class_key::ClassKey;
use crate::batch::sched::fixed_match::FixedMatch;
use crate::batch::sched::host_snapshot::HostSnapshot;
use crate::batch::sched::place::affinity::Drafted;
use crate::batch::sched::place::asked::RequestedHosts;
use crate::batch::sched::place::requirement::Alternative;
use crate::batch::sched::run_limit::RunLimit;
use crate::batch::sched::view::View;
use crate::batch::site::task_rule::TaskRule;
use crate::batch::site::{Bounds, External, Queue};
use crate::batch::state::names::{HostId, HostSet, Id, ResourceId};
use crate::batch::usage::limits_ledger::ConsumerLimits;
use crate::lang::resreq::{Expr, HostOrder, RusageTerm, SelectContext, Simple, Span};
use crate::model::JobRef;
use crate::model::reason::PendReason;
use std::cell::{Cell, OnceCell};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Most changed hosts that are ordered by themselves for each class; more are picked from the order
/// of all open hosts.
pub(in crate::batch::sched) const FEW_HOSTS: usize = 16;

/// Hosts with their free slots, best host first.
pub(super) type Free<'a> = &'a [(HostId, u32)];
/// Hosts with the slots that a job gets, in the order of its tasks.
pub(super) type Placed = Vec<(HostId, u32)>;

/// The number of tasks: the most where there are slots for them, and no fewer than the least.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tasks {
    pub min: u32,
    pub max: u32,
}

/// The slots and resources of the parts of a job that were placed.
#[derive(Clone, Debug, Default)]
pub(super) struct Draft {
    pub(super) slots: Vec<(HostId, u32)>,
    /// Amounts by where they are held: the position of a host, or an instance of a resource.
    pub(super) reserved: Vec<(usize, ResourceId, f64)>,
    /// The CPUs that their tasks take.
    pub(super) units: Drafted,
}

impl Draft {
    /// Slots that are taken on a host.
    fn slots(&self, host: HostId) -> u64 {
        self.slots.iter().filter(|own| own.0 == host).map(|own| u64::from(own.1)).sum()
    }
}

/// The preference of a host among those that may take a job: the larger goes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Preference {
    /// `+n` of HOSTS of the queue and of -m.
    named: u32,
    /// The place in the list of the load balancer.
    choice: Reverse<u32>,
}

/// One look for hosts for a job of a class.
pub(crate) struct HostMatch<'a> {
    pub(in crate::batch::sched) view: View<'a>,
    pub(in crate::batch::sched) queue: &'a Queue,
    pub(in crate::batch::sched) kind: &'a ClassKey,
    /// The limits of its jobs.
    pub(in crate::batch::sched) limits: &'a ConsumerLimits,
    pub(in crate::batch::sched) asked: &'a RequestedHosts,
    /// The requirement with one alternative of its rusage.
    pub(in crate::batch::sched) simple: Option<&'a Simple>,
    pub(super) fixed: Option<&'a FixedMatch>,
    /// span[] is the queue's.
    pub(super) span_of_queue: bool,
    /// The hosts that a policy of the load balancer chooses for its jobs; `None`: none is asked.
    pub(super) nlb: Option<&'a Standing>,
    /// The order of these hosts counts: the job has no order[] of its own.
    pub(super) nlb_order: bool,
    /// The tasks of a job, or of one part of it.
    pub(super) tasks: Tasks,
    /// These tasks are the first of the job.
    pub(super) first: bool,
    /// The slots and resources of the parts of the job that were placed before.
    pub(super) draft: Option<&'a Draft>,
    /// Slots that queue and user have left, which are enough.
    pub(in crate::batch::sched) room: u64,
    /// How long a job of the class may run; `None`: any time, or nothing depends on it.
    pub(in crate::batch::sched) run: Option<RunLimit>,
    /// The job whose own reservation does not stand in its way.
    pub(in crate::batch::sched) own: Option<JobRef>,
    /// The job has the slots of one that has just ended: there is no pause between the two.
    pub(in crate::batch::sched) follows: bool,
    /// JOB_SIZE_LIST of queue or application profile does not have the number of tasks.
    pub(in crate::batch::sched) misfit: bool,
    /// Looks at the CPUs of hosts that were not taken for work yet.
    pub(super) unit_steps: Cell<usize>,
    /// Type and model of the submission host, once they were asked for.
    pub(super) local: OnceCell<(&'a str, &'a str)>,
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
        let nlb = kind.nlb.as_deref().map(|key| view.nlb_lists.standing(key));
        let nlb_order = !alternative.is_some_and(|alternative| alternative.order_of_job);
        HostMatch {
            view: *view,
            queue,
            kind,
            limits,
            asked,
            simple,
            fixed,
            span_of_queue,
            nlb,
            nlb_order,
            tasks,
            first: true,
            draft: None,
            room,
            run: view.run_limit(queue, kind),
            own: None,
            follows: false,
            misfit: has_other_size(view, queue, kind),
            unit_steps: Cell::new(0),
            local,
        }
    }

    /// This look for a job that has the slots of one that has just ended.
    pub fn after_another(self) -> HostMatch<'a> {
        HostMatch { follows: true, ..self }
    }

    /// This look for further slots of a started job.
    pub fn of_growing_job(self) -> HostMatch<'a> {
        HostMatch { misfit: false, ..self }
    }

    /// Does a host match select[]?
    pub fn selects(&self, host: HostId, snapshot: &HostSnapshot) -> bool {
        let Some(fixed) = self.fixed else { return true };
        let context = self.select_context();
        let selects = self.selects_by_facts(host) && fixed.moving_holds(snapshot, &context);
        debug_assert_eq!(selects, self.simple.is_none_or(|s| s.selects(snapshot, &context)));
        selects
    }

    /// Does a host match select[] as far as that is about facts, not about load?
    pub(in crate::batch::sched) fn selects_by_facts(&self, host: HostId) -> bool {
        self.fixed.is_none_or(|fixed| {
            let view = || self.view.snapshot(host);
            fixed.fixed_holds((host, view), &self.select_context(), self.view.facts_changes)
        })
    }

    /// The conditions of select[] about what load and reservations change, all of which must hold.
    pub(in crate::batch::sched) fn moving_terms(&self) -> Vec<&'a Expr> {
        self.fixed.map_or(Vec::new(), FixedMatch::moving_terms)
    }

    /// The amount of a resource that a job of one slot reserves.
    pub(in crate::batch::sched) fn reserved_by_slot(&self, id: ResourceId) -> f64 {
        let of = self.terms().iter().filter(|t| self.view.site.names.reserved(t) == Some(id));
        of.map(RusageTerm::amount).sum()
    }

    /// Does a job of the class reserve some of a resource?
    pub(in crate::batch::sched) fn reserves_named(&self, name: &str) -> bool {
        self.terms().iter().any(|term| term.res == name)
    }

    /// Does a job of the class reserve something that has one of these thresholds?
    pub(in crate::batch::sched) fn lowers_bounded(
        &self,
        bounds: &Bounds,
        external: &External,
    ) -> bool {
        let names = &self.view.site.names;
        self.terms().iter().filter_map(|term| names.reserved(term)).any(|id| {
            id.load_index().is_some_and(|k| bounds[k].0.is_some())
                || external.iter().any(|bound| bound.id == id)
        })
    }

    fn terms(&self) -> &'a [RusageTerm] {
        self.simple.and_then(|s| s.rusage.as_ref()).map_or(&[], |rusage| rusage.terms())
    }

    /// The most slots that a job may get.
    pub fn max(&self) -> u32 {
        // where limits leave too few, it is held against hosts for those that others give up
        let room = self.room.max(self.tasks.min.into());
        u64::from(self.tasks.max).min(room) as u32
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

    /// Has a host fewer free slots than this, whatever else keeps a job from it?
    pub fn has_fewer_free(&self, host: HostId, slots: u64) -> bool {
        self.kind.reservation.is_empty() && self.view.has_fewer_free(host, slots)
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

    /// The preference of a host: the larger goes first. `Err`: queue or job do not name the host,
    /// or the policy of the load balancer does not choose it.
    pub fn preference(&self, host: HostId) -> Result<Preference, PendReason> {
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
            (Some(queue), Some(job)) => {
                Ok(Preference { named: queue + job, choice: self.nlb_choice(host)? })
            }
        }
    }

    /// Is a closed host's status the reason for which it does not do? Nothing that the policies
    /// would name before keeps the job from hosts, and none is opened by preemption.
    pub fn is_told_status_first(&self) -> bool {
        let any_host = self.queue.hosts.is_none() && self.asked.preferred.is_none();
        let by_nlb = self.nlb.is_some() || self.queue.conf.nqs.nlb_policy.is_some();
        any_host
            && !by_nlb
            && self.kind.barred.is_empty()
            && !self.misfit
            && !self.view.site.preempts
    }

    /// The place of a host among those that the policy of the load balancer chooses, where that
    /// counts.
    fn nlb_choice(&self, host: HostId) -> Result<Reverse<u32>, PendReason> {
        let hold = || self.queue.conf.nqs.nlb_policy.as_ref().is_some_and(|policy| policy.hold);
        match self.nlb {
            None => Ok(Reverse(0)),
            Some(Standing::Awaited) => Err(PendReason::NlbUnanswered),
            Some(Standing::Unanswered) if hold() => Err(PendReason::NlbUnanswered),
            Some(Standing::Unanswered) => Ok(Reverse(0)),
            Some(Standing::Listed(list)) => {
                let listed = list.get(host).ok_or(PendReason::NlbExcluded)?;
                Ok(Reverse(if self.nlb_order { listed.choice } else { 0 }))
            }
        }
    }

    /// The list of the load balancer that orders the hosts: no two of them are alike.
    pub fn ordering_list(&self) -> Option<&'a Rc<NlbList>> {
        match self.nlb.filter(|_| self.nlb_order) {
            Some(Standing::Listed(list)) => Some(list),
            _ => None,
        }
    }

    /// The hosts of a list of the load balancer with those first that queue or job prefer to
    /// others; `None`: all of them, as the list has them.
    pub fn preferred_of(&self, list: &NlbList) -> Option<Vec<HostId>> {
        if self.queue.hosts.is_none() && self.asked.preferred.is_none() {
            return None;
        }
        let named = |host: &HostId| Some((*host, self.preference(*host).ok()?.named));
        let mut hosts: Vec<_> = list.ranked().iter().filter_map(named).collect();
        hosts.sort_by_key(|host| Reverse(host.1));
        Some(hosts.into_iter().map(|host| host.0).collect())
    }

    /// May another host come first for the next job, because few are looked at, or because the
    /// order follows the placements?
    pub fn is_ordered_anew(&self, only: Option<&HostSet>, order: Option<&HostOrder>) -> bool {
        let few = only.is_some_and(|only| only.len() <= FEW_HOSTS);
        few || self.ordering_list().is_none() && order.is_some_and(HostOrder::fresh)
    }

    /// The hosts that job or queue prefer to others; None: all hosts are alike.
    pub fn named_hosts(&self) -> Option<&'a BTreeMap<HostId, u32>> {
        let differs = |set: &&BTreeMap<HostId, u32>| set.values().any(|pref| *pref > 0);
        let of_queue = self.queue.hosts.as_ref();
        self.asked.preferred.as_ref().or_else(|| of_queue.filter(differs))
    }

    /// Are the preferred hosts those of the job itself?
    pub fn names_hosts_itself(&self) -> bool {
        self.asked.preferred.is_some()
    }

    /// The hosts to be ordered for this job alone: the changed ones where these are few, or the
    /// preferred ones where they have no order that holds for the next job (`ordered_anew`).
    pub fn few_hosts(&self, changed: Option<&HostSet>, ordered_anew: bool) -> Option<Vec<HostId>> {
        let named = self.named_hosts();
        let is_named = |host: &HostId| named.is_none_or(|named| named.contains_key(host));
        match changed.filter(|changed| changed.len() <= FEW_HOSTS) {
            Some(few) => Some(few.iter().filter(is_named).collect()),
            None => named.filter(|_| ordered_anew).map(|named| named.keys().copied().collect()),
        }
    }

    /// Must a job begin on one of some hosts, and is this one?
    pub fn begins(&self, host: HostId) -> bool {
        !self.first || self.asked.first.is_empty() || self.asked.first.contains(&host)
    }

    /// The submission host, for `type` and `model` that are to be like its own.
    pub fn select_context(&self) -> SelectContext<'a> {
        let local = || self.asked.local(&self.view);
        let (local_type, local_model) = *self.local.get_or_init(local);
        SelectContext { local_type, local_model }
    }

    /// A host as the class finds it: with what preemption leaves of its resources.
    pub(in crate::batch::sched) fn sight(
        &self,
        host: HostId,
        (status, used): (HostStatus, u64),
    ) -> HostSnapshot<'a> {
        let vacancy = self.view.vacancy(self.queue, host);
        HostSnapshot { vacancy, ..self.view.snapshot_of(host, status, used) }
    }

    /// The amount of a resource that a host has left for the class.
    pub(in crate::batch::sched) fn left_on(&self, host: HostId, resource: ResourceId) -> f64 {
        let now = (self.view.host_status(host), self.view.host_used(host));
        let name = self.view.site.names.name(resource);
        self.sight(host, now).available(resource, name).unwrap_or(0.0)
    }

    /// Slots that parts placed before have taken on a host.
    pub(in crate::batch::sched) fn drafted_slots(&self, host: HostId) -> u64 {
        self.draft.map_or(0, |draft| draft.slots(host))
    }

    /// The hosts of parts placed before.
    pub(super) fn drafted_hosts(&self) -> BTreeSet<HostId> {
        self.draft.into_iter().flat_map(|draft| &draft.slots).map(|own| own.0).collect()
    }

    /// The amounts that parts placed before reserve where a host has a resource.
    pub(in crate::batch::sched) fn drafted(&self, host: HostId, resource: ResourceId) -> f64 {
        let Some(draft) = self.draft else { return 0.0 };
        let place = self.view.reserve.instance(host, resource).unwrap_or(host.index());
        let here = draft.reserved.iter().filter(|held| (held.0, held.1) == (place, resource));
        here.map(|held| held.2).sum()
    }
}

/// Is the number of tasks of a class not in JOB_SIZE_LIST of its queue or application profile?
fn has_other_size(view: &View, queue: &Queue, kind: &ClassKey) -> bool {
    let application = match kind.application.is_empty() {
        true => None,
        false => view.site.applications.get(&kind.application),
    };
    let rules = [TaskRule::of_queue(queue), TaskRule::of_application(application)];
    rules.iter().any(|rule| !rule.has_size(kind.min, kind.max))
}

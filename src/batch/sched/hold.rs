//! Holding a class against hosts: the walk through the queues does so in dispatch order, and the
//! one for goals of service classes before it. Nothing here knows which class is next.

use crate::batch::cluster::nlb_lists::NlbList;
use crate::batch::sched::Sched;
use crate::batch::sched::class_key::ClassKey;
use crate::batch::sched::decision::{Allocation, Decision, Fuel};
use crate::batch::sched::dispatch_key::{Bidder, ClassHead, DispatchKey};
use crate::batch::sched::first_fit::{FirstFit, Hosts, TooFew};
use crate::batch::sched::joint_room::{JointRoom, Short};
use crate::batch::sched::open_hosts::Rank;
use crate::batch::sched::place::{Alternative, FEW_HOSTS, HostMatch};
use crate::batch::sched::policy::{BlockedJob, Leaving, Room};
use crate::batch::sched::same_host::SameHost;
use crate::batch::sched::view::View;
use crate::batch::sched::walk_state::{ListedHosts, QueueWalk};
use crate::batch::site::Queue;
use crate::batch::state::names::{HostId, HostSet, QueueId};
use crate::batch::usage::limits_ledger::ConsumerLimits;
use crate::lang::resreq::HostOrder;
use crate::model::JobRef;
use std::cmp::Reverse;
use std::rc::Rc;

/// Ready jobs of a class from which on it is asked for how many of them its host will do.
const FROM_JOBS: usize = if cfg!(debug_assertions) { 2 } else { 3 };

/// Classes of a queue for which a walk keeps the order of a list of the load balancer.
const LISTED_MAX: usize = 64;

/// The outcome of holding a class against hosts.
pub(super) enum Outcome {
    /// No host takes it; what a policy does for it.
    None(Option<Decision>),
    /// Queue or user have fewer slots left than it needs: so many, where it is the queue; and what
    /// a policy does for it.
    Limited(Option<u64>, Option<Decision>),
    Found(Decision),
}

/// A class that is held against hosts.
struct HeldClass<'a> {
    view: &'a View<'a>,
    queue: &'a Queue,
    kind: &'a ClassKey,
    limits: &'a ConsumerLimits,
    class: u32,
    /// The job or element of it that would start next.
    at: JobRef,
}

impl Sched {
    /// May something be found for the jobs of a queue? A host that opens later has changed: nothing
    /// is lost on classes not yet looked at.
    pub(super) fn may_find(&self, view: &View, queue: &Queue) -> bool {
        !self.hosts.none_open() || self.policies.act_on_blocked(view, queue)
    }

    /// The changed hosts that matter to a queue: those that are full, too, where something is done
    /// for blocked classes.
    pub(super) fn changed_for<'a>(
        &self,
        view: &View,
        queue: &Queue,
        (changed, touched): (&'a HostSet, &'a HostSet),
    ) -> &'a HostSet {
        let acts = self.policies.act_on_blocked(view, queue);
        if acts && !touched.is_empty() { touched } else { changed }
    }

    /// Holds a class against hosts apart from the order of its queue, and notes what it found.
    pub(super) fn hold_next(
        &mut self,
        view: &View,
        queue: &Queue,
        (head, bidder): (ClassHead, Bidder),
        here: &mut QueueWalk,
        only: Option<&HostSet>,
        fuel: &mut Fuel,
    ) -> Option<Decision> {
        let outcome = self.hold(view, queue, head, here, only, fuel);
        self.note_held((queue.id, bidder), here, head, outcome)
    }

    /// Notes that a class was held against hosts; the decision that it led to, where that is no
    /// start.
    pub(super) fn note_held(
        &mut self,
        of: (QueueId, Bidder),
        here: &mut QueueWalk,
        head: ClassHead,
        outcome: Outcome,
    ) -> Option<Decision> {
        let class = self.classes.get_mut(head.1);
        match outcome {
            Outcome::Found(decision) => Some(decision),
            Outcome::Limited(of_queue, decision) => {
                // its slots may come by the end of any job of the user, or of the queue
                class.unseen = true;
                self.order.limited(of, head);
                if let Some(need) = of_queue {
                    self.order.short_of_queue(of.0, of.1, need);
                }
                decision
            }
            Outcome::None(decision) => {
                class.unseen = false;
                if let Some(of_user) = here.users.get_mut(&of.1) {
                    of_user.left -= 1;
                }
                self.order.seen(of, head);
                decision
            }
        }
    }

    /// Is a class kept back whatever hosts are free: by its advance reservation, its job group or
    /// its service class?
    pub(super) fn is_kept_back(&mut self, view: &View, kind: &ClassKey, class: u32) -> bool {
        if view.reservations.closed(&kind.reservation).is_some() {
            return true;
        }
        let (full, reached) = (
            view.group_counts.is_full(view.state, &kind.group),
            view.goals.is_full(kind.service_class),
        );
        if full {
            self.full_groups.insert(class);
        }
        if reached {
            self.full_goals.insert(class);
        }
        full || reached
    }

    /// Counts a class that is held against hosts, for tests.
    fn count_look(&mut self) {
        #[cfg(test)]
        {
            self.looks += 1;
        }
    }

    /// Counts looks at hosts, for tests.
    fn count_host_looks(&mut self, _looks: usize) {
        #[cfg(test)]
        {
            self.host_looks += _looks;
        }
    }

    /// The slots that limits leave a class of a user in a queue, beside what others reserve. A
    /// class to which only that leaves too few is looked at again when some of it is given back.
    fn room_of_class(
        &mut self,
        (view, queue, limits): (&View, &Queue, &ConsumerLimits),
        kind: &ClassKey,
        (place, class): ClassHead,
    ) -> Room {
        let policies = self.policies.clone();
        let of_user = policies.user(view, queue, limits);
        let own = match view.state.slot_reservations().is_empty() {
            true => None,
            false => self.first_of(view, kind, place, class),
        };
        let room = policies.beside_reservations((view, queue, limits), of_user, own);
        let need = u64::from(kind.min);
        if room.slots < need && of_user.slots >= need {
            self.short_by_reservations.insert(class);
        }
        room
    }

    /// Asks the policies what is done for a class that has found no host.
    fn act_on_blocked(
        &mut self,
        look: &HostMatch,
        at: JobRef,
        few: &TooFew,
        only: Option<&HostSet>,
        fuel: &mut Fuel,
    ) -> Option<Decision> {
        let policies = self.policies.clone();
        let after = |host, leaving: Leaving| policies.host_after(look, host, leaving);
        let room = match look.room >= u64::from(look.kind.min) {
            true => look.room,
            false => policies.room_by_preemption(&look.view, look.queue, look.limits),
        };
        let job = BlockedJob::new((&after, room), (look, at), &few.free, only);
        let decision = policies.blocked(&job);
        fuel.spend(job.looks());
        self.again.extend(job.again().map(|again| (again, look.queue.id)));
        decision
    }

    /// Is it plain that a class finds nothing, whatever limits leave it, as few hosts are open, or
    /// few have changed since it was looked at?
    pub(super) fn fails_at_once(
        &self,
        view: &View,
        queue: &Queue,
        class: u32,
        only: Option<&HostSet>,
    ) -> bool {
        let hosts = only.unwrap_or(self.hosts.open());
        self.asks_at_once(view, queue, hosts) && self.fails_on_all(view, class, hosts)
    }

    /// Is it worth asking whether jobs of a queue plainly find nothing on these hosts?
    pub(super) fn asks_at_once(&self, view: &View, queue: &Queue, hosts: &HostSet) -> bool {
        hosts.len() <= FEW_HOSTS && !self.policies.act_on_blocked(view, queue)
    }

    /// Is it plain that a class finds nothing on these hosts?
    pub(super) fn fails_on_all(&self, view: &View, class: u32, hosts: &HostSet) -> bool {
        let needs = self.classes.get(class).one_host.as_ref();
        needs.is_some_and(|needs| {
            hosts.iter().all(|host| !self.hosts.is_open(host) || needs.fail_on(view, host))
        })
    }

    /// Holds a class against hosts: all open ones, or only some.
    pub(super) fn hold(
        &mut self,
        view: &View,
        queue: &Queue,
        (place, class): ClassHead,
        here: &mut QueueWalk,
        only: Option<&HostSet>,
        fuel: &mut Fuel,
    ) -> Outcome {
        let same = self.same_host.take();
        let limits = self.classes.limits(view, class);
        let policies = self.policies.clone();
        let kind = self.classes.get(class).kind.clone();
        let room = self.room_of_class((view, queue, &limits), &kind, (place, class));
        let need = u64::from(kind.min);
        let limited = room.slots < need;
        if let Some(rule) = room.rule.filter(|_| limited) {
            self.limit_waits.class(view.site, rule, &limits.consumer, class);
        }
        let acts = policies.act_on_blocked(view, queue);
        let of_queue = || policies.queue(view, queue).slots < need;
        if limited && !acts {
            return Outcome::Limited(of_queue().then_some(need), None);
        }
        if self.is_kept_back(view, &kind, class) {
            return Outcome::None(None);
        }
        self.count_look();
        let Some(at) = self.first_of(view, &kind, place, class) else {
            return Outcome::None(None);
        };
        let same = same.filter(|_| !limited).and_then(|same| same.for_next(class, &self.hosts));
        // a debug build asks the policies all the same
        if let Some(same) = same.as_ref().filter(|_| !cfg!(debug_assertions)) {
            fuel.spend(1);
            self.same_host = Some(same.clone());
            return Outcome::Found(Decision::Start(same.allocation(at, here.account)));
        }
        let of = HeldClass { view, queue, kind: &kind, limits: &limits, class, at };
        let found = self.try_alternatives(&of, room.slots, same.as_ref(), (here, only), fuel);
        if let Ok(start) = found {
            if same.is_some() {
                self.same_host = same;
            }
            return Outcome::Found(Decision::Start(start));
        }
        debug_assert!(same.is_none(), "a host refuses a job that it was to take for sure");
        self.wait_for_pools(view, &kind, class);
        let decision = found.err().flatten();
        match limited {
            true => Outcome::Limited(of_queue().then_some(need), decision),
            false => Outcome::None(decision),
        }
    }

    /// Holds a class against hosts by each alternative of its requirement; limits of queue and
    /// user leave it `room` slots. `Err`: none takes it; what a policy does for it.
    fn try_alternatives(
        &mut self,
        of: &HeldClass,
        room: u64,
        same: Option<&SameHost>,
        (here, only): (&mut QueueWalk, Option<&HostSet>),
        fuel: &mut Fuel,
    ) -> Result<Allocation, Option<Decision>> {
        let &HeldClass { view, queue, kind, limits, class, at } = of;
        let limited = room < u64::from(kind.min);
        let acts = self.policies.act_on_blocked(view, queue);
        let (compiled, looks) = self.classes.compiled(view, class);
        fuel.spend(looks + kind.looks());
        let (mut decision, mut later) = (None, None);
        for (n, req) in compiled.requirement.alternatives.iter().enumerate() {
            let alternative = req.as_deref();
            if let Some(until) = alternative.and_then(|req| req.starts_later(view, at.job)) {
                later = Some(later.map_or(until, |first: u64| first.min(until)));
                continue;
            }
            let compound = alternative.is_some_and(Alternative::is_compound);
            let look =
                HostMatch::new((view, queue, room), (kind, limits), &compiled.asked, alternative);
            let look = look.of(Some(at));
            let found = match limited {
                true => Err(TooFew::by_limits(&look)),
                false => self.find_hosts(&look, alternative, (class, n), here, only, fuel),
            };
            match found {
                Ok(hosts) => {
                    debug_assert!(same.is_none_or(|same| hosts == [(same.host, 1)]));
                    if same.is_none() && !compound && compiled.requirement.alternatives.len() == 1 {
                        self.keep_same_host(&look, class, (&hosts, only), req);
                    }
                    let (hosts, req, account) = (hosts.into(), req.clone(), here.account);
                    return Ok(Allocation::new(at, hosts, req, account));
                }
                Err(few) => {
                    self.limit_waits.classes(view.site, &few.short, &limits.consumer, class);
                    // room on hosts does not help where a limit of several hosts is reached
                    if !acts || compound || decision.is_some() || !few.short.is_empty() {
                        continue;
                    }
                    decision = self.act_on_blocked(&look, at, &few, only, fuel);
                }
            }
        }
        self.delayed.extend(later.map(|until| (until, class)));
        Err(decision)
    }

    /// Hosts were found for a job of a class by the only alternative of its requirement; `only`:
    /// among these. Keeps the host for further jobs of the class, where it takes them for sure and
    /// would be found for them again.
    pub(super) fn keep_same_host(
        &mut self,
        look: &HostMatch,
        class: u32,
        (hosts, only): (&Hosts, Option<&HostSet>),
        req: &Option<Rc<Alternative>>,
    ) {
        let &[(host, 1)] = &hosts[..] else { return };
        let order = look.simple.and_then(|simple| simple.order.as_ref());
        let moves = look.is_ordered_anew(only, order);
        let is_array = |job: u32| look.view.state.job(job).is_some_and(|job| job.array().is_some());
        let ready = &self.classes.get(class).ready;
        let many = ready.len() >= FROM_JOBS || ready.first().is_some_and(|first| is_array(first.1));
        // the next job may have to wait for it
        let waits = req.as_ref().is_some_and(|req| req.delays());
        if waits || !look.any_slot() || moves || !many || !JointRoom::new(look).is_empty() {
            return;
        }
        let left = self.policies.further(look, host);
        if left > 0 {
            self.same_host = Some(SameHost { class, host, left, req: req.clone() });
        }
    }

    /// The job or element of a class that would start next.
    fn first_of(
        &mut self,
        view: &View,
        kind: &ClassKey,
        place: DispatchKey,
        class: u32,
    ) -> Option<JobRef> {
        let (_, id) = self.classes.head(class)?;
        match kind.barred.is_empty() {
            true => self.next_element(view, id, place.part()),
            false => Some(JobRef { job: id, idx: place.next() }),
        }
    }

    /// Hosts for one job of a class, by one alternative of its requirement; `Err`: those that have
    /// slots for it are too few.
    fn find_hosts(
        &mut self,
        look: &HostMatch,
        alternative: Option<&Alternative>,
        of: (u32, usize),
        here: &mut QueueWalk,
        only: Option<&HostSet>,
        fuel: &mut Fuel,
    ) -> Result<Hosts, TooFew> {
        let Some(all) = alternative.filter(|alternative| alternative.is_compound()) else {
            return self.find_part(look, (of, true), here, only, fuel);
        };
        let mut find = |part: &HostMatch| self.find_part(part, (of, false), here, None, fuel);
        let hosts = look.compound(all, &mut find)?;
        // so far each part fits by itself
        match JointRoom::new(look).fits(&hosts) {
            Ok(()) => Ok(hosts),
            Err(short) => Err(TooFew { free: Vec::new(), short }),
        }
    }

    /// Hosts for a `whole` job of a class, or for the tasks of one part of it. Hosts that are
    /// found to be of no use for a whole one are passed over the next time in this walk.
    fn find_part(
        &mut self,
        look: &HostMatch,
        (of, whole): ((u32, usize), bool),
        here: &mut QueueWalk,
        only: Option<&HostSet>,
        fuel: &mut Fuel,
    ) -> Result<Hosts, TooFew> {
        let joint = JointRoom::new(look);
        if let Some((rule, _)) = joint.full(look.min_slots()) {
            let short = Short::of(rule);
            return Err(TooFew { short, ..TooFew::default() });
        }
        let order = look.simple.and_then(|s| s.order.as_ref());
        let fresh = order.is_some_and(HostOrder::fresh);
        // a job on several hosts may need any of them
        let only = only.filter(|_| look.any_slot() || look.one_host());
        let policies = self.policies.clone();
        let (of_queue, full) = std::mem::take(&mut here.full);
        let full = if of_queue == look.queue.id { full } else { HostSet::default() };
        let mut first_fit = FirstFit::new(&policies, look, joint, full);
        if let Some(list) = look.ordering_list() {
            self.hold_against_list(look, (list, of, whole), (here, only), &mut first_fit, fuel);
        } else if let Some(hosts) = &mut look.few_hosts(only, !whole || fresh) {
            fuel.spend(hosts.len());
            // the changed ones alone are few
            self.count_host_looks(if only.is_none() { hosts.len() } else { 0 });
            hosts.retain(|h| only.is_none_or(|o| o.contains(*h)));
            self.put_in_order(look, hosts);
            for host in hosts.iter() {
                fuel.spend(1);
                self.count_host_looks(1);
                if first_fit.add(*host) {
                    break;
                }
            }
        } else if look.named_hosts().is_some() {
            self.hold_against_named(look, of, (here, only), &mut first_fit, fuel);
        } else {
            // hosts move in an order that follows the placements
            let of = Some(of).filter(|_| whole && !fresh);
            let order = self.hosts.order(&look.view, order);
            let reached = of.and_then(|of| here.reached.get(&of)).filter(|r| r.0 == order);
            let (mut useless, mut looks): (Option<&Rank>, usize) = (None, 0);
            for rank in self.hosts.after(order, reached.map(|r| &r.1)) {
                looks += 1;
                let asked = only.is_none_or(|only| only.contains(rank.host()));
                if asked && first_fit.add(rank.host()) {
                    break;
                }
                if first_fit.free.is_empty() {
                    useless = Some(rank);
                }
            }
            if let (Some(rank), Some(of)) = (useless, of) {
                here.reached.insert(of, (order, rank.clone()));
            }
            fuel.spend(looks);
            self.count_host_looks(looks);
        }
        here.full = (look.queue.id, std::mem::take(&mut first_fit.full));
        fuel.spend(look.take_unit_looks());
        for (host, until) in std::mem::take(&mut first_fit.rests) {
            self.hosts.rest(host, until);
        }
        first_fit.allocate()
    }

    /// Holds a `whole` job of a class, or one part of it, against the hosts of a list of the load
    /// balancer, best first. Where queue or job name hosts, the order is made once in a walk; the
    /// hosts of no use are passed over the next time.
    fn hold_against_list(
        &mut self,
        look: &HostMatch,
        (list, of, whole): (&Rc<NlbList>, (u32, usize), bool),
        (here, only): (&mut QueueWalk, Option<&HostSet>),
        first_fit: &mut FirstFit,
        fuel: &mut Fuel,
    ) {
        if !here.listed.get(&of).is_some_and(|known| Rc::ptr_eq(&known.list, list)) {
            let preferred = look.preferred_of(list);
            let looks = preferred.as_ref().map_or(0, |_| list.ranked().len());
            fuel.spend(looks);
            self.count_host_looks(looks);
            if here.listed.len() >= LISTED_MAX {
                here.listed.clear();
            }
            here.listed.insert(of, ListedHosts { list: list.clone(), preferred, reached: 0 });
        }
        let Some(known) = here.listed.get_mut(&of) else { return };
        let hosts = known.preferred.as_deref().unwrap_or(known.list.ranked());
        for (at, &host) in hosts.iter().enumerate().skip(known.reached) {
            fuel.spend(1);
            self.count_host_looks(1);
            let open = self.hosts.is_open(host);
            let asked = open && only.is_none_or(|only| only.contains(host));
            if asked && first_fit.add(host) {
                break;
            }
            // an open host may do for another part
            let useless = first_fit.free.is_empty() && (whole || !open);
            if useless && at == known.reached {
                known.reached = at + 1;
            }
        }
    }

    /// Keeps the open ones of these hosts, best first.
    fn put_in_order(&self, look: &HostMatch, hosts: &mut Vec<HostId>) {
        let order = look.simple.and_then(|simple| simple.order.as_ref());
        hosts.retain(|host| self.hosts.is_open(*host));
        let preferred = |host: HostId| Reverse(look.preference(host).unwrap_or_default());
        hosts.sort_by_cached_key(|host| (preferred(*host), Rank::of(&look.view, *host, order)));
    }

    /// Holds a whole job of a class against the hosts that it or its queue prefers to others, best
    /// first. Their order is made once in a walk, as that of all hosts is; the hosts of no use are
    /// passed over the next time.
    fn hold_against_named(
        &mut self,
        look: &HostMatch,
        of: (u32, usize),
        (here, only): (&mut QueueWalk, Option<&HostSet>),
        first_fit: &mut FirstFit,
        fuel: &mut Fuel,
    ) {
        if here.named.of_class(of).is_none() {
            let order = look.simple.and_then(|simple| simple.order.as_ref());
            let own = look.names_hosts_itself();
            let known = here.named.of_queue(look.queue.id, order).filter(|_| !own);
            let hosts = known.unwrap_or_else(|| {
                let mut hosts: Vec<HostId> = look
                    .named_hosts()
                    .into_iter()
                    .flat_map(|named| named.keys().copied())
                    .collect();
                fuel.spend(hosts.len());
                self.count_host_looks(hosts.len());
                self.put_in_order(look, &mut hosts);
                let hosts: Rc<[HostId]> = hosts.into();
                if !own {
                    here.named.keep_of_queue(look.queue.id, order, hosts.clone());
                }
                hosts
            });
            here.named.keep(of, hosts, own);
        }
        let Some(known) = here.named.of_class(of) else { return };
        for (at, &host) in known.hosts.iter().enumerate().skip(known.reached) {
            fuel.spend(1);
            self.count_host_looks(1);
            let asked = self.hosts.is_open(host) && only.is_none_or(|only| only.contains(host));
            if asked && first_fit.add(host) {
                break;
            }
            if first_fit.free.is_empty() {
                known.reached = at + 1;
            }
        }
    }
}

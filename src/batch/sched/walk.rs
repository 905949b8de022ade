//! One walk through the ready classes in dispatch order, decision by decision.
//!
//! A walk takes up what has changed since the one before it: classes that are unseen are held
//! against all open hosts, the others against the open hosts among those that have changed. Where
//! no host has changed it comes to unseen classes alone, and it ends when no host is open. Changes
//! during a walk are taken up by the next one.
//!
//! A policy may do something for blocked classes of a queue (`Policy::acts_on_blocked`): those that
//! find no host, or for which queue or user have too few slots left. Each of these is put before
//! the policies (`Policy::blocked`), and is looked at even while no host is open.
//!
//! Before the classes of a queue come its preempted jobs: those go on whose slots no job of a
//! higher queue wants any more (`resumption`).

use crate::batch::sched::Sched;
use crate::batch::sched::class_key::ClassKey;
use crate::batch::sched::decision::{Allocation, Decision, Fuel};
use crate::batch::sched::dispatch_key::{Bidder, ClassHead, DispatchKey};
use crate::batch::sched::first_fit::{FirstFit, Hosts, TooFew};
use crate::batch::sched::joint_room::{JointRoom, Short};
use crate::batch::sched::open_hosts::Rank;
use crate::batch::sched::order::{CLASSES_PER_TURN, LOOKS_PER_USER};
use crate::batch::sched::place::{Alternative, HostMatch};
use crate::batch::sched::policy::{BlockedJob, Room};
use crate::batch::sched::view::View;
use crate::batch::sched::walk_state::{QueueWalk, UserWalk, Walk};
use crate::batch::site::Queue;
use crate::batch::site::rules::Consumer;
use crate::batch::state::names::{HostId, HostSet, QueueId};
use crate::batch::usage::limits_ledger::ConsumerLimits;
use crate::lang::resreq::HostOrder;
use crate::model::JobRef;
use std::cmp::Reverse;

/// Most changed hosts that are ordered by themselves for each class; more are picked from the order
/// of all open hosts.
const FEW_HOSTS: usize = 16;

/// The outcome of holding a class against hosts.
enum Outcome {
    /// No host takes it; what a policy does for it.
    None(Option<Decision>),
    /// Queue or user have fewer slots left than it needs: so many, where it is the queue; and what
    /// a policy does for it.
    Limited(Option<u64>, Option<Decision>),
    Found(Decision),
}

impl Sched {
    /// The next job that starts, and where; none: the walk is over, or has to go on in the next
    /// turn. A decision has to be carried out before the next one is asked for.
    pub(crate) fn next_decision(&mut self, view: &View, fuel: &mut Fuel) -> Option<Decision> {
        let mut walk = match self.walk.take() {
            Some(walk) => walk,
            None => {
                if let Some(at) = self.claimant_without_use(view) {
                    return Some(Decision::Release { at });
                }
                let touched = match view.site.preempts || !view.preemptions.is_idle() {
                    true => self.hosts.changed(view),
                    false => HostSet::default(),
                };
                let changed = self.hosts.take_changes(view);
                self.renew_ranks(view);
                Box::new(Walk { changed, touched, ..Walk::default() })
            }
        };
        let decision = self.walk_on(view, &mut walk, fuel);
        if decision.is_some() || fuel.is_empty() {
            self.walk = Some(walk);
        }
        decision
    }

    fn walk_on(&mut self, view: &View, walk: &mut Walk, fuel: &mut Fuel) -> Option<Decision> {
        while !fuel.is_empty() {
            if self.is_in_vain(view, walk) {
                return None;
            }
            if let Some(decision) = self.next_for_goals(view, walk, fuel) {
                return Some(decision);
            }
            if fuel.is_empty() {
                return None;
            }
            let positions = view.site.dispatch_groups.get(walk.group)?;
            let queue = |position: &usize| view.site.queues.get(*position);
            let mut queues = positions.iter().filter_map(queue);
            if let Some(at) = queues.clone().find_map(|q| self.next_to_resume(view, q, walk)) {
                return Some(Decision::Resume { at });
            }
            if !queues.clone().any(|queue| self.may_find(view, queue)) {
                self.leave_group(walk, fuel);
                continue;
            }
            if let Some(member) = walk.growing {
                let Some(queue) = queues.nth(member) else {
                    (walk.growing, walk.group) = (None, walk.group + 1);
                    continue;
                };
                match self.grow_next(view, queue, walk, fuel) {
                    Some(decision) => return Some(decision),
                    None if fuel.is_empty() => return None,
                    None => walk.growing = Some(member + 1),
                }
                continue;
            }
            let (changed, touched) = (&walk.changed, &walk.touched);
            if walk.here.is_empty() {
                for (position, queue) in positions.iter().zip(queues) {
                    let here = self.enter(view, queue, (changed, touched), fuel);
                    let here = here.map(|here| QueueWalk { position: *position, ..here });
                    walk.here.extend(here);
                }
                walk.growing = walk.here.is_empty().then_some(0);
                continue;
            }
            match self.walk_group(view, &mut walk.here, (changed, touched), fuel) {
                Some(decision) => return Some(decision),
                None if fuel.is_empty() => return None,
                None => {
                    walk.here.clear();
                    walk.growing = Some(0);
                }
            }
        }
        None
    }

    /// May something be found for the jobs of a queue? A host that opens later has changed: nothing
    /// is lost on classes not yet looked at.
    pub(super) fn may_find(&self, view: &View, queue: &Queue) -> bool {
        !self.hosts.none_open() || self.policies.act_on_blocked(view, queue)
    }

    /// Is there nothing to be found for any queue? A cluster that is full, and whose queues do
    /// nothing about it, costs no walk through its queues.
    fn is_in_vain(&self, view: &View, walk: &mut Walk) -> bool {
        if !self.hosts.none_open() || !walk.touched.is_empty() {
            return false;
        }
        let acts = |queue: &Queue| self.policies.act_on_blocked(view, queue);
        !*walk.acts.get_or_insert_with(|| view.site.queues.iter().any(acts))
    }

    /// Goes on to the next group of queues.
    fn leave_group(&self, walk: &mut Walk, fuel: &mut Fuel) {
        walk.here.clear();
        (walk.growing, walk.grower) = (None, None);
        walk.group += 1;
        fuel.spend(1);
    }

    /// Begins with a queue; none: nothing is to be done there.
    fn enter(
        &mut self,
        view: &View,
        queue: &Queue,
        (changed, touched): (&HostSet, &HostSet),
        fuel: &mut Fuel,
    ) -> Option<QueueWalk> {
        fuel.spend(1);
        let room = self.policies.queue(view, queue).slots;
        if room == 0 {
            self.order.pass_over_queue(queue.id);
            return None;
        }
        self.order.queue_has_room(queue.id, room);
        let fresh = self.order.take_stale_queue(queue.id);
        let blocked = !touched.is_empty() && self.policies.act_on_blocked(view, queue);
        let every = fresh || !changed.is_empty() || blocked;
        if !every && !self.order.has_waiting(queue.id) {
            return None;
        }
        let fair = self.begin_fair(view, queue, every);
        let mut here = QueueWalk { every, fresh, fair, ..QueueWalk::default() };
        if !every {
            let waiting: Vec<Bidder> = self.order.waiting(queue.id).collect();
            for user in waiting {
                self.enter_user(view, queue, &mut here, user);
            }
        }
        Some(here)
    }

    /// Adds the first class of a user.
    fn enter_user(&mut self, view: &View, queue: &Queue, here: &mut QueueWalk, user: Bidder) {
        if here.users.contains_key(&user) {
            return;
        }
        let stale = self.order.take_stale_user(queue.id, user);
        let fresh = here.fresh || stale;
        let unseen_only = !here.every && !fresh;
        here.users.insert(user, UserWalk { left: LOOKS_PER_USER, fresh, unseen_only });
        let limits = view.limits_of(Consumer::new(queue.id, user.user));
        let room = self.policies.user(view, queue, &limits);
        if room.slots == 0 {
            if let Some(rule) = room.rule {
                self.limit_waits.user(view.site, rule, &limits.consumer);
            }
            if self.policies.queue(view, queue).slots == 0 {
                self.order.short_of_queue(queue.id, user, 1);
            }
            return self.order.pass_over_user(queue.id, user);
        }
        if let Some(first) = self.order.next_class((queue.id, user), None, unseen_only) {
            self.push_head(view, queue.id, here, (first, user));
        }
    }

    /// Walks through the queues of a group, each next class being the first one of all.
    fn walk_group(
        &mut self,
        view: &View,
        all: &mut [QueueWalk],
        (changed, touched): (&HostSet, &HostSet),
        fuel: &mut Fuel,
    ) -> Option<Decision> {
        for here in all.iter_mut() {
            let queue = view.site.queues.get(here.position)?;
            if let Some((head, user)) = here.started.take() {
                self.walk_on_from(view, queue.id, here, head, user, true);
            }
        }
        while !fuel.is_empty() {
            let mut first: Option<(Option<ClassHead>, usize)> = None;
            for (member, here) in all.iter_mut().enumerate() {
                let queue = view.site.queues.get(here.position)?;
                if !self.may_find(view, queue) {
                    continue;
                }
                self.gather_heads(view, queue, here, (changed, touched), fuel);
                let head = here.heads.peek().map(|Reverse(next)| next.0);
                // the share tree of a queue by itself is asked when the turn comes to it
                let known = head.is_some() || here.fair.is_some();
                if known && first.is_none_or(|best| head < best.0) {
                    first = Some((head, member));
                }
            }
            let here = all.get_mut(first?.1)?;
            let queue = view.site.queues.get(here.position)?;
            match self.next_of_queue(view, queue, here, (changed, touched), fuel) {
                Some(decision) => return Some(decision),
                None if here.over => return None,
                None => {}
            }
        }
        None
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

    /// Brings the heads of a queue up to date: the first of them is next.
    fn gather_heads(
        &mut self,
        view: &View,
        queue: &Queue,
        here: &mut QueueWalk,
        hosts: (&HostSet, &HostSet),
        fuel: &mut Fuel,
    ) {
        if queue.aps.is_some() {
            self.rerank(view, None);
        }
        if here.every && !here.fresh && self.changed_for(view, queue, hosts).is_empty() {
            self.narrow(view, queue.id, here);
        }
        self.pull_users(view, queue, here, fuel);
    }

    /// Holds the next class of a queue against hosts.
    fn next_of_queue(
        &mut self,
        view: &View,
        queue: &Queue,
        here: &mut QueueWalk,
        hosts: (&HostSet, &HostSet),
        fuel: &mut Fuel,
    ) -> Option<Decision> {
        let changed = self.changed_for(view, queue, hosts);
        let Some((head, user)) = self.pop_head(view, queue.id, here) else {
            here.over = true;
            return None;
        };
        fuel.spend(1);
        if here.fair.is_some() && !here.users.contains_key(&user) {
            // comes back with the class that this walk begins with
            self.enter_user(view, queue, here, user);
            return None;
        }
        #[cfg(test)]
        {
            self.visits += 1;
        }
        if self.class_moved((queue.id, user), head) {
            self.walk_on_from(view, queue.id, here, head, user, false);
            return None;
        }
        let fresh = self.turn_of(view, queue.id, here, head, user)?;
        let class = head.1;
        let unseen = fresh || self.classes.get(class).unseen;
        if !unseen && changed.is_empty() {
            self.walk_on_from(view, queue.id, here, head, user, false);
            return None;
        }
        let only = (!unseen).then_some(changed);
        let outcome = self.hold(view, queue, head, here, only, fuel);
        if let Outcome::Found(decision) = outcome {
            here.started = Some((head, user));
            return Some(decision);
        }
        let decision = self.note_held((queue.id, user), here, head, outcome);
        self.walk_on_from(view, queue.id, here, head, user, false);
        decision
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
    fn note_held(
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

    /// Has the class changed its place since the walk came to it? It is looked at there then.
    fn class_moved(&mut self, order: (QueueId, Bidder), head: ClassHead) -> bool {
        let now = self.classes.head(head.1);
        if now.map(|first| first.0) == Some(head.0) {
            return false;
        }
        if let Some((place, _)) = now {
            self.classes.get_mut(head.1).unseen = true;
            self.order.unsee(order, (place, head.1));
        }
        true
    }

    /// May a class of the user be looked at in this turn? The answer is whether all of the user's
    /// classes are to be looked at; `None`: the user had all looks of the turn.
    fn turn_of(
        &mut self,
        view: &View,
        queue: QueueId,
        here: &mut QueueWalk,
        head: ClassHead,
        user: Bidder,
    ) -> Option<bool> {
        let of_user = here.users.get_mut(&user)?;
        if of_user.left > 0 {
            return Some(of_user.fresh);
        }
        if of_user.unseen_only {
            self.order.later(view.now.mono_us);
            return None;
        }
        self.order.lag((queue, user), head, view.now.mono_us);
        (of_user.unseen_only, of_user.left) = (true, CLASSES_PER_TURN);
        if let Some(next) = self.order.next_unseen((queue, user), head) {
            self.push_head(view, queue, here, (next, user));
        }
        None
    }

    /// All hosts that have changed are taken: seen classes are not walked through any further.
    fn narrow(&mut self, view: &View, queue: QueueId, here: &mut QueueWalk) {
        here.every = false;
        self.keep_fresh(view, queue, here);
        let fresh = |user: &Bidder| here.users.get(user).is_some_and(|of_user| of_user.fresh);
        here.heads.retain(|Reverse((_, user))| fresh(user));
        let waiting: Vec<Bidder> = self.order.waiting(queue).filter(|user| !fresh(user)).collect();
        for user in waiting {
            let left = here.users.get(&user).map_or(LOOKS_PER_USER, |of_user| of_user.left);
            let stale = self.order.take_stale_user(queue, user);
            here.users.insert(user, UserWalk { left, fresh: stale, unseen_only: !stale });
            if let Some(first) = self.order.next_class((queue, user), None, !stale) {
                self.push_head(view, queue, here, (first, user));
            }
        }
    }

    /// Adds the users whose first class comes before all that are known.
    fn pull_users(&mut self, view: &View, queue: &Queue, here: &mut QueueWalk, fuel: &mut Fuel) {
        while here.every && here.fair.is_none() && !fuel.is_empty() {
            let Some(next) = self.order.next_user(queue.id, here.pulled) else { return };
            if here.heads.peek().is_some_and(|Reverse(first)| *first < next) {
                return;
            }
            here.pulled = Some(next);
            self.enter_user(view, queue, here, next.1);
            fuel.spend(1);
        }
    }

    /// Goes on with the classes of a user behind one. `again`: with that one too, where it stands
    /// no further back than it did: an array stays where it is until its elements are out.
    fn walk_on_from(
        &mut self,
        view: &View,
        queue: QueueId,
        here: &mut QueueWalk,
        head: ClassHead,
        user: Bidder,
        again: bool,
    ) {
        let first = self.classes.head(head.1).filter(|first| again && first.0 <= head.0);
        let unseen_only = here.users.get(&user).is_some_and(|of_user| of_user.unseen_only);
        let next = match first {
            Some((place, _)) => Some((place, head.1)),
            None => self.order.next_class((queue, user), Some(head), unseen_only),
        };
        if let Some(head) = next {
            self.push_head(view, queue, here, (head, user));
        }
    }

    /// Is a class kept back whatever hosts are free: by its advance reservation, its job group or its
    /// service class?
    fn is_kept_back(&mut self, view: &View, kind: &ClassKey, class: u32) -> bool {
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

    /// The slots that limits leave a class of a user in a queue, beside what others reserve.
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
        policies.beside_reservations((view, queue, limits), of_user, own)
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
        let after = |host, vacated| policies.host_after(look, host, vacated);
        let job = BlockedJob::new((&after, look, at), &few.free, only);
        let decision = policies.blocked(&job);
        fuel.spend(job.looks());
        self.again.extend(job.again().map(|again| (again, look.queue.id)));
        decision
    }

    /// Holds a class against hosts: all open ones, or only some.
    fn hold(
        &mut self,
        view: &View,
        queue: &Queue,
        (place, class): ClassHead,
        here: &mut QueueWalk,
        only: Option<&HostSet>,
        fuel: &mut Fuel,
    ) -> Outcome {
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
        let (compiled, looks) = self.classes.compiled(view, class);
        fuel.spend(looks + kind.looks());
        let of = ((view, queue, room.slots), (&*kind, &*limits));
        let (mut decision, mut later) = (None, None);
        for (n, req) in compiled.requirement.alternatives.iter().enumerate() {
            let alternative = req.as_deref();
            if let Some(until) = alternative.and_then(|req| req.starts_later(view, at.job)) {
                later = Some(later.map_or(until, |first: u64| first.min(until)));
                continue;
            }
            let compound = alternative.is_some_and(Alternative::is_compound);
            let look = HostMatch::new(of.0, of.1, &compiled.asked, alternative).of(Some(at));
            let found = match limited {
                true => Err(TooFew::default()),
                false => self.find_hosts(&look, alternative, (class, n), here, only, fuel),
            };
            match found {
                Ok(hosts) => {
                    let (hosts, req, account) = (hosts.into(), req.clone(), here.account);
                    let start = Allocation { at, hosts, req, account };
                    return Outcome::Found(Decision::Start(start));
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
        self.wait_for_pools(view, &kind, class);
        self.delayed.extend(later.map(|until| (until, class)));
        match limited {
            true => Outcome::Limited(of_queue().then_some(need), decision),
            false => Outcome::None(decision),
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
            true => self.next_element(view, id, place.part),
            false => Some(JobRef { job: id, idx: place.next }),
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
            return self.find_part(look, Some(of), here, only, fuel);
        };
        let mut find = |part: &HostMatch| self.find_part(part, None, here, None, fuel);
        let hosts = look.compound(all, &mut find)?;
        // so far each part fits by itself
        match JointRoom::new(look).fits(&hosts) {
            Ok(()) => Ok(hosts),
            Err(short) => Err(TooFew { free: Vec::new(), short }),
        }
    }

    /// Hosts for a job, or for the tasks of one part. `of`: the hosts that are found to be of no
    /// use are passed over the next time in this walk.
    fn find_part(
        &mut self,
        look: &HostMatch,
        of: Option<(u32, usize)>,
        here: &mut QueueWalk,
        only: Option<&HostSet>,
        fuel: &mut Fuel,
    ) -> Result<Hosts, TooFew> {
        let joint = JointRoom::new(look);
        if let Some((rule, _)) = joint.full(look.min_slots()) {
            return Err(TooFew { free: Vec::new(), short: Short::of(rule) });
        }
        let order = look.simple.and_then(|s| s.order.as_ref());
        // a job on several hosts may need any of them
        let only = only.filter(|_| look.any_slot() || look.one_host());
        let mut some = match (look.named_hosts(), only) {
            (Some(named), _) => Some(named),
            (None, Some(only)) if only.len() <= FEW_HOSTS => Some(only.iter().collect()),
            _ => None,
        };
        let policies = self.policies.clone();
        let mut first_fit = FirstFit::new(&policies, look, joint);
        if let Some(hosts) = &mut some {
            fuel.spend(hosts.len());
            hosts.retain(|h| self.hosts.is_open(*h) && only.is_none_or(|o| o.contains(*h)));
            let preferred = |host: HostId| Reverse(look.preference(host).unwrap_or(0));
            hosts.sort_by_cached_key(|host| (preferred(*host), Rank::of(&look.view, *host, order)));
            for host in hosts.iter() {
                fuel.spend(1);
                #[cfg(test)]
                {
                    self.host_looks += 1;
                }
                if first_fit.add(*host) {
                    break;
                }
            }
        } else {
            // hosts move in an order that follows the placements
            let of = of.filter(|_| !order.is_some_and(HostOrder::fresh));
            let order = self.hosts.order(&look.view, order);
            let reached = of.and_then(|of| here.reached.get(&of)).filter(|r| r.0 == order);
            let mut useless: Option<&Rank> = None;
            for rank in self.hosts.after(order, reached.map(|r| &r.1)) {
                fuel.spend(1);
                #[cfg(test)]
                {
                    self.host_looks += 1;
                }
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
        }
        fuel.spend(look.take_unit_looks());
        for (host, until) in std::mem::take(&mut first_fit.rests) {
            self.hosts.rest(host, until);
        }
        first_fit.allocate()
    }
}

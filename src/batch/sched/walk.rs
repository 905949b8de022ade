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
//! higher queue wants any more (`resumption`). Before all queues come the jobs that the goals of
//! service classes want to be started (`goal_walk`), behind them jobs that are given what is left
//! of slot pools (`lent_walk`).

use crate::batch::sched::Sched;
use crate::batch::sched::decision::{Decision, Fuel};
use crate::batch::sched::dispatch_key::{Bidder, ClassHead};
use crate::batch::sched::head_set::HeadSet;
use crate::batch::sched::hold::Outcome;
use crate::batch::sched::order::{CLASSES_PER_TURN, LOOKS_PER_USER, UserClasses};
use crate::batch::sched::view::View;
use crate::batch::sched::walk_state::{QueueWalk, StartedClass, UserWalk, Walk};
use crate::batch::site::Queue;
use crate::batch::site::rules::Consumer;
use crate::batch::state::names::{HostSet, QueueId};

/// Classes of a user in a queue of which a walk asks at once whether they plainly find nothing.
const CLASSES_AT_ONCE: usize = 8;

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
        if !matches!(decision, Some(Decision::Start(_))) {
            self.same_host = None;
        }
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
            let Some(positions) = view.site.dispatch_groups.get(walk.group) else {
                return self.next_lent(view, walk, fuel);
            };
            let queue = |position: &usize| view.site.queues.get(*position);
            let mut queues = positions.iter().filter_map(queue);
            let begins = walk.here.is_empty() && walk.growing.is_none();
            if begins
                && let Some(at) = queues.clone().find_map(|q| self.next_to_resume(view, q, walk))
            {
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
                self.order.begin_group(walk.group, view.now.secs());
                for (position, queue) in positions.iter().zip(queues) {
                    let here = self.enter(view, (walk.group, queue), (changed, touched), fuel);
                    let here = here.map(|here| QueueWalk { position: *position, ..here });
                    walk.here.extend(here);
                }
                walk.growing = walk.here.is_empty().then_some(0);
                continue;
            }
            let all = (&mut walk.here[..], &mut walk.started);
            match self.walk_group(view, all, (changed, touched), fuel) {
                Some(decision) => return Some(decision),
                None if fuel.is_empty() => return None,
                None => {
                    walk.leave_queues();
                    walk.growing = Some(0);
                }
            }
        }
        None
    }

    /// Is there nothing to be found for any queue? A cluster that is full, and whose queues do
    /// nothing about it, costs no walk through its queues.
    fn is_in_vain(&mut self, view: &View, walk: &Walk) -> bool {
        if !self.hosts.none_open() || !walk.touched.is_empty() {
            return false;
        }
        let acts = |queue: &Queue| self.policies.act_on_blocked(view, queue);
        !*self.acts.get_or_insert_with(|| view.site.queues.iter().any(acts))
    }

    /// Goes on to the next group of queues.
    fn leave_group(&self, walk: &mut Walk, fuel: &mut Fuel) {
        walk.leave_queues();
        (walk.growing, walk.grower) = (None, None);
        walk.group += 1;
        fuel.spend(1);
    }

    /// Begins with a queue; none: nothing is to be done there.
    fn enter(
        &mut self,
        view: &View,
        (group, queue): (usize, &Queue),
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
        let fair = self.begin_fair(view, (group, queue), every);
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
        if room.slots == 0 && self.policies.room_by_preemption(view, queue, &limits) == 0 {
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
        (all, started): (&mut [QueueWalk], &mut Option<StartedClass>),
        hosts: (&HostSet, &HostSet),
        fuel: &mut Fuel,
    ) -> Option<Decision> {
        if let Some((member, (head, user))) = started.take() {
            let here = all.get_mut(member)?;
            let queue = view.site.queues.get(here.position)?;
            here.gathered = false;
            self.walk_on_from(view, queue.id, here, head, user, true);
        }
        while !fuel.is_empty() {
            let (member, next) = match all.first()?.fair {
                Some(_) => self.next_of_shares(view, all, hosts, fuel)?,
                None => self.next_by_heads(view, all, hosts, fuel)?,
            };
            let here = all.get_mut(member)?;
            here.gathered = false;
            let queue = view.site.queues.get(here.position)?;
            let decision = self.next_of_queue(view, queue, here, next, hosts, fuel);
            if let Some(Decision::Start(mut start)) = decision {
                *started = Some((member, next));
                self.start_together(view, all, (member, next), &mut start, fuel);
                return Some(Decision::Start(start));
            }
            if decision.is_some() {
                return decision;
            }
        }
        None
    }

    /// Takes the first class of the queues of a group out, with the position of its queue in the
    /// group. A queue whose classes the walk has not come to since is not looked through again.
    fn next_by_heads(
        &mut self,
        view: &View,
        all: &mut [QueueWalk],
        hosts: (&HostSet, &HostSet),
        fuel: &mut Fuel,
    ) -> Option<(usize, (ClassHead, Bidder))> {
        let mut first: Option<(ClassHead, usize)> = None;
        for (member, here) in all.iter_mut().enumerate() {
            let queue = view.site.queues.get(here.position)?;
            if !self.may_find(view, queue) {
                continue;
            }
            let narrows = here.every && !here.fresh && hosts.0.is_empty();
            if !here.gathered || narrows || queue.aps.is_some() {
                self.gather_heads(view, queue, here, hosts, fuel);
                here.gathered = !fuel.is_empty();
            }
            if let Some((head, _)) = here.heads.first()
                && first.is_none_or(|best| head < best.0)
            {
                first = Some((head, member));
            }
        }
        let (_, member) = first?;
        all.get_mut(member)?.heads.take_first().map(|next| (member, next))
    }

    /// Takes the user out whose turn it is by the shares of a group, with the position of the
    /// queue.
    fn next_of_shares(
        &mut self,
        view: &View,
        all: &mut [QueueWalk],
        hosts: (&HostSet, &HostSet),
        fuel: &mut Fuel,
    ) -> Option<(usize, (ClassHead, Bidder))> {
        // as long as hosts have changed, a walk goes through a queue as it began
        if hosts.0.is_empty() {
            for here in all.iter_mut().filter(|here| here.every) {
                let queue = view.site.queues.get(here.position)?;
                self.gather_heads(view, queue, here, hosts, fuel);
            }
        }
        self.next_by_shares(view, all)
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
            self.rerank(view);
        }
        if here.every && !here.fresh && self.changed_for(view, queue, hosts).is_empty() {
            self.narrow(view, queue.id, here);
        }
        self.pull_users(view, queue, here, self.changed_for(view, queue, hosts), fuel);
    }

    /// Holds the next class of a queue against hosts.
    fn next_of_queue(
        &mut self,
        view: &View,
        queue: &Queue,
        here: &mut QueueWalk,
        (head, user): (ClassHead, Bidder),
        hosts: (&HostSet, &HostSet),
        fuel: &mut Fuel,
    ) -> Option<Decision> {
        let changed = self.changed_for(view, queue, hosts);
        fuel.spend(1);
        if here.fair.is_some() && !here.users.contains_key(&user) {
            // comes back with the class that this walk begins with
            if !self.passes_user_by(view, queue, here, user, changed, fuel) {
                self.enter_user(view, queue, here, user);
            }
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
        let outcome = if self.fails_at_once(view, queue, class, only) {
            self.same_host = None;
            Outcome::None(None)
        } else {
            self.hold(view, queue, head, here, only, fuel)
        };
        if let Outcome::Found(decision) = outcome {
            return Some(decision);
        }
        let decision = self.note_held((queue.id, user), here, head, outcome);
        self.walk_on_from(view, queue.id, here, head, user, false);
        decision
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
        here.heads.keep(fresh);
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
    fn pull_users(
        &mut self,
        view: &View,
        queue: &Queue,
        here: &mut QueueWalk,
        changed: &HostSet,
        fuel: &mut Fuel,
    ) {
        while here.every && here.fair.is_none() && !fuel.is_empty() {
            let advances = self.order.advances(queue.id);
            let known = here.upcoming.filter(|upcoming| upcoming.0 == advances);
            let next = match known {
                Some((_, next)) => next,
                None => {
                    self.pass_users_by(view, queue, here, changed, fuel);
                    self.order.next_user(queue.id, here.pulled)
                }
            };
            here.upcoming = Some((advances, next));
            let Some(next) = next else { return };
            if here.heads.first().is_some_and(|first| first < next) {
                return;
            }
            (here.pulled, here.upcoming) = (Some(next), None);
            fuel.spend(1);
            if !self.passes_user_by(view, queue, here, next.1, changed, fuel) {
                self.enter_user(view, queue, here, next.1);
            }
        }
    }

    /// Goes on behind the next users, as long as it is known of them that nothing is found.
    fn pass_users_by(
        &self,
        view: &View,
        queue: &Queue,
        here: &mut QueueWalk,
        changed: &HostSet,
        fuel: &mut Fuel,
    ) {
        if here.fresh || !self.asks_at_once(view, queue, changed) {
            return;
        }
        let until = here.heads.first();
        if until.is_some() && until <= here.pulled {
            return;
        }
        let last = self.order.last_passed(queue.id, here.pulled, until, |user, classes| {
            fuel.spend(1);
            !fuel.is_empty()
                && !here.users.contains_key(&user)
                && match classes {
                    UserClasses::NoRoom => true,
                    UserClasses::Seen(all) => self.finds_nothing(view, all, changed, fuel),
                    UserClasses::Unseen(_) | UserClasses::Stale => false,
                }
        });
        here.pulled = last.or(here.pulled);
    }

    /// Is it plain that the classes of a user, where they are few, find nothing on these hosts?
    fn finds_nothing(&self, view: &View, all: &HeadSet, hosts: &HostSet, fuel: &mut Fuel) -> bool {
        let mut asked = 0;
        let passed = all.iter().all(|(_, class)| {
            asked += 1;
            asked <= CLASSES_AT_ONCE && self.fails_on_all(view, class, hosts)
        });
        fuel.spend(asked);
        passed
    }

    /// Is it known without a look at limits that a walk finds nothing for a user, on the hosts that
    /// have changed or, where classes are unseen, on those that are open? Behind one slot that
    /// becomes free, a walk comes to very many such users.
    fn passes_user_by(
        &mut self,
        view: &View,
        queue: &Queue,
        here: &QueueWalk,
        user: Bidder,
        changed: &HostSet,
        fuel: &mut Fuel,
    ) -> bool {
        if here.fresh || !here.every || here.users.contains_key(&user) {
            return false;
        }
        if !self.asks_at_once(view, queue, changed) {
            return false;
        }
        let (all, hosts, unseen) = match self.order.user_classes((queue.id, user)) {
            UserClasses::NoRoom => return true,
            UserClasses::Stale => return false,
            UserClasses::Seen(all) => (all, changed, false),
            UserClasses::Unseen(all) => (all, self.hosts.open(), true),
        };
        if unseen && !self.asks_at_once(view, queue, hosts) {
            return false;
        }
        let passed = self.finds_nothing(view, all, hosts, fuel);
        if passed && unseen {
            for (_, class) in self.order.take_unseen((queue.id, user)).iter() {
                self.classes.get_mut(class).unseen = false;
            }
        }
        passed
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
}

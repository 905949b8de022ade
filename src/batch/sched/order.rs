//! The classes with a ready job in dispatch order, by queue and user, and which of them are to be
//! held against hosts.
//!
//! A class that has found no host need not be held against a host again before something about
//! the host, the class or a limit has changed. A class is *unseen* until it was held against the
//! open hosts. Where a limit leaves no room, a queue or a user is passed over, and is *stale*: all
//! its classes count as unseen once there is room. Each walk looks at [`LOOKS_PER_USER`] classes of
//! one user in one queue; further ones have turns, [`CLASSES_PER_TURN`] every [`TURN_PAUSE_US`], so
//! that the many different requirements of one user delay nobody else.

use crate::batch::sched::dispatch_key::{Bidder, ClassHead};
use crate::batch::sched::fair_order::{self, FairOrder, NextUser, QueueBidder, QueueSet};
use crate::batch::sched::head_set::HeadSet;
use crate::batch::site::shares::TreeId;
use crate::batch::state::names::{QueueId, UserId};
use crate::batch::usage::fairshare::account::AccountId;
use crate::batch::usage::fairshare::{Fairshare, Leaves};
use crate::model::idmap::IdMap;
use crate::model::time::US;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Included, Unbounded};

/// Classes of one user in one queue that one walk holds against hosts, in dispatch order.
pub const LOOKS_PER_USER: usize = 1024;
/// Further classes of such a user that have a turn at a time.
pub const CLASSES_PER_TURN: usize = 256;
/// Pause before the next of them have their turn, microseconds.
pub const TURN_PAUSE_US: u64 = US / 10;

/// The classes of a user beyond those that a walk looks at.
#[derive(Debug, Default)]
struct Lag {
    /// The turn has come to this one.
    after: Option<ClassHead>,
    /// Hosts have changed since the turns began: they begin again.
    again: bool,
}

/// The ready classes of one user in one queue.
#[derive(Debug, Default)]
struct UserHeads {
    all: HeadSet,
    unseen: HeadSet,
    stale: bool,
    /// Stale, as a limit left the user no room at all.
    no_room: bool,
    /// The place of the user in [`QueueHeads::firsts`].
    listed: Option<ClassHead>,
}

/// The classes of a user as a walk finds them that comes to each user of a queue since some hosts
/// have changed.
pub(super) enum UserClasses<'a> {
    /// A limit left the user no room, and nothing has happened to it since.
    NoRoom,
    /// Each of them was held against all hosts but those that have changed.
    Seen(&'a HeadSet),
    /// Some of them are to be held against all hosts.
    Unseen(&'a HeadSet),
    /// All of them are: a limit may have room again, or anything may have changed.
    Stale,
}

/// The ready classes of one queue.
#[derive(Debug, Default)]
struct QueueHeads {
    users: IdMap<Bidder, UserHeads>,
    /// Users by their first class, or by one that stood before it: a user whose jobs start one
    /// after the other is put at the place of the next one only when a walk comes to the user.
    firsts: BTreeSet<(ClassHead, Bidder)>,
    /// How often a user was put before the place where the user stood.
    advances: u64,
    /// Users with an unseen class, or stale ones for which there may be room.
    waiting: BTreeSet<Bidder>,
    /// Stale users to whom the limit of the queue left too few slots, by the slots that they need.
    short: BTreeSet<(u64, Bidder)>,
    stale: bool,
    /// The place of the queue among those that have the order of a share tree in common.
    fair: Option<Box<FairQueue>>,
}

/// A queue the users of which are in the order of a share tree.
#[derive(Debug)]
struct FairQueue {
    /// The group of queues that have the order in common.
    group: usize,
    /// PRIORITY of the queue.
    priority: u32,
    /// Users whose place in the order may be another one.
    moved: IdMap<Bidder, ()>,
}

/// The users of a group of queues in the order of their share tree.
#[derive(Debug)]
struct FairGroup {
    tree: TreeId,
    /// The users with a ready class, by their next class in this walk.
    all: FairOrder,
    /// The users that the walk has come to in queues that it does not go through whole.
    some: FairOrder,
    /// The queues that have users in `all`.
    queues: BTreeSet<QueueId>,
    /// The queues that the walk goes through whole, and the others that it goes through.
    whole: QueueSet,
    partly: QueueSet,
}

/// All ready classes.
#[derive(Debug, Default)]
pub(super) struct DispatchOrder {
    queues: IdMap<QueueId, QueueHeads>,
    /// The queues in which a user is stale.
    stale_in: IdMap<UserId, BTreeSet<(QueueId, Bidder)>>,
    lags: BTreeMap<(QueueId, Bidder), Lag>,
    /// Users in the order of share trees, by the group of queues.
    fair: BTreeMap<usize, FairGroup>,
    /// When the turns go on, microseconds of the monotonic clock.
    turn: Option<u64>,
}

impl DispatchOrder {
    /// A class has a ready job, the first of which stands at this place.
    pub fn insert(&mut self, (queue, user): (QueueId, Bidder), head: ClassHead, unseen: bool) {
        let of_queue = self.queues.entry(queue).or_default();
        let heads = of_queue.users.entry(user).or_default();
        let before = heads.all.first();
        heads.all.insert(head);
        if unseen {
            heads.unseen.insert(head);
            of_queue.waiting.insert(user);
        }
        of_queue.first_moved(user, before);
    }

    /// The class has no ready job at this place any more.
    pub fn remove(&mut self, (queue, user): (QueueId, Bidder), head: ClassHead) {
        let Some(of_queue) = self.queues.get_mut(&queue) else { return };
        let Some(heads) = of_queue.users.get_mut(&user) else { return };
        let before = heads.all.first();
        heads.all.remove(head);
        heads.unseen.remove(head);
        if heads.unseen.is_empty() && !heads.stale {
            of_queue.waiting.remove(&user);
        }
        let gone = heads.all.is_empty();
        of_queue.first_moved(user, before);
        // classes that come later are unseen
        if gone {
            let heads = of_queue.users.remove(&user);
            if let Some(listed) = heads.and_then(|heads| heads.listed) {
                of_queue.firsts.remove(&(listed, user));
            }
            of_queue.waiting.remove(&user);
            self.take_stale_user(queue, user);
            self.lags.remove(&(queue, user));
        }
    }

    /// The first ready job of a class stands at another place.
    pub fn replace(
        &mut self,
        (queue, user): (QueueId, Bidder),
        before: ClassHead,
        after: ClassHead,
        unseen: bool,
    ) {
        let Some(of_queue) = self.queues.get_mut(&queue) else { return };
        let Some(heads) = of_queue.users.get_mut(&user) else { return };
        let first = heads.all.first();
        heads.all.replace(before, after);
        match unseen {
            true => {
                heads.unseen.replace(before, after);
                of_queue.waiting.insert(user);
            }
            false => {
                heads.unseen.remove(before);
                if heads.unseen.is_empty() && !heads.stale {
                    of_queue.waiting.remove(&user);
                }
            }
        }
        of_queue.first_moved(user, first);
    }

    /// A class was held against all open hosts, without success.
    pub fn seen(&mut self, (queue, user): (QueueId, Bidder), head: ClassHead) {
        let Some(of_queue) = self.queues.get_mut(&queue) else { return };
        let Some(heads) = of_queue.users.get_mut(&user) else { return };
        heads.unseen.remove(head);
        if heads.unseen.is_empty() && !heads.stale {
            of_queue.waiting.remove(&user);
        }
    }

    /// The limit of a queue leaves a user fewer slots than this.
    pub fn short_of_queue(&mut self, queue: QueueId, user: Bidder, need: u64) {
        if let Some(of_queue) = self.queues.get_mut(&queue) {
            of_queue.short.insert((need, user));
        }
    }

    /// The limit of a queue leaves so many slots: users who need no more have a turn.
    pub fn queue_has_room(&mut self, queue: QueueId, room: u64) {
        let Some(of_queue) = self.queues.get_mut(&queue) else { return };
        while of_queue.short.first().is_some_and(|(need, _)| *need <= room)
            && let Some((_, user)) = of_queue.short.pop_first()
        {
            if of_queue.users.contains_key(&user) {
                of_queue.waiting.insert(user);
            }
        }
    }

    /// A class needs more slots than limits leave: it counts as unseen, but no walk comes to it
    /// before the user has another slot, or the queue as many as it needs.
    pub fn limited(&mut self, of: (QueueId, Bidder), head: ClassHead) {
        self.seen(of, head);
        self.stale_in.entry(of.1.user).or_default().insert(of);
        let of_queue = self.queues.get_mut(&of.0);
        if let Some(heads) = of_queue.and_then(|of_queue| of_queue.users.get_mut(&of.1)) {
            heads.stale = true;
        }
    }

    /// A class is to be held against all open hosts again.
    pub fn unsee(&mut self, (queue, user): (QueueId, Bidder), head: ClassHead) {
        let Some(of_queue) = self.queues.get_mut(&queue) else { return };
        let Some(heads) = of_queue.users.get_mut(&user) else { return };
        if heads.all.contains(head) {
            heads.unseen.insert(head);
            of_queue.waiting.insert(user);
        }
    }

    /// All classes are to be held against all open hosts.
    pub fn unsee_all(&mut self) {
        self.queues.values_mut().for_each(|of_queue| of_queue.stale = true);
    }

    /// A limit leaves a queue no room, or its windows do.
    pub fn pass_over_queue(&mut self, queue: QueueId) {
        if let Some(of_queue) = self.queues.get_mut(&queue) {
            of_queue.stale = true;
        }
    }

    /// Are all classes of a queue unseen? All of them count as seen from now on.
    pub fn take_stale_queue(&mut self, queue: QueueId) -> bool {
        self.queues.get_mut(&queue).is_some_and(|of_queue| std::mem::take(&mut of_queue.stale))
    }

    /// A limit leaves a user no room in a queue.
    pub fn pass_over_user(&mut self, queue: QueueId, user: Bidder) {
        let Some(of_queue) = self.queues.get_mut(&queue) else { return };
        let Some(heads) = of_queue.users.get_mut(&user) else { return };
        (heads.stale, heads.no_room) = (true, true);
        of_queue.waiting.remove(&user);
        self.stale_in.entry(user.user).or_default().insert((queue, user));
    }

    /// Are all classes of a user unseen? All of them count as seen from now on.
    pub fn take_stale_user(&mut self, queue: QueueId, user: Bidder) -> bool {
        if let Some(queues) = self.stale_in.get_mut(&user.user) {
            queues.remove(&(queue, user));
            if queues.is_empty() {
                self.stale_in.remove(&user.user);
            }
        }
        let of_queue = self.queues.get_mut(&queue);
        let heads = of_queue.and_then(|of_queue| of_queue.users.get_mut(&user));
        heads.is_some_and(|heads| {
            heads.no_room = false;
            std::mem::take(&mut heads.stale)
        })
    }

    /// The classes of a user in a queue, for a walk that comes to all of them.
    pub fn user_classes(&self, (queue, user): (QueueId, Bidder)) -> UserClasses<'_> {
        let of_queue = self.queues.get(&queue).filter(|of_queue| !of_queue.stale);
        let of_user = of_queue.and_then(|of_queue| of_queue.classes_of(user));
        of_user.map_or(UserClasses::Stale, |(_, classes)| classes)
    }

    /// The last of the users that follow another, one after the other, as long as `passed` says so
    /// of each and none comes behind `until`. None: the first one is not passed.
    pub fn last_passed(
        &self,
        queue: QueueId,
        behind: Option<(ClassHead, Bidder)>,
        until: Option<(ClassHead, Bidder)>,
        mut passed: impl FnMut(Bidder, UserClasses) -> bool,
    ) -> Option<(ClassHead, Bidder)> {
        let of_queue = self.queues.get(&queue).filter(|of_queue| !of_queue.stale)?;
        let from = behind.map_or(Unbounded, Excluded);
        let following = of_queue.firsts.range((from, until.map_or(Unbounded, Excluded)));
        let all_passed = following.take_while(|(listed, user)| {
            let of_user = of_queue.classes_of(*user);
            of_user.is_some_and(|(first, classes)| first == Some(*listed) && passed(*user, classes))
        });
        all_passed.last().copied()
    }

    /// The unseen classes of a user, who has no stale ones; they count as seen from now on.
    pub fn take_unseen(&mut self, (queue, user): (QueueId, Bidder)) -> HeadSet {
        let Some(of_queue) = self.queues.get_mut(&queue) else { return HeadSet::default() };
        let Some(heads) = of_queue.users.get_mut(&user) else { return HeadSet::default() };
        of_queue.waiting.remove(&user);
        std::mem::take(&mut heads.unseen)
    }

    /// A job of this user has left its slots: their limits may have room.
    pub fn released(&mut self, user: UserId) {
        for (queue, bidder) in self.stale_in.get(&user).into_iter().flatten() {
            if let Some(of_queue) = self.queues.get_mut(queue) {
                of_queue.waiting.insert(*bidder);
            }
        }
    }

    /// A limit that left a user no room in a queue may have some.
    pub fn wake_user(&mut self, queue: QueueId, user: UserId) {
        let Some(of_queue) = self.queues.get_mut(&queue) else { return };
        let stale = self.stale_in.get(&user).into_iter().flatten();
        of_queue.waiting.extend(stale.filter(|of| of.0 == queue).map(|of| of.1));
    }

    /// The users with a class that is to be looked at whatever hosts have changed, and has not
    /// been yet.
    pub fn waiting(&self, queue: QueueId) -> impl Iterator<Item = Bidder> + '_ {
        let of_queue = self.queues.get(&queue);
        of_queue.into_iter().flat_map(|of_queue| of_queue.waiting.iter().copied())
    }

    pub fn has_waiting(&self, queue: QueueId) -> bool {
        self.queues.get(&queue).is_some_and(|of_queue| !of_queue.waiting.is_empty())
    }

    /// The user whose first class comes behind that of another.
    pub fn next_user(
        &mut self,
        queue: QueueId,
        behind: Option<(ClassHead, Bidder)>,
    ) -> Option<(ClassHead, Bidder)> {
        let from = behind.map_or(Unbounded, Excluded);
        let of_queue = self.queues.get_mut(&queue)?;
        loop {
            let next = of_queue.firsts.range((from, Unbounded)).next().copied()?;
            let heads = of_queue.users.get_mut(&next.1)?;
            let first = heads.all.first();
            if first == Some(next.0) {
                return Some(next);
            }
            heads.listed = first;
            of_queue.firsts.remove(&next);
            of_queue.firsts.extend(first.map(|first| (first, next.1)));
        }
    }

    /// Changes when an answer of [`DispatchOrder::next_user`] for a queue may have another before
    /// it.
    pub fn advances(&self, queue: QueueId) -> u64 {
        self.queues.get(&queue).map_or(0, |of_queue| of_queue.advances)
    }

    /// The ready classes of a user in a queue.
    pub fn classes_of(&self, (queue, user): (QueueId, UserId)) -> impl Iterator<Item = u32> + '_ {
        let users = self.queues.get(&queue).into_iter().flat_map(|of_queue| &of_queue.users);
        let own = users.filter(move |(bidder, _)| bidder.user == user);
        own.flat_map(|(_, heads)| heads.all.iter().map(|head| head.1))
    }

    /// The users of a queue with ready classes, and these, about in the order of the first of each.
    pub fn by_user(
        &self,
        queue: QueueId,
    ) -> impl Iterator<Item = (Bidder, impl Iterator<Item = u32> + '_)> + '_ {
        let of_queue = self.queues.get(&queue).into_iter();
        of_queue.flat_map(|of_queue| {
            let users = of_queue.firsts.iter().map(|first| first.1);
            users.filter_map(|user| {
                let heads = of_queue.users.get(&user)?;
                Some((user, heads.all.iter().map(|head| head.1)))
            })
        })
    }

    /// The class of a user behind another, of all or of the unseen ones.
    pub fn next_class(
        &self,
        (queue, user): (QueueId, Bidder),
        behind: Option<ClassHead>,
        unseen: bool,
    ) -> Option<ClassHead> {
        let heads = self.queues.get(&queue)?.users.get(&user)?;
        let of = if unseen { &heads.unseen } else { &heads.all };
        of.range((behind.map_or(Unbounded, Excluded), Unbounded)).next()
    }

    /// The unseen class of a user at a place or behind.
    pub fn next_unseen(
        &self,
        (queue, user): (QueueId, Bidder),
        from: ClassHead,
    ) -> Option<ClassHead> {
        self.queues.get(&queue)?.users.get(&user)?.unseen.range((Included(from), Unbounded)).next()
    }

    /// A walk has come to as many classes of a user as it looks at; it was about to look at this
    /// one.
    pub fn lag(&mut self, of: (QueueId, Bidder), at: ClassHead, now: u64) {
        let before = self.next_before(of, at);
        self.lags
            .entry(of)
            .and_modify(|lag| lag.again = true)
            .or_insert(Lag { after: before, again: false });
        self.turn.get_or_insert(now + TURN_PAUSE_US);
    }

    /// A walk leaves unseen classes of a user for a later one.
    pub fn later(&mut self, now: u64) {
        self.turn.get_or_insert(now + TURN_PAUSE_US);
    }

    fn next_before(&self, (queue, user): (QueueId, Bidder), at: ClassHead) -> Option<ClassHead> {
        let heads = self.queues.get(&queue)?.users.get(&user)?;
        heads.all.range((Unbounded, Excluded(at))).next_back()
    }

    pub fn deadline(&self) -> Option<u64> {
        self.turn
    }

    /// Has the turns go on where that is due: the next classes of each such user are unseen. None:
    /// it is not due.
    pub fn take_turns(&mut self, now: u64) -> Option<Vec<ClassHead>> {
        self.turn.take_if(|t| *t <= now)?;
        let lags: Vec<(QueueId, Bidder)> = self.lags.keys().copied().collect();
        let unseen = lags.into_iter().flat_map(|of| self.take_turn(of)).collect();
        if !self.lags.is_empty() {
            self.turn = Some(now + TURN_PAUSE_US);
        }
        Some(unseen)
    }

    fn take_turn(&mut self, of: (QueueId, Bidder)) -> Vec<ClassHead> {
        let Some(lag) = self.lags.get_mut(&of) else { return Vec::new() };
        let heads = self.queues.get(&of.0).and_then(|q| q.users.get(&of.1));
        let from = lag.after.map_or(Unbounded, Excluded);
        let next = heads.into_iter().flat_map(|h| h.all.range((from, Unbounded)));
        let next: Vec<ClassHead> = next.take(CLASSES_PER_TURN).collect();
        match (next.last(), lag.again) {
            (Some(last), _) if next.len() == CLASSES_PER_TURN => lag.after = Some(*last),
            (_, true) => (lag.after, lag.again) = (None, false),
            _ => drop(self.lags.remove(&of)),
        }
        next.iter().for_each(|head| self.unsee(of, *head));
        next
    }
}

/// The order of share trees. A walk takes each user out as it comes to one, and puts the user back
/// at the next class; the walk after it begins with all of them again.
impl DispatchOrder {
    /// A walk begins with a group of queues.
    pub fn begin_group(&mut self, group: usize, now: i64) {
        if let Some(fair) = self.fair.get_mut(&group) {
            fair.some = FairOrder::new(now);
            (fair.whole, fair.partly) = (QueueSet::default(), QueueSet::default());
        }
    }

    /// A walk goes through some users of a queue, in the order of the share tree of its group.
    pub fn begin_fair_partly(&mut self, now: i64, (group, tree): (usize, TreeId), queue: QueueId) {
        self.fair_group(now, (group, tree)).partly.insert(queue);
    }

    /// A walk goes through all users of a queue of this PRIORITY, in the order of the share tree of
    /// its group, as of this second.
    pub fn begin_fair(
        &mut self,
        (shares, now): (&Fairshare, i64),
        (group, tree): (usize, TreeId),
        (queue, priority): (QueueId, u32),
        leaves: impl Fn(Bidder) -> Option<Leaves>,
    ) {
        let Some(of_queue) = self.queues.get_mut(&queue) else { return };
        let known = of_queue.fair.as_ref();
        if known.is_none_or(|fair| (fair.group, fair.priority) != (group, priority)) {
            let moved = of_queue.users.keys().map(|user| (*user, ())).collect();
            of_queue.fair = Some(Box::new(FairQueue { group, priority, moved }));
        }
        let fair = self.fair_group(now, (group, tree));
        fair.all.renew(shares, now);
        fair.queues.insert(queue);
        // the first queue of a walk brings the order up to date for all of them
        let others = if fair.whole.is_empty() { fair.queues.clone() } else { BTreeSet::new() };
        fair.whole.insert(queue);
        for queue in others.into_iter().chain([queue]) {
            self.put_moved(shares, queue, &leaves);
        }
    }

    fn fair_group(&mut self, now: i64, (group, tree): (usize, TreeId)) -> &mut FairGroup {
        self.fair.entry(group).or_insert_with(|| FairGroup {
            tree,
            all: FairOrder::new(now),
            some: FairOrder::new(now),
            queues: BTreeSet::new(),
            whole: QueueSet::default(),
            partly: QueueSet::default(),
        })
    }

    /// Puts the users of a queue in their places who may have others.
    fn put_moved(
        &mut self,
        shares: &Fairshare,
        queue: QueueId,
        leaves: &impl Fn(Bidder) -> Option<Leaves>,
    ) {
        let Some(of_queue) = self.queues.get_mut(&queue) else { return };
        let Some(of) = &mut of_queue.fair else { return };
        let Some(fair) = self.fair.get_mut(&of.group) else { return };
        for bidder in std::mem::take(&mut of.moved).into_keys() {
            let first = of_queue.users.get(&bidder).and_then(|heads| heads.all.first());
            match first.zip(leaves(bidder)) {
                Some((head, leaves)) => {
                    fair.all.put(shares, ((queue, bidder), of.priority), head, &leaves);
                }
                None => fair.all.remove(shares, (queue, bidder)),
            }
        }
    }

    /// Takes the user out whose job is next in the queues of a group that this walk comes to, of
    /// these only, where they are given.
    pub fn next_by_shares(
        &mut self,
        shares: &Fairshare,
        group: usize,
        only: Option<&QueueSet>,
    ) -> Option<NextUser> {
        let fair = self.fair.get_mut(&group)?;
        fair.all.finish_taking(shares);
        fair.some.finish_taking(shares);
        let among = |queues: &QueueSet| only.map(|only| queues.common_with(only));
        let (whole, partly) = (among(&fair.whole), among(&fair.partly));
        let whole = (&fair.all, whole.as_ref().unwrap_or(&fair.whole));
        let partly = (&fair.some, partly.as_ref().unwrap_or(&fair.partly));
        let next = fair_order::first_of(&[whole, partly])?;
        let of = (next.queue, next.bidder);
        if !fair.whole.contains(next.queue) {
            fair.some.take(shares, of);
            return Some(next);
        }
        fair.all.take(shares, of);
        self.note_moved(of);
        Some(next)
    }

    /// Puts a user back, whose next class in this walk stands there; the queue has this PRIORITY.
    pub fn put_fair(
        &mut self,
        shares: &Fairshare,
        group: usize,
        (of, priority): (QueueBidder, u32),
        head: ClassHead,
        leaves: &Leaves,
    ) {
        let Some(fair) = self.fair.get_mut(&group) else { return };
        if !fair.whole.contains(of.0) {
            return fair.some.put(shares, (of, priority), head, leaves);
        }
        fair.all.put(shares, (of, priority), head, leaves);
        self.note_moved(of);
    }

    fn note_moved(&mut self, (queue, bidder): QueueBidder) {
        let fair = self.queues.get_mut(&queue).and_then(|of_queue| of_queue.fair.as_mut());
        if let Some(fair) = fair {
            fair.moved.insert(bidder, ());
        }
    }

    /// A walk that has gone through a queue whole goes on with some of its users: the next classes
    /// of these, where they have one.
    pub fn go_on_partly(
        &mut self,
        group: usize,
        queue: QueueId,
        users: impl Iterator<Item = Bidder>,
    ) -> Vec<(ClassHead, Bidder)> {
        let Some(fair) = self.fair.get_mut(&group) else { return Vec::new() };
        let (all, some, was_whole) = (&fair.all, &fair.some, fair.whole.remove(queue));
        fair.partly.insert(queue);
        let order = if was_whole { all } else { some };
        users.filter_map(|user| Some((order.head((queue, user))?, user))).collect()
    }

    /// The use of an account has changed.
    pub fn rerank(&mut self, shares: &Fairshare, account: AccountId) {
        let (tree, mut known) = (shares.tree(account), None);
        for fair in self.fair.values_mut().filter(|fair| fair.tree == tree) {
            fair.all.rerank(shares, account, &mut known);
            fair.some.rerank(shares, account, &mut known);
        }
    }

    /// The accounts are others than before.
    pub fn forget_shares(&mut self) {
        self.fair.clear();
        self.queues.values_mut().for_each(|of_queue| of_queue.fair = None);
    }
}

impl QueueHeads {
    /// The first class of a user in a queue that is not stale, and all of them.
    fn classes_of(&self, user: Bidder) -> Option<(Option<ClassHead>, UserClasses<'_>)> {
        let heads = self.users.get(&user)?;
        let classes = match heads.stale {
            false if heads.unseen.is_empty() => UserClasses::Seen(&heads.all),
            false => UserClasses::Unseen(&heads.all),
            true if heads.no_room && !self.waiting.contains(&user) => UserClasses::NoRoom,
            true => UserClasses::Stale,
        };
        Some((heads.all.first(), classes))
    }

    /// Has the order of users follow the first class of a user, which was another before.
    fn first_moved(&mut self, user: Bidder, before: Option<ClassHead>) {
        let Some(heads) = self.users.get_mut(&user) else { return };
        let first = heads.all.first();
        if before != first
            && let Some(fair) = &mut self.fair
        {
            fair.moved.insert(user, ());
        }
        let Some(head) = first.filter(|head| heads.listed.is_none_or(|listed| *head < listed))
        else {
            return;
        };
        if let Some(listed) = heads.listed.replace(head) {
            self.firsts.remove(&(listed, user));
        }
        self.firsts.insert((head, user));
        self.advances += 1;
    }
}

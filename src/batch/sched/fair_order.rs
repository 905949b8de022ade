//! The users with ready jobs in the order of a share tree, over all queues that share by it and are
//! dispatched together: at each level the account of the largest dynamic priority comes first, of
//! equal ones the one whose next job has waited longer. Jobs of one account come first in the queue
//! with the larger PRIORITY.
//!
//! A walk names the queues that it comes to ([`first_of`]): accounts with no job in one of these
//! are passed over. The place of an account among equal ones is that of its next job in whatever
//! queue.
//!
//! Priorities are as of one second: [`FairOrder::renew`] works all of them out once a second at
//! most, and a start or an end changes those of the accounts concerned, in the time that it takes
//! to find a place among as many siblings.

use crate::batch::sched::dispatch_key::{Bidder, ClassHead};
use crate::batch::sched::head_set::HeadSet;
use crate::batch::state::names::{Id, IdSet, QueueId};
use crate::batch::usage::fairshare::account::AccountId;
use crate::batch::usage::fairshare::{Fairshare, Leaves};
use crate::model::idmap::IdMap;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// A set of queues.
pub(super) type QueueSet = IdSet<QueueId>;

/// The jobs of a user in a queue.
pub(super) type QueueBidder = (QueueId, Bidder);

/// The dynamic priority as siblings are compared by it: a float of 32 bits, as LSF shows it, so
/// that equal use gives equal ranks whatever the order in which it was added up.
pub(super) type Rank = Reverse<u32>;

/// An account among its siblings.
type Place = (Rank, ClassHead, AccountId);

/// The accounts of a tree, as far as the order depends on them.
pub(super) trait ShareTree {
    /// The dynamic priority of an account at a second.
    fn priority(&self, account: AccountId, now: i64) -> f64;
    fn parent(&self, account: AccountId) -> Option<AccountId>;
}

impl ShareTree for Fairshare {
    fn priority(&self, account: AccountId, now: i64) -> f64 {
        Fairshare::priority(self, account, now)
    }

    fn parent(&self, account: AccountId) -> Option<AccountId> {
        Fairshare::parent(self, account)
    }
}

/// The users of one queue who are charged to an account.
#[derive(Debug)]
struct UsersOfQueue {
    queue: QueueId,
    priority: Reverse<u32>,
    /// The users by their next job.
    heads: HeadSet<(ClassHead, Bidder)>,
}

/// How many users of each queue are charged to accounts below one.
#[derive(Debug, Default)]
struct UsersBelow {
    counts: Vec<u32>,
    queues: QueueSet,
}

/// An account with a ready job.
#[derive(Debug)]
struct Node {
    rank: Rank,
    /// The job at which it stands among its siblings.
    first: Option<ClassHead>,
    below: BTreeSet<Place>,
    users_below: UsersBelow,
    /// The users who are charged to this account; each queue has some.
    users: Vec<UsersOfQueue>,
}

/// The place of a user in a queue.
#[derive(Debug)]
struct Seat {
    priority: Reverse<u32>,
    head: ClassHead,
    leaves: Leaves,
}

/// Users in the order of a share tree.
#[derive(Debug, Default)]
pub(super) struct FairOrder {
    roots: BTreeSet<Place>,
    nodes: IdMap<AccountId, Node>,
    seats: IdMap<QueueBidder, Seat>,
    /// A user who was taken out, and whose place is left as it is until another is asked for:
    /// mostly the user comes back with the next job.
    taken: Option<QueueBidder>,
    /// The second of all priorities.
    as_of: i64,
}

/// The user whose job is next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct NextUser {
    pub(super) queue: QueueId,
    pub(super) bidder: Bidder,
    pub(super) head: ClassHead,
    /// The account through which the user was found.
    pub(super) account: AccountId,
}

fn rank(shares: &impl ShareTree, account: AccountId, as_of: i64) -> Rank {
    // of floats that are not negative the larger has the larger bits
    Reverse((shares.priority(account, as_of) as f32).max(0.0).to_bits())
}

impl FairOrder {
    pub fn new(as_of: i64) -> FairOrder {
        FairOrder { as_of, ..FairOrder::default() }
    }

    /// The next job of a user in a queue of this PRIORITY stands at this place; the user has these
    /// accounts.
    pub fn put(
        &mut self,
        shares: &impl ShareTree,
        (of, priority): (QueueBidder, u32),
        head: ClassHead,
        leaves: &Leaves,
    ) {
        let priority = Reverse(priority);
        self.taken.take_if(|taken| *taken == of);
        let known = self.seats.get_mut(&of);
        if let Some(seat) = known.filter(|s| s.priority == priority && s.leaves == *leaves) {
            let before = std::mem::replace(&mut seat.head, head);
            if before != head {
                self.move_user(shares, of, (before, head), leaves);
            }
            return;
        }
        self.remove(shares, of);
        for leaf in leaves.iter() {
            let rank = self.rank_of(shares, *leaf);
            self.nodes.entry(*leaf).or_insert_with(|| Node::new(rank)).add((of, priority), head);
            self.settle(shares, *leaf);
            self.count(shares, *leaf, of.0, true);
        }
        self.seats.insert(of, Seat { priority, head, leaves: leaves.clone() });
    }

    /// The next job of a user stands at another place.
    fn move_user(
        &mut self,
        shares: &impl ShareTree,
        (queue, bidder): QueueBidder,
        (before, after): (ClassHead, ClassHead),
        leaves: &Leaves,
    ) {
        for leaf in leaves.iter() {
            let users = self.nodes.get_mut(leaf).into_iter().flat_map(|node| &mut node.users);
            for of_queue in users.filter(|users| users.queue == queue) {
                of_queue.heads.replace((before, bidder), (after, bidder));
            }
            self.settle(shares, *leaf);
        }
    }

    /// A user has no next job in a queue.
    pub fn remove(&mut self, shares: &impl ShareTree, of: QueueBidder) {
        self.taken.take_if(|taken| *taken == of);
        let Some(seat) = self.seats.remove(&of) else { return };
        for leaf in seat.leaves.iter() {
            if let Some(node) = self.nodes.get_mut(leaf) {
                node.take(of, seat.head);
                self.count(shares, *leaf, of.0, false);
                self.settle(shares, *leaf);
            }
        }
    }

    /// Takes a user out whose job is next; mostly the user comes back at once.
    pub fn take(&mut self, shares: &impl ShareTree, of: QueueBidder) {
        self.finish_taking(shares);
        self.taken = Some(of);
    }

    /// Gives up the place of the user who was taken out.
    pub fn finish_taking(&mut self, shares: &impl ShareTree) {
        if let Some(of) = self.taken.take() {
            self.remove(shares, of);
        }
    }

    /// The next job of a user in a queue.
    pub fn head(&self, of: QueueBidder) -> Option<ClassHead> {
        let seat = self.seats.get(&of).filter(|_| self.taken != Some(of));
        seat.map(|seat| seat.head)
    }

    /// The use of an account has changed. `known`: its rank as of a second, which several orders
    /// have in common.
    pub fn rerank(
        &mut self,
        shares: &impl ShareTree,
        account: AccountId,
        known: &mut Option<(i64, Rank)>,
    ) {
        let Some(node) = self.nodes.get_mut(&account) else { return };
        let as_of = self.as_of;
        if known.is_none_or(|of| of.0 != as_of) {
            *known = None;
        }
        let (_, rank) = *known.get_or_insert_with(|| (as_of, rank(shares, account, as_of)));
        if node.rank == rank {
            return;
        }
        let before = std::mem::replace(&mut node.rank, rank);
        let Some(first) = node.first else { return };
        let parent = shares.parent(account);
        let Some(siblings) = self.siblings(parent) else { return };
        siblings.remove(&(before, first, account));
        siblings.insert((rank, first, account));
        if let Some(parent) = parent {
            self.settle(shares, parent);
        }
    }

    /// Works out all priorities as of a second.
    pub fn renew(&mut self, shares: &impl ShareTree, now: i64) {
        if now == self.as_of {
            return;
        }
        self.as_of = now;
        let mut all: Vec<AccountId> = self.nodes.keys().copied().collect();
        all.sort_unstable();
        all.into_iter().for_each(|account| self.rerank(shares, account, &mut None));
    }

    fn rank_of(&self, shares: &impl ShareTree, account: AccountId) -> Rank {
        self.nodes.get(&account).map_or_else(|| rank(shares, account, self.as_of), |node| node.rank)
    }

    fn siblings(&mut self, parent: Option<AccountId>) -> Option<&mut BTreeSet<Place>> {
        match parent {
            None => Some(&mut self.roots),
            Some(parent) => self.nodes.get_mut(&parent).map(|node| &mut node.below),
        }
    }

    /// The jobs below an account have changed: puts it and all above it in their places.
    fn settle(&mut self, shares: &impl ShareTree, account: AccountId) {
        let mut next = Some(account);
        while let Some(at) = next {
            let Some(node) = self.nodes.get_mut(&at) else { return };
            let now = node.next();
            let (rank, before) = (node.rank, std::mem::replace(&mut node.first, now));
            if now == before {
                return;
            }
            let parent = shares.parent(at);
            if let Some(of) = parent
                && !self.nodes.contains_key(&of)
            {
                let rank = self.rank_of(shares, of);
                self.nodes.insert(of, Node::new(rank));
            }
            if let Some(siblings) = self.siblings(parent) {
                if let Some(first) = before {
                    siblings.remove(&(rank, first, at));
                }
                siblings.extend(now.map(|first| (rank, first, at)));
            }
            if now.is_none() {
                self.nodes.remove(&at);
            }
            next = parent;
        }
    }

    /// A user of a queue came to an account, or left it: all above it count one more or less.
    fn count(&mut self, shares: &impl ShareTree, leaf: AccountId, queue: QueueId, came: bool) {
        let mut next = shares.parent(leaf);
        while let Some(at) = next {
            if let Some(node) = self.nodes.get_mut(&at) {
                node.users_below.count(queue, came);
            }
            next = shares.parent(at);
        }
    }

    /// The first account of these with a job in one of some queues.
    fn first_in<'a>(&'a self, places: &'a BTreeSet<Place>, queues: &QueueSet) -> Option<&'a Place> {
        let has = |place: &&Place| self.nodes.get(&place.2).is_some_and(|node| node.has(queues));
        places.iter().find(has)
    }

    /// The first account below one, or of all, with a job in one of some queues.
    fn first_below(&self, account: Option<AccountId>, queues: &QueueSet) -> Option<&Place> {
        let places = match account {
            None => &self.roots,
            Some(account) => &self.nodes.get(&account)?.below,
        };
        self.first_in(places, queues)
    }
}

/// The user whose job is next in orders by one tree, each with the queues that count there. Nobody
/// was taken out of them whose place was left.
pub(super) fn first_of(orders: &[(&FairOrder, &QueueSet)]) -> Option<NextUser> {
    let mut at = None;
    loop {
        let nodes = orders.iter().filter_map(|(order, queues)| {
            let node = order.nodes.get(&at?)?;
            node.first_user(queues)
        });
        if let Some((_, (head, bidder), queue)) = nodes.min() {
            return Some(NextUser { queue, bidder, head, account: at? });
        }
        let below = orders.iter().filter_map(|(order, queues)| order.first_below(at, queues));
        at = Some(below.min()?.2);
    }
}

impl Node {
    fn new(rank: Rank) -> Node {
        let (below, users_below) = (BTreeSet::new(), UsersBelow::default());
        Node { rank, first: None, below, users_below, users: Vec::new() }
    }

    fn add(&mut self, ((queue, bidder), priority): (QueueBidder, Reverse<u32>), head: ClassHead) {
        let at = match self.users.iter().position(|users| users.queue == queue) {
            Some(at) => at,
            None => {
                self.users.push(UsersOfQueue { queue, priority, heads: HeadSet::default() });
                self.users.len() - 1
            }
        };
        self.users[at].priority = priority;
        self.users[at].heads.insert((head, bidder));
    }

    fn take(&mut self, (queue, bidder): QueueBidder, head: ClassHead) {
        if let Some(at) = self.users.iter().position(|users| users.queue == queue) {
            self.users[at].heads.remove((head, bidder));
            if self.users[at].heads.is_empty() {
                self.users.swap_remove(at);
            }
        }
    }

    /// The job that is next of all below.
    fn next(&self) -> Option<ClassHead> {
        let own = self.users.iter().filter_map(|users| users.heads.first()).map(|of| of.0).min();
        own.or_else(|| self.below.first().map(|place| place.1))
    }

    /// Is there a job in one of these queues?
    fn has(&self, queues: &QueueSet) -> bool {
        self.users.iter().any(|users| queues.contains(users.queue))
            || self.users_below.queues.has_any_of(queues)
    }

    /// The first user of one of these queues: PRIORITY of the queue, job and user, queue.
    fn first_user(
        &self,
        queues: &QueueSet,
    ) -> Option<(Reverse<u32>, (ClassHead, Bidder), QueueId)> {
        let users = self.users.iter().filter(|users| queues.contains(users.queue));
        users.filter_map(|users| Some((users.priority, users.heads.first()?, users.queue))).min()
    }
}

impl UsersBelow {
    fn count(&mut self, queue: QueueId, came: bool) {
        let at = queue.index();
        if self.counts.len() <= at {
            self.counts.resize(at + 1, 0);
        }
        match came {
            true => {
                self.counts[at] += 1;
                self.queues.insert(queue);
            }
            false => {
                self.counts[at] -= 1;
                if self.counts[at] == 0 {
                    self.queues.remove(queue);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::sched::dispatch_key::DispatchKey;
    use crate::batch::state::names::UserId;
    use crate::model::event::QueuePosition;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// A tree of two groups with three users each, and two users beside them: the groups are the
    /// accounts 0 and 1, the users of the first 2 to 4, of the second 5 to 7, the others 8 and 9.
    struct Tree {
        priorities: Vec<u32>,
    }

    const GROUPS: u32 = 2;
    const ACCOUNTS: u32 = 10;
    const USERS_BELOW: u32 = 3;
    const QUEUES: u32 = 3;

    impl ShareTree for Tree {
        fn priority(&self, account: AccountId, _: i64) -> f64 {
            self.priorities[account.0 as usize].into()
        }

        fn parent(&self, account: AccountId) -> Option<AccountId> {
            let of = account.0.checked_sub(GROUPS)? / USERS_BELOW;
            (of < GROUPS).then_some(AccountId(of))
        }
    }

    fn head(n: u32) -> ClassHead {
        let position = QueuePosition { base: n.into(), between: 0 };
        (DispatchKey::new(0, position, 0, 0), n)
    }

    fn of(queue: u32, user: u32) -> QueueBidder {
        let bidder = Bidder { user: UserId::from_index(user as usize), group: 0 };
        (QueueId::from_index(queue as usize), bidder)
    }

    fn queue_priority(queue: u32) -> u32 {
        10 * (queue / 2)
    }

    /// The users with a next job: account (which is the number of the user), queue and job.
    type Plain = BTreeMap<(u32, u32), u32>;

    /// The next user of some queues, found by a look at each.
    fn next_of(tree: &Tree, all: &Plain, queues: &QueueSet) -> Option<(u32, u32)> {
        let among = |queue: u32| queues.contains(QueueId::from_index(queue as usize));
        let place = |account: u32| {
            let own = all.iter().filter(|((user, _), _)| *user == account);
            (Reverse(tree.priorities[account as usize]), own.map(|(_, job)| *job).min(), account)
        };
        let parent = |account: u32| tree.parent(AccountId(account)).map(|of| of.0);
        let users = |group: Option<u32>, some: bool| {
            let of_group = all.keys().filter(move |(user, _)| parent(*user) == group);
            of_group.filter(move |of| !some || among(of.1)).map(|of| of.0)
        };
        let place_of_group = |group: u32| {
            let first = users(Some(group), false).map(place).min();
            (Reverse(tree.priorities[group as usize]), first.and_then(|first| first.1), group)
        };
        let groups = (0..GROUPS).filter(|group| users(Some(*group), true).next().is_some());
        let top = groups.map(place_of_group).chain(users(None, true).map(place)).min()?.2;
        let account = match top < GROUPS {
            true => users(Some(top), true).map(place).min()?.2,
            false => top,
        };
        let own = all.iter().filter(|((user, queue), _)| *user == account && among(*queue));
        let next = own.min_by_key(|((_, queue), job)| (Reverse(queue_priority(*queue)), **job))?;
        Some(*next.0)
    }

    proptest! {
        /// Users who come, go and are taken out in any order, while priorities change, are next as
        /// a look at each of them says, in whatever queues.
        #[test]
        fn next_user_is_the_one_that_a_look_at_each_finds(
            steps in prop::collection::vec(
                (0u32..5, GROUPS..ACCOUNTS, 0..QUEUES, 0u32..4, 1usize..8),
                1..80,
            ),
        ) {
            let mut tree = Tree { priorities: vec![1; ACCOUNTS as usize] };
            let (mut order, none) = (FairOrder::new(0), FairOrder::new(0));
            let (mut plain, mut jobs) = (Plain::new(), 0);
            for (what, user, queue, number, mask) in steps {
                let mut queues = QueueSet::default();
                for queue in (0..QUEUES as usize).filter(|queue| mask >> queue & 1 == 1) {
                    queues.insert(QueueId::from_index(queue));
                }
                let leaves: Leaves = [AccountId(user)].into();
                match what {
                    0 | 1 => {
                        jobs += 1;
                        let priority = queue_priority(queue);
                        order.put(&tree, (of(queue, user), priority), head(jobs), &leaves);
                        plain.insert((user, queue), jobs);
                    }
                    2 => {
                        order.remove(&tree, of(queue, user));
                        plain.remove(&(user, queue));
                    }
                    3 => {
                        let account = if number < GROUPS { number } else { user };
                        tree.priorities[account as usize] = 1 + number;
                        order.rerank(&tree, AccountId(account), &mut None);
                    }
                    _ => {
                        order.finish_taking(&tree);
                        let next = first_of(&[(&order, &queues), (&none, &queues)]);
                        let found = next.map(|next| {
                            let user = next.bidder.user.index() as u32;
                            (user, next.queue.index() as u32)
                        });
                        prop_assert_eq!(found, next_of(&tree, &plain, &queues));
                        if let Some(next) = next {
                            let of = (next.queue, next.bidder);
                            order.take(&tree, of);
                            prop_assert_eq!(order.head(of), None);
                            plain.remove(&found.unwrap());
                        }
                    }
                }
            }
            order.finish_taking(&tree);
            takes_all_from_two_orders(tree, order, plain)?;
        }
    }

    /// Takes all users out one after the other, half of whom are in a second order. No two accounts
    /// are alike.
    fn takes_all_from_two_orders(
        mut tree: Tree,
        mut order: FairOrder,
        mut plain: Plain,
    ) -> Result<(), TestCaseError> {
        let mut other = FairOrder::new(0);
        for account in 0..ACCOUNTS {
            tree.priorities[account as usize] = ACCOUNTS + account * 7 % ACCOUNTS;
            order.rerank(&tree, AccountId(account), &mut None);
        }
        for ((user, queue), job) in plain.iter().filter(|(of, _)| (of.0 + of.1) % 2 == 0) {
            let (leaves, priority) = ([AccountId(*user)].into(), queue_priority(*queue));
            order.remove(&tree, of(*queue, *user));
            other.put(&tree, (of(*queue, *user), priority), head(*job), &leaves);
        }
        let mut queues = QueueSet::default();
        for queue in 0..QUEUES as usize {
            queues.insert(QueueId::from_index(queue));
        }
        while let Some(next) = first_of(&[(&order, &queues), (&other, &queues)]) {
            let found = (next.bidder.user.index() as u32, next.queue.index() as u32);
            prop_assert_eq!(Some(found), next_of(&tree, &plain, &queues));
            plain.remove(&found);
            order.remove(&tree, (next.queue, next.bidder));
            other.remove(&tree, (next.queue, next.bidder));
        }
        prop_assert!(plain.is_empty());
        Ok(())
    }
}

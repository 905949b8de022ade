//! The users with ready jobs in the order of a share tree: at each level the account of the largest
//! dynamic priority comes first, of equal ones the one whose next job has waited longer.
//!
//! Priorities are as of one second: [`FairOrder::renew`] works all of them out once a second at
//! most, and a start or an end changes those of the accounts concerned, in the time that it takes
//! to find a place among as many siblings.

use crate::batch::sched::dispatch_key::{Bidder, ClassHead};
use crate::batch::usage::fairshare::account::AccountId;
use crate::batch::usage::fairshare::{Fairshare, Leaves};
use crate::model::idmap::IdMap;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// The dynamic priority as siblings are compared by it: a float of 32 bits, as LSF shows it, so
/// that equal use gives equal ranks whatever the order in which it was added up.
pub(super) type Rank = Reverse<u32>;

/// An account among its siblings.
type Place = (Rank, ClassHead, AccountId);

/// An account with a ready job.
#[derive(Debug)]
struct Node {
    rank: Rank,
    /// The job at which it stands among its siblings.
    first: Option<ClassHead>,
    below: BTreeSet<Place>,
    /// The users who are charged to this account, by their next job.
    heads: BTreeSet<(ClassHead, Bidder)>,
}

/// Users in the order of a share tree.
#[derive(Debug, Default)]
pub(super) struct FairOrder {
    roots: BTreeSet<Place>,
    nodes: IdMap<AccountId, Node>,
    seats: IdMap<Bidder, (ClassHead, Leaves)>,
    /// The second of all priorities.
    as_of: i64,
}

fn rank(shares: &Fairshare, account: AccountId, as_of: i64) -> Rank {
    // of floats that are not negative the larger has the larger bits
    Reverse((shares.priority(account, as_of) as f32).max(0.0).to_bits())
}

impl FairOrder {
    pub fn new(as_of: i64) -> FairOrder {
        FairOrder { as_of, ..FairOrder::default() }
    }

    /// The next job of a user stands at this place; the user has these accounts.
    pub fn put(&mut self, shares: &Fairshare, bidder: Bidder, head: ClassHead, leaves: &Leaves) {
        self.take(shares, bidder);
        for leaf in leaves.iter() {
            let rank = self.rank_of(shares, *leaf);
            let node = self.nodes.entry(*leaf).or_insert_with(|| Node::new(rank));
            node.heads.insert((head, bidder));
            self.settle(shares, *leaf);
        }
        self.seats.insert(bidder, (head, leaves.clone()));
    }

    /// A user has no next job.
    pub fn take(&mut self, shares: &Fairshare, bidder: Bidder) {
        let Some((head, leaves)) = self.seats.remove(&bidder) else { return };
        for leaf in leaves.iter() {
            if let Some(node) = self.nodes.get_mut(leaf) {
                node.heads.remove(&(head, bidder));
                self.settle(shares, *leaf);
            }
        }
    }

    /// The next job of a user.
    pub fn head(&self, bidder: Bidder) -> Option<ClassHead> {
        self.seats.get(&bidder).map(|seat| seat.0)
    }

    /// The use of an account has changed. `known`: its rank as of a second, which the orders of
    /// several queues have in common.
    pub fn rerank(
        &mut self,
        shares: &Fairshare,
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
    pub fn renew(&mut self, shares: &Fairshare, now: i64) {
        if now == self.as_of {
            return;
        }
        self.as_of = now;
        let mut all: Vec<AccountId> = self.nodes.keys().copied().collect();
        all.sort_unstable();
        all.into_iter().for_each(|account| self.rerank(shares, account, &mut None));
    }

    fn rank_of(&self, shares: &Fairshare, account: AccountId) -> Rank {
        self.nodes.get(&account).map_or_else(|| rank(shares, account, self.as_of), |node| node.rank)
    }

    fn siblings(&mut self, parent: Option<AccountId>) -> Option<&mut BTreeSet<Place>> {
        match parent {
            None => Some(&mut self.roots),
            Some(parent) => self.nodes.get_mut(&parent).map(|node| &mut node.below),
        }
    }

    /// The jobs below an account have changed: puts it and all above it in their places.
    fn settle(&mut self, shares: &Fairshare, account: AccountId) {
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
}

/// The user whose job is next of all queues that share by one tree, with the number of the queue,
/// and the account through which. `orders`: number, PRIORITY and order of each queue. The user is
/// found as in one queue, by what all queues have below each account; of the jobs of one account
/// those of the queue with the larger PRIORITY come first.
pub(super) fn first_of(
    orders: &[(usize, u32, &FairOrder)],
) -> Option<(usize, (ClassHead, Bidder), AccountId)> {
    let best = orders.iter().filter_map(|(_, _, order)| order.roots.first()).min()?;
    let as_of = orders.first()?.2.as_of;
    let alike = orders.iter().all(|(_, _, order)| order.as_of == as_of);
    // an account has one rank: where the first one of a queue has another, the account that was
    // found is not there
    let has = |first: Option<&Place>, best: &Place| {
        !alike || first.is_some_and(|first| first.0 == best.0)
    };
    let mut at = best.2;
    let mut nodes: Vec<(usize, u32, &FairOrder, &Node)> = orders
        .iter()
        .filter(|(_, _, order)| has(order.roots.first(), best))
        .filter_map(|(number, priority, order)| {
            Some((*number, *priority, *order, order.nodes.get(&at)?))
        })
        .collect();
    loop {
        let heads = nodes.iter().filter_map(|(number, priority, _, node)| {
            Some((Reverse(*priority), node.heads.first()?, *number))
        });
        if let Some((_, (head, bidder), number)) = heads.min() {
            let first = Some((number, (*head, *bidder), at));
            debug_assert_eq!(first, first_without_pruning(orders), "a queue was passed over");
            return first;
        }
        let best = nodes.iter().filter_map(|(_, _, _, node)| node.below.first()).min()?;
        at = best.2;
        nodes.retain_mut(|(_, _, order, node)| {
            let below = Some(*node).filter(|node| has(node.below.first(), best));
            below.and_then(|_| order.nodes.get(&at)).map(|below| *node = below).is_some()
        });
    }
}

/// Finds that user by a look at each account in every queue.
fn first_without_pruning(
    orders: &[(usize, u32, &FairOrder)],
) -> Option<(usize, (ClassHead, Bidder), AccountId)> {
    let roots = orders.iter().filter_map(|(_, _, order)| order.roots.first());
    let mut at = roots.min()?.2;
    loop {
        let nodes = orders.iter().filter_map(|(number, priority, order)| {
            Some((*number, *priority, order.nodes.get(&at)?))
        });
        let heads = nodes.clone().filter_map(|(number, priority, node)| {
            Some((Reverse(priority), node.heads.first()?, number))
        });
        if let Some((_, (head, bidder), number)) = heads.min() {
            return Some((number, (*head, *bidder), at));
        }
        at = nodes.filter_map(|(_, _, node)| node.below.first()).min()?.2;
    }
}

impl Node {
    fn new(rank: Rank) -> Node {
        Node { rank, first: None, below: BTreeSet::new(), heads: BTreeSet::new() }
    }

    /// The job that is next of all below.
    fn next(&self) -> Option<ClassHead> {
        let below = self.below.first().map(|place| place.1);
        self.heads.first().map(|of| of.0).or(below)
    }
}

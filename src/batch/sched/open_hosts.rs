//! The hosts that may take a job at all, each in the orders that requirements ask for.
//!
//! A host is looked at again only after it has changed. While a walk through the classes goes on,
//! hosts leave (they are full) and none comes or moves: what has changed meanwhile is taken up when
//! the next walk begins. So a class that has come to a host of an order need not look at those
//! before it again in this walk. An order with `!` is another matter: a host that was given a job
//! moves in it at once.

use crate::batch::sched::view::View;
use crate::batch::state::names::{HostId, HostSet};
use crate::lang::resreq::{HostOrder, HostView};
use crate::model::idmap::IdMap;
use crate::model::time::US;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// Orders that are kept; one more takes the place of the one that was used longest ago.
const MAX_ORDERS: usize = 16;

/// The place of a host in an order: the smaller is the better.
#[derive(Clone, Debug, Default)]
pub(super) struct Rank {
    by: Vec<f64>,
    host: HostId,
}

impl Rank {
    pub fn of(view: &View, host: HostId, order: Option<&HostOrder>) -> Rank {
        let by = order.map_or(Vec::new(), |o| o.rank(&view.snapshot(host) as &dyn HostView));
        Rank { by, host }
    }
}

impl PartialEq for Rank {
    fn eq(&self, other: &Rank) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Rank {}

impl PartialOrd for Rank {
    fn partial_cmp(&self, other: &Rank) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Rank {
    fn cmp(&self, other: &Rank) -> Ordering {
        // nearly every job has no order of its own
        if self.by.is_empty() && other.by.is_empty() {
            return self.host.cmp(&other.host);
        }
        HostOrder::compare_ranks(&self.by, &other.by).then(self.host.cmp(&other.host))
    }
}

/// The open hosts in one order.
#[derive(Debug, Default)]
struct Ranked {
    order: Option<HostOrder>,
    hosts: BTreeSet<Rank>,
    ranks: IdMap<HostId, Rank>,
    /// [`OpenHosts::uses`] when it was used last, and when it was made.
    used: u64,
    made: u64,
}

impl Ranked {
    fn put(&mut self, view: &View, host: HostId) {
        let rank = Rank::of(view, host, self.order.as_ref());
        self.take(host);
        self.hosts.insert(rank.clone());
        self.ranks.insert(host, rank);
    }

    fn take(&mut self, host: HostId) {
        if let Some(rank) = self.ranks.remove(&host) {
            self.hosts.remove(&rank);
        }
    }
}

/// An order that is kept: its place, and which of those that had this place it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OrderNo(usize, u64);

#[derive(Debug, Default)]
pub(super) struct OpenHosts {
    /// Hosts that have changed since the last walk began.
    changed: HostSet,
    /// All have.
    all_changed: bool,
    open: HostSet,
    orders: Vec<Ranked>,
    uses: u64,
    /// Hosts that have just been given a job, until they may take another, microseconds of the
    /// monotonic clock.
    resting: BTreeMap<(u64, HostId), ()>,
    /// The shortest pause of a host between two jobs of any queue, microseconds.
    pause: u64,
}

impl OpenHosts {
    pub fn change(&mut self, host: HostId) {
        self.changed.insert(host);
    }

    /// The hosts that have changed since the last walk began; `None`: all have.
    pub fn changed_so_far(&self) -> Option<impl Iterator<Item = HostId> + '_> {
        (!self.all_changed).then(|| self.changed.iter())
    }

    pub fn change_all(&mut self) {
        self.all_changed = true;
    }

    pub fn any_changed(&self) -> bool {
        self.all_changed || !self.changed.is_empty()
    }

    pub fn none_open(&self) -> bool {
        self.open.is_empty()
    }

    pub fn open(&self) -> &HostSet {
        &self.open
    }

    pub fn is_open(&self, host: HostId) -> bool {
        self.open.contains(host)
    }

    /// When a host may take a job again next.
    pub fn deadline(&self) -> Option<u64> {
        self.resting.first_key_value().map(|((until, _), ())| *until)
    }

    /// A host may not take a job of some queue before this instant.
    pub fn rest(&mut self, host: HostId, until: u64) {
        self.resting.insert((until, host), ());
    }

    /// Has hosts whose pause is over looked at; whether there was one.
    pub fn wake(&mut self, now: u64) -> bool {
        let mut any = false;
        while let Some(next) = self.resting.first_entry().filter(|e| e.key().0 <= now) {
            self.changed.insert(next.remove_entry().0.1);
            any = true;
        }
        any
    }

    /// The hosts that have changed and that [`OpenHosts::take_changes`] takes up, open or not.
    pub fn changed(&self, view: &View) -> HostSet {
        if !self.all_changed {
            return self.changed.clone();
        }
        let mut all = HostSet::default();
        for host in view.hosts.ids() {
            all.insert(host);
        }
        all
    }

    /// Takes up what has changed: the open hosts among it.
    pub fn take_changes(&mut self, view: &View) -> HostSet {
        let changed = std::mem::take(&mut self.changed);
        let mut opened = HostSet::default();
        if std::mem::take(&mut self.all_changed) {
            let queues = view.site.queues.iter();
            self.pause = queues.map(|q| view.site.accept_interval(&q.conf) * US).min().unwrap_or(0);
            self.open = HostSet::default();
            self.resting.clear();
            for order in &mut self.orders {
                (order.hosts, order.ranks) = (BTreeSet::new(), IdMap::default());
            }
            for host in view.hosts.ids() {
                self.look(view, host, &mut opened);
            }
        } else {
            for host in changed.iter() {
                self.look(view, host, &mut opened);
            }
        }
        opened
    }

    fn look(&mut self, view: &View, host: HostId, opened: &mut HostSet) {
        if self.may_take(view, host) {
            self.open.insert(host);
            opened.insert(host);
            self.orders.iter_mut().for_each(|order| order.put(view, host));
        } else {
            self.close(host);
        }
    }

    fn may_take(&mut self, view: &View, host: HostId) -> bool {
        if !view.hosts.contains(host) || !view.may_take(host) {
            return false;
        }
        if let Some(until) = view.hosts[host].rests_until(self.pause, view.now) {
            self.rest(host, until);
            return false;
        }
        true
    }

    fn close(&mut self, host: HostId) {
        if self.open.remove(host) {
            self.orders.iter_mut().for_each(|order| order.take(host));
        }
    }

    /// A job was started there: closes the host where it takes no other now; whether it is open.
    pub fn started(&mut self, view: &View, host: HostId) -> bool {
        let open = self.may_take(view, host);
        if !open {
            self.close(host);
        } else if self.open.contains(host) {
            // the other orders stand until the next walk
            let fresh = |ranked: &&mut Ranked| ranked.order.as_ref().is_some_and(HostOrder::fresh);
            self.orders.iter_mut().filter(fresh).for_each(|ranked| ranked.put(view, host));
        }
        open
    }

    /// The open hosts in this order; it is made where it is not kept.
    pub fn order(&mut self, view: &View, order: Option<&HostOrder>) -> OrderNo {
        self.uses += 1;
        let at = match self.orders.iter().position(|o| o.order.as_ref() == order) {
            Some(at) => at,
            None => self.new_order(view, order),
        };
        self.orders[at].used = self.uses;
        OrderNo(at, self.orders[at].made)
    }

    fn new_order(&mut self, view: &View, order: Option<&HostOrder>) -> usize {
        let mut new = Ranked { order: order.cloned(), made: self.uses, ..Ranked::default() };
        self.open.iter().for_each(|host| new.put(view, host));
        if self.orders.len() < MAX_ORDERS {
            self.orders.push(new);
            return self.orders.len() - 1;
        }
        let oldest = (0..MAX_ORDERS).min_by_key(|i| self.orders[*i].used).unwrap_or(0);
        self.orders[oldest] = new;
        oldest
    }

    /// The hosts of an order behind a rank, best first.
    pub fn after(&self, order: OrderNo, rank: Option<&Rank>) -> impl Iterator<Item = &Rank> {
        use std::ops::Bound::{Excluded, Unbounded};
        let hosts = &self.orders[order.0].hosts;
        hosts.range((rank.map_or(Unbounded, Excluded), Unbounded))
    }
}

impl Rank {
    pub fn host(&self) -> HostId {
        self.host
    }
}

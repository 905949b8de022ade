//! The sums of a guaranteed pool, and what follows from them.

use crate::batch::site::guarantees::Pool;
use crate::batch::site::service_classes::ServiceClassId;
use crate::batch::usage::pool_room::PoolLeft;

/// The sums of a pool, of slots, hosts, packages, or parts of a resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolNow {
    pub total: u64,
    pub free: u64,
    /// Hosts that only borrowers use; packages that are there once borrowers have ended.
    pub lent: u64,
    /// The amount that each member holds.
    pub used: Vec<u64>,
    /// The guarantees of the members.
    pub guaranteed: Vec<u64>,
    /// The sum of what members are guaranteed and do not hold.
    pub unused: u64,
}

impl PoolNow {
    /// The amount that a member is guaranteed and does not hold.
    pub fn unused_of(&self, member: usize) -> u64 {
        self.guaranteed[member].saturating_sub(self.used[member])
    }

    /// The amounts that the guarantees leave a job of a member, or of none, without a loan.
    pub(super) fn left(&self, member: Option<usize>) -> PoolLeft {
        let own = member.map_or(0, |at| self.unused_of(at));
        let others = self.unused - own;
        let beyond = |amount: u64| own.max(amount.saturating_sub(others));
        PoolLeft { free: beyond(self.free), all: beyond(self.free.saturating_add(self.lent)) }
    }

    /// Have borrowers, those of the members too, what the guarantees would need?
    fn is_short(&self) -> bool {
        self.free.saturating_add(self.lent) < self.unused
    }

    /// May a job of a member go to any host that is its own? Hosts beyond its guarantee may be
    /// borrowed.
    pub(super) fn opens_own(&self, member: usize) -> bool {
        self.used[member] <= self.guaranteed[member] || !self.is_short()
    }

    pub(super) fn settle(&mut self, pool: &Pool) {
        let total = self.total;
        let guaranteed = |of: &(ServiceClassId, _)| pool.amount_of(of.1, total);
        self.guaranteed = pool.members.iter().map(guaranteed).collect();
        self.unused = (0..pool.members.len()).map(|at| self.unused_of(at)).sum();
    }
}

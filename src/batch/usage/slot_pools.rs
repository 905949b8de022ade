//! Slot pools: how many slots each queue of a pool may use now (lsb.queues(5), SLOT_POOL).
//!
//! The slots of a pool are those that its queues use and those that are free on its hosts. They are
//! shared out among the queues with started or ready jobs, queue by queue in the order in which
//! these are served: each gets its share of the slots, rounded up, as long as any are left and it
//! wants them; what nobody took is shared out again likewise. Queues that have less than their
//! share, rounded down, come first, and of these the one that was served longest ago: so none has
//! to wait for ever because others round up. No job is stopped where a queue uses more than that:
//! the free slots go to the queues that lack some, in the same order.
//!
//! The shares are worked out when a pass begins, and hold until the next one. The order in which
//! queues were served is soft state: it begins anew with mbatchd and at a reconfiguration.

use crate::batch::site::Site;
use crate::batch::site::slot_pools::SlotPool;
use crate::batch::state::State;
use crate::batch::state::names::{HostId, HostMap, QueueId};

/// The slots of a host, as a pool counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostOffer {
    /// All slots.
    pub slots: u64,
    /// Free slots, of a host that takes jobs.
    pub free: u64,
}

/// The slots that the ready jobs of a queue want.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotDemand {
    /// Slots; at least as many as was asked about where there are very many.
    pub slots: u64,
    /// The least slots that one of its jobs starts with; 0: no job is ready.
    pub least: u64,
}

/// A queue as the slots of its pool are shared out.
#[derive(Clone, Copy, Debug, Default)]
struct Claimant {
    share: u64,
    used: u64,
    wants: SlotDemand,
    /// When it was served last.
    served: u64,
}

impl Claimant {
    /// The slots that it could use.
    fn most(&self) -> u64 {
        self.used.saturating_add(self.wants.slots)
    }

    /// Has it less than its share of these slots, and a job that wants some?
    fn is_behind(&self, total: u64, shares: u64) -> bool {
        let deserved = total.saturating_mul(self.share) / shares.max(1);
        self.wants.slots > 0 && self.used < deserved.max(1)
    }
}

/// A queue of a pool.
#[derive(Clone, Copy, Debug)]
struct QueueShare {
    /// The slots that it may use.
    most: u64,
    used: u64,
    served: u64,
}

#[derive(Debug, Default)]
struct PoolSlots {
    all: HostOffer,
    queues: Vec<QueueShare>,
}

/// The shares of all pools.
#[derive(Debug, Default)]
pub struct SlotShares {
    pools: Vec<PoolSlots>,
    hosts: HostMap<HostOffer>,
    /// How often the slots were shared out.
    turn: u64,
}

/// The slots that a queue has in use.
fn used_by(state: &State, queue: QueueId) -> u64 {
    state.counts().queue(queue).started()
}

/// The slots that all queues of a pool have in use.
pub fn used_in(state: &State, pool: &SlotPool) -> u64 {
    pool.members.iter().map(|member| used_by(state, member.queue)).sum()
}

impl SlotShares {
    /// A host has other slots than before, or others are free.
    pub fn set_host(&mut self, site: &Site, host: HostId, offer: HostOffer) {
        let before = self.hosts.get(host).copied().unwrap_or_default();
        if before == offer {
            return;
        }
        self.hosts.insert(host, offer);
        for (at, _) in site.slot_pools.iter().filter(|(_, pool)| pool.has_host(host)) {
            let all = &mut self.pool(at).all;
            all.slots = all.slots + offer.slots - before.slots;
            all.free = all.free + offer.free - before.free;
        }
    }

    fn pool(&mut self, at: usize) -> &mut PoolSlots {
        if self.pools.len() <= at {
            self.pools.resize_with(at + 1, PoolSlots::default);
        }
        &mut self.pools[at]
    }

    /// Shares the slots of all pools out. `wants`: what the ready jobs of a queue want, as far as
    /// it is no more than so many slots.
    pub fn share_out(
        &mut self,
        site: &Site,
        state: &State,
        wants: impl Fn(QueueId, u64) -> SlotDemand,
    ) {
        self.turn += 1;
        for (at, conf) in site.slot_pools.iter() {
            let turn = self.turn;
            let pool = self.pool(at);
            let fresh = QueueShare { most: 0, used: 0, served: 0 };
            pool.queues.resize(conf.members.len(), fresh);
            let used: Vec<u64> = conf.members.iter().map(|of| used_by(state, of.queue)).collect();
            let in_use: u64 = used.iter().sum();
            // preempted jobs count, and those that have their slots
            let total = (pool.all.free + in_use).min(pool.all.slots.max(in_use));
            let total = conf.max.map_or(total, |max| total.min(max));
            let mut claimants = Vec::with_capacity(conf.members.len());
            for ((member, queue), used) in conf.members.iter().zip(&mut pool.queues).zip(used) {
                if used > queue.used {
                    queue.served = turn;
                }
                queue.used = used;
                let wants = wants(member.queue, total);
                let (share, served) = (member.share.into(), queue.served);
                claimants.push(Claimant { share, used, wants, served });
            }
            for (queue, most) in pool.queues.iter_mut().zip(shared_out(total, &claimants)) {
                queue.most = most;
            }
        }
    }

    /// The slots that a queue may still get, by the positions of its pool and of the queue there.
    pub fn left(&self, (pool, member): (usize, usize), state: &State, queue: QueueId) -> u64 {
        let share = self.pools.get(pool).and_then(|pool| pool.queues.get(member));
        // before the first pass nobody was given anything
        share.map_or(0, |share| share.most.saturating_sub(used_by(state, queue)))
    }
}

/// The slots that each of these may use of so many: those that it has, and of the free ones those
/// that it lacks, as far as the queues before it in the order of their turns leave any.
fn shared_out(total: u64, all: &[Claimant]) -> Vec<u64> {
    let (order, most) = entitled(total, all);
    let mut free = total.saturating_sub(all.iter().map(|of| of.used).sum());
    let mut may_use: Vec<u64> = all.iter().map(|of| of.used).collect();
    for at in order {
        let lacks = most[at].saturating_sub(all[at].used).min(free);
        may_use[at] += lacks;
        free -= lacks;
    }
    may_use
}

/// The order in which these have their turns, and the slots that each is entitled to of so many.
fn entitled(total: u64, all: &[Claimant]) -> (Vec<usize>, Vec<u64>) {
    let shares: u64 = all.iter().filter(|of| of.most() > 0).map(|of| of.share).sum();
    let mut order: Vec<usize> = (0..all.len()).filter(|at| all[*at].most() > 0).collect();
    order.sort_by_key(|at| match all[*at].is_behind(total, shares) {
        true => (0, all[*at].served, *at),
        false => (1, 0, *at),
    });
    let mut most = vec![0; all.len()];
    let mut left = total;
    loop {
        let of_turn = left;
        for &at in &order {
            let (of, has) = (&all[at], most[at]);
            let share = (of_turn.saturating_mul(of.share)).div_ceil(100);
            let mut given = share.min(of.most().saturating_sub(has)).min(left);
            // a queue without slots that cannot start its smallest job is no use
            if of.used == 0 && has + given < of.wants.least {
                given = match of.wants.least <= has + left {
                    true => of.wants.least - has,
                    false => 0,
                };
            }
            most[at] = has + given;
            left -= given;
        }
        if left == 0 || left == of_turn {
            return (order, most);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Queues by share, slots in use and slots that ready jobs of one slot want.
    fn shares(total: u64, queues: &[(u64, u64, u64)]) -> Vec<u64> {
        let claimant = |&(share, used, slots): &(u64, u64, u64)| {
            let wants = SlotDemand { slots, least: u64::from(slots > 0) };
            Claimant { share, used, wants, served: 0 }
        };
        entitled(total, &queues.iter().map(claimant).collect::<Vec<_>>()).1
    }

    #[test]
    fn shares_round_up_in_the_order_of_queues_until_no_slot_is_left() {
        let queues = [(50, 0, 99), (30, 0, 99), (20, 0, 99)];
        assert_eq!(shares(15, &queues), [8, 5, 2]);
        assert_eq!(shares(12, &queues), [6, 4, 2]);
        assert_eq!(shares(21, &queues), [11, 7, 3]);
        assert_eq!(shares(0, &queues), [0, 0, 0]);
        assert_eq!(shares(21, &[(10, 0, 99); 10]), [3, 3, 3, 3, 3, 3, 3, 0, 0, 0]);
    }

    #[test]
    fn unused_shares_are_shared_out_again_among_the_others() {
        assert_eq!(shares(15, &[(50, 8, 99), (30, 0, 0), (20, 3, 99)]), [11, 0, 4]);
        assert_eq!(shares(15, &[(50, 0, 0), (30, 0, 0), (20, 2, 99)]), [0, 0, 15]);
        assert_eq!(shares(15, &[(50, 2, 1), (30, 5, 99), (20, 3, 99)]), [3, 8, 4]);
        // the sum of shares need not be 100
        assert_eq!(shares(15, &[(30, 0, 99), (30, 0, 99), (30, 0, 99)]), [5, 5, 5]);
        assert_eq!(shares(10, &[(1, 0, 99)]), [10]);
    }

    #[test]
    fn queue_behind_its_share_comes_first_and_of_several_the_one_served_longest_ago() {
        // 20% of 15 is 3, and the third has 2
        assert_eq!(shares(15, &[(50, 8, 99), (30, 5, 99), (20, 2, 99)]), [8, 4, 3]);
        let wants = SlotDemand { slots: 9, least: 1 };
        let queue = |used, served| Claimant { share: 50, used, wants, served };
        assert_eq!(entitled(2, &[queue(1, 3), queue(0, 2), queue(0, 1)]).1, [0, 1, 1]);
        assert_eq!(entitled(1, &[queue(0, 3), queue(0, 2), queue(0, 1)]).1, [0, 0, 1]);
    }

    #[test]
    fn free_slots_go_to_queues_that_lack_some_while_others_keep_what_they_have() {
        let wants = SlotDemand { slots: 9, least: 1 };
        let queue = |used, served| Claimant { share: 50, used, wants, served };
        // each is entitled to two; the first gives nothing back
        assert_eq!(shared_out(4, &[queue(3, 2), queue(0, 1)]), [3, 1]);
        assert_eq!(shared_out(2, &[queue(0, 2), queue(1, 2), queue(0, 1)]), [0, 1, 1]);
    }

    #[test]
    fn queue_with_a_parallel_job_gets_enough_for_it_or_nothing() {
        let queue = |share, slots, least| Claimant {
            share,
            wants: SlotDemand { slots, least },
            ..Claimant::default()
        };
        let (one, four, nine) = (queue(50, 99, 1), queue(20, 8, 4), queue(20, 9, 9));
        assert_eq!(shared_out(8, &[four, one]), [4, 4]);
        // it keeps the free ones until they are enough
        let busy = Claimant { used: 7, ..one };
        assert_eq!(shared_out(8, &[four, busy]), [1, 7]);
        assert_eq!(shared_out(8, &[nine, one]), [0, 8]);
    }
}

//! Policies that some clusters have: fairshare of a queue, of two queues together or of the hosts
//! of a partition, queues of one PRIORITY, queues whose jobs reserve slots or backfill in them, and
//! queues that share a slot pool.
//!
//! The policies have random numbers of their own, so that a seed gives the same cluster as before
//! but for them.

use super::limits::{QUEUES, USERS};
use super::rng::Rng;
use crate::conf::Pos;
use crate::conf::types::{BatchConf, HostPartition, Reserve, ShareAssignment, SlotPoolConf};

/// Makes the random numbers others than those of the rest of the cluster.
const APART: u64 = 0x005e_ed0f_9011_c1e5;
/// Share of the queues whose jobs reserve slots, and of those whose jobs backfill.
const RESERVES: f64 = 0.3;
const BACKFILLS: f64 = 0.4;
/// Share of the clusters all queues of which have one PRIORITY.
const EQUALS: f64 = 0.2;
/// Share of the clusters without a host partition whose queues share a slot pool.
const POOLS: f64 = 0.3;
/// The longest time for which slots are reserved, times MBD_SLEEP_TIME.
const MOST_TURNS: u64 = 3;

/// Shares of the first user, and of each other one or of all others together.
fn shares(rng: &mut Rng) -> Vec<ShareAssignment> {
    let share = |name: &str, shares| ShareAssignment {
        name: name.into(),
        each_member: false,
        shares,
        pos: Pos::default(),
    };
    let rest = if rng.chance(0.5) { "default" } else { "others" };
    let first = format!("user{}", rng.below(USERS as u64));
    vec![share(&first, 1 + rng.below(5) as u32), share(rest, 1 + rng.below(3) as u32)]
}

/// Gives the cluster of a seed its policies. Each user has a share wherever there are shares.
pub(super) fn configure(conf: &mut BatchConf, seed: u64) {
    let rng = &mut Rng::new(seed ^ APART);
    let queue = |conf: &BatchConf, n: usize| {
        conf.queues.iter().position(|queue| queue.name == QUEUES[n].0).unwrap_or_default()
    };
    match rng.below(4) {
        0 => {
            let at = queue(conf, rng.below(QUEUES.len() as u64) as usize);
            conf.queues[at].fairshare = Some(shares(rng));
        }
        1 => {
            let at = queue(conf, 2);
            conf.queues[at].fairshare = Some(shares(rng));
            conf.queues[at].fairshare_queues.names = vec![QUEUES[1].0.into()];
            conf.queues[at].fairshare_queues.by_queue = rng.chance(0.5);
        }
        2 => conf.hosts.partitions.push(HostPartition {
            name: "part".into(),
            hosts: vec!["all".into()],
            shares: shares(rng),
            pos: Pos::default(),
        }),
        _ => {}
    }
    if rng.chance(EQUALS) {
        let priority = conf.queues[queue(conf, 0)].priority;
        conf.queues.iter_mut().for_each(|queue| queue.priority = priority);
    }
    for queue in &mut conf.queues {
        let turns = 1 + rng.below(MOST_TURNS);
        let memory = turns.is_multiple_of(2);
        queue.reserve = rng.chance(RESERVES).then_some(Reserve { turns, memory });
        queue.backfill = rng.chance(BACKFILLS);
    }
    if rng.chance(POOLS) && conf.hosts.partitions.is_empty() {
        pool(conf, rng);
    }
}

/// Gives all queues a slot pool, or all but one.
fn pool(conf: &mut BatchConf, rng: &mut Rng) {
    let by_priority = rng.chance(0.5);
    let beside = rng.below(2 * QUEUES.len() as u64) as usize;
    let (name, all) = (Some("pool".to_owned()), conf.queues.iter_mut().enumerate());
    for (_, queue) in all.filter(|(at, _)| *at != beside) {
        let share = Some(5 + rng.below(60) as u32);
        queue.fairshare_queues.slot_pool =
            SlotPoolConf { name: name.clone(), share, max: None, by_priority };
    }
}

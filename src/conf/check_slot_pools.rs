//! Checks of queue-based fairshare: the queues of a slot pool use the same hosts, and parameters of
//! the pool stand in its first queue (lsb.queues(5), SLOT_POOL).

use super::diag::{Diags, Pos};
use super::lexer::shown;
use super::types::{ClusterConf, QueueConf};
use std::collections::{BTreeMap, BTreeSet};

/// The parameters of a pool, which stand in its first queue.
const OF_POOL: [&str; 2] = ["MAX_SLOTS_IN_POOL", "USE_PRIORITY_IN_POOL"];

pub(super) fn check(conf: &ClusterConf, diags: &mut Diags) {
    let mut firsts: BTreeMap<&str, &QueueConf> = BTreeMap::new();
    for queue in &conf.batch.queues {
        let Some((name, _)) = queue.fairshare_queues.slot_pool.share() else {
            without_pool(queue, diags);
            continue;
        };
        if queue.preemption.preemptive.is_some() {
            let text = format!(
                "jobs of queue <{}> preempt others only while its slot pool <{}> has a free slot",
                shown(&queue.name),
                shown(name)
            );
            diags.warning(at(queue, "PREEMPTION"), text);
        }
        match firsts.get(name) {
            Some(first) => later(conf, (name, first), queue, diags),
            None => {
                partitioned(conf, queue, diags);
                firsts.insert(name, queue);
            }
        }
    }
}

/// The place of a parameter of a queue.
fn at<'a>(queue: &'a QueueConf, name: &str) -> &'a Pos {
    queue.raw.get(name).map_or(&queue.pos, |value| &value.pos)
}

/// A queue that is in no pool has nothing that belongs to one.
fn without_pool(queue: &QueueConf, diags: &mut Diags) {
    let lacking = match queue.raw.contains_key("SLOT_POOL") {
        true => "SLOT_SHARE",
        false => "SLOT_POOL",
    };
    // a value that cannot be read was told
    if queue.raw.contains_key(lacking) {
        return;
    }
    for name in ["SLOT_POOL", "SLOT_SHARE", OF_POOL[0], OF_POOL[1]] {
        if queue.raw.contains_key(name) {
            let text = format!("{name} has no effect: queue <{}> has no {lacking}", queue.name);
            diags.warning(at(queue, name), text);
        }
    }
}

/// A further queue of a pool.
fn later(
    conf: &ClusterConf,
    (pool, first): (&str, &QueueConf),
    queue: &QueueConf,
    diags: &mut Diags,
) {
    for name in OF_POOL.iter().filter(|name| queue.raw.contains_key(**name)) {
        let text = format!(
            "{name} has no effect: the first queue of slot pool <{}> is <{}>",
            shown(pool),
            first.name
        );
        diags.warning(at(queue, name), text);
    }
    let hosts = |queue| -> BTreeSet<&str> {
        conf.queue_hosts(queue).into_iter().map(|host| host.0).collect()
    };
    let (of_first, own) = (hosts(first), hosts(queue));
    if let Some(host) = of_first.symmetric_difference(&own).next() {
        let (with, without) = match own.contains(host) {
            true => (&queue.name, &first.name),
            false => (&first.name, &queue.name),
        };
        let text = format!(
            "the queues of slot pool <{}> must use the same hosts: <{}> is a host of queue \
             <{with}> and not of queue <{without}>",
            shown(pool),
            shown(host)
        );
        diags.error(at(queue, "HOSTS"), text);
    }
}

/// Fairshare of queues and of a host partition cannot both decide about a host.
fn partitioned(conf: &ClusterConf, queue: &QueueConf, diags: &mut Diags) {
    let hosts = conf.queue_hosts(queue);
    for partition in &conf.batch.hosts.partitions {
        let of_partition = conf.partition_hosts(&partition.hosts);
        let both = |host: &&(&str, u32)| of_partition.contains(host.0);
        let Some((host, _)) = hosts.iter().find(both) else { continue };
        let text = format!(
            "queue <{}> is in a slot pool, and its host <{}> is in host partition <{}>: a host \
             has fairshare of queues or of a partition, not both",
            shown(&queue.name),
            shown(host),
            shown(&partition.name)
        );
        return diags.error(at(queue, "SLOT_POOL"), text);
    }
}

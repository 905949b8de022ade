//! Checks of fairshare that need several files: queues with FAIRSHARE, host partitions and the
//! shares of user groups (lsb.queues(5), lsb.hosts(5), lsb.users(5)).

use super::check_aps::between;
use super::diag::Diags;
use super::lexer::shown;
use super::names::nearest;
use super::types::ClusterConf;
use std::collections::BTreeSet;

pub(super) fn check(conf: &ClusterConf, diags: &mut Diags) {
    twice(conf, diags);
    queue_sets(conf, diags);
    partitions(conf, diags);
    cycles(conf, diags);
}

/// Fairshare of a queue and of a host partition cannot both decide about a host.
fn twice(conf: &ClusterConf, diags: &mut Diags) {
    for queue in conf.batch.queues.iter().filter(|q| q.fairshare.is_some()) {
        let hosts = conf.queue_hosts(queue);
        for partition in &conf.batch.hosts.partitions {
            let of_partition = conf.partition_hosts(&partition.hosts);
            let both = |h: &&(&str, u32)| of_partition.contains(h.0);
            let Some((host, _)) = hosts.iter().find(both) else { continue };
            let text = format!(
                "queue <{}> has FAIRSHARE, and its host <{}> is in host partition <{}>: a host \
                 has fairshare of queues or of a partition, not both",
                shown(&queue.name),
                shown(host),
                shown(&partition.name)
            );
            diags.error(&queue.pos, text);
            break;
        }
    }
}

/// FAIRSHARE_QUEUES names queues, each in one set, of a queue with FAIRSHARE.
fn queue_sets(conf: &ClusterConf, diags: &mut Diags) {
    let queues = &conf.batch.queues;
    let of = |name: &str| queues.iter().find(|q| q.name == name);
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for queue in queues.iter().filter(|q| !q.fairshare_queues.names.is_empty()) {
        let at = queue.raw.get("FAIRSHARE_QUEUES").map_or(&queue.pos, |value| &value.pos);
        if queue.fairshare.is_none() {
            let text = format!("queue <{}> has FAIRSHARE_QUEUES and no FAIRSHARE", queue.name);
            diags.error(at, text);
        }
        for name in queue.fairshare_queues.names.iter().map(String::as_str) {
            let text = match of(name) {
                None => {
                    let near = nearest(name, queues.iter().map(|q| q.name.as_str()));
                    let near = near.map_or(String::new(), |n| format!("; did you mean <{n}>?"));
                    format!("FAIRSHARE_QUEUES: no queue <{}>{near}", shown(name))
                }
                Some(other) if other.name == queue.name => continue,
                Some(other) if !other.fairshare_queues.names.is_empty() => {
                    format!("FAIRSHARE_QUEUES: queue <{name}> has FAIRSHARE_QUEUES itself")
                }
                Some(_) if !seen.insert(name) => {
                    format!("FAIRSHARE_QUEUES: queue <{name}> is under another queue already")
                }
                Some(_) => continue,
            };
            diags.error(at, text);
        }
        if !queue.fairshare_queues.by_queue && queue.aps.is_none() {
            between(conf, queue, &queue.fairshare_queues.names, diags);
        }
    }
}

/// A partition has a name, hosts and shares; a host is in one partition.
fn partitions(conf: &ClusterConf, diags: &mut Diags) {
    let all = &conf.batch.hosts.partitions;
    for (position, partition) in all.iter().enumerate() {
        let name = shown(&partition.name);
        if partition.name.is_empty() {
            diags.error(&partition.pos, "host partition without HPART_NAME");
            continue;
        }
        if all[..position].iter().any(|other| other.name == partition.name) {
            diags.error(&partition.pos, format!("host partition <{name}> is given twice"));
            continue;
        }
        if partition.shares.is_empty() {
            diags.error(&partition.pos, format!("host partition <{name}> has no USER_SHARES"));
        }
        let hosts = conf.partition_hosts(&partition.hosts);
        if hosts.is_empty() {
            diags.error(&partition.pos, format!("host partition <{name}> has no hosts"));
        }
        for other in &all[..position] {
            let of_other = conf.partition_hosts(&other.hosts);
            if let Some(host) = hosts.intersection(&of_other).next() {
                let text = format!(
                    "host <{}> is in host partition <{}> already, and in <{name}>",
                    shown(host),
                    shown(&other.name)
                );
                diags.error(&partition.pos, text);
            }
        }
        straddling(conf, (&partition.name, &hosts), diags);
    }
}

/// Queues that use hosts inside and outside of a partition are not ordered by it.
fn straddling(conf: &ClusterConf, (name, hosts): (&str, &BTreeSet<String>), diags: &mut Diags) {
    for queue in conf.batch.queues.iter().filter(|q| q.fairshare.is_none()) {
        let of_queue = conf.queue_hosts(queue);
        let inside = of_queue.iter().filter(|h| hosts.contains(h.0)).count();
        if inside > 0 && inside < of_queue.len() {
            let text = format!(
                "queue <{}> uses hosts inside and outside of host partition <{}>: its jobs are \
                 charged to the partition and dispatched first come, first served",
                shown(&queue.name),
                shown(name)
            );
            diags.warning(&queue.pos, text);
        }
    }
}

/// The shares of a group cannot be divided among groups that lead back to it.
fn cycles(conf: &ClusterConf, diags: &mut Diags) {
    let groups = &conf.batch.users.groups;
    for group in groups {
        let mut reached: BTreeSet<&str> = BTreeSet::new();
        let mut todo = vec![group.name.as_str()];
        while let Some(next) = todo.pop() {
            let lists = groups.iter().filter(|g| g.name == next).flat_map(|g| &g.share_list);
            let below = lists.filter(|a| !a.each_member).map(|a| a.name.as_str());
            todo.extend(below.filter(|name| reached.insert(name)));
        }
        if reached.contains(group.name.as_str()) {
            let text = format!("USER_SHARES of group <{}> lead to itself", shown(&group.name));
            diags.error(&group.pos, text);
        }
    }
}

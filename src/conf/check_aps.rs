//! Checks of APS_PRIORITY that need several queues (lsb.queues(5)).

use super::diag::{Diags, Pos};
use super::lexer::shown;
use super::names::nearest;
use super::types::{ApsFactor, ClusterConf, QueueConf};
use std::collections::BTreeSet;

pub(super) fn check(conf: &ClusterConf, diags: &mut Diags) {
    for queue in &conf.batch.queues {
        match queue.raw.contains_key("APS_PRIORITY") {
            true => beside(queue, diags),
            false if queue.queue_group.is_empty() => {}
            false => {
                let text = format!("queue <{}> has QUEUE_GROUP and no APS_PRIORITY", queue.name);
                diags.error(place(queue, "QUEUE_GROUP"), text);
            }
        }
    }
    groups(conf, diags);
}

fn place<'a>(queue: &'a QueueConf, name: &str) -> &'a Pos {
    queue.raw.get(name).map_or(&queue.pos, |value| &value.pos)
}

/// Parameters of the queue that do not go together with APS_PRIORITY.
fn beside(queue: &QueueConf, diags: &mut Diags) {
    if let Some(value) = queue.raw.get("DISPATCH_ORDER") {
        diags.error(&value.pos, "APS_PRIORITY does not go together with DISPATCH_ORDER");
    }
    if let Some(value) = queue.raw.get("FAIRSHARE_QUEUES") {
        let text = "FAIRSHARE_QUEUES is ignored beside APS_PRIORITY: QUEUE_GROUP takes its place";
        diags.warning(&value.pos, text);
    }
    let weighted = queue.aps.as_ref().is_some_and(|aps| aps.weight(ApsFactor::Fairshare) != 0.0);
    if weighted && queue.fairshare.is_none() {
        let text = "factor FS of APS_PRIORITY counts for nothing in a queue without FAIRSHARE";
        diags.warning(place(queue, "APS_PRIORITY"), text);
    }
}

/// QUEUE_GROUP names queues, each in one group, that have no APS_PRIORITY of their own.
fn groups(conf: &ClusterConf, diags: &mut Diags) {
    let queues = &conf.batch.queues;
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for queue in queues.iter().filter(|q| !q.queue_group.is_empty()) {
        let at = place(queue, "QUEUE_GROUP");
        for name in queue.queue_group.iter().map(String::as_str) {
            let text = match queues.iter().find(|q| q.name == name) {
                None => {
                    let near = nearest(name, queues.iter().map(|q| q.name.as_str()));
                    let near = near.map_or(String::new(), |n| format!("; did you mean <{n}>?"));
                    format!("QUEUE_GROUP: no queue <{}>{near}", shown(name))
                }
                Some(other) if other.name == queue.name => continue,
                Some(other) if other.raw.contains_key("APS_PRIORITY") => {
                    format!("QUEUE_GROUP: queue <{name}> has APS_PRIORITY itself")
                }
                Some(_) if !seen.insert(name) => {
                    format!("QUEUE_GROUP: queue <{name}> is in a group already")
                }
                Some(_) => continue,
            };
            diags.error(at, text);
        }
        between(conf, queue, &queue.queue_group, diags);
    }
}

/// A queue with a priority between those of a group is dispatched behind the whole group.
pub(super) fn between(conf: &ClusterConf, first: &QueueConf, others: &[String], diags: &mut Diags) {
    let in_group = |q: &&QueueConf| q.name == first.name || others.contains(&q.name);
    let queues = &conf.batch.queues;
    let priorities = queues.iter().filter(in_group).map(|q| q.priority);
    let Some((low, high)) = priorities.clone().min().zip(priorities.max()) else { return };
    for other in queues.iter().filter(|q| !in_group(q) && q.priority > low && q.priority < high) {
        let text = format!(
            "the priority of queue <{}> lies between those of the group of queue <{}>: it comes \
             behind the whole group",
            shown(&other.name),
            shown(&first.name)
        );
        diags.warning(place(other, "PRIORITY"), text);
    }
}

//! The groups of queues that are dispatched together, job by job, as if they were one queue.
//!
//! A queue has its turn by PRIORITY, and a group at the place of its first queue. Queues of one
//! PRIORITY that are served first come, first served make one group. So do queues with one formula
//! of APS_PRIORITY, those of FAIRSHARE_QUEUES without DISPATCH_ORDER, whatever their PRIORITY, and
//! those of one PRIORITY whose hosts are those of one host partition. Each other queue with
//! FAIRSHARE is a group by itself.

use crate::batch::site::shares::{ShareTrees, TreeId};

/// The order that the queues of a group have in common.
#[derive(PartialEq, Eq)]
enum DispatchedBy<'a> {
    /// Absolute priority; the queue that has the formula.
    Formula(&'a str),
    /// The shares of a tree, whatever the PRIORITY.
    Shares(TreeId),
    /// The shares of a tree, in queues of this PRIORITY.
    SharesOf(TreeId, u32),
    /// The order of submission, in queues of this PRIORITY.
    Submission(u32),
}

/// A queue, as far as its group depends on it.
pub(super) struct QueueOrder<'a> {
    pub(super) priority: u32,
    /// The queue that has the formula of its APS_PRIORITY.
    pub(super) formula: Option<&'a str>,
    pub(super) tree: Option<TreeId>,
}

/// The positions of the queues, group by group. `queues`: by descending PRIORITY.
pub(super) fn compile<'a>(
    queues: impl Iterator<Item = QueueOrder<'a>>,
    shares: &ShareTrees,
) -> Vec<Vec<usize>> {
    let mut groups: Vec<(DispatchedBy, Vec<usize>)> = Vec::new();
    for (position, queue) in queues.enumerate() {
        let by = dispatched_by(&queue, shares);
        match groups.iter_mut().find(|group| group.0 == by) {
            Some(group) => group.1.push(position),
            None => groups.push((by, vec![position])),
        }
    }
    groups.into_iter().map(|group| group.1).collect()
}

fn dispatched_by<'a>(queue: &QueueOrder<'a>, shares: &ShareTrees) -> DispatchedBy<'a> {
    match (queue.formula, queue.tree) {
        (Some(formula), _) => DispatchedBy::Formula(formula),
        (None, Some(tree)) if shares.get(tree).by_user => DispatchedBy::Shares(tree),
        (None, Some(tree)) => DispatchedBy::SharesOf(tree, queue.priority),
        (None, None) => DispatchedBy::Submission(queue.priority),
    }
}

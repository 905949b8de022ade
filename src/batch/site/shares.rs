//! The share trees of the configuration: which users and groups share what, and by which factors
//! their use counts. See FAIRSHARE in lsb.queues(5), USER_SHARES in lsb.users(5).
//!
//! A tree is made of assignments. A user may have a place at several of them: by name, as a member
//! of groups, else by `default` or `others`. A group with USER_SHARES has a tree of its own below
//! it; the members of one without share its account, first come, first served.

use crate::conf::ClusterConf;
use crate::conf::types::{BatchParams, QueueConf, ShareAssignment};
use std::sync::Arc;

/// Levels of a share tree.
pub const MAX_SHARE_DEPTH: usize = 16;
/// Before the name of a host partition in [`ShareTree::key`].
const PARTITION: char = '@';
/// Seconds of an hour.
const HOUR: f64 = 3600.0;

/// The position of a tree in [`ShareTrees`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TreeId(pub u32);

/// The factors of the dynamic priority.
#[derive(Clone, Debug, PartialEq)]
pub struct Factors {
    /// CPU_TIME_FACTOR, per hour.
    pub cpu_time: f64,
    /// RUN_TIME_FACTOR, per hour.
    pub run_time: f64,
    /// RUN_JOB_FACTOR, per started job or slot.
    pub run_job: f64,
    /// COMMITTED_RUN_TIME_FACTOR, per hour.
    pub committed: f64,
    /// The rate of decay per second: a tenth is left after HIST_HOURS. 0: nothing decays.
    pub rate: f64,
    /// RUN_TIME_DECAY.
    pub run_time_decay: bool,
    /// ENABLE_HIST_RUN_TIME.
    pub hist_run_time: bool,
    /// LSB_NCPU_ENFORCE: slots count, and run time once for each of them; else jobs.
    pub by_slots: bool,
}

impl Factors {
    fn of(conf: &ClusterConf, queue: Option<&QueueConf>) -> Factors {
        let p: &BatchParams = &conf.batch.params;
        let own = queue.map(|queue| queue.factors.clone()).unwrap_or_default();
        let hours = own.hist_hours.unwrap_or(p.hist_hours);
        let enforced = conf.base.lsf.get("LSB_NCPU_ENFORCE").is_some_and(|text| text.trim() == "1");
        Factors {
            cpu_time: own.cpu_time.unwrap_or(p.cpu_time_factor),
            run_time: own.run_time.unwrap_or(p.run_time_factor),
            run_job: own.run_job.unwrap_or(p.run_job_factor),
            committed: own.committed.unwrap_or(p.committed_run_time_factor),
            rate: if hours > 0.0 { std::f64::consts::LN_10 / (hours * HOUR) } else { 0.0 },
            run_time_decay: own.run_time_decay.unwrap_or(p.run_time_decay),
            hist_run_time: own.hist_run_time.unwrap_or(p.enable_hist_run_time),
            // a host partition counts processors in any case
            by_slots: enforced || queue.is_none(),
        }
    }
}

/// The kind of an assignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sharer {
    User,
    /// A group as a whole.
    Group,
    /// `group@`: each member.
    EachMember,
    /// Each other user.
    Default,
    /// All other users together.
    Others,
}

/// A share assignment with those of the group below it.
#[derive(Debug)]
struct Assignment {
    name: Arc<str>,
    sharer: Sharer,
    shares: u32,
    below: Vec<Assignment>,
}

/// One account on the way from the root of a tree to that of a user.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShareStep {
    /// User, group or `others`.
    pub name: Arc<str>,
    pub shares: u32,
}

/// The accounts from the root to one that jobs are charged to; never empty.
pub type SharePath = Vec<ShareStep>;

/// The users and groups that share a queue, or a host partition.
#[derive(Debug)]
pub struct ShareTree {
    /// The queue or the host partition.
    pub name: String,
    pub factors: Factors,
    /// The other queues that dispatch by it (FAIRSHARE_QUEUES).
    pub queues: Vec<String>,
    /// Users come before the PRIORITY of these queues.
    pub by_user: bool,
    /// HOSTS of a host partition, as written; `None`: the tree of a queue.
    pub hosts: Option<Vec<String>>,
    assignments: Vec<Assignment>,
}

/// All share trees.
#[derive(Debug, Default)]
pub struct ShareTrees {
    all: Vec<ShareTree>,
}

fn compile(conf: &ClusterConf, list: &[ShareAssignment], depth: usize) -> Vec<Assignment> {
    let group = |name: &str| conf.batch.users.groups.iter().find(|group| group.name == name);
    let compiled = |a: &ShareAssignment| {
        let of = group(&a.name);
        let sharer = match a.name.as_str() {
            "default" => Sharer::Default,
            "others" => Sharer::Others,
            _ if a.each_member => Sharer::EachMember,
            // a group of the operating system is known once a user is in it
            _ if of.is_some() => Sharer::Group,
            _ => Sharer::User,
        };
        let below = match (sharer, of) {
            (Sharer::Group, Some(of)) if depth < MAX_SHARE_DEPTH => {
                compile(conf, &of.share_list, depth + 1)
            }
            _ => Vec::new(),
        };
        Assignment { name: a.name.as_str().into(), sharer, shares: a.shares, below }
    };
    list.iter().map(compiled).collect()
}

impl ShareTrees {
    /// The trees of a configuration: of each queue with FAIRSHARE, and of each host partition.
    pub fn compile(conf: &ClusterConf) -> ShareTrees {
        let mut all = Vec::new();
        // a queue under another one has the tree of that
        let under = |name: &String| {
            conf.batch
                .queues
                .iter()
                .any(|q| q.name != *name && q.fairshare_queues.names.contains(name))
        };
        for queue in conf.batch.queues.iter().filter(|queue| !under(&queue.name)) {
            if let Some(list) = &queue.fairshare {
                all.push(ShareTree {
                    name: queue.name.clone(),
                    factors: Factors::of(conf, Some(queue)),
                    queues: queue.fairshare_queues.names.clone(),
                    by_user: !queue.fairshare_queues.by_queue,
                    hosts: None,
                    assignments: compile(conf, list, 1),
                });
            }
        }
        for partition in &conf.batch.hosts.partitions {
            all.push(ShareTree {
                name: partition.name.clone(),
                factors: Factors::of(conf, None),
                queues: Vec::new(),
                by_user: false,
                hosts: Some(partition.hosts.clone()),
                assignments: compile(conf, &partition.shares, 1),
            });
        }
        ShareTrees { all }
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub fn get(&self, tree: TreeId) -> &ShareTree {
        &self.all[tree.0 as usize]
    }

    pub fn ids(&self) -> impl Iterator<Item = TreeId> + use<> {
        (0..self.all.len() as u32).map(TreeId)
    }

    /// The tree of the queue of this name.
    pub fn of_queue(&self, name: &str) -> Option<TreeId> {
        let of = |tree: &ShareTree| tree.name == name || tree.queues.iter().any(|q| q == name);
        self.position(|tree| !tree.is_partition() && of(tree))
    }

    /// The tree of the host partition of this name.
    pub fn of_partition(&self, name: &str) -> Option<TreeId> {
        self.position(|tree| tree.is_partition() && tree.name == name)
    }

    /// The tree of a [`ShareTree::key`], or of a queue.
    pub fn of_key(&self, key: &str) -> Option<TreeId> {
        match key.strip_prefix(PARTITION) {
            Some(partition) => self.of_partition(partition),
            None => self.of_queue(key),
        }
    }

    fn position(&self, meant: impl Fn(&ShareTree) -> bool) -> Option<TreeId> {
        self.all.iter().position(meant).map(|position| TreeId(position as u32))
    }
}

impl ShareTree {
    /// Is it the tree of a host partition?
    pub fn is_partition(&self) -> bool {
        self.hosts.is_some()
    }

    /// The name by which the log knows the tree: no queue's begins so.
    pub fn key(&self) -> String {
        match self.is_partition() {
            true => format!("{PARTITION}{}", self.name),
            false => self.name.clone(),
        }
    }

    /// The places of a user, in the order of the assignments; none: no share. `in_group`: is the
    /// user in a group?
    pub fn paths_of(&self, user: &str, in_group: &dyn Fn(&str) -> bool) -> Vec<SharePath> {
        let mut found = Vec::new();
        gather(&self.assignments, (user, in_group), &mut Vec::new(), &mut found);
        found
    }

    /// The accounts that there are whoever has jobs: those of users and groups that are named.
    pub fn named(&self) -> Vec<SharePath> {
        fn gather(list: &[Assignment], path: &mut SharePath, found: &mut Vec<SharePath>) {
            for a in list {
                if matches!(a.sharer, Sharer::EachMember | Sharer::Default) {
                    continue;
                }
                path.push(ShareStep { name: a.name.clone(), shares: a.shares });
                found.push(path.clone());
                gather(&a.below, path, found);
                path.pop();
            }
        }
        let mut found = Vec::new();
        gather(&self.assignments, &mut Vec::new(), &mut found);
        found
    }
}

/// Adds the places of a user below a path.
fn gather(
    list: &[Assignment],
    (user, in_group): (&str, &dyn Fn(&str) -> bool),
    path: &mut SharePath,
    found: &mut Vec<SharePath>,
) {
    let known = found.len();
    let place = |path: &SharePath, name: &str, shares| {
        let mut path = path.clone();
        path.push(ShareStep { name: name.into(), shares });
        path
    };
    let own = list.iter().find(|a| a.sharer == Sharer::User && *a.name == *user);
    // of several groups whose members each have shares, the first one counts
    let member = |a: &&Assignment| a.sharer == Sharer::EachMember && in_group(&a.name);
    let own = own.or_else(|| list.iter().find(member));
    found.extend(own.map(|a| place(path, user, a.shares)));
    // a name that is no user group of lsb.users may be one of the operating system
    let groups = list.iter().filter(|a| match a.sharer {
        Sharer::Group => true,
        Sharer::User => *a.name != *user,
        _ => false,
    });
    for a in groups.filter(|a| in_group(&a.name)) {
        path.push(ShareStep { name: a.name.clone(), shares: a.shares });
        match a.below.is_empty() {
            true => found.push(path.clone()),
            false => gather(&a.below, (user, in_group), path, found),
        }
        path.pop();
    }
    if found.len() > known {
        return;
    }
    let rest = |sharer| list.iter().find(|a| a.sharer == sharer);
    if let Some(a) = rest(Sharer::Default) {
        found.push(place(path, user, a.shares));
    } else if let Some(a) = rest(Sharer::Others) {
        found.push(place(path, "others", a.shares));
    }
}

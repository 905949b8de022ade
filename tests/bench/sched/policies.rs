//! The policies of the groups `sched` and `sim`, all at once: a tree of shares over all users in
//! groups, which all queues have in common, sections Limit of every kind, and thresholds in each
//! queue. The resources that jobs reserve are part of their requirements (site.rs).

use super::site::{Size, queue_name, user_name};
use std::fmt::Write;

/// Groups of the tree of shares, and sections Limit.
const GROUPS: usize = 200;
const LIMITS: usize = 40;

pub fn groups_of(size: &Size) -> usize {
    GROUPS.min(size.users)
}

pub fn group_name(group: usize) -> String {
    format!("group{group:03}")
}

/// Each user is in one group, and each group has shares of its own.
pub fn groups(size: &Size) -> String {
    let count = groups_of(size);
    let mut text = "Begin UserGroup\nGROUP_NAME GROUP_MEMBER USER_SHARES\n".to_owned();
    for group in 0..count {
        let members = || (group..size.users).step_by(count);
        let names: Vec<String> = members().map(user_name).collect();
        let shares: Vec<String> =
            members().map(|user| format!("[{}, {}]", user_name(user), 1 + user % 9)).collect();
        let (names, shares) = (names.join(" "), shares.join(" "));
        let _ = writeln!(text, "{} ({names}) ({shares})", group_name(group));
    }
    text + "End UserGroup\n"
}

/// Thresholds of each queue.
pub const THRESHOLDS: &str = "mem = 100/50\nut = 0.99/1.0\nr15m = 40.0/60.0\n";

/// The first queue has the tree, and the others share by it.
pub fn of_queue(size: &Size, queue: usize) -> String {
    let mut text = String::new();
    if queue == 0 {
        let shares: Vec<String> = (0..groups_of(size))
            .map(|group| format!("[{}, {}]", group_name(group), 10 + group % 50))
            .collect();
        let others: Vec<String> = (1..size.queues).map(queue_name).collect();
        let _ = writeln!(text, "FAIRSHARE = USER_SHARES[{}]", shares.join(" "));
        let _ = writeln!(text, "FAIRSHARE_QUEUES = {}", others.join(" "));
    }
    text
}

/// Limits on groups, projects, queues, users and hosts, each so many times as large.
pub fn limits(size: &Size, times: usize) -> String {
    let mut text = String::new();
    for number in 0..LIMITS {
        let (group, queue) = (number % groups_of(size), queue_name(number % size.queues));
        let about = match number % 5 {
            0 => format!("USERS = {}\nSLOTS = {}", group_name(group), (500 + number * 10) * times),
            1 => format!("PROJECTS = project{number}\nSLOTS = {}", (9_000 + number * 10) * times),
            2 => format!("PER_HOST = all\nQUEUES = {queue}\nSLOTS = {}", (8 + number % 16) * times),
            3 => format!("PER_USER = all\nQUEUES = {queue}\nJOBS = {}", (30 + number) * times),
            _ => format!("PER_USER = {}\nMEM = {}", group_name(group), 2_000_000 + number),
        };
        let _ = write!(text, "Begin Limit\nNAME = limit{number:02}\n{about}\nEnd Limit\n");
    }
    text
}

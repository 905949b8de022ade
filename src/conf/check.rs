//! Checks across files, and what follows from several of them: group members, hosts of a queue,
//! slots of a host, users of a queue.
//!
//! See lsb.queues(5), lsb.hosts(5) and lsb.users(5).

use super::check_requirements::{default_order, unit_types};
use super::diag::{Diags, Pos, Severity};
use super::lexer::shown;
use super::lsb_users;
use super::membership::MAX_GROUP_DEPTH;
use super::names::nearest;
use super::preemption;
use super::types::{ClusterConf, HostPolicy, HostTerm, Mxj, QueueConf, UserTerm};
use std::collections::BTreeSet;

impl ClusterConf {
    /// Names of the server hosts, in the order of lsf.cluster.
    pub fn server_hosts(&self) -> impl Iterator<Item = &str> {
        self.base.cluster.hosts.iter().filter(|h| h.server).map(|h| h.name.as_str())
    }

    /// The queue of that name.
    pub fn queue(&self, name: &str) -> Option<&QueueConf> {
        self.batch.queues.iter().find(|q| q.name == name)
    }

    /// Whether `user` is an LSF administrator.
    pub fn is_admin(&self, user: &str) -> bool {
        self.base.cluster.admins.iter().any(|a| a == user)
    }

    /// The members of a host group, nested groups and patterns resolved, in the order of
    /// lsf.cluster. None: there is no such group.
    pub fn host_group(&self, name: &str) -> Option<Vec<&str>> {
        let wanted = self.group_set(name, 0)?;
        Some(self.server_hosts().filter(|h| wanted.contains(h)).collect())
    }

    fn group_set(&self, name: &str, depth: usize) -> Option<BTreeSet<&str>> {
        let group = self.batch.hosts.groups.iter().find(|g| g.name == name)?;
        let mut set = BTreeSet::new();
        if depth >= MAX_GROUP_DEPTH {
            return Some(set);
        }
        let mut excluded = BTreeSet::new();
        for member in &group.members {
            match member.strip_prefix('~') {
                Some(member) => excluded.extend(self.host_set(member, depth + 1)),
                None => set.extend(self.host_set(member, depth + 1)),
            }
        }
        if !group.external && group.members.iter().all(|m| m.starts_with('~')) {
            set.extend(self.server_hosts());
        }
        set.retain(|h| !excluded.contains(h));
        Some(set)
    }

    /// The server hosts a word of a host list means (`all`, a host, a group, a pattern), in the
    /// order of lsf.cluster; none where it means nothing.
    pub fn expand_hosts(&self, word: &str) -> Vec<&str> {
        let set = self.host_set(word, 0);
        self.server_hosts().filter(|h| set.contains(h)).collect()
    }

    /// The server hosts a word of a host list stands for.
    fn host_set(&self, word: &str, depth: usize) -> BTreeSet<&str> {
        if word == "all" {
            return self.server_hosts().collect();
        }
        if let Some(set) = self.group_set(word.strip_suffix('/').unwrap_or(word), depth) {
            return set;
        }
        if let Some(name) = self.base.hosts.canonical(word) {
            return self.server_hosts().filter(|h| *h == name).collect();
        }
        self.server_hosts().filter(|h| matches_pattern(word, h)).collect()
    }

    /// Whether a word names a host, a group or a pattern that is known.
    pub(super) fn host_known(&self, word: &str) -> bool {
        let word = word.strip_suffix('/').unwrap_or(word);
        word == "all"
            || self.batch.hosts.groups.iter().any(|g| g.name == word)
            || self.base.hosts.canonical(word).is_some()
            || is_pattern(word)
    }

    /// Does a list of hosts mean this one? A list of exclusions alone means all others.
    pub fn hosts_hold(&self, terms: &[HostTerm], host: &str) -> bool {
        let means = |term: &HostTerm| {
            let named = term.cluster.is_none() && term.name != "none" && term.name != "allremote";
            named && (term.name == "others" || self.host_set(&term.name, 0).contains(host))
        };
        if terms.iter().any(|term| term.exclude && means(term)) {
            return false;
        }
        let mut chosen = terms.iter().filter(|term| !term.exclude).peekable();
        chosen.peek().is_none() || chosen.any(means)
    }

    /// The hosts a queue may use, each with its preference, in the order of lsf.cluster.
    pub fn queue_hosts(&self, queue: &QueueConf) -> Vec<(&str, u32)> {
        let mut prefs: Vec<Option<u32>> = Vec::new();
        let hosts: Vec<&str> = self.server_hosts().collect();
        prefs.resize(hosts.len(), None);
        let chosen = |term: &&HostTerm| !term.exclude && term.cluster.is_none();
        let mut enter = |set: &BTreeSet<&str>, pref: u32, only_new: bool| {
            for (host, slot) in hosts.iter().zip(&mut prefs) {
                if set.contains(host) && !(only_new && slot.is_some()) {
                    *slot = Some(slot.unwrap_or(0).max(pref));
                }
            }
        };
        let named = |t: &&HostTerm| t.name != "others" && t.name != "none" && t.name != "allremote";
        for term in queue.hosts.iter().filter(chosen).filter(named) {
            enter(&self.host_set(&term.name, 0), term.pref, false);
        }
        let everyone: BTreeSet<&str> = hosts.iter().copied().collect();
        for term in queue.hosts.iter().filter(chosen).filter(|t| t.name == "others") {
            enter(&everyone, term.pref, true);
        }
        if queue.hosts.iter().all(|t| t.exclude) {
            enter(&everyone, 0, true);
        }
        let mut excluded = BTreeSet::new();
        for term in queue.hosts.iter().filter(|t| t.exclude) {
            excluded.extend(self.host_set(&term.name, 0));
        }
        hosts
            .iter()
            .zip(prefs)
            .filter(|(host, _)| !excluded.contains(*host))
            .filter_map(|(host, pref)| Some((*host, pref?)))
            .collect()
    }

    /// The row of lsb.hosts that holds for a host: its own, else its group's, else its type's or
    /// model's, else `default`. Type and model are what lim found, where known.
    pub fn host_policy(
        &self,
        host: &str,
        host_type: Option<&str>,
        model: Option<&str>,
    ) -> Option<&HostPolicy> {
        let rows = &self.batch.hosts.hosts;
        let is_host = |r: &&HostPolicy| self.base.hosts.canonical(&r.name) == Some(host);
        let is_group =
            |r: &&HostPolicy| self.group_set(&r.name, 0).is_some_and(|set| set.contains(host));
        let is_kind =
            |r: &&HostPolicy| Some(r.name.as_str()) == host_type || Some(r.name.as_str()) == model;
        rows.iter()
            .find(is_host)
            .or_else(|| rows.iter().find(is_group))
            .or_else(|| rows.iter().find(is_kind))
            .or_else(|| rows.iter().find(|r| r.name == "default"))
    }

    /// MXJ of a host that has `ncpus` processors; None is unlimited. A host that no row of
    /// lsb.hosts speaks of takes no jobs; with no row at all every host takes one per CPU.
    pub fn host_slots(
        &self,
        host: &str,
        host_type: Option<&str>,
        model: Option<&str>,
        ncpus: u32,
    ) -> Option<u32> {
        match self.host_policy(host, host_type, model).map(|row| row.mxj) {
            Some(Mxj::Unlimited) => None,
            Some(Mxj::Cpus) => Some(ncpus),
            Some(Mxj::Slots(slots)) => Some(slots),
            None if self.batch.hosts.hosts.is_empty() => Some(ncpus),
            None => Some(0),
        }
    }

    /// The hosts that HOSTS of a host partition means.
    pub fn partition_hosts(&self, words: &[String]) -> BTreeSet<String> {
        let set = |word: &str| self.host_set(word, 0).into_iter().map(str::to_owned);
        let left_out: BTreeSet<String> =
            words.iter().filter_map(|word| word.strip_prefix('~')).flat_map(set).collect();
        let named = words.iter().filter(|word| !word.starts_with('~'));
        named.flat_map(|word| set(word)).filter(|host| !left_out.contains(host)).collect()
    }

    /// Whether `user` belongs to a group of lsb.users, nested groups followed. `unix_groups`
    /// are the names of the user's groups in the operating system.
    pub fn in_user_group(&self, user: &str, group: &str, unix_groups: &[String]) -> bool {
        self.in_group(user, group, unix_groups, 0)
    }

    fn in_group(&self, user: &str, name: &str, unix_groups: &[String], depth: usize) -> bool {
        let known = match depth {
            0 => self.batch.users.membership().and_then(|all| all.holds(name, user, unix_groups)),
            _ => None,
        };
        known.unwrap_or_else(|| self.walk_to_user(user, name, unix_groups, depth))
    }

    /// Whether a user is found among the members of a group, by a walk through them.
    #[cfg(test)]
    pub fn walks_to_user(&self, user: &str, name: &str, unix_groups: &[String]) -> bool {
        self.walk_to_user(user, name, unix_groups, 0)
    }

    fn walk_to_user(&self, user: &str, name: &str, unix_groups: &[String], depth: usize) -> bool {
        let Some(group) = self.batch.users.group(name) else {
            return unix_groups.iter().any(|g| g == name);
        };
        if depth >= MAX_GROUP_DEPTH {
            return false;
        }
        self.terms_hold(&group.members, user, unix_groups, depth + 1)
    }

    /// Whether `user` is meant by the words of USERS or of a member list.
    pub fn user_in(&self, terms: &[UserTerm], user: &str, unix_groups: &[String]) -> bool {
        self.terms_hold(terms, user, unix_groups, 0)
    }

    fn terms_hold(
        &self,
        terms: &[UserTerm],
        user: &str,
        unix_groups: &[String],
        depth: usize,
    ) -> bool {
        let holds = |t: &UserTerm| {
            t.name == "all"
                || t.name == user
                || (t.name != "none" && self.in_group(user, &t.name, unix_groups, depth))
        };
        if terms.iter().any(|t| t.exclude && holds(t)) {
            return false;
        }
        let mut chosen = terms.iter().filter(|t| !t.exclude).peekable();
        // A list of exclusions alone means everyone else.
        chosen.peek().is_none() && !terms.is_empty() || chosen.any(holds)
    }

    /// Is `user` meant by these words, where of all user groups only `given` counts, and the groups
    /// that it is nested in? `None`: no group does.
    pub fn user_in_by_group(&self, terms: &[UserTerm], user: &str, given: Option<&str>) -> bool {
        let holds = |t: &UserTerm| {
            t.name == "all"
                || t.name == user
                || given.is_some_and(|given| self.is_nested(given, &t.name))
        };
        if terms.iter().any(|t| t.exclude && holds(t)) {
            return false;
        }
        let mut chosen = terms.iter().filter(|t| !t.exclude).peekable();
        chosen.peek().is_none() && !terms.is_empty() || chosen.any(holds)
    }

    /// Is a user group this one, or a member of it by name, nested groups followed?
    pub fn is_nested(&self, inner: &str, outer: &str) -> bool {
        self.nested(inner, outer, 0)
    }

    fn nested(&self, inner: &str, outer: &str, depth: usize) -> bool {
        if inner == outer {
            return true;
        }
        let Some(group) = self.batch.users.group(outer).filter(|_| depth < MAX_GROUP_DEPTH) else {
            return false;
        };
        let mut members = group.members.iter().filter(|t| !t.exclude);
        members.any(|t| self.nested(inner, &t.name, depth + 1))
    }

    /// Whether USERS of a queue admits `user`; LSF administrators are not exempt.
    pub fn queue_admits(&self, queue: &QueueConf, user: &str, unix_groups: &[String]) -> bool {
        queue.users.is_empty() || self.terms_hold(&queue.users, user, unix_groups, 0)
    }

    /// Whether `user` administers a queue: by its ADMINISTRATORS, or as an LSF administrator.
    pub fn administers(&self, queue: &QueueConf, user: &str, unix_groups: &[String]) -> bool {
        self.is_admin(user) || self.names_admin(&queue.admins, user, unix_groups)
    }

    /// Do the words of ADMINISTRATORS or GROUP_ADMIN mean a user? Brackets behind a word of
    /// GROUP_ADMIN are about the files of configuration, not about jobs.
    pub fn names_admin(&self, words: &[String], user: &str, unix_groups: &[String]) -> bool {
        words.iter().any(|word| {
            let word = word.split('[').next().unwrap_or(word);
            word == "all" || word == user || self.in_user_group(user, word, unix_groups)
        })
    }
}

/// Whether a word is a host pattern rather than a name.
pub fn is_pattern(word: &str) -> bool {
    word.contains(['*', '[', '?'])
}

/// Whether a host name matches `host*`, `host[1-10]`, `host[01-10,15]`, any case.
pub fn matches_pattern(pattern: &str, name: &str) -> bool {
    let pattern = pattern.to_ascii_lowercase();
    let name = name.to_ascii_lowercase();
    // Steps bound the work of hostile patterns; real ones need a few.
    let mut steps = 10_000;
    matches_at(&pattern, &name, &mut steps)
}

fn matches_at(pattern: &str, name: &str, steps: &mut usize) -> bool {
    if *steps == 0 {
        return false;
    }
    *steps -= 1;
    let Some(first) = pattern.chars().next() else { return name.is_empty() };
    let rest = &pattern[first.len_utf8()..];
    match first {
        '*' => {
            let mut ends = name.char_indices().map(|(i, _)| i).chain([name.len()]);
            ends.any(|i| matches_at(rest, &name[i..], steps))
        }
        '[' if rest.contains(']') => {
            let (ranges, after) = rest.split_once(']').unwrap_or((rest, ""));
            let digits = name.bytes().take_while(u8::is_ascii_digit).count();
            (1..=digits).any(|n| {
                ranges.split(',').any(|r| in_range(r.trim(), &name[..n]))
                    && matches_at(after, &name[n..], steps)
            })
        }
        '?' => name.chars().next().is_some_and(|c| matches_at(rest, &name[c.len_utf8()..], steps)),
        _ => name.strip_prefix(first).is_some_and(|name| matches_at(rest, name, steps)),
    }
}

/// Whether the digits fall in `5` or `1-10`; leading zeros count where the range has them.
fn in_range(range: &str, digits: &str) -> bool {
    let (low, high) = range.split_once('-').unwrap_or((range, range));
    let (low, high) = (low.trim(), high.trim());
    let padded = low.len() > 1 && low.starts_with('0');
    let width_fits = if padded {
        digits.len() == low.len()
    } else {
        digits.len() == 1 || !digits.starts_with('0')
    };
    match (low.parse::<u64>(), high.parse::<u64>(), digits.parse::<u64>()) {
        (Ok(low), Ok(high), Ok(n)) => width_fits && (low..=high).contains(&n),
        _ => false,
    }
}

/// The checks that need several files.
pub(super) fn cross(conf: &ClusterConf, diags: &mut Diags) {
    default_queue(conf, diags);
    default_application(conf, diags);
    host_rows(conf, diags);
    host_groups(conf, diags);
    queue_hosts(conf, diags);
    reservation_hosts(conf, diags);
    group_cycles(conf, diags);
    memory_limits(conf, diags);
    acct_archives(conf, diags);
    preemption::check(conf, diags);
    lsb_users::check_admins(&conf.batch, diags);
    unit_types(conf, diags);
    default_order(conf, diags);
}

/// Hosts of the policies of advance reservations that are not there.
fn reservation_hosts(conf: &ClusterConf, diags: &mut Diags) {
    for policy in &conf.batch.resources.reservations {
        for term in policy.hosts.iter().filter(|term| term.cluster.is_none()) {
            let special = ["others", "none", "allremote"].contains(&term.name.as_str());
            if !special && !conf.host_known(&term.name) {
                let text = format!("HOSTS: <{}> is no host or host group", shown(&term.name));
                diags.error(&term.pos, text);
            }
        }
    }
}

/// MEMLIMIT where no host enforces it.
fn memory_limits(conf: &ClusterConf, diags: &mut Diags) {
    if conf.base.lsf.limit_enforcement().memory_of_job {
        return;
    }
    for value in conf.batch.queues.iter().filter_map(|queue| queue.raw.get("MEMLIMIT")) {
        let text = "MEMLIMIT is left to the kernel, which enforces none, without \
                    LSB_JOB_MEMLIMIT=Y in lsf.conf";
        diags.notice(&value.pos, text);
    }
}

/// Archives of lsb.acct where the log is duplicated.
fn acct_archives(conf: &ClusterConf, diags: &mut Diags) {
    if conf.base.lsf.localdir().is_none() {
        return;
    }
    for name in ["ACCT_ARCHIVE_AGE", "ACCT_ARCHIVE_SIZE", "ACCT_ARCHIVE_TIME"] {
        if let Some(value) = conf.batch.params.raw.get(name) {
            let text = format!("{name} has no effect: lsb.acct is not archived with LSB_LOCALDIR");
            diags.warning(&value.pos, text);
        }
    }
}

fn default_queue(conf: &ClusterConf, diags: &mut Diags) {
    let Some(value) = conf.batch.params.raw.get("DEFAULT_QUEUE") else {
        if let (None, Some(first)) = (conf.queue("default"), conf.batch.queues.first()) {
            let text = "no DEFAULT_QUEUE and no queue <default>: jobs must name a queue";
            diags.warning(&Pos::whole(&first.pos.file), text);
        }
        return;
    };
    for word in super::section::list(value).unwrap_or_default() {
        if conf.queue(&word.text).is_none() {
            let known = conf.batch.queues.iter().map(|q| q.name.as_str());
            let text = format!("DEFAULT_QUEUE <{}> is not in lsb.queues", shown(&word.text));
            diags.add_near(Severity::Error, &word.pos, text, nearest(&word.text, known));
        }
    }
}

fn default_application(conf: &ClusterConf, diags: &mut Diags) {
    let Some(name) = &conf.batch.params.default_application else { return };
    if conf.batch.applications.iter().any(|a| a.name == *name) {
        return;
    }
    let Some(value) = conf.batch.params.raw.get("DEFAULT_APPLICATION") else { return };
    let known = conf.batch.applications.iter().map(|a| a.name.as_str());
    let text = format!("DEFAULT_APPLICATION <{}> is not in lsb.applications", shown(name));
    diags.add_near(Severity::Error, &value.pos, text, nearest(name, known));
}

/// A host that was taken out of lsf.cluster must not make the other files fatal, as in LSF.
pub(super) fn unknown_host(conf: &ClusterConf, word: &str, at: &Pos, diags: &mut Diags) {
    let hosts = conf.base.cluster.hosts.iter().map(|h| h.name.as_str());
    let groups = conf.batch.hosts.groups.iter().map(|g| g.name.as_str());
    let text = format!("<{}> is neither a host nor a host group; ignored", shown(word));
    diags.add_near(Severity::Warning, at, text, nearest(word, hosts.chain(groups)));
}

fn host_rows(conf: &ClusterConf, diags: &mut Diags) {
    let shared = &conf.base.shared;
    for row in &conf.batch.hosts.hosts {
        let kind = shared.types.contains(&row.name)
            || shared.models.iter().any(|m| m.name == row.name)
            || row.name == "default";
        if !kind && !conf.host_known(&row.name) {
            unknown_host(conf, &row.name, &row.pos, diags);
        }
    }
    let Some(last) = conf.batch.hosts.hosts.last() else { return };
    for host in conf.base.cluster.hosts.iter().filter(|h| h.server) {
        // The type and model of a host that says `!` are not known here.
        let (kind, model) = (host.host_type.as_deref(), host.model.as_deref());
        let open = kind.is_none() || model.is_none();
        if !open && conf.host_policy(&host.name, kind, model).is_none() {
            let text = format!("host <{}> has no row and takes no jobs", host.name);
            diags.warning(&Pos::whole(&last.pos.file), text);
        }
    }
}

fn host_groups(conf: &ClusterConf, diags: &mut Diags) {
    for group in &conf.batch.hosts.groups {
        if conf.base.hosts.canonical(&group.name).is_some() {
            let text = format!("host group <{}> has the name of a host", group.name);
            diags.error(&group.pos, text);
        }
        for member in &group.members {
            let name = member.strip_prefix('~').unwrap_or(member);
            if name != "!" && !conf.host_known(name) {
                unknown_host(conf, name, &group.pos, diags);
            }
        }
    }
}

fn queue_hosts(conf: &ClusterConf, diags: &mut Diags) {
    for queue in &conf.batch.queues {
        let before = diags.list().len();
        for term in &queue.hosts {
            let special = ["all", "others", "none", "allremote"].contains(&term.name.as_str());
            if !special && term.cluster.is_none() && !conf.host_known(&term.name) {
                unknown_host(conf, &term.name, &term.pos, diags);
            }
        }
        let external = |name: &str| {
            let name = name.strip_suffix('/').unwrap_or(name);
            conf.batch.hosts.groups.iter().any(|group| group.external && group.name == name)
        };
        let meant = queue
            .hosts
            .iter()
            .any(|t| t.name == "none" || t.cluster.is_some() || external(&t.name));
        if diags.list().len() == before && !meant && conf.queue_hosts(queue).is_empty() {
            let at = queue.raw.get("HOSTS").map_or(&queue.pos, |v| &v.pos);
            diags.warning(at, format!("queue <{}> has no host", queue.name));
        }
    }
}

/// Groups that contain themselves.
fn group_cycles(conf: &ClusterConf, diags: &mut Diags) {
    let hosts = conf.batch.hosts.groups.iter().map(|g| {
        let members = g.members.iter().map(|m| m.trim_start_matches('~')).collect();
        (g.name.as_str(), &g.pos, members)
    });
    cycles(hosts.collect(), diags);
    let users = conf.batch.users.groups.iter().map(|g| {
        let members = g.members.iter().map(|m| m.name.as_str()).collect();
        (g.name.as_str(), &g.pos, members)
    });
    cycles(users.collect(), diags);
}

fn cycles(groups: Vec<(&str, &Pos, Vec<&str>)>, diags: &mut Diags) {
    for (name, at, _) in &groups {
        let mut reached: BTreeSet<&str> = BTreeSet::new();
        let mut todo = vec![*name];
        while let Some(next) = todo.pop() {
            let members = groups.iter().filter(|g| g.0 == next).flat_map(|g| &g.2);
            todo.extend(members.copied().filter(|m| reached.insert(m)));
        }
        if reached.contains(name) {
            diags.error(at, format!("group <{}> contains itself", shown(name)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_pattern_matches_its_hosts_alone() {
        let yes = [
            ("host*", "host12"),
            ("HOST*", "host"),
            ("h[1-9]", "h9"),
            ("h[1-10]x", "h10x"),
            ("h[01-10]", "h07"),
            ("h[1,3,5-7]", "h6"),
            ("*[1-2]b", "aa2b"),
            ("h?", "h1"),
            ("h[1-2][3-4]", "h13"),
        ];
        for (pattern, name) in yes {
            assert!(matches_pattern(pattern, name), "{pattern} {name}");
        }
        let no = [
            ("h[1-9]", "h10"),
            ("h[1-10]", "h07"),
            ("h[01-10]", "h7"),
            ("h[1-9]", "h"),
            ("host*", "ghost"),
            ("h[a-b]", "ha"),
            ("h[1-", "h1"),
            ("", "h"),
        ];
        for (pattern, name) in no {
            assert!(!matches_pattern(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn a_hostile_pattern_ends() {
        let pattern = "*a".repeat(200);
        assert!(!matches_pattern(&pattern, &"a".repeat(150)));
    }
}

//! The hosts that a class asks for by name: -m with its preferences, -hostfile with its slots.

use crate::batch::sched::class_key::ClassKey;
use crate::batch::sched::view::View;
use crate::batch::state::names::HostId;
use crate::lim::facts::DEFAULT_NAME;
use crate::model::further::HostLines;
use std::collections::{BTreeMap, BTreeSet};

/// The hosts that a class asks for.
#[derive(Debug)]
pub(crate) struct RequestedHosts {
    /// -m with preferences; `None`: any host.
    pub(super) preferred: Option<BTreeMap<HostId, u32>>,
    /// Hosts of -m with `!`, of which one must be the first execution host; none: any.
    pub(super) first: BTreeSet<HostId>,
    /// The slots of -hostfile, host by host in the order of its lines; empty: none given.
    pub(super) fixed: Vec<(HostId, u32)>,
    /// The host that the jobs were submitted on, where it is a server of the cluster.
    pub(super) submitted_on: Option<HostId>,
}

impl RequestedHosts {
    pub fn new(view: &View, kind: &ClassKey) -> RequestedHosts {
        RequestedHosts {
            preferred: preferred(view, &kind.hosts),
            first: first_hosts(view, &kind.hosts),
            fixed: fixed_slots(view, &kind.fixed),
            submitted_on: view.site.host_id(&kind.from_host),
        }
    }

    /// Type and model of the submission host, as [`local_of`] has them.
    pub(super) fn local<'a>(&self, view: &View<'a>) -> (&'a str, &'a str) {
        local_of(view, self.submitted_on)
    }

    /// The slots of -hostfile; empty: none given.
    pub(in crate::batch::sched) fn fixed(&self) -> &[(HostId, u32)] {
        &self.fixed
    }

    /// Hosts that the words of -m and the lines of -hostfile stand for.
    pub fn hosts(&self) -> usize {
        self.preferred.as_ref().map_or(0, BTreeMap::len) + self.fixed.len()
    }
}

/// Type and model of the submission host; nothing where they were to be found out and LIM
/// has not heard of the host (it was down when the master changed).
pub(super) fn local_of<'a>(view: &View<'a>, submitted_on: Option<HostId>) -> (&'a str, &'a str) {
    let Some(host) = submitted_on else { return ("", "") };
    let (def, rt) = (&view.site.hosts[host].def, &view.hosts[host]);
    let facts = rt.load.as_ref().and_then(|l| l.facts.as_ref());
    let heard = facts.is_some_and(|f| f.max_mem > 0);
    let sure =
        |of: Option<&'a str>| of.filter(|text| heard || *text != DEFAULT_NAME).unwrap_or_default();
    let host_type = def.host_type.as_deref().or(facts.map(|f| f.host_type.as_str()));
    let model = def.model.as_deref().or(facts.map(|f| f.model.as_str()));
    (sure(host_type), sure(model))
}

/// -m as host -> preference; `None`: any host.
fn preferred(view: &View, words: &[String]) -> Option<BTreeMap<HostId, u32>> {
    if words.is_empty() {
        return None;
    }
    let mut set = BTreeMap::new();
    let mut others = None;
    // the first word of a name decides: the others are not expanded
    let mut known = BTreeSet::new();
    for word in words {
        let (name, pref) = split_host_word(word);
        if name == "others" {
            others = Some(pref);
        } else if known.insert(name) {
            for host in view.site.expand_servers(name) {
                set.entry(host).or_insert(pref);
            }
        }
    }
    if let Some(pref) = others {
        for host in view.hosts.ids() {
            set.entry(host).or_insert(pref);
        }
    }
    Some(set)
}

/// The hosts of -m that have a `!`.
fn first_hosts(view: &View, words: &[String]) -> BTreeSet<HostId> {
    let names: BTreeSet<&str> = words.iter().filter_map(|w| w.strip_suffix('!')).collect();
    names.into_iter().flat_map(|name| view.site.expand_servers(name)).collect()
}

fn fixed_slots(view: &View, host_lines: &HostLines) -> Vec<(HostId, u32)> {
    let mut out: Vec<(HostId, u32)> = Vec::new();
    let mut lines: BTreeMap<HostId, usize> = BTreeMap::new();
    for (host, slots) in host_lines.iter() {
        let known = view.site.canonical(host).and_then(|h| view.site.host_id(h));
        // a host that is gone since is never found among the free ones
        let host = known.unwrap_or(HostId::MAX);
        let line = *lines.entry(host).or_insert(out.len());
        match out.get_mut(line) {
            Some((_, n)) => *n = n.saturating_add(*slots),
            None => out.push((host, *slots)),
        }
    }
    out
}

/// `h+2`, `h!`, `h`: the name and its preference. A first execution host comes before all.
pub(crate) fn split_host_word(word: &str) -> (&str, u32) {
    if let Some(name) = word.strip_suffix('!') {
        return (name, u32::MAX / 4);
    }
    match word.split_once('+') {
        Some((name, "")) => (name, 1),
        Some((name, n)) => (name, n.parse().unwrap_or(1)),
        None => (word, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_word_is_divided_into_name_and_preference() {
        assert_eq!(split_host_word("a+3"), ("a", 3));
        assert_eq!(split_host_word("a+"), ("a", 1));
        assert_eq!(split_host_word("a"), ("a", 0));
    }
}

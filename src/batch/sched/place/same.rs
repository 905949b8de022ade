//! same[]: all hosts of a job have the same values of some resources.

use crate::batch::sched::host_snapshot::HostSnapshot;
use crate::batch::sched::place::host_match::{Free, HostMatch, Placed};
use crate::batch::state::names::HostId;
use crate::lang::resreq::{HostView, ResKind, ResNames};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The value of a resource on a host.
#[derive(PartialEq, Hash)]
enum Value<'a> {
    Text(&'a str),
    /// The bits of the number.
    Number(u64),
    Flag(bool),
}

/// The value of a resource on a host; `None`: it has none, and is like no other host.
fn value<'a>(look: &HostMatch, host: &'a HostSnapshot, name: &str) -> Option<Value<'a>> {
    match look.view.site.names.kind(name)? {
        ResKind::String => host.text(name).filter(|text| !text.is_empty()).map(Value::Text),
        ResKind::Boolean => Some(Value::Flag(host.boolean(name).unwrap_or(false))),
        ResKind::Numeric { .. } => host.num(name).map(|number| Value::Number(number.to_bits())),
    }
}

/// Have two hosts the same values of all these resources?
pub(in crate::batch::sched) fn alike(
    look: &HostMatch,
    names: &[String],
    (a, b): (HostId, HostId),
) -> bool {
    let (a, b) = (look.view.snapshot(a), look.view.snapshot(b));
    names.iter().all(|name| {
        let value = value(look, &a, name);
        value.is_some() && value == self::value(look, &b, name)
    })
}

/// The hosts that have equal values, group by group; groups and the hosts within them in the order
/// of the hosts.
pub(super) fn groups(look: &HostMatch, names: &[String], free: Free) -> Vec<Placed> {
    let mut groups: Vec<Placed> = Vec::new();
    // the groups whose values have this hash
    let mut known: HashMap<u64, Vec<usize>> = HashMap::new();
    for host in free {
        let Some(hash) = hash(look, names, host.0) else {
            groups.push(vec![*host]);
            continue;
        };
        let with_hash = known.entry(hash).or_default();
        let is = |group: &usize| alike(look, names, (groups[*group][0].0, host.0));
        match with_hash.iter().copied().find(is) {
            Some(group) => groups[group].push(*host),
            None => {
                with_hash.push(groups.len());
                groups.push(vec![*host]);
            }
        }
    }
    groups
}

fn hash(look: &HostMatch, names: &[String], host: HostId) -> Option<u64> {
    let snapshot = look.view.snapshot(host);
    let mut hasher = DefaultHasher::new();
    for name in names {
        value(look, &snapshot, name)?.hash(&mut hasher);
    }
    Some(hasher.finish())
}

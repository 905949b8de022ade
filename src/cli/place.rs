//! Placement: which hosts are eligible for a task, best first, as LIM's loads tell (lsplace(1),
//! lsrun(1)).

use super::lim::Cluster;
use super::load;
use crate::conf::BaseConf;
use crate::lang::resreq::SelectContext;
use crate::proto::lim::{HostLoad, status};

/// The message when too few hosts are eligible.
pub const TOO_FEW: &str = "Not enough host(s) currently eligible";

/// Eligible hosts among these (none named: all), best first; among equals the caller's own host
/// comes first.
pub fn eligible(
    cluster: &mut Cluster,
    hosts: &[String],
    res_req: Option<&str>,
) -> Result<Vec<String>, String> {
    let local = cluster.local_host().to_owned();
    let all = cluster.hosts(hosts)?;
    // the configuration matters to a requirement alone
    let base = if res_req.is_some() { cluster.base() } else { BaseConf::default() };
    chosen(all, &local, !hosts.is_empty(), res_req, &base)
}

/// The hosts in the given order, with the processors of each.
pub fn processors(
    cluster: &mut Cluster,
    hosts: Vec<String>,
) -> Result<Vec<(String, usize)>, String> {
    // no names would mean every host
    let loads = if hosts.is_empty() { Vec::new() } else { cluster.hosts(&hosts)? };
    let cpus = |name: &String| {
        let load = loads.iter().find(|l| l.host == *name);
        load.and_then(|l| l.facts.as_ref()).map_or(1, |f| f.ncpus.max(1) as usize)
    };
    Ok(hosts.into_iter().map(|h| (cpus(&h), h)).map(|(n, h)| (h, n)).collect())
}

/// A host for each of so many places, each host once, where there are enough; else each as often
/// as it has processors, the best first. None where there are fewer than `least`.
pub fn places(hosts: &[(String, usize)], least: usize, most: usize) -> Vec<String> {
    let want = most.max(least);
    if hosts.len() >= want {
        return hosts.iter().take(want).map(|h| h.0.clone()).collect();
    }
    let each = hosts.iter().flat_map(|(h, n)| std::iter::repeat_n(h, *n));
    let all: Vec<String> = each.take(want).cloned().collect();
    if all.len() < least { Vec::new() } else { all }
}

/// At most `most` places: one of each host first, then a second one of the hosts that have it.
pub fn rounds(hosts: &[(String, usize)], most: usize) -> Vec<String> {
    let longest = hosts.iter().map(|h| h.1).max().unwrap_or(0);
    let round = |n: usize| hosts.iter().filter(move |h| h.1 > n).map(|h| h.0.clone());
    (0..longest).flat_map(round).take(most).collect()
}

/// The chosen hosts. If the requirement does not mention type, model or a Boolean resource and no
/// host is `named`, a host must be of the caller's own type.
fn chosen(
    mut all: Vec<HostLoad>,
    local: &str,
    named: bool,
    res_req: Option<&str>,
    base: &BaseConf,
) -> Result<Vec<String>, String> {
    let req = res_req.map(|text| load::requirement(text, base)).transpose()?;
    let req = req.unwrap_or_default().with_defaults(named);
    let own = all.iter().find(|h| h.host == local).and_then(|h| h.facts.clone());
    let own = own.unwrap_or_default();
    let bad = status::UNAVAIL | status::BUSY | status::LOCKED | status::RES_DOWN;
    all.retain(|h| h.status & bad == 0 && h.facts.as_ref().is_some_and(|f| f.server));
    let asked = |name: &String| req.first().is_some_and(|s| s.asks(name));
    let free = |h: &HostLoad| h.facts.iter().all(|f| f.exclusive.iter().all(asked));
    all.retain(free);
    // sorting keeps the order of equals
    if let Some(at) = all.iter().position(|h| h.host == local) {
        all[..=at].rotate_right(1);
    }
    let cx = SelectContext { local_type: &own.host_type, local_model: &own.model };
    load::choose_by(&mut all, &req, Some(&cx), true);
    Ok(all.into_iter().map(|h| h.host).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::lim::HostFacts;

    #[test]
    fn places_are_of_the_best_hosts() {
        let hosts = [("b", 2), ("a", 1), ("c", 3)].map(|(h, n)| (h.to_owned(), n));
        let of = |least, most| places(&hosts, least, most).join(" ");
        assert_eq!([of(1, 1), of(1, 3), of(2, 1)], ["b", "b a c", "b a"]);
        assert_eq!([of(4, 4), of(1, 9), of(7, 7)], ["b b a c", "b b a c c c", ""]);
        assert_eq!(places(&[], 1, 1), Vec::<String>::new());
        assert_eq!(rounds(&hosts, 5).join(" "), "b a c b c");
        assert_eq!((rounds(&hosts, 99).len(), rounds(&[], 3).len()), (6, 0));
    }

    #[test]
    fn the_caller_s_own_type_is_meant_where_nothing_else_is_said() {
        let host = |name: &str, kind: &str, r15s: f32, server| HostLoad {
            host: name.into(),
            facts: Some(HostFacts { host_type: kind.into(), server, ..HostFacts::default() }),
            index: [r15s; 11],
            ..HostLoad::default()
        };
        let all = || {
            let rows = [("a", "ARM", 0.0, true), ("b", "X", 2.0, true), ("c", "X", 1.0, true)];
            let mut all: Vec<_> = rows.map(|(n, k, r, s)| host(n, k, r, s)).into();
            all.push(host("d", "X", 0.0, false));
            all
        };
        let of = |named, req: Option<&str>| {
            chosen(all(), "b", named, req, &BaseConf::default()).unwrap().join(" ")
        };
        assert_eq!(of(false, None), "c b");
        assert_eq!(of(false, Some("order[r15s]")), "c b");
        assert_eq!(of(false, Some("select[r15s<1.5]")), "c", "no type is named");
        assert_eq!(of(false, Some("select[type==any]")), "a c b");
        assert_eq!(of(true, None), "a c b");
        assert_eq!(of(true, Some("select[type==local]")), "c b");
        assert!(chosen(all(), "b", false, Some("select["), &BaseConf::default()).is_err());
    }

    #[test]
    fn a_host_with_an_exclusive_resource_is_for_those_who_ask_for_it() {
        let resource = crate::conf::ResourceDef {
            name: "big".into(),
            kind: crate::conf::ResourceKind::Boolean,
            ..Default::default()
        };
        let mut base = BaseConf::default();
        base.shared.resources.push(resource);
        let has = || vec![("big".to_owned(), None)];
        let facts =
            |exclusive| HostFacts { server: true, resources: has(), exclusive, ..<_>::default() };
        let host = |name: &str, exclusive: Vec<String>| HostLoad {
            host: name.into(),
            facts: Some(facts(exclusive)),
            ..HostLoad::default()
        };
        let all = || vec![host("a", vec!["big".into()]), host("b", vec![])];
        let of = |req: Option<&str>| chosen(all(), "a", true, req, &base).unwrap().join(" ");
        assert_eq!([of(None), of(Some("order[mem]")), of(Some("big"))], ["b", "b", "a b"]);
    }
}

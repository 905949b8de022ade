//! Placement: which hosts are eligible for a task, best first, as LIM's loads tell (commands.md
//! lsplace, lsrun).

use super::lim::Cluster;
use super::load::{self, ClusterNames};
use crate::conf::Shared;
use crate::lang::resreq::{ResReq, SelectCx, Syntax};
use crate::proto::lim::{HostLoad, status};

/// Eligible hosts among these (none named: all), best first; among equals the caller's own host
/// comes first.
pub fn eligible(
    cluster: &mut Cluster,
    hosts: &[String],
    res_req: Option<&str>,
) -> Result<Vec<String>, String> {
    let local = cluster.local_host().to_owned();
    let all = cluster.hosts(hosts)?;
    // the names in lsf.shared matter to a requirement alone
    let shared = if res_req.is_some() { cluster.shared() } else { Shared::default() };
    chosen(all, &local, !hosts.is_empty(), res_req, &shared)
}

/// Where a requirement says nothing of type, model or a Boolean resource and no host is `named`,
/// a host must be of the caller's own type.
fn chosen(
    mut all: Vec<HostLoad>,
    local: &str,
    named: bool,
    res_req: Option<&str>,
    shared: &Shared,
) -> Result<Vec<String>, String> {
    let names = ClusterNames(shared);
    let req = res_req.map(|text| ResReq::parse(text, &Syntax::new(&names))).transpose();
    let req = req.map_err(|e| format!("{e}: {}", e.reason))?;
    let req = req.unwrap_or_default().with_defaults(named);
    let own = all.iter().find(|h| h.host == local).and_then(|h| h.facts.clone());
    let own = own.unwrap_or_default();
    let bad = status::UNAVAIL
        | status::BUSY
        | status::LOCK_U
        | status::LOCK_W
        | status::LOCK_M
        | status::RES_DOWN;
    all.retain(|h| h.status & bad == 0 && h.facts.as_ref().is_some_and(|f| f.server));
    // sorting keeps the order of equals
    if let Some(at) = all.iter().position(|h| h.host == local) {
        all[..=at].rotate_right(1);
    }
    let cx = SelectCx { local_type: &own.host_type, local_model: &own.model };
    load::choose_by(&mut all, &req, Some(&cx), true);
    Ok(all.into_iter().map(|h| h.host).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::lim::HostFacts;

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
            chosen(all(), "b", named, req, &Shared::default()).unwrap().join(" ")
        };
        assert_eq!(of(false, None), "c b");
        assert_eq!(of(false, Some("order[r15s]")), "c b");
        assert_eq!(of(false, Some("select[r15s<1.5]")), "c", "no type is named");
        assert_eq!(of(false, Some("select[type==any]")), "a c b");
        assert_eq!(of(true, None), "a c b");
        assert_eq!(of(true, Some("select[type==local]")), "c b");
        assert!(chosen(all(), "b", false, Some("select["), &Shared::default()).is_err());
    }
}

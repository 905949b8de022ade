//! Placement: which hosts are eligible for a task, best first, as LIM's loads tell (commands.md
//! lsplace, lsrun).

use super::lim::Cluster;
use super::load;
use crate::proto::lim::{HostLoad, status};

/// Eligible hosts among these (none named: all), best first. Without a requirement a host must be
/// of the caller's own type; among equals the caller's own host comes first.
pub fn eligible(
    cluster: &mut Cluster,
    hosts: &[String],
    res_req: Option<&str>,
) -> Result<Vec<String>, String> {
    let local = cluster.local_host().to_owned();
    let mut all = cluster.hosts(hosts)?;
    let kind = |h: &HostLoad| h.facts.as_ref().map(|f| f.host_type.clone());
    if res_req.is_none() && hosts.is_empty() {
        let own = all.iter().find(|h| h.host == local).and_then(kind);
        all.retain(|h| own.is_none() || kind(h) == own);
    }
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
    load::choose(&mut all, res_req, &cluster.shared(), true)?;
    Ok(all.into_iter().map(|h| h.host).collect())
}

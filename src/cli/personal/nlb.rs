//! The load balancer of a personal cluster: what `lsf up --nlb` writes. See nqeinfo(5).

use super::create::free_port_beside;
use super::{PersonalDir, at, make_dir, write_file};
use crate::conf::BaseConf;
use crate::lang::nlb::BUILT_IN;
use std::fs;
use std::net::IpAddr;

/// The queue of hosts that LIM measures.
const QUEUE: &str = "normal";

/// Has the cluster's first host run nlbserver: writes nqeinfo, the first policies and LSF_NLB_PORT,
/// each where it is not there yet. Whether nqeinfo is new.
///
/// # Errors
/// The words for the user.
pub fn add(place: &PersonalDir, conf: &BaseConf) -> Result<bool, String> {
    let host = conf.named_hosts().next().map(|h| h.name.clone());
    let host = host.ok_or("the cluster has no host")?;
    if conf.lsf.get("LSF_NLB_PORT").is_none() {
        let addrs: Vec<IpAddr> = conf.hosts.addrs(&host).to_vec();
        let port = free_port_beside(&addrs, conf.lsf.lim_port())?;
        let path = place.conf().join("lsf.conf");
        let text = fs::read_to_string(&path).map_err(|e| at(&path, &e))?;
        let end = if text.ends_with('\n') || text.is_empty() { "" } else { "\n" };
        let text = format!("{text}{end}LSF_NLB_PORT={port}\n");
        write_file(&path, text.as_bytes(), 0o644)?;
    }
    let policies = place.conf().join("nqe/policies");
    if !policies.exists() {
        make_dir(&place.conf().join("nqe"))?;
        write_file(&policies, BUILT_IN.as_bytes(), 0o644)?;
    }
    let info = place.conf().join("nqeinfo");
    if info.exists() {
        return Ok(false);
    }
    let text = format!("NLB_SERVER={host}\nNLB_QUEUE={QUEUE}\n");
    write_file(&info, text.as_bytes(), 0o644)?;
    Ok(true)
}

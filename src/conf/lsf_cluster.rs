//! lsf.cluster.NAME: administrators, hosts, where shared resources are, lim's parameters.
//!
//! See lsf.cluster(5).

use super::address_range::AddrRanges;
use super::diag::{Diags, Pos, Severity};
use super::files::Files;
use super::lexer::{self, Section, shown};
use super::lsf_shared::{BUILT_IN, nothing, unknown_section};
use super::names::tables::{
    CLUSTER_ADMINS, CLUSTER_HOST, CLUSTER_PARAMETERS, REMOTE_CLUSTERS, RESOURCE_MAP,
};
use super::names::{load_index, nearest};
use super::section::{SectionRow, Values, known_params, list, table};
use super::types::{
    ClusterFile, HostDef, HostResource, LimParams, RawParam, RawParams, ResourceInstance,
    ResourceMapping, Shared,
};
use std::collections::BTreeSet;

/// Sections of lsf.cluster.NAME.
const SECTIONS: &[&str] =
    &["ClusterAdmins", "ClusterManager", "Host", "ResourceMap", "Parameters", "RemoteClusters"];
/// Largest number of seconds or intervals that is taken: a year of seconds.
const MAX_TIME: u64 = 31_536_000;
/// Longest ELIM_POLL_INTERVAL, seconds.
const MAX_POLL: f64 = 3600.0;
/// EXINTERVAL below this is raised to it, seconds.
const MIN_EXINTERVAL: u64 = 5;

/// Reads lsf.cluster.NAME. None: it cannot be read.
pub fn parse(
    files: &dyn Files,
    path: &str,
    shared: &Shared,
    diags: &mut Diags,
) -> Option<ClusterFile> {
    let mut cluster = ClusterFile::default();
    for section in lexer::read(files, path, diags)? {
        match section.name.to_ascii_lowercase().as_str() {
            "clusteradmins" | "clustermanager" => admins(&section, &mut cluster, diags),
            "host" => hosts(&section, shared, &mut cluster, diags),
            "resourcemap" => resource_map(&section, shared, &mut cluster, diags),
            "parameters" => parameters(&section, &mut cluster, diags),
            "remoteclusters" => remote_clusters(&section, &mut cluster, diags),
            _ => unknown_section(&section, SECTIONS, diags),
        }
    }
    let whole = Pos::whole(path);
    if cluster.admins.is_empty() {
        diags.error(&whole, "section ClusterAdmins names no administrator");
    }
    if cluster.hosts.is_empty() {
        diags.error(&whole, "section Host names no host");
    } else if !cluster.hosts.iter().any(|h| h.server) {
        diags.error(&whole, "section Host names no server host");
    }
    check_locations(&cluster, diags);
    Some(cluster)
}

fn admins(section: &Section, cluster: &mut ClusterFile, diags: &mut Diags) {
    let raw = known_params(section, &CLUSTER_ADMINS, &nothing, diags);
    let mut values = Values::new(&raw, diags);
    for name in ["ADMINISTRATORS", "MANAGER"] {
        for admin in values.list(name) {
            if !cluster.admins.contains(&admin) {
                cluster.admins.push(admin);
            }
        }
    }
}

fn hosts(section: &Section, shared: &Shared, cluster: &mut ClusterFile, diags: &mut Diags) {
    // A threshold column is a load index, built in or defined in lsf.shared.
    let index = |word: &str| -> Option<String> {
        let own = || shared.resources.iter().find(|r| r.name == word).map(|r| r.name.clone());
        load_index(word).map(str::to_owned).or_else(own)
    };
    let mut seen: BTreeSet<String> =
        cluster.hosts.iter().map(|h| h.name.to_ascii_lowercase()).collect();
    for row in table(section, &CLUSTER_HOST, &index, diags) {
        let Some(host) = host(&row, shared, diags) else { continue };
        if !seen.insert(host.name.to_ascii_lowercase()) {
            super::lsf_shared::twice(&row, "HOSTNAME", diags);
        } else {
            cluster.hosts.push(host);
        }
    }
}

fn host(row: &SectionRow, shared: &Shared, diags: &mut Diags) -> Option<HostDef> {
    let name = super::lsf_shared::key(row, "HOSTNAME", diags)?;
    // it becomes part of file names, and a word of rsh's
    if name.starts_with(['-', '.']) || name.contains('/') {
        let text =
            format!("bad value <{}> of HOSTNAME: the name of a host is wanted", shown(&name));
        diags.error(&row.pos, text);
        return None;
    }
    let models: Vec<&str> = shared.models.iter().map(|m| m.name.as_str()).collect();
    let types: Vec<&str> = shared.types.iter().map(String::as_str).collect();
    let model = auto_or_known(row.get("MODEL"), "MODEL", &models, diags);
    let host_type = auto_or_known(row.get("TYPE"), "TYPE", &types, diags);
    let mut values = Values::new(&row.cells, diags);
    let mut server = true;
    values.flag(&mut server, "SERVER");
    let rexpri = values.number("REXPRI", -20..=20).unwrap_or(0);
    let ndisks = values.number("ND", 0..=u32::MAX);
    let run_window = values.windows("RUNWINDOW");
    let mut thresholds = Vec::new();
    for index in row.cells.keys().filter(|c| CLUSTER_HOST.find(c).is_none()) {
        if let Some(value) = values.number(index, f64::MIN..=f64::MAX) {
            thresholds.push((index.clone(), value));
        }
    }
    let resources = match row.get("RESOURCES") {
        Some(cell) => host_resources(cell, shared, diags),
        None => Vec::new(),
    };
    let pos = row.pos.clone();
    Some(HostDef {
        name,
        model,
        host_type,
        server,
        thresholds,
        resources,
        run_window,
        rexpri,
        ndisks,
        dynamic: false,
        pos,
    })
}

/// `!` is found by lim; anything else must be a name of lsf.shared.
fn auto_or_known(
    cell: Option<&RawParam>,
    column: &str,
    known: &[&str],
    diags: &mut Diags,
) -> Option<String> {
    let cell = cell.filter(|c| c.text != "!")?;
    if !known.contains(&cell.text.as_str()) {
        let near = nearest(&cell.text, known.iter().copied());
        let text = format!("{column} <{}> is not in lsf.shared", shown(&cell.text));
        diags.add_near(Severity::Error, &cell.pos, text, near);
        return None;
    }
    Some(cell.text.clone())
}

fn host_resources(cell: &RawParam, shared: &Shared, diags: &mut Diags) -> Vec<HostResource> {
    let mut resources = Vec::new();
    for word in list(cell).unwrap_or_default() {
        let mut name = word.text.as_str();
        let mut resource = HostResource::default();
        if let Some(rest) = name.strip_prefix('!') {
            (resource.exclusive, name) = (true, rest);
        } else if let Some(rest) = name.strip_prefix('~') {
            (resource.absent, name) = (true, rest);
        }
        if let Some((left, value)) = name.split_once('=') {
            name = left;
            resource.value = Some(value.to_owned());
        }
        check_resource(name, &word.pos, shared, diags);
        resource.name = name.to_owned();
        resources.push(resource);
    }
    resources
}

fn check_resource(name: &str, at: &Pos, shared: &Shared, diags: &mut Diags) {
    let own = || shared.resources.iter().map(|r| r.name.as_str());
    if load_index(name).is_none() && !BUILT_IN.contains(&name) && !own().any(|r| r == name) {
        let text = format!("resource <{}> is not in lsf.shared", shown(name));
        diags.add_near(Severity::Error, at, text, nearest(name, own()));
    }
}

fn resource_map(section: &Section, shared: &Shared, cluster: &mut ClusterFile, diags: &mut Diags) {
    for row in table(section, &RESOURCE_MAP, &nothing, diags) {
        let (Some(name), Some(location)) = (row.get("RESOURCENAME"), row.get("LOCATION")) else {
            diags.error(&row.pos, "RESOURCENAME and LOCATION are both wanted");
            continue;
        };
        check_resource(&name.text, &name.pos, shared, diags);
        let Some(instances) = instances(location, diags) else { continue };
        cluster.resource_map.push(ResourceMapping {
            resource: name.text.clone(),
            instances,
            pos: row.pos.clone(),
        });
    }
}

/// Reads `[h1 h2] 3@[h3] [default]`.
fn instances(location: &RawParam, diags: &mut Diags) -> Option<Vec<ResourceInstance>> {
    let mut found = Vec::new();
    let mut rest = location.text.trim();
    while !rest.is_empty() {
        let bad = |diags: &mut Diags| {
            let text = format!("bad LOCATION <{}>: value@[hosts] is wanted", shown(rest));
            diags.error(&location.pos_of(rest), text);
        };
        let parts = rest.split_once('[').and_then(|(v, t)| Some((v, t.split_once(']')?)));
        let Some((value, (hosts, after))) = parts else {
            bad(diags);
            return None;
        };
        let value = match value.trim() {
            "" => None,
            v => match v.strip_suffix('@').map(str::trim).filter(|v| !v.is_empty()) {
                Some(v) => Some(v.to_owned()),
                None => {
                    bad(diags);
                    return None;
                }
            },
        };
        let hosts: Vec<String> = hosts.split_whitespace().map(str::to_owned).collect();
        if hosts.is_empty() {
            bad(diags);
            return None;
        }
        found.push(ResourceInstance { value, hosts });
        rest = after.trim_start();
    }
    Some(found)
}

/// Hosts of LOCATION must be hosts of the cluster.
fn check_locations(cluster: &ClusterFile, diags: &mut Diags) {
    let known = || cluster.hosts.iter().map(|h| h.name.as_str());
    for mapping in &cluster.resource_map {
        for host in mapping.instances.iter().flat_map(|i| &i.hosts) {
            let name = host.strip_prefix('~').unwrap_or(host);
            let special = ["all", "others", "default"].contains(&name);
            if !special && !known().any(|k| k.eq_ignore_ascii_case(name)) {
                let text = format!("host <{}> of LOCATION is not in section Host", shown(name));
                diags.add_near(Severity::Error, &mapping.pos, text, nearest(name, known()));
            }
        }
    }
}

fn parameters(section: &Section, cluster: &mut ClusterFile, diags: &mut Diags) {
    let raw = known_params(section, &CLUSTER_PARAMETERS, &nothing, diags);
    cluster.params = lim_params(raw, diags);
}

fn lim_params(raw: RawParams, diags: &mut Diags) -> LimParams {
    let mut p = LimParams::default();
    let mut values = Values::new(&raw, diags);
    values.set(&mut p.exinterval, "EXINTERVAL", 0..=MAX_TIME);
    p.exinterval = p.exinterval.max(MIN_EXINTERVAL);
    values.set(&mut p.host_inactivity_limit, "HOST_INACTIVITY_LIMIT", 1..=MAX_TIME);
    values.set(&mut p.master_inactivity_limit, "MASTER_INACTIVITY_LIMIT", 0..=MAX_TIME);
    values.set(&mut p.probe_timeout, "PROBE_TIMEOUT", 1..=MAX_TIME);
    values.set(&mut p.retry_limit, "RETRY_LIMIT", 0..=MAX_TIME);
    values.set(&mut p.adjust_duration, "ADJUST_DURATION", 0..=MAX_TIME);
    values.set(&mut p.elim_poll_interval, "ELIM_POLL_INTERVAL", 0.001..=MAX_POLL);
    values.set(&mut p.elim_abort_value, "ELIM_ABORT_VALUE", 0..=255);
    if let Some(value) = raw.get("LSF_HOST_ADDR_RANGE").cloned() {
        match AddrRanges::parse(&value.text) {
            Some(ranges) => p.addr_range = ranges,
            None => values.bad("LSF_HOST_ADDR_RANGE", &value, "addresses are wanted"),
        }
    }
    p.elim_args = values.text("ELIMARGS").unwrap_or_default();
    p.raw = raw;
    p
}

fn remote_clusters(section: &Section, cluster: &mut ClusterFile, diags: &mut Diags) {
    for row in table(section, &REMOTE_CLUSTERS, &nothing, diags) {
        if let Some(name) = super::lsf_shared::key(&row, "CLUSTERNAME", diags) {
            cluster.remote_clusters.push(name);
        }
    }
}

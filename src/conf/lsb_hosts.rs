//! lsb.hosts: slots and thresholds of hosts, host groups.
//!
//! See lsb.hosts(5).

use super::diag::{Diags, Pos};
use super::external_groups::EXTERNAL;
use super::files::Files;
use super::lexer::{self, Section, shown};
use super::lsb_queues::index_name;
use super::lsf_shared::{key, nothing, twice, unknown_section};
use super::names::tables::{BATCH_HOST, COMPUTE_UNIT, HOST_GROUP, HOST_PARTITION};
use super::section::{SectionRow, Values, known_params, list, table};
use super::types::{
    AffinityCpus, BatchHosts, ComputeUnit, HostGroup, HostPartition, HostPolicy, Mxj, RawParam,
    Shared, UNLIMITED_EXIT_RATE,
};
use super::user_shares::user_shares;
use crate::model::topology::CpuSet;

/// Sections of lsb.hosts.
const SECTIONS: &[&str] = &["Host", "HostGroup", "HostPartition", "ComputeUnit"];
/// Largest MIG, minutes.
pub const MAX_MIG: u64 = 0x7fff_ffff;

/// Reads lsb.hosts. None: it cannot be read.
pub fn parse(
    files: &dyn Files,
    path: &str,
    shared: &Shared,
    diags: &mut Diags,
) -> Option<BatchHosts> {
    let mut batch = BatchHosts::default();
    let mut seen = false;
    for section in lexer::read(files, path, diags)? {
        match section.name.to_ascii_lowercase().as_str() {
            "host" => {
                seen = true;
                hosts(&section, shared, &mut batch, diags);
            }
            "hostgroup" => groups(&section, &mut batch, diags),
            "hostpartition" => {
                let raw = known_params(&section, &HOST_PARTITION, &nothing, diags);
                let mut v = Values::new(&raw, diags);
                let (name, hosts) = (v.text("HPART_NAME").unwrap_or_default(), v.list("HOSTS"));
                let (shares, pos) = (user_shares(&mut v), section.pos.clone());
                batch.partitions.push(HostPartition { name, hosts, shares, pos });
            }
            "computeunit" => units(&section, &mut batch, diags),
            _ => unknown_section(&section, SECTIONS, diags),
        }
    }
    if !seen {
        let text = "no section Host: every server host takes as many jobs as it has CPUs";
        diags.warning(&Pos::whole(path), text);
        batch.hosts.push(HostPolicy {
            name: "default".to_owned(),
            mxj: Mxj::Cpus,
            pos: Pos::whole(path),
            ..HostPolicy::default()
        });
    }
    Some(batch)
}

fn hosts(section: &Section, shared: &Shared, batch: &mut BatchHosts, diags: &mut Diags) {
    let extra = |word: &str| index_name(shared, word);
    for row in table(section, &BATCH_HOST, &extra, diags) {
        let Some(name) = row.get("HOST_NAME") else {
            diags.error(&row.pos, "HOST_NAME is missing");
            continue;
        };
        if batch.hosts.iter().any(|h| h.name.eq_ignore_ascii_case(&name.text)) {
            twice(&row, "HOST_NAME", diags);
            continue;
        }
        let policy = host(&row, &name.text, diags);
        batch.hosts.push(policy);
    }
}

fn host(row: &SectionRow, name: &str, diags: &mut Diags) -> HostPolicy {
    let mxj = mxj(row.get("MXJ"), diags);
    let affinity = affinity(row.get("AFFINITY"), diags);
    let mut v = Values::new(&row.cells, diags);
    let mut policy = HostPolicy {
        affinity,
        name: name.strip_suffix('/').unwrap_or(name).to_owned(),
        mxj,
        jl_u: v.number("JL/U", 0..=u32::MAX),
        dispatch_window: v.windows("DISPATCH_WINDOW"),
        mig: v.number("MIG", 0..=MAX_MIG),
        exit_rate: v.number("EXIT_RATE", 1..=UNLIMITED_EXIT_RATE),
        pos: row.pos.clone(),
        ..HostPolicy::default()
    };
    for (column, cell) in &row.cells {
        match BATCH_HOST.find(column) {
            None => policy.thresholds.extend(v.threshold(column)),
            Some(known) if known.acted => {}
            Some(known) => policy.not_acted_on.push((known.name.to_owned(), cell.text.clone())),
        }
    }
    policy
}

fn mxj(cell: Option<&RawParam>, diags: &mut Diags) -> Mxj {
    let Some(cell) = cell else { return Mxj::Unlimited };
    if cell.text == "!" {
        return Mxj::Cpus;
    }
    match cell.text.parse() {
        Ok(slots) => Mxj::Slots(slots),
        Err(_) => {
            let text = format!("bad value <{}> of MXJ: a number, ! or ()", shown(&cell.text));
            diags.error(&cell.pos, format!("{text} is wanted"));
            Mxj::Slots(0)
        }
    }
}

/// AFFINITY: `Y`, `N` or `CPU_LIST="0,2-5"`.
fn affinity(cell: Option<&RawParam>, diags: &mut Diags) -> AffinityCpus {
    let Some(cell) = cell else { return AffinityCpus::None };
    let text = cell.text.trim();
    match text {
        "Y" | "y" => return AffinityCpus::All,
        "N" | "n" | "" => return AffinityCpus::None,
        _ => {}
    }
    let list =
        text.split_once('=').filter(|(name, _)| name.trim().eq_ignore_ascii_case("CPU_LIST"));
    let why = match list.map(|(_, list)| CpuSet::parse(list.trim().trim_matches('"'))) {
        Some(Ok(cpus)) => return AffinityCpus::List(cpus),
        Some(Err(part)) => format!("<{}> is no CPU or range of CPUs", shown(part)),
        None => "Y, N or CPU_LIST=\"0,2-5\" is wanted".to_owned(),
    };
    let text = format!("bad value <{}> of AFFINITY: {why}", shown(&cell.text));
    diags.error(&cell.pos, text);
    AffinityCpus::None
}

fn groups(section: &Section, batch: &mut BatchHosts, diags: &mut Diags) {
    for row in table(section, &HOST_GROUP, &nothing, diags) {
        let Some(name) = key(&row, "GROUP_NAME", diags) else { continue };
        let Some(cell) = row.get("GROUP_MEMBER") else {
            diags.error(&row.pos, format!("group <{}> has no GROUP_MEMBER", shown(&name)));
            continue;
        };
        let members = list(cell).unwrap_or_default();
        let mut v = Values::new(&row.cells, diags);
        let mut condense = false;
        v.flag(&mut condense, "CONDENSE");
        let admins = v.list("GROUP_ADMIN");
        if batch.groups.iter().any(|g| g.name == name) {
            twice(&row, "GROUP_NAME", diags);
            continue;
        }
        let members: Vec<String> = members.into_iter().map(|m| m.text).collect();
        let external = members == [EXTERNAL];
        batch.groups.push(HostGroup {
            name,
            external,
            members: if external { Vec::new() } else { members },
            condense,
            admins,
            pos: row.pos.clone(),
        });
    }
}

fn units(section: &Section, batch: &mut BatchHosts, diags: &mut Diags) {
    for row in table(section, &COMPUTE_UNIT, &nothing, diags) {
        let Some(name) = key(&row, "NAME", diags) else { continue };
        let Some(cell) = row.get("MEMBER") else {
            diags.error(&row.pos, format!("compute unit <{}> has no MEMBER", shown(&name)));
            continue;
        };
        if batch.units.iter().any(|u| u.name == name) {
            twice(&row, "NAME", diags);
            continue;
        }
        let members = list(cell).unwrap_or_default().into_iter().map(|m| m.text).collect();
        let kind = row.get("TYPE").map_or(String::new(), |t| t.text.clone());
        let mut condense = false;
        Values::new(&row.cells, diags).flag(&mut condense, "CONDENSE");
        batch.units.push(ComputeUnit { name, kind, members, condense, pos: row.pos.clone() });
    }
}

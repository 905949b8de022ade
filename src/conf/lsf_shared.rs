//! lsf.shared: clusters, host types, host models and resources.
//!
//! See lsf.shared(5).

use super::diag::Diags;
use super::files::Files;
use super::lexer::{self, Section, shown};
use super::names::tables::{HOST_MODEL, HOST_TYPE, RESOURCE, SHARED_CLUSTER};
use super::names::{LOAD_INDICES, nearest};
use super::section::{SectionRow, Values, name_fault, table};
use super::types::{ClusterName, HostModel, ResourceDef, ResourceKind, Shared};

/// Longest name of a resource, characters.
pub const MAX_RESOURCE_NAME: usize = 39;
/// Largest INTERVAL, seconds: a year.
const MAX_INTERVAL: u64 = 31_536_000;
/// Largest CPUFACTOR.
const MAX_CPU_FACTOR: f64 = 1e9;

/// Names of built-in resources besides the load indices; they cannot be defined again.
pub const BUILT_IN: &[&str] = &[
    "type", "model", "hname", "cpuf", "server", "rexpri", "ncpus", "ndisks", "nprocs", "ncores",
    "nthreads", "maxmem", "maxswp", "maxtmp", "slots", "maxslots", "status",
];

/// Sections of lsf.shared.
const SECTIONS: &[&str] = &["Cluster", "HostType", "HostModel", "Resource"];

/// No names beyond the table's.
pub(super) fn nothing(_: &str) -> Option<String> {
    None
}

/// Tells of a section that the file does not have.
pub(super) fn unknown_section(section: &Section, known: &[&str], diags: &mut Diags) {
    let near = nearest(&section.name, known.iter().copied());
    let text = format!("unknown section <{}>", shown(&section.name));
    diags.add_near(super::diag::Severity::Error, &section.pos, text, near);
}

/// Reads lsf.shared. None: it cannot be read.
pub fn parse(files: &dyn Files, path: &str, diags: &mut Diags) -> Option<Shared> {
    let mut shared = Shared::default();
    for section in lexer::read(files, path, diags)? {
        match section.name.to_ascii_lowercase().as_str() {
            "cluster" => clusters(&section, &mut shared, diags),
            "hosttype" => types(&section, &mut shared, diags),
            "hostmodel" => models(&section, &mut shared, diags),
            "resource" => resources(&section, &mut shared, diags),
            _ => unknown_section(&section, SECTIONS, diags),
        }
    }
    if shared.clusters.is_empty() {
        let at = super::diag::Pos::whole(path);
        diags.error(&at, "section Cluster names no cluster");
    }
    Some(shared)
}

fn clusters(section: &Section, shared: &mut Shared, diags: &mut Diags) {
    for row in table(section, &SHARED_CLUSTER, &nothing, diags) {
        let Some(name) = key(&row, "CLUSTERNAME", diags) else { continue };
        let mut values = Values::new(&row.cells, diags);
        let servers = values.list("SERVERS");
        if shared.clusters.iter().any(|c| c.name == name) {
            twice(&row, "CLUSTERNAME", diags);
        } else {
            shared.clusters.push(ClusterName { name, servers });
        }
    }
}

fn types(section: &Section, shared: &mut Shared, diags: &mut Diags) {
    for row in table(section, &HOST_TYPE, &nothing, diags) {
        let Some(name) = key(&row, "TYPENAME", diags) else { continue };
        if shared.types.contains(&name) {
            twice(&row, "TYPENAME", diags);
        } else {
            shared.types.push(name);
        }
    }
}

fn models(section: &Section, shared: &mut Shared, diags: &mut Diags) {
    for row in table(section, &HOST_MODEL, &nothing, diags) {
        let Some(name) = key(&row, "MODELNAME", diags) else { continue };
        let mut values = Values::new(&row.cells, diags);
        let cpu_factor = values.number("CPUFACTOR", 0.0..=MAX_CPU_FACTOR).unwrap_or(1.0);
        let architectures = values.list("ARCHITECTURE");
        if shared.models.iter().any(|m| m.name == name) {
            twice(&row, "MODELNAME", diags);
        } else {
            shared.models.push(HostModel { name, cpu_factor, architectures });
        }
    }
}

fn resources(section: &Section, shared: &mut Shared, diags: &mut Diags) {
    for row in table(section, &RESOURCE, &nothing, diags) {
        let Some(resource) = resource(&row, diags) else { continue };
        if shared.resources.iter().any(|r| r.name == resource.name) {
            twice(&row, "RESOURCENAME", diags);
        } else {
            shared.resources.push(resource);
        }
    }
}

fn resource(row: &SectionRow, diags: &mut Diags) -> Option<ResourceDef> {
    let Some(name) = row.get("RESOURCENAME") else {
        diags.error(&row.pos, "RESOURCENAME is missing");
        return None;
    };
    if let Some(why) = resource_fault(&name.text) {
        diags.error(&name.pos, format!("bad resource name <{}>: {why}", shown(&name.text)));
        return None;
    }
    let mut kind = ResourceKind::Boolean;
    let mut increasing = false;
    let mut release = true;
    let mut values = Values::new(&row.cells, diags);
    let kinds = [
        ("Boolean", ResourceKind::Boolean),
        ("Numeric", ResourceKind::Numeric),
        ("String", ResourceKind::String),
    ];
    values.word_of(&mut kind, "TYPE", &kinds);
    let interval = values.number("INTERVAL", 1..=MAX_INTERVAL);
    values.flag(&mut increasing, "INCREASING");
    values.flag(&mut release, "RELEASE");
    let numeric = kind == ResourceKind::Numeric;
    // Documented default: static numbers, and dynamic ones that shrink as they are used.
    let mut consumable = numeric && (interval.is_none() || !increasing);
    values.flag(&mut consumable, "CONSUMABLE");
    let description = values.text("DESCRIPTION").unwrap_or_default();
    if row.get("TYPE").is_none() {
        diags.error(&row.pos, format!("resource <{}> has no TYPE", shown(&name.text)));
    }
    Some(ResourceDef {
        name: name.text.clone(),
        kind,
        interval,
        increasing: row.get("INCREASING").map(|_| increasing),
        release,
        consumable,
        description,
    })
}

/// Why a resource may not be called so; None: it may.
pub fn resource_fault(name: &str) -> Option<&'static str> {
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        Some("it begins with a digit")
    } else if name.chars().any(|c| ":.()[]+-*/!&|<>@=,".contains(c) || c.is_whitespace()) {
        Some("it holds a character that expressions use")
    } else if name.chars().count() > MAX_RESOURCE_NAME {
        Some("names of resources have at most 39 characters")
    } else if LOAD_INDICES.iter().chain(BUILT_IN).any(|b| *b == name) {
        Some("it is built in")
    } else {
        None
    }
}

/// The name in a row's key column.
pub(super) fn key(row: &SectionRow, column: &str, diags: &mut Diags) -> Option<String> {
    let Some(name) = row.get(column) else {
        diags.error(&row.pos, format!("{column} is missing"));
        return None;
    };
    if let Some(why) = name_fault(&name.text) {
        let text = format!("bad value <{}> of {column}: {why}", shown(&name.text));
        diags.error(&name.pos, text);
        return None;
    }
    Some(name.text.clone())
}

/// Tells that a row names something a second time.
pub(super) fn twice(row: &SectionRow, column: &str, diags: &mut Diags) {
    if let Some(name) = row.get(column) {
        let text = format!("{column} <{}> is given twice", shown(&name.text));
        diags.error(&name.pos, text);
    }
}

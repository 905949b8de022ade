//! lsb.resources: its sections are read and kept; acting on them comes later.
//!
//! See lsb.resources(5).

use super::diag::Diags;
use super::files::Files;
use super::lexer::{self, Section, shown};
use super::lsf_shared::{nothing, unknown_section};
use super::names::tables::{LIMIT, OTHER_SECTIONS};
use super::section::{known_params, table};
use super::types::{BatchResources, ResourceSection};

/// Reads lsb.resources. None: it cannot be read.
pub fn parse(files: &dyn Files, path: &str, diags: &mut Diags) -> Option<BatchResources> {
    let mut resources = BatchResources::default();
    let mut known: Vec<&str> = OTHER_SECTIONS.iter().map(|(_, name)| *name).collect();
    known.push("Limit");
    for section in lexer::read(files, path, diags)? {
        if section.is("Limit") {
            limit(&section, &mut resources, diags);
        } else if known.iter().any(|name| section.is(name)) {
            // Empty sections are what an installation writes: nothing to tell.
            if section.lines.len() > 1 {
                diags.not_acted_on(&section.pos, format!("section {}", shown(&section.name)));
            }
        } else {
            unknown_section(&section, &known, diags);
        }
    }
    Some(resources)
}

/// A Limit is written either way: as parameters, or as a table of several limits.
fn limit(section: &Section, resources: &mut BatchResources, diags: &mut Diags) {
    let Some(first) = section.lines.first() else { return };
    let kind = LIMIT.section.to_owned();
    if first.text.contains('=') {
        let params = known_params(section, &LIMIT, &nothing, diags);
        resources.sections.push(ResourceSection { kind, params, pos: section.pos.clone() });
        return;
    }
    for row in table(section, &LIMIT, &nothing, diags) {
        resources.sections.push(ResourceSection {
            kind: kind.clone(),
            params: row.cells,
            pos: row.pos,
        });
    }
}

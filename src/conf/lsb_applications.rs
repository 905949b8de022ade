//! lsb.applications.
//!
//! A lone value of a limit is what a job has that requests none; the first of two values is that
//! default, the second is the most that a job may request. See lsb.applications(5).

use super::diag::Diags;
use super::files::Files;
use super::lexer::{self, Section};
use super::lsf_shared::{nothing, unknown_section};
use super::names::lsb_applications::APPLICATION;
use super::section::{Values, known_params};
use super::types::{ApplicationConf, Limit};
use super::units::SizeUnit;

/// Reads lsb.applications. None: it cannot be read.
pub fn parse(
    files: &dyn Files,
    path: &str,
    unit: SizeUnit,
    diags: &mut Diags,
) -> Option<Vec<ApplicationConf>> {
    let mut all: Vec<ApplicationConf> = Vec::new();
    for section in lexer::read(files, path, diags)? {
        if !section.is("Application") {
            unknown_section(&section, &["Application"], diags);
            continue;
        }
        let Some(profile) = application(&section, unit, diags) else { continue };
        if let Some(first) = all.iter().find(|a| a.name == profile.name) {
            let at = profile.raw.get("NAME").map_or(&profile.pos, |v| &v.pos);
            let text = format!(
                "application profile <{}> is already defined in line {}",
                profile.name, first.pos.line
            );
            diags.error(at, text);
            continue;
        }
        all.push(profile);
    }
    Some(all)
}

fn application(section: &Section, unit: SizeUnit, diags: &mut Diags) -> Option<ApplicationConf> {
    let raw = known_params(section, &APPLICATION, &nothing, diags);
    if !raw.contains_key("NAME") {
        diags.error(&section.pos, "application profile without NAME");
    }
    let mut a = ApplicationConf { pos: section.pos.clone(), ..ApplicationConf::default() };
    let mut v = Values::new(&raw, diags);
    let name = v.object_name("NAME");
    a.description = v.text("DESCRIPTION").unwrap_or_default();
    limits(&mut a, &mut v, unit);
    a.name = name?;
    a.raw = raw;
    Some(a)
}

/// A lone value is the default.
fn soft<T>(limit: Limit<T>) -> Limit<T> {
    match limit {
        Limit { default: None, maximum } => Limit { default: maximum, maximum: None },
        both => both,
    }
}

fn limits(a: &mut ApplicationConf, v: &mut Values<'_>, unit: SizeUnit) {
    a.run_limit = soft(v.times("RUNLIMIT"));
    a.cpu_limit = soft(v.times("CPULIMIT"));
    for (name, limit) in [
        ("MEMLIMIT", &mut a.mem_limit),
        ("SWAPLIMIT", &mut a.swap_limit),
        ("FILELIMIT", &mut a.file_limit),
        ("DATALIMIT", &mut a.data_limit),
        ("STACKLIMIT", &mut a.stack_limit),
        ("CORELIMIT", &mut a.core_limit),
    ] {
        *limit = soft(v.sizes(name, unit));
    }
    a.process_limit = soft(v.counts("PROCESSLIMIT"));
    a.thread_limit = soft(v.counts("THREADLIMIT"));
    // PROCLIMIT is the older name of TASKLIMIT.
    a.task_limit = v.tasks("TASKLIMIT").or_else(|| v.tasks("PROCLIMIT"));
}

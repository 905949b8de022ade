//! bjobs -l -aff: the processor units of a started job, a line for each (bjobs(1)).

use lsf::cli::job_rows::JobRow;
use lsf::cli::long_format::push_clean;
use lsf::model::affinity::{JobUnits, MemoryPolicy, PartUnits, TaskUnits};
use lsf::model::topology::Unit;
use lsf::proto::client::Col;
use std::fmt::Write;

const HEAD: &str = "
 AFFINITY:
                     CPU BINDING                          MEMORY BINDING
                     ------------------------             --------------------
 HOST                TYPE   LEVEL  EXCL   IDS             POL   NUMA SIZE
";

/// The table of a job; nothing where it asked for no units.
pub fn push(out: &mut String, r: &JobRow) {
    let units = JobUnits::parse(&r.text(Col::ProcessorUnits)).unwrap_or_default();
    if units.parts.is_empty() {
        return;
    }
    out.push_str(HEAD);
    for (part, task) in units.tasks() {
        task.units.iter().for_each(|unit| line(out, part, task, unit));
    }
}

fn line(out: &mut String, part: &PartUnits, task: &TaskUnits, unit: &str) {
    let word = |unit: Option<Unit>| unit.map_or("-", Unit::name);
    let policy = match part.policy {
        MemoryPolicy::Unbound => "-",
        MemoryPolicy::Only => "local",
        MemoryPolicy::Prefer => "pref",
    };
    let node = unit.split('/').nth(1).unwrap_or("-");
    let memory = task.memory.iter().find(|(number, _)| number.to_string() == node);
    let size = match memory {
        Some((_, mb)) if *mb > 0 => format!("{mb}.0MB"),
        _ => "-".to_owned(),
    };
    let node = if part.policy == MemoryPolicy::Unbound { "-" } else { node };
    let mut host = String::new();
    push_clean(&mut host, &task.host);
    let (kind, level, exclusive) = (part.unit.name(), word(part.level), word(part.exclusive));
    let _ = write!(out, " {host:<19} {kind:<6} {level:<6} {exclusive:<6} {unit:<15} ");
    let _ = writeln!(out, "{policy:<5} {node:<4} {size}");
}

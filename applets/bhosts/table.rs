//! The tables with one line for each host: default and -w.

use lsf::cli::columns::count;
use lsf::cli::long_format::push_clean;
use lsf::proto::client::HostInfo;
use std::fmt::Write;

/// Columns of the name, cut to them unless -w.
const NAME: usize = 18;

/// The status: `closed` alone unless `long`.
pub fn status(h: &HostInfo, long: bool) -> &str {
    if !long && h.status.starts_with("closed") { "closed" } else { &h.status }
}

fn status_width(wide: bool) -> usize {
    if wide { 14 } else { 11 }
}

pub fn head(out: &mut String, wide: bool) {
    let width = status_width(wide);
    let _ = writeln!(
        out,
        "{:<NAME$} {:<width$}  JL/U    MAX  NJOBS    RUN  SSUSP  USUSP    RSV ",
        "HOST_NAME", "STATUS"
    );
}

pub fn row(out: &mut String, h: &HostInfo, wide: bool) {
    let width = status_width(wide);
    let mut name = String::new();
    push_clean(&mut name, &h.name);
    if !wide {
        name = name.chars().take(NAME).collect();
    }
    let _ = writeln!(out, "{name:<NAME$} {:<width$} {}", status(h, wide), slots(h),);
}

/// JL/U to RSV.
pub fn slots(h: &HostInfo) -> String {
    format!(
        "{:>5} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6}",
        count(h.jl_u),
        count(h.max),
        h.njobs,
        h.run,
        h.ssusp,
        h.ususp,
        h.rsv,
    )
}

/// Columns of -gpu after the host's name.
const GPU: [(&str, usize); 8] = [
    ("GPU_ID", 8),
    ("MODEL", 16),
    ("MUSED", 9),
    ("MRSV", 9),
    ("NJOBS", 7),
    ("RUN", 6),
    ("SUSP", 6),
    ("RSV", 6),
];

/// -gpu: no host has one.
pub fn gpus(out: &mut String, rows: &[HostInfo], heading: bool) {
    let mut line = |name: &str, cell: &dyn Fn(&'static str) -> &'static str| {
        let _ = write!(out, "{name:<NAME$}");
        for (title, width) in GPU {
            let _ = write!(out, " {:>width$}", cell(title));
        }
        out.push('\n');
    };
    if heading {
        line("HOST_NAME", &|title| title);
    }
    for h in rows {
        line(&lsf::cli::long_format::clean(&h.name), &|_| "-");
    }
}

/// -rc: the wide table with the columns of the resource connector, which has no host here.
pub fn connector(out: &mut String, rows: &[HostInfo], heading: bool) {
    let more = |out: &mut String, cells: [&str; 4]| {
        out.truncate(out.trim_end().len());
        let [status, prov, at, id] = cells;
        let _ = writeln!(out, "  {status:<13} {prov:<13} {at:<22} {id}");
    };
    if heading {
        head(out, true);
        more(out, ["RC_STATUS", "PROV_STATUS", "UPDATED_AT", "INSTANCE_ID"]);
    }
    for h in rows {
        row(out, h, true);
        more(out, ["-"; 4]);
    }
}

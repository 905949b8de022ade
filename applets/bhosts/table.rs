//! The one-line-a-host tables: default and -w.

use lsf::cli::long::push_clean;
use lsf::proto::client::HostInfo;
use std::fmt::Write;

/// Columns of the name, cut to them unless -w.
const NAME: usize = 18;

/// A limit, `-` where there is none.
pub fn count(n: Option<u64>) -> String {
    n.map_or_else(|| "-".to_string(), |n| n.to_string())
}

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
    let _ = writeln!(
        out,
        "{name:<NAME$} {:<width$} {:>5} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6}",
        status(h, wide),
        count(h.jl_u),
        count(h.max),
        h.njobs,
        h.run,
        h.ssusp,
        h.ususp,
        h.rsv,
    );
}

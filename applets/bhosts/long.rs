//! bhosts -l: limits, loads and thresholds of a host (bhosts(1)).

use super::table::{slots, status};
use lsf::cli::columns::count;
use lsf::cli::load::cell;
use lsf::cli::long_format::{external_thresholds, push_clean, thresholds};
use lsf::conf::names::NOT_ACTED_ON;
use lsf::proto::client::HostInfo;
use lsf::proto::lim::INDEX_NAMES;
use std::fmt::Write;

/// Columns of each built-in index after the 14 of the line's head.
const WIDTHS: [usize; 11] = [6, 6, 6, 6, 6, 6, 5, 6, 6, 6, 6];
/// The column at which loads begin.
const FROM: usize = 14;
/// Columns of a shared resource, at least.
const EXTERNAL: usize = 6;
/// The first index of which less is worse: it, tmp, swp, mem.
const DECREASING_FROM: usize = 7;

/// One record with the blank lines after it.
pub fn host(out: &mut String, h: &HostInfo) {
    out.push_str("HOST  ");
    push_clean(out, &h.name);
    out.push_str(
        "\nSTATUS           CPUF  JL/U    MAX  NJOBS    RUN  SSUSP  USUSP    RSV DISPATCH_WINDOW\n",
    );
    let window = if h.dispatch_window.is_empty() { "-" } else { &h.dispatch_window };
    let _ = write!(out, "{:<14} {:>6.2} {}      ", status(h, true), h.cpu_factor, slots(h),);
    push_clean(out, window);
    out.push_str("\n\n CURRENT LOAD USED FOR SCHEDULING:\n");
    loads(out, h);
    externals(out, h);
    out.push_str("\n LOAD THRESHOLD USED FOR SCHEDULING:\n");
    thresholds(out, &h.thresholds);
    external_thresholds(out, &h.external);
    if let Some(minutes) = h.migration {
        let _ = writeln!(out, " Migration threshold is {minutes} minutes");
    }
    if let Some((threshold, exits)) = h.exit_rate {
        out.push_str("\n THRESHOLD AND LOAD USED FOR EXCEPTIONS:\n            JOB_EXIT_RATE\n");
        let _ = writeln!(out, " Threshold  {threshold:>6}.00\n Load       {exits:>6}.00");
    }
    for (name, value) in &h.not_acted_on {
        out.push(' ');
        push_clean(out, &format!("{name} = {value}"));
        out.push_str(NOT_ACTED_ON);
        out.push('\n');
    }
    out.push('\n');
    if !h.admin_comment.is_empty() {
        out.push_str(" ADMIN ACTION COMMENT: \"");
        push_clean(out, &h.admin_comment);
        out.push_str("\"\n");
    }
    if let Some(units) = &h.affinity {
        let cpus = if units.cpus.is_empty() { "all" } else { &units.cpus };
        out.push_str(" CONFIGURED AFFINITY CPU LIST: ");
        push_clean(out, cpus);
        out.push('\n');
    }
    out.push('\n');
}

/// Is index `i` at `v` beyond the threshold that dispatching needs?
fn beyond(h: &HostInfo, i: usize, v: f64) -> bool {
    match h.thresholds.get(i) {
        Some((Some(limit), _)) if i >= DECREASING_FROM => v < *limit,
        Some((Some(limit), _)) => v > *limit,
        _ => false,
    }
}

fn loads(out: &mut String, h: &HostInfo) {
    let mut line = |head: &str, cells: &mut dyn FnMut(usize) -> String, slots: &str| {
        let _ = write!(out, "{head:<FROM$}");
        for (i, width) in WIDTHS.into_iter().enumerate() {
            let text = cells(i);
            // A value too wide for its place still stands apart from the one before.
            let width = width.max(text.len() + 1);
            let _ = write!(out, "{text:>width$}");
        }
        let _ = writeln!(out, " {slots:>6}");
    };
    let name = |i: usize| INDEX_NAMES.get(i).map_or(String::new(), |n| n.to_string());
    line("", &mut { name }, "slots");
    let free = h.max.map(|max| max.saturating_sub(h.njobs));
    let mut total = |i: usize| match h.load.as_ref().and_then(|l| l.index.get(i)) {
        Some(v) => {
            let v = f64::from(*v);
            let star = if beyond(h, i, v) { "*" } else { "" };
            format!("{star}{}", cell(i, v))
        }
        None => "-".to_string(),
    };
    line(" Total", &mut total, &count(free));
    let mut reserved = |i: usize| match h.load {
        Some(_) => cell(i, h.reserved.get(i).copied().unwrap_or(0.0)),
        None => "-".to_string(),
    };
    line(" Reserved", &mut reserved, "-");
}

/// External indices and numbers shared with other hosts, under their names.
fn externals(out: &mut String, h: &HostInfo) {
    let Some(load) = &h.load else { return };
    let shared = load.facts.as_ref().map_or(&[][..], |f| &f.shared);
    let fixed = shared.iter().filter(|(_, v)| v.parse::<f64>().is_ok());
    let columns: Vec<&(String, String)> = load.external.iter().chain(fixed).collect();
    if columns.is_empty() {
        return;
    }
    out.push('\n');
    for head in ["", " Total", " Reserved"] {
        let _ = write!(out, "{head:<10}");
        for (name, value) in &columns {
            let number = value.parse::<f64>().is_ok();
            let reserved = h.reserved_external.iter().find(|(n, _)| n == name);
            let none = if number { "0.0" } else { "-" };
            let mut text = String::new();
            let shown: &str = match head {
                "" => name,
                " Total" => value,
                _ => reserved.map_or(none, |(_, v)| v),
            };
            push_clean(&mut text, shown);
            let width = EXTERNAL.max(name.chars().count() + 1).max(value.chars().count() + 1);
            let _ = write!(out, "{text:>width$}");
        }
        out.push('\n');
    }
}

//! Why a job waits or stands still (semantics §15, §16): ` text: N hosts;`, ` text: 1 host;`,
//! ` text;`.

use super::show::is_pending;
use lsf::cli::rows::{Cell, Row};
use lsf::model::reason::{pend_text, susp_text};
use lsf::proto::client::Col;
use std::fmt::Write;

/// (code, number of hosts or 0) of every pending reason.
fn pending<'r>(r: &Row<'r, '_>) -> impl Iterator<Item = (u32, i64)> + use<'r> {
    r.list(Col::PendReasons).iter().filter_map(|reason| {
        let parts = reason.list();
        let code = u32::try_from(parts.first()?.int()?).ok()?;
        Some((code, parts.get(1).and_then(Cell::int).unwrap_or(0)))
    })
}

/// `text: N hosts;` without blank before it or newline after it.
fn push_pending(out: &mut String, code: u32, hosts: i64) {
    out.push_str(pend_text(code));
    let _ = match hosts {
        0 => write!(out, ";"),
        1 => write!(out, ": 1 host;"),
        n => write!(out, ": {n} hosts;"),
    };
}

/// The reason lines of a job in a state that has reasons; else nothing.
pub fn push(out: &mut String, r: &Row) {
    let stat = r.text(Col::Stat);
    if is_pending(&stat) {
        for (code, hosts) in pending(r) {
            out.push(' ');
            push_pending(out, code, hosts);
            out.push('\n');
        }
    } else if matches!(&*stat, "SSUSP" | "USUSP") {
        let _ = writeln!(out, " {};", susp_text(r.int(Col::SuspReason) as u32));
    }
}

/// All pending reasons in one line, for -o.
pub fn joined(out: &mut String, r: &Row) {
    for (i, (code, hosts)) in pending(r).enumerate() {
        if i > 0 {
            out.push(' ');
        }
        push_pending(out, code, hosts);
    }
}

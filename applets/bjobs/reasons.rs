//! Why a job waits or stands still (semantics §15, §16): ` text: N hosts;`, ` text: 1 host;`,
//! ` text;`; and the summary of -psum.

use super::show::{Show, is_pending};
use lsf::cli::long::push_clean;
use lsf::cli::rows::{Cell, Row};
use lsf::model::reason::{pend, pend_text, susp_text};
use lsf::proto::client::Col;
use std::borrow::Cow;
use std::fmt::Write;

/// A pending reason.
struct Reason<'r> {
    code: u32,
    /// Hosts that it concerns; 0: the job as a whole.
    hosts: i64,
    names: Vec<Cow<'r, str>>,
}

impl Reason<'_> {
    /// Does it say that the hosts were never meant?
    fn elsewhere(&self) -> bool {
        matches!(self.code, pend::NOT_QUEUE_HOST | pend::NOT_ASKED_HOST)
    }

    /// `text: N hosts;`, `text: hosta, hostb;`, without blank before it or newline after it.
    fn push(&self, out: &mut String, names: bool) {
        out.push_str(pend_text(self.code));
        let _ = match self.hosts {
            0 => write!(out, ";"),
            _ if names && !self.names.is_empty() => {
                out.push_str(": ");
                push_clean(out, &self.names.join(", "));
                write!(out, ";")
            }
            1 => write!(out, ": 1 host;"),
            n => write!(out, ": {n} hosts;"),
        };
    }
}

fn pending<'r>(r: &Row<'r, '_>) -> impl Iterator<Item = Reason<'r>> + use<'r> {
    r.list(Col::PendReasons).iter().filter_map(|reason| {
        let parts = reason.list();
        let code = u32::try_from(parts.first()?.int()?).ok()?;
        let hosts = parts.get(1).and_then(Cell::int).unwrap_or(0);
        let names = parts.get(2).map_or(Vec::new(), |n| n.list().iter().map(Cell::text).collect());
        Some(Reason { code, hosts, names })
    })
}

/// The reason lines of a job in a state that has reasons; else nothing.
pub fn push(out: &mut String, r: &Row, s: &Show) {
    let stat = r.text(Col::Stat);
    if matches!(&*stat, "SSUSP" | "USUSP") {
        let _ = writeln!(out, " {};", susp_text(r.int(Col::SuspReason) as u32));
    }
    if !is_pending(&stat) {
        return;
    }
    let mut line = |reason: &Reason| {
        out.push(' ');
        reason.push(out, s.host_names);
        out.push('\n');
    };
    match s.level {
        0 => pending(r).for_each(|p| line(&p)),
        1 => pending(r).take(1).for_each(|p| line(&p)),
        level => by_candidates(out, r, s, level),
    }
}

/// -p2 and -p3: what concerns the job, then candidate hosts, then (3) the others.
fn by_candidates(out: &mut String, r: &Row, s: &Show, level: u8) {
    let (job, hosts): (Vec<_>, Vec<_>) = pending(r).partition(|p| p.hosts == 0);
    let (others, candidates): (Vec<_>, Vec<_>) = hosts.into_iter().partition(Reason::elsewhere);
    let count = |of: &[Reason]| of.iter().map(|p| p.hosts).sum::<i64>();
    let all = count(&others) + count(&candidates);
    let mut lines = |title: &str, of: &[Reason]| {
        if !title.is_empty() && !of.is_empty() {
            let n = count(of);
            let _ = writeln!(out, " {title} host pending reasons ({n} of {all} hosts):");
        }
        for p in of {
            out.push(' ');
            p.push(out, s.host_names);
            out.push('\n');
        }
    };
    lines("", &job);
    lines("Candidate", &candidates);
    if level > 2 {
        lines("Non-candidate", &others);
    }
}

/// All pending reasons in one line, for -o.
pub fn joined(out: &mut String, r: &Row) {
    for (i, p) in pending(r).enumerate() {
        if i > 0 {
            out.push(' ');
        }
        p.push(out, false);
    }
}

/// -psum: how many jobs wait for what, how often hosts were no help.
#[derive(Default)]
pub struct PendSum {
    /// The cluster's name.
    pub cluster: String,
    /// Code, jobs that wait for it as a whole, hosts that it kept jobs from.
    seen: Vec<(u32, i64, i64)>,
}

impl PendSum {
    pub const COLS: [Col; 4] = [Col::Job, Col::Idx, Col::Stat, Col::PendReasons];

    pub fn add(&mut self, r: &Row) {
        for p in pending(r) {
            let at = self.seen.iter().position(|s| s.0 == p.code).unwrap_or_else(|| {
                self.seen.push((p.code, 0, 0));
                self.seen.len() - 1
            });
            let Some(seen) = self.seen.get_mut(at) else { continue };
            seen.1 += i64::from(p.hosts == 0);
            seen.2 += p.hosts;
        }
    }

    /// The summary over so many jobs.
    pub fn text(&mut self, s: &Show, jobs: usize) -> String {
        let mut out = String::from("Pending reason summary: published ");
        s.clock.full(&mut out, s.now);
        out.push_str(&format!("\nSummarizing {jobs} pending jobs in cluster ("));
        push_clean(&mut out, &self.cluster);
        out.push_str("):\n");
        // the most frequent first
        self.seen.sort_unstable_by_key(|s| std::cmp::Reverse((s.1, s.2, s.0)));
        for (code, jobs, _) in self.seen.iter().filter(|s| s.1 > 0) {
            let _ = writeln!(out, "    {}:   {jobs} jobs", pend_text(*code));
        }
        if self.seen.iter().any(|s| s.2 > 0) {
            out.push_str("Individual host based reasons\n");
        }
        self.seen.sort_unstable_by_key(|s| std::cmp::Reverse((s.2, s.1, s.0)));
        for (code, _, hosts) in self.seen.iter().filter(|s| s.2 > 0) {
            let _ = writeln!(out, "    {}:  {hosts} occurrences", pend_text(*code));
        }
        out
    }
}

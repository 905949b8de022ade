//! Why a job waits or stands still (bjobs(1) -p, -s): ` text: N hosts;`, ` text: 1 host;`, `
//! text;`; and the summary of -psum.

use super::show::{Show, is_pending, is_suspended};
use lsf::cli::job_rows::{Cell, JobRow};
use lsf::cli::long_format::{clean, push_clean};
use lsf::model::reason::{LimitOf, PendReason, susp_text};
use lsf::proto::client::Col;
use lsf::proto::lim::INDEX_NAMES;
use std::borrow::Cow;
use std::fmt::Write;

/// A pending reason.
struct Reason<'r> {
    why: PendReason,
    /// Hosts that it concerns; 0: the job as a whole.
    hosts: i64,
    names: Vec<Cow<'r, str>>,
    /// The words of a host about it, or the resource it is about.
    detail: Cow<'r, str>,
    /// The name and the value of the limit that it is about.
    limit: Option<[Cow<'r, str>; 2]>,
}

impl Reason<'_> {
    /// Does it say that the hosts are out of the question, rather than taken for now?
    fn elsewhere(&self) -> bool {
        matches!(
            self.why,
            PendReason::Requirement
                | PendReason::QueueRequirement
                | PendReason::NotQueueHost
                | PendReason::NotAskedHost
                | PendReason::NoUser
                | PendReason::HostClosed
                | PendReason::HostLocked
                | PendReason::HostWindow
                | PendReason::LoadUnavailable
                | PendReason::LimUnreachable
                | PendReason::SbatchdUnreachable
        )
    }

    /// The text alone; it names a resource that is no built-in one.
    fn text(&self) -> Cow<'static, str> {
        if let (PendReason::Limit(about), false) = (self.why, self.detail.is_empty()) {
            let words = about.words();
            return format!(
                "Resource ({}) limit defined {words} has been reached",
                clean(&self.detail)
            )
            .into();
        }
        let Some((before, after)) = self.about_resource() else {
            return self.why.text().into();
        };
        let mut text = String::from(before);
        push_clean(&mut text, &self.detail);
        text.push_str(after);
        text.into()
    }

    /// The text that names the limit, where there is one.
    fn about_limit(&self) -> Option<String> {
        let PendReason::Limit(about) = self.why else { return None };
        let [name, value] = self.limit.as_ref()?;
        let resource = match about.of {
            LimitOf::Slots | LimitOf::Jobs => "slot".into(),
            LimitOf::Index(k) => INDEX_NAMES.get(usize::from(k)).map_or("", |name| name).into(),
            LimitOf::Resource(_) => clean(&self.detail),
        };
        Some(about.told(&resource, &clean(name), &clean(value)))
    }

    /// The words around the name of the resource that the reason is about.
    fn about_resource(&self) -> Option<(&'static str, &'static str)> {
        match self.why {
            _ if self.detail.is_empty() => None,
            PendReason::ReserveExternal(_) => {
                Some(("Job's requirements for reserving resource (", ") not satisfied"))
            }
            PendReason::LoadExternal(_) => Some(("External load index (", ") is beyond threshold")),
            _ => None,
        }
    }

    /// `text: N hosts;`, `text: hosta, hostb;`, without blank before it or newline after it. A
    /// limit is named, but not in the short form of -p0.
    fn push(&self, out: &mut String, names: bool, short: bool) {
        let limit = self.about_limit().filter(|_| !short);
        out.push_str(&limit.map_or_else(|| self.text(), Cow::from));
        let of_limit = matches!(self.why, PendReason::Limit(_));
        if !of_limit && self.about_resource().is_none() && !self.detail.is_empty() {
            out.push_str(": ");
            push_clean(out, &self.detail);
        }
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

/// The text of a reason that may be about this resource.
pub fn reason_text(why: PendReason, resource: &str) -> String {
    let (names, detail) = (Vec::new(), Cow::Borrowed(resource));
    let reason = Reason { why, hosts: 0, names, detail, limit: None };
    reason.text().into_owned()
}

fn pending<'r>(r: &JobRow<'r, '_>) -> impl Iterator<Item = Reason<'r>> + use<'r> {
    let lists = [Col::PendReasons, Col::AllPendReasons].map(|col| r.list(col));
    lists.into_iter().flatten().filter_map(|reason| {
        let parts = reason.list();
        let number = u32::try_from(parts.first()?.int()?).ok()?;
        let hosts = parts.get(1).and_then(Cell::int).unwrap_or(0);
        let names = parts.get(2).map_or(Vec::new(), |n| n.list().iter().map(Cell::text).collect());
        let detail = parts.get(3).map_or(Cow::Borrowed(""), Cell::text);
        let limit = parts.get(4).zip(parts.get(5)).map(|(a, b)| [a.text(), b.text()]);
        Some(Reason { why: PendReason::of_number(number), hosts, names, detail, limit })
    })
}

/// Why a job waits, one line for each reason.
pub fn lines(r: &JobRow) -> Vec<String> {
    let line = |reason: Reason<'_>| {
        let mut text = String::new();
        reason.push(&mut text, false, false);
        text
    };
    if is_pending(r) { pending(r).map(line).collect() } else { Vec::new() }
}

/// Why a job is suspended, with the external index where it is for one.
pub fn suspending_reason(r: &JobRow) -> String {
    let text = susp_text(r.int(Col::SuspReason) as u32);
    match &*r.text(Col::SuspIndex) {
        "" => text.to_string(),
        index => format!("{text} ({index})"),
    }
}

/// The reason lines of a job in a state that has reasons; else nothing.
pub fn push(out: &mut String, r: &JobRow, s: &Show) {
    if is_suspended(r) {
        let _ = writeln!(out, " {};", suspending_reason(r));
    }
    if !is_pending(r) {
        return;
    }
    let mut line = |reason: &Reason| {
        out.push(' ');
        reason.push(out, s.host_names, s.level == 0);
        out.push('\n');
    };
    match s.level {
        0 => pending(r).for_each(|p| line(&p)),
        1 => pending(r).take(1).for_each(|p| line(&p)),
        level => by_candidates(out, r, s, level),
    }
}

/// -p2 and -p3: what concerns the job, then candidate hosts, then (3) the others.
fn by_candidates(out: &mut String, r: &JobRow, s: &Show, level: u8) {
    let (job, hosts): (Vec<_>, Vec<_>) = pending(r).partition(|p| p.hosts == 0);
    let mut lines = |indent: &str, of: &[Reason]| {
        for p in of {
            out.push_str(indent);
            p.push(out, s.host_names, false);
            out.push('\n');
        }
    };
    lines(" ", &job);
    if hosts.is_empty() {
        return;
    }
    let (others, candidates): (Vec<_>, Vec<_>) = hosts.into_iter().partition(Reason::elsewhere);
    let count = |of: &[Reason]| of.iter().map(|p| p.hosts).sum::<i64>();
    let all = count(&others) + count(&candidates);
    let shown = [("Candidate", candidates), ("\n Non-candidate", others)];
    for (title, of) in shown.iter().take(usize::from(level) - 1) {
        let end = if of.is_empty() { '.' } else { ':' };
        let blank = if title.starts_with('\n') { "" } else { " " };
        let n = count(of);
        let _ = writeln!(out, "{blank}{title} host pending reasons ({n} of {all} hosts){end}");
        for p in of {
            out.push_str("   ");
            p.push(out, s.host_names, false);
            out.push('\n');
        }
    }
}

/// The most telling pending reason, for -o, whatever the level.
pub fn key(out: &mut String, r: &JobRow) {
    if let Some(p) = pending(r).next() {
        p.push(out, false, false);
    }
}

/// Columns of a reason in the summary.
const REASON: usize = 64;

/// -psum: how many jobs wait for what, how often hosts were no help.
#[derive(Default)]
pub struct PendSum {
    /// The cluster's name.
    pub cluster: String,
    /// Jobs that have a reason of the level asked for.
    jobs: i64,
    /// The jobs of these that no host can help.
    by_hosts: i64,
    /// Text, jobs that wait for it as a whole, hosts that it kept jobs from.
    seen: Vec<(Cow<'static, str>, i64, i64)>,
}

impl PendSum {
    pub const COLS: [Col; 4] = [Col::Job, Col::Idx, Col::Stat, Col::PendReasons];

    pub fn add(&mut self, r: &JobRow, s: &Show) {
        // with -a and the like others come too
        if !is_pending(r) {
            return;
        }
        let most = if s.level == 1 { 1 } else { usize::MAX };
        let of_level = |p: &Reason| s.level != 2 || !p.elsewhere();
        let reasons: Vec<Reason> = pending(r).take(most).filter(of_level).collect();
        self.jobs += i64::from(!reasons.is_empty() || s.level == 0);
        self.by_hosts += i64::from(reasons.iter().any(|p| p.hosts > 0));
        for p in reasons {
            let text = p.text();
            let at = self.seen.iter().position(|s| s.0 == text).unwrap_or_else(|| {
                self.seen.push((text, 0, 0));
                self.seen.len() - 1
            });
            let Some(seen) = self.seen.get_mut(at) else { continue };
            seen.1 += i64::from(p.hosts == 0);
            seen.2 += p.hosts;
        }
    }

    /// The summary, the most frequent first.
    pub fn text(&mut self, s: &Show) -> String {
        const BY_HOSTS: &str = "Individual host based reasons";
        let mut out = String::from("Pending reason summary: published ");
        s.clock.full(&mut out, s.now);
        out.push_str(&format!("\nSummarizing {} pending jobs in cluster (", self.jobs));
        push_clean(&mut out, &self.cluster);
        out.push_str("):\n");
        let some = |n: fn(&(Cow<'static, str>, i64, i64)) -> i64| {
            let lines = self.seen.iter().map(|s| (&*s.0, n(s)));
            lines.filter(|l| l.1 > 0).collect::<Vec<_>>()
        };
        let mut jobs = some(|s| s.1);
        jobs.extend((self.by_hosts > 0).then_some((BY_HOSTS, self.by_hosts)));
        counted(&mut out, jobs, "jobs");
        let hosts = some(|s| s.2);
        if !hosts.is_empty() {
            let _ = writeln!(out, "\n{BY_HOSTS}");
            counted(&mut out, hosts, "occurrences");
        }
        out
    }
}

/// Lines of what is counted, the numbers one below the other.
fn counted(out: &mut String, mut lines: Vec<(&str, i64)>, what: &str) {
    lines.sort_by_key(|l| (std::cmp::Reverse(l.1), l.0));
    let width = lines.first().map_or(1, |l| l.1.to_string().len());
    for (reason, n) in lines {
        let _ = writeln!(out, "    {:<REASON$} {n:>width$} {what}", format!("{reason}:"));
    }
}

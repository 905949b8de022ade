//! The settings of all forms of the listing: width, time zone, and the cells of a table.

use lsf::cli::clock::Clock;
use lsf::cli::job_rows::JobRow;
use lsf::cli::long_format::push_clean;
use lsf::model::job_state::JobState;
use lsf::proto::client::Col;
use std::borrow::Cow;
use std::fmt::Write;

/// How to show.
pub struct Show {
    pub clock: Clock,
    /// -w: nothing is cut.
    pub wide: bool,
    /// LSB_JOBID_DISP_LENGTH: columns of a job ID.
    pub id_width: usize,
    /// LSB_SHORT_HOSTLIST=1: `4*hosta` for four slots on one host.
    pub short_hosts: bool,
    /// LSB_ENABLE_HPC_ALLOCATION=Y: tasks and allocated slots instead of processors.
    pub hpc: bool,
    /// SHORT_PIDLIST in LSF_HPC_EXTENSIONS: process groups without their processes.
    pub short_pids: bool,
    /// -UF: long lines are not broken.
    pub unwrapped: bool,
    /// -hostfile: with the hosts and slots that were asked for in a file.
    pub host_file: bool,
    /// -aff: with the processor units of started jobs.
    pub affinity: bool,
    /// -hms: times of fields that are no dates as hh:mm:ss.
    pub hms: bool,
    /// LSB_UNIT_FOR_JOBS_DISPLAY: the unit of sizes in -o that have none.
    pub unit: Option<char>,
    /// -p0 to -p3: which pending reasons.
    pub level: u8,
    /// -X: hosts are shown even where lsb.hosts has CONDENSE for their group.
    pub expand: bool,
    /// Pending reasons whatever CONDENSE_PENDING_REASONS says.
    pub whole_reasons: bool,
    /// Reasons name their hosts.
    pub host_names: bool,
    /// -N: the CPU factor to normalise by.
    pub factor: Option<f64>,
    /// Seconds since the epoch.
    pub now: i64,
}

impl Show {
    /// CPU seconds of a job, by -N as they would be on another host.
    pub fn cpu(&self, r: &JobRow, col: Col) -> f64 {
        self.normalised(r, r.num(col))
    }

    /// CPU seconds of a job on one of its hosts, likewise.
    pub fn normalised(&self, r: &JobRow, secs: f64) -> f64 {
        match (self.factor, r.num(Col::HostFactor)) {
            (Some(to), from) if from > 0.0 => secs * from / to,
            _ => secs,
        }
    }

    /// Appends a cell of `width` columns, cut to them unless -w, padded, without blank after it.
    pub fn cell(&self, out: &mut String, text: &str, width: usize) {
        let from = out.len();
        push_clean(out, text);
        let got = columns(&out[from..]);
        if got > width {
            if !self.wide {
                let keep = nth_char(&out[from..], width);
                out.truncate(from + keep);
            }
        } else {
            pad(out, width - got);
        }
    }

    /// Like [`Show::cell`], but keeps the end behind a `*`.
    pub fn tail_cell(&self, out: &mut String, text: &str, width: usize) {
        let n = columns(text);
        if self.wide || n <= width {
            return self.cell(out, text, width);
        }
        out.push('*');
        push_clean(out, &text[nth_char(text, n - (width - 1))..]);
    }

    /// The JOBID column: a number too long for it loses its left digits, unless -w.
    pub fn id_cell(&self, out: &mut String, id: i64) {
        let from = out.len();
        let _ = write!(out, "{id}");
        let got = out.len() - from;
        if got > self.id_width && !self.wide {
            out.replace_range(from..from + got - self.id_width, "");
        } else {
            pad(out, self.id_width.saturating_sub(got));
        }
    }
}

/// Appends `n` blanks.
pub fn pad(out: &mut String, mut n: usize) {
    const BLANKS: &str = "                                                                ";
    while n > 0 {
        let now = n.min(BLANKS.len());
        out.push_str(&BLANKS[..now]);
        n -= now;
    }
}

/// Columns that `text` takes: characters.
fn columns(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().count() }
}

/// The byte at which character `n` of `text` begins.
fn nth_char(text: &str, n: usize) -> usize {
    text.char_indices().nth(n).map_or(text.len(), |(i, _)| i)
}

/// `hosta`, `4*hosta`.
fn push_host(out: &mut String, host: &str, slots: i64) {
    if slots > 1 {
        let _ = write!(out, "{slots}*");
    }
    push_clean(out, host);
}

/// The (host, slots) pairs of a row: those that stand in it, condensed or not.
pub fn shown_hosts<'r, 'a>(
    r: &JobRow<'r, 'a>,
) -> impl Iterator<Item = (Cow<'r, str>, i64)> + use<'r, 'a> {
    r.hosts(Col::CondensedHosts).chain(r.hosts(Col::ExecHosts))
}

/// `4*hosta:4*hostb`; nothing before dispatch.
pub fn push_hosts_joined(out: &mut String, r: &JobRow, by: char) {
    for (i, (host, slots)) in shown_hosts(r).enumerate() {
        if i > 0 {
            out.push(by);
        }
        push_host(out, &host, slots);
    }
}

/// One text an allocated slot (`hosta` `hosta`), or one a host (`2*hosta`) when `short`.
pub fn host_words<'r>(r: &JobRow<'r, '_>, short: bool) -> Vec<Cow<'r, str>> {
    let mut words = Vec::new();
    for (host, slots) in shown_hosts(r) {
        if short && slots > 1 {
            words.push(Cow::Owned(format!("{slots}*{host}")));
        } else {
            (0..slots.max(1)).for_each(|_| words.push(host.clone()));
        }
    }
    words
}

/// Was the job ever dispatched (and not sent back since)?
pub fn has_hosts(r: &JobRow) -> bool {
    let hosts = [Col::ExecHosts, Col::CondensedHosts].map(|col| r.list(col));
    hosts.iter().any(|list| !list.is_empty())
}

/// Is the job waiting, rather than started or over?
pub fn is_pending(r: &JobRow) -> bool {
    r.state().is_some_and(JobState::is_pending)
}

/// Is the job suspended after its start?
pub fn is_suspended(r: &JobRow) -> bool {
    r.state().is_some_and(JobState::is_suspended)
}

/// Is the job over?
pub fn is_finished(r: &JobRow) -> bool {
    r.state().is_some_and(JobState::is_finished)
}

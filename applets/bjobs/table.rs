//! The tables with one line for each job: default and -w, -p and -s with reasons, -W, -A, -sum.

use super::fields::{self, LEFT_COLS};
use super::reasons;
use super::show::{Show, has_hosts, host_words, is_pending, pad, push_hosts_joined, shown_hosts};
use lsf::cli::job_rows::{Cell, JobRow};
use lsf::cli::long_format::push_clean;
use lsf::conf::types::ApsFactor;
use lsf::model::job_state::JobState;
use lsf::proto::client::Col;
use std::fmt::Write;

/// The kind of table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableKind {
    /// Default and -w.
    Plain,
    /// -p and -s: reasons instead of hosts.
    Reasons,
    /// -W.
    Usage,
    /// -WL.
    TimeLeft,
    /// -WF.
    Finish,
    /// -WP.
    Complete,
    /// -aps.
    Aps,
    /// -prio: with the factors.
    Priorities,
    /// -A.
    Arrays,
}

impl TableKind {
    /// `hosts`: the column of execution hosts that EXEC_HOST shows.
    pub fn cols(self, hosts: Col) -> Vec<Col> {
        let mut cols = vec![Col::Job, Col::Idx, Col::User];
        match self {
            TableKind::Arrays => {
                cols.extend([Col::GivenName, Col::Counters]);
                return cols;
            }
            TableKind::TimeLeft | TableKind::Finish | TableKind::Complete => {
                cols.push(hosts);
                cols.extend(LEFT_COLS);
            }
            TableKind::Plain | TableKind::Usage => cols.push(hosts),
            TableKind::Aps | TableKind::Priorities => {
                cols.extend([hosts, Col::AbsolutePriority]);
            }
            TableKind::Reasons => cols.extend([Col::PendReasons, Col::SuspReason, Col::SuspIndex]),
        }
        cols.extend([Col::Stat, Col::Queue, Col::FromHost, Col::Name, Col::SubmitTime]);
        if self == TableKind::Usage {
            cols.extend([Col::Project, Col::CpuUsed, Col::MemKb, Col::SwapKb, Col::Pids]);
            cols.extend([Col::StartTime, Col::EndTime, Col::MinSlots]);
        }
        cols
    }

    pub fn head(self, out: &mut String, s: &Show) {
        let id = s.id_width;
        match self {
            TableKind::Reasons => {
                let _ = write!(out, "{:id$} ", "JOBID");
                out.push_str(
                    "USER    STAT  QUEUE       FROM_HOST      JOB_NAME           SUBMIT_TIME",
                );
            }
            TableKind::Arrays => {
                let id = id.max(10);
                let _ = write!(out, "{:id$} ", "JOBID");
                out.push_str("ARRAY_SPEC  OWNER   NJOBS PEND DONE  RUN EXIT SSUSP USUSP PSUSP");
            }
            _ => {
                let _ = write!(out, "{:id$} ", "JOBID");
                out.push_str(
                    "USER    STAT  QUEUE      FROM_HOST   EXEC_HOST   JOB_NAME   SUBMIT_TIME",
                );
                out.push_str(match self {
                    TableKind::Usage => {
                        "  PROJ_NAME CPU_USED MEM SWAP PIDS START_TIME FINISH_TIME SLOTS"
                    }
                    TableKind::TimeLeft => "  TIME_LEFT",
                    TableKind::Finish => "  FINISH_TIME",
                    TableKind::Complete => "  %COMPLETE",
                    TableKind::Aps | TableKind::Priorities => "  APS",
                    _ => "",
                });
                if self == TableKind::Priorities {
                    out.push_str(" ADMIN");
                    for factor in ApsFactor::ALL {
                        let _ = write!(out, " {}", factor.word());
                    }
                }
            }
        }
        out.push('\n');
    }

    pub fn row(self, out: &mut String, r: &JobRow, s: &Show) {
        match self {
            TableKind::Plain => plain(out, r, s),
            TableKind::Reasons => {
                with_reasons(out, r, s);
                reasons::push(out, r, s);
            }
            TableKind::Usage => usage(out, r, s),
            TableKind::TimeLeft => timed(out, r, s, fields::time_left),
            TableKind::Finish => timed(out, r, s, fields::finish_time),
            TableKind::Complete => timed(out, r, s, fields::complete),
            TableKind::Aps => timed(out, r, s, absolute),
            TableKind::Priorities => timed(out, r, s, factors),
            TableKind::Arrays => array(out, r, s),
        }
    }
}

/// JOBID USER STAT, each with its blank.
fn id_user_stat(out: &mut String, r: &JobRow, s: &Show, stat: &str) {
    s.id_cell(out, r.int(Col::Job));
    out.push(' ');
    s.cell(out, &r.text(Col::User), 7);
    out.push(' ');
    s.cell(out, stat, 5);
    out.push(' ');
}

/// The columns before SUBMIT_TIME, each with its blank.
fn common(out: &mut String, r: &JobRow, s: &Show, all_hosts: bool) {
    let stat = r.text(Col::Stat);
    id_user_stat(out, r, s, &stat);
    s.cell(out, &r.text(Col::Queue), 10);
    out.push(' ');
    s.cell(out, &r.text(Col::FromHost), 11);
    out.push(' ');
    exec_host(out, r, s, all_hosts);
    out.push(' ');
    s.tail_cell(out, &r.text(Col::Name), 10);
    out.push(' ');
}

/// The EXEC_HOST column: the first host of several, or all of them, then never blank.
fn exec_host(out: &mut String, r: &JobRow, s: &Show, all: bool) {
    const WIDTH: usize = 11;
    if !has_hosts(r) {
        let none = if all || !is_pending(r) { "   -" } else { "" };
        return s.cell(out, none, WIDTH);
    }
    if all {
        let from = out.len();
        push_hosts_joined(out, r, ':');
        let got = out[from..].chars().count();
        return pad(out, WIDTH.saturating_sub(got));
    }
    let words = host_words(r, s.short_hosts);
    s.cell(out, words.first().map_or("", |w| w), WIDTH);
}

fn plain(out: &mut String, r: &JobRow, s: &Show) {
    common(out, r, s, s.wide);
    s.clock.short(out, r.int(Col::SubmitTime));
    out.push('\n');
    if s.wide {
        return;
    }
    let mut slots = shown_hosts(r);
    let one = matches!(slots.next(), None | Some((_, 0 | 1))) && slots.next().is_none();
    if one {
        return;
    }
    for word in host_words(r, s.short_hosts).iter().skip(1) {
        pad(out, 38 + s.id_width);
        push_clean(out, word);
        out.push('\n');
    }
}

/// The plain columns on one line, then a time, `-` where there is none.
fn timed(out: &mut String, r: &JobRow, s: &Show, value: fn(&mut String, &JobRow, &Show)) {
    common(out, r, s, s.wide);
    s.clock.short(out, r.int(Col::SubmitTime));
    out.push(' ');
    let from = out.len();
    value(out, r, s);
    out.push_str(if out.len() == from { "-\n" } else { "\n" });
}

/// `109.00`; `(10)`: it was set as a whole.
fn absolute(out: &mut String, r: &JobRow, _: &Show) {
    let cells = r.list(Col::AbsolutePriority);
    let Some(total) = cells.first().and_then(Cell::num) else { return };
    let _ = match cells.get(1) {
        Some(Cell::Bool(true)) => write!(out, "({total})"),
        _ => write!(out, "{total:.2}"),
    };
}

/// The priority, the number of `admin` and the weighted factors.
fn factors(out: &mut String, r: &JobRow, s: &Show) {
    absolute(out, r, s);
    let cells = r.list(Col::AbsolutePriority);
    let Some(admin) = cells.get(2).and_then(Cell::num) else { return };
    let _ = write!(out, " {admin:.2}");
    for cell in cells.get(3).map_or(&[][..], Cell::list) {
        let _ = write!(out, " {:.2}", cell.num().unwrap_or(0.0));
    }
}

/// The order of -aps and -prio: priorities that were set as a whole, then calculated ones, each the
/// largest first, then jobs without one; equal ones as they were submitted.
#[derive(Debug, PartialEq, PartialOrd)]
pub struct AbsolutePlace(u8, f64, i64, i64, i64);

impl AbsolutePlace {
    pub fn of(r: &JobRow) -> AbsolutePlace {
        let cells = r.list(Col::AbsolutePriority);
        let (kind, total) = match (cells.first().and_then(Cell::num), cells.get(1)) {
            (None, _) => (2, 0.0),
            (Some(total), Some(Cell::Bool(true))) => (0, total),
            (Some(total), _) => (1, total),
        };
        let [time, job, idx] = [Col::SubmitTime, Col::Job, Col::Idx].map(|col| r.int(col));
        AbsolutePlace(kind, -total, time, job, idx)
    }
}

fn with_reasons(out: &mut String, r: &JobRow, s: &Show) {
    id_user_stat(out, r, s, &r.text(Col::Stat));
    s.cell(out, &r.text(Col::Queue), 11);
    out.push(' ');
    s.cell(out, &r.text(Col::FromHost), 14);
    out.push(' ');
    s.tail_cell(out, &r.text(Col::Name), 18);
    out.push(' ');
    s.clock.short(out, r.int(Col::SubmitTime));
    out.push('\n');
}

/// `HHH:MM:SS.ss`.
pub fn push_hms(out: &mut String, secs: f64) {
    let hundredths = (secs * 100.0).round().max(0.0) as u64;
    let whole = hundredths / 100;
    let (h, m, sec) = (whole / 3600, whole / 60 % 60, whole % 60);
    let _ = write!(out, "{h:03}:{m:02}:{sec:02}.{:02}", hundredths % 100);
}

/// -W: the plain columns on one line, then usage, nothing of it padded or blank.
fn usage(out: &mut String, r: &JobRow, s: &Show) {
    common(out, r, s, true);
    s.clock.slashed(out, r.int(Col::SubmitTime));
    out.push(' ');
    s.cell(out, &r.text(Col::Project), 10);
    out.push(' ');
    push_hms(out, s.cpu(r, Col::CpuUsed));
    for c in [Col::MemKb, Col::SwapKb] {
        let _ = write!(out, " {:<6}", r.int(c) >> 10);
    }
    out.push(' ');
    let pids = r.list(Col::Pids);
    for (i, pid) in pids.iter().enumerate() {
        let _ = write!(out, "{}{}", if i > 0 { "," } else { "" }, pid.int().unwrap_or(0));
    }
    out.push_str(if pids.is_empty() { "- " } else { " " });
    for c in [Col::StartTime, Col::EndTime] {
        match r.int(c) {
            0 => out.push('-'),
            t => s.clock.slashed(out, t),
        }
        out.push(' ');
    }
    let used: i64 = shown_hosts(r).map(|(_, n)| n).sum();
    let _ = writeln!(out, "{}", if used > 0 { used } else { r.int(Col::MinSlots) });
}

fn array(out: &mut String, r: &JobRow, s: &Show) {
    let id = s.id_width.max(10);
    let _ = write!(out, "{:<id$} ", r.int(Col::Job));
    s.tail_cell(out, &r.text(Col::GivenName), 11);
    out.push(' ');
    s.cell(out, &r.text(Col::User), 7);
    let counters = r.list(Col::Counters);
    for (i, width) in [5, 4, 4, 4, 4, 5, 5, 5].into_iter().enumerate() {
        let n = counters.get(i).and_then(|c| c.int()).unwrap_or(0);
        let _ = write!(out, " {n:>width$}");
    }
    out.push('\n');
}

/// -sum: slots by state.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum {
    run: i64,
    ssusp: i64,
    ususp: i64,
    unknown: i64,
    pend: i64,
    psusp: i64,
}

impl Sum {
    pub const COLS: [Col; 5] = [Col::Job, Col::Idx, Col::Stat, Col::ExecHosts, Col::MinSlots];

    pub fn add(&mut self, r: &JobRow) {
        let held: i64 = r.hosts(Col::ExecHosts).map(|(_, n)| n).sum();
        let slots = if held > 0 { held } else { r.int(Col::MinSlots).max(1) };
        match r.state() {
            Some(JobState::Run) => self.run += slots,
            Some(JobState::Ssusp) => self.ssusp += slots,
            Some(JobState::Ususp) => self.ususp += slots,
            Some(JobState::Unkwn | JobState::Zombi) => self.unknown += slots,
            Some(JobState::Pend | JobState::Wait) => self.pend += slots,
            Some(JobState::Psusp) => self.psusp += slots,
            Some(JobState::Done | JobState::Exit) | None => {}
        }
    }

    pub fn lines(&self, out: &mut String, head: bool) {
        if head {
            out.push_str(
                "RUN        SSUSP       USUSP      UNKNOWN    PEND       FWD_PEND  PSUSP\n",
            );
        }
        let _ = writeln!(
            out,
            "{:<10} {:<11} {:<10} {:<10} {:<10} {:<9} {}",
            self.run, self.ssusp, self.ususp, self.unknown, self.pend, 0, self.psusp
        );
    }
}

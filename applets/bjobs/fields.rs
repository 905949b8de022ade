//! The fields of bjobs -o: names, aliases, default widths (commands.md §bjobs), the columns each
//! is made of, and its value. A field that nothing can fill yet has no columns and is empty.

use super::reasons;
use super::show::{Show, is_finished, is_pending, push_hosts_joined};
use lsf::cli::columns::{Column, Fields};
use lsf::cli::long::{mem_words, size_words};
use lsf::cli::rows::{Cell, Row};
use lsf::cli::submission::cwd_words;
use lsf::model::job::opt;
use lsf::model::reason::{susp_text, term_text};
use lsf::proto::client::Col;
use std::fmt::Write;

/// Appends the value as it is; nothing where there is none.
type Value = fn(&mut String, &Row, &Show);

/// A field of -o.
pub struct Field {
    pub name: &'static str,
    /// Other names; empty none.
    pub alias: &'static [&'static str],
    /// Columns it takes when the format gives no width.
    pub width: usize,
    pub cols: &'static [Col],
    pub value: Value,
}

const fn f(
    name: &'static str,
    alias: &'static [&'static str],
    width: usize,
    cols: &'static [Col],
    value: Value,
) -> Field {
    Field { name, alias, width, cols, value }
}

/// A field that has no value today.
const fn empty(name: &'static str, alias: &'static [&'static str], width: usize) -> Field {
    Field { name, alias, width, cols: &[], value: |_, _, _| {} }
}

const EXTRA: &[Col] = &[Col::Extra];
const EFFICIENCY_COLS: &[Col] = &[Col::ExecHosts, Col::CpuUsed, Col::RunTime, Col::StartTime];
/// What time left, finish time and completion are made of.
pub const LEFT_COLS: &[Col] =
    &[Col::Stat, Col::EndTime, Col::Limits, Col::RunTime, Col::StartTime, Col::Extra];
/// What [`eligible`] looks at.
pub const PENDSTATE_COLS: &[Col] = &[Col::Stat, Col::PendReasons];

/// Every field, in the order of `all`.
pub const FIELDS: &[Field] = &[
    f("jobid", &["id"], 7, &[Col::Job], |o, r, _| int(o, r.int(Col::Job))),
    f("jobindex", &[], 8, &[Col::Idx], |o, r, _| int(o, r.int(Col::Idx))),
    f("stat", &[], 5, &[Col::Stat], |o, r, _| o.push_str(&r.text(Col::Stat))),
    f("user", &[], 7, &[Col::User], |o, r, _| o.push_str(&r.text(Col::User))),
    f("user_group", &["ugroup"], 15, &[Col::UserGroup], |o, r, _| {
        o.push_str(&r.text(Col::UserGroup))
    }),
    f("queue", &[], 10, &[Col::Queue], |o, r, _| o.push_str(&r.text(Col::Queue))),
    f("job_name", &["name"], 10, &[Col::Name], |o, r, _| o.push_str(&r.text(Col::Name))),
    f("job_description", &["description"], 17, &[Col::Description], |o, r, _| {
        o.push_str(&r.text(Col::Description))
    }),
    f("proj_name", &["proj", "project"], 11, &[Col::Project], |o, r, _| {
        o.push_str(&r.text(Col::Project))
    }),
    f("application", &["app"], 13, EXTRA, |o, r, _| kept(o, r, "app")),
    f("service_class", &["sla"], 13, EXTRA, |o, r, _| kept(o, r, "sla")),
    f("job_group", &["group"], 10, EXTRA, |o, r, _| kept(o, r, "g")),
    f("job_priority", &["priority"], 12, &[Col::Priority], |o, r, _| given(o, r, Col::Priority)),
    f("rsvid", &[], 40, EXTRA, |o, r, _| kept(o, r, "U")),
    f("esub", &[], 20, EXTRA, |o, r, _| kept(o, r, "a")),
    empty("kill_reason", &[], 50),
    f("suspend_reason", &[], 50, &[Col::Stat, Col::SuspReason], suspend_reason),
    empty("resume_reason", &[], 50),
    empty("kill_issue_host", &[], 50),
    empty("suspend_issue_host", &[], 50),
    empty("resume_issue_host", &[], 50),
    f("dependency", &[], 15, &[Col::Depend], |o, r, _| o.push_str(&r.text(Col::Depend))),
    f("pend_reason", &[], 11, &[Col::PendReasons], |o, r, _| reasons::joined(o, r)),
    empty("charged_saap", &["saap"], 50),
    f("command", &["cmd"], 15, &[Col::Command], |o, r, _| o.push_str(&r.text(Col::Command))),
    f("pre_exec_command", &["pre_cmd"], 16, &[Col::PreExec], |o, r, _| {
        o.push_str(&r.text(Col::PreExec))
    }),
    f("post_exec_command", &["post_cmd"], 17, &[Col::PostExec], |o, r, _| {
        o.push_str(&r.text(Col::PostExec))
    }),
    f("resize_notification_command", &["resize_cmd"], 27, EXTRA, |o, r, _| kept(o, r, "rnc")),
    f("pids", &[], 20, &[Col::Pids], pids),
    f("exit_code", &[], 10, &[Col::ExitCode], |o, r, _| known(o, r, Col::ExitCode)),
    f("exit_reason", &[], 50, &[Col::Stat, Col::ExitInfo], exit_reason),
    empty("interactive", &[], 11),
    f("from_host", &[], 11, &[Col::FromHost], |o, r, _| o.push_str(&r.text(Col::FromHost))),
    f("first_host", &[], 11, &[Col::ExecHosts], |o, r, _| {
        if let Some((h, _)) = r.hosts(Col::ExecHosts).next() {
            o.push_str(&h);
        }
    }),
    f("exec_host", &[], 11, &[Col::ExecHosts], |o, r, _| push_hosts_joined(o, r, ':')),
    f("nexec_host", &[], 10, &[Col::ExecHosts], |o, r, _| {
        positive(o, r.hosts(Col::ExecHosts).count() as i64)
    }),
    f("ask_hosts", &[], 30, &[Col::AskedHosts], ask_hosts),
    f("alloc_slot", &[], 20, &[Col::ExecHosts], |o, r, _| push_hosts_joined(o, r, ':')),
    f("nalloc_slot", &[], 10, &[Col::ExecHosts], |o, r, _| positive(o, slots_held(r))),
    f("host_file", &[], 10, EXTRA, |o, r, _| kept(o, r, "hostfile")),
    f("exclusive", &[], 13, &[Col::Options], |o, r, _| {
        o.push(if r.int(Col::Options) as u32 & opt::EXCLUSIVE != 0 { 'Y' } else { 'N' })
    }),
    f("nreq_slot", &[], 10, &[Col::MinSlots], |o, r, _| int(o, r.int(Col::MinSlots).max(1))),
    f("submit_time", &[], 15, &[Col::SubmitTime], |o, r, s| time(o, r, s, Col::SubmitTime)),
    f("start_time", &[], 15, &[Col::StartTime], |o, r, s| time(o, r, s, Col::StartTime)),
    empty("estimated_start_time", &["estart_time"], 20),
    f("specified_start_time", &["sstart_time"], 20, &[Col::BeginTime], |o, r, s| {
        time(o, r, s, Col::BeginTime)
    }),
    f("specified_terminate_time", &["sterminate_time"], 24, &[Col::TermTime], |o, r, s| {
        time(o, r, s, Col::TermTime)
    }),
    f("time_left", &[], 11, LEFT_COLS, time_left),
    f("finish_time", &[], 16, LEFT_COLS, finish_time),
    f("estimated_run_time", &["ertime"], 20, EXTRA, |o, r, _| seconds(o, estimate(r))),
    f("ru_utime", &[], 12, &[Col::Utime], |o, r, s| cpu_seconds(o, r, s, Col::Utime)),
    f("ru_stime", &[], 12, &[Col::Stime], |o, r, s| cpu_seconds(o, r, s, Col::Stime)),
    f("%complete", &[], 11, LEFT_COLS, complete),
    f("warning_action", &["warn_act"], 15, EXTRA, |o, r, _| kept(o, r, "wa")),
    f("action_warning_time", &["warn_time"], 19, EXTRA, |o, r, _| minutes(o, r, "wt")),
    f("pend_time", &[], 12, &[Col::PendTime], |o, r, _| known(o, r, Col::PendTime)),
    empty("ependtime", &[], 12),
    empty("ipendtime", &[], 12),
    f("pendstate", &[], 9, PENDSTATE_COLS, pendstate),
    empty("estimated_sim_start_time", &["esstart_time"], 24),
    empty("effective_plimit", &[], 18),
    empty("plimit_remain", &[], 15),
    empty("effective_eplimit", &[], 19),
    empty("eplimit_remain", &[], 16),
    f("cpu_used", &[], 10, &[Col::CpuUsed, Col::StartTime], |o, r, s| {
        if r.int(Col::StartTime) > 0 {
            let _ = write!(o, "{:.1} second(s)", s.cpu(r, Col::CpuUsed));
        }
    }),
    f("run_time", &[], 15, &[Col::RunTime, Col::StartTime], |o, r, _| {
        let _ = write!(o, "{} second(s)", r.int(Col::RunTime));
    }),
    f("idle_factor", &[], 11, &[Col::CpuUsed, Col::RunTime, Col::StartTime], |o, r, _| {
        if r.int(Col::StartTime) > 0 && r.int(Col::RunTime) > 0 {
            let _ = write!(o, "{:.2}", r.num(Col::CpuUsed) / r.num(Col::RunTime));
        }
    }),
    f("exception_status", &["except_stat"], 16, &[Col::Exceptions], |o, r, _| {
        o.push_str(&r.text(Col::Exceptions))
    }),
    f("slots", &[], 5, &[Col::ExecHosts, Col::MinSlots], |o, r, _| match slots_held(r) {
        0 => int(o, r.int(Col::MinSlots).max(1)),
        n => int(o, n),
    }),
    f("mem", &[], 10, &[Col::MemKb], |o, r, _| memory(o, r, Col::MemKb)),
    f("max_mem", &[], 10, &[Col::MaxMemKb], |o, r, _| memory(o, r, Col::MaxMemKb)),
    f("avg_mem", &[], 10, &[Col::AvgMemKb], |o, r, _| memory(o, r, Col::AvgMemKb)),
    f("memlimit", &[], 10, &[Col::Limits], |o, r, _| size_limit(o, r, "rss")),
    f("swap", &[], 10, &[Col::SwapKb], |o, r, _| memory(o, r, Col::SwapKb)),
    f("swaplimit", &[], 10, &[Col::Limits], |o, r, _| size_limit(o, r, "swap")),
    empty("gpu_num", &["gnum"], 10),
    empty("gpu_mode", &["gmode"], 20),
    empty("j_exclusive", &["j_excl"], 15),
    empty("gpu_alloc", &["galloc"], 30),
    f("nthreads", &[], 10, &[Col::NThreads], |o, r, _| given(o, r, Col::NThreads)),
    empty("hrusage", &[], 50),
    f("min_req_proc", &[], 12, &[Col::MinSlots], |o, r, _| int(o, r.int(Col::MinSlots).max(1))),
    f("max_req_proc", &[], 12, &[Col::MaxSlots], |o, r, _| int(o, r.int(Col::MaxSlots).max(1))),
    f("effective_resreq", &["eresreq"], 17, &[Col::EffectiveResReq], |o, r, _| {
        o.push_str(&r.text(Col::EffectiveResReq))
    }),
    f("combined_resreq", &["cresreq"], 20, &[Col::CombinedResReq], |o, r, _| {
        o.push_str(&r.text(Col::CombinedResReq))
    }),
    f("network_req", &[], 15, EXTRA, |o, r, _| kept(o, r, "network")),
    f("filelimit", &[], 10, &[Col::Limits], |o, r, _| size_limit(o, r, "fsize")),
    f("corelimit", &[], 10, &[Col::Limits], |o, r, _| size_limit(o, r, "core")),
    f("stacklimit", &[], 10, &[Col::Limits], |o, r, _| size_limit(o, r, "stack")),
    f("processlimit", &[], 12, &[Col::Limits], |o, r, _| {
        if let Some(n) = limit(r, "process") {
            int(o, n);
        }
    }),
    f("runtimelimit", &[], 12, &[Col::Limits, Col::LimitSpec], run_limit),
    f("plimit", &[], 10, EXTRA, |o, r, _| minutes(o, r, "ptl")),
    f("eplimit", &[], 10, EXTRA, |o, r, _| minutes(o, r, "eptl")),
    f("input_file", &[], 10, &[Col::InFile], |o, r, _| o.push_str(&r.text(Col::InFile))),
    f("output_file", &[], 11, &[Col::OutFile], |o, r, _| o.push_str(&r.text(Col::OutFile))),
    f("error_file", &[], 10, &[Col::ErrFile], |o, r, _| o.push_str(&r.text(Col::ErrFile))),
    f("output_dir", &[], 15, EXTRA, |o, r, _| kept(o, r, "outdir")),
    f("sub_cwd", &[], 10, &[Col::Cwd, Col::Home], |o, r, _| {
        o.push_str(&cwd_words(&r.text(Col::Cwd), &r.text(Col::Home)))
    }),
    f("exec_home", &[], 10, &[Col::ExecHome], |o, r, _| o.push_str(&r.text(Col::ExecHome))),
    f("exec_cwd", &[], 10, &[Col::ExecCwd], |o, r, _| o.push_str(&r.text(Col::ExecCwd))),
    f("licproject", &[], 20, EXTRA, |o, r, _| kept(o, r, "Lp")),
    empty("forward_cluster", &["fwd_cluster"], 15),
    empty("forward_time", &["fwd_time"], 15),
    empty("srcjobid", &[], 8),
    empty("dstjobid", &[], 8),
    empty("source_cluster", &["srcluster"], 15),
    empty("energy", &[], 10),
    empty("gpfsio", &[], 10),
    empty("cpu_peak", &[], 10),
    empty("cpu_peak_efficiency", &["cpu_efficiency"], 10),
    f("average_cpu_efficiency", &[], 10, EFFICIENCY_COLS, |o, r, _| {
        let (slots, ran) = (slots_held(r), r.num(Col::RunTime));
        if slots > 0 && ran > 0.0 {
            let _ = write!(o, "{:.2}%", r.num(Col::CpuUsed) * 100.0 / ran / slots as f64);
        }
    }),
    f("mem_efficiency", &[], 10, MEM_SHARE_COLS, |o, r, _| {
        if let Some(share) = super::long::mem_share(r) {
            let _ = write!(o, "{share:.2}%");
        }
    }),
    empty("cpu_peak_reached_duration", &[], 10),
];

/// What [`super::long::mem_share`] is made of.
const MEM_SHARE_COLS: &[Col] = &[Col::MaxMemKb, Col::EffectiveResReq, Col::CombinedResReq];

/// [`FIELDS`] as the formats know it.
pub struct BjobsFields;

impl Fields for BjobsFields {
    fn count(&self) -> usize {
        FIELDS.len()
    }
    fn name(&self, field: usize) -> &str {
        FIELDS.get(field).map_or("", |f| f.name)
    }
    fn aliases(&self, field: usize) -> &[&str] {
        FIELDS.get(field).map_or(&[], |f| f.alias)
    }
    fn width(&self, field: usize) -> usize {
        FIELDS.get(field).map_or(1, |f| f.width)
    }
}

impl BjobsFields {
    /// The columns that a field is made of.
    pub fn cols(field: usize) -> &'static [Col] {
        FIELDS.get(field).map_or(&[], |f| f.cols)
    }

    /// Appends the value of a column of a format.
    pub fn value(out: &mut String, c: &Column, r: &Row, s: &Show) {
        let Some(f) = FIELDS.get(c.field) else { return };
        match (c.unit, kilobytes(f.name, r)) {
            (Some(unit), Some(kb)) if kb > 0 => in_unit(out, kb, unit),
            _ if s.hms => match duration(f.name, r, s) {
                Some(secs) => {
                    let _ =
                        write!(out, "{:02}:{:02}:{:02}", secs / 3600, secs / 60 % 60, secs % 60);
                }
                None => (f.value)(out, r, s),
            },
            _ => (f.value)(out, r, s),
        }
    }
}

/// The seconds that a field shows which -hms concerns.
fn duration(name: &str, r: &Row, s: &Show) -> Option<i64> {
    let started = r.int(Col::StartTime) > 0;
    match name {
        "cpu_used" if started => Some(s.cpu(r, Col::CpuUsed).round() as i64),
        "ru_utime" => Some(s.cpu(r, Col::Utime).round() as i64),
        "ru_stime" => Some(s.cpu(r, Col::Stime).round() as i64),
        "run_time" => Some(r.int(Col::RunTime)),
        "pend_time" => r.cell(Col::PendTime).int(),
        "runtimelimit" => limit(r, "run"),
        "estimated_run_time" => estimate(r),
        "plimit" => kept_minutes(r, "ptl"),
        "eplimit" => kept_minutes(r, "eptl"),
        _ => None,
    }
}

/// What is kept of an option.
fn kept(o: &mut String, r: &Row, option: &str) {
    if let Some(text) = r.cell(Col::Extra).key(option) {
        o.push_str(&text.text());
    }
}

/// The seconds of a time that is kept as it was given.
fn kept_minutes(r: &Row, option: &str) -> Option<i64> {
    let text = r.cell(Col::Extra).key(option)?.text();
    i64::try_from(lsf::conf::units::time_limit(&text)?.seconds).ok()
}

/// The run time that was estimated at submission.
fn estimate(r: &Row) -> Option<i64> {
    kept_minutes(r, "We")
}

fn seconds(o: &mut String, secs: Option<i64>) {
    if let Some(secs) = secs {
        let _ = write!(o, "{secs} second(s)");
    }
}

fn minutes(o: &mut String, r: &Row, option: &str) {
    if let Some(secs) = kept_minutes(r, option) {
        let _ = write!(o, "{:.1}", secs as f64 / 60.0);
    }
}

/// The size that a field shows, KB; `None` where it shows no size.
fn kilobytes(name: &str, r: &Row) -> Option<i64> {
    match name {
        "mem" => r.cell(Col::MemKb).int(),
        "max_mem" => r.cell(Col::MaxMemKb).int(),
        "avg_mem" => r.cell(Col::AvgMemKb).int(),
        "swap" => r.cell(Col::SwapKb).int(),
        "memlimit" => limit(r, "rss"),
        "swaplimit" => limit(r, "swap"),
        "filelimit" => limit(r, "fsize"),
        "corelimit" => limit(r, "core"),
        "stacklimit" => limit(r, "stack"),
        _ => None,
    }
}

/// `3.5G`, `12M`: a size in the unit asked for; `S` takes the unit that fits.
fn in_unit(out: &mut String, kb: i64, unit: char) {
    const UNITS: &str = "KMGTPEZ";
    let fits = |at: usize| kb >> (10 * (at + 1)) > 0 && at < 3;
    let at = match UNITS.find(unit) {
        Some(at) => at,
        None => (1..).find(|&at| !fits(at)).unwrap_or(1),
    };
    let v = kb as f64 / 1024f64.powi(at as i32);
    let text = format!("{v:.1}");
    out.push_str(text.strip_suffix(".0").unwrap_or(&text));
    out.extend(UNITS.chars().nth(at));
}

fn int(o: &mut String, n: i64) {
    let _ = write!(o, "{n}");
}

fn positive(o: &mut String, n: i64) {
    if n > 0 {
        int(o, n);
    }
}

/// A count that is not known while 0.
fn given(o: &mut String, r: &Row, c: Col) {
    positive(o, r.int(c));
}

/// A number that may be 0, unless the value is null.
fn known(o: &mut String, r: &Row, c: Col) {
    if let Some(n) = r.cell(c).int() {
        int(o, n);
    }
}

fn time(o: &mut String, r: &Row, s: &Show, c: Col) {
    if r.int(c) > 0 {
        s.clock.short(o, r.int(c));
    }
}

fn cpu_seconds(o: &mut String, r: &Row, s: &Show, c: Col) {
    if r.cell(c).num().is_some() {
        let _ = write!(o, "{:.2}", s.cpu(r, c));
    }
}

fn memory(o: &mut String, r: &Row, c: Col) {
    let kb = r.int(c);
    if kb > 0 {
        mem_words(o, kb as u64);
    }
}

fn slots_held(r: &Row) -> i64 {
    r.hosts(Col::ExecHosts).map(|(_, n)| n.max(1)).sum()
}

fn limit(r: &Row, key: &str) -> Option<i64> {
    r.cell(Col::Limits).key(key).and_then(Cell::int)
}

fn size_limit(o: &mut String, r: &Row, key: &str) {
    if let Some(kb) = limit(r, key).and_then(|n| u64::try_from(n).ok()) {
        o.push_str(&size_words(kb));
    }
}

/// `60.0`, `60.0/hosta`.
fn run_limit(o: &mut String, r: &Row, _: &Show) {
    if let Some(secs) = limit(r, "run") {
        let _ = write!(o, "{:.1}", secs as f64 / 60.0);
        let of = r.text(Col::LimitSpec);
        if !of.is_empty() {
            let _ = write!(o, "/{of}");
        }
    }
}

fn pids(o: &mut String, r: &Row, _: &Show) {
    for (i, p) in r.list(Col::Pids).iter().enumerate() {
        let _ = write!(o, "{}{}", if i > 0 { "," } else { "" }, p.int().unwrap_or(0));
    }
}

fn ask_hosts(o: &mut String, r: &Row, _: &Show) {
    for (i, h) in r.list(Col::AskedHosts).iter().enumerate() {
        if i > 0 {
            o.push(' ');
        }
        o.push_str(&h.text());
    }
}

fn suspend_reason(o: &mut String, r: &Row, _: &Show) {
    if matches!(&*r.text(Col::Stat), "SSUSP" | "USUSP") {
        o.push_str(susp_text(r.int(Col::SuspReason) as u32));
    }
}

fn exit_reason(o: &mut String, r: &Row, _: &Show) {
    if r.text(Col::Stat) == "EXIT" && r.int(Col::ExitInfo) > 0 {
        let (name, text) = term_text(r.int(Col::ExitInfo) as u32);
        let _ = write!(o, "{name}: {text}");
    }
}

/// How long a started job will still run, and by what that is known: `E` its estimate, `L` its
/// run limit, `X` neither any more, for it has run longer.
fn left(r: &Row) -> Option<(i64, i64, char)> {
    let stat = r.text(Col::Stat);
    if is_pending(&stat) || is_finished(&stat) || r.int(Col::StartTime) == 0 {
        return None;
    }
    let (whole, by) = match estimate(r) {
        Some(secs) => (secs, 'E'),
        None => (limit(r, "run")?, 'L'),
    };
    let rest = whole - r.int(Col::RunTime);
    Some((rest.max(0), whole, if rest < 0 { 'X' } else { by }))
}

/// `hours:minutes L`.
pub fn time_left(o: &mut String, r: &Row, _: &Show) {
    if let Some((left, _, by)) = left(r) {
        let _ = write!(o, "{}:{} {by}", left / 3600, left / 60 % 60);
    }
}

/// The end, or with ` L` when the run limit will end a running job.
pub fn finish_time(o: &mut String, r: &Row, s: &Show) {
    if r.int(Col::EndTime) > 0 {
        s.clock.short(o, r.int(Col::EndTime));
    } else if let Some((left, _, by)) = left(r) {
        s.clock.short(o, s.now + left);
        let _ = write!(o, " {by}");
    }
}

pub fn complete(o: &mut String, r: &Row, _: &Show) {
    if let Some((_, whole, by)) = left(r).filter(|l| l.1 > 0) {
        let _ = write!(o, "{:.2}% {by}", r.num(Col::RunTime) * 100.0 / whole as f64);
    }
}

/// Could a waiting job be dispatched if there were room? Not while it is held, before its time,
/// waiting for others or in a closed queue.
pub fn eligible(r: &Row) -> bool {
    let waits = |p: &Cell| {
        let code = p.list().first().and_then(Cell::int);
        matches!(code, Some(2 | 3 | 4 | 301 | 302 | 9001))
    };
    r.text(Col::Stat) == "PEND" && !r.list(Col::PendReasons).iter().any(waits)
}

fn pendstate(o: &mut String, r: &Row, _: &Show) {
    o.push_str(match (is_pending(&r.text(Col::Stat)), eligible(r)) {
        (false, _) => "NOTPEND",
        (_, true) => "EPEND",
        (_, false) => "IPEND",
    });
}

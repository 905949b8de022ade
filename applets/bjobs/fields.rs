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
    empty("application", &["app"], 13),
    empty("service_class", &["sla"], 13),
    empty("job_group", &["group"], 10),
    f("job_priority", &["priority"], 12, &[Col::Priority], |o, r, _| given(o, r, Col::Priority)),
    empty("rsvid", &[], 40),
    empty("esub", &[], 20),
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
    empty("resize_notification_command", &["resize_cmd"], 27),
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
    empty("host_file", &[], 10),
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
    f("time_left", &[], 11, &[Col::Stat, Col::Limits, Col::RunTime, Col::StartTime], time_left),
    f(
        "finish_time",
        &[],
        16,
        &[Col::Stat, Col::EndTime, Col::Limits, Col::RunTime, Col::StartTime],
        finish_time,
    ),
    empty("estimated_run_time", &["ertime"], 20),
    f("ru_utime", &[], 12, &[Col::Utime], |o, r, _| cpu_seconds(o, r, Col::Utime)),
    f("ru_stime", &[], 12, &[Col::Stime], |o, r, _| cpu_seconds(o, r, Col::Stime)),
    f("%complete", &[], 11, &[Col::Stat, Col::Limits, Col::RunTime, Col::StartTime], complete),
    empty("warning_action", &["warn_act"], 15),
    empty("action_warning_time", &["warn_time"], 19),
    f("pend_time", &[], 12, &[Col::PendTime], |o, r, _| known(o, r, Col::PendTime)),
    empty("ependtime", &[], 12),
    empty("ipendtime", &[], 12),
    f("pendstate", &[], 9, &[Col::Stat, Col::PendReasons], pendstate),
    empty("estimated_sim_start_time", &["esstart_time"], 24),
    empty("effective_plimit", &[], 18),
    empty("plimit_remain", &[], 15),
    empty("effective_eplimit", &[], 19),
    empty("eplimit_remain", &[], 16),
    f("cpu_used", &[], 10, &[Col::CpuUsed, Col::StartTime], |o, r, _| {
        if r.int(Col::StartTime) > 0 {
            let _ = write!(o, "{:.1} second(s)", r.num(Col::CpuUsed));
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
    empty("exception_status", &["except_stat"], 16),
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
    empty("network_req", &[], 15),
    f("filelimit", &[], 10, &[Col::Limits], |o, r, _| size_limit(o, r, "fsize")),
    f("corelimit", &[], 10, &[Col::Limits], |o, r, _| size_limit(o, r, "core")),
    f("stacklimit", &[], 10, &[Col::Limits], |o, r, _| size_limit(o, r, "stack")),
    f("processlimit", &[], 12, &[Col::Limits], |o, r, _| {
        if let Some(n) = limit(r, "process") {
            int(o, n);
        }
    }),
    f("runtimelimit", &[], 12, &[Col::Limits, Col::LimitSpec], run_limit),
    empty("plimit", &[], 10),
    empty("eplimit", &[], 10),
    f("input_file", &[], 10, &[Col::InFile], |o, r, _| o.push_str(&r.text(Col::InFile))),
    f("output_file", &[], 11, &[Col::OutFile], |o, r, _| o.push_str(&r.text(Col::OutFile))),
    f("error_file", &[], 10, &[Col::ErrFile], |o, r, _| o.push_str(&r.text(Col::ErrFile))),
    empty("output_dir", &[], 15),
    f("sub_cwd", &[], 10, &[Col::Cwd, Col::Home], |o, r, _| {
        o.push_str(&cwd_words(&r.text(Col::Cwd), &r.text(Col::Home)))
    }),
    f("exec_home", &[], 10, &[Col::ExecHome], |o, r, _| o.push_str(&r.text(Col::ExecHome))),
    f("exec_cwd", &[], 10, &[Col::ExecCwd], |o, r, _| o.push_str(&r.text(Col::ExecCwd))),
    empty("licproject", &[], 20),
    empty("forward_cluster", &["fwd_cluster"], 15),
    empty("forward_time", &["fwd_time"], 15),
    empty("srcjobid", &[], 8),
    empty("dstjobid", &[], 8),
    empty("source_cluster", &["srcluster"], 15),
    empty("energy", &[], 10),
    empty("gpfsio", &[], 10),
    empty("cpu_peak", &[], 10),
    empty("cpu_peak_efficiency", &["cpu_efficiency"], 10),
    empty("average_cpu_efficiency", &[], 10),
    empty("mem_efficiency", &[], 10),
    empty("cpu_peak_reached_duration", &[], 10),
];

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
            _ => (f.value)(out, r, s),
        }
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

fn cpu_seconds(o: &mut String, r: &Row, c: Col) {
    if let Some(n) = r.cell(c).num() {
        let _ = write!(o, "{n:.2}");
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

/// Seconds of the run limit that are left, of a started job that has one.
fn secs_left(r: &Row) -> Option<i64> {
    let stat = r.text(Col::Stat);
    if is_pending(&stat) || is_finished(&stat) || r.int(Col::StartTime) == 0 {
        return None;
    }
    Some((limit(r, "run")? - r.int(Col::RunTime)).max(0))
}

/// `hours:minutes L`: by the run limit.
fn time_left(o: &mut String, r: &Row, _: &Show) {
    if let Some(left) = secs_left(r) {
        let _ = write!(o, "{}:{} L", left / 3600, left / 60 % 60);
    }
}

/// The end, or with ` L` when the run limit will end a running job.
fn finish_time(o: &mut String, r: &Row, s: &Show) {
    if r.int(Col::EndTime) > 0 {
        s.clock.short(o, r.int(Col::EndTime));
    } else if let Some(left) = secs_left(r) {
        s.clock.short(o, s.now + left);
        o.push_str(" L");
    }
}

fn complete(o: &mut String, r: &Row, _: &Show) {
    if let (Some(_), Some(limit)) = (secs_left(r), limit(r, "run"))
        && limit > 0
    {
        let _ = write!(o, "{:.2}% L", r.num(Col::RunTime) * 100.0 / limit as f64);
    }
}

/// Ineligible while held, before its time, waiting for others or in a closed queue.
fn pendstate(o: &mut String, r: &Row, _: &Show) {
    let stat = r.text(Col::Stat);
    if !is_pending(&stat) {
        return o.push_str("NOTPEND");
    }
    let held = stat == "PSUSP"
        || r.list(Col::PendReasons).iter().any(|p| {
            matches!(p.list().first().and_then(Cell::int), Some(2 | 3 | 4 | 301 | 302 | 9001))
        });
    o.push_str(if held { "IPEND" } else { "EPEND" });
}

//! bjobs -l and -UF: everything about a job, in the sentences of commands.md §bjobs.
//!
//! Invariant: what users typed is shown without terminal controls; a job whose end is unknown
//! never shows an exit code.

use super::reasons;
use super::show::{Show, has_hosts, host_words, is_finished, is_pending, push_hosts_joined};
use lsf::cli::long::{LimitBlock, mem_words, paragraph, push_clean, thresholds};
use lsf::cli::rows::{Cell, Row};
use lsf::model::job::{opt, opt2};
use lsf::model::reason::term_text;
use lsf::proto::client::Col;
use std::fmt::Write;

/// The columns that a long listing needs.
pub const COLS: &[Col] = &[
    Col::Job,
    Col::Idx,
    Col::Stat,
    Col::User,
    Col::UserGroup,
    Col::Queue,
    Col::Name,
    Col::GivenName,
    Col::Project,
    Col::Description,
    Col::Command,
    Col::FromHost,
    Col::ExecHosts,
    Col::MinSlots,
    Col::MaxSlots,
    Col::SubmitTime,
    Col::StartTime,
    Col::EndTime,
    Col::BeginTime,
    Col::TermTime,
    Col::WaitStatus,
    Col::ExitInfo,
    Col::PendReasons,
    Col::SuspReason,
    Col::Pgid,
    Col::Pids,
    Col::CpuUsed,
    Col::MemKb,
    Col::MaxMemKb,
    Col::AvgMemKb,
    Col::SwapKb,
    Col::NThreads,
    Col::ResReq,
    Col::CombinedResReq,
    Col::EffectiveResReq,
    Col::AskedHosts,
    Col::Depend,
    Col::InFile,
    Col::OutFile,
    Col::ErrFile,
    Col::Cwd,
    Col::Home,
    Col::ExecCwd,
    Col::ExecHome,
    Col::Limits,
    Col::LimitSpec,
    Col::Options,
    Col::Options2,
    Col::MailUser,
    Col::LoginShell,
    Col::PreExec,
    Col::PostExec,
    Col::Priority,
    Col::Thresholds,
    Col::UsageTime,
];

/// One record, from its leading blank line to the line before the rule.
pub fn job(out: &mut String, r: &Row, s: &Show) {
    let wrap = !s.unwrapped;
    out.push('\n');
    let mut text = String::with_capacity(512);
    head(&mut text, r);
    paragraph(out, &text, wrap);
    text.clear();
    submitted(&mut text, r, s);
    paragraph(out, &text, wrap);
    limits(out, r);
    if has_hosts(r) && r.int(Col::StartTime) > 0 {
        text.clear();
        started(&mut text, r, s);
        paragraph(out, &text, wrap);
    }
    let stat = r.text(Col::Stat);
    if is_finished(&stat) {
        ended(out, r, s, &stat);
    } else if !is_pending(&stat) && r.int(Col::UsageTime) > 0 {
        usage(out, r, s);
    }
    memory(out, r);
    why(out, r, &stat);
    out.push_str("\n SCHEDULING PARAMETERS:\n");
    thresholds(out, &threshold_pairs(r));
    details(out, r, wrap);
}

/// -A -l: the head of an array with its counters.
pub fn array(out: &mut String, r: &Row, s: &Show) {
    out.push('\n');
    let mut text = String::new();
    let _ = write!(text, "Job <{}>", r.int(Col::Job));
    push(&mut text, ", Job Name ", &r.text(Col::GivenName));
    push(&mut text, ", User ", &r.text(Col::User));
    paragraph(out, &text, !s.unwrapped);
    out.push_str("\n COUNTERS:\n NJOBS PEND DONE RUN EXIT SSUSP USUSP PSUSP\n");
    let counters = r.list(Col::Counters);
    for (i, width) in [6, 4, 4, 3, 4, 5, 5, 5].into_iter().enumerate() {
        let n = counters.get(i).and_then(Cell::int).unwrap_or(0);
        let _ = write!(out, "{}{n:>width$}", if i > 0 { " " } else { "" });
    }
    out.push('\n');
}

/// `label<value>`.
fn push(text: &mut String, label: &str, value: &str) {
    text.push_str(label);
    text.push('<');
    push_clean(text, value);
    text.push('>');
}

/// `label<value>` unless the value is empty.
fn push_given(text: &mut String, label: &str, value: &str) {
    if !value.is_empty() {
        push(text, label, value);
    }
}

fn head(t: &mut String, r: &Row) {
    let _ = write!(t, "Job <{}", r.int(Col::Job));
    match r.int(Col::Idx) {
        0 => t.push('>'),
        i => {
            let _ = write!(t, "[{i}]>");
        }
    }
    if !r.text(Col::GivenName).is_empty() {
        push(t, ", Job Name ", &r.text(Col::Name));
    }
    push(t, ", User ", &r.text(Col::User));
    push(t, ", Project ", &r.text(Col::Project));
    push_given(t, ", Mail ", &r.text(Col::MailUser));
    push_given(t, ", User Group ", &r.text(Col::UserGroup));
    push(t, ", Status ", &r.text(Col::Stat));
    push(t, ", Queue ", &r.text(Col::Queue));
    if r.int(Col::Priority) > 0 {
        let _ = write!(t, ", Job Priority <{}>", r.int(Col::Priority));
    }
    push(t, ", Command ", &r.text(Col::Command));
    push_given(t, ", Job Description ", &r.text(Col::Description));
}

/// The directory of submission as the user knows it: `$HOME/w` below the home directory.
pub fn cwd_words(cwd: &str, home: &str) -> String {
    let home = home.trim_end_matches('/');
    match cwd.strip_prefix(home) {
        Some(rest) if !home.is_empty() && (rest.is_empty() || rest.starts_with('/')) => {
            format!("$HOME{rest}")
        }
        _ => cwd.to_string(),
    }
}

fn stamp(t: &mut String, s: &Show, secs: i64) {
    s.clock.long(t, secs);
    t.push_str(": ");
}

fn submitted(t: &mut String, r: &Row, s: &Show) {
    let options2 = r.int(Col::Options2) as u32;
    stamp(t, s, r.int(Col::SubmitTime));
    push(t, "Submitted from host ", &r.text(Col::FromHost));
    if options2 & opt2::HOLD != 0 {
        t.push_str(" with hold");
    }
    for (col, label) in [
        (Col::BeginTime, ", Specified Start Time <"),
        (Col::TermTime, ", Specified Termination Time <"),
    ] {
        if r.int(col) > 0 {
            t.push_str(label);
            s.clock.long(t, r.int(col));
            t.push('>');
        }
    }
    push(t, ", CWD ", &cwd_words(&r.text(Col::Cwd), &r.text(Col::Home)));
    files(t, r, options2);
    requirements(t, r, s);
    t.push(';');
}

fn files(t: &mut String, r: &Row, options2: u32) {
    push_given(t, ", Input File ", &r.text(Col::InFile));
    for (col, bit, plain, over) in [
        (Col::OutFile, opt2::OVERWRITE_OUT, ", Output File ", ", Output File (overwrite) "),
        (Col::ErrFile, opt2::OVERWRITE_ERR, ", Error File ", ", Error File (overwrite) "),
    ] {
        push_given(t, if options2 & bit != 0 { over } else { plain }, &r.text(col));
    }
}

fn requirements(t: &mut String, r: &Row, s: &Show) {
    let options = r.int(Col::Options) as u32;
    if options & opt::EXCLUSIVE != 0 {
        t.push_str(", Exclusive Execution");
    }
    t.push_str(match (options & opt::NOTIFY_BEGIN != 0, options & opt::NOTIFY_END != 0) {
        (true, true) => ", Notify when job begins/ends",
        (true, false) => ", Notify when job begins",
        (false, true) => ", Notify when job ends",
        (false, false) => "",
    });
    let (min, max) = (r.int(Col::MinSlots), r.int(Col::MaxSlots));
    let of = if s.hpc { "Task(s)" } else { "Processors Requested" };
    if max > min {
        let _ = write!(t, ", {min}-{max} {of}");
    } else if min > 1 {
        let _ = write!(t, ", {min} {of}");
    }
    push_given(t, ", Requested Resources ", &r.text(Col::ResReq));
    push_given(t, ", Login Shell ", &r.text(Col::LoginShell));
    push_given(t, ", Pre-execute Command ", &r.text(Col::PreExec));
    push_given(t, ", Post-execute Command ", &r.text(Col::PostExec));
    if options & opt::RERUNNABLE != 0 {
        t.push_str(", Re-runnable");
    }
    for (i, host) in r.list(Col::AskedHosts).iter().enumerate() {
        push(t, if i == 0 { ", Specified Hosts " } else { ", " }, &host.text());
    }
    push_given(t, ", Dependency Condition ", &r.text(Col::Depend));
}

/// The limits of a job, in the units of a block.
pub fn limit_block(r: &Row) -> LimitBlock {
    let l = r.cell(Col::Limits);
    let get = |key| l.key(key).and_then(Cell::int).and_then(|n| u64::try_from(n).ok());
    LimitBlock {
        cpu: get("cpu"),
        run: get("run"),
        slots: None,
        file: get("fsize"),
        data: get("data"),
        stack: get("stack"),
        core: get("core"),
        mem: get("rss"),
        swap: get("swap"),
        process: get("process"),
        thread: get("thread"),
        host: r.text(Col::LimitSpec).into_owned(),
    }
}

fn limits(out: &mut String, r: &Row) {
    let block = limit_block(r);
    if !block.is_empty() {
        out.push('\n');
        block.push(out);
    }
}

fn started(t: &mut String, r: &Row, s: &Show) {
    stamp(t, s, r.int(Col::StartTime));
    let idx = r.int(Col::Idx);
    if idx > 0 {
        let _ = write!(t, "[{idx}] started on ");
    } else {
        t.push_str("Started on ");
    }
    let slots: i64 = r.hosts(Col::ExecHosts).map(|(_, n)| n.max(1)).sum();
    if s.hpc {
        t.truncate(t.len() - "on ".len());
        let _ = write!(t, "{slots} Task(s) on Host(s) ");
        push_all_hosts(t, r);
        let _ = write!(t, ", Allocated {slots} Slot(s) on Host(s) ");
        push_all_hosts(t, r);
    } else {
        if slots > 1 {
            let _ = write!(t, "{slots} Hosts/Processors ");
        }
        for (i, host) in host_words(r, s.short_hosts).iter().enumerate() {
            push(t, if i > 0 { " " } else { "" }, host);
        }
    }
    push_given(t, ", Execution Home ", &r.text(Col::ExecHome));
    push_given(t, ", Execution CWD ", &r.text(Col::ExecCwd));
    t.push(';');
}

/// `<4*hosta> <hostb>`.
fn push_all_hosts(t: &mut String, r: &Row) {
    let mut joined = String::new();
    push_hosts_joined(&mut joined, r, '\n');
    for (i, host) in joined.lines().enumerate() {
        push(t, if i > 0 { " " } else { "" }, host);
    }
}

fn ended(out: &mut String, r: &Row, s: &Show, stat: &str) {
    let wrap = !s.unwrapped;
    let mut t = String::new();
    stamp(&mut t, s, r.int(Col::EndTime));
    let status = r.cell(Col::WaitStatus).int();
    match status {
        _ if stat == "DONE" => t.push_str("Done successfully."),
        Some(w) if w & 0x7f != 0 => {
            let _ = write!(t, "Exited by signal {}.", w & 0x7f);
        }
        Some(w) if has_hosts(r) => {
            let _ = write!(t, "Exited with exit code {}.", (w >> 8) & 0xff);
        }
        _ => t.push_str("Exited."),
    }
    if has_hosts(r) && (status.is_some() || r.num(Col::CpuUsed) > 0.0) {
        let _ = write!(t, " The CPU time used is {:.1} seconds.", r.num(Col::CpuUsed));
    } else {
        t.push_str(" The CPU time used is unknown.");
    }
    paragraph(out, &t, wrap);
    let info = r.int(Col::ExitInfo);
    if info > 0 {
        t.clear();
        stamp(&mut t, s, r.int(Col::EndTime));
        let (name, text) = term_text(info as u32);
        let word = if stat == "DONE" { "done" } else { "exit" };
        let _ = write!(t, "Completed <{word}>; {name}: {text}.");
        paragraph(out, &t, wrap);
    }
}

/// What a running job uses: one line a part, or one line in all with -UF.
fn usage(out: &mut String, r: &Row, s: &Show) {
    let mut parts = Vec::new();
    if r.num(Col::CpuUsed) >= 1.0 {
        parts.push(format!("The CPU time used is {:.0} seconds.", r.num(Col::CpuUsed)));
    }
    let mut mem = String::from("MEM: ");
    mem_words(&mut mem, r.int(Col::MemKb).max(0) as u64);
    mem.push_str(";  SWAP: ");
    mem_words(&mut mem, r.int(Col::SwapKb).max(0) as u64);
    if r.int(Col::NThreads) > 0 {
        let _ = write!(mem, ";  NTHREAD: {}", r.int(Col::NThreads));
    }
    parts.push(mem);
    if r.int(Col::Pgid) > 0 {
        let mut ids = format!("PGID: {};  PIDs: ", r.int(Col::Pgid));
        for pid in r.list(Col::Pids) {
            let _ = write!(ids, "{} ", pid.int().unwrap_or(0));
        }
        parts.push(ids);
    }
    let mut t = String::new();
    stamp(&mut t, s, r.int(Col::UsageTime));
    t.push_str("Resource usage collected.");
    if s.unwrapped {
        for p in parts {
            let p = p.trim_end();
            let _ = write!(t, " {p}{}", if p.ends_with('.') { "" } else { ";" });
        }
        paragraph(out, &t, false);
        return;
    }
    paragraph(out, &t, true);
    for p in parts {
        t.clear();
        let _ = write!(t, "{:21}{p}", "");
        paragraph(out, &t, true);
    }
}

fn memory(out: &mut String, r: &Row) {
    let max = r.int(Col::MaxMemKb);
    if max <= 0 {
        return;
    }
    out.push_str("\n MEMORY USAGE:\n MAX MEM: ");
    mem_words(out, max as u64);
    out.push_str(";  AVG MEM: ");
    mem_words(out, r.int(Col::AvgMemKb).max(0) as u64);
    out.push('\n');
}

fn why(out: &mut String, r: &Row, stat: &str) {
    let from = out.len();
    if is_pending(stat) {
        out.push_str(" PENDING REASONS:\n");
    } else {
        out.push_str(" SUSPENDING REASONS:\n");
    }
    let head = out.len();
    reasons::push(out, r);
    if out.len() == head {
        out.truncate(from);
    }
}

/// (sched, stop) by built-in index.
fn threshold_pairs(r: &Row) -> Vec<(Option<f64>, Option<f64>)> {
    r.list(Col::Thresholds)
        .iter()
        .map(|t| match t.list() {
            [.., sched, stop] => (sched.num(), stop.num()),
            _ => (None, None),
        })
        .collect()
}

fn details(out: &mut String, r: &Row, wrap: bool) {
    out.push_str("\n RESOURCE REQUIREMENT DETAILS:\n");
    let mut t = String::new();
    for (label, col) in
        [(" Combined: ", Col::CombinedResReq), (" Effective: ", Col::EffectiveResReq)]
    {
        t.clear();
        t.push_str(label);
        let text = r.text(col);
        push_clean(&mut t, if text.is_empty() { "-" } else { &text });
        paragraph(out, &t, wrap);
    }
}

//! bjobs -l and -UF: everything about a job, in the sentences of LSF (bjobs(1)).
//!
//! Invariant: what users typed is shown without terminal controls; a job whose end is unknown
//! never shows an exit code.

use super::fields::run_limit_in_force;
use super::figures::{efficiency, eligible_secs, wait_limit};
use super::reasons;
use super::show::{Show, has_hosts, host_words, is_finished, is_pending, push_hosts_joined};
use super::{affinity, processes, start_needs};
use lsf::cli::job_rows::{Cell, JobRow};
use lsf::cli::long_format::{
    ELIGIBLE_TIME, INELIGIBLE_TIME, LimitBlock, external_thresholds, mem_words, paragraph,
    pending_times, push_clean, thresholds,
};
use lsf::cli::messages::{self, MessageLine};
use lsf::cli::submission::{
    KEPT, Submission, cpu_words, end_words, interactive_mode, limit_block, push, push_given,
    push_note,
};
use lsf::model::checkpoint::Checkpoint;
use lsf::model::further::{self, copies, host_lines};
use lsf::model::job::Limits;
use lsf::model::job_state::JobState;
use lsf::model::nqs::{NlbPlacement, Route};
use lsf::model::reason::term_text;
use lsf::model::run_limit::{SHOWN_RUN_LIMIT, ShownRunLimit};
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
    Col::Charged,
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
    Col::StartNeeds,
    Col::SuspReason,
    Col::SuspIndex,
    Col::Pgid,
    Col::Pids,
    Col::PidGroups,
    Col::HostUsage,
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
    Col::ExecUser,
    Col::ExecNote,
    Col::Limits,
    Col::LimitSpec,
    Col::Options,
    Col::Options2,
    Col::MailUser,
    Col::LoginShell,
    Col::PreExec,
    Col::PostExec,
    Col::Priority,
    Col::UserPriority,
    Col::Thresholds,
    Col::UsageTime,
    Col::RunTime,
    Col::RunLimit,
    Col::Extra,
    Col::Exceptions,
    Col::CpuPeak,
    Col::CpuPeakSecs,
    Col::Post,
    Col::PendTime,
    Col::IneligibleTime,
    Col::PendLimits,
    Col::ExternalThresholds,
    Col::Messages,
    Col::Reservation,
    Col::ProcessorUnits,
    Col::ResReqLevels,
    Col::NlbPlacement,
];

/// One record, from its leading blank line to the line before the rule.
pub fn job(out: &mut String, r: &JobRow, s: &Show) {
    let wrap = !s.unwrapped;
    out.push('\n');
    let mut text = String::with_capacity(512);
    head(&mut text, r);
    paragraph(out, &text, wrap);
    text.clear();
    submitted(&mut text, r, s);
    paragraph(out, &text, wrap);
    routed(out, r, wrap);
    estimated(out, r);
    wanted_slots(out, r);
    limits(out, r);
    if s.host_file {
        host_file(out, r);
    }
    reserved(out, r, s);
    if has_hosts(r) && r.int(Col::StartTime) > 0 {
        text.clear();
        started(&mut text, r, s);
        paragraph(out, &text, wrap);
        text.clear();
        stamp(&mut text, s, r.int(Col::StartTime));
        let head = text.len();
        push_note(&mut text, "", &r.text(Col::ExecNote));
        if text.len() > head {
            paragraph(out, &text, wrap);
        }
    }
    if is_finished(r) {
        ended(out, r, s);
    } else if !is_pending(r) && r.int(Col::UsageTime) > 0 {
        usage(out, r, s);
    }
    memory(out, r);
    run_time(out, r);
    why(out, r, s);
    pending_time(out, r);
    out.push_str("\n SCHEDULING PARAMETERS:\n");
    thresholds(out, &threshold_pairs(r));
    external_thresholds(out, &external_pairs(r));
    if !r.text(Col::Exceptions).is_empty() {
        let words = r.text(Col::Exceptions).replace(' ', "  ");
        let _ = writeln!(out, "\n EXCEPTION STATUS:  {words}");
    }
    external_messages(out, r, s);
    details(out, r, wrap);
    if s.affinity && !is_pending(r) && !is_finished(r) {
        affinity::push(out, r);
    }
    if is_pending(r) {
        start_needs::push(out, r);
    }
}

/// The amounts of hosts, by their names.
fn by_host(hosts: &Cell) -> Vec<(String, i64)> {
    let of = |host: &Cell| match host.list() {
        [name, amount] => Some((name.text().into_owned(), amount.int()?)),
        _ => None,
    };
    hosts.list().iter().filter_map(of).collect()
}

/// The slots and the memory that a pending job keeps until it has enough, and when it starts at the
/// latest.
fn reserved(out: &mut String, r: &JobRow, s: &Show) {
    let [since, start, hosts, more @ ..] = r.list(Col::Reservation) else { return };
    let hosts = by_host(hosts);
    let (slots, mut text) = (hosts.iter().map(|host| host.1).sum::<i64>(), String::new());
    if slots > 0 {
        stamp(&mut text, s, since.int().unwrap_or(0));
        let what = if slots > 1 { "slots on host(s)" } else { "slot on host" };
        let _ = write!(text, "Reserved <{slots}> job {what}");
        for (host, slots) in &hosts {
            match slots {
                1 => push(&mut text, " ", host),
                n => push(&mut text, " ", &format!("{n}*{host}")),
            }
        }
        text.push(';');
        let memory = more.first().map(by_host).unwrap_or_default();
        if !memory.is_empty() {
            let sum = memory.iter().map(|host| host.1).sum::<i64>();
            let _ = write!(text, " Reserved <{sum}> megabyte memory on host(s)");
            for (host, mb) in &memory {
                push(&mut text, " ", &format!("{mb}M*{host}"));
            }
            text.push(';');
        }
        paragraph(out, &text, !s.unwrapped);
    }
    if let Some(start) = start.int().filter(|start| *start > 0) {
        text.clear();
        stamp(&mut text, s, start);
        text.push_str("Will be started;");
        paragraph(out, &text, !s.unwrapped);
    }
}

/// The messages of bpost, whole.
fn external_messages(out: &mut String, r: &JobRow, s: &Show) {
    let all = r.list(Col::Messages);
    if all.is_empty() {
        return;
    }
    out.push_str("\n EXTERNAL MESSAGES:\n ");
    messages::heading(out);
    out.push('\n');
    for cell in all {
        let [index, user, time, text, attached] = cell.list() else { continue };
        let (user, text) = (user.text(), text.text());
        let shown = MessageLine {
            index: index.int().and_then(|n| n.try_into().ok()).unwrap_or(0),
            user: &user,
            time: time.int().unwrap_or(0),
            text: &text,
            attached: attached.int() == Some(1),
        };
        out.push(' ');
        messages::line(out, &shown, &s.clock, true);
        out.push('\n');
    }
}

/// The hosts and slots of -hostfile, line by line, as "-hostfile" of bjobs in the documentation of
/// LSF 10.1 shows them.
fn host_file(out: &mut String, r: &JobRow) {
    let text = r.cell(Col::Extra).key(further::HOST_LINES).map(Cell::text).unwrap_or_default();
    let lines = host_lines(&text).unwrap_or_default();
    if !lines.is_empty() {
        out.push_str("\nUSER-SPECIFIED HOST FILE:\nHOST            SLOTS\n");
    }
    for (host, slots) in lines.iter() {
        let mut name = String::new();
        push_clean(&mut name, host);
        let _ = writeln!(out, "{name:<17} {slots}");
    }
}

/// -A -l: the head of an array with its counters.
pub fn array(out: &mut String, r: &JobRow, s: &Show) {
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

fn head(t: &mut String, r: &JobRow) {
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
    for (label, option) in KEPT {
        if let Some(text) = r.cell(Col::Extra).key(option) {
            push_given(t, label, &text.text());
        }
    }
    push_given(t, ", Mail ", &r.text(Col::MailUser));
    push_given(t, ", User Group ", &r.text(Col::UserGroup));
    if let Some(text) = r.cell(Col::Extra).key(further::GROUP) {
        push_given(t, ", Job Group ", &text.text());
    }
    push(t, ", Status ", &r.text(Col::Stat));
    push(t, ", Queue ", &r.text(Col::Queue));
    t.push_str(interactive_mode(r.int(Col::Options) as u32));
    if r.int(Col::Priority) > 0 {
        let _ = write!(t, ", Job Priority <{}>", r.int(Col::Priority));
    }
    push(t, ", Command ", &r.text(Col::Command));
    if let Some(text) = r.cell(Col::Extra).key(further::APS) {
        let text = text.text();
        match text.split_once('=') {
            Some(("system", number)) => push(t, ", System Absolute Priority ", number),
            Some((_, number)) => push(t, ", Admin factor value ", number),
            None => {}
        }
    }
    push_given(t, ", Share group charged ", &r.text(Col::Charged));
    push_given(t, ", Job Description ", &r.text(Col::Description));
    if let Some(text) = r.cell(Col::Extra).key(further::ESUB) {
        push_given(t, ", Esub ", &text.text());
    }
}

fn stamp(t: &mut String, s: &Show, secs: i64) {
    s.clock.long(t, secs);
    t.push_str(": ");
}

fn submitted(t: &mut String, r: &JobRow, s: &Show) {
    stamp(t, s, r.int(Col::SubmitTime));
    let kept = |key| r.cell(Col::Extra).key(key).map(Cell::text).unwrap_or_default();
    let submission = Submission {
        from_host: r.text(Col::FromHost),
        begin_time: r.int(Col::BeginTime),
        term_time: r.int(Col::TermTime),
        cwd: r.text(Col::Cwd),
        sub_cwd: kept(further::SUBMISSION_DIRECTORY),
        home: r.text(Col::Home),
        in_file: r.text(Col::InFile),
        out_file: r.text(Col::OutFile),
        err_file: r.text(Col::ErrFile),
        options: r.int(Col::Options) as u32,
        options2: r.int(Col::Options2) as u32,
        min_slots: r.int(Col::MinSlots),
        max_slots: r.int(Col::MaxSlots),
        res_req: r.text(Col::ResReq),
        login_shell: r.text(Col::LoginShell),
        pre_exec: r.text(Col::PreExec),
        post_exec: r.text(Col::PostExec),
        hosts: r.list(Col::AskedHosts).iter().map(Cell::text).collect(),
        depend: r.text(Col::Depend),
        checkpoint: Checkpoint::parse(&kept(further::CHECKPOINT)).ok().map(Box::new),
        copies: copies(&kept(further::FILE)).unwrap_or_default().into_vec().into(),
        autoresize: !kept(further::AUTORESIZE).is_empty(),
        resize_command: kept(further::RESIZE_COMMAND),
        priority: r.int(Col::UserPriority),
    };
    submission.sentence(t, &s.clock, None, s.hpc);
}

/// The destination to which a pipe queue has routed the job, and the attributes for policies.
fn routed(out: &mut String, r: &JobRow, wrap: bool) {
    let extra = |key: &str| r.cell(Col::Extra).key(key).map(Cell::text).unwrap_or_default();
    if let Some(route) = Route::parse(&extra("route")) {
        let mut text = format!(" Routed by queue <{}>", route.from);
        if !route.host.is_empty() {
            let _ = write!(text, " to host <{}>", route.host);
        }
        let _ = write!(text, " {};", route.words());
        paragraph(out, &text, wrap);
    }
    let policy = extra("nlb");
    if !policy.is_empty() {
        paragraph(out, &format!(" NLB policy <{policy}>;"), wrap);
    }
    let attributes = extra("nlbattr");
    if !attributes.is_empty() {
        paragraph(out, &format!(" NLB attributes: {attributes};"), wrap);
    }
}

/// The pending request of a started job for further slots (bresize(1)).
fn wanted_slots(out: &mut String, r: &JobRow) {
    let wanted = r.cell(Col::Extra).key(further::WANTED_SLOTS).map(Cell::text).unwrap_or_default();
    if let Some((least, most)) = wanted.split_once(',') {
        let _ = write!(out, " RESIZE REQUEST:\n {least}-{most}");
        out.push_str(" further slots\n");
    }
}

/// The run time that the user expects (bsub -We), as "Plan-based scheduling run time" in the
/// documentation of LSF 10.1 shows it; a blank line follows unless the limits bring theirs.
fn estimated(out: &mut String, r: &JobRow) {
    let text = r.cell(Col::Extra).key(further::ESTIMATE).map(Cell::text).unwrap_or_default();
    let Some(limit) = lsf::conf::units::time_limit(&text) else { return };
    let _ = write!(out, " ESTIMATED_RUNTIME:\n {:.1} min", limit.seconds as f64 / 60.0);
    if let Some(host) = limit.spec {
        out.push_str(" of ");
        push_clean(out, &host);
    }
    out.push_str(" based on user provided runtime estimation.\n");
    if given_limits(r).is_empty() {
        out.push('\n');
    }
}

fn limits(out: &mut String, r: &JobRow) {
    let block = given_limits(r);
    if !block.is_empty() {
        out.push('\n');
        block.push(out);
    }
}

fn given_limits(r: &JobRow) -> LimitBlock {
    let l = r.cell(Col::Limits);
    let get = |key| l.key(key).and_then(Cell::int).and_then(|n| u64::try_from(n).ok());
    let limits = Limits {
        cpu: get("cpu"),
        fsize: get("fsize"),
        data: get("data"),
        stack: get("stack"),
        core: get("core"),
        rss: get("rss"),
        swap: get("swap"),
        run: get("run"),
        process: get("process"),
        thread: get("thread"),
        ..Limits::default()
    };
    let extendable = r.cell(Col::Extra).key(SHOWN_RUN_LIMIT).map(Cell::text).unwrap_or_default();
    let extendable = ShownRunLimit::parse(&extendable).map_or(String::new(), |l| l.words());
    LimitBlock { extendable, ..limit_block(&limits, &r.text(Col::LimitSpec)) }
}

fn started(t: &mut String, r: &JobRow, s: &Show) {
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
    if r.text(Col::ExecUser) != r.text(Col::User) {
        push_given(t, ", Execution user name ", &r.text(Col::ExecUser));
    }
    if let Some(placed) = NlbPlacement::parse(&r.text(Col::NlbPlacement)) {
        let _ = write!(t, ", {}", placed.words());
    }
    t.push(';');
}

/// `<4*hosta> <hostb>`.
fn push_all_hosts(t: &mut String, r: &JobRow) {
    let mut joined = String::new();
    push_hosts_joined(&mut joined, r, '\n');
    for (i, host) in joined.lines().enumerate() {
        push(t, if i > 0 { " " } else { "" }, host);
    }
}

fn ended(out: &mut String, r: &JobRow, s: &Show) {
    let wrap = !s.unwrapped;
    let mut t = String::new();
    stamp(&mut t, s, r.int(Col::EndTime));
    let status = r.cell(Col::WaitStatus).int();
    let (done, started) = (r.state() == Some(JobState::Done), has_hosts(r));
    let cpu = s.cpu(r, Col::CpuUsed);
    let known = started && (status.is_some() || cpu > 0.0);
    t.push_str(&end_words(done, started, status));
    t.push('.');
    t.push_str(&cpu_words(known.then_some(cpu)));
    t.push('.');
    paragraph(out, &t, wrap);
    let post = match &*r.text(Col::Post) {
        "done" => "Post job process done successfully.",
        "err" => "Post job process failed.",
        _ => "",
    };
    if !post.is_empty() {
        t.clear();
        stamp(&mut t, s, r.int(Col::EndTime));
        t.push_str(post);
        paragraph(out, &t, wrap);
    }
    let info = r.int(Col::ExitInfo);
    if info > 0 {
        t.clear();
        stamp(&mut t, s, r.int(Col::EndTime));
        let (name, text) = term_text(info as u32);
        let word = if done { "done" } else { "exit" };
        let _ = write!(t, "Completed <{word}>; {name}: {text}.");
        paragraph(out, &t, wrap);
    }
}

/// The usage of a running job: one line for each part, or one line in all with -UF.
fn usage(out: &mut String, r: &JobRow, s: &Show) {
    let mut parts = Vec::new();
    let cpu = s.cpu(r, Col::CpuUsed);
    if cpu >= 1.0 {
        parts.push(format!("The CPU time used is {cpu:.0} seconds."));
    }
    let idle = r.text(Col::Exceptions).split(' ').any(|word| word == "idle");
    if idle && r.int(Col::RunTime) > 0 {
        let factor = cpu / r.num(Col::RunTime);
        parts.push(format!("IDLE_FACTOR(cputime/runtime):   {factor:.2}"));
    }
    let mut mem = String::from("MEM: ");
    mem_words(&mut mem, r.int(Col::MemKb).max(0) as u64);
    mem.push_str(";  SWAP: ");
    mem_words(&mut mem, r.int(Col::SwapKb).max(0) as u64);
    if r.int(Col::NThreads) > 0 {
        let _ = write!(mem, ";  NTHREAD: {}", r.int(Col::NThreads));
    }
    parts.push(mem);
    parts.extend(processes::of_job(r, s.short_pids));
    parts.extend(processes::of_hosts(r, s));
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

fn memory(out: &mut String, r: &JobRow) {
    if let Some(e) = efficiency(r) {
        e.push(out, " ", true);
    }
}

/// Beyond LSF: how much of its run limit a job has used.
fn run_time(out: &mut String, r: &JobRow) {
    let limit = run_limit_in_force(r).filter(|n| *n > 0);
    let (ran, Some(limit)) = (r.int(Col::RunTime), limit) else { return };
    if ran > 0 {
        let share = ran as f64 * 100.0 / limit as f64;
        let _ = writeln!(
            out,
            "\n RUN TIME USAGE:\n RUN TIME: {ran} second(s);  RUNLIMIT: {limit} second(s);  \
             RUN TIME Efficiency: {share:.2}%"
        );
    }
}

fn why(out: &mut String, r: &JobRow, s: &Show) {
    let from = out.len();
    if is_pending(r) {
        out.push_str(" PENDING REASONS:\n");
    } else {
        out.push_str(" SUSPENDING REASONS:\n");
    }
    let head = out.len();
    reasons::push(out, r, s);
    if out.len() == head {
        out.truncate(from);
    }
}

/// How a job has waited (TRACK_ELIGIBLE_PENDINFO), and how long it may: that the limits are told
/// is documented, not how.
fn pending_time(out: &mut String, r: &JobRow) {
    let head = out.len();
    let lines = [
        (ELIGIBLE_TIME, eligible_secs(r)),
        (INELIGIBLE_TIME, r.cell(Col::IneligibleTime).int()),
        ("Pending time limit", wait_limit(r, "ptl")),
        ("Eligible pending time limit", wait_limit(r, "eptl")),
    ];
    pending_times(out, " ", &lines);
    if out.len() > head && is_pending(r) {
        out.insert(head, '\n');
    }
}

/// (sched, stop) by built-in index.
fn threshold_pairs(r: &JobRow) -> Vec<(Option<f64>, Option<f64>)> {
    r.list(Col::Thresholds)
        .iter()
        .map(|t| match t.list() {
            [.., sched, stop] => (sched.num(), stop.num()),
            _ => (None, None),
        })
        .collect()
}

/// (name, `sched/stop`) by external index.
fn external_pairs(r: &JobRow) -> Vec<(String, String)> {
    let pair = |cell: &Cell| match cell.list() {
        [name, text] => Some((name.text().into_owned(), text.text().into_owned())),
        _ => None,
    };
    r.list(Col::ExternalThresholds).iter().filter_map(pair).collect()
}

/// The resource requirements, as far as BJOBS_RES_REQ_DISPLAY has them shown.
fn details(out: &mut String, r: &JobRow, wrap: bool) {
    let levels = r.list(Col::ResReqLevels);
    let word = |at: usize| levels.get(at).map(Cell::text).unwrap_or_default();
    if word(0) == "none" {
        return;
    }
    let mut lines = vec![
        (" Combined: ", r.text(Col::CombinedResReq)),
        (" Effective: ", r.text(Col::EffectiveResReq)),
    ];
    if word(0) == "full" {
        let job = r.text(Col::ResReq);
        lines.extend([
            (" Job-level: ", job),
            (" App-level: ", word(1)),
            (" Queue-level: ", word(2)),
        ]);
    }
    out.push_str("\n RESOURCE REQUIREMENT DETAILS:\n");
    let mut t = String::new();
    for (label, text) in lines {
        t.clear();
        t.push_str(label);
        push_clean(&mut t, if text.is_empty() { "-" } else { &text });
        paragraph(out, &t, wrap);
    }
}

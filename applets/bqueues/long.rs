//! bqueues -l: everything about a queue, in the order and words of LSF (bqueues(1)).

use super::table::{per_processor, status};
use lsf::cli::columns::count;
use lsf::cli::long_format::{LimitBlock, external_thresholds, push_clean, thresholds};
use lsf::cli::share_table;
use lsf::conf::aps;
use lsf::conf::names::lsb_queues::QUEUE;
use lsf::conf::types::ApsFactor;
use lsf::conf::units::{SizeUnit, minutes, size_kb, user_shares};
use lsf::proto::client::QueueInfo;
use std::fmt::Write;

/// The line between two queues.
pub const RULE: &str =
    "-------------------------------------------------------------------------------";

/// A parameter of the queue as written; empty where it has none.
pub fn param<'q>(q: &'q QueueInfo, name: &str) -> &'q str {
    let found = q.params.iter().find(|(n, _)| n.eq_ignore_ascii_case(name));
    found.map_or("", |(_, text)| text.trim())
}

/// Is the parameter Y or yes?
fn yes(q: &QueueInfo, name: &str) -> bool {
    let text = param(q, name);
    text.eq_ignore_ascii_case("y") || text.eq_ignore_ascii_case("yes")
}

/// One record, from its leading blank line to its last one; `all_shares`: with the accounts of
/// groups.
pub fn queue(out: &mut String, q: &QueueInfo, unit: SizeUnit, all_shares: bool) {
    out.push_str("\nQUEUE: ");
    push_clean(out, &q.name);
    out.push_str("\n  -- ");
    push_clean(
        out,
        if q.description.is_empty() { "No description provided." } else { &q.description },
    );
    if q.is_default {
        out.push_str("  This is the default queue.");
    }
    out.push_str("\n\n");
    statistics(out, q);
    limits(out, q, unit);
    out.push_str("\nSCHEDULING PARAMETERS\n");
    thresholds(out, &q.thresholds);
    external_thresholds(out, &q.external);
    policies(out, q);
    // the root of the tree comes first
    let tables = if all_shares { q.shares.len() } else { 1 };
    q.shares.iter().take(tables).for_each(|table| share_table::push(out, table));
    windows(out, q);
    members(out, q);
    rest(out, q);
    out.push('\n');
}

fn statistics(out: &mut String, q: &QueueInfo) {
    out.push_str(
        "PARAMETERS/STATISTICS\n\
         PRIO NICE STATUS          MAX JL/U JL/P JL/H NJOBS  PEND   RUN SSUSP USUSP  RSV PJOBS\n",
    );
    let _ = writeln!(
        out,
        "{:>3}  {:>3}  {:<14} {:>4} {:>4} {:>4} {:>4} {:>5} {:>5} {:>5} {:>5} {:>5} {:>4} {:>5}",
        q.priority,
        q.nice,
        status(q),
        count(q.max),
        count(q.jl_u),
        per_processor(q.jl_p, true),
        count(q.jl_h),
        q.njobs,
        q.pend,
        q.run,
        q.ssusp,
        q.ususp,
        q.rsv,
        q.pjobs,
    );
    for (name, before, after) in [
        ("MIG", "Migration threshold is ", " minutes"),
        ("NEW_JOB_SCHED_DELAY", "Schedule delay for a new job is ", " seconds"),
    ] {
        let value = param(q, name);
        if !value.is_empty() {
            // a delay of 0 is what every queue has
            let mark = if value == "0" { "" } else { QUEUE.mark(name) };
            let _ = writeln!(out, "{before}{value}{after}{mark}");
        }
    }
    let _ = writeln!(
        out,
        "Interval for a host to accept two jobs is {} seconds",
        q.accept_interval_secs
    );
}

/// The parts of `LIMIT = [default] maximum`, as (default, maximum).
pub fn split_limit(text: &str) -> (Option<&str>, Option<&str>) {
    let mut words = text.split_whitespace();
    match (words.next(), words.next()) {
        (Some(d), Some(m)) => (Some(d), Some(m)),
        (m, _) => (None, m),
    }
}

/// The time of `[hours:]minutes[/host]` in seconds; the host goes to `host`.
fn time(text: Option<&str>, host: &mut String) -> Option<u64> {
    let text = text?;
    let (time, of) = text.split_once('/').unwrap_or((text, ""));
    if !of.is_empty() {
        *host = of.to_string();
    }
    minutes(time)
}

/// The default and the maximum limits.
fn blocks(q: &QueueInfo, unit: SizeUnit) -> (LimitBlock, LimitBlock) {
    let (mut low, mut high) = (LimitBlock::default(), LimitBlock::default());
    type Slot = fn(&mut LimitBlock) -> &mut Option<u64>;
    let times: [(&str, Slot); 2] = [("CPULIMIT", |b| &mut b.cpu), ("RUNLIMIT", |b| &mut b.run)];
    for (name, slot) in times {
        let (default, max) = split_limit(param(q, name));
        *slot(&mut low) = time(default, &mut low.host);
        *slot(&mut high) = time(max, &mut high.host);
    }
    let sizes: [(&str, Slot); 6] = [
        ("FILELIMIT", |b| &mut b.file),
        ("DATALIMIT", |b| &mut b.data),
        ("STACKLIMIT", |b| &mut b.stack),
        ("CORELIMIT", |b| &mut b.core),
        ("MEMLIMIT", |b| &mut b.mem),
        ("SWAPLIMIT", |b| &mut b.swap),
    ];
    for (name, slot) in sizes {
        let (default, max) = split_limit(param(q, name));
        *slot(&mut low) = default.and_then(|t| size_kb(t, unit));
        *slot(&mut high) = max.and_then(|t| size_kb(t, unit));
    }
    let counts: [(&str, Slot); 2] =
        [("PROCESSLIMIT", |b| &mut b.process), ("THREADLIMIT", |b| &mut b.thread)];
    for (name, slot) in counts {
        let (default, max) = split_limit(param(q, name));
        *slot(&mut low) = default.and_then(|t| t.parse().ok());
        *slot(&mut high) = max.and_then(|t| t.parse().ok());
    }
    for name in ["PROCLIMIT", "TASKLIMIT"] {
        let words: Vec<&str> = param(q, name).split_whitespace().collect();
        if !words.is_empty() {
            high.slots = Some((name, words.join(" ")));
        }
    }
    (low, high)
}

fn limits(out: &mut String, q: &QueueInfo, unit: SizeUnit) {
    let (low, high) = blocks(q, unit);
    if low.is_empty() && high.is_empty() {
        return;
    }
    out.push('\n');
    for (title, block) in [("DEFAULT LIMITS:\n", low), ("MAXIMUM LIMITS:\n", high)] {
        if !block.is_empty() {
            out.push_str(title);
            block.push(out);
        }
    }
}

fn policies(out: &mut String, q: &QueueInfo) {
    let interactive = param(q, "INTERACTIVE");
    let no_interactive =
        interactive.eq_ignore_ascii_case("no") || interactive.eq_ignore_ascii_case("n");
    let units = param(q, "EXCLUSIVE").to_ascii_uppercase().starts_with("CU");
    // the word, the parameter it comes from, and whether the queue has it
    let on = [
        ("FAIRSHARE", "FAIRSHARE", !param(q, "FAIRSHARE").is_empty()),
        ("BACKFILL", "BACKFILL", yes(q, "BACKFILL")),
        ("IGNORE_DEADLINE", "IGNORE_DEADLINE", yes(q, "IGNORE_DEADLINE")),
        ("SLA_GUARANTEES_IGNORE", "SLA_GUARANTEES_IGNORE", yes(q, "SLA_GUARANTEES_IGNORE")),
        ("EXCLUSIVE", "EXCLUSIVE", yes(q, "EXCLUSIVE") || units),
        ("NO_INTERACTIVE", "INTERACTIVE", no_interactive),
        ("ONLY_INTERACTIVE", "INTERACTIVE", interactive.eq_ignore_ascii_case("only")),
        ("PREEMPTIVE", "PREEMPTION", param(q, "PREEMPTION").contains("PREEMPTIVE")),
        ("PREEMPTABLE", "PREEMPTION", param(q, "PREEMPTION").contains("PREEMPTABLE")),
        ("APS_PRIORITY", "APS_PRIORITY", !param(q, "APS_PRIORITY").is_empty()),
    ];
    if on.iter().any(|(_, _, on)| *on) {
        out.push_str("\nSCHEDULING POLICIES:");
        for (word, name, _) in on.iter().filter(|(_, _, on)| *on) {
            let _ = write!(out, "  {word}{}", QUEUE.mark(name));
        }
        out.push('\n');
    }
    absolute_priority(out, param(q, "APS_PRIORITY"));
    shares(out, param(q, "FAIRSHARE"));
    parameter(out, q, "QUEUE_GROUP", "QUEUE_GROUP:  ");
    parameter(out, q, "PREEMPTION", "PREEMPTION = ");
}

/// The table of APS_PRIORITY: one line for each factor with its parameters.
fn absolute_priority(out: &mut String, text: &str) {
    let Some(aps) = aps::parse(text) else { return };
    out.push_str("\nAPS_PRIORITY:\n");
    let _ = writeln!(
        out,
        "{:<20}{:>16}{:>18}{:>16}",
        "", "WEIGHT FACTORS", "LIMIT FACTORS", "GRACE PERIOD"
    );
    for factor in ApsFactor::ALL {
        let term = aps.term(factor);
        let number = |n: Option<f64>| n.map_or("-".to_owned(), |n| format!("{n:.2}"));
        let weight = aps.weight(factor);
        let weight = number((weight != 0.0).then_some(weight));
        let grace = term.grace.map_or("-".to_owned(), |secs| match secs {
            secs if secs % 3600 == 0 => format!("{}h", secs / 3600),
            secs if secs % 60 == 0 => format!("{}m", secs / 60),
            secs => format!("{secs}s"),
        });
        let limit = number(term.limit);
        let _ = writeln!(out, "{:<20}{weight:>16}{limit:>18}{grace:>16}", factor.label());
    }
}

/// `USER_SHARES:  [default, 1] ` of `USER_SHARES[[default,1] ...]`.
fn shares(out: &mut String, fairshare: &str) {
    if !fairshare.contains("USER_SHARES") {
        return;
    }
    out.push_str("USER_SHARES:  ");
    for (name, share) in user_shares(fairshare) {
        out.push('[');
        push_clean(out, name);
        out.push_str(", ");
        push_clean(out, share);
        out.push_str("] ");
    }
    out.push('\n');
}

/// SUSPEND, RESUME and TERMINATE of JOB_CONTROLS, each with what is done.
fn controls(out: &mut String, text: &str) {
    if text.is_empty() {
        return;
    }
    let _ = writeln!(out, "JOB_CONTROLS:{}", QUEUE.mark("JOB_CONTROLS"));
    let mut rest = text;
    while let Some((name, after)) = rest.split_once('[') {
        // what is done may hold brackets of its own
        let mut depth = 1;
        let end = after.char_indices().find(|(_, c)| {
            depth += i32::from(*c == '[') - i32::from(*c == ']');
            depth == 0
        });
        let end = end.map_or(after.len(), |(at, _)| at);
        let what = after.get(..end).unwrap_or("");
        let _ = write!(out, "    {:<11} [", format!("{}:", name.trim()));
        push_clean(out, what.trim());
        out.push_str("]\n");
        rest = after.get(end + 1..).unwrap_or("");
    }
}

fn windows(out: &mut String, q: &QueueInfo) {
    for (name, label) in [
        ("DEFAULT_HOST_SPEC", "DEFAULT HOST SPECIFICATION: "),
        ("RUN_WINDOW", "RUN_WINDOW: "),
        ("DISPATCH_WINDOW", "DISPATCH_WINDOW: "),
    ] {
        line(out, "\n", label, param(q, name));
    }
}

/// `label value` of a parameter the queue has, with a mark where nothing acts on it.
fn parameter(out: &mut String, q: &QueueInfo, name: &str, label: &str) {
    let value = param(q, name);
    if !value.is_empty() {
        out.push_str(label);
        push_clean(out, value);
        out.push_str(QUEUE.mark(name));
        out.push('\n');
    }
}

/// `label text` after `before`, unless there is no text.
fn line(out: &mut String, before: &str, label: &str, text: &str) {
    if !text.is_empty() {
        out.push_str(before);
        out.push_str(label);
        push_clean(out, text);
        out.push('\n');
    }
}

/// The words of a list parameter, `all` where it is not set.
fn words(text: &str) -> String {
    let list: Vec<&str> = text.split_whitespace().collect();
    if list.is_empty() { "all".to_string() } else { list.join(" ") }
}

fn members(out: &mut String, q: &QueueInfo) {
    out.push_str("\nUSERS: ");
    let users = words(param(q, "USERS"));
    push_clean(out, if users == "all" { "all " } else { &users });
    out.push_str(" \nHOSTS:  ");
    push_clean(out, &words(param(q, "HOSTS")));
    out.push_str(" \n");
}

/// The share of a slot pool.
fn slot_pool(out: &mut String, q: &QueueInfo) {
    let share = param(q, "SLOT_SHARE");
    if !share.is_empty() {
        line(out, "", "SLOT_SHARE:  ", &format!("{share}%"));
    }
    for (name, label) in [
        ("SLOT_POOL", "SLOT_POOL:  "),
        ("MAX_SLOTS_IN_POOL", "MAX_SLOTS_IN_POOL:  "),
        ("USE_PRIORITY_IN_POOL", "USE_PRIORITY_IN_POOL:  "),
    ] {
        parameter(out, q, name, label);
    }
}

fn rest(out: &mut String, q: &QueueInfo) {
    for (name, label) in [
        ("NQS_QUEUES", "NQS DESTINATION QUEUES:  "),
        ("NLB_POLICY", "NLB_POLICY:  "),
        ("ADMINISTRATORS", "ADMINISTRATORS:  "),
        ("HOST_PRE_EXEC", "HOST_PRE_EXEC:  "),
        ("HOST_POST_EXEC", "HOST_POST_EXEC:  "),
        ("PRE_EXEC", "PRE_EXEC:  "),
        ("POST_EXEC", "POST_EXEC:  "),
        ("REQUEUE_EXIT_VALUES", "REQUEUE_EXIT_VALUES:  "),
        ("RES_REQ", "RES_REQ:  "),
        ("RESRSV_LIMIT", "RESRSV_LIMIT:  "),
    ] {
        parameter(out, q, name, label);
    }
    // RESOURCE_RESERVE stands above SLOT_RESERVE: MAX_RESERVE_TIME[turns of the scheduler]
    let reserve = [param(q, "RESOURCE_RESERVE"), param(q, "SLOT_RESERVE")];
    let time = reserve.iter().find_map(|text| text.split_once("MAX_RESERVE_TIME["));
    if let Some((_, time)) = time {
        let turns = time.split(']').next().and_then(|n| n.trim().parse::<u64>().ok());
        if let Some(secs) = turns.and_then(|n| n.checked_mul(q.sleep_secs)) {
            let _ = writeln!(out, "Maximum slot reservation time: {secs} seconds");
        }
    }
    for (name, label) in [
        ("RESUME_COND", "RESUME_COND:  "),
        ("STOP_COND", "STOP_COND:  "),
        ("JOB_STARTER", "JOB_STARTER:  "),
    ] {
        parameter(out, q, name, label);
    }
    if yes(q, "RERUNNABLE") {
        out.push_str("RERUNNABLE :  yes\n");
    }
    let mut chkpnt = param(q, "CHKPNT").split_whitespace();
    for label in ["CHKPNTDIR : ", "CHKPNTPERIOD : "] {
        if let Some(word) = chkpnt.next() {
            line(out, "", label, &format!("{word}{}", QUEUE.mark("CHKPNT")));
        }
    }
    controls(out, param(q, "JOB_CONTROLS"));
    for (name, label) in [
        ("TERMINATE_WHEN", "TERMINATE_WHEN = "),
        ("EXTENDABLE_RUNLIMIT", "EXTENDABLE_RUNLIMIT:  "),
        ("JOB_ACTION_WARNING_TIME", "JOB_ACTION_WARNING_TIME:  "),
        ("JOB_WARNING_ACTION", "JOB_WARNING_ACTION:  "),
        ("SNDJOBS_TO", "SEND_JOBS_TO:  "),
        ("RCVJOBS_FROM", "RECEIVE_JOBS_FROM:  "),
        ("CHUNK_JOB_SIZE", "CHUNK_JOB_SIZE:  "),
        ("JOB_SIZE_LIST", "JOB_SIZE_LIST:  "),
        ("HOSTLIMIT_PER_JOB", "HOSTLIMIT_PER_JOB:  "),
    ] {
        parameter(out, q, name, label);
    }
    slot_pool(out, q);
    if !q.admin_comment.is_empty() {
        out.push_str("\nADMIN ACTION COMMENT: \"");
        push_clean(out, &q.admin_comment);
        out.push_str("\"\n");
    }
}

//! The two forms of bhist: the table of times, and -l (bhist(1)).

use super::history::{COUNTED, Elem, History, Job};
use lsf::cli::clock::Clock;
use lsf::cli::columns::{Json, tail};
use lsf::cli::host_usage::usage_by_host;
use lsf::cli::long_format::{ELIGIBLE_TIME, INELIGIBLE_TIME, paragraph, pending_times, push_clean};
use lsf::cli::submission::{KEPT, Submission, interactive_mode, limit_block, push, push_given};
use lsf::model::JobRef;
use std::fmt::Write;

/// How to show.
pub struct Show {
    pub clock: Clock,
    /// -w: names are not cut.
    pub wide: bool,
    /// -UF: long lines are not broken.
    pub unwrapped: bool,
    /// LSB_ENABLE_HPC_ALLOCATION=Y.
    pub tasks: bool,
    /// -N: the CPU factor that times are counted for.
    pub factor: Option<f64>,
    /// Seconds since the epoch: unfinished jobs are counted up to here.
    pub now: i64,
}

/// Longest name that the table shows whole.
const NAME: usize = 8;

/// Headings of the columns of seconds.
const COLUMN_NAMES: [&str; COUNTED] = ["PEND", "PSUSP", "RUN", "USUSP", "SSUSP", "UNKWN"];

pub fn head(out: &mut String) {
    out.push_str(
        "Summary of time in seconds spent in various states:\n\
         JOBID   USER    JOB_NAME  PEND    PSUSP   RUN     USUSP   SSUSP   UNKWN   TOTAL\n",
    );
}

pub fn row(out: &mut String, at: JobRef, job: &Job, e: &Elem, s: &Show) {
    let clean = |text: &str, keep: usize, end: bool| {
        let mut t = String::new();
        push_clean(&mut t, text);
        match t.chars().count() > keep && !s.wide {
            true if end => tail(&t, keep),
            true => t.chars().take(keep).collect(),
            false => t,
        }
    };
    let name = clean(&job.display_name(at.idx), NAME, true);
    let user = clean(&job.new.user, 7, false);
    let _ = write!(out, "{:<7} {user:<7} {name:<9} ", at.to_string());
    let times = e.times(s.now);
    times.iter().for_each(|n| {
        let _ = write!(out, "{n:<7} ");
    });
    let _ = writeln!(out, "{:<10}", times.iter().sum::<i64>());
}

/// The record of -json: the columns of the table, and with -l the events.
pub fn record(json: &mut Json, at: JobRef, job: &Job, e: &Elem, s: &Show, long: bool) {
    let (id, name, times) = (at.to_string(), job.display_name(at.idx), e.times(s.now));
    let total = times.iter().sum::<i64>().to_string();
    let times = times.map(|n| n.to_string());
    let mut pairs = vec![("JOBID", &*id), ("USER", &*job.new.user), ("JOB_NAME", &*name)];
    pairs.extend(COLUMN_NAMES.into_iter().zip(times.iter().map(String::as_str)));
    pairs.push(("TOTAL", &total));
    if !long {
        return json.pairs(&pairs);
    }
    let spec = &job.new.spec;
    let mut submitted = String::new();
    Submission::of(spec).sentence(&mut submitted, &s.clock, Some(&spec.queue), s.tasks);
    let first = (job.new.submit_time, submitted.as_str());
    let events = e.lines.iter().map(|(time, words)| (*time, words.as_str()));
    let events: Vec<(String, &str)> = std::iter::once(first)
        .chain(events)
        .map(|(time, words)| {
            let mut text = String::new();
            s.clock.long(&mut text, time);
            (text, words.trim_end())
        })
        .collect();
    let events: Vec<[(&str, &str); 2]> =
        events.iter().map(|(time, words)| [("TIME", &**time), ("EVENT", *words)]).collect();
    let (command, state) = (spec.command.lossy(), e.state.name());
    pairs.extend([("STAT", state), ("QUEUE", &*spec.queue), ("PROJ_NAME", &*spec.project)]);
    pairs.push(("COMMAND", &*command));
    json.with_list(&pairs, "EVENTS", &events);
}

/// One record, from its leading blank line to the line before the rule.
pub fn long(out: &mut String, at: JobRef, job: &Job, e: &Elem, s: &Show, tracked: bool) {
    let wrap = !s.unwrapped;
    let spec = &job.new.spec;
    out.push('\n');
    let mut t = String::with_capacity(512);
    let _ = write!(t, "Job <{at}>");
    if !spec.name.is_empty() {
        push(&mut t, ", Job Name ", &job.display_name(at.idx));
    }
    push(&mut t, ", User ", &job.new.user);
    push(&mut t, ", Project ", &spec.project);
    for (label, option) in KEPT {
        push_given(&mut t, label, &spec.further.text(option).unwrap_or_default());
    }
    push_given(&mut t, ", Mail ", &spec.mail_user);
    push_given(&mut t, ", User Group ", &spec.user_group);
    push_given(&mut t, ", Job Group ", &spec.further.job_group);
    t.push_str(interactive_mode(spec.options));
    push(&mut t, ", Command ", &spec.command.lossy());
    push_given(&mut t, ", Job Description ", &spec.description);
    paragraph(out, &t, wrap);
    t.clear();
    stamp(&mut t, s, job.new.submit_time);
    Submission::of(spec).sentence(&mut t, &s.clock, Some(&spec.queue), s.tasks);
    paragraph(out, &t, wrap);
    let limits = limit_block(&spec.limits, &spec.limit_spec);
    if !limits.is_empty() {
        out.push('\n');
        limits.push(out);
    }
    for (time, line) in &e.lines {
        t.clear();
        stamp(&mut t, s, *time);
        t.push_str(line);
        paragraph(out, &t, wrap);
    }
    let used = e.efficiency(s.now);
    if used.max_mem_kb > 0 && used.avg_mem_kb > 0 {
        used.push(out, "", e.ours);
    }
    if !e.hosts_used.is_empty() {
        out.push_str("\nHOST USAGE:\n");
        usage_by_host(out, "", &e.hosts_used);
    }
    if tracked {
        let (may, not) = e.waited(s.now);
        pending_times(out, "", &[(ELIGIBLE_TIME, Some(may)), (INELIGIBLE_TIME, Some(not))]);
    }
    summary(out, e, s);
}

/// One line of -t; of a job, without words it is the submission.
pub fn event(
    out: &mut String,
    time: i64,
    at: Option<JobRef>,
    words: Option<&str>,
    h: &History,
    s: &Show,
) {
    let mut t = String::new();
    stamp(&mut t, s, time);
    if let Some(at) = at {
        let _ = write!(t, "Job <{at}> ");
    }
    match (words, at.and_then(|at| h.job(at.job))) {
        (Some(words), _) => t.push_str(words),
        (None, Some(job)) => {
            let spec = &job.new.spec;
            Submission::of(spec).sentence(&mut t, &s.clock, Some(&spec.queue), s.tasks);
        }
        (None, None) => return,
    }
    paragraph(out, &t, !s.unwrapped);
}

fn stamp(t: &mut String, s: &Show, time: i64) {
    s.clock.long(t, time);
    t.push_str(": ");
}

fn summary(out: &mut String, e: &Elem, s: &Show) {
    out.push_str("\nSummary of time in seconds spent in various states by  ");
    s.clock.long(out, if e.end > 0 { e.end } else { s.now });
    out.push_str("\n  PEND     PSUSP    RUN      USUSP    SSUSP    UNKWN    TOTAL\n ");
    let times = e.times(s.now);
    times.iter().for_each(|n| {
        let _ = write!(out, " {n:<8}");
    });
    let _ = writeln!(out, " {:<12}", times.iter().sum::<i64>());
}

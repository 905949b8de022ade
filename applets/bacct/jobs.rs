//! One job of bacct: the blocks of -l and the lines of -b and -w (bacct(1)).

use super::sums::RULE;
use lsf::cli::clock::Clock;
use lsf::cli::columns::Json;
use lsf::cli::host_usage::{short_size, usage_by_host};
use lsf::cli::long_format::{
    ELIGIBLE_TIME, Efficiency, INELIGIBLE_TIME, paragraph, pending_times, push_clean,
};
use lsf::cli::submission::{KEPT, Submission, dispatched, interactive_mode, push, push_given};
use lsf::lang::jobname::JobName;
use lsf::model::event::Finish;
use lsf::model::job::{Usage, except};
use lsf::model::job_state::JobState;
use lsf::model::reason::term_text;
use std::fmt::Write;

/// How jobs are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountingForm {
    /// No lines for single jobs.
    Summary,
    /// -b, -w.
    Lines { wide: bool },
    /// -l, -UF.
    Long { wrap: bool },
    /// -json with one of these: a record for each job.
    Records,
}

/// How, and what of the wait does not count.
#[derive(Clone, Copy, Debug)]
pub struct JobForm {
    pub form: AccountingForm,
    /// LSB_ENABLE_HPC_ALLOCATION=Y.
    pub tasks: bool,
    /// Seconds.
    pub ineligible: i64,
}

/// Appends a job; `first`: nothing was shown before it.
pub fn show(out: &mut String, f: &Finish, look: &JobForm, first: bool, clock: &Clock) {
    match look.form {
        AccountingForm::Summary => {}
        AccountingForm::Lines { wide } => {
            if first {
                out.push_str(
                    "JOBID     QUEUE      SUBMIT_TIME  CPU_T     WAIT TURNAROUND   FROM  STATUS\n",
                );
            }
            line(out, f, wide, look, clock);
        }
        AccountingForm::Long { wrap } => long(out, f, wrap, look, clock),
        AccountingForm::Records => {}
    }
}

/// Appends the record of a job.
pub fn record(json: &mut Json, f: &Finish, look: &JobForm, clock: &Clock) {
    let time = |secs: i64| {
        let mut text = String::new();
        if secs > 0 {
            clock.long(&mut text, secs);
        }
        text
    };
    let (s, u, spec) = (spent(f, look), f.usage.unwrap_or_default(), &f.spec);
    let reason = if f.exit_info != 0 { term_text(f.exit_info).0 } else { "" };
    let hosts: Vec<String> = f.exec_hosts.iter().map(|(host, n)| format!("{n}*{host}")).collect();
    let command = spec.command.lossy();
    json.pairs(&[
        ("JOBID", &f.at.to_string()),
        ("STATUS", status(f)),
        ("USER", &f.user),
        ("QUEUE", &spec.queue),
        ("JOB_NAME", &job_name(f)),
        ("PROJ_NAME", &spec.project),
        ("COMMAND", &command),
        ("FROM", &spec.from_host),
        ("EXEC_HOST", &hosts.join(":")),
        ("SUBMIT_TIME", &time(f.submit_time)),
        ("START_TIME", &time(f.start_time)),
        ("FINISH_TIME", &time(f.event_time)),
        ("CPU_T", &format!("{:.2}", s.cpu)),
        ("WAIT", &s.wait.to_string()),
        ("TURNAROUND", &s.turnaround.to_string()),
        ("HOG_FACTOR", &format!("{:.4}", hog_factor(&s))),
        ("MEM", &short_size(u.max_mem_kb)),
        ("SWAP", &short_size(u.max_swap_kb)),
        ("EXIT_REASON", reason),
    ]);
}

/// The name of a job, or of an element: `name[4]`.
fn job_name(f: &Finish) -> String {
    match (JobName::parse(&f.spec.name), f.at.idx) {
        (Ok(name), idx) if idx != 0 => name.element(idx),
        _ => f.spec.name.clone(),
    }
}

/// The times of a job, seconds.
struct Spent {
    cpu: f64,
    wait: i64,
    turnaround: i64,
}

fn spent(f: &Finish, look: &JobForm) -> Spent {
    let begun = if f.start_time > 0 { f.start_time } else { f.event_time };
    Spent {
        cpu: f.usage.as_ref().map_or(0.0, Usage::cpu_secs),
        wait: (begun - f.submit_time - look.ineligible).max(0),
        turnaround: (f.event_time - f.submit_time - look.ineligible).max(0),
    }
}

fn status(f: &Finish) -> &'static str {
    if f.status.is_done() { "done" } else { "exit" }
}

fn line(out: &mut String, f: &Finish, wide: bool, look: &JobForm, clock: &Clock) {
    let cut = |text: &str, width: usize| -> String {
        let mut clean = String::new();
        push_clean(&mut clean, text);
        if wide { clean } else { clean.chars().take(width).collect() }
    };
    let s = spent(f, look);
    let (id, queue) = (f.at.to_string(), cut(&f.spec.queue, 10));
    let _ = write!(out, "{id:<9} {queue:<10} ");
    clock.short(out, f.submit_time);
    let from = cut(&f.spec.from_host, 6);
    let _ = writeln!(
        out,
        " {:>5.1} {:>8} {:>10} {from:>6}  {}",
        s.cpu,
        s.wait,
        s.turnaround,
        status(f)
    );
}

fn long(out: &mut String, f: &Finish, wrap: bool, look: &JobForm, clock: &Clock) {
    let spec = &f.spec;
    let mut t = String::new();
    out.push('\n');
    let _ = write!(t, "Job <{}>", f.at);
    if !spec.name.is_empty() {
        push(&mut t, ", Job Name ", &job_name(f));
    }
    push(&mut t, ", User ", &f.user);
    push(&mut t, ", Project ", &spec.project);
    for (label, option) in KEPT {
        push_given(&mut t, label, &spec.further.text(option).unwrap_or_default());
    }
    push_given(&mut t, ", Mail ", &spec.mail_user);
    push_given(&mut t, ", Job Group ", &spec.further.job_group);
    push(&mut t, ", Status ", JobState::of_end(f.status.is_done()).name());
    push(&mut t, ", Queue ", &spec.queue);
    t.push_str(interactive_mode(spec.options));
    push(&mut t, ", Command ", &spec.command.lossy());
    push_given(&mut t, ", Job Description ", &spec.description);
    push_given(&mut t, ", Share group charged ", &f.charged);
    paragraph(out, &t, wrap);
    let mut event = |time: i64, words: &dyn Fn(&mut String)| {
        let mut t = String::new();
        clock.long(&mut t, time);
        t.push_str(": ");
        words(&mut t);
        paragraph(out, &t, wrap);
    };
    event(f.submit_time, &|t| Submission::of(spec).sentence(t, clock, None, look.tasks));
    if f.start_time > 0 {
        event(f.start_time, &|t| dispatched(t, &f.exec_hosts, &f.eff_res_req, look.tasks));
    }
    event(f.event_time, &|t| {
        let _ = write!(t, "Completed <{}>", status(f));
        if f.exit_info != 0 {
            let (name, text) = term_text(f.exit_info);
            let _ = write!(t, "; {name}: {text}");
        }
        t.push('.');
    });
    if f.exceptions != 0 {
        let words = except::words(f.exceptions).replace(' ', "  ");
        let _ = writeln!(out, "\n EXCEPTION STATUS:  {words}");
    }
    let eligible = |secs| (spent(f, &JobForm { ineligible: secs, ..*look }).wait, secs);
    if let Some((may, not)) = f.ineligible_secs.map(eligible) {
        pending_times(out, " ", &[(ELIGIBLE_TIME, Some(may)), (INELIGIBLE_TIME, Some(not))]);
    }
    used(out, f, look);
    if f.attempt > 0 {
        shares(out, f);
    }
    out.push_str(RULE);
}

fn hog_factor(s: &Spent) -> f64 {
    if s.turnaround > 0 { s.cpu / s.turnaround as f64 } else { 0.0 }
}

fn used(out: &mut String, f: &Finish, look: &JobForm) {
    let s = spent(f, look);
    let hog = hog_factor(&s);
    let u = f.usage.unwrap_or_default();
    out.push_str("\nAccounting information about this job:\n");
    if !f.charged.is_empty() {
        out.push_str("     ");
        push(out, "Share group charged ", &f.charged);
        out.push('\n');
    }
    let _ = write!(
        out,
        "     CPU_T     WAIT     TURNAROUND   STATUS     HOG_FACTOR    MEM    SWAP\n\
         {:>10.2}{:>9}{:>15}{:>9}{hog:>15.4}{:>7}{:>8}\n",
        s.cpu,
        s.wait,
        s.turnaround,
        status(f),
        short_size(u.max_mem_kb),
        short_size(u.max_swap_kb),
    );
    usage_by_host(out, "     ", &f.hosts_used);
}

/// The share of its allocation that a job used, from our own records.
fn shares(out: &mut String, f: &Finish) {
    let u = f.usage.unwrap_or_default();
    let e = Efficiency {
        max_mem_kb: u.max_mem_kb,
        avg_mem_kb: u.avg_mem_kb,
        asked_mb: lsf::lang::resreq::requested_mb(&f.eff_res_req).unwrap_or(0.0),
        slots: f.exec_hosts.iter().map(|h| i64::from(h.1)).sum(),
        ran: (f.event_time - f.start_time).max(0) as f64,
        cpu: u.cpu_secs(),
        peak: f64::from(u.cpu_peak) / 100.0,
        peak_secs: i64::from(u.cpu_peak_secs),
    };
    let duration = format!("{} second(s)", e.peak_secs);
    let _ = write!(
        out,
        "     CPU_PEAK     CPU_PEAK_DURATION     CPU_PEAK_EFFICIENCY\n\
         {:>13.2}{duration:>22}{:>23.2}%\n     CPU_AVERAGE_EFFICIENCY      MEM_EFFICIENCY\n\
         {:>26.2}%{:>19.2}%\n",
        e.peak,
        e.cpu_peak(),
        e.cpu_average(),
        e.mem(),
    );
}

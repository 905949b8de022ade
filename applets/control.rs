//! Common code of bkill, bstop, bresume, bswitch, brequeue, btop and bbot: the selection of jobs,
//! and the messages about each result.
//!
//! Invariants: what happened goes to stdout, what did not to stderr, in the order mbatchd answers;
//! the exit code is 0 when at least one job was acted on, else 255.

use argh::{ArgsInfo, FromArgs};
use jiff::tz::TimeZone;
use lsf::cli::client::{self, ClientError};
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::front::{self, Exit};
use lsf::cli::long_format::clean;
use lsf::cli::{job_ids, site};
use lsf::lang::interval::Interval;
use lsf::model::JobRef;
use lsf::model::further;
use lsf::model::reason::{err, err_text};
use lsf::model::resize::ResizeRequest;
use lsf::proto::client::{Control, JobSelect, MAX_REASON, Outcome, Verb, Which};
use lsf::{errln, outln};
use std::ffi::OsString;

/// The filters the three commands have in common.
#[derive(Default)]
pub struct Filters {
    pub name: Option<String>,
    pub queue: Option<String>,
    pub host: Option<String>,
    pub user: Option<String>,
    pub group: Option<String>,
    pub app: Option<String>,
    pub sla: Option<String>,
}

/// The jobs meant. `None`: neither a job nor a filter was given, which is a usage error.
pub fn selection(operands: &[OsString], filters: Filters) -> Result<Option<JobSelect>, Exit> {
    let ids = job_ids::ids(operands).map_err(Exit::fail)?;
    let none = ids.ids.is_empty() && !ids.all;
    let Filters { name, queue, host, user, group, app, sla } = filters;
    let given = [&name, &queue, &host, &user, &group, &app, &sla];
    if none && given.iter().all(|f| f.is_none()) {
        return Ok(None);
    }
    let further = [(further::GROUP, group), (further::APP, app), (further::SLA, sla)];
    let further = further.into_iter().filter_map(|(o, v)| v.map(|v| (o.to_string(), v)));
    Ok(Some(JobSelect {
        ids: ids.ids,
        all: ids.all,
        user: user.unwrap_or_default(),
        queue: queue.unwrap_or_default(),
        host: host.unwrap_or_default(),
        name: name.unwrap_or_default(),
        given: further.collect(),
        ..JobSelect::default()
    }))
}

/// The first option that was given and that nothing acts on.
pub fn given<const N: usize>(options: [(&'static str, bool); N]) -> Option<&'static str> {
    options.into_iter().find_map(|(word, given)| given.then_some(word))
}

/// Refuses an option that nothing acts on.
pub fn refuse(name: &str, option: Option<&str>) -> Result<(), Exit> {
    match option {
        Some(word) => Err(Exit::fail(format_args!("{name}: option {word} is not supported yet"))),
        None => Ok(()),
    }
}

/// The interval of -C, -S, -D, -T and the like, where one was given.
pub fn interval(
    text: &Option<String>,
    now: i64,
    zone: &TimeZone,
) -> Result<Option<Interval>, Exit> {
    let Some(t) = text else { return Ok(None) };
    let bad = || Exit::fail(format_args!("{}: {}", clean(t), err_text(err::BAD_TIME)));
    Interval::parse(t, now, zone).ok_or_else(bad).map(Some)
}

/// The words for having given neither.
pub const NOTHING_GIVEN: &str = "Job ID or one of '-m', '-u' '-q' and '-J' must be specified.";

/// The message about a job on which the command acted.
fn done(verb: &Verb, id: JobRef) -> String {
    let being = match verb {
        Verb::Kill | Verb::Remove => "terminated",
        Verb::Signal { name, .. } if name == "KILL" => "terminated",
        Verb::Signal { .. } => "signaled",
        Verb::Stop => "stopped",
        Verb::Resume => "resumed",
        Verb::Requeue(_) => "requeued ",
        Verb::Switch { queue } => return format!("Job <{id}> is switched to queue <{queue}>"),
        Verb::Migrate { .. } => "migrated",
        Verb::Checkpoint(order) => match order.period {
            None => "checkpointed",
            Some(0) => return format!("Job <{id}>: Periodic checkpointing is disabled"),
            Some(minutes) => return format!("Job <{id}>: Checkpoint period is now {minutes} min."),
        },
        Verb::Resize(ResizeRequest::Cancel) => {
            return format!("Job <{id}>: Pending resize request is canceled");
        }
        Verb::Resize(ResizeRequest::Release { .. }) => "resized",
        Verb::Resize(ResizeRequest::Grow { .. }) => {
            return format!("Job <{id}>: Resize request is submitted");
        }
        Verb::Force(_) => return format!("Job <{id}> is being forced to run."),
        // btop and bbot have words of their own.
        Verb::Move { .. } => "moved",
    };
    format!("Job <{id}> is being {being}")
}

/// The text of -C.
pub fn reason(given: Option<String>) -> Result<String, Exit> {
    let reason = given.unwrap_or_default();
    match reason.chars().count() {
        0..=MAX_REASON => Ok(reason),
        _ => Err(Exit::fail(format_args!(
            "{}: more than {MAX_REASON} characters for option -C",
            err_text(err::BAD_ARG)
        ))),
    }
}

/// Asks mbatchd to act and says what became of each job.
pub fn run(ctx: &mut Ctx, verb: Verb, select: JobSelect) -> i32 {
    act(ctx, Control::of(verb, select))
}

/// Like [`run`], for a request with further options.
pub fn act(ctx: &mut Ctx, control: Control) -> i32 {
    let (name, user) = (control.select.name.clone(), control.select.user.clone());
    let (verb, bulk) = (control.verb.clone(), control.bulk);
    match client::control(ctx, control) {
        Ok((outcomes, None)) if outcomes.is_empty() && nobody(&user) => {
            errln!(ctx, "{user}: {}", err_text(err::UNKNOWN_USER));
            FAIL
        }
        Ok((outcomes, None)) if bulk && !outcomes.is_empty() => {
            // which of them could be ended is not told
            outln!(ctx, "{}", err_text(err::IN_PROGRESS));
            0
        }
        Ok((outcomes, None)) => report(ctx, &verb, &name, &outcomes),
        Ok((outcomes, Some(e))) => {
            report(ctx, &verb, &name, &outcomes);
            errln!(ctx, "{e}");
            FAIL
        }
        Err(ClientError::Unexpected) => unexpected(ctx),
        Err(e) if e.code() == Some(err::NO_JOB) => report(ctx, &verb, &name, &[]),
        Err(e) => {
            errln!(ctx, "{e}");
            FAIL
        }
    }
}

/// Whether `-u` names neither a user nor a user group.
fn nobody(user: &str) -> bool {
    !user.is_empty() && site::find().is_ok_and(|s| job_ids::nobody(&s, user))
}

/// mbatchd answered with a message of another kind.
pub fn unexpected(ctx: &mut Ctx) -> i32 {
    errln!(ctx, "{}", err_text(57));
    FAIL
}

fn report(ctx: &mut Ctx, verb: &Verb, name: &str, outcomes: &[Outcome]) -> i32 {
    if outcomes.is_empty() {
        match name {
            _ if matches!(verb, Verb::Switch { .. } | Verb::Requeue(_) | Verb::Migrate { .. }) => {
                errln!(ctx, "{}", err_text(err::NO_JOB))
            }
            "" => errln!(ctx, "No unfinished job found"),
            name => errln!(ctx, "Job <{name}> is not found"),
        }
        return FAIL;
    }
    for outcome in outcomes {
        match outcome.code {
            0 => outln!(ctx, "{}", done(verb, outcome.id)),
            code => errln!(ctx, "Job <{}>: {}", outcome.id, err_text(code)),
        }
    }
    if outcomes.iter().any(|o| o.code == 0) { 0 } else { FAIL }
}

/// The options of bstop and bresume, which differ in their verb alone.
#[derive(FromArgs, ArgsInfo)]
struct StopOpts {
    /// jobs on this host or host group
    #[argh(option, short = 'm', arg_name = "host_name")]
    host: Option<String>,
    /// jobs in this queue
    #[argh(option, short = 'q', arg_name = "queue_name")]
    queue: Option<String>,
    /// jobs of this user; `all`: of all users
    #[argh(option, short = 'u', arg_name = "user_name | all")]
    user: Option<String>,
    /// jobs with this name; `*` matches any text
    #[argh(option, short = 'J', arg_name = "job_name")]
    name: Option<String>,
    /// jobs of this job group
    #[argh(option, short = 'g', arg_name = "job_group")]
    group: Option<String>,
    /// jobs submitted with this application profile
    #[argh(option, arg_name = "profile")]
    app: Option<String>,
    /// jobs submitted with this service class
    #[argh(option, arg_name = "class")]
    sla: Option<String>,
    /// jobs in all states
    #[argh(switch, short = 'a')]
    every: bool,
    /// jobs that have finished
    #[argh(switch, short = 'd')]
    done: bool,
    /// the reason, for the history of the jobs
    #[argh(option, short = 'C', arg_name = "reason")]
    reason: Option<String>,
    /// the jobs; `0`: all that the options select
    #[argh(positional, greedy, arg_name = "job_ID | \"job_ID[list]\"")]
    _jobs: Vec<String>,
}

/// All of bstop and bresume.
pub fn stop_or_resume(ctx: &mut Ctx, verb: Verb) -> i32 {
    match plan(ctx, verb) {
        Ok(code) => code,
        Err(exit) => exit.show(ctx),
    }
}

fn plan(ctx: &mut Ctx, verb: Verb) -> Result<i32, Exit> {
    let parsed = front::parse_of::<StopOpts>(ctx)?;
    let StopOpts { host, queue, user, name, group, app, sla, every, done, reason: why, .. } =
        parsed.options;
    let filters = Filters { name, queue, host, user, group, app, sla };
    let mut select = selection(&parsed.operands, filters)?;
    if every {
        select.get_or_insert_default().all = true;
    }
    let mut select =
        select.ok_or_else(|| front::usage_error::<StopOpts>(ctx.name, NOTHING_GIVEN))?;
    select.states = Which { all: every, done, ..Which::default() };
    let reason = reason(why)?;
    Ok(act(ctx, Control { reason, ..Control::of(verb, select) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(name: &str, outcomes: &[(u32, u32, i32)]) -> (i32, String, String) {
        let outcomes: Vec<Outcome> = outcomes
            .iter()
            .map(|&(job, idx, code)| Outcome::new(JobRef { job, idx }, code))
            .collect();
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut ctx = Ctx::new("bkill", vec![], &mut out, &mut err);
        let code = report(&mut ctx, &Verb::Kill, name, &outcomes);
        (code, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
    }

    #[test]
    fn one_job_acted_on_is_success() {
        let (code, out, err) = said("", &[(23, 0, 0), (24, 2, 0), (99999, 0, err::NO_JOB)]);
        assert_eq!(code, 0);
        assert_eq!(out, "Job <23> is being terminated\nJob <24[2]> is being terminated\n");
        assert_eq!(err, "Job <99999>: No matching job found\n");
        let (code, out, err) = said("", &[(23, 0, err::JOB_FINISH)]);
        assert_eq!((code, out.as_str()), (FAIL, ""));
        assert_eq!(err, "Job <23>: Job has already finished\n");
    }

    #[test]
    fn control_without_a_matching_job_says_so() {
        assert_eq!(said("", &[]), (FAIL, "".into(), "No unfinished job found\n".into()));
        assert_eq!(said("x", &[]), (FAIL, "".into(), "Job <x> is not found\n".into()));
    }

    #[test]
    fn a_job_or_a_filter_must_be_given() {
        assert_eq!(selection(&[], Filters::default()).unwrap(), None);
        let filters = Filters { queue: Some("night".into()), ..Filters::default() };
        let select = selection(&[], filters).unwrap().unwrap();
        assert_eq!((select.queue.as_str(), select.all, select.ids.len()), ("night", false, 0));
        let e = selection(&["abc".into()], Filters::default()).unwrap_err();
        assert_eq!((e.code, e.err.as_str()), (255, "abc: Illegal job ID.\n"));
    }
}

//! brun: an administrator has a pending or finished job started at once (brun(1)).

use argh::{ArgsInfo, FromArgs};
use lsf::cli::client;
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::front::{self, Exit};
use lsf::cli::job_ids;
use lsf::model::JobRef;
use lsf::model::reason::{err, err_text};
use lsf::proto::client::{Control, JobSelect, Verb};
use lsf::proto::force::Force;
use lsf::{errln, outln};

/// Starts a pending or finished job at once on the hosts named, whatever keeps it waiting.
#[derive(FromArgs, ArgsInfo)]
struct Opts {
    /// the job starts from its beginning, not from a checkpoint
    #[argh(switch, short = 'b')]
    from_beginning: bool,
    /// processors of a host that jobs use are not given to this one
    #[argh(switch, short = 'c')]
    free_processors: bool,
    /// neither run windows nor the load suspend the job
    #[argh(switch, short = 'f')]
    never_suspended: bool,
    /// the hosts, each with the number of slots there if that is to be another one than the number
    /// of its processors
    #[argh(option, short = 'm', arg_name = "\"host_name[#slots] ...\"")]
    hosts: Option<String>,
    /// the job or element
    #[argh(positional, greedy, arg_name = "job_ID | \"job_ID[list]\"")]
    _job: Vec<String>,
}

pub fn run(ctx: &mut Ctx) -> i32 {
    plan(ctx).unwrap_or_else(|exit| exit.show(ctx))
}

fn plan(ctx: &mut Ctx) -> Result<i32, Exit> {
    let parsed = front::parse_of::<Opts>(ctx)?;
    let o = parsed.options;
    let usage = |why| front::usage_error::<Opts>(ctx.name, why);
    let [job] = parsed.operands.as_slice() else { return Err(usage("One job must be specified.")) };
    let hosts = hosts(o.hosts.as_deref().unwrap_or_default())?;
    if hosts.is_empty() {
        return Err(usage("The hosts must be specified with -m."));
    }
    let ids = job_ids::ids(std::slice::from_ref(job)).map_err(Exit::fail)?;
    let [_] = ids.ids.as_slice() else {
        return Err(Exit::fail(format_args!("{}: Illegal job ID.", job.to_string_lossy())));
    };
    let verb = Verb::Force(Force {
        hosts,
        from_beginning: o.from_beginning,
        free_processors: o.free_processors,
        never_suspended: o.never_suspended,
    });
    let select = JobSelect { ids: ids.ids, ..JobSelect::default() };
    match client::control(ctx, Control::of(verb, select)) {
        Ok((outcomes, None)) => {
            let told = outcomes.iter().map(|o| (o.id, o.code)).collect::<Vec<_>>();
            Ok(tell(ctx, &told))
        }
        Ok((_, Some(why))) => Ok(failed(ctx, &why.to_string())),
        Err(why) => match why.code() {
            Some(code) if code < 9000 => Ok(failed(ctx, err_text(code))),
            _ => Err(Exit::fail(why)),
        },
    }
}

/// Says what became of each element; the exit code.
fn tell(ctx: &mut Ctx, outcomes: &[(JobRef, i32)]) -> i32 {
    if outcomes.is_empty() {
        return failed(ctx, err_text(err::NO_JOB));
    }
    let mut code = FAIL;
    for (id, result) in outcomes {
        if *result == 0 {
            outln!(ctx, "Job <{id}> is being forced to run.");
            code = 0;
        } else {
            failed(ctx, err_text(*result));
        }
    }
    code
}

fn failed(ctx: &mut Ctx, why: &str) -> i32 {
    errln!(ctx, "Failed to run the job: {why}");
    FAIL
}

/// The words of -m, each with the slots behind its `#`; 0: none given.
fn hosts(text: &str) -> Result<Vec<(String, u32)>, Exit> {
    let host = |word: &str| match word.split_once('#') {
        None => Ok((word.to_string(), 0)),
        Some((name, slots)) => match slots.parse::<u32>() {
            Ok(slots) if slots > 0 && !name.is_empty() => Ok((name.to_string(), slots)),
            _ => Err(Exit::fail(format_args!("{word}: {}", err_text(err::BAD_HOST_SPEC)))),
        },
    };
    text.split_whitespace().map(host).collect()
}

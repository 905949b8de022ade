//! bswitch: moves jobs to another queue (bswitch(1)).

use super::bsub::esub;
use super::control::{self, Filters};
use argh::{ArgsInfo, FromArgs};
use lsf::cli::ctx::Ctx;
use lsf::cli::front::{self, Exit};
use lsf::cli::site;
use lsf::model::job::{JobSpec, opt};
use lsf::proto::client::Verb;

/// Moves jobs that have not finished to another queue.
#[derive(FromArgs, ArgsInfo)]
struct Opts {
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
    /// programs of the site that check and alter the change (esub.NAME)
    #[argh(option, short = 'a', arg_name = "esub")]
    esub: Option<String>,
    /// the new queue, then the jobs; `0`: all that the options select
    #[argh(positional, greedy, arg_name = "dest_queue [job_ID | \"job_ID[list]\"]")]
    _words: Vec<String>,
}

pub fn run(ctx: &mut Ctx) -> i32 {
    plan(ctx).unwrap_or_else(|exit| exit.show(ctx))
}

/// The queue that the site's programs leave; they may refuse the change.
fn looked_at(asked: &str, queue: String) -> Result<String, Exit> {
    let site = site::find().map_err(Exit::fail)?;
    let mut spec = JobSpec { queue, options: opt::QUEUE, ..JobSpec::default() };
    let mut no_command = Vec::new();
    esub::run(&site, "bswitch", asked, &mut spec, &mut no_command)
        .map_err(|why| Exit::fail(why.words))?;
    Ok(spec.queue)
}

fn plan(ctx: &mut Ctx) -> Result<i32, Exit> {
    let parsed = front::parse_of::<Opts>(ctx)?;
    let (opts, mut operands) = (parsed.options, parsed.operands);
    if operands.is_empty() {
        let words = "The destination queue must be specified.";
        return Err(front::usage_error::<Opts>(ctx.name, words));
    }
    let mut queue = operands.remove(0).to_string_lossy().into_owned();
    if let Some(asked) = &opts.esub {
        queue = looked_at(asked, queue)?;
    }
    let Opts { host, queue: from, user, name, group, app, sla, .. } = opts;
    let filters = Filters { name, queue: from, host, user, group, app, sla };
    let select = control::selection(&operands, filters)?.unwrap_or_default();
    Ok(control::run(ctx, Verb::Switch { queue }, select))
}

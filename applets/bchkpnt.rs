//! bchkpnt: has started jobs checkpointed, now or at intervals (bchkpnt(1)).

use super::control::{self, Filters};
use argh::{ArgsInfo, FromArgs};
use lsf::cli::ctx::Ctx;
use lsf::cli::front::{self, Exit};
use lsf::model::checkpoint::{CheckpointOrder, minutes};
use lsf::proto::client::{JobSelect, Verb};

/// Has checkpointable jobs that were started checkpointed.
#[derive(FromArgs, ArgsInfo)]
struct Opts {
    /// also where the method of the checkpoint would refuse
    #[argh(switch, short = 'f')]
    force: bool,
    /// end each job after a checkpoint that succeeded
    #[argh(switch, short = 'k')]
    kill: bool,
    /// no checkpoint now, but one every so many minutes; `0`: none any more
    #[argh(option, short = 'p', arg_name = "minutes | 0")]
    period: Option<String>,
    /// jobs with this application profile
    #[argh(option, long = "app", arg_name = "application_profile")]
    app: Option<String>,
    /// jobs of this job group
    #[argh(option, short = 'g', arg_name = "job_group")]
    group: Option<String>,
    /// jobs with this name; `*` matches any text
    #[argh(option, short = 'J', arg_name = "job_name")]
    name: Option<String>,
    /// jobs on these hosts
    #[argh(option, short = 'm', arg_name = "\"host_name ...\" | \"host_group ...\"")]
    hosts: Option<String>,
    /// jobs of this queue
    #[argh(option, short = 'q', arg_name = "queue_name")]
    queue: Option<String>,
    /// jobs of this user or user group; `all`: of all users
    #[argh(option, short = 'u', arg_name = "user_name | user_group | all")]
    user: Option<String>,
    /// the jobs; `0`: all that the options select; none: the one submitted last of these
    #[argh(positional, greedy, arg_name = "job_ID | \"job_ID[list]\" | 0")]
    _jobs: Vec<String>,
}

pub fn run(ctx: &mut Ctx) -> i32 {
    plan(ctx).unwrap_or_else(|exit| exit.show(ctx))
}

fn plan(ctx: &mut Ctx) -> Result<i32, Exit> {
    let parsed = front::parse_of::<Opts>(ctx)?;
    let o = parsed.options;
    let period = match o.period.as_deref() {
        None => None,
        Some("0") => Some(0),
        Some(text) => Some(minutes(text).ok_or_else(|| {
            front::usage_error::<Opts>(ctx.name, &format!("{text}: bad period of checkpoints"))
        })?),
    };
    let filters = Filters {
        name: o.name,
        queue: o.queue,
        host: o.hosts,
        user: o.user,
        group: o.group,
        app: o.app,
        ..Filters::default()
    };
    let select = control::selection(&parsed.operands, filters)?;
    let order = CheckpointOrder { kill: o.kill, force: o.force, period };
    Ok(control::run(ctx, Verb::Checkpoint(order), select.unwrap_or_else(JobSelect::default)))
}

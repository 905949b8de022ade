//! bmig: ends started jobs that may be run again and has them run on another host (bmig(1)).

use super::control::{self, Filters};
use argh::{ArgsInfo, FromArgs};
use lsf::cli::ctx::Ctx;
use lsf::cli::front::{self, Exit};
use lsf::proto::client::{JobSelect, Verb};

/// Ends started jobs and has them run again, on another host if there is one.
#[derive(FromArgs, ArgsInfo)]
struct Opts {
    /// also where the method of the checkpoint would refuse
    #[argh(switch, short = 'f')]
    force: bool,
    /// jobs with this name; `*` matches any text
    #[argh(option, short = 'J', arg_name = "job_name")]
    name: Option<String>,
    /// jobs on these hosts
    #[argh(option, short = 'm', arg_name = "\"host_name ...\" | \"host_group ...\"")]
    hosts: Option<String>,
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
    let filters = Filters { name: o.name, host: o.hosts, user: o.user, ..Filters::default() };
    let select = control::selection(&parsed.operands, filters)?;
    Ok(control::run(
        ctx,
        Verb::Migrate { force: o.force },
        select.unwrap_or_else(JobSelect::default),
    ))
}

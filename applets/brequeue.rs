//! brequeue: ends jobs and puts them back into their queue with the same ID (brequeue(1)).

use super::control::{self, Filters};
use argh::{ArgsInfo, FromArgs};
use lsf::cli::ctx::Ctx;
use lsf::cli::front::{self, Exit};
use lsf::proto::client::{Requeue, Verb};

/// Ends jobs and puts them back into their queue.
#[derive(FromArgs, ArgsInfo)]
struct Opts {
    /// jobs in every state
    #[argh(switch, short = 'a')]
    all: bool,
    /// jobs that are done
    #[argh(switch, short = 'd')]
    done: bool,
    /// jobs that exited
    #[argh(switch, short = 'e')]
    exit: bool,
    /// jobs that are running
    #[argh(switch, short = 'r')]
    run: bool,
    /// accepted; a pending job is not requeued
    #[argh(switch, short = 'p')]
    pend: bool,
    /// the requeued jobs are suspended (PSUSP)
    #[argh(switch, short = 'H')]
    hold: bool,
    /// jobs with this name; `*` matches any text
    #[argh(option, short = 'J', arg_name = "job_name")]
    name: Option<String>,
    /// jobs of this user; `all`: of all users
    #[argh(option, short = 'u', arg_name = "user_name | all")]
    user: Option<String>,
    /// the jobs; `0`: all that the options select
    #[argh(positional, greedy, arg_name = "job_ID | \"job_ID[list]\"")]
    _jobs: Vec<String>,
}

pub fn run(ctx: &mut Ctx) -> i32 {
    plan(ctx).unwrap_or_else(|exit| exit.show(ctx))
}

fn plan(ctx: &mut Ctx) -> Result<i32, Exit> {
    let parsed = front::parse_of::<Opts>(ctx)?;
    let o = parsed.options;
    let verb = Verb::Requeue(Requeue {
        done: o.done || o.all,
        exit: o.exit || o.all,
        run: o.run || o.all,
        pend: o.pend,
        hold: o.hold,
    });
    let filters = Filters { name: o.name, user: o.user, ..Filters::default() };
    let select = control::selection(&parsed.operands, filters)?.ok_or_else(|| {
        front::usage_error::<Opts>(ctx.name, "Job ID or one of '-u' and '-J' must be specified.")
    })?;
    Ok(control::run(ctx, verb, select))
}

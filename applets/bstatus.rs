//! bstatus: shows or sets the external status of a job, which is its message 0 (bstatus(1)).

use super::job_messages;
use argh::{ArgsInfo, FromArgs};
use lsf::cli::ctx::Ctx;
use lsf::cli::front::{self, Exit};
use lsf::proto::job_message::{MessageRequest, PostMessage};

/// Shows or sets the external status of a job.
#[derive(FromArgs, ArgsInfo)]
struct Opts {
    /// the new status
    #[argh(option, short = 'd', arg_name = "description")]
    description: Option<String>,
    /// the newest job with this name
    #[argh(option, short = 'J', arg_name = "job_name")]
    name: Option<String>,
    /// the job
    #[argh(positional, greedy, arg_name = "job_ID | \"job_ID[index]\"")]
    _jobs: Vec<String>,
}

pub fn run(ctx: &mut Ctx) -> i32 {
    plan(ctx).unwrap_or_else(|exit| exit.show(ctx))
}

fn plan(ctx: &mut Ctx) -> Result<i32, Exit> {
    let parsed = front::parse_of::<Opts>(ctx)?;
    let Opts { description, name, .. } = parsed.options;
    let job = job_messages::one_job(&parsed.operands, name)?
        .ok_or_else(|| front::usage_error::<Opts>(ctx.name, job_messages::ONE_JOB))?;
    match description {
        Some(text) => {
            let post = PostMessage { job: job.clone(), text, ..PostMessage::default() };
            job_messages::post(ctx, &job, MessageRequest::Post(post))
        }
        None => job_messages::show(ctx, &job, 0, false, false).map(|_| 0),
    }
}

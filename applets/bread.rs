//! bread: shows a message of a job, and copies the data that came with it (bread(1)).
//!
//! Invariant: the file is written by this process, with the rights of its caller.

use super::job_messages::{self, refused};
use argh::{ArgsInfo, FromArgs};
use lsf::cli::client::{self, ClientError};
use lsf::cli::ctx::{Ctx, os_words};
use lsf::cli::front::{self, Exit};
use lsf::cli::long_format::clean;
use lsf::cli::site;
use lsf::proto::Msg;
use lsf::proto::client::ClientMsg;
use lsf::proto::job_message::{MessageInfo, MessageRequest, OneJob};
use lsf::proto::sbd::SbdMsg;

/// Shows a message of a job.
#[derive(FromArgs, ArgsInfo)]
struct Opts {
    /// the index of the message (default 0)
    #[argh(option, short = 'i', arg_name = "message_index")]
    index: Option<String>,
    /// also copy the data of the message to this file
    #[argh(option, short = 'a', arg_name = "file_name")]
    attach: Option<String>,
    /// also show the level of the message
    #[argh(switch, short = 'N')]
    level: bool,
    /// wide format: nothing is cut
    #[argh(switch, short = 'w')]
    wide: bool,
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
    let Opts { index, attach, level, wide, name, .. } = parsed.options;
    let job = job_messages::one_job(&parsed.operands, name)?
        .ok_or_else(|| front::usage_error::<Opts>(ctx.name, job_messages::ONE_JOB))?;
    let index = job_messages::index(index)?;
    let message = job_messages::show(ctx, &job, index, wide, level)?;
    if let Some(path) = attach {
        copy(ctx, &job, &message, &path)?;
    }
    Ok(0)
}

fn copy(ctx: &mut Ctx, job: &OneJob, message: &MessageInfo, path: &str) -> Result<(), Exit> {
    let request = MessageRequest::Attachment { job: job.clone(), index: message.index };
    let ask = Msg::Client(ClientMsg::Message(Box::new(request)));
    let site = site::find().map_err(Exit::fail)?;
    let data = match client::ask_at(&site, &ask, ctx.err) {
        Ok((_, Msg::Sbd(SbdMsg::Blob { data, .. }))) => data,
        Ok(_) => return Err(refused(job, &ClientError::Unexpected)),
        Err(e) => return Err(refused(job, &e)),
    };
    let bad = |why: String| Exit::fail(format_args!("{}: {why}", clean(path)));
    if !message.is_data(data.as_bytes()) {
        return Err(bad("the data are not as they were posted; nothing was written".into()));
    }
    std::fs::write(path, data.as_bytes()).map_err(|e| bad(os_words(&e)))
}

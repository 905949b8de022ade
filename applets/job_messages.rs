//! Common code of bpost, bread and bstatus: the job meant, and the words for a refusal.

use lsf::cli::client::{self, ClientError};
use lsf::cli::clock::Clock;
use lsf::cli::ctx::Ctx;
use lsf::cli::front::Exit;
use lsf::cli::job_ids;
use lsf::cli::long_format::clean;
use lsf::cli::messages;
use lsf::model::JobRef;
use lsf::proto::client::ClientMsg;
use lsf::proto::job_message::{MessageInfo, MessageRequest, OneJob};
use std::ffi::OsString;

/// The words for having named no job, or several.
pub const ONE_JOB: &str = "One job must be specified, by its ID or with -J.";

/// The job or element that the command line names; `None`: none, or several.
pub fn one_job(operands: &[OsString], name: Option<String>) -> Result<Option<OneJob>, Exit> {
    let ids = job_ids::ids(operands).map_err(Exit::fail)?;
    if ids.all {
        return Err(Exit::fail("0: Illegal job ID."));
    }
    Ok(match (&ids.ids[..], name) {
        ([id], None) => {
            let idx = match id.elems[..] {
                [] => 0,
                [(first, last, _)] if first == last => first,
                _ => return Ok(None),
            };
            Some(OneJob { at: JobRef { job: id.job, idx }, name: String::new() })
        }
        ([], Some(name)) => Some(OneJob { name, ..OneJob::default() }),
        _ => None,
    })
}

/// The index of -i.
pub fn index(text: Option<String>) -> Result<u32, Exit> {
    let Some(text) = text else { return Ok(0) };
    let bad = |_| Exit::fail(format_args!("{}: Bad message index", clean(&text)));
    text.trim().parse().map_err(bad)
}

/// The job as messages name it.
fn words_of(job: &OneJob) -> String {
    if !job.name.is_empty() {
        return format!("Job <{}>", clean(&job.name));
    }
    format!("Job <{}>", job.at)
}

/// Why a request about a job has failed.
pub fn refused(job: &OneJob, why: &ClientError) -> Exit {
    match why {
        ClientError::Refused(refusal) => {
            Exit::fail(format_args!("{}: {}", words_of(job), clean(&refusal.words())))
        }
        other => Exit::fail(clean(&other.words())),
    }
}

/// Posts a message; nothing is printed where it is there.
pub fn post(ctx: &mut Ctx, job: &OneJob, request: MessageRequest) -> Result<i32, Exit> {
    match client::ask(ctx, ClientMsg::Message(Box::new(request))) {
        Ok(ClientMsg::Controlled { .. }) => Ok(0),
        Ok(_) => Err(refused(job, &ClientError::Unexpected)),
        Err(e) => Err(refused(job, &e)),
    }
}

/// Reads and prints a message.
pub fn show(
    ctx: &mut Ctx,
    job: &OneJob,
    index: u32,
    wide: bool,
    level: bool,
) -> Result<MessageInfo, Exit> {
    let request = MessageRequest::Read { job: job.clone(), index };
    match client::ask(ctx, ClientMsg::Message(Box::new(request))) {
        Ok(ClientMsg::Messages(rows)) if rows.len() == 1 => {
            let text = messages::table(&rows[0], &Clock::system(), wide, level);
            let _ = ctx.out.write_all(text.as_bytes());
            Ok(rows[0].clone())
        }
        Ok(_) => Err(refused(job, &ClientError::Unexpected)),
        Err(e) => Err(refused(job, &e)),
    }
}

//! bpost: posts a message to a job, with a data file if need be (bpost(1)).
//!
//! Invariant: the file is read by this process, with the rights of its caller.

use super::job_messages;
use argh::{ArgsInfo, FromArgs};
use lsf::cli::ctx::{Ctx, os_words};
use lsf::cli::front::{self, Exit};
use lsf::cli::long_format::clean;
use lsf::model::ByteStr;
use lsf::proto::job_message::{LEVELS, MAX_ATTACHMENT, MessageRequest, PostMessage};
use lsf::sys::files::regular;
use std::io::Read;
use std::path::Path;

/// Posts a message to a job.
#[derive(FromArgs, ArgsInfo)]
struct Opts {
    /// the index of the message (default 0)
    #[argh(option, short = 'i', arg_name = "message_index")]
    index: Option<String>,
    /// the text (default "no description")
    #[argh(option, short = 'd', arg_name = "description")]
    description: Option<String>,
    /// the level of the message
    #[argh(option, short = 'N', arg_name = "INFO | WARNING | ERROR | CRITICAL")]
    level: Option<String>,
    /// a file whose data the message carries
    #[argh(option, short = 'a', arg_name = "data_file")]
    attach: Option<String>,
    /// the newest job with this name
    #[argh(option, short = 'J', arg_name = "job_name")]
    name: Option<String>,
    /// the job
    #[argh(positional, greedy, arg_name = "job_ID | \"job_ID[index]\"")]
    _jobs: Vec<String>,
}

/// The text of a message that has none.
pub const NO_TEXT: &str = "no description";

pub fn run(ctx: &mut Ctx) -> i32 {
    plan(ctx).unwrap_or_else(|exit| exit.show(ctx))
}

fn plan(ctx: &mut Ctx) -> Result<i32, Exit> {
    let parsed = front::parse_of::<Opts>(ctx)?;
    let Opts { index, description, level, attach, name, .. } = parsed.options;
    let job = job_messages::one_job(&parsed.operands, name)?
        .ok_or_else(|| front::usage_error::<Opts>(ctx.name, job_messages::ONE_JOB))?;
    let index = job_messages::index(index)?;
    let level = level.unwrap_or_default();
    if !level.is_empty() && !LEVELS.contains(&level.as_str()) {
        return Err(Exit::fail(format_args!("{}: Bad argument for option -N.", clean(&level))));
    }
    let (file, data) = match attach {
        Some(path) => read(&path)?,
        None => Default::default(),
    };
    let text = description.unwrap_or_else(|| NO_TEXT.to_string());
    let post = PostMessage { job: job.clone(), index, text, level, file, data };
    job_messages::post(ctx, &job, MessageRequest::Post(post))
}

/// The last part of the name, and the bytes.
fn read(path: &str) -> Result<(String, ByteStr), Exit> {
    let bad = |why: String| Exit::fail(format_args!("{}: {why}", clean(path)));
    let name = Path::new(path).file_name().map(|name| name.to_string_lossy().into_owned());
    let (file, _) = regular(Path::new(path)).map_err(|e| bad(os_words(&e)))?;
    let mut data = Vec::new();
    let most = MAX_ATTACHMENT as u64 + 1;
    file.take(most).read_to_end(&mut data).map_err(|e| bad(os_words(&e)))?;
    if data.len() > MAX_ATTACHMENT {
        return Err(bad(format!("larger than {MAX_ATTACHMENT} bytes, the limit of a data file")));
    }
    Ok((name.unwrap_or_default(), ByteStr(data)))
}

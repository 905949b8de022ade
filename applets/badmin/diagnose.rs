//! badmin diagnose (badmin(8)): why jobs wait, in full; who asks mbatchd for what.

use super::super::bjobs;
use argh::{ArgsInfo, FromArgs};
use lsf::cli::client::{self, ClientError};
use lsf::cli::ctx::Ctx;
use lsf::cli::front::{self, Exit};
use lsf::proto::client::{AdminOp, ClientMsg};

const USAGE: &str =
    "Usage: badmin diagnose pending_jobID ... | -c query [[-f logfile_name] [-d duration] | [-o]]";

/// Tells why jobs wait, or has queries noted.
#[derive(FromArgs, ArgsInfo)]
struct Opts {
    /// the class of events to record: query
    #[argh(option, short = 'c', arg_name = "query")]
    class: Option<String>,
    /// file FILE.querylog.HOST, in DIAGNOSE_LOGDIR unless the name has a directory
    #[argh(option, short = 'f', arg_name = "logfile_name")]
    file: Option<String>,
    /// duration in minutes
    #[argh(option, short = 'd', arg_name = "duration")]
    minutes: Option<u64>,
    /// end the recording
    #[argh(switch, short = 'o')]
    off: bool,
    /// pending jobs
    #[argh(positional, greedy, arg_name = "pending_jobID")]
    _jobs: Vec<String>,
}

pub fn diagnose(ctx: &mut Ctx) -> Result<i32, Exit> {
    let parsed = front::parse::<Opts>("diagnose", &ctx.args)?;
    let (o, jobs) = (parsed.options, parsed.operands);
    let none = o.file.is_none() && o.minutes.is_none() && !o.off;
    match o.class.as_deref() {
        None if none && !jobs.is_empty() => {
            ask(ctx, "job", false, String::new(), 0)?;
            // all reasons there are, of everybody's jobs
            ctx.args = ["-p3", "-wholereasons"].map(Into::into).into_iter().chain(jobs).collect();
            ctx.name = "bjobs";
            let code = bjobs::run(ctx);
            ctx.name = "badmin";
            Ok(code)
        }
        Some("query") if jobs.is_empty() && (none || !o.off || o.minutes.is_none()) => {
            let minutes = o.minutes.unwrap_or(0);
            if o.minutes == Some(0) || o.off && o.file.is_some() {
                return Err(Exit::fail(USAGE));
            }
            ask(ctx, "query", !o.off, o.file.unwrap_or_default(), minutes)?;
            Ok(0)
        }
        Some(other @ ("jobreq" | "lsfproxyd")) => {
            Err(Exit::fail(format_args!("badmin: diagnose -c {other} is not supported yet")))
        }
        _ => Err(Exit::fail(USAGE)),
    }
}

fn ask(ctx: &mut Ctx, what: &str, on: bool, file: String, minutes: u64) -> Result<(), Exit> {
    let op = AdminOp::Diagnose { what: what.to_string(), on, file, minutes };
    match client::ask(ctx, ClientMsg::Admin(op)) {
        Ok(ClientMsg::AdminDone { .. }) => Ok(()),
        Ok(_) => Err(Exit::fail(ClientError::Unexpected)),
        Err(e) => Err(Exit::fail(e)),
    }
}

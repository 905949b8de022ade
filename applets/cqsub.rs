//! cqsub and qsub: submit a request as users of NQS do. See cqsub(1).
//!
//! A request is a job: options and script become a submission like bsub's, which goes the same way.
//! Nothing is submitted where anything of it is wrong.

mod limits;
mod opts;
mod refusal;
mod request;
mod script;
mod time;

use crate::bsub::{self, Stop};
use lsf::cli::client;
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::front;
use lsf::cli::{nqs, site};
use lsf::proto::client::ClientMsg;
use lsf::sys::users::UserDatabase;
use lsf::{errln, outln};
use opts::{CqsubOpts, words};
use script::Source;

pub fn run(ctx: &mut Ctx) -> i32 {
    match submit(ctx) {
        Ok(()) => 0,
        Err(Stop::Exit(exit)) => exit.show(ctx),
        Err(Stop::Rejected(why)) => {
            errln!(ctx, "{}: {}", ctx.name, why.words);
            FAIL
        }
        Err(Stop::Client(e)) => {
            errln!(ctx, "{}: {}", ctx.name, e.words());
            FAIL
        }
    }
}

/// A priority from 1 to 63 in proportion to MAX_USER_PRIORITY; 0: none was asked for.
fn priority(ctx: &mut Ctx, asked: u32) -> Result<u32, Stop> {
    if asked == 0 {
        return Ok(0);
    }
    let values = match client::ask(ctx, ClientMsg::Params)? {
        ClientMsg::ParamRows { values } => values,
        _ => Vec::new(),
    };
    let most = values.iter().find(|(name, _)| name == "MAX_USER_PRIORITY");
    match most.and_then(|(_, value)| value.trim().parse::<u32>().ok()).filter(|n| *n > 0) {
        Some(most) => Ok((u64::from(asked) * u64::from(most) / 63).max(1) as u32),
        None => {
            errln!(ctx, "{}: -p is ignored: MAX_USER_PRIORITY is not defined", ctx.name);
            Ok(0)
        }
    }
}

fn submit(ctx: &mut Ctx) -> Result<(), Stop> {
    ctx.readings = Some(front::readings::<CqsubOpts>);
    let args = words(&ctx.args);
    let own = front::parse::<CqsubOpts>(ctx.name, &args)?;
    let site = site::find().map_err(|e| refusal::refused(e.to_string()))?;
    let facts = bsub::facts(&site.lsf, true)?;
    // faults of the command line are told before a script is waited for
    request::build(&own.options, &facts, &Source::default(), &site)?;
    let source = script::read(&own.operands)?;
    let lines: Vec<Vec<_>> = script::flags(&source.text)?.iter().map(|l| words(l)).collect();
    let layers: &[&[Vec<_>]] = &[&lines];
    let opts = front::parse_over::<CqsubOpts>(ctx.name, layers, &args)?.options;
    let made = request::build(&opts, &facts, &source, &site)?;
    for notice in &made.notices {
        errln!(ctx, "{}: {notice}", ctx.name);
    }
    let mut made = made;
    made.spec.priority = priority(ctx, made.spec.priority)?;
    let (job, queue) = bsub::submit_script(ctx, &site, made.spec, made.env, made.script)?;
    if !opts.silent {
        let uid = lsf::sys::euid();
        let user = UserDatabase::default().by_uid(uid).map_or(uid.to_string(), |user| user.name);
        let host = nqs::request_host(&site);
        outln!(ctx, "nqs-181 {}: INFO", ctx.name);
        outln!(ctx, "  Request <{job}.{host}>: Submitted to queue <{queue}> by <{user}({uid})>.");
    }
    Ok(())
}

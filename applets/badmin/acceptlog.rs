//! badmin acceptlog: mbatchd has found that the event log is not the last one and does not start;
//! the administrator says that it goes on from there (lsb.events(5)). No daemon is asked: what
//! contradicts the log is looked up here as mbatchd does it, and what is accepted is just that.

use super::ask::{ask, interactive};
use crate::bhist::own_log_dir;
use argh::{ArgsInfo, FromArgs};
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::front::{self, Exit};
use lsf::cli::site;
use lsf::log::disk::RealDisk;
use lsf::log::recover::against;
use lsf::{errln, outln};
use std::path::Path;

/// The words of acceptlog.
#[derive(FromArgs, ArgsInfo)]
struct Opts {
    /// ask no questions
    #[argh(switch, short = 'f')]
    force: bool,
}

pub fn acceptlog(ctx: &mut Ctx) -> Result<i32, Exit> {
    let opts = front::parse::<Opts>("badmin acceptlog", &ctx.args)?.options;
    let site = site::find().map_err(|e| Exit::fail(e.to_string()))?;
    let dir = own_log_dir(&site).map_err(|e| Exit::fail(format_args!("badmin: {e}")))?;
    let mut disk = RealDisk::existing_dir(Path::new(&dir));
    let failed = |e: &dyn std::fmt::Display| Exit::fail(format_args!("badmin: {dir}: {e}"));
    let all = against::look(&mut disk).map_err(|e| failed(&e))?;
    if all.is_empty() {
        outln!(ctx, "Nothing contradicts the event log; there is nothing to accept.");
        return Ok(0);
    }
    errln!(ctx, "The event log in {dir} is not the last one:");
    for text in &all {
        errln!(ctx, "    {text}");
    }
    errln!(ctx, "Jobs that are unfinished in it will be held; later changes are lost.");
    let asks = !opts.force;
    if asks && !(interactive() && ask(ctx, "Do you want to continue from it?")) {
        errln!(ctx, "Nothing is accepted.");
        return Ok(FAIL);
    }
    against::accept(&mut disk, &all).map_err(|e| failed(&e))?;
    outln!(ctx, "The event log is accepted; mbatchd continues from it at its next start.");
    Ok(0)
}

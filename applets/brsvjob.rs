//! brsvjob: shows the jobs of an advance reservation, as `bjobs -l` shows them (brsvjob(1)).

use super::bjobs;
use super::reservations as common;
use argh::{ArgsInfo, FromArgs};
use lsf::cli::client;
use lsf::cli::ctx::Ctx;
use lsf::cli::front::{self, Exit};
use lsf::cli::long_format::clean;
use lsf::proto::client::ClientMsg;
use lsf::proto::reservation::ReservationRequest;
use std::ffi::OsString;

/// Shows the jobs of an advance reservation, finished ones too.
#[derive(FromArgs, ArgsInfo)]
struct Opts {
    /// the reservation
    #[argh(positional, greedy, arg_name = "reservation_ID")]
    _ids: Vec<String>,
}

pub fn run(ctx: &mut Ctx) -> i32 {
    plan(ctx).unwrap_or_else(|exit| exit.show(ctx))
}

fn plan(ctx: &mut Ctx) -> Result<i32, Exit> {
    let parsed = front::parse_of::<Opts>(ctx)?;
    let Some(id) = common::one(&parsed.operands).filter(|id| !id.trim().is_empty()) else {
        return Err(front::usage_error::<Opts>(ctx.name, "One reservation must be specified."));
    };
    let words = ["-l", "-a", "-u", "all", "-U", &id].map(OsString::from);
    let mut told = Vec::new();
    let code = bjobs::run(&mut Ctx::new("bjobs", words.to_vec(), ctx.out, &mut told));
    if !told.is_empty() {
        // it has no job, or mbatchd does not answer: words about the reservation come first
        let ask = ClientMsg::Reservation(Box::new(ReservationRequest::List { ids: vec![id] }));
        client::ask(ctx, ask).map_err(|e| Exit::fail(clean(&e.words())))?;
    }
    let _ = ctx.err.write_all(&told);
    Ok(code)
}

//! melim: runs the elims of this host for its LIM. The applet around `daemon::melim`.

use argh::{ArgsInfo, FromArgs};
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::front;
use lsf::daemon::melim;
use lsf::errln;

/// Runs the elims of this host; started by lim.
#[derive(FromArgs, ArgsInfo)]
struct Opts {}

pub fn run(ctx: &mut Ctx) -> i32 {
    if let Err(exit) = front::parse_of::<Opts>(ctx) {
        return exit.show(ctx);
    }
    match melim::run() {
        Ok(code) => code,
        Err(e) => {
            errln!(ctx, "{}: {e}", ctx.name);
            FAIL
        }
    }
}

//! The common part of the daemons' applets: their one option, and the message when they do
//! not start.

use argh::{ArgsInfo, FromArgs};
use lsf::cli::{ctx::Ctx, ctx::FAIL, front};
use lsf::daemon::{boot::Boot, boot_error::BootError};
use lsf::errln;
use lsf::proto::Daemon;

/// A daemon of this host; started by the launcher. See the manual page of the daemon.
#[derive(FromArgs, ArgsInfo)]
struct Opts {
    /// the directory of lsf.conf
    #[argh(option, short = 'd', arg_name = "env_dir")]
    dir: Option<String>,
}

/// Runs a daemon until it ends.
pub fn run(ctx: &mut Ctx, daemon: Daemon, start: fn(Boot) -> Result<i32, BootError>) -> i32 {
    let opts: Opts = match front::parse_of(ctx) {
        Ok(parsed) => parsed.options,
        Err(exit) => return exit.show(ctx),
    };
    Boot::from_dir(daemon, opts.dir.as_deref()).and_then(start).unwrap_or_else(|e| {
        log::error!("{e}");
        errln!(ctx, "{}: {e}", ctx.name);
        FAIL
    })
}

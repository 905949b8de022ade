//! res: remote execution on this host. The applet around `daemon::res`.

use argh::{ArgsInfo, FromArgs};
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::front;
use lsf::daemon::{boot::Boot, res};
use lsf::errln;
use lsf::proto::Daemon;

/// Runs the tasks that commands of other hosts send to this one; started by the launcher.
#[derive(FromArgs, ArgsInfo)]
struct Opts {
    /// the directory of lsf.conf
    #[argh(option, short = 'd', arg_name = "env_dir")]
    dir: Option<String>,
}

pub fn run(ctx: &mut Ctx) -> i32 {
    let opts: Opts = match front::parse(ctx.name, &ctx.args) {
        Ok(parsed) => parsed.options,
        Err(exit) => return exit.show(ctx),
    };
    match Boot::from_dir(Daemon::Res, opts.dir.as_deref()).and_then(res::run) {
        Ok(code) => code,
        Err(e) => {
            log::error!("{e}");
            errln!(ctx, "{}: {e}", ctx.name);
            FAIL
        }
    }
}

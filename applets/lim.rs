//! lim: the load information manager of this host. The applet around `daemon::lim`.

use argh::{ArgsInfo, FromArgs};
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::front;
use lsf::daemon::{boot::Boot, lim};
use lsf::errln;
use lsf::proto::Daemon;

/// Measures this host and tells the cluster; started by the launcher.
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
    match Boot::from_dir(Daemon::Lim, opts.dir.as_deref()).and_then(lim::run) {
        Ok(code) => code,
        Err(e) => {
            log::error!("{e}");
            errln!(ctx, "{}: {e}", ctx.name);
            FAIL
        }
    }
}

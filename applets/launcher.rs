//! launcher: the parent of this host's daemons and tasks (design §1). The applet around
//! `daemon::launcher`.

use argh::{ArgsInfo, FromArgs};
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::front;
use lsf::daemon::{boot::Boot, launcher};
use lsf::errln;
use lsf::proto::Daemon;

/// Starts, signals and reaps what runs on this host. SIGTERM stops the daemons, SIGINT jobs too,
/// SIGUSR2 replaces it by the file it was started from.
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
    match Boot::from_dir(Daemon::Launcher, opts.dir.as_deref()).and_then(launcher::run) {
        Ok(code) => code,
        Err(e) => {
            log::error!("{e}");
            errln!(ctx, "{}: {e}", ctx.name);
            FAIL
        }
    }
}

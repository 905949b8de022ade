//! launcher: the parent of this host's daemons and tasks (launcher(8)). The applet around
//! `daemon::launcher`.

pub fn run(ctx: &mut lsf::cli::ctx::Ctx) -> i32 {
    lsf::daemon::launcher::begin();
    super::daemon::run(ctx, lsf::proto::Daemon::Launcher, lsf::daemon::launcher::run)
}

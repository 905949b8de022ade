//! res: remote execution on this host. The applet around `daemon::res`.

pub fn run(ctx: &mut lsf::cli::ctx::Ctx) -> i32 {
    super::daemon::run(ctx, lsf::proto::Daemon::Res, lsf::daemon::res::run)
}

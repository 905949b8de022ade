//! sbatchd: the batch agent of this host. The applet around `daemon::sbatchd`.

pub fn run(ctx: &mut lsf::cli::ctx::Ctx) -> i32 {
    super::daemon::run(ctx, lsf::proto::Daemon::Sbatchd, lsf::daemon::sbatchd::run)
}

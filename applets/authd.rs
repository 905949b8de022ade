//! authd: signs credentials for the callers of this host (authd(8)). The applet around
//! `daemon::authd`.

pub fn run(ctx: &mut lsf::cli::ctx::Ctx) -> i32 {
    super::daemon::run(ctx, lsf::proto::Daemon::Authd, lsf::daemon::authd::run)
}

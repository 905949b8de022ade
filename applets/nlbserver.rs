//! nlbserver: the server of the NQE load balancer. The applet around `daemon::nlbserver`.

pub fn run(ctx: &mut lsf::cli::ctx::Ctx) -> i32 {
    super::daemon::run(ctx, lsf::proto::Daemon::NlbServer, lsf::daemon::nlbserver::run)
}

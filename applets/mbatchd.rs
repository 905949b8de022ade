//! mbatchd: queues, scheduling and the event log (mbatchd(8)). The applet around `daemon::mbatchd`.

pub fn run(ctx: &mut lsf::cli::ctx::Ctx) -> i32 {
    super::daemon::run(ctx, lsf::proto::Daemon::Mbatchd, lsf::daemon::mbatchd::run)
}

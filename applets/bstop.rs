//! bstop: suspends jobs (bstop(1)). The options are those of [`control::stop_or_resume`].

use super::control;
use lsf::cli::ctx::Ctx;
use lsf::proto::client::Verb;

pub fn run(ctx: &mut Ctx) -> i32 {
    control::stop_or_resume(ctx, Verb::Stop)
}

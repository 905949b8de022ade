//! eauthd: hidden; has a site's `eauth -s` run as LSF_EAUTH_USER. The applet around
//! `daemon::eauthd`, which the launcher alone starts.

use lsf::cli::ctx::{Ctx, FAIL};
use lsf::errln;

pub fn run(ctx: &mut Ctx) -> i32 {
    let why = lsf::daemon::eauthd::run();
    errln!(ctx, "{}: {why}", ctx.name);
    FAIL
}

//! eexecd: hidden; has a site's eexec run as LSF_EEXEC_USER. The applet around
//! `daemon::eexecd`, which the launcher alone starts.

use lsf::cli::ctx::{Ctx, FAIL};
use lsf::errln;

pub fn run(ctx: &mut Ctx) -> i32 {
    let why = lsf::daemon::eexecd::run();
    errln!(ctx, "{}: {why}", ctx.name);
    FAIL
}

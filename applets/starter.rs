//! starter: hidden; sets one task up and becomes it. The applet around `daemon::starter`, which
//! the launcher alone starts.

use lsf::cli::ctx::{Ctx, FAIL};
use lsf::errln;

pub fn run(ctx: &mut Ctx) -> i32 {
    match ctx.args.as_slice() {
        [] => lsf::daemon::starter::serve(),
        [what, user] if what == lsf::daemon::prepost::NAME => lsf::daemon::prepost::serve(user),
        [daemon, user] => {
            let why = lsf::daemon::starter::run_daemon(daemon, &user.to_string_lossy());
            errln!(ctx, "starter: {}: {why}", daemon.to_string_lossy());
            FAIL
        }
        _ => {
            errln!(ctx, "starter: started by the launcher alone");
            FAIL
        }
    }
}

//! starter: hidden; sets one task up and becomes it. The applet around `daemon::starter`, which
//! the launcher alone starts.

use lsf::cli::ctx::{Ctx, FAIL};
use lsf::errln;

pub fn run(ctx: &mut Ctx) -> i32 {
    if !ctx.args.is_empty() {
        errln!(ctx, "starter: started by the launcher alone");
        return FAIL;
    }
    lsf::daemon::starter::run()
}

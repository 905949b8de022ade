//! delegate: hidden; opens for root's launcher what another user could exchange, as that user. The
//! applet around `daemon::delegate`, which root's processes alone start.

use lsf::cli::ctx::{Ctx, FAIL};
use lsf::errln;

pub fn run(ctx: &mut Ctx) -> i32 {
    match lsf::daemon::delegate::serve() {
        Ok(()) => 0,
        Err(e) => {
            errln!(ctx, "{}: {}", ctx.name, lsf::sys::words(&e));
            FAIL
        }
    }
}

//! Submissions beyond MAX_PEND_JOBS and MAX_PEND_SLOTS: asked for again every SUB_TRY_INTERVAL
//! seconds, LSB_NTRIES times or until ^C.

use lsf::cli::client::{ClientError, Patience};
use lsf::cli::ctx::Ctx;
use lsf::cli::site::LocalSite;
use lsf::errln;
use lsf::proto::Refusal;
use std::time::Duration;

/// How often a submission may still be sent.
#[derive(Clone, Copy)]
pub struct Again {
    /// The number of tries left; `None`: no limit.
    left: Option<u32>,
}

impl Again {
    pub fn of(site: &LocalSite) -> Again {
        Again { left: Patience::of(site).tries }
    }

    /// Counts one that was refused so. How long to wait before the next; `None`: it is not to be
    /// sent again.
    pub fn after(&mut self, why: &Refusal) -> Option<Duration> {
        if let Some(left) = &mut self.left {
            *left = left.saturating_sub(1);
        }
        let over = why.again == 0 || self.left == Some(0);
        (!over).then(|| Duration::from_secs(why.again))
    }

    /// Waits after a refusal, where that may help.
    pub fn waits(&mut self, ctx: &mut Ctx, e: &ClientError) -> bool {
        let ClientError::Refused(why) = e else { return false };
        let Some(pause) = self.after(why) else { return false };
        say(ctx, why);
        std::thread::sleep(pause);
        true
    }
}

/// Tells the user that there will be another try.
pub fn say(ctx: &mut Ctx, why: &Refusal) {
    errln!(ctx, "{}. Retrying in {} seconds...", why.words(), why.again);
    ctx.flush();
}

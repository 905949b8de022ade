//! The answer to a submission, for the user.

use super::caller::is_set;
use lsf::cli::ctx::Ctx;
use lsf::errln;
use lsf::exec::sbatchd::KEEP_SECS;

pub fn answer(ctx: &mut Ctx, job: u32, queue: &str, named: bool) {
    if is_set("BSUB_QUIET") {
        return;
    }
    let default = if named { "" } else { "default " };
    let text = format!("Job <{job}> is submitted to {default}queue <{queue}>.");
    if is_set("BSUB_STDERR") {
        errln!(ctx, "{text}");
    } else {
        lsf::outln!(ctx, "{text}");
        ctx.flush();
    }
}

/// Says on stderr that the service class of the job is ignored, and that what it asks of the load
/// balancer was not checked, where that is so.
pub fn say_notices(ctx: &mut Ctx, class_ignored: bool, nlb_unchecked: bool) {
    let name = ctx.name;
    if class_ignored {
        errln!(ctx, "{name}: the service class has no effect: no service class is configured");
    }
    if nlb_unchecked {
        let words = "no NLB server is heard: its policy and attributes are not checked";
        errln!(ctx, "{name}: -nlb: {words}");
    }
}

/// The words that tell where output goes without -o and without a mail program.
pub fn kept_words() -> String {
    let days = KEEP_SECS / (24 * 3600);
    format!(
        "No -o, and no mail program here: the output will be kept in ~/.lsbatch on the execution \
         host, for {days} days."
    )
}

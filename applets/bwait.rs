//! bwait: waits for a dependency condition (bwait(1)).

use argh::{ArgsInfo, FromArgs};
use lsf::cli::ctx::Ctx;
use lsf::cli::front::{self, Exit};
use lsf::cli::{site, wait_connection};
use lsf::lang::depend::DepExpr;
use lsf::proto::client::{Wait, Waited};

/// Longest `-t`, minutes: about sixty years, so that its seconds never overflow.
const MAX_MINUTES: u64 = 30_000_000;

/// Waits until a condition of jobs is met.
#[derive(FromArgs, ArgsInfo)]
struct Opts {
    /// the condition, as after bsub -w
    #[argh(option, short = 'w', arg_name = "condition")]
    condition: Option<String>,
    /// longest wait, minutes (default: for ever)
    #[argh(option, short = 't', arg_name = "minutes")]
    timeout: Option<u64>,
    /// accepted; the condition is evaluated whenever a job in it changes
    #[argh(option, short = 'r', long = "interval", arg_name = "interval")]
    _interval: Option<u64>,
}

pub fn run(ctx: &mut Ctx) -> i32 {
    plan(ctx).unwrap_or_else(|exit| exit.show(ctx))
}

fn plan(ctx: &mut Ctx) -> Result<i32, Exit> {
    let opts = front::parse_of::<Opts>(ctx)?.options;
    let expr = opts.condition.ok_or_else(|| {
        front::usage_error::<Opts>(ctx.name, "A condition must be given with -w.")
    })?;
    DepExpr::parse(&expr).map_err(|e| Exit::fail(format_args!("{expr}: {e}")))?;
    let timeout = seconds(opts.timeout)
        .ok_or_else(|| Exit::fail(format_args!("{}: Bad argument for option -t.", ctx.name)))?;
    let site = site::find().map_err(Exit::fail)?;
    let in_jobs = site::param(Some(&site), "LSB_BWAIT_IN_JOBS").is_none_or(|v| site::means_yes(&v));
    if !in_jobs && std::env::var_os("LSB_JOBID").is_some() {
        let words = "lsf.conf does not let jobs wait (LSB_BWAIT_IN_JOBS)";
        return Err(Exit::fail(format_args!("{}: {words}", ctx.name)));
    }
    match wait_connection::until(&site, &Wait { expr: expr.clone(), timeout, watch: None }, ctx.err)
    {
        Ok(waited) => match failure(&waited) {
            None => Ok(0),
            Some(why) => Err(Exit::fail(format_args!("{expr}: {why}"))),
        },
        Err(e) => Err(Exit::fail(e)),
    }
}

/// The seconds of the minutes after -t; 0 is for ever.
fn seconds(minutes: Option<u64>) -> Option<u64> {
    match minutes {
        None => Some(0),
        Some(minutes) => (1..=MAX_MINUTES).contains(&minutes).then(|| minutes * 60),
    }
}

/// Why the condition is not met, if it is not.
fn failure(waited: &Waited) -> Option<&'static str> {
    match waited {
        Waited::True | Waited::Ended { .. } => None,
        Waited::Never => Some("Dependency condition invalid or never satisfied"),
        Waited::Timeout => Some("the condition was not met within the time given"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minutes_and_answers_of_bwait_are_bounded() {
        let of = [None, Some(1), Some(90), Some(MAX_MINUTES), Some(0), Some(MAX_MINUTES + 1)];
        let max = Some(MAX_MINUTES * 60);
        assert_eq!(of.map(seconds), [Some(0), Some(60), Some(5400), max, None, None]);
        assert_eq!(failure(&Waited::True), None);
        let words = failure(&Waited::Timeout).unwrap();
        assert!(words.contains("not met within the time"), "{words}");
        assert!(failure(&Waited::Never).unwrap().ends_with("never satisfied"));
    }
}
